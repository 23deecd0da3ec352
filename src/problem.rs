//! The catalogue of problems: every code a client can meet, with its status, its title, whether to try again and what to
//! do about it. One table makes the answers, the documentation page and the enumeration in the OpenAPI document.

use serde::{Serialize, Serializer};

use crate::schema::Fault as Detail;

/// Whether sending again can help, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The same request gets the same answer; something has to change first.
    No,
    /// Nothing happened, or it is not known what happened: send the same request with the same key again.
    SameKey,
}

/// What becomes of the answer and of the idempotency key it came with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// A refusal: recorded under the key, and replayed byte for byte.
    Recorded,
    /// Nothing is recorded; the key is as free or as taken as it was.
    NotRecorded,
}

/// What the catalogue says about one code.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The code this row is about.
    pub code: Code,
    /// Its stable name, the member `error` of the answer.
    pub name: &'static str,
    /// HTTP status code.
    pub status: u16,
    /// One line for people, the same for every occurrence (RFC 9457, section 3.1.3).
    pub title: &'static str,
    /// What the client should do now; the member `message` of the answer.
    pub advice: &'static str,
    /// Whether sending again can help.
    pub retry: Retry,
    /// Whether the answer is recorded under the key.
    pub kept: Kept,
}

macro_rules! catalogue {
    ($($(#[$doc:meta])* $code:ident: $status:literal, $retry:ident, $kept:ident, $title:literal, $advice:literal;)*) => {
        /// The stable code of a problem. A code keeps its meaning and its status for ever; new codes may be added.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $($(#[$doc])* #[doc = $title] $code,)* }

        /// Every problem of the service, in the order of the documentation page.
        pub const CATALOGUE: &[Entry] = &[$(Entry {
            code: Code::$code, name: stringify!($code), status: $status, title: $title, advice: $advice,
            retry: Retry::$retry, kept: Kept::$kept,
        },)*];
    };
}

catalogue! {
    Unauthenticated: 401, No, NotRecorded,
        "The API key is missing, unknown or revoked",
        "Send 'Authorization: Bearer <api key>' with a key that is valid now. The idempotency key stays as it was.";
    Forbidden: 403, No, NotRecorded,
        "The API key may not do this",
        "Ask the operator for a key with the scope named in 'detail'. The idempotency key stays as it was.";
    IdempotencyKeyMissing: 400, No, NotRecorded,
        "The Idempotency-Key header is missing",
        "Make one key per intent (a UUID), store it with the intent before the first send, and send it with every try.";
    IdempotencyKeyInvalid: 400, No, NotRecorded,
        "The Idempotency-Key header is not valid",
        "Send the header once, with 1 to 255 visible ASCII characters. A UUID is recommended.";
    UnsupportedMediaType: 415, No, NotRecorded,
        "The body is not plain application/json",
        "Send 'Content-Type: application/json' and no 'Content-Encoding'.";
    PayloadTooLarge: 413, No, NotRecorded,
        "The body is too large",
        "Send at most the number of bytes named in 'detail'.";
    RequestTimeout: 408, SameKey, NotRecorded,
        "The body did not arrive in time",
        "Nothing happened. Send the same request with the same key again.";
    MalformedRequest: 400, No, NotRecorded,
        "The request cannot be read",
        "Correct what 'detail' names and send it again; the key is still free.";
    InvalidParameter: 400, No, NotRecorded,
        "A query parameter is not valid",
        "Correct every parameter listed in 'details'.";
    NotAcceptable: 406, No, NotRecorded,
        "No representation fits the Accept header",
        "Accept application/json (problems are application/problem+json), or leave the header out.";
    RouteNotFound: 404, No, NotRecorded,
        "There is nothing at this path",
        "See /openapi.json for the paths of this service.";
    MethodNotAllowed: 405, No, NotRecorded,
        "The path does not know this method",
        "Use a method that the Allow header of this answer lists.";
    RateLimited: 429, SameKey, NotRecorded,
        "Too many requests",
        "Wait for the seconds of the Retry-After header, then send the same request with the same key.";
    PreconditionRequired: 428, No, NotRecorded,
        "A precondition header is needed",
        "Send 'If-None-Match: *' to create or 'If-Match: <etag>' to replace.";
    InvalidRequest: 400, No, Recorded,
        "The body is not valid",
        "Correct every member listed in 'details'. A corrected body is a new intent and needs a new key.";
    OrderNotFound: 404, No, Recorded,
        "There is no such order",
        "Check the order id. To a command this answer is recorded: a new try needs a new key.";
    OperationNotFound: 404, No, Recorded,
        "There is no such operation",
        "Until its first try has committed an operation cannot be seen: send the command again with the same key.";
    DuplicateOrder: 409, No, Recorded,
        "This shop order exists already",
        "Use the order named in 'links'. A purchase of its own needs an externalOrderId of its own.";
    PreconditionFailed: 412, No, Recorded,
        "The precondition does not hold",
        "Read the order, decide anew, and send the new intent with its ETag and a new key.";
    OrderAlreadyCancelled: 409, No, Recorded,
        "The order is cancelled already",
        "Nothing is left to do; see the order named in 'links'.";
    OrderNotCancellable: 409, No, Recorded,
        "The order cannot be cancelled",
        "See the order's status; what the ERP has carried out is undone there.";
    OrderNotReplaceable: 409, No, Recorded,
        "The order cannot be replaced",
        "Cancel the order and send a new one, with an externalOrderId of its own.";
    OrderIdentityFixed: 409, No, Recorded,
        "The channel and the shop's id of an order never change",
        "Send the channel and externalOrderId that the order has, or create another order.";
    OrderWithdrawn: 409, No, Recorded,
        "The hand-over was withdrawn before the ERP was asked",
        "Nothing is left to do: a later command cancelled or replaced the order. Seen only in operations.";
    RefusedByErp: 409, No, Recorded,
        "The ERP refused it for good",
        "The last attempt of the operation says why. Correct the order and replace it, or send a new one. Seen only in operations.";
    RefusedByMailServer: 409, No, Recorded,
        "The mail server refused it for good",
        "The last attempt of the operation says why. Correct the order's customer.email if that is wrong, and send a new message. Seen only in operations.";
    Abandoned: 409, No, Recorded,
        "The duty desk gave it up",
        "Ask the operator why; the order is not in the ERP, or the mail not sent. Seen only in operations.";
    OperationNotUnresolved: 409, No, Recorded,
        "The operation does not wait for a person",
        "Only an unresolved operation can be retried or resolved; read it to see how it stands.";
    CurrencyMismatch: 409, No, Recorded,
        "The currency is not that of the order",
        "Use the currency of the order.";
    OrderClosed: 409, No, Recorded,
        "The order takes nothing more",
        "The order is rejected or cancelled. Follow 'links' to see how it stands.";
    Overpayment: 409, No, Recorded,
        "More than the order's total would be paid",
        "Check the amount; 'detail' says what is open. To a command this answer is recorded: a new try needs a new key.";
    DuplicatePayment: 409, No, Recorded,
        "The order has a payment with this reference",
        "Nothing is left to do: the payment named in 'links' is it. A payment of its own needs a reference of its own.";
    PaymentNotFound: 404, No, NotRecorded,
        "There is no such payment",
        "Check the payment id.";
    SkuNotFound: 404, No, NotRecorded,
        "There is no stock of this SKU",
        "Check the SKU and its percent-encoding. PUT the stock to make it known.";
    StockBelowReserved: 409, No, Recorded,
        "More is reserved than would be on hand",
        "Release reservations first, or send at least what 'detail' names. A new try needs a new key.";
    InsufficientStock: 409, No, Recorded,
        "The stock does not suffice",
        "Ask for less of what 'details' names, or wait for stock. To a command this answer is recorded: a new try needs a new key.";
    ReservationNotFound: 404, No, Recorded,
        "There is no such reservation",
        "Check the reservation id. To a command this answer is recorded: a new try needs a new key.";
    ReservationAlreadyReleased: 409, No, Recorded,
        "The reservation holds no stock any more",
        "Nothing is left to do: it was released or has expired, as 'detail' says.";
    NoRecipient: 409, No, Recorded,
        "The order has no customer to whom a mail can be sent",
        "Send the order with a customer.email to which mail can be sent. To a command this answer is recorded: a new try needs a new key.";
    NothingPaid: 409, No, Recorded,
        "Nothing of the order is paid",
        "Send the payment first: the message tells of it. To a command this answer is recorded: a new try needs a new key.";
    MessageNotFound: 404, No, NotRecorded,
        "There is no such message",
        "Check the message id.";
    IdempotencyKeyConflict: 409, No, NotRecorded,
        "The key was used for another request",
        "Send the first request unchanged to get its answer. A changed request is a new intent and needs a new key; never repair a conflict by sending the same purchase under a new key.";
    IdempotencyKeyExpired: 409, No, NotRecorded,
        "The key is spent",
        "The command was executed long ago and its answer is no longer kept. Follow 'links' to what it made; do not send it under a new key.";
    ServiceUnavailable: 503, SameKey, NotRecorded,
        "The service cannot answer right now",
        "Wait for the seconds of the Retry-After header, then send the same request with the same key.";
    InternalError: 500, SameKey, NotRecorded,
        "The service made a mistake",
        "Nothing was kept. Send the same request with the same key again; if it stays, report the traceId.";
}

impl Code {
    /// The row of the catalogue.
    #[must_use]
    pub fn entry(self) -> &'static Entry {
        &CATALOGUE[self as usize]
    }

    /// The code with this stable name.
    #[must_use]
    pub fn named(name: &str) -> Option<Code> {
        CATALOGUE.iter().find(|entry| entry.name == name).map(|entry| entry.code)
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.entry().name)
    }
}

