//! Cursor pages, newest first: the query parameters of a list, and the cursor that marks where the next page begins.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, web};
use chrono::{DateTime, Datelike};

use super::document::schemas::{text, whole_number};
use super::read::QueryParameter;
use crate::db;
use crate::problem::{Code, Problem};
use crate::schema::Fault;

/// Entries on a page when the client does not say.
const DEFAULT_LIMIT: i64 = 20;

/// The most entries on a page.
const MAX_LIMIT: i64 = 100;

/// How many entries a page may have.
pub const LIMIT: QueryParameter = QueryParameter {
    name: "limit",
    doc: "How many entries the page may have: 1 to 100.",
    schema: || {
        let default = serde_json::Value::from(DEFAULT_LIMIT);
        whole_number("Entries.").minimum(Some(1)).maximum(Some(MAX_LIMIT)).default(Some(default)).into()
    },
};

/// Where a page begins.
pub const CURSOR: QueryParameter = QueryParameter {
    name: "cursor",
    doc: "The `nextCursor` of the page before, unchanged; without it the first page.",
    schema: || text("Opaque.").into(),
};

/// The most faults of a query that are told: a long bad query gets a short answer.
const MAX_FAULTS: usize = 20;

/// The query of a list, with what is wrong in it.
#[derive(Debug)]
pub struct Query {
    values: BTreeMap<String, String>,
    faults: Vec<Fault>,
}

/// Where the next page begins: behind the entry that was created at this moment and has this id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// When the last entry of the page before was created.
    pub created_at: db::Instant,
    /// Its id.
    pub id: String,
}

impl Query {
    /// Reads the query of `request`, which may hold the parameters in `known`, each once.
    #[must_use]
    pub fn read(request: &HttpRequest, known: &[QueryParameter]) -> Query {
        let mut query = Query { values: BTreeMap::new(), faults: Vec::new() };
        let Ok(pairs) = web::Query::<Vec<(String, String)>>::from_query(request.query_string()) else {
            query.fault("", "Malformed", "The query is not a list of name=value.");
            return query;
        };
        let names: Vec<&str> = known.iter().map(|parameter| parameter.name).collect();
        for (name, value) in pairs.into_inner() {
            if !names.contains(&name.as_str()) {
                query.fault("", "UnknownParameter", &format!("The parameters are {}.", names.join(", ")));
            } else if value.contains('\0') {
                // No text of the database can hold it; PostgreSQL refuses the whole query, as if it were broken.
                query.fault(&name, "ZeroCharacter", "The character U+0000 cannot be in a value.");
            } else if query.values.insert(name.clone(), value).is_some() {
                query.fault(&name, "Repeated", "Send the parameter once.");
            }
        }
        query
    }

    /// The text of a parameter.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        self.values.get(name).cloned()
    }

    /// A parameter that is one of a few words.
    pub fn one_of(&mut self, name: &str, words: &[&str]) -> Option<String> {
        let value = self.text(name)?;
        if words.contains(&value.as_str()) {
            return Some(value);
        }
        self.fault(name, "NotOneOf", &format!("Use one of {}.", words.join(", ")));
        None
    }

    /// A parameter that is an RFC 3339 instant with offset.
    pub fn instant(&mut self, name: &str) -> Option<db::Instant> {
        // A plus sign that was not escaped arrives as a blank.
        let value = self.text(name)?.replace(' ', "+");
        let instant = DateTime::parse_from_rfc3339(&value).ok();
        if instant.is_none() {
            self.fault(name, "NotAnInstant", "Use RFC 3339 with an offset, such as 2026-03-02T08:15:31Z.");
        }
        instant.map(|instant| instant.naive_utc())
    }

    /// How many entries the page may have.
    pub fn limit(&mut self) -> i64 {
        let Some(value) = self.text("limit") else { return DEFAULT_LIMIT };
        match value.parse() {
            Ok(limit) if (1..=MAX_LIMIT).contains(&limit) => limit,
            _ => {
                self.fault("limit", "OutOfRange", &format!("Use a whole number from 1 to {MAX_LIMIT}."));
                DEFAULT_LIMIT
            }
        }
    }

    /// Where the page begins.
    pub fn cursor(&mut self) -> Option<Cursor> {
        let cursor = Cursor::decode(&self.text("cursor")?);
        if cursor.is_none() {
            self.fault("cursor", "NotACursor", "Use the nextCursor of the page before, unchanged.");
        }
        cursor
    }

    /// All is read: refuses the request when anything was wrong.
    ///
    /// # Errors
    /// 400 `InvalidParameter` with every fault.
    pub fn finish(self) -> Result<(), Problem> {
        if self.faults.is_empty() {
            return Ok(());
        }
        let detail = "The query has faults; 'details' names each parameter.";
        Err(Problem { details: self.faults, ..Problem::new(Code::InvalidParameter, detail) })
    }

    /// Notes what is wrong with a parameter; with no name, with the query as a whole.
    pub fn fault(&mut self, name: &str, code: &'static str, message: &str) {
        if self.faults.len() == MAX_FAULTS {
            return;
        }
        let pointer = if name.is_empty() { String::new() } else { format!("/{name}") };
        self.faults.push(Fault { pointer, code, message: message.to_owned() });
    }
}

