//! What must hold in every state, and what must be reached in some.

use stateright::Model;

use super::{Age, Body, Cleaner, Execution, Holder, Outcome, Phase, Protocol, State, Told};

/// A name, and whether it is so in a state.
type Claim = (&'static str, fn(&Protocol, &State) -> bool);

/// The promise of the whole.
pub(super) const ONE_EFFECT: &str = "one intent has one effect";
/// Nothing is half there.
pub(super) const WHOLE: &str = "claim, effects and answer are there together or not at all";
/// A replay is no new answer, and nobody else's.
pub(super) const SAME_ANSWER: &str = "everybody who is answered hears the recorded answer to what they asked";
/// Time decides.
pub(super) const IN_THE_WINDOW: &str = "nothing is replayed after its window";

/// What must hold in every state.
pub(super) const PROMISES: &[Claim] = &[
    (ONE_EFFECT, has_one_effect),
    (WHOLE, is_whole),
    (SAME_ANSWER, |protocol, state| {
        heard(protocol, state).all(|(body, answer)| is_recorded(protocol, state, body, answer))
    }),
    (IN_THE_WINDOW, |_, state| !told(state).any(|told| matches!(told, Told::Replay(_, Age::Expired | Age::Forgotten)))),
    ("what is acknowledged is there", |protocol, state| {
        heard(protocol, state).all(|(body, answer)| answer.outcome != Outcome::Made || state.orders[body as usize] > 0)
    }),
    ("only an open transaction holds the key", |_, state| match state.lock {
        None => true,
        Some(Holder::Cleaner) => state.cleaner == Cleaner::Deleted,
        Some(Holder::Call(call)) => !matches!(state.calls[call], Phase::Unsent | Phase::Answering(_) | Phase::Ended(_)),
    }),
    ("a claim is made or found", |_, state| !told(state).any(|told| told == Told::Bug)),
    ("everybody comes to an end", |protocol, state| {
        let mut actions = Vec::new();
        protocol.actions(state, &mut actions);
        let moves = actions.into_iter().filter_map(|action| protocol.next_state(state, action)).count();
        moves > 0 || state.calls.iter().all(|phase| matches!(phase, Phase::Ended(_)))
    }),
];

fn has_one_effect(protocol: &Protocol, state: &State) -> bool {
    let made = state.executions.iter().filter(|execution| execution.outcome == Outcome::Made).count();
    let orders = usize::from(state.orders[0] + state.orders[1]);
    // A key that is forgotten is free; then only the order's own identity guards, where it has one.
    let executions = state.executions.len() <= 1 + usize::from(state.memories);
    let guard = !protocol.guarded || state.orders.iter().all(|orders| *orders <= 1);
    made == orders && executions && guard
}

fn is_whole(protocol: &Protocol, state: &State) -> bool {
    match (state.claim, state.result) {
        (None, None) => true,
        (Some(body), Some(result)) => {
            let execution = Execution { by: result.by, outcome: result.outcome };
            protocol.calls[result.by].body == body && state.executions.contains(&execution)
        }
        (None, Some(_)) | (Some(_), None) => false,
    }
}

fn is_recorded(protocol: &Protocol, state: &State, body: Body, answer: Execution) -> bool {
    state.executions.contains(&answer) && protocol.calls[answer.by].body == body
}

/// What clients have heard.
fn told(state: &State) -> impl Iterator<Item = Told> {
    state.calls.iter().filter_map(|phase| if let Phase::Ended(told) = phase { Some(*told) } else { None })
}

/// The bodies of those who have heard how the command came out, and what they heard.
fn heard(protocol: &Protocol, state: &State) -> impl Iterator<Item = (Body, Execution)> {
    protocol.calls.iter().zip(&state.calls).filter_map(|(call, phase)| match phase {
        Phase::Ended(Told::First(answer) | Told::Replay(answer, _)) => Some((call.body, *answer)),
        _ => None,
    })
}

/// The cases that the model is for; without them its promises would be easy to keep.
pub(super) fn cases(guarded: bool) -> Vec<Claim> {
    let mut cases: Vec<Claim> = vec![
        ("a lost answer is asked for again, and replayed", |_, state| {
            told(state).any(
                |told| matches!(told, Told::Replay(answer, _) if state.calls[answer.by] == Phase::Ended(Told::Nothing)),
            )
        }),
        ("a rival executes, because the first rolled back", |_, state| {
            state.calls[0] == Phase::Ended(Told::Unavailable) && state.executions.iter().any(|one| one.by > 0)
        }),
        ("a process dies after the commit, before the answer", |_, state| {
            state.crashes == 0 && state.executions.iter().any(|one| state.calls[one.by] == Phase::Ended(Told::Nothing))
        }),
        ("a rival waits for an open transaction", |_, state| {
            state.lock.is_some() && state.calls.iter().filter(|phase| matches!(phase, Phase::Inserting(_))).count() > 1
        }),
        ("a rival hears that the key is at work", |_, state| told(state).any(|told| told == Told::AtWork)),
        ("the other body is told of the conflict", |_, state| told(state).any(|told| told == Told::Conflict)),
        ("the other body comes first", |protocol, state| {
            state.executions.first().is_some_and(|first| protocol.calls[first.by].body == Body::Other)
        }),
        ("a key is found expired", |_, state| told(state).any(|told| told == Told::Expired)),
        ("a refusal is replayed although it would now succeed", |_, state| {
            let refused = |told| matches!(told, Told::Replay(answer, _) if answer.outcome == Outcome::OutOfStock);
            state.in_stock && told(state).any(refused)
        }),
        ("the cleaner has forgotten the key", |_, state| state.claim.is_none() && !state.executions.is_empty()),
        ("a call forgets the key and wins it anew", |_, state| {
            let claimed = |holder| matches!(holder, Holder::Call(call) if state.calls[call] == Phase::Claimed);
            state.claim.is_some() && state.lock.is_some_and(claimed)
        }),
        ("a call waits for the cleaner", |_, state| {
            state.lock == Some(Holder::Cleaner) && state.calls.iter().any(|phase| matches!(phase, Phase::Forgetting(_)))
        }),
    ];
    cases.push(if guarded {
        ("a forgotten key is stopped by the order's own identity", |_, state| {
            told(state).any(|told| matches!(told, Told::First(answer) if answer.outcome == Outcome::DuplicateOrder))
        })
    } else {
        ("an order without an identity is made again, once its key is forgotten", |_, state| state.orders[0] == 2)
    });
    cases
}
