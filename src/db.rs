//! The database: PostgreSQL or SQLite behind one type. What differs between the two ends here; everything above writes one
//! Diesel expression, and [`on_db!`](crate::on_db) types it for both.

use std::time::Duration;

use diesel::connection::{AnsiTransactionManager, SimpleConnection, TransactionManager, TransactionManagerStatus};
use diesel::pg::PgConnection;
use diesel::result::{DatabaseErrorKind, Error as DieselError};
use diesel::sqlite::SqliteConnection;
use diesel::{Connection, QueryResult};

mod clock;
mod migrate;
mod pool;
pub mod tables;

pub use clock::Clock;
pub use migrate::{MigrateError, migrate, migrations_pending, revert};
pub use pool::{OpenError, Pool, Pools, Usage};

/// An instant of the database's clock, in UTC.
pub type Instant = chrono::NaiveDateTime;

/// One connection to one of the two databases.
#[allow(missing_debug_implementations, reason = "connections of Diesel have no Debug")]
pub enum Db {
    /// A connection to a PostgreSQL server.
    Postgres(PgConnection),
    /// A connection to a SQLite file.
    Sqlite(SqliteConnection),
}

/// Runs one Diesel expression on whichever database `$db` is: written once, typed twice.
///
/// `on_db!(db, conn => orders::table.count().get_result::<i64>(conn))`
#[macro_export]
macro_rules! on_db {
    ($db:expr, $conn:ident => $body:expr) => {
        match $db {
            $crate::db::Db::Postgres($conn) => $body,
            $crate::db::Db::Sqlite($conn) => $body,
        }
    };
}

/// Runs a query that locks the rows it reads until the end of the transaction: on PostgreSQL as FOR NO KEY UPDATE, which
/// rivals wait for and foreign keys do not; on SQLite as it is, because there the whole database has one writer.
///
/// The rows are locked in the order of the query, so a query of several rows must have one: two rivals that lock the same
/// rows in different orders would wait for each other. What depends on the locked rows is read by the next statement;
/// this one saw the other tables before it began to wait.
///
/// `locked_on_db!(db, orders::table.find(id).select(orders::status), (conn, rows) => rows.first::<String>(conn))`
#[macro_export]
macro_rules! locked_on_db {
    ($db:expr, $query:expr, ($conn:ident, $rows:ident) => $body:expr) => {
        match $db {
            $crate::db::Db::Postgres($conn) => {
                let $rows = ::diesel::QueryDsl::for_no_key_update($query);
                $body
            }
            $crate::db::Db::Sqlite($conn) => {
                let $rows = $query;
                $body
            }
        }
    };
}

/// Loads the rows of one Diesel query and locks them until the transaction ends, without waiting for anybody: a row that a
/// rival has locked is left out. On SQLite the transaction has the whole file for itself already.
#[macro_export]
macro_rules! load_unlocked {
    ($db:expr, $query:expr) => {
        match $db {
            $crate::db::Db::Postgres(conn) => ::diesel::QueryDsl::for_update($query).skip_locked().load(conn),
            $crate::db::Db::Sqlite(conn) => $query.load(conn),
        }
    };
}

