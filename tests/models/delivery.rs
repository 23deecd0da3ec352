//! A model of lease, verify, deliver and settle: one message that hands an order over, two relays that may die or be late
//! at every step, an ERP that may commit late or lose what it was sent, a shop that cancels, and a duty desk.
//!
//! The promise (contract, "One transaction" and "The operation"): delivery is at least once, its effect is once; who lost
//! its lease changes nothing; a final state never changes; nothing is dropped. [`Action`] says which function of the
//! service each step stands for.

use stateright::{Checker, HasDiscoveries, Model};

mod properties;
mod state;
mod steps;

/// The attempts that a message has; in the service a setting.
const BUDGET: u8 = 2;

/// What follows when nobody knows whether the message arrived, and what the ERP promises: `erp::Verification`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verification {
    /// The ERP refuses a second order of one reference.
    LookThenSend,
    /// It does not, but it ends every request within the settle window.
    LookAndWait,
    /// It makes no second order of one message.
    SendAgain,
    /// It can neither be asked nor trusted.
    AskAPerson,
}

/// One way to build the protocol wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// `outbox::settle::settle` does not compare the token of the lease.
    NoFencing,
    /// `relay::deliver` sends without a look at what an earlier attempt left.
    SendsUnverified,
    /// "Not found" counts before the settle window is over.
    AbsenceCountsAtOnce,
    /// `outbox::lease::take` does not know that a lost relay may have sent.
    TakeoverWithoutDoubt,
    /// It knows, but counts the settle window from an older doubt that a look has removed since.
    TakeoverWithOldDoubt,
    /// The permission to send again without a look outlives the attempt that it was given for.
    PermissionStays,
    /// `outbox::withdraw_hand_over` takes back what the ERP may have.
    WithdrawsInDoubt,
    /// A relay sends without a look at how much of its lease is left.
    SendsLate,
    /// A refusal is final, although an earlier request may still come through.
    RefusalIsTheLastWord,
}

/// The protocol with one kind of ERP.
#[derive(Clone, Debug)]
struct Protocol {
    verification: Verification,
    flaw: Option<Flaw>,
}

/// Everything that the protocol knows, and what the ERP has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    message: Message,
    order: Order,
    relays: [Relay; 2],
    erp: Erp,
    /// How often a relay may still die.
    crashes: u8,
    /// How often one may still be so late that its lease is over.
    delays: u8,
    /// How often the duty desk may still ask for another try.
    retries: u8,
    /// The final state that the message had first.
    first_end: Option<Place>,
}

/// The message's row in the outbox.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Message {
    place: Place,
    /// The token of the newest lease. Tokens that nobody has any more are used again; see `State::rename`.
    token: u8,
    /// Whether the time of that lease is over.
    lease_is_over: bool,
    /// Whether the ERP may have it: the column `unknown_since`.
    doubt: Option<Since>,
    /// Whether a person has asked for it to be sent again although nobody can look.
    resend_asked: bool,
    /// The attempts that count against the budget.
    spent: u8,
}

/// The state of a message: `outbox::State`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Waiting,
    Leased,
    Parked,
    Delivered,
    Refused,
    Abandoned,
    Withdrawn,
}

/// The moment from which the settle window counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Since {
    window_is_over: bool,
}

/// The order as the shop sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Order {
    Accepted,
    Confirmed,
    Rejected,
    Cancelling,
    Cancelled,
}

/// How far a relay is with its attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Relay {
    Idle,
    /// It has a lease, and has done nothing yet.
    Leased(Lease),
    /// It may send, and knows what doubt there still is if it does not.
    MaySend(Lease, Doubt),
    /// Its request is on its way.
    Asking(Lease, Doubt),
    /// It knows how the attempt ended.
    Reporting(Lease, Report),
}

/// What a relay read when it leased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Lease {
    token: u8,
    doubt: Option<Since>,
    resend_asked: bool,
    spent: u8,
}

/// What an attempt leaves of the doubt: `relay::deliver::Doubt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Doubt {
    None,
    Kept,
    Arose,
}

/// How an attempt ended: `relay::deliver::Report`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Report {
    outcome: Outcome,
    doubt: Doubt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Outcome {
    /// The ERP has it, from this attempt or from one before.
    Taken,
    Refused,
    /// Surely not arrived.
    NotDelivered,
    Unknown,
    /// Unknown, and nobody but a person can tell.
    AskAPerson,
}

/// The other side.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Erp {
    /// Whether it takes this order as things are there now.
    takes_it: bool,
    /// How often that may still change.
    changes: u8,
    /// How many orders of our reference it has.
    orders: u8,
    /// Whether it has cancelled it.
    cancelled: bool,
    /// What was sent, and is not forgotten on either side.
    requests: Vec<Request>,
}