impl Cursor {
    /// The cursor as clients see it: opaque, and safe in a URL.
    #[must_use]
    pub fn encode(&self) -> String {
        hex::encode(format!("{} {}", self.created_at.and_utc().timestamp_micros(), self.id))
    }

    /// Only what [`Cursor::encode`] can have made: a time that a database holds, and an id without odd characters.
    fn decode(text: &str) -> Option<Cursor> {
        let text = String::from_utf8(hex::decode(text).ok()?).ok()?;
        let (micros, id) = text.split_once(' ')?;
        let created_at = DateTime::from_timestamp_micros(micros.parse().ok()?)?.naive_utc();
        let is_ours = (1970..=9999).contains(&created_at.year()) && id.bytes().all(|byte| byte.is_ascii_graphic());
        is_ours.then(|| Cursor { created_at, id: id.to_owned() })
    }
}

/// Cuts a list that was read with one entry too many to `limit`, and tells the cursor of the next page.
pub fn cut<T>(entries: &mut Vec<T>, limit: i64, cursor: impl Fn(&T) -> Cursor) -> Option<String> {
    let limit = usize::try_from(limit).unwrap_or_default();
    if entries.len() <= limit {
        return None;
    }
    entries.truncate(limit);
    entries.last().map(|last| cursor(last).encode())
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn faults(query: &str) -> Vec<(String, &'static str)> {
        let request = TestRequest::with_uri(&format!("/v1/orders?{query}")).to_http_request();
        let mut query = Query::read(&request, &[LIMIT, CURSOR]);
        query.limit();
        query.cursor();
        let details = query.finish().err().map(|problem| problem.details).unwrap_or_default();
        details.into_iter().map(|fault| (fault.pointer, fault.code)).collect()
    }

    #[test]
    fn a_cursor_comes_back_as_it_went() {
        let cursor = Cursor {
            created_at: DateTime::from_timestamp_micros(1_700_000_000_123_456).unwrap().naive_utc(),
            id: "ord_1".to_owned(),
        };
        assert_eq!(Cursor::decode(&cursor.encode()), Some(cursor));
    }

    #[test]
    fn a_cursor_that_no_page_ever_held_is_refused() {
        for text in
            ["1700000000000000 a\0b", "-220000000000000000 x", "9223372036854775807 x", "x y", "1700000000000000", ""]
        {
            assert_eq!(Cursor::decode(&hex::encode(text)), None, "{text:?}");
        }
        assert_eq!(Cursor::decode("zz"), None);
    }

    #[test]
    fn what_a_database_cannot_hold_is_a_fault_of_the_query() {
        assert_eq!(faults("limit=%00"), [("/limit".to_owned(), "ZeroCharacter")]);
        assert_eq!(faults("limit=5&limit=6"), [("/limit".to_owned(), "Repeated")]);
        assert_eq!(faults("limit=5"), []);
    }

    #[test]
    fn a_long_bad_query_gets_a_short_answer() {
        assert_eq!(faults(&"a&".repeat(20_000)).len(), MAX_FAULTS);
    }
}
