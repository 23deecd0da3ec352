//! The problems in the contract document: the schema of a problem, an example of each code, and the answers in which codes of
//! one status share a description.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::{Value, json};
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder, Schema, example::Example};

use super::headers::{AnswerHeader, EXAMPLE_KEY};
use super::schemas::{Schemas, links, text, whole_number};
use crate::api::answer::PROBLEM_JSON;
use crate::problem::{CATALOGUE, Code, Kept, Links, Problem};
use crate::schema::{Fault, code};

/// Whether the answers of an operation are recorded under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recording {
    /// It is a command: refusals are recorded.
    Command,
    /// It is a read: nothing is.
    Read,
}

/// The answers for `codes`: one for each status, with the codes that share it.
pub(super) fn responses(codes: &[Code], recording: Recording) -> BTreeMap<String, Response> {
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for entry in CATALOGUE.iter().filter(|entry| codes.contains(&entry.code)) {
        by_status.entry(entry.status).or_default().push(entry.code);
    }
    by_status.into_iter().map(|(status, codes)| (status.to_string(), response(&codes, recording))).collect()
}

fn response(codes: &[Code], recording: Recording) -> Response {
    let mut description = String::new();
    for entry in codes.iter().map(|code| code.entry()) {
        let kept = match (recording, entry.kept) {
            (Recording::Command, Kept::Recorded) => " Recorded and replayed.",
            (Recording::Command, Kept::NotRecorded) => " Not recorded.",
            (Recording::Read, _) => "",
        };
        let separator = if description.is_empty() { "" } else { "\n" };
        let _ = write!(description, "{separator}- `{}`: {}.{kept} {}", entry.name, entry.title, entry.advice);
    }
    let examples = codes.iter().map(|code| (code.entry().name, example_reference(*code)));
    let content =
        ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).examples_from_iter(examples).build();
    let response = ResponseBuilder::new().description(description).content(PROBLEM_JSON, content);
    headers(codes, recording)
        .fold(response, |response, header| response.header_ref(header.name(), header.reference()))
        .build()
}

/// The headers that problems of these codes can bear.
fn headers(codes: &[Code], recording: Recording) -> impl Iterator<Item = AnswerHeader> {
    let any = |wanted: fn(&Code) -> bool| codes.iter().any(wanted);
    let recorded = recording == Recording::Command && any(|code| code.entry().kept == Kept::Recorded);
    let waits = any(|code| matches!(code, Code::RequestTimeout | Code::RateLimited | Code::ServiceUnavailable));
    let challenges = any(|code| *code == Code::Unauthenticated);
    [
        (true, AnswerHeader::TraceId),
        (recorded, AnswerHeader::IdempotencyKey),
        (recorded, AnswerHeader::IdempotentReplayed),
        (recorded, AnswerHeader::IdempotencyExpires),
        (recorded, AnswerHeader::PreferenceApplied),
        (waits, AnswerHeader::RetryAfter),
        (challenges, AnswerHeader::WwwAuthenticate),
    ]
    .into_iter()
    .filter_map(|(borne, header)| borne.then_some(header))
}

fn example_reference(code: Code) -> RefOr<Example> {
    RefOr::Ref(Ref::new(format!("#/components/examples/{}", code.entry().name)))
}

/// The components: an example of each of `codes`.
pub(super) fn examples(codes: &BTreeSet<Code>) -> impl Iterator<Item = (&'static str, Example)> {
    codes.iter().map(|code| {
        let entry = code.entry();
        (entry.name, ExampleBuilder::new().summary(entry.title).value(Some(example(*code))).build())
    })
}

/// What the service would send, made by the code that sends it.
fn example(code: Code) -> Value {
    let entry = code.entry();
    let with_key = entry.kept == Kept::Recorded && entry.status != 404
        || matches!(code, Code::IdempotencyKeyConflict | Code::IdempotencyKeyExpired);
    let body = sample(code).body("4bf92f3577b34da6a3ce929d0e0e4736", with_key.then_some(EXAMPLE_KEY));
    serde_json::from_str(&body).expect("a problem is JSON")
}

