//! The embedded migrations of both databases, up and down.

use diesel::Connection;
use diesel::connection::SimpleConnection;
use diesel::migration::{MigrationConnection, MigrationVersion};
use diesel::pg::PgConnection;
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};

use super::{Db, OpenError};
use crate::config::DatabaseUrl;

const POSTGRES: EmbeddedMigrations = embed_migrations!("migrations/postgres");
const SQLITE: EmbeddedMigrations = embed_migrations!("migrations/sqlite");

/// Why the schema could not be brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// The database cannot be reached.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A migration failed; the ones before it stay applied.
    #[error("migration failed: {0}")]
    Failed(String),
}

impl From<diesel::result::Error> for MigrateError {
    fn from(error: diesel::result::Error) -> MigrateError {
        MigrateError::Failed(error.to_string())
    }
}

/// Applies every migration that is not applied yet, and returns their names.
///
/// Safe to run from several processes at once: on PostgreSQL they take turns on a lock of the bookkeeping table, on SQLite
/// on the file's write lock.
///
/// # Errors
/// When the database cannot be reached or a migration fails.
pub fn migrate(url: &DatabaseUrl) -> Result<Vec<String>, MigrateError> {
    let mut db = Db::open(url)?;
    match &mut db {
        Db::Postgres(conn) => {
            make_bookkeeping_table(conn)?;
            conn.transaction::<_, MigrateError, _>(|conn| {
                conn.batch_execute("LOCK TABLE __diesel_schema_migrations IN SHARE ROW EXCLUSIVE MODE")?;
                names(conn.run_pending_migrations(POSTGRES))
            })
        }
        Db::Sqlite(conn) => {
            conn.immediate_transaction::<_, MigrateError, _>(|conn| names(conn.run_pending_migrations(SQLITE)))
        }
    }
}

/// Makes the table that remembers which migrations are applied. Two processes that start together on an empty PostgreSQL
/// may collide here in spite of IF NOT EXISTS; the loser finds the table at its next try.
fn make_bookkeeping_table(conn: &mut PgConnection) -> Result<(), MigrateError> {
    let mut result = conn.setup();
    for _ in 0..5 {
        if result.is_ok() {
            break;
        }
        result = conn.setup();
    }
    result.map(|_| ()).map_err(MigrateError::from)
}

/// The names of migrations, for people.
fn names(result: diesel::migration::Result<Vec<MigrationVersion<'_>>>) -> Result<Vec<String>, MigrateError> {
    match result {
        Ok(versions) => Ok(versions.iter().map(ToString::to_string).collect()),
        Err(error) => Err(MigrateError::Failed(error.to_string())),
    }
}

/// Undoes every migration, the newest first. For tests and for leaving: all data goes.
///
/// # Errors
/// When the database cannot be reached or a migration fails.
pub fn revert(url: &DatabaseUrl) -> Result<Vec<String>, MigrateError> {
    let mut db = Db::open(url)?;
    match &mut db {
        Db::Postgres(conn) => names(conn.revert_all_migrations(POSTGRES)),
        Db::Sqlite(conn) => names(conn.revert_all_migrations(SQLITE)),
    }
}

/// Whether this program knows migrations that the database has not seen.
///
/// # Errors
/// When the bookkeeping table cannot be read.
pub fn migrations_pending(db: &mut Db) -> Result<bool, MigrateError> {
    match db {
        Db::Postgres(conn) => conn.has_pending_migration(POSTGRES),
        Db::Sqlite(conn) => conn.has_pending_migration(SQLITE),
    }
    .map_err(|error| MigrateError::Failed(error.to_string()))
}
