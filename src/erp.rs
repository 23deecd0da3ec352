//! The ERP as we see it: find an order by its reference, create it, cancel it, tell of a payment. Each kind of ERP is a
//! gateway: a file below this module and a line in [`Gateways::open`].
//!
//! A gateway never tries twice and never waits to try again; the relay alone decides that. What it must get right is the
//! failure it reports, above all whether the ERP may have done something ([`Failure::Unknown`]).

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::config::Secrets;
use crate::db;
use crate::json::{self, Json};
use crate::outbox::Kind;
use crate::outbox::connection::Connection;

mod http;
mod listing;
pub(crate) mod public_address;
pub mod sandbox;
mod signature;
pub(crate) mod target;
pub mod tryton;
pub mod webhook;

pub use listing::{Listed, Listing};

/// What a gateway gives back in time.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

/// One kind of ERP, connected for one tenant.
pub trait Gateway: Send + Sync {
    /// What follows when nobody knows whether a message of this kind arrived.
    fn verification(&self, kind: Kind) -> Verification;

    /// Asks whether the ERP is there and lets us in. Changes nothing. Says in words what it found. `now` is for what it signs.
    fn ping(&self, now: db::Instant) -> Pending<'_, String>;

    /// Looks for what the message would make. `None`: it is not there, as far as the ERP knows now.
    fn find<'a>(&'a self, delivery: &'a Delivery) -> Pending<'a, Option<Taken>>;

    /// Hands an order over.
    fn create<'a>(&'a self, delivery: &'a Delivery) -> Pending<'a, Taken>;

    /// Drives an order that the ERP has to the state it is wanted in. An ERP that does so by itself needs nothing. Returns the
    /// ERP's own name of the order where it has one only now.
    fn advance<'a>(&'a self, delivery: &'a Delivery) -> Pending<'a, Option<String>> {
        let _ = delivery;
        Box::pin(async { Ok(None) })
    }

    /// Asks for an order to be cancelled.
    fn cancel<'a>(&'a self, delivery: &'a Delivery) -> Pending<'a, Cancelled>;

    /// Tells that an order was paid.
    fn receive_payment<'a>(&'a self, delivery: &'a Delivery) -> Pending<'a, Taken>;

    /// Lists the orders that the ERP has of ours and that were made there since a moment, page by page: `after` is what the
    /// page before named as the next. It holds what came in under our names alone, whatever became of it.
    fn list<'a>(&'a self, since: db::Instant, after: Option<&'a str>) -> Pending<'a, Listing> {
        let _ = (since, after);
        Box::pin(async { Ok(Listing::CannotList) })
    }
}

/// How a doubt about an earlier attempt is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verification {
    /// By a look. The ERP itself refuses a second one of the same reference, so that "not found" allows another try at once.
    LookThenSend,
    /// By a look; but "not found" counts only when the ERP has had the time to finish what it may still be doing.
    LookAndWait,
    /// By sending again: the ERP makes no second one of it.
    SendAgain,
    /// Not at all: a person has to look.
    AskAPerson,
}

/// What the ERP has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The ERP's own name of it, where it told one.
    pub erp_reference: Option<String>,
    /// Whether it was there before this attempt.
    pub before: bool,
}

/// What the ERP said to a cancel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// It is cancelled now.
    Now,
    /// It was cancelled before.
    Before,
    /// It cannot be undone any more, in the ERP's words.
    TooLate(String),
    /// The ERP has no such order.
    NotFound,
}

/// Why something did not come about. The text is for people, one short sentence, without secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The ERP said no, and will say no again.
    #[error("{0}")]
    Refused(String),
    /// The ERP has something else under our name.
    #[error("{0}")]
    Conflict(String),
    /// The connection itself is wrong: key, host name, certificate, address. Surely nothing was done.
    #[error("{0}")]
    Misconfigured(String),
    /// Surely not arrived.
    #[error("{0}")]
    NotDelivered(String),
    /// The ERP did nothing and asks us to come back.
    #[error("{detail}")]
    Unavailable {
        /// What it said.
        detail: String,
        /// When it wants to be asked again, as it said it.
        retry_after: Option<Duration>,
    },
    /// Nobody here knows whether it was done.
    #[error("{0}")]
    Unknown(String),
}

/// A message on its way.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Its stable name, the same in every attempt.
    pub message_id: String,
    /// What it tells.
    pub kind: Kind,
    /// Our permanent name of the order inside the ERP.
    pub reference: String,
    /// The bytes that are sent, the same in every attempt.
    pub payload: String,
    /// The payload, parsed.
    pub document: Json,
    /// The W3C trace that it belongs to.
    pub trace_id: String,
    /// The number of this attempt, from 1.
    pub number: i32,
    /// The time of this attempt.
    pub now: db::Instant,
}

impl Delivery {
    /// Reads what is needed of a payload.
    ///
    /// # Errors
    /// [`Failure::Conflict`] for a payload that cannot be read: a person has to look.
    pub fn new(
        (message_id, kind): (&str, Kind),
        payload: &str,
        trace_id: &str,
        (number, now): (i32, db::Instant),
    ) -> Result<Delivery, Failure> {
        let document = json::parse(payload.as_bytes());
        let document = document.map_err(|_| Failure::Conflict("the stored message cannot be read".to_owned()))?;
        let reference = document.text("reference").map(str::to_owned);
        let reference = reference.ok_or_else(|| Failure::Conflict("the stored message has no reference".to_owned()))?;
        let (payload, trace_id) = (payload.to_owned(), trace_id.to_owned());
        Ok(Delivery { message_id: message_id.to_owned(), kind, reference, payload, document, trace_id, number, now })
    }
}

/// What all gateways of a process share.
#[allow(missing_debug_implementations, reason = "it holds secrets")]
pub struct Gateways {
    http: http::Client,
    sandbox: sandbox::Sandbox,
    tryton: tryton::Memory,
    secrets: Secrets,
}

impl Gateways {
    /// Prepares the gateways. `timeout` bounds a whole request to an ERP; private addresses are reached only where
    /// `allow_private` says so.
    #[must_use]
    pub fn new(secrets: Secrets, timeout: Duration, allow_private: bool) -> Gateways {
        let http = http::Client::new(timeout, allow_private);
        Gateways { http, sandbox: sandbox::Sandbox::default(), tryton: tryton::Memory::default(), secrets }
    }

    /// The gateway of a connection.
    ///
    /// # Errors
    /// [`Failure::Misconfigured`], in words that say what to change.
    pub fn open(&self, connection: &Connection) -> Result<Box<dyn Gateway>, Failure> {
        match connection.kind.as_str() {
            sandbox::KIND => Ok(Box::new(self.sandbox.of(&connection.tenant_id))),
            tryton::KIND => Ok(Box::new(tryton::Tryton::open(connection, &self.http, &self.secrets, &self.tryton)?)),
            webhook::KIND => Ok(Box::new(webhook::Webhook::open(connection, &self.http, &self.secrets)?)),
            other => {
                Err(Failure::Misconfigured(format!("there is no gateway '{other}'; known are {}", KINDS.join(", "))))
            }
        }
    }
}

/// The kinds of gateways.
pub const KINDS: &[&str] = &[sandbox::KIND, tryton::KIND, webhook::KIND];
