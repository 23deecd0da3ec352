//! What happens to an operation after its command has committed: the end that another command, the relay or the duty desk
//! gives it, and the way to a person and back. A final state never changes.

use diesel::prelude::*;

use super::Retention;
use crate::db::tables::operations;
use crate::db::{self, Db, Fault};
use crate::on_db;
use crate::problem::Code;

/// How an operation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// What the command wanted has happened.
    Succeeded,
    /// It has not, for this reason.
    Failed(Code),
}

/// Ends those of `operation_ids` that are not final. The windows of their keys begin now.
///
/// # Errors
/// A [`Fault`] of the update.
pub fn end(
    db: &mut Db,
    (tenant_id, operation_ids): (&str, &[String]),
    end: End,
    retention: Retention,
    now: db::Instant,
) -> Result<(), Fault> {
    let (status, error) = match end {
        End::Succeeded => ("succeeded", None),
        End::Failed(code) => ("failed", Some(code.entry().name)),
    };
    on_db!(db, conn => diesel::update(operations::table
        .filter(operations::tenant_id.eq(tenant_id))
        .filter(operations::operation_id.eq_any(operation_ids))
        .filter(operations::completed_at.is_null()))
        .set((
            operations::status.eq(status),
            operations::error.eq(error),
            operations::updated_at.eq(now),
            operations::completed_at.eq(now),
            operations::replay_until.eq(now + retention.replay_window),
            operations::remember_until.eq(now + retention.key_memory),
        ))
        .execute(conn))?;
    Ok(())
}

/// The states of an operation that is not final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// It goes on by itself.
    Processing,
    /// It needs a person.
    Unresolved,
}

/// Those of `operation_ids` that are not final.
///
/// # Errors
/// A [`Fault`] of the query.
pub fn open_among(db: &mut Db, tenant_id: &str, operation_ids: &[String]) -> Result<Vec<String>, Fault> {
    let open = on_db!(db, conn => operations::table
        .filter(operations::tenant_id.eq(tenant_id))
        .filter(operations::operation_id.eq_any(operation_ids))
        .filter(operations::completed_at.is_null())
        .select(operations::operation_id)
        .load(conn));
    Ok(open?)
}

/// Sets the state of those of `operation_ids` that are not final.
///
/// # Errors
/// A [`Fault`] of the update.
pub fn set_open(
    db: &mut Db,
    (tenant_id, operation_ids): (&str, &[String]),
    state: Open,
    now: db::Instant,
) -> Result<(), Fault> {
    let status = match state {
        Open::Processing => "processing",
        Open::Unresolved => "unresolved",
    };
    on_db!(db, conn => diesel::update(operations::table
        .filter(operations::tenant_id.eq(tenant_id))
        .filter(operations::operation_id.eq_any(operation_ids))
        .filter(operations::completed_at.is_null()))
        .set((operations::status.eq(status), operations::updated_at.eq(now)))
        .execute(conn))?;
    Ok(())
}
