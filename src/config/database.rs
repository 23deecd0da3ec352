//! `DATABASE_URL`: which database, and where. The rest of the program never looks at the text of the URL again.

use std::fmt;
use std::path::{Path, PathBuf};

/// The database of this process.
#[derive(Clone, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// A SQLite file: the path after `sqlite://`, relative to the working directory unless it begins with `/`.
    Sqlite(PathBuf),
    /// A connection URL of PostgreSQL, as libpq reads it. It may hold a password.
    Postgres(String),
}

impl DatabaseUrl {
    pub(super) fn parse(text: &str) -> Option<DatabaseUrl> {
        match text.split_once("://")? {
            // A database in memory would lose orders at the next stop, and every connection of the pool would have its own.
            ("sqlite", path) if path.is_empty() || path.starts_with(':') || path.contains('?') => None,
            // SQLite reads it as a URI of its own, which may name a database in memory.
            ("sqlite", path) if path.starts_with("file:") => None,
            ("sqlite", path) if path.ends_with('/') => None,
            ("sqlite", path) => Some(DatabaseUrl::Sqlite(PathBuf::from(path))),
            ("postgres" | "postgresql", rest) if is_unambiguous(rest) => Some(DatabaseUrl::Postgres(text.to_owned())),
            _ => None,
        }
    }

    /// Whether this is the default file, whose directory the program makes itself. The directory of any other file has
    /// to exist, because a wrong path must not become a new empty database.
    #[must_use]
    pub fn is_default(&self) -> bool {
        let default = super::settings::DATABASE_URL.default.trim_start_matches("sqlite://");
        matches!(self, DatabaseUrl::Sqlite(path) if path == Path::new(default))
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatabaseUrl::Sqlite(path) => write!(f, "sqlite://{}", path.display()),
            DatabaseUrl::Postgres(url) => f.write_str(&without_password(url)),
        }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// Whether libpq reads the URL as it was meant. A password with an unescaped '@', '/' or '%' would be cut into pieces, and a
/// piece of it would then stand in an error message as the name of a host or a port.
fn is_unambiguous(rest: &str) -> bool {
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let hosts = authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts);
    let ports_are_numbers = hosts.split(',').all(|host| match host.rsplit_once(':') {
        Some((_, port)) if !port.ends_with(']') => port.bytes().all(|byte| byte.is_ascii_digit()),
        _ => true,
    });
    let escapes_are_whole = rest.split('%').skip(1).all(|behind| {
        let digits = behind.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    !rest.is_empty() && rest.matches('@').count() <= 1 && ports_are_numbers && escapes_are_whole
}

/// The URL with `***` in the place of every password: after the user's name, and in parameters such as `password=`. What
/// does not look like a URL is hidden whole, since nobody knows where in it the secret is.
pub(super) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "***".to_owned() };
    let (place, query) = rest.split_once('?').map_or((rest, None), |(place, query)| (place, Some(query)));
    // The last '@' ends the password: one that was not percent-encoded may hold an '@' or a '/' of its own.
    let place = match place.rsplit_once('@') {
        Some((user, host)) => match user.split_once(':') {
            Some((name, _)) => format!("{name}:***@{host}"),
            None => place.to_owned(),
        },
        None => place.to_owned(),
    };
    let query = query.map(|query| query.split('&').map(parameter_without_password).collect::<Vec<_>>().join("&"));
    match query {
        Some(query) if query.contains('@') => format!("{scheme}://***"),
        Some(query) => format!("{scheme}://{place}?{query}"),
        None => format!("{scheme}://{place}"),
    }
}

fn parameter_without_password(parameter: &str) -> String {
    match parameter.split_once('=') {
        Some((name, _)) if name.to_ascii_lowercase().contains("pass") => format!("{name}=***"),
        _ => parameter.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{DatabaseUrl, without_password};
    use std::path::PathBuf;

    #[test]
    fn a_sqlite_url_is_a_path() {
        let relative = DatabaseUrl::parse("sqlite://data/orders.db");
        assert_eq!(relative, Some(DatabaseUrl::Sqlite(PathBuf::from("data/orders.db"))));
        let absolute = DatabaseUrl::parse("sqlite:///var/lib/orders.db");
        assert_eq!(absolute, Some(DatabaseUrl::Sqlite(PathBuf::from("/var/lib/orders.db"))));
    }

    #[test]
    fn only_the_default_file_is_the_default() {
        assert!(DatabaseUrl::parse("sqlite://data/orders.db").unwrap().is_default());
        assert!(!DatabaseUrl::parse("sqlite:///data/orders.db").unwrap().is_default());
        assert!(!DatabaseUrl::parse("postgres://data/orders.db").unwrap().is_default());
    }

    #[test]
    fn what_is_no_lasting_database_is_refused() {
        for text in [
            "",
            "orders.db",
            "sqlite://",
            "sqlite://:memory:",
            "sqlite://x.db?mode=memory",
            "sqlite://data/",
            "sqlite://file::memory:",
            "sqlite://file:orders.db",
            "mysql://h/d",
            "postgres://",
            "POSTGRES://h/d",
            "postgres:/h/d",
        ] {
            assert_eq!(DatabaseUrl::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_password_that_libpq_would_cut_into_pieces_is_refused() {
        for text in [
            "postgres://shop:s3c@ret@db/orders",
            "postgres://shop:s3c/ret@db/orders",
            "postgres://shop:s3c%zzret@db/orders",
            "postgres://shop:s3cret%@db/orders",
            "postgres://db/orders?password=s3c%zret",
            "postgres://db:54x2/orders",
        ] {
            assert_eq!(DatabaseUrl::parse(text), None, "{text}");
        }
        for text in [
            "postgres://shop:s3c%40r%2Fet@db:5432/orders?sslmode=require",
            "postgres://shop@[::1]:5432/orders",
            "postgres://shop@[::1]/orders",
            "postgres://a:1,b:2/orders",
            "postgres:///orders?host=%2Frun%2Fpostgresql",
        ] {
            assert!(DatabaseUrl::parse(text).is_some(), "{text}");
        }
    }

    #[test]
    fn no_password_is_ever_shown() {
        for (url, shown) in [
            ("postgres://shop:s3cret@db:5432/orders", "postgres://shop:***@db:5432/orders"),
            ("postgres://shop:s3c@ret@db/orders", "postgres://shop:***@db/orders"),
            ("postgres://shop:s3c/ret@db/orders", "postgres://shop:***@db/orders"),
            ("postgres://shop:s3c:ret@a:1,b:2/orders", "postgres://shop:***@a:1,b:2/orders"),
            ("postgres://shop:s3c?ret@db/orders", "postgres://***"),
            ("postgres://shop@db/orders", "postgres://shop@db/orders"),
            ("postgres://db/orders?user=shop&password=s3cret", "postgres://db/orders?user=shop&password=***"),
            ("postgres://db/orders?sslpassword=s3cret&a=b", "postgres://db/orders?sslpassword=***&a=b"),
            ("mysql://root:s3cret@db/orders", "mysql://root:***@db/orders"),
            ("shop:s3cret@db", "***"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }

    #[test]
    fn debug_and_display_hide_the_password() {
        let url = DatabaseUrl::parse("postgres://shop:s3cret@db/orders").unwrap();
        assert_eq!(format!("{url} {url:?}"), r#"postgres://shop:***@db/orders "postgres://shop:***@db/orders""#);
    }
}
