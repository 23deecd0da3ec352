//! Messages to the ERP, written in the transaction of the command that caused them. What is not committed is never sent.

use diesel::prelude::*;

use crate::db::tables::outbox;
use crate::db::{self, Db, Fault};
use crate::on_db;

/// A message that has to reach the ERP. Its payload is written once, so that every attempt sends the same bytes.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The tenant whose ERP it is for.
    pub tenant_id: &'a str,
    /// The operation that goes on with it. An operation has at most one message of a kind.
    pub operation_id: &'a str,
    /// What it tells: `order.created`.
    pub kind: &'a str,
    /// The order that it is about.
    pub order_id: &'a str,
    /// Its place among the messages of its order, which are delivered in this order: the version of the order that caused
    /// it, or the place of the hand-over that it stands in for.
    pub position: i64,
    /// The JSON text that is sent.
    pub payload: &'a str,
}

#[derive(Insertable)]
#[diesel(table_name = outbox)]
struct NewMessage<'a> {
    tenant_id: &'a str,
    message_id: &'a str,
    operation_id: &'a str,
    kind: &'a str,
    order_id: &'a str,
    position: i64,
    state: &'a str,
    payload: &'a str,
    created_at: db::Instant,
}

/// Appends a message, inside the caller's transaction.
///
/// # Errors
/// A [`Fault`] of the insert.
pub fn append(db: &mut Db, message: &Message<'_>, now: db::Instant) -> Result<(), Fault> {
    let message_id = format!("msg_{}", uuid::Uuid::now_v7().simple());
    let row = NewMessage {
        tenant_id: message.tenant_id,
        message_id: &message_id,
        operation_id: message.operation_id,
        kind: message.kind,
        order_id: message.order_id,
        position: message.position,
        state: "waiting",
        payload: message.payload,
        created_at: now,
    };
    on_db!(db, conn => diesel::insert_into(outbox::table).values(&row).execute(conn))?;
    Ok(())
}

/// The messages that hand an order over.
const HAND_OVERS: [&str; 2] = ["order.created", "order.replaced"];

/// A hand-over that was withdrawn before the ERP was asked.
#[derive(Clone, Debug, Queryable)]
pub struct Withdrawn {
    /// The operation that was on its way with it.
    pub operation_id: String,
    /// Its place among the messages of its order.
    pub position: i64,
}

/// Withdraws the hand-over of an order while it waits; `None` when the ERP was asked. Who changes this row first has decided
/// the race with a relay that wants to lease it. The order's row must be locked.
///
/// # Errors
/// A [`Fault`] of the query.
pub fn withdraw_hand_over(db: &mut Db, tenant_id: &str, order_id: &str) -> Result<Option<Withdrawn>, Fault> {
    let withdrawn = on_db!(db, conn => diesel::update(outbox::table
        .filter(outbox::tenant_id.eq(tenant_id))
        .filter(outbox::order_id.eq(order_id))
        .filter(outbox::state.eq("waiting"))
        .filter(outbox::kind.eq_any(HAND_OVERS)))
        .set(outbox::state.eq("withdrawn"))
        .returning((outbox::operation_id, outbox::position))
        .get_result(conn)
        .optional());
    Ok(withdrawn?)
}

/// Withdraws whatever else waits to be told of an order that the ERP will not get. Returns the operations of these messages.
/// The order's row must be locked.
///
/// # Errors
/// A [`Fault`] of the query.
pub fn withdraw_rest(db: &mut Db, tenant_id: &str, order_id: &str) -> Result<Vec<String>, Fault> {
    let operation_ids = on_db!(db, conn => diesel::update(outbox::table
        .filter(outbox::tenant_id.eq(tenant_id))
        .filter(outbox::order_id.eq(order_id))
        .filter(outbox::state.eq("waiting")))
        .set(outbox::state.eq("withdrawn"))
        .returning(outbox::operation_id)
        .get_results(conn));
    Ok(operation_ids?)
}

/// Removes the messages of operations that are forgotten, inside the caller's transaction. Such an operation is final, so
/// that none of its messages is on its way; and the same key may name the same operation anew.
///
/// # Errors
/// A [`Fault`] of the delete.
pub fn forget(db: &mut Db, tenant_id: &str, operation_ids: &[String]) -> Result<(), Fault> {
    on_db!(db, conn => diesel::delete(outbox::table
        .filter(outbox::tenant_id.eq(tenant_id))
        .filter(outbox::operation_id.eq_any(operation_ids)))
        .execute(conn))?;
    Ok(())
}
