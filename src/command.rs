//! The life of a command: [`run`] is the whole of it. Claim the key, execute, record the answer, in one transaction; or
//! find the key taken, and answer from what was recorded.
//!
//! Nothing here knows of orders. A command is one file below this module and one line in [`visit_commands`].

use std::time::{Duration, Instant};

use crate::db::{self, Db, Fault};
use crate::problem::{Code, Problem};
use crate::schema;

pub mod cancel_order;
pub mod claim;
pub mod create_order;
pub mod create_payment;
pub mod create_reservation;
pub mod difference;
pub mod fingerprint;
pub mod forget;
pub mod gate;
pub mod hand_over_again;
mod intervention;
pub mod key;
pub mod operation;
pub mod order_rows;
pub mod precondition;
pub mod put_order;
pub mod put_stock;
pub mod release_reservation;
pub mod reply;
pub mod resolve_operation;
pub mod retry_operation;
pub mod settlement;

#[cfg(test)]
mod tests;

use claim::Claim;
use fingerprint::{Fingerprint, Intent};
use key::IdempotencyKey;
pub use reply::{Answer, Done, Recorded, Stop};

/// Calls `visitor` for every command of the service. A new command is its file and its line here.
pub fn visit_commands(visitor: &mut impl CommandVisitor) {
    visitor.visit::<create_order::CreateOrder>();
    visitor.visit::<put_order::PutOrder>();
    visitor.visit::<cancel_order::CancelOrder>();
    visitor.visit::<create_payment::CreatePayment>();
    visitor.visit::<put_stock::PutStock>();
    visitor.visit::<create_reservation::CreateReservation>();
    visitor.visit::<release_reservation::ReleaseReservation>();
    visitor.visit::<retry_operation::RetryOperation>();
    visitor.visit::<resolve_operation::ResolveOperation>();
}

/// Carries a command out, once: the claim, its effects, its messages and its recorded answer commit together or not at all.
///
/// `command` is what the body said, or the refusal of a body that is not valid, which is recorded like any other.
///
/// # Errors
/// A [`Fault`]: nothing happened and the key is free, except after [`Fault::CommitUnknown`].
pub fn run<C: Command>(db: &mut Db, call: &Call, command: Result<C, Problem>) -> Result<Answer, Fault> {
    let lock_wait = call.patience();
    db.transaction(lock_wait, |db| match claim::take(db, call)? {
        Claim::Mine { now } => {
            let mut tx = Tx { db, call, now, lock_wait };
            let outcome = command.map_err(Stop::from).and_then(|command| command.execute(&mut tx));
            claim::record(&mut tx, outcome)
        }
        Claim::Taken(past) => past.answer(call),
    })
}

/// [`run`], and again where the database asks for it; and a wait for the key that was too long becomes an answer.
///
/// # Errors
/// As [`run`].
pub fn run_patiently<C: Command + Clone>(
    db: &mut Db,
    call: &Call,
    command: &Result<C, Problem>,
) -> Result<Answer, Fault> {
    let mut tries_left = SERIALIZATION_TRIES;
    loop {
        match run(db, call, command.clone()) {
            Err(Fault::Serialization(_)) if tries_left > 1 => tries_left -= 1,
            Err(Fault::ClaimHeld) if claim::another_can_be_made(db, call) => {
                call.turn.held_elsewhere();
                return Ok(Answer::InProgress);
            }
            result => return result,
        }
    }
}

/// How often a transaction is run that the database refuses for its rivals (SQLSTATE 40001) before the client hears 503.
const SERIALIZATION_TRIES: u32 = 3;

/// A request that changes state; one intent of the client.
pub trait Command: Sized + Send + 'static {
    /// What the edge and the documentation need to know.
    const SPEC: Spec;

    /// Makes the command from what is asked for: path, preconditions and body. Pure: no clock, no database.
    ///
    /// # Errors
    /// `InvalidRequest` with every fault of the body at once, which is recorded under the key; or a problem that is never
    /// recorded, such as `PreconditionRequired`, which is answered before the claim.
    fn parse(asked: &Intent) -> Result<Self, Problem>;

    /// Carries it out inside the transaction that claimed the key. It looks before it writes, or writes in a way that
    /// can only succeed or do nothing: a refusal has nothing to undo.
    ///
    /// # Errors
    /// [`Stop::Refused`] is the rules' no, and is recorded; [`Stop::Fault`] undoes all, the claim too.
    fn execute(self, tx: &mut Tx<'_>) -> Result<Done, Stop>;
}

