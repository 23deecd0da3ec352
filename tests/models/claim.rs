//! A model of claim, execute, record and replay: one key, calls in two processes that may die at every step, and the
//! cleaner.
//!
//! The promise (contract, "One transaction", "What an outcome does to the key" and "Retention"): one intent, one effect;
//! every answer to it is the first one; another body under the key is neither executed nor answered; what is
//! acknowledged is there; a fault leaves the key free. [`Action`] says which function of the service each step stands
//! for.

use stateright::{Checker, HasDiscoveries, Model};

mod properties;
mod steps;

/// One way to build the protocol wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// `claim::take` looks whether the key is taken, and inserts if it is not: two statements, no unique constraint.
    LooksThenInserts,
    /// The effects commit before the answer is recorded.
    CommitsBeforeTheReply,
    /// A refusal is answered, and rolled back.
    ForgetsRefusals,
    /// `Past::answer` replays before it compares the fingerprint.
    AnswersWithoutComparing,
    /// The cleaner removes the key that it saw, without another look at its time.
    CleansWhatItSaw,
    /// A key is expired once the cleaner has been, not once its time is over.
    ExpiresByTheCleaner,
}

/// The protocol with certain calls.
#[derive(Clone, Debug)]
struct Protocol {
    /// The calls, in the order in which they begin.
    calls: Vec<Call>,
    /// Whether an order has an identity of its own (`externalOrderId`), the permanent guard.
    guarded: bool,
    flaw: Option<Flaw>,
}

/// One request with the key.
#[derive(Clone, Copy, Debug)]
struct Call {
    body: Body,
    /// The process that serves it, 0 or 1.
    process: usize,
}

/// What a request asks for. Each is an order of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Body {
    One,
    Other,
}

/// The database, the calls and the cleaner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// The committed row of the claim: whose body it was made with.
    claim: Option<Body>,
    /// The committed row of the operation.
    result: Option<Recorded>,
    /// The committed orders of each body.
    orders: [u8; 2],
    /// Whose open transaction has inserted or deleted the row of the claim: the others wait.
    lock: Option<Holder>,
    calls: Vec<Phase>,
    cleaner: Cleaner,
    /// Whether a command finds what it needs; when not, the rules say no.
    in_stock: bool,
    /// What was carried out and committed, in this order.
    executions: Vec<Execution>,
    /// How often the key memory was over.
    memories: u8,
    /// How often a process may still die.
    crashes: u8,
    /// How often a transaction may still fail.
    faults: u8,
}

/// Who holds the row of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Holder {
    Call(usize),
    Cleaner,
}

/// What is recorded under the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Recorded {
    /// Which call was carried out.
    by: usize,
    outcome: Outcome,
    age: Age,
    /// Whether the cleaner has left the recorded body.
    has_body: bool,
}

/// How old a result is, by the database's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Age {
    /// The operation is not final: no window has begun.
    Open,
    /// Inside the replay window.
    Fresh,
    /// Past the replay window.
    Expired,
    /// Past the key memory.
    Forgotten,
}

/// How a command came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Outcome {
    Made,
    OutOfStock,
    DuplicateOrder,
}

/// A committed execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Execution {
    by: usize,
    outcome: Outcome,
}

/// How far a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Unsent,
    /// It is about to insert its claim; with so many tries left.
    Inserting(u8),
    /// The insert found a committed rival.
    Finding(u8),
    /// What it found is past the key memory.
    Forgetting(u8),
    Claimed,
    Executed(Outcome),
    Recorded(Outcome),
    /// Only with a flaw: the effects are committed, the answer is not recorded.
    Unrecorded(Outcome),
    /// The transaction is over, and the answer is on its way.
    Answering(Told),
    Ended(Told),
}

/// What the client hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Told {
    First(Execution),
    /// The record as it was read, with its age at that moment.
    Replay(Execution, Age),
    Conflict,
    Expired,
    /// 202: the key is at work.
    AtWork,
    /// 503: nothing happened, the key is free.
    Unavailable,
    /// 500: a claim could neither be made nor found.
    Bug,
    /// The connection broke.
    Nothing,
}

