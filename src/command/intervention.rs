//! What the two commands of the duty desk share: they find and lock an unresolved operation, decide about its message, and
//! write down who decided what, when and why. What is decided without a command is written down here too.

use diesel::prelude::*;

use super::reply::operation_path;
use super::{Done, Stop, Tx, order_rows};
use crate::db::tables::{interventions, operations};
use crate::db::{self, Db, Fault};
use crate::on_db;
use crate::outbox::settle::{self, Decision, Parked};
use crate::problem::{Code, Links, Problem};

/// The path parameter that names the target.
pub(super) const OPERATION_ID: &str = "operationId";

/// The member of the answer that names the target; `operationId` is the decision's own operation.
pub(super) const TARGET_MEMBER: &str = "targetOperationId";

/// An unresolved operation whose order is locked.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) operation_id: String,
    pub(super) order_id: String,
}

/// Finds the unresolved operation of this id, and locks its order as everybody does who changes it.
pub(super) fn lock_unresolved(tx: &mut Tx<'_>, operation_id: &str) -> Result<Target, Stop> {
    let not_found = || Problem::new(Code::OperationNotFound, "There is no operation with this id.");
    let (_, order_id) = read(tx, operation_id)?.ok_or_else(not_found)?;
    if let Some(order_id) = &order_id {
        order_rows::lock(tx, order_id)?;
    }
    // Only behind the lock the state stands still.
    let (status, _) = read(tx, operation_id)?.ok_or_else(not_found)?;
    match (status.as_str(), order_id) {
        ("unresolved", Some(order_id)) => Ok(Target { operation_id: operation_id.to_owned(), order_id }),
        (status, _) => {
            let detail = format!("The operation is {status}.");
            let links = Links::default().with("target", operation_path(operation_id));
            Err(Problem { links, ..Problem::new(Code::OperationNotUnresolved, detail) }.into())
        }
    }
}

fn read(tx: &mut Tx<'_>, operation_id: &str) -> Result<Option<(String, Option<String>)>, Fault> {
    let found = on_db!(&mut *tx.db, conn => operations::table
        .find((&tx.call.tenant_id, operation_id))
        .select((operations::status, operations::order_id))
        .first(conn)
        .optional());
    Ok(found?)
}

/// Decides about the target's message.
pub(super) fn decide(tx: &mut Tx<'_>, target: &Target, decision: Decision) -> Result<Parked, Fault> {
    let key = (tx.call.tenant_id.as_str(), target.operation_id.as_str());
    let parked = settle::decide(tx.db, key, decision, tx.now)?;
    parked.ok_or_else(|| Fault::Bug(format!("the unresolved operation {} has no parked message", target.operation_id)))
}

/// A decision, for those who ask later.
pub(super) struct Intervention<'a> {
    pub(super) decision: &'static str,
    pub(super) erp_reference: Option<&'a str>,
    pub(super) reason: Option<&'a str>,
}

/// Writes down who decided what about the target, when and why.
pub(super) fn write_down(tx: &mut Tx<'_>, target: &str, intervention: &Intervention<'_>) -> Result<(), Fault> {
    let entry = Entry {
        tenant_id: &tx.call.tenant_id,
        decision_id: &tx.call.operation_id,
        target,
        who: &tx.call.client_id,
        trace_id: &tx.call.trace_id,
        now: tx.now,
    };
    enter(tx.db, &entry, intervention)
}

/// Who decides about which operation, and when.
pub(super) struct Entry<'a> {
    pub(super) tenant_id: &'a str,
    /// The operation of the decision, or another name that no decision had before.
    pub(super) decision_id: &'a str,
    /// The operation that is decided about.
    pub(super) target: &'a str,
    /// The client, or the part of this program.
    pub(super) who: &'a str,
    pub(super) trace_id: &'a str,
    pub(super) now: db::Instant,
}

/// As [`write_down`], for a decision that is no command.
pub(super) fn enter(db: &mut Db, entry: &Entry<'_>, intervention: &Intervention<'_>) -> Result<(), Fault> {
    let row = (
        interventions::tenant_id.eq(entry.tenant_id),
        interventions::operation_id.eq(entry.decision_id),
        interventions::target_operation_id.eq(entry.target),
        interventions::client_id.eq(entry.who),
        interventions::decision.eq(intervention.decision),
        interventions::erp_reference.eq(intervention.erp_reference),
        interventions::reason.eq(intervention.reason),
        interventions::trace_id.eq(entry.trace_id),
        interventions::created_at.eq(entry.now),
    );
    on_db!(db, conn => diesel::insert_into(interventions::table).values(row).execute(conn))?;
    Ok(())
}

/// The answer: the target and how it stands now.
pub(super) fn done(target: Target, state: &'static str) -> Done {
    Done {
        status: 200,
        state,
        id_member: TARGET_MEMBER,
        path: operation_path(&target.operation_id),
        id: target.operation_id,
        order_id: Some(target.order_id),
        goes_on: false,
    }
}
