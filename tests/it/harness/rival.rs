//! A transaction of somebody else, such as another process of the service: it holds what it holds until the test lets go.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::{Connection, PgConnection, SqliteConnection};
use order_service::command::claim::operation_id;

use super::database::{Database, Dialect};
use super::wait::eventually;
use super::world::{CLIENT, TENANT};

/// How long the service may take, on a busy machine, to get where it has to wait.
const LIMIT: Duration = Duration::from_secs(20);

/// An open transaction. It is rolled back with this value.
pub struct Rival(Box<dyn SimpleConnection>);

impl Rival {
    /// Begins a transaction and runs these statements in it. On SQLite it holds the write lock of the file from then on.
    pub fn begin(database: &Database, statements: &str) -> Self {
        let mut connection: Box<dyn SimpleConnection> = match database.dialect() {
            Dialect::Postgres => {
                Box::new(PgConnection::establish(database.url()).expect("the server takes connections"))
            }
            Dialect::Sqlite => {
                let file = database.url().trim_start_matches("sqlite://");
                Box::new(SqliteConnection::establish(file).expect("the file of the test opens"))
            }
        };
        let begin = match database.dialect() {
            Dialect::Postgres => "BEGIN",
            Dialect::Sqlite => "PRAGMA busy_timeout = 10000; BEGIN IMMEDIATE",
        };
        connection.batch_execute(begin).expect("a transaction begins");
        connection.batch_execute(statements).unwrap_or_else(|error| panic!("{statements}: {error}"));
        Self(connection)
    }

    /// Claims a key of the usual client, as another process does that has not yet committed.
    pub fn claims(database: &Database, command: &str, key: &str) -> Self {
        let operation_id = operation_id(TENANT, CLIENT, command, key);
        Self::begin(
            database,
            &format!(
                "INSERT INTO claims (tenant_id, client_id, command, idempotency_key, fingerprint, operation_id) \
                 VALUES ('{TENANT}', '{CLIENT}', '{command}', '{key}', 'v1:of-a-rival', '{operation_id}')"
            ),
        )
    }

    /// Executes a command of the usual client, as another process does that has not yet committed: the claim and the
    /// operation of `model`, an idempotency key of the same command, once more under the name `key`. PostgreSQL only.
    pub fn executes(database: &Database, command: &str, key: &str, model: &str) -> Self {
        let operation_id = operation_id(TENANT, CLIENT, command, key);
        let copy = |table: &str| {
            format!(
                "INSERT INTO {table} SELECT (jsonb_populate_record(model, \
                 '{{\"idempotency_key\": \"{key}\", \"operation_id\": \"{operation_id}\"}}')).* FROM {table} AS model \
                 WHERE tenant_id = '{TENANT}' AND client_id = '{CLIENT}' AND command = '{command}' \
                 AND idempotency_key = '{model}';"
            )
        };
        Self::begin(database, &(copy("claims") + &copy("operations")))
    }

    /// Ends the transaction; what it did stays.
    pub fn commit(mut self) {
        self.0.batch_execute("COMMIT").expect("the transaction commits");
    }

    /// Ends the transaction; what it did is undone.
    pub fn roll_back(mut self) {
        self.0.batch_execute("ROLLBACK").expect("the transaction ends");
    }
}

/// Waits until so many statements wait for a lock of this PostgreSQL database.
pub async fn until_waiting(database: &Database, statements: i64) {
    eventually(LIMIT, &format!("{statements} statements that wait for a lock"), async || {
        let waiting = "SELECT count(*) AS found FROM pg_stat_activity \
            WHERE datname = current_database() AND wait_event_type = 'Lock'";
        (database.rows(waiting)[0]["found"] == statements).then_some(())
    })
    .await;
}

/// Makes the commands of a SQLite file stop for ever when they write their message, inside the transaction that holds
/// their claim, and returns how to take that away again. Only the end of the process ends such a statement.
pub fn stop_at_the_outbox(database: &Database) -> &'static str {
    database.execute(
        "CREATE VIEW endless AS WITH RECURSIVE step (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM step) SELECT n FROM step; \
         CREATE TRIGGER stop_here BEFORE INSERT ON outbox BEGIN SELECT count(*) FROM endless; END",
    );
    "DROP TRIGGER stop_here; DROP VIEW endless"
}

/// Waits until somebody holds the write lock of a SQLite file.
pub async fn until_written(database: &Database) {
    let file = database.url().trim_start_matches("sqlite://");
    let mut connection = SqliteConnection::establish(file).expect("the file of the test opens");
    eventually(LIMIT, "somebody who writes to the file", async || {
        let free = connection.batch_execute("PRAGMA busy_timeout = 0; BEGIN IMMEDIATE; ROLLBACK").is_ok();
        (!free).then_some(())
    })
    .await;
}