/// Named links to resources, in the order in which they were added: absolute paths of this service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links(Vec<(&'static str, String)>);

impl Links {
    /// Adds a link; `rel` is its name in the JSON object.
    #[must_use]
    pub fn with(mut self, rel: &'static str, path: impl Into<String>) -> Links {
        self.0.push((rel, path.into()));
        self
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Links {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(rel, path)| (rel, path)))
    }
}

/// One "no" to one request (RFC 9457): what the edge or a command says, before it becomes bytes.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Which problem it is.
    pub code: Code,
    /// What is wrong with this very request. Never holds internal text, SQL, paths or personal data.
    pub detail: String,
    /// The faults of the body, or the differences of a conflict.
    pub details: Vec<Detail>,
    /// The order that the problem is about, where there is one.
    pub order_id: Option<String>,
    /// Where to go from here.
    pub links: Links,
    /// Seconds to wait before the next try; only with [`Retry::SameKey`].
    pub after_seconds: Option<u64>,
}

impl Problem {
    /// A problem of `code`; `detail` says what is wrong with this very request.
    #[must_use]
    pub fn new(code: Code, detail: impl Into<String>) -> Problem {
        Problem {
            code,
            detail: detail.into(),
            details: Vec::new(),
            order_id: None,
            links: Links::default(),
            after_seconds: None,
        }
    }

