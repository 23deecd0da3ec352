//! The claim, broken on purpose: what the tests have to notice. Compiled with the feature `deliberate-breaks` alone, so
//! that no program for use has a word of it.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;

use super::{Call, Claim, find, insert};
use crate::config::deliberate_break::{DeliberateBreak, chosen};
use crate::db::tables::claims;
use crate::db::{Db, Fault};
use crate::on_db;

/// Wins the key in a wrong way, where one is chosen. `None`: the right way is to be gone.
pub(super) fn take(db: &mut Db, call: &Call) -> Result<Option<Claim>, Fault> {
    match chosen() {
        Some(DeliberateBreak::SelectThenInsert) => select_then_insert(db, call).map(Some),
        Some(DeliberateBreak::ScopeWithoutTenant) => of_any_tenant(db, call),
        Some(DeliberateBreak::CommitBeforeReply) | None => Ok(None),
    }
}

/// Commits what the command has done so far, where that is chosen; the reply is saved in a transaction of its own.
pub(super) fn before_the_reply(db: &mut Db) -> Result<(), Fault> {
    if chosen() != Some(DeliberateBreak::CommitBeforeReply) {
        return Ok(());
    }
    match db {
        Db::Postgres(conn) => conn.batch_execute("COMMIT; BEGIN")?,
        Db::Sqlite(conn) => conn.batch_execute("COMMIT; BEGIN IMMEDIATE")?,
    }
    Ok(())
}

fn select_then_insert(db: &mut Db, call: &Call) -> Result<Claim, Fault> {
    if let Some(past) = find(db, &call.tenant_id, call)? {
        return Ok(Claim::Taken(Box::new(past)));
    }
    // Whether the row went in is not asked.
    let now = match insert(db, call)? {
        Some(now) => now,
        None => db.now()?,
    };
    Ok(Claim::Mine { now })
}

fn of_any_tenant(db: &mut Db, call: &Call) -> Result<Option<Claim>, Fault> {
    let tenant_id: Option<String> = on_db!(&mut *db, conn => claims::table
        .filter(claims::client_id.eq(&call.client_id))
        .filter(claims::command.eq(call.command))
        .filter(claims::idempotency_key.eq(call.key.as_str()))
        .order(claims::created_at)
        .select(claims::tenant_id)
        .first(conn)
        .optional())?;
    let Some(tenant_id) = tenant_id else { return Ok(None) };
    Ok(find(db, &tenant_id, call)?.map(|past| Claim::Taken(Box::new(past))))
}
