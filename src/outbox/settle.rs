//! The end of an attempt, written down. Who lost its lease changes nothing here: the token is checked by the statement that
//! settles. The duty desk, which holds no lease, settles what is parked.

use diesel::prelude::*;

use super::lease::Leased;
use super::{Kind, Outcome, State, attempt};
use crate::db::tables::outbox;
use crate::db::{self, Db, Fault};
use crate::on_db;

/// What becomes of a message after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It has arrived.
    Delivered,
    /// The other side said no for good.
    Refused,
    /// It is tried again at this moment.
    Again(db::Instant),
    /// A person has to look.
    Parked,
}

impl Next {
    fn state(self) -> State {
        match self {
            Next::Delivered => State::Delivered,
            Next::Refused => State::Refused,
            Next::Again(_) => State::Waiting,
            Next::Parked => State::Parked,
        }
    }
}

/// How an attempt ended, and what follows.
#[derive(Clone, Debug)]
pub struct Settlement {
    /// How it ended.
    pub outcome: Outcome,
    /// A short sentence for people.
    pub detail: String,
    /// What becomes of the message.
    pub next: Next,
    /// Since when the ERP may have it; `None`: it surely has not, or it is settled.
    pub unknown_since: Option<db::Instant>,
    /// Whether the attempt counts against the message's budget.
    pub counts: bool,
}

impl Settlement {
    /// A person's word that it may be sent again holds until an attempt may have used it.
    fn surely_did_not_arrive(&self) -> bool {
        match self.outcome {
            Outcome::NotDelivered | Outcome::Unavailable | Outcome::Misconfigured => true,
            Outcome::Delivered | Outcome::AlreadyThere | Outcome::Refused | Outcome::Conflict | Outcome::Unknown => {
                false
            }
        }
    }
}

/// Settles an attempt, inside the caller's transaction. `false`: the lease was lost, and nothing was written.
///
/// # Errors
/// A [`Fault`] of the statements.
pub fn settle(db: &mut Db, leased: &Leased, settlement: &Settlement, now: db::Instant) -> Result<bool, Fault> {
    let spent = leased.spent + i32::from(settlement.counts);
    let begins = settlement.counts || settlement.outcome == Outcome::NotDelivered;
    let spent_since = leased.spent_since.or(begins.then_some(now));
    let next_attempt_at = if let Next::Again(at) = settlement.next { at } else { now };
    let settled = on_db!(&mut *db, conn => diesel::update(outbox::table
        .filter(outbox::tenant_id.eq(&leased.tenant_id))
        .filter(outbox::message_id.eq(&leased.message_id))
        .filter(outbox::state.eq(State::Leased.as_str()))
        .filter(outbox::lease_token.eq(&leased.token)))
        .set((
            outbox::state.eq(settlement.next.state().as_str()),
            outbox::lease_token.eq(None::<String>),
            outbox::next_attempt_at.eq(next_attempt_at),
            outbox::spent.eq(spent),
            outbox::spent_since.eq(spent_since),
            outbox::unknown_since.eq(settlement.unknown_since),
            outbox::resend_asked.eq(i32::from(leased.resend_asked && settlement.surely_did_not_arrive())),
            outbox::last_outcome.eq(settlement.outcome.as_str()),
        ))
        .execute(conn))?;
    if settled == 0 {
        return Ok(false);
    }
    let key = (leased.tenant_id.as_str(), leased.message_id.as_str(), leased.number);
    attempt::end(db, key, settlement.outcome, &settlement.detail, now)?;
    Ok(true)
}

/// What the duty desk decides about a parked message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Try again, with a new budget. Where nobody can look whether it arrived, it is sent again all the same.
    Retry,
    /// A person has seen that the ERP has it.
    Delivered,
    /// It is given up.
    Abandoned,
}

/// A parked message, as the duty desk meets it.
#[derive(Clone, Debug)]
pub struct Parked {
    /// Its name.
    pub message_id: String,
    /// What it tells.
    pub kind: Kind,
}

/// Decides about the parked message of an operation, inside the caller's transaction; `None` when none is parked. The row of
/// its order must be locked.
///
/// # Errors
/// A [`Fault`] of the update.
pub fn decide(
    db: &mut Db,
    (tenant_id, operation_id): (&str, &str),
    decision: Decision,
    now: db::Instant,
) -> Result<Option<Parked>, Fault> {
    let state = match decision {
        Decision::Retry => State::Waiting,
        Decision::Delivered => State::Delivered,
        Decision::Abandoned => State::Abandoned,
    };
    let found: Option<(String, String)> = on_db!(db, conn => diesel::update(outbox::table
        .filter(outbox::tenant_id.eq(tenant_id))
        .filter(outbox::operation_id.eq(operation_id))
        .filter(outbox::state.eq(State::Parked.as_str())))
        .set((
            outbox::state.eq(state.as_str()),
            outbox::next_attempt_at.eq(now),
            outbox::spent.eq(0),
            outbox::spent_since.eq(None::<db::Instant>),
            outbox::resend_asked.eq(i32::from(decision == Decision::Retry)),
        ))
        .returning((outbox::message_id, outbox::kind))
        .get_result(conn)
        .optional())?;
    found.map(|(message_id, kind)| Ok(Parked { message_id, kind: Kind::stored(&kind)? })).transpose()
}
