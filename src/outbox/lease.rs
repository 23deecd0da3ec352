//! A relay takes messages for a while. A lease has an end, so that a dead relay holds nothing for ever, and a token, so that
//! who lost it cannot settle. Messages of one order and channel are leased one after the other, orders side by side.

use std::time::Duration;

use diesel::dsl::{exists, not};
use diesel::prelude::*;

use super::connection::{self, Connection};
use super::{Channel, Kind, Outcome, State, attempt};
use crate::db::tables::outbox;
use crate::db::{self, Db, Fault};
use crate::{load_unlocked, on_db};

/// How long a relay waits for another one that leases for the same connection. That takes milliseconds; who holds the row
/// longer must not hold up the other tenants.
const LOCK_WAIT: Duration = Duration::from_secs(1);

/// From so many failures in a row on, the connection is taken for dead: one message at a time tries whether it is well again.
pub const DEAD_AFTER: i32 = 5;

/// How a relay leases.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The most messages of a connection that are under way at a time, over all relays.
    pub parallel: u32,
    /// How long a lease lasts.
    pub length: Duration,
}

/// A message that a relay holds until its lease ends.
#[derive(Clone, Debug)]
pub struct Leased {
    /// The tenant whose message it is.
    pub tenant_id: String,
    /// Its stable name, the same in every attempt.
    pub message_id: String,
    /// The operation that goes on with it.
    pub operation_id: String,
    /// What it tells.
    pub kind: Kind,
    /// The order that it is about.
    pub order_id: String,
    /// The JSON text that is sent.
    pub payload: String,
    /// The W3C trace that it belongs to.
    pub trace_id: String,
    /// The number of this attempt, from 1.
    pub number: i32,
    /// The attempts before this one that count against the budget.
    pub spent: i32,
    /// The end of the first attempt that costs time.
    pub spent_since: Option<db::Instant>,
    /// Since when the ERP may have it; `None`: it surely has not.
    pub unknown_since: Option<db::Instant>,
    /// Whether a person asked for it to be sent again although nobody can look.
    pub resend_asked: bool,
    /// The database's clock at the lease.
    pub leased_at: db::Instant,
    /// Whether it was taken over from a relay that did not settle in time.
    pub reclaimed: bool,
    /// Whether it is to try if a connection that seems dead is well again.
    pub is_probe: bool,
    /// [`Connection::created_at`] of the connection that it goes by.
    pub connection_made_at: db::Instant,
    pub(super) token: String,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = outbox)]
struct Due {
    message_id: String,
    operation_id: String,
    kind: String,
    order_id: String,
    state: String,
    payload: String,
    next_attempt_at: db::Instant,
    attempts: i32,
    spent: i32,
    spent_since: Option<db::Instant>,
    unknown_since: Option<db::Instant>,
    resend_asked: i32,
    trace_id: String,
}

/// Leases what is due on a channel of a tenant, with the connection to send it by. Nothing while the connection is paused,
/// and never more than the terms allow, whatever other relays there are.
///
/// # Errors
/// A [`Fault`]; nothing is leased then.
pub fn lease(
    db: &mut Db,
    tenant_id: &str,
    channel: Channel,
    terms: Terms,
) -> Result<Option<(Connection, Vec<Leased>)>, Fault> {
    db.transaction(LOCK_WAIT, |db| {
        // The lock makes relays of one connection count and take in turn.
        let Some(connection) = connection::lock(db, tenant_id, channel)? else { return Ok(None) };
        let now = db.now()?;
        if connection.paused_until.is_some_and(|until| until > now) {
            return Ok(None);
        }
        let seems_dead = connection.failures >= DEAD_AFTER;
        let parallel = if seems_dead { 1 } else { i64::from(terms.parallel) };
        let free = parallel - under_way(db, tenant_id, channel, now)?;
        if free < 1 {
            return Ok(None);
        }
        let mut leased = Vec::new();
        for due in due(db, (tenant_id, channel), (now, seems_dead), free)? {
            leased.push(take(db, &connection, due, terms.length, now)?);
        }
        Ok(Some((connection, leased)))
    })
}

/// Whether a channel of a tenant has anything to lease, by a look that locks nothing.
///
/// # Errors
/// A [`Fault`] of the query.
pub fn is_anything_due(db: &mut Db, tenant_id: &str, channel: Channel) -> Result<bool, Fault> {
    let now = db.now()?;
    let open = [State::Waiting, State::Leased].map(State::as_str);
    let found = on_db!(db, conn => outbox::table
        .filter(outbox::tenant_id.eq(tenant_id))
        .filter(outbox::channel.eq(channel.as_str()))
        .filter(outbox::state.eq_any(open))
        .filter(outbox::next_attempt_at.le(now))
        .select(outbox::message_id)
        .first::<String>(conn)
        .optional());
    Ok(found?.is_some())
}

