//! Messages to the ERP and to customers, written in the transaction of the command that caused them: what is not committed
//! is never sent. A relay leases what is due ([`lease`]), delivers it, and settles it ([`settle`]); both go by the state of
//! a row and by the database's clock, never by "the last id seen". Each message leaves by one [`Channel`]; what is decided
//! about an order's messages to the ERP never touches its mails.

use diesel::prelude::*;

use crate::db::tables::outbox;
use crate::db::{self, Db, Fault};
use crate::on_db;

pub mod attempt;
pub mod connection;
pub mod lease;
pub mod outcome;
pub mod settle;
pub mod state;

pub use outcome::Outcome;
pub use state::{Channel, Kind, State};

/// A message on its way out. Its payload is written once, so that every attempt sends the same bytes.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The tenant whose message it is.
    pub tenant_id: &'a str,
    /// The operation that goes on with it. An operation has at most one message of a kind.
    pub operation_id: &'a str,
    /// What it tells.
    pub kind: Kind,
    /// The order that it is about.
    pub order_id: &'a str,
    /// Its place among the messages of its order and channel, which are delivered in this order: the version of the order
    /// that caused it, or the place of the hand-over that it stands in for.
    pub position: i64,
    /// The JSON text that is sent.
    pub payload: &'a str,
    /// The W3C trace that the delivery belongs to.
    pub trace_id: &'a str,
}

#[derive(Insertable)]
#[diesel(table_name = outbox)]
struct NewMessage<'a> {
    tenant_id: &'a str,
    message_id: &'a str,
    operation_id: &'a str,
    channel: &'a str,
    kind: &'a str,
    order_id: &'a str,
    position: i64,
    state: &'a str,
    payload: &'a str,
    created_at: db::Instant,
    next_attempt_at: db::Instant,
    trace_id: &'a str,
}

/// Appends a message, inside the caller's transaction, and returns its id. It is due at once.
///
/// # Errors
/// A [`Fault`] of the insert.
pub fn append(db: &mut Db, message: &Message<'_>, now: db::Instant) -> Result<String, Fault> {
    let message_id = format!("msg_{}", uuid::Uuid::now_v7().simple());
    let row = NewMessage {
        tenant_id: message.tenant_id,
        message_id: &message_id,
        operation_id: message.operation_id,
        channel: message.kind.channel().as_str(),
        kind: message.kind.as_str(),
        order_id: message.order_id,
        position: message.position,
        state: State::Waiting.as_str(),
        payload: message.payload,
        created_at: now,
        next_attempt_at: now,
        trace_id: message.trace_id,
    };
    on_db!(db, conn => diesel::insert_into(outbox::table).values(&row).execute(conn))?;
    Ok(message_id)
}

/// Withdraws the hand-over of an order that the ERP surely does not have. Returns the operation that it belonged to; `None`
/// when there is no such hand-over, or the ERP may have it. The order's row must be locked.
///
/// # Errors
/// A [`Fault`] of the query.
pub fn withdraw_hand_over(db: &mut Db, tenant_id: &str, order_id: &str) -> Result<Option<String>, Fault> {
    let open = [State::Waiting, State::Parked].map(State::as_str);
    let hand_overs = Kind::HAND_OVERS.map(Kind::as_str);
    // Who changes this row first has decided the race with a relay that wants to lease it.
    let operation_ids: Vec<String> = on_db!(db, conn => diesel::update(outbox::table
        .filter(outbox::tenant_id.eq(tenant_id))
        .filter(outbox::order_id.eq(order_id))
        .filter(outbox::state.eq_any(open))
        .filter(outbox::unknown_since.is_null())
        .filter(outbox::kind.eq_any(hand_overs)))
        .set(outbox::state.eq(State::Withdrawn.as_str()))
        .returning(outbox::operation_id)
        .get_results(conn))?;
    Ok(operation_ids.into_iter().next())
}

/// Withdraws whatever else the ERP is still to be told of an order that it does not have and will not get. Returns the
/// operations of these messages and what each was to tell. The order's row must be locked.
///
/// # Errors
/// A [`Fault`] of the query.
pub fn withdraw_rest(db: &mut Db, tenant_id: &str, order_id: &str) -> Result<Vec<(String, Kind)>, Fault> {
    let open = [State::Waiting, State::Parked].map(State::as_str);
    let rows: Vec<(String, String)> = on_db!(db, conn => diesel::update(outbox::table
        .filter(outbox::tenant_id.eq(tenant_id))
        .filter(outbox::order_id.eq(order_id))
        .filter(outbox::channel.eq(Channel::Erp.as_str()))
        .filter(outbox::state.eq_any(open)))
        .set(outbox::state.eq(State::Withdrawn.as_str()))
        .returning((outbox::operation_id, outbox::kind))
        .get_results(conn))?;
    rows.into_iter().map(|(operation_id, kind)| Ok((operation_id, Kind::stored(&kind)?))).collect()
}

