//! What happens to an operation after its command has committed: the end that another command or the relay gives it. A final
//! state never changes.

use diesel::prelude::*;

use super::Tx;
use crate::db::Fault;
use crate::db::tables::operations;
use crate::on_db;
use crate::problem::Code;

/// Ends those of `operation_ids` that are still on their way: their hand-over was withdrawn before the ERP was asked. The
/// windows of their keys begin now.
///
/// # Errors
/// A [`Fault`] of the update.
pub fn end_withdrawn(tx: &mut Tx<'_>, operation_ids: &[String]) -> Result<(), Fault> {
    let retention = tx.call.retention;
    on_db!(&mut *tx.db, conn => diesel::update(operations::table
        .filter(operations::tenant_id.eq(&tx.call.tenant_id))
        .filter(operations::operation_id.eq_any(operation_ids))
        .filter(operations::completed_at.is_null()))
        .set((
            operations::status.eq("failed"),
            operations::error.eq(Code::OrderWithdrawn.entry().name),
            operations::updated_at.eq(tx.now),
            operations::completed_at.eq(tx.now),
            operations::replay_until.eq(tx.now + retention.replay_window),
            operations::remember_until.eq(tx.now + retention.key_memory),
        ))
        .execute(conn))?;
    Ok(())
}
