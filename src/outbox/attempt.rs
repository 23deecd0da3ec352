//! The attempts to deliver a message, a row each: for the client that waits and for the duty desk.

use diesel::prelude::*;

use super::Outcome;
use crate::db::tables::attempts;
use crate::db::{self, Db, Fault};
use crate::on_db;

/// The most characters of an ERP's own words that are kept.
pub const MAX_DETAIL: usize = 500;

/// One attempt as it stands.
#[derive(Clone, Debug, Queryable, Selectable)]
#[diesel(table_name = attempts)]
pub struct Attempt {
    /// The message.
    pub message_id: String,
    /// Counts from 1.
    pub number: i32,
    /// When it began.
    pub started_at: db::Instant,
    /// When it ended; `None` while it runs.
    pub ended_at: Option<db::Instant>,
    /// [`Outcome::as_str`]; `None` while it runs.
    pub outcome: Option<String>,
    /// A short sentence for people.
    pub detail: Option<String>,
}

/// Writes down that an attempt begins.
///
/// # Errors
/// A [`Fault`] of the insert.
pub(super) fn begin(
    db: &mut Db,
    (tenant_id, message_id, number): (&str, &str, i32),
    trace_id: &str,
    now: db::Instant,
) -> Result<(), Fault> {
    let row = (
        attempts::tenant_id.eq(tenant_id),
        attempts::message_id.eq(message_id),
        attempts::number.eq(number),
        attempts::started_at.eq(now),
        attempts::trace_id.eq(trace_id),
    );
    on_db!(db, conn => diesel::insert_into(attempts::table).values(row).execute(conn))?;
    Ok(())
}

/// Writes down how an attempt ended.
///
/// # Errors
/// A [`Fault`] of the update.
pub(super) fn end(
    db: &mut Db,
    key: (&str, &str, i32),
    outcome: Outcome,
    detail: &str,
    now: db::Instant,
) -> Result<(), Fault> {
    let detail: String = detail.chars().filter(|character| *character != '\0').take(MAX_DETAIL).collect();
    on_db!(db, conn => diesel::update(attempts::table.find(key))
        .set((
            attempts::ended_at.eq(now),
            attempts::outcome.eq(outcome.as_str()),
            attempts::detail.eq(&detail),
        ))
        .execute(conn))?;
    Ok(())
}

/// The attempts of these messages, the first first.
///
/// # Errors
/// A [`Fault`] of the query.
pub fn of_messages(db: &mut Db, tenant_id: &str, message_ids: &[String]) -> Result<Vec<Attempt>, Fault> {
    let rows = on_db!(db, conn => attempts::table
        .filter(attempts::tenant_id.eq(tenant_id))
        .filter(attempts::message_id.eq_any(message_ids))
        .order((attempts::message_id, attempts::number))
        .select(Attempt::as_select())
        .load(conn));
    Ok(rows?)
}
