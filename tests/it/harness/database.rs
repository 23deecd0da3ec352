//! The database of one test, on either side, and the tests' own look into it.
//!
//! A test asserts rows, not only answers. It reads them past the service, by SQL, as JSON values that look the same
//! on both databases: text is text, an integer is a number, bytes are text `\x…`. Instants are not: their text differs.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use diesel::connection::SimpleConnection;
use diesel::deserialize::{self, FromSql, QueryableByName};
use diesel::row::{Field, NamedRow, Row};
use diesel::sql_types::{BigInt, Binary, Double, Text};
use diesel::sqlite::{Sqlite, SqliteType};
use diesel::{Connection, PgConnection, QueryResult, RunQueryDsl, SqliteConnection, sql_query};
use order_service::db::migrate;
use serde_json::{Map, Value};
use tempfile::TempDir;

use super::cluster::Cluster;
use super::settings::config;

/// The two databases that every claim is proved on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// A file in a directory of its own.
    Sqlite,
    /// A database of the private server.
    Postgres,
}

/// A database that belongs to one test, and is removed with this value.
pub struct Database {
    url: String,
    place: Place,
    /// The test's own connection to PostgreSQL, once it has looked.
    observer: Mutex<Option<PgConnection>>,
}

/// What is removed with the value; nothing where the database belongs to somebody else.
enum Place {
    Sqlite { _directory: Option<TempDir> },
    Postgres { name: Option<String> },
}

impl Database {
    /// A database with the tables of the newest migration and no rows.
    pub fn migrated(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Sqlite => {
                let database = Self::sqlite();
                migrate(&config(database.url(), &[]).database).expect("the migrations apply to an empty database");
                database
            }
            Dialect::Postgres => Self::postgres(Cluster::shared().clone_template()),
        }
    }

    /// A database without tables.
    pub fn empty(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Sqlite => Self::sqlite(),
            Dialect::Postgres => Self::postgres(Cluster::shared().empty_database()),
        }
    }

    fn sqlite() -> Self {
        let directory =
            tempfile::Builder::new().prefix("orders-sqlite-").tempdir().expect("a directory for the database");
        Self {
            url: format!("sqlite://{}", directory.path().join("orders.db").display()),
            place: Place::Sqlite { _directory: Some(directory) },
            observer: Mutex::default(),
        }
    }

    fn postgres(name: String) -> Self {
        Self {
            url: Cluster::shared().url(&name),
            place: Place::Postgres { name: Some(name) },
            observer: Mutex::default(),
        }
    }

    /// A look into a database that belongs to somebody else, and stays when this value goes.
    #[allow(dead_code, reason = "the bench uses it")]
    pub fn guest(url: &str) -> Self {
        let place = if url.starts_with("sqlite://") {
            Place::Sqlite { _directory: None }
        } else {
            Place::Postgres { name: None }
        };
        Self { url: url.to_owned(), place, observer: Mutex::default() }
    }

    /// Which of the two it is.
    pub fn dialect(&self) -> Dialect {
        match self.place {
            Place::Sqlite { .. } => Dialect::Sqlite,
            Place::Postgres { .. } => Dialect::Postgres,
        }
    }

    /// What to give the service as `DATABASE_URL`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// How many rows a table has.
    pub fn count(&self, table: &str) -> i64 {
        let rows = self.rows(&format!("SELECT count(*) AS found FROM {table}"));
        rows[0]["found"].as_i64().expect("count(*) is an integer")
    }

    /// The rows of a query, each an object with the columns as its members.
    pub fn rows(&self, query: &str) -> Vec<Value> {
        let rows = match &self.place {
            Place::Sqlite { .. } => sqlite_rows(&mut open_sqlite(&self.url), query),
            Place::Postgres { .. } => self
                .on_postgres(|connection| {
                    sql_query(format!("SELECT to_jsonb(row)::text AS json FROM ({query}) AS row")).load(connection)
                })
                .map(|rows| rows.into_iter().map(|PostgresRow { json }| parse(&json)).collect()),
        };
        rows.unwrap_or_else(|error| panic!("{query}: {error}"))
    }

    /// Every row of every table, so that a test can say that a request has changed nothing at all.
    pub fn everything(&self) -> BTreeMap<String, Vec<String>> {
        let tables = match self.dialect() {
            Dialect::Sqlite => "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
            Dialect::Postgres => "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'",
        };
        let names = self.rows(tables).into_iter().map(|row| row["name"].as_str().expect("a name is text").to_owned());
        let contents = |table: &String| {
            let mut rows: Vec<String> =
                self.rows(&format!("SELECT * FROM {table}")).iter().map(Value::to_string).collect();
            rows.sort_unstable();
            rows
        };
        names.map(|table| (table.clone(), contents(&table))).collect()
    }

    /// Runs statements past the service, to set a scene or to break something.
    pub fn execute(&self, statements: &str) {
        let done = match &self.place {
            Place::Sqlite { .. } => open_sqlite(&self.url).batch_execute(statements),
            Place::Postgres { .. } => self.on_postgres(|connection| connection.batch_execute(statements)),
        };
        done.unwrap_or_else(|error| panic!("{statements}: {error}"));
    }

    /// Runs a query on the test's own connection, which stays open: a new one for each look costs more than the look.
    fn on_postgres<T>(&self, query: impl FnOnce(&mut PgConnection) -> T) -> T {
        let mut observer = self.observer.lock().unwrap_or_else(PoisonError::into_inner);
        query(observer.get_or_insert_with(|| {
            PgConnection::establish(&self.url).expect("the database of the test takes connections")
        }))
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Place::Postgres { name: Some(name) } = &self.place {
            let dropped = Cluster::shared().drop_database(name);
            // A second panic would end the whole test run, and the first one is the one to read.
            assert!(dropped.is_ok() || std::thread::panicking(), "{name}: {dropped:?}");
        }
    }
}