/// What the edge and the documentation need to know of a command.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Its name in the scope of a key, in logs, metrics and operations: `orders.create`.
    pub name: &'static str,
    /// HTTP method.
    pub method: Method,
    /// Route template: `/v1/orders/{orderId}`.
    pub route: &'static str,
    /// The scope that the API key needs.
    pub scope: &'static str,
    /// The table of its body.
    pub body: &'static schema::Object,
    /// Whether an empty body counts as `{}`.
    pub body_may_be_empty: bool,
    /// One line for the contract document.
    pub summary: &'static str,
    /// What a client developer has to know, in Markdown.
    pub description: &'static str,
    /// Bodies that work as they stand: a name and a JSON text each.
    pub examples: &'static [(&'static str, &'static str)],
    /// The answers of a command that was carried out: status, meaning and example.
    pub successes: &'static [Success],
    /// The refusals of its own, beside an invalid body.
    pub refusals: &'static [Code],
}

/// One successful answer, for the contract document.
#[derive(Clone, Copy, Debug)]
pub struct Success {
    /// HTTP status code.
    pub status: u16,
    /// What it means.
    pub meaning: &'static str,
    /// The member that holds the id of the resource.
    pub id_member: &'static str,
    /// A JSON text.
    pub example: &'static str,
}

/// The methods that commands use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// HTTP POST.
    Post,
    /// HTTP PUT.
    Put,
}

impl Method {
    /// The method as it stands in a request line, and in the fingerprint.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Post => "POST",
            Method::Put => "PUT",
        }
    }
}

/// Something that wants to see every command type once: the routes, the contract document, the tests.
pub trait CommandVisitor {
    /// Called once for each command.
    fn visit<C: Command + Clone>(&mut self);
}

/// One try of a client to have a command carried out.
#[derive(Debug)]
pub struct Call {
    /// The tenant of the caller.
    pub tenant_id: String,
    /// The application that asks, whichever of its API keys it used.
    pub client_id: String,
    /// [`Spec::name`].
    pub command: &'static str,
    /// The client's name for its intent.
    pub key: IdempotencyKey,
    /// The name of the operation, derived from the four parts above.
    pub operation_id: String,
    /// What is asked for, ready to be compared with what the key stands for.
    pub intent: Intent,
    /// The fingerprint of the intent, made before the transaction begins.
    pub fingerprint: Fingerprint,
    /// The keyed digests of the body's members, for a later conflict; made before the transaction begins.
    pub member_digests: String,
    /// W3C trace id of the request.
    pub trace_id: String,
    /// Until when the database may let the call wait for a rival of its key.
    pub deadline: Instant,
    /// The turn at the gate, kept until the transaction is over.
    pub turn: gate::Turn,
    /// How long answers and keys are remembered.
    pub retention: Retention,
}

impl Call {
    /// How long the call may still wait for a rival.
    fn patience(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

/// The two windows of a key. Both count from the moment its operation became final.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// How long the recorded answer is replayed.
    pub replay_window: Duration,
    /// How long a spent key is remembered; at least the replay window.
    pub key_memory: Duration,
}

/// The open transaction of a command whose claim was won.
#[allow(missing_debug_implementations, reason = "connections of Diesel have no Debug")]
pub struct Tx<'a> {
    /// The connection, inside the transaction.
    pub db: &'a mut Db,
    /// The call that won the claim.
    pub call: &'a Call,
    /// The database's clock at the claim: the one time of everything that the command writes.
    pub now: db::Instant,
    /// How long a statement waits for a lock, unless [`Db::wait_for_locks`] says otherwise: the patience for the key, which
    /// may be nothing.
    pub lock_wait: Duration,
}
