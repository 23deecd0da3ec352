//! A hand-over that was done, once more: for an order that the ERP has lost. The same message waits again, as one of which
//! nobody knows whether it arrived, so that the relay looks before it sends. Who asked for it is written down.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{intervention, operation, order_rows};
use crate::db::{Db, Fault};
use crate::outbox::{self, State};

/// How long this waits for a rival that changes the same order.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// How far the hand-over of an order is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A relay has it, or will have it.
    OnItsWay,
    /// Its operation is `unresolved`: the duty desk decides.
    WithAPerson,
    /// The ERP has taken it, as this message, which can be begun anew.
    Over(String),
    /// It was begun anew as this message, and stopped before anybody knew whether it arrived. Its operation is final, so that
    /// the duty desk does not see it, and what follows waits behind it.
    Stopped(String),
    /// There is none that could be begun anew: the key was forgotten and the message with it, or it was given up.
    Gone,
}

/// How far the hand-overs of these orders are. An order that is not in the answer has none: [`Standing::Gone`].
///
/// # Errors
/// A [`Fault`] of the queries.
pub fn standings(db: &mut Db, tenant_id: &str, order_ids: &[String]) -> Result<BTreeMap<String, Standing>, Fault> {
    let hand_overs = outbox::hand_overs(db, tenant_id, order_ids)?;
    let parked = hand_overs.iter().filter(|found| found.state == State::Parked.as_str());
    let operation_ids: Vec<String> = parked.map(|found| found.operation_id.clone()).collect();
    let open = operation::open_among(db, tenant_id, &operation_ids)?;
    let mut standings = BTreeMap::new();
    // The last one counts: those before it were withdrawn or refused.
    for found in hand_overs {
        let standing = if [State::Waiting, State::Leased].iter().any(|state| state.as_str() == found.state) {
            Standing::OnItsWay
        } else if found.state == State::Parked.as_str() && open.contains(&found.operation_id) {
            Standing::WithAPerson
        } else if found.state == State::Parked.as_str() {
            Standing::Stopped(found.message_id)
        } else if found.state == State::Delivered.as_str() {
            Standing::Over(found.message_id)
        } else {
            Standing::Gone
        };
        standings.insert(found.order_id, standing);
    }
    Ok(standings)
}

/// Who asks, and why, for those who ask later.
#[derive(Clone, Copy, Debug)]
pub struct Why<'a> {
    /// Who.
    pub who: &'a str,
    /// Why.
    pub reason: &'a str,
    /// The W3C trace of the asking.
    pub trace_id: &'a str,
}

/// Lets the hand-over of a `confirmed` order wait again, with a new budget; of one that is being cancelled only where the cancel
/// waits behind it. `false`, and nothing is written, when the order is in another state by now, or its hand-over neither over
/// nor stopped. Operations stay as they are: a final state never changes.
///
/// # Errors
/// A [`Fault`]; nothing is written then.
pub fn hand_over_again(db: &mut Db, tenant_id: &str, order_id: &str, why: Why<'_>) -> Result<bool, Fault> {
    db.transaction(LOCK_WAIT, |db| {
        let Some(order) = order_rows::find_and_lock(db, tenant_id, order_id)? else { return Ok(false) };
        // Only behind the lock the messages of the order stand still.
        let standing = standings(db, tenant_id, &[order_id.to_owned()])?.remove(order_id);
        let message_id = match standing {
            Some(Standing::Over(message_id)) if order.status == "confirmed" => message_id,
            Some(Standing::Stopped(message_id)) if ["confirmed", "cancelling"].contains(&order.status.as_str()) => {
                message_id
            }
            Some(_) | None => return Ok(false),
        };
        let now = db.now()?;
        let operation_id = outbox::begin_anew(db, tenant_id, &message_id, now)?;
        let id = format!("rec_{}", uuid::Uuid::now_v7().simple());
        let decision = intervention::Entry {
            tenant_id,
            decision_id: &id,
            target: &operation_id,
            who: why.who,
            trace_id: why.trace_id,
            now,
        };
        let what = intervention::Intervention { decision: "hand over", erp_reference: None, reason: Some(why.reason) };
        intervention::enter(db, &decision, &what)?;
        Ok(true)
    })
}
