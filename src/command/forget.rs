//! The end of a key. Its claim, its operation and the operation's messages go together, and only when their time is over.
//! Whoever needs the key does it, whether or not the cleaner has been; the cleaner does it for keys that nobody needs.

use diesel::dsl::exists;
use diesel::prelude::*;

use crate::db::tables::{claims, operations};
use crate::db::{self, Db, Fault};
use crate::on_db;
use crate::outbox;

/// Forgets those of `keys`, all of one client and one command, whose key memory is over at `now`. Returns how many.
///
/// The claim goes first, in one statement with the look at its time: a rival may have forgotten the key and won it anew a
/// moment ago, and then this does nothing. What follows goes only with a claim that was ours to remove.
///
/// # Errors
/// A [`Fault`] of the statements; the caller's transaction is to be rolled back.
pub fn forget(
    db: &mut Db,
    (tenant_id, client_id, command): (&str, &str, &str),
    keys: &[&str],
    now: db::Instant,
) -> Result<usize, Fault> {
    let time_is_over = operations::table
        .filter(operations::tenant_id.eq(claims::tenant_id))
        .filter(operations::operation_id.eq(claims::operation_id))
        .filter(operations::remember_until.le(now));
    let forgotten = claims::table
        .filter(claims::tenant_id.eq(tenant_id))
        .filter(claims::client_id.eq(client_id))
        .filter(claims::command.eq(command))
        .filter(claims::idempotency_key.eq_any(keys))
        .filter(exists(time_is_over));
    let operation_ids: Vec<String> = on_db!(&mut *db, conn => diesel::delete(forgotten)
        .returning(claims::operation_id)
        .get_results(conn))?;
    if operation_ids.is_empty() {
        return Ok(0);
    }
    // Messages before operations, the order in which a cancel locks them.
    outbox::forget(db, tenant_id, &operation_ids)?;
    on_db!(db, conn => diesel::delete(operations::table
        .filter(operations::tenant_id.eq(tenant_id))
        .filter(operations::operation_id.eq_any(&operation_ids)))
        .execute(conn))?;
    Ok(operation_ids.len())
}