/// Why a piece of work on the database did not come to an end. Its transaction is rolled back, unless the variant says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// No turn came within the pool's patience. Nothing was sent to the database.
    #[error("no turn to use the database came in time")]
    Busy,
    /// No connection could be made within the pool's patience. Nothing was sent to the database.
    #[error("the database cannot be reached: {0}")]
    Unreachable(String),
    /// A rival held the claim of the same key for longer than the caller may wait.
    #[error("the key is at work elsewhere")]
    ClaimHeld,
    /// The database refused or failed: away, locked, full, read-only, out of time.
    #[error("the database failed: {0}")]
    Database(#[source] DieselError),
    /// The database asked for the whole transaction to be run again (SQLSTATE 40001).
    #[error("the transaction met a rival and has to run again: {0}")]
    Serialization(#[source] DieselError),
    /// The connection was lost at COMMIT: the transaction is whole or absent, and nobody here knows which.
    #[error("the outcome of COMMIT is not known: {0}")]
    CommitUnknown(#[source] DieselError),
    /// The program or the data contradicts itself, or the work panicked.
    #[error("{0}")]
    Bug(String),
}

impl From<DieselError> for Fault {
    fn from(error: DieselError) -> Fault {
        match error {
            DieselError::DatabaseError(DatabaseErrorKind::SerializationFailure, _) => Fault::Serialization(error),
            DieselError::DatabaseError(
                DatabaseErrorKind::ClosedConnection
                | DatabaseErrorKind::ReadOnlyTransaction
                | DatabaseErrorKind::Unknown,
                _,
            )
            | DieselError::BrokenTransactionManager
            | DieselError::RollbackErrorOnCommit { .. } => Fault::Database(error),
            // A constraint that the code should have looked after, a row that does not fit its type, a query that was
            // not built: none of these passes by waiting.
            other => Fault::Bug(other.to_string()),
        }
    }
}

impl Db {
    /// Runs `work` in one transaction that begins with a write: commits what it returns, rolls back when it fails.
    ///
    /// On PostgreSQL a statement that waits longer than `lock_wait` for a lock fails; the isolation is READ COMMITTED,
    /// where a new statement sees what a rival has committed meanwhile. On SQLite the write lock is taken at once.
    ///
    /// # Errors
    /// What `work` says, or a [`Fault`] of BEGIN or COMMIT.
    pub fn transaction<T>(
        &mut self,
        lock_wait: Duration,
        work: impl FnOnce(&mut Db) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.begin_writing(lock_wait)?;
        self.finish(work)
    }

    /// Runs `work` in a transaction as [`Db::transaction`] does, and rolls it back whatever it returns.
    ///
    /// # Errors
    /// What `work` says, or a [`Fault`] of BEGIN.
    pub fn rehearsal<T>(
        &mut self,
        lock_wait: Duration,
        work: impl FnOnce(&mut Db) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.begin_writing(lock_wait)?;
        let result = work(self);
        self.rollback();
        result
    }

    /// Changes how long the following statements of the transaction wait for a lock. A transaction begins with the patience
    /// for its key, which a client may choose to be nothing; rows that a command shares with others are no matter of that.
    ///
    /// # Errors
    /// A [`Fault`] of the statement.
    pub fn wait_for_locks(&mut self, lock_wait: Duration) -> Result<(), Fault> {
        match self {
            Db::Postgres(conn) => conn.batch_execute(&format!("SET LOCAL lock_timeout = {}", lock_wait.as_millis()))?,
            // The transaction holds the one write lock already.
            Db::Sqlite(_) => {}
        }
        Ok(())
    }

    /// Runs `work`, which only reads, on one unchanging view of the database.
    ///
    /// # Errors
    /// What `work` says, or a [`Fault`] of BEGIN or COMMIT.
    pub fn snapshot<T>(&mut self, work: impl FnOnce(&mut Db) -> Result<T, Fault>) -> Result<T, Fault> {
        match self {
            Db::Postgres(conn) => {
                AnsiTransactionManager::begin_transaction_sql(conn, "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            }
            Db::Sqlite(conn) => AnsiTransactionManager::begin_transaction_sql(conn, "BEGIN DEFERRED"),
        }?;
        self.finish(work)
    }

    fn finish<T>(&mut self, work: impl FnOnce(&mut Db) -> Result<T, Fault>) -> Result<T, Fault> {
        match work(self) {
            Ok(value) => {
                on_db!(self, conn => AnsiTransactionManager::commit_transaction(conn)).map_err(commit_fault)?;
                Ok(value)
            }
            Err(fault) => {
                self.rollback();
                Err(fault)
            }
        }
    }

    fn begin_writing(&mut self, lock_wait: Duration) -> Result<(), Fault> {
        match self {
            // One round trip. The limit is rounded up, so that it never ends before the caller's patience; zero would
            // mean "wait for ever".
            Db::Postgres(conn) => AnsiTransactionManager::begin_transaction_sql(
                conn,
                &format!(
                    "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = {}",
                    lock_wait.as_millis() + 1
                ),
            ),
            Db::Sqlite(conn) => AnsiTransactionManager::begin_transaction_sql(conn, "BEGIN IMMEDIATE"),
        }?;
        Ok(())
    }

    /// A rollback that fails leaves the connection inside a transaction; the pool drops such a one, and the database rolls
    /// back by itself. The fault that led here is the one to tell.
    fn rollback(&mut self) {
        if let Err(error) = on_db!(self, conn => AnsiTransactionManager::rollback_transaction(conn)) {
            log::warn!("ROLLBACK failed, the connection is dropped: {error}");
        }
    }

    /// The database's clock, in UTC.
    ///
    /// # Errors
    /// A [`Fault`] of the query.
    pub fn now(&mut self) -> Result<Instant, Fault> {
        use diesel::prelude::*;
        let now = on_db!(self, conn => diesel::select(Clock).get_result(conn));
        Ok(now?)
    }

    /// Whether a new piece of work may begin on this connection: it is open, and in no transaction.
    fn is_idle(&mut self) -> bool {
        on_db!(self, conn => matches!(
            AnsiTransactionManager::transaction_manager_status_mut(conn),
            TransactionManagerStatus::Valid(status) if status.transaction_depth().is_none()
        ))
    }

    /// The cheapest question that only a live connection answers.
    fn ping(&mut self) -> QueryResult<()> {
        on_db!(self, conn => conn.batch_execute("SELECT 1"))
    }

    /// Opens a connection and sets it up.
    fn connect(url: &crate::config::DatabaseUrl) -> Result<Db, diesel::ConnectionError> {
        use crate::config::DatabaseUrl;
        match url {
            DatabaseUrl::Postgres(url) => {
                let mut conn = PgConnection::establish(&with_limits(url))?;
                // A client that hangs inside a transaction gives its key back; a statement that runs away ends. Both in
                // far more time than any request needs, and a statement in more than the longest wait for a key (60 s).
                conn.batch_execute(
                    "SET idle_in_transaction_session_timeout = '30s'; SET statement_timeout = '90s'; \
                     SET client_min_messages = warning",
                )
                .map_err(diesel::ConnectionError::CouldntSetupConfiguration)?;
                Ok(Db::Postgres(conn))
            }
            DatabaseUrl::Sqlite(path) => {
                let path = path.to_str().ok_or_else(|| {
                    diesel::ConnectionError::InvalidConnectionUrl("the path is not valid UTF-8".to_owned())
                })?;
                let mut conn = SqliteConnection::establish(path)?;
                // FULL: what is acknowledged survives a power cut. The busy time-out is for the commands of the command
                // line that write beside a serving process.
                conn.batch_execute(
                    "PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
                     PRAGMA foreign_keys = ON",
                )
                .map_err(diesel::ConnectionError::CouldntSetupConfiguration)?;
                Ok(Db::Sqlite(conn))
            }
        }
    }
}

/// An error at COMMIT: either the database said no and rolled back, or the answer was lost.
fn commit_fault(error: DieselError) -> Fault {
    match Fault::from(error) {
        Fault::Database(error) => Fault::CommitUnknown(error),
        other => other,
    }
}

/// How libpq finds out that a server is gone which says nothing more: in about half a minute, instead of the system's hours.
const NETWORK_LIMITS: [(&str, &str); 5] = [
    ("connect_timeout", "5"),
    ("keepalives_idle", "10"),
    ("keepalives_interval", "5"),
    ("keepalives_count", "3"),
    ("tcp_user_timeout", "30000"),
];

/// The URL with the network limits that it does not set itself.
fn with_limits(url: &str) -> String {
    let mut url = url.to_owned();
    for (name, value) in NETWORK_LIMITS {
        if !url.contains(&format!("{name}=")) {
            url.push(if url.contains('?') { '&' } else { '?' });
            url.extend([name, "=", value]);
        }
    }
    url
}

/// An instant as the API writes it: RFC 3339 in UTC, with milliseconds.
#[must_use]
pub fn rfc3339(instant: Instant) -> String {
    instant.and_utc().to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// The instant in a text of RFC 3339 in UTC, such as [`in_utc`](crate::schema::in_utc) writes, to the millisecond: as
/// precise as [`rfc3339`] shows it, and as both databases keep it. `None` for any other text.
#[must_use]
pub fn from_rfc3339(text: &str) -> Option<Instant> {
    use chrono::SubsecRound;
    let instant = Instant::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.fZ").ok()?;
    Some(instant.trunc_subsecs(3))
}

#[cfg(test)]
mod tests {
    use super::with_limits;

    #[test]
    fn a_url_keeps_its_own_limits_and_gets_the_others() {
        let limits = "keepalives_idle=10&keepalives_interval=5&keepalives_count=3&tcp_user_timeout=30000";
        assert_eq!(with_limits("postgres://h/d"), format!("postgres://h/d?connect_timeout=5&{limits}"));
        assert_eq!(
            with_limits("postgres://h/d?connect_timeout=9"),
            format!("postgres://h/d?connect_timeout=9&{limits}")
        );
    }
}