    /// A problem about an order, with the way to it.
    #[must_use]
    pub fn about_order(code: Code, detail: impl Into<String>, order_id: &str) -> Problem {
        Problem {
            order_id: Some(order_id.to_owned()),
            links: Links::default().with("order", format!("/v1/orders/{order_id}")),
            ..Problem::new(code, detail)
        }
    }

    /// The refusal of a body that is not valid, with all its faults.
    #[must_use]
    pub fn invalid(faults: Vec<Detail>) -> Problem {
        let detail = match faults.len() {
            1 => "The body has 1 fault.".to_owned(),
            n => format!("The body has {n} faults."),
        };
        Problem { details: faults, ..Problem::new(Code::InvalidRequest, detail) }
    }

    /// A fault of the service itself that will pass: 503 with the advice to come back after `seconds`.
    #[must_use]
    pub fn unavailable(detail: impl Into<String>, seconds: u64) -> Problem {
        Problem { after_seconds: Some(seconds), ..Problem::new(Code::ServiceUnavailable, detail) }
    }

    /// The HTTP status code.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.code.entry().status
    }

    /// The JSON document that is sent, and recorded when the problem is a refusal. `trace_id` is the trace of the request
    /// that met the problem first; `idempotency_key` is the key it came with, if it had a valid one.
    ///
    /// # Panics
    /// Never: a problem holds only text, numbers and lists.
    #[must_use]
    pub fn body(&self, trace_id: &str, idempotency_key: Option<&str>) -> String {
        let entry = self.code.entry();
        let document = Document {
            r#type: format!("urn:order-service:problem:{}", entry.name),
            title: entry.title,
            status: entry.status,
            detail: &self.detail,
            error: self.code,
            message: entry.advice,
            details: &self.details,
            trace_id,
            retry: RetryAdvice {
                advised: entry.retry == Retry::SameKey,
                same_key: entry.retry == Retry::SameKey,
                after_seconds: self.after_seconds,
            },
            idempotency_key,
            order_id: self.order_id.as_deref(),
            links: &self.links,
        };
        serde_json::to_string(&document).expect("a problem holds only text, numbers and lists")
    }
}

/// The members of a problem document, in the order in which they are written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    r#type: String,
    title: &'a str,
    status: u16,
    detail: &'a str,
    error: Code,
    message: &'a str,
    #[serde(skip_serializing_if = "<[Detail]>::is_empty")]
    details: &'a [Detail],
    trace_id: &'a str,
    retry: RetryAdvice,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    order_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Links::is_empty")]
    links: &'a Links,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RetryAdvice {
    advised: bool,
    same_key: bool,
    after_seconds: Option<u64>,
}
