//! What must hold in every state, and what must be reached in some.

use stateright::{Model, Property};

use super::{Doubt, Order, Place, Protocol, Relay, State, Verification};

/// The promise of the whole.
pub(super) const ONCE: &str = "the ERP has the order at most once";
/// What is told of an order agrees with the ERP.
pub(super) const THERE: &str = "what is delivered is there";
/// See [`THERE`].
pub(super) const ABSENT: &str = "what is refused, withdrawn or abandoned is not there and does not come";
/// See [`THERE`].
pub(super) const CANCELLED: &str = "a cancelled order is not there, or cancelled there too";
/// What was told once is not taken back.
pub(super) const FINAL: &str = "a final state never changes";
/// Every message comes to an end, or to a person.
pub(super) const NOT_DROPPED: &str = "nothing is left behind";

/// The properties of the protocol with this kind of ERP.
pub(super) fn of(verification: Verification) -> Vec<Property<Protocol>> {
    let mut properties = promises();
    properties.extend(cases());
    properties.push(match verification {
        Verification::LookThenSend => {
            Property::sometimes("a request is sent again while the first may still commit", |_, state: &State| {
                state.erp.requests.iter().filter(|request| request.answer.is_none()).count() > 1
            })
        }
        Verification::LookAndWait => {
            Property::sometimes("not found counts, once the settle window is over", |_, state: &State| {
                relays(state).any(|relay| matches!(relay, Relay::MaySend(lease, Doubt::None) if lease.doubt.is_some()))
            })
        }
        Verification::SendAgain => Property::sometimes("what is there is sent again", |_, state: &State| {
            state.erp.orders == 1 && state.erp.requests.iter().any(|request| request.answer.is_none())
        }),
        Verification::AskAPerson => Property::sometimes("a person has it sent again", |_, state: &State| {
            relays(state)
                .any(|relay| matches!(relay, Relay::Asking(lease, _) if lease.resend_asked && lease.doubt.is_some()))
        }),
    });
    properties
}

fn promises() -> Vec<Property<Protocol>> {
    vec![
        Property::always(ONCE, |_, state: &State| state.erp.orders <= 1),
        Property::always(THERE, |_, state: &State| state.message.place != Place::Delivered || state.erp.orders == 1),
        Property::always(ABSENT, |_, state: &State| match state.message.place {
            Place::Refused | Place::Withdrawn | Place::Abandoned => state.erp.is_surely_absent(),
            Place::Waiting | Place::Leased | Place::Parked | Place::Delivered => true,
        }),
        Property::always(CANCELLED, |_, state: &State| {
            state.order != Order::Cancelled || state.erp.cancelled || state.erp.is_surely_absent()
        }),
        Property::always(FINAL, |_, state: &State| state.first_end.is_none_or(|place| place == state.message.place)),
        Property::always(NOT_DROPPED, |protocol: &Protocol, state: &State| {
            let mut actions = Vec::new();
            protocol.actions(state, &mut actions);
            !actions.is_empty() || (state.message.place.is_final() && state.order != Order::Cancelling)
        }),
    ]
}

/// The cases that the model is for; without them its promises would be easy to keep.
fn cases() -> Vec<Property<Protocol>> {
    vec![
        Property::sometimes("the ERP has the order, and its answer is lost", |_, state: &State| {
            state.erp.orders == 1 && matches!(state.message.place, Place::Waiting | Place::Parked)
        }),
        Property::sometimes("the ERP commits after a relay has timed out", |_, state: &State| {
            matches!(state.message.place, Place::Waiting | Place::Parked)
                && state.erp.requests.iter().any(|request| request.answer.is_none())
        }),
        Property::sometimes("a relay that lost its lease wants to settle", |_, state: &State| {
            relays(state).any(|relay| matches!(relay, Relay::Reporting(lease, _) if lease.token != state.message.token))
        }),
        Property::sometimes("a lease is taken over from a relay that died after it had sent", |_, state: &State| {
            state.message.place == Place::Leased
                && state.erp.requests.iter().any(|request| request.token < state.message.token)
                && relays(state).any(|relay| *relay == Relay::Idle)
        }),
        Property::sometimes("an order is withdrawn", |_, state: &State| state.message.place == Place::Withdrawn),
        Property::sometimes("a cancel comes while a relay has the order", |_, state: &State| {
            state.order == Order::Cancelling && state.message.place == Place::Leased
        }),
        Property::sometimes("the ERP agrees to cancel", |_, state: &State| {
            state.order == Order::Cancelled && state.erp.cancelled && state.erp.orders == 1
        }),
        Property::sometimes("an order that is being cancelled is refused", |_, state: &State| {
            state.order == Order::Cancelled && state.message.place == Place::Refused
        }),
        Property::sometimes("the ERP refuses the order", |_, state: &State| state.order == Order::Rejected),
        Property::sometimes("a person has to look", |_, state: &State| state.message.place == Place::Parked),
        Property::sometimes("it is parked although the ERP has it", |_, state: &State| {
            state.message.place == Place::Parked && state.erp.orders == 1
        }),
    ]
}

fn relays(state: &State) -> impl Iterator<Item = &Relay> {
    state.relays.iter()
}
