//! What becomes of a key in time: replayed, spent, forgotten; and the cleaner, which must not change any of it.
//!
//! No test waits for a window to end. The rows are made older, by SQL, on the database's own clock.

use chrono::DateTime;
use order_service::db::Db;
use order_service::retention::{Batch, Sweep};
use serde_json::{Value, json};

use crate::harness::database::{Database, Dialect};
use crate::harness::http::Answer;
use crate::harness::settings::config;

mod answers;
mod cleaner;
mod document;
mod forgotten;
mod headers;
mod plans;
mod stuck;

/// A day, in seconds.
pub const DAY: i64 = 86_400;
/// Past the default replay window of 7 days, within the key memory of 400.
pub const SPENT: i64 = 8 * DAY;
/// Past the default key memory.
pub const FORGOTTEN: i64 = 401 * DAY;

/// An order with a shop's own id, or with the key alone to guard it.
pub fn order(external_order_id: Option<&str>) -> Value {
    json!({"customerId": "cus_123", "items": [{"sku": "ABC", "qty": 2}], "currency": "EUR",
        "channel": "web", "externalOrderId": external_order_id})
}

/// Makes every claim and operation of the database older, as if it had been made `seconds` earlier.
pub fn age(database: &Database, seconds: i64) {
    age_where(database, seconds, "1 = 1");
}

/// As [`age`], for the keys that a condition on `idempotency_key` picks.
pub fn age_where(database: &Database, seconds: i64, condition: &str) {
    let older = |column: &str| match database.dialect() {
        Dialect::Postgres => format!("{column} = {column} - interval '{seconds} seconds'"),
        Dialect::Sqlite => format!("{column} = strftime('%Y-%m-%d %H:%M:%f', {column}, '-{seconds} seconds')"),
    };
    let times = ["created_at", "updated_at", "completed_at", "replay_until", "remember_until"].map(older).join(", ");
    database.execute(&format!(
        "UPDATE operations SET {times} WHERE {condition}; UPDATE claims SET {} WHERE {condition}",
        older("created_at")
    ));
}

/// The database's clock and `seconds`, as an expression of its SQL.
pub fn clock_plus(database: &Database, seconds: i64) -> String {
    match database.dialect() {
        Dialect::Postgres => format!("(CURRENT_TIMESTAMP AT TIME ZONE 'UTC' + interval '{seconds} seconds')"),
        Dialect::Sqlite => format!("strftime('%Y-%m-%d %H:%M:%f', 'now', '{seconds} seconds')"),
    }
}

/// Adds `count` finished commands of the tenant `acme` whose windows end `replay` and `remember` seconds from now; their
/// keys are `<prefix>-1`, `<prefix>-2` and so on.
pub fn seed(database: &Database, prefix: &str, count: u32, replay: i64, remember: i64) {
    let (replay, remember) = (clock_plus(database, replay), clock_plus(database, remember));
    let now = clock_plus(database, 0);
    let numbers = format!(
        "WITH RECURSIVE numbers (number) AS \
         (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < {count})"
    );
    database.execute(&format!(
        "{numbers} INSERT INTO claims \
         (tenant_id, client_id, command, idempotency_key, fingerprint, operation_id, created_at) \
         SELECT 'acme', 'shop', 'orders.create', '{prefix}-' || number, 'v1:00', 'op_{prefix}_' || number, {now} \
         FROM numbers; \
         {numbers} INSERT INTO operations \
         (tenant_id, operation_id, client_id, command, idempotency_key, status, reply_status, reply_content_type, \
         reply_body, member_digests, trace_id, created_at, updated_at, completed_at, replay_until, remember_until) \
         SELECT 'acme', 'op_{prefix}_' || number, 'shop', 'orders.create', '{prefix}-' || number, 'succeeded', 201, \
         'application/json', '{{}}', '{{}}', '00', {now}, {now}, {now}, {replay}, {remember} FROM numbers"
    ));
}

/// A connection such as the cleaner has.
pub fn connect(database: &Database) -> Db {
    Db::open(&config(database.url(), &[]).database).expect("the database of the test takes connections")
}

/// Sweeps once with batches of this size, and returns the batches that did something.
pub fn sweep(database: &Database, limit: u32) -> Vec<Batch> {
    let mut db = connect(database);
    let mut sweep = Sweep::begin(&mut db, limit).expect("the database answers");
    let batches = std::iter::from_fn(|| sweep.clean_batch(&mut db).expect("the batch is done"));
    batches.filter(|batch| batch.rows > 0).collect()
}

/// Every claim has its operation, and every operation its claim.
#[track_caller]
pub fn assert_whole(database: &Database) {
    let halves = database.rows(
        "SELECT claims.idempotency_key AS claim, operations.idempotency_key AS operation FROM claims \
         FULL JOIN operations ON operations.tenant_id = claims.tenant_id \
         AND operations.operation_id = claims.operation_id \
         WHERE claims.operation_id IS NULL OR operations.operation_id IS NULL",
    );
    assert_eq!(halves, [] as [Value; 0]);
}

/// The answer is that of the first request again: its status, its bytes and its headers.
#[track_caller]
pub fn assert_replayed(replay: &Answer, first: &Answer) {
    assert_eq!((replay.status, replay.text()), (first.status, first.text()));
    for name in ["content-type", "location", "idempotency-key"] {
        assert_eq!(replay.header(name), first.header(name), "{name}");
    }
    assert_eq!(
        (first.header("idempotent-replayed"), replay.header("idempotent-replayed")),
        (Some("false"), Some("true"))
    );
}

/// All that a client can tell an answer by, but for what is never the same: `Date` and the trace id.
pub fn shown(answer: &Answer) -> (u16, Vec<(String, String)>, Value) {
    let mut headers: Vec<(String, String)> = answer
        .headers
        .iter()
        .filter(|(name, _)| !["date", "x-trace-id"].contains(&name.as_str()))
        .map(|(name, value)| (name.to_string(), value.to_str().expect("our headers are ASCII").to_owned()))
        .collect();
    headers.sort_unstable();
    let mut body = answer.json();
    if answer.status.as_u16() >= 400 && answer.header("idempotent-replayed") != Some("true") {
        body["traceId"] = Value::Null;
    }
    (answer.status.as_u16(), headers, body)
}

/// Seconds since 1970 of a column of the operation of a key, rounded down.
pub fn epoch(database: &Database, column: &str, key: &str) -> i64 {
    let seconds = match database.dialect() {
        Dialect::Postgres => format!("floor(extract(epoch FROM {column}))::bigint"),
        Dialect::Sqlite => format!("CAST(strftime('%s', {column}) AS INTEGER)"),
    };
    let rows = database.rows(&format!("SELECT {seconds} AS seconds FROM operations WHERE idempotency_key = '{key}'"));
    rows[0]["seconds"].as_i64().expect("the operation has this time")
}

/// The database's clock in seconds since 1970, rounded down.
pub fn now(database: &Database) -> i64 {
    let query = match database.dialect() {
        Dialect::Postgres => "SELECT floor(extract(epoch FROM CURRENT_TIMESTAMP))::bigint AS seconds",
        Dialect::Sqlite => "SELECT CAST(strftime('%s', 'now') AS INTEGER) AS seconds",
    };
    database.rows(query)[0]["seconds"].as_i64().expect("a clock tells the time")
}

/// Seconds since 1970 of `Idempotency-Expires`.
#[track_caller]
pub fn expires(answer: &Answer) -> i64 {
    let text = answer.header("idempotency-expires").expect("the answer says how long the key is good");
    DateTime::parse_from_rfc2822(text).expect("it is an HTTP date").timestamp()
}