fn sample(code: Code) -> Problem {
    const ORDER: &str = "ord_019adb5a34c27f10b6c9f1b0d5a1e9c4";
    let operation = "/v1/operations/op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b";
    match code {
        Code::InvalidRequest => Problem::invalid(vec![
            Fault {
                pointer: "/currency".to_owned(),
                code: code::REQUIRED,
                message: "`currency` is required.".to_owned(),
            },
            Fault {
                pointer: "/items/0/qty".to_owned(),
                code: code::TOO_SMALL,
                message: "This must be greater than 0.".to_owned(),
            },
        ]),
        Code::ServiceUnavailable => Problem::unavailable("The database cannot be used right now. Nothing happened.", 1),
        Code::RateLimited => {
            Problem { after_seconds: Some(1), ..Problem::new(code, "Too many requests came at once.") }
        }
        Code::RequestTimeout => {
            Problem { after_seconds: Some(1), ..Problem::new(code, "The body did not arrive within 10s.") }
        }
        Code::Forbidden => Problem::new(code, "This needs the scope 'orders:write', which the API key does not have."),
        Code::IdempotencyKeyConflict => Problem {
            links: Links::default().with("self", format!("/v1/orders/{ORDER}")).with("operation", operation),
            ..Problem::new(code, "Another request was made with this key before. This one was not executed.")
        },
        Code::DuplicateOrder | Code::IdempotencyKeyExpired => Problem {
            order_id: Some(ORDER.to_owned()),
            links: Links::default().with("order", format!("/v1/orders/{ORDER}")).with("operation", operation),
            ..Problem::new(code, format!("{}.", code.entry().title))
        },
        _ => Problem::new(code, format!("{}.", code.entry().title)),
    }
}

/// Adds the component `Problem`.
pub(super) fn add_schema(schemas: &mut Schemas) {
    schemas.named("Problem", |schemas| {
        schemas.named("ProblemDetail", |_| detail().build().into());
        problem().build().into()
    });
}

fn problem() -> ObjectBuilder {
    let codes = CATALOGUE.iter().map(|entry| entry.name);
    let status = whole_number("The HTTP status code of this answer.").minimum(Some(400)).maximum(Some(599));
    let details = ArrayBuilder::new()
        .items(Ref::from_schema_name("ProblemDetail"))
        .description(Some("Every fault of the body or the query, all at once; or the differences of a conflict."));
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some("A problem (RFC 9457). Branch on `error`; show `message` and `detail` to people."))
        .property("type", text("A URN made of the code.").pattern(Some("^urn:order-service:problem:[A-Za-z]+$")))
        .property("title", text("What kind of problem it is, the same for every occurrence."))
        .property("status", status)
        .property("detail", text("What is wrong with this very request."))
        .property(
            "error",
            text("The stable code. It keeps its meaning and its status for ever; a later release may add codes.")
                .enum_values(Some(codes)),
        )
        .property("message", text("What to do now."))
        .property("details", details)
        .property(
            "traceId",
            text("The W3C trace id of the request that met the problem first; it is in the log line too.")
                .pattern(Some("^[0-9a-f]{32}$")),
        )
        .property("retry", retry())
        .property("idempotencyKey", text("The key that the request came with."))
        .property("orderId", text("The order that the problem is about."))
        .property("links", links(&[]))
        .required("type")
        .required("title")
        .required("status")
        .required("detail")
        .required("error")
        .required("message")
        .required("traceId")
        .required("retry")
}

fn retry() -> Schema {
    let yes_or_no = |doc: &str| ObjectBuilder::new().schema_type(Type::Boolean).description(Some(doc));
    let seconds = whole_number("Seconds to wait before that; `null` where the service does not say.")
        .schema_type(SchemaType::Array(vec![Type::Integer, Type::Null]));
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some("Whether sending again can help, and how."))
        .property("advised", yes_or_no("Whether to send the same request again."))
        .property("sameKey", yes_or_no("Whether to send it with the same idempotency key; never with another."))
        .property("afterSeconds", seconds)
        .required("advised")
        .required("sameKey")
        .required("afterSeconds")
        .build()
        .into()
}

fn detail() -> ObjectBuilder {
    let codes = format!("Which rule is broken, a stable code. For bodies: {}.", code::ALL.join(", "));
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some("One fault. It never repeats the value that was sent."))
        .property("pointer", text("Where: a JSON Pointer (RFC 6901) into the body, or the name of the query parameter; empty is the whole."))
        .property("code", text(&codes))
        .property("message", text("What is allowed."))
        .required("pointer")
        .required("code")
        .required("message")
        .examples([json!({"pointer": "/items/0/qty", "code": "TooSmall", "message": "This must be greater than 0."})])
}