/// How far the cleaner is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Cleaner {
    Idle,
    /// Only with a flaw: it has seen that the key is to be forgotten, and holds no lock.
    Saw,
    /// It has deleted, and not committed.
    Deleted,
}

/// The steps. Between any two of them anything else may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// A request arrives, and its transaction begins: `command::run`.
    Begin(usize),
    /// `claim::take`: the insert that does nothing on a conflict.
    Insert(usize),
    /// `claim::find`: a new statement reads what is committed now.
    Find(usize),
    /// `forget::forget`, asked for by a call: it compares the time in the statement that deletes.
    Forget(usize),
    /// A rival held the key for longer than the call may wait.
    GiveUp(usize),
    /// `Command::execute`.
    Execute(usize),
    /// `claim::record`.
    Record(usize),
    /// COMMIT.
    Commit(usize),
    /// Anything that rolls a transaction back: the database away, a serialisation failure, a bug.
    Fail(usize),
    /// The answer reaches the client.
    Answer(usize),
    /// The answer is lost.
    LoseAnswer(usize),
    /// kill -9 of a process: its transactions are rolled back, its answers are lost.
    Crash(usize),
    /// `operation::end`: the operation becomes final, and its windows begin.
    End,
    /// The replay window ends.
    WindowEnds,
    /// The key memory ends.
    MemoryEnds,
    /// Stock arrives.
    Restock,
    /// `retention::sweep`, bodies.
    DropBody,
    /// Only with a flaw: the cleaner looks, without a lock.
    CleanerLooks,
    /// `retention::sweep`, keys: it locks, without waiting, and deletes.
    CleanerDeletes,
    /// The cleaner's COMMIT.
    CleanerCommits,
}

/// Three calls for one order and one that misuses the key, in each order, over two processes.
fn arrangements() -> Vec<Vec<Call>> {
    use Body::{One, Other};
    let calls = |bodies: [Body; CALLS]| {
        (0..).zip(bodies).map(|(number, body): (usize, _)| Call { body, process: number % 2 }).collect()
    };
    [[One, One, Other], [One, Other, One], [Other, One, One]].map(calls).into()
}

const CALLS: usize = 3;

#[test]
fn one_intent_has_one_effect_whatever_fails() {
    for guarded in [true, false] {
        let mut reached = Vec::new();
        for calls in arrangements() {
            let protocol = Protocol { calls, guarded, flaw: None };
            let checker = protocol.checker().threads(2).spawn_bfs().join();
            println!("guarded: {guarded}: {} states, {} deep", checker.unique_state_count(), checker.max_depth());
            assert!(checker.is_done());
            for (promise, _) in properties::PROMISES {
                checker.assert_no_discovery(promise);
            }
            reached.extend(checker.discoveries().into_keys());
        }
        for case in properties::cases(guarded) {
            assert!(reached.contains(&case.0), "never reached: {}", case.0);
        }
    }
}

#[test]
fn every_flaw_of_the_claim_is_found() {
    let flaws = [
        (Flaw::LooksThenInserts, properties::ONE_EFFECT),
        (Flaw::CommitsBeforeTheReply, properties::WHOLE),
        (Flaw::ForgetsRefusals, properties::SAME_ANSWER),
        (Flaw::AnswersWithoutComparing, properties::SAME_ANSWER),
        (Flaw::CleansWhatItSaw, properties::ONE_EFFECT),
        (Flaw::ExpiresByTheCleaner, properties::IN_THE_WINDOW),
    ];
    for (flaw, broken) in flaws {
        let mut paths = arrangements().into_iter().filter_map(|calls| {
            let protocol = Protocol { calls, guarded: false, flaw: Some(flaw) };
            let checker = protocol.checker().finish_when(HasDiscoveries::AllOf([broken].into())).spawn_bfs().join();
            checker.discovery(broken)
        });
        let path = paths.next().unwrap_or_else(|| panic!("{flaw:?}: not found"));
        println!("{flaw:?} breaks \"{broken}\":\n  {:?}", path.into_actions());
    }
}