/// A request to create the order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Request {
    /// The lease under which it was sent: at most one request each.
    token: u8,
    /// What the ERP said, once it has decided.
    answer: Option<Outcome>,
    /// Whether it was sent before the moment from which the settle window counts.
    before_doubt: bool,
    /// Whether it was sent before the newest lease was over.
    before_lease_end: bool,
}

/// The steps. Between any two of them anything else may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// `outbox::lease::lease`: a relay takes the message, or takes it over. Relays have no names: the number is a place.
    Lease(usize),
    /// `relay::deliver::verify`, with an answer to the look where there is one.
    Verify(usize),
    /// The same, when the look fails.
    LookFails(usize),
    /// `relay::deliver::send`: the request leaves.
    Send(usize),
    /// The same, when no connection is made; or `relay::deliver::deliver` finds its lease nearly over.
    DoNotSend(usize),
    /// The answer to the request arrives.
    Hear(usize),
    /// `relay::deliver::in_time`: no answer came, or it was cut off.
    TimeOut(usize),
    /// `relay::settle::write`: message, order and operation in one transaction.
    Settle(usize),
    /// kill -9.
    Crash(usize),
    /// The lease ends by the database's clock.
    LeaseEnds,
    /// The settle window ends: the ERP has finished all that was sent before it began.
    WindowEnds,
    /// The ERP decides about a request, however late.
    Decide(u8),
    /// A request is lost before the ERP decides.
    Lose(u8),
    /// Somebody changes at the ERP what the order needs: it takes now what it refused, or the other way round.
    ErpChanges,
    /// `command::cancel_order`: withdraws the hand-over, or asks the ERP.
    Cancel,
    /// The message of the cancel, delivered behind the hand-over; the ERP agrees or says that it is too late.
    CancelAtErp(bool),
    /// `command::retry_operation` by the duty desk.
    Retry,
    /// `command::resolve_operation`, delivered: the person has seen it in the ERP.
    ResolveDelivered,
    /// `command::resolve_operation`, abandoned: the person has made sure that it is not there and will not come.
    Abandon,
}

impl Place {
    fn is_final(self) -> bool {
        match self {
            Place::Waiting | Place::Leased | Place::Parked => false,
            Place::Delivered | Place::Refused | Place::Abandoned | Place::Withdrawn => true,
        }
    }
}

const VERIFICATIONS: [Verification; 4] =
    [Verification::LookThenSend, Verification::LookAndWait, Verification::SendAgain, Verification::AskAPerson];

#[test]
fn an_order_reaches_the_erp_once_whatever_fails() {
    for verification in VERIFICATIONS {
        let protocol = Protocol { verification, flaw: None };
        let checker = protocol.checker().threads(2).spawn_bfs().join();
        println!("{verification:?}: {} states, {} deep", checker.unique_state_count(), checker.max_depth());
        assert!(checker.is_done(), "{verification:?}");
        checker.assert_properties();
    }
}

#[test]
fn every_flaw_of_the_delivery_is_found() {
    let flaws = [
        (Verification::LookAndWait, Flaw::NoFencing, properties::ONCE),
        (Verification::LookThenSend, Flaw::NoFencing, properties::FINAL),
        (Verification::LookAndWait, Flaw::SendsUnverified, properties::ONCE),
        (Verification::AskAPerson, Flaw::SendsUnverified, properties::ONCE),
        (Verification::LookAndWait, Flaw::AbsenceCountsAtOnce, properties::ONCE),
        (Verification::LookAndWait, Flaw::TakeoverWithoutDoubt, properties::ONCE),
        (Verification::LookAndWait, Flaw::TakeoverWithOldDoubt, properties::ONCE),
        (Verification::AskAPerson, Flaw::PermissionStays, properties::ONCE),
        (Verification::LookThenSend, Flaw::WithdrawsInDoubt, properties::ABSENT),
        (Verification::LookAndWait, Flaw::SendsLate, properties::ONCE),
        (Verification::LookThenSend, Flaw::RefusalIsTheLastWord, properties::ABSENT),
    ];
    for (verification, flaw, broken) in flaws {
        let protocol = Protocol { verification, flaw: Some(flaw) };
        let checker = protocol.checker().finish_when(HasDiscoveries::AllOf([broken].into())).spawn_bfs().join();
        let path = checker.discovery(broken).unwrap_or_else(|| panic!("{verification:?}, {flaw:?}: not found"));
        println!("{verification:?} with {flaw:?} breaks \"{broken}\":\n  {:?}", path.into_actions());
    }
}

#[test]
fn an_erp_that_refuses_a_second_order_forgives_a_relay_that_sends_late() {
    let protocol = Protocol { verification: Verification::LookThenSend, flaw: Some(Flaw::SendsLate) };
    let checker = protocol.checker().threads(2).spawn_bfs().join();
    assert!(checker.is_done());
    checker.assert_no_discovery(properties::ONCE);
}