/// Moves the messages of an order to the ERP from one state to another, and returns their operations: those that wait are held back
/// when the ERP refuses the order, and wait again when another hand-over follows. The order's row must be locked.
///
/// # Errors
/// A [`Fault`] of the query.
pub fn move_all(
    db: &mut Db,
    (tenant_id, order_id): (&str, &str),
    from: State,
    to: State,
) -> Result<Vec<String>, Fault> {
    let operation_ids = on_db!(db, conn => diesel::update(outbox::table
        .filter(outbox::tenant_id.eq(tenant_id))
        .filter(outbox::order_id.eq(order_id))
        .filter(outbox::channel.eq(Channel::Erp.as_str()))
        .filter(outbox::state.eq(from.as_str())))
        .set(outbox::state.eq(to.as_str()))
        .returning(outbox::operation_id)
        .get_results(conn));
    Ok(operation_ids?)
}

/// A message that hands an order over, as it stands.
#[derive(Clone, Debug, Queryable, Selectable)]
#[diesel(table_name = outbox)]
pub struct HandOver {
    /// The order.
    pub order_id: String,
    /// Its name.
    pub message_id: String,
    /// The operation that it belongs to.
    pub operation_id: String,
    /// [`State::as_str`].
    pub state: String,
}

/// The hand-overs of these orders, those of one order in the sequence in which they were written.
///
/// # Errors
/// A [`Fault`] of the query.
pub fn hand_overs(db: &mut Db, tenant_id: &str, order_ids: &[String]) -> Result<Vec<HandOver>, Fault> {
    let rows = on_db!(db, conn => outbox::table
        .filter(outbox::tenant_id.eq(tenant_id))
        .filter(outbox::order_id.eq_any(order_ids))
        .filter(outbox::kind.eq_any(Kind::HAND_OVERS.map(Kind::as_str)))
        // Names are made of the time.
        .order(outbox::message_id)
        .select(HandOver::as_select())
        .load(conn));
    Ok(rows?)
}

/// Lets a message that is over wait once more, with a new budget and as one that may have arrived, so that it is looked for
/// first. Returns the operation that it belongs to. The row of its order must be locked.
///
/// # Errors
/// A [`Fault`] of the update.
pub fn begin_anew(db: &mut Db, tenant_id: &str, message_id: &str, now: db::Instant) -> Result<String, Fault> {
    let operation_id = on_db!(db, conn => diesel::update(outbox::table.find((tenant_id, message_id)))
        .set((
            outbox::state.eq(State::Waiting.as_str()),
            outbox::next_attempt_at.eq(now),
            outbox::spent.eq(0),
            outbox::spent_since.eq(None::<db::Instant>),
            outbox::unknown_since.eq(now),
            outbox::resend_asked.eq(0),
        ))
        .returning(outbox::operation_id)
        .get_result(conn));
    Ok(operation_id?)
}

/// Removes the messages of operations that are forgotten, inside the caller's transaction; the same key may name the same
/// operation anew. Where the tenant has an ERP, a message that is still to be delivered stays, and goes on without an
/// operation: one is final before its message when its tenant had no ERP at the time, or when its hand-over was begun anew.
///
/// # Errors
/// A [`Fault`] of the statements.
pub fn forget(db: &mut Db, tenant_id: &str, operation_ids: &[String]) -> Result<(), Fault> {
    if connection::exists(db, tenant_id, Channel::Erp)? {
        let open = State::OPEN.map(State::as_str);
        on_db!(&mut *db, conn => diesel::update(outbox::table
            .filter(outbox::tenant_id.eq(tenant_id))
            .filter(outbox::operation_id.eq_any(operation_ids))
            .filter(outbox::state.eq_any(open)))
            .set(outbox::operation_id.eq(outbox::message_id))
            .execute(conn))?;
    }
    on_db!(db, conn => diesel::delete(outbox::table
        .filter(outbox::tenant_id.eq(tenant_id))
        .filter(outbox::operation_id.eq_any(operation_ids)))
        .execute(conn))?;
    Ok(())
}