fn under_way(db: &mut Db, tenant_id: &str, channel: Channel, now: db::Instant) -> Result<i64, Fault> {
    let count = on_db!(db, conn => outbox::table
        .filter(outbox::tenant_id.eq(tenant_id))
        .filter(outbox::channel.eq(channel.as_str()))
        .filter(outbox::state.eq(State::Leased.as_str()))
        .filter(outbox::next_attempt_at.gt(now))
        .count()
        .get_result(conn));
    Ok(count?)
}

/// What waits and is due, or was leased by a relay that did not come back. The first open message of an order hides the later
/// ones of its channel, whether it waits, is under way, or is parked.
/// A cancel alone passes a payment that waits for a person: the ERP must not send goods because of a doubt about money.
/// Where the connection seems dead, what failed least comes first: it says best whether the connection is well again.
fn due(
    db: &mut Db,
    (tenant_id, channel): (&str, Channel),
    (now, seems_dead): (db::Instant, bool),
    limit: i64,
) -> Result<Vec<Due>, Fault> {
    let unsettled = State::OPEN.map(State::as_str);
    let open = [State::Waiting, State::Leased].map(State::as_str);
    let earlier = diesel::alias!(outbox as earlier);
    let an_earlier_one = earlier
        .filter(earlier.field(outbox::tenant_id).eq(tenant_id))
        .filter(earlier.field(outbox::order_id).eq(outbox::order_id))
        .filter(earlier.field(outbox::channel).eq(outbox::channel))
        .filter(earlier.field(outbox::state).eq_any(unsettled))
        .filter(
            outbox::kind
                .ne(Kind::OrderCancelled.as_str())
                .or(earlier.field(outbox::kind).ne(Kind::PaymentReceived.as_str()))
                .or(earlier.field(outbox::state).ne(State::Parked.as_str())),
        )
        .filter(
            earlier.field(outbox::position).lt(outbox::position).or(earlier
                .field(outbox::position)
                .eq(outbox::position)
                .and(earlier.field(outbox::message_id).lt(outbox::message_id))),
        );
    // A row that a command withdraws right now is left to it.
    let rows = load_unlocked!(
        db,
        outbox::table
            .filter(outbox::tenant_id.eq(tenant_id))
            .filter(outbox::channel.eq(channel.as_str()))
            .filter(outbox::state.eq_any(open))
            .filter(outbox::next_attempt_at.le(now))
            .filter(not(exists(an_earlier_one)))
            .order((outbox::spent * i32::from(seems_dead), outbox::next_attempt_at, outbox::message_id))
            .limit(limit)
            .select(Due::as_select())
    );
    Ok(rows?)
}

fn take(db: &mut Db, connection: &Connection, due: Due, length: Duration, now: db::Instant) -> Result<Leased, Fault> {
    let tenant_id = connection.tenant_id.as_str();
    let reclaimed = due.state == State::Leased.as_str();
    // What a lost relay did until its lease ended is not known: the ERP may have been asked, as late as then, whatever was
    // in doubt before.
    let unknown_since = reclaimed.then_some(due.next_attempt_at).or(due.unknown_since);
    if reclaimed {
        let key = (tenant_id, due.message_id.as_str(), due.attempts);
        attempt::end(db, key, Outcome::Unknown, "the relay stopped before it knew the outcome", due.next_attempt_at)?;
    }
    let token = uuid::Uuid::new_v4().simple().to_string();
    let number = due.attempts + 1;
    let spent = due.spent + i32::from(reclaimed);
    let spent_since = due.spent_since.or(reclaimed.then_some(due.next_attempt_at));
    on_db!(&mut *db, conn => diesel::update(outbox::table.find((tenant_id, &due.message_id)))
        .set((
            outbox::state.eq(State::Leased.as_str()),
            outbox::lease_token.eq(&token),
            outbox::next_attempt_at.eq(now + length),
            outbox::attempts.eq(number),
            outbox::spent.eq(spent),
            outbox::spent_since.eq(spent_since),
            outbox::unknown_since.eq(unknown_since),
            // A person's permission is for this attempt alone: a relay that dies over it may have used it.
            outbox::resend_asked.eq(0),
        ))
        .execute(conn))?;
    attempt::begin(db, (tenant_id, &due.message_id, number), &due.trace_id, now)?;
    Ok(Leased {
        tenant_id: tenant_id.to_owned(),
        kind: Kind::stored(&due.kind)?,
        message_id: due.message_id,
        operation_id: due.operation_id,
        order_id: due.order_id,
        payload: due.payload,
        trace_id: due.trace_id,
        number,
        spent,
        spent_since,
        unknown_since,
        resend_asked: due.resend_asked != 0,
        leased_at: now,
        reclaimed,
        is_probe: connection.failures >= DEAD_AFTER,
        connection_made_at: connection.created_at,
        token,
    })
}