/// The rows of a query on any SQLite file, each an object with the columns as its members.
pub fn sqlite_rows(connection: &mut SqliteConnection, query: &str) -> QueryResult<Vec<Value>> {
    let rows = sql_query(query).load(connection)?;
    Ok(rows.into_iter().map(|SqliteRow(row)| Value::Object(row)).collect())
}

fn open_sqlite(url: &str) -> SqliteConnection {
    let file = url.trim_start_matches("sqlite://");
    let mut connection = SqliteConnection::establish(file).expect("the file of the test opens");
    connection.batch_execute("PRAGMA busy_timeout = 10000").expect("SQLite knows this setting");
    connection
}

fn parse(json: &str) -> Value {
    serde_json::from_str(json).expect("PostgreSQL writes JSON")
}

/// A row of any query on PostgreSQL, which made it JSON itself.
#[derive(QueryableByName)]
struct PostgresRow {
    #[diesel(sql_type = Text)]
    json: String,
}

/// A row of any query on SQLite, whose values say of which kind they are.
struct SqliteRow(Map<String, Value>);

impl QueryableByName<Sqlite> for SqliteRow {
    fn build<'a>(row: &impl NamedRow<'a, Sqlite>) -> deserialize::Result<Self> {
        let mut members = Map::new();
        for index in 0..row.field_count() {
            let field = Row::get(row, index).ok_or("a column is missing")?;
            let name = field.field_name().ok_or("a column has no name")?.to_owned();
            members.insert(name, sqlite_value(&field)?);
        }
        Ok(Self(members))
    }
}

fn sqlite_value<'a>(field: &impl Field<'a, Sqlite>) -> deserialize::Result<Value> {
    let Some(value) = field.value() else {
        return Ok(Value::Null);
    };
    Ok(match value.value_type() {
        None => Value::Null,
        Some(SqliteType::Long | SqliteType::Integer | SqliteType::SmallInt) => {
            <i64 as FromSql<BigInt, Sqlite>>::from_sql(value)?.into()
        }
        Some(SqliteType::Double | SqliteType::Float) => <f64 as FromSql<Double, Sqlite>>::from_sql(value)?.into(),
        Some(SqliteType::Binary) => {
            let bytes = <Vec<u8> as FromSql<Binary, Sqlite>>::from_sql(value)?;
            format!("\\x{}", hex::encode(bytes)).into()
        }
        Some(_) => <String as FromSql<Text, Sqlite>>::from_sql(value)?.into(),
    })
}
