//! The headers of the contract: those that clients send and those that they get. Each is a component of the document.

use serde_json::{Value, json};
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{Ref, Required};

use super::schemas::{text, whole_number};
use crate::command::key;

/// A header that changes what a request gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestHeader {
    /// The client's name for its intent.
    IdempotencyKey,
    /// How long the client is willing to wait.
    Prefer,
    /// On a command: replace only this version.
    IfMatch,
    /// On a command: create only if there is nothing of this name.
    IfAbsent,
    /// On a read: answer only what is new.
    IfNoneMatch,
    /// The trace that the request belongs to.
    Traceparent,
}

impl RequestHeader {
    pub(super) const ALL: [RequestHeader; 6] = [
        RequestHeader::IdempotencyKey,
        RequestHeader::Prefer,
        RequestHeader::IfMatch,
        RequestHeader::IfAbsent,
        RequestHeader::IfNoneMatch,
        RequestHeader::Traceparent,
    ];

    fn name(self) -> &'static str {
        match self {
            RequestHeader::IdempotencyKey => "Idempotency-Key",
            RequestHeader::Prefer => "Prefer",
            RequestHeader::IfMatch => "If-Match",
            RequestHeader::IfAbsent | RequestHeader::IfNoneMatch => "If-None-Match",
            RequestHeader::Traceparent => "traceparent",
        }
    }

    fn doc(self) -> &'static str {
        match self {
            RequestHeader::IdempotencyKey => {
                "Your name for this intent: 1 to 255 visible ASCII characters, case-sensitive; a UUID is recommended. Make \
                 it once per intent, store it before the first send, and send it with every try. A quoted string \
                 (RFC 8941) and the bare token name the same key. Send the header once."
            }
            RequestHeader::Prefer => {
                "`wait=<seconds>` (RFC 7240): how long you are willing to wait. On a command it shortens the wait for a \
                 rival that is at work on the same key; on an operation it holds the answer until the operation changes. \
                 The server's own limit holds too."
            }
            RequestHeader::IfMatch => {
                "The `ETag` of the version that you know: it is replaced only if it still is this one. Part of the \
                 fingerprint. Send this or `If-None-Match`, not both."
            }
            RequestHeader::IfAbsent => {
                "`*`: it is made only if there is nothing of this name. Part of the fingerprint. Send this or `If-Match`, \
                 not both."
            }
            RequestHeader::IfNoneMatch => "The `ETag` that you have: 304 when it is still the present one.",
            RequestHeader::Traceparent => {
                "The trace of the request (W3C Trace Context), such as \
                 `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`. A valid one gives the `traceId` of log lines \
                 and problems; any other is ignored. Never part of the fingerprint."
            }
        }
    }

    fn schema(self) -> ObjectBuilder {
        let schema = ObjectBuilder::new().schema_type(Type::String);
        match self {
            RequestHeader::IdempotencyKey => schema.pattern(Some(key::PATTERN)),
            RequestHeader::IfAbsent => schema.pattern(Some(r"^\*$")),
            RequestHeader::IfMatch => schema.pattern(Some(ENTITY_TAGS)),
            _ => schema,
        }
    }

    /// The name of the component; two uses of one header are two components.
    fn component_name(self) -> &'static str {
        match self {
            RequestHeader::IfAbsent => "If-None-Match-any",
            _ => self.name(),
        }
    }

    /// A reference to the component of this header.
    pub(super) fn reference(self) -> Ref {
        Ref::new(format!("#/components/parameters/{}", self.component_name()))
    }

    /// The component: its name and what it is.
    pub(super) fn component(self) -> (&'static str, Parameter) {
        let is_key = self == RequestHeader::IdempotencyKey;
        let parameter = ParameterBuilder::new()
            .name(self.name())
            .parameter_in(ParameterIn::Header)
            .required(if is_key { Required::True } else { Required::False })
            .description(Some(self.doc()))
            .schema(Some(self.schema()))
            .example(is_key.then(|| json!(EXAMPLE_KEY)));
        (self.component_name(), parameter.build())
    }
}

/// `*` or entity tags in quotes, separated by commas (RFC 9110, section 13.1.1).
const ENTITY_TAGS: &str = r#"^(?:\*|(?:W/)?"[!#-~]*"(?: *, *(?:W/)?"[!#-~]*")*)$"#;

/// The key of the examples.
pub(super) const EXAMPLE_KEY: &str = "8e03978e-40d5-43dd-bc93-6894a57f9324";

/// A header of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerHeader {
    /// The key that the answer belongs to.
    IdempotencyKey,
    /// Whether the answer was recorded earlier.
    IdempotentReplayed,
    /// The end of the replay window.
    IdempotencyExpires,
    /// Where the made resource is.
    Location,
    /// The version of the resource.
    ETag,
    /// When to come back.
    RetryAfter,
    /// The trace of the present request.
    TraceId,
    /// How to authenticate.
    WwwAuthenticate,
    /// That the wish of `Prefer` was heeded.
    PreferenceApplied,
    /// Who may keep the answer.
    CacheControl,
}

impl AnswerHeader {
    pub(super) const ALL: [AnswerHeader; 10] = [
        AnswerHeader::IdempotencyKey,
        AnswerHeader::IdempotentReplayed,
        AnswerHeader::IdempotencyExpires,
        AnswerHeader::Location,
        AnswerHeader::ETag,
        AnswerHeader::RetryAfter,
        AnswerHeader::TraceId,
        AnswerHeader::WwwAuthenticate,
        AnswerHeader::PreferenceApplied,
        AnswerHeader::CacheControl,
    ];

    /// The name on the wire.
    pub(super) fn name(self) -> &'static str {
        match self {
            AnswerHeader::IdempotencyKey => "Idempotency-Key",
            AnswerHeader::IdempotentReplayed => "Idempotent-Replayed",
            AnswerHeader::IdempotencyExpires => "Idempotency-Expires",
            AnswerHeader::Location => "Location",
            AnswerHeader::ETag => "ETag",
            AnswerHeader::RetryAfter => "Retry-After",
            AnswerHeader::TraceId => "X-Trace-Id",
            AnswerHeader::WwwAuthenticate => "WWW-Authenticate",
            AnswerHeader::PreferenceApplied => "Preference-Applied",
            AnswerHeader::CacheControl => "Cache-Control",
        }
    }

    /// A reference to the component of this header.
    pub(super) fn reference(self) -> Ref {
        Ref::new(format!("#/components/headers/{}", self.name()))
    }

    /// The component.
    pub(super) fn component(self) -> Header {
        let (schema, doc, example): (ObjectBuilder, &str, Value) = match self {
            AnswerHeader::IdempotencyKey => (
                text("A key.").max_length(Some(key::MAX_LENGTH)),
                "The key that the answer belongs to, without quotes. On 2xx answers and on recorded refusals.",
                json!(EXAMPLE_KEY),
            ),
            AnswerHeader::IdempotentReplayed => (
                ObjectBuilder::new().schema_type(Type::Boolean),
                "`true` when this is the recorded answer of an earlier request, `false` the first time.",
                json!(false),
            ),
            AnswerHeader::IdempotencyExpires => (
                text("An HTTP date."),
                "Until when the answer is replayed (HTTP date). While the operation is not final: the replay window from now.",
                json!("Wed, 09 Dec 2026 08:15:31 GMT"),
            ),
            AnswerHeader::Location => (
                text("An absolute path of this service.").pattern(Some("^/")),
                "The path of what was made.",
                json!("/v1/orders/ord_019adb5a34c27f10b6c9f1b0d5a1e9c4"),
            ),
            AnswerHeader::ETag => (
                text("An entity tag, in quotes."),
                "The version of the resource; it changes with every visible change.",
                json!("\"1\""),
            ),
            AnswerHeader::RetryAfter => (
                whole_number("Seconds."),
                "Seconds after which to send the same request with the same key again.",
                json!(1),
            ),
            AnswerHeader::TraceId => (
                text("A W3C trace id.").pattern(Some("^[0-9a-f]{32}$")),
                "The trace id of this very request, also when the answer is a replay. Name it when you report a problem.",
                json!("4bf92f3577b34da6a3ce929d0e0e4736"),
            ),
            AnswerHeader::WwwAuthenticate => {
                (text("A challenge."), "How to authenticate (RFC 6750).", json!("Bearer realm=\"orders\""))
            }
            AnswerHeader::PreferenceApplied => {
                (text("The preference."), "The `wait` of `Prefer` that was heeded (RFC 7240).", json!("wait=5"))
            }
            AnswerHeader::CacheControl => (
                text("A directive."),
                "Only the client itself may keep the answer, and asks before it uses it.",
                json!("private, no-cache"),
            ),
        };
        HeaderBuilder::new().description(Some(doc)).schema(Some(schema)).example(Some(example)).build()
    }
}
