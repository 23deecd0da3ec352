//! `GET /v1/idempotency-policy`: what a client may rely on, as this service is configured.

use actix_web::{HttpResponse, web};
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};

use super::State;
use super::caller::Caller;
use super::document::schemas::{Schemas, text, whole_number};
use super::read::{Access, Read};
use crate::config::Config;
use crate::policy::Policy;

/// The read.
pub static GET: Read = Read {
    path: "/v1/idempotency-policy",
    route: || web::route().to(get),
    name: "idempotencyPolicyGet",
    tag: "service",
    access: Access::AnyKey,
    summary: "Read the idempotency policy",
    description: "What is a key, what is recorded, and how long it is remembered. Times stand as ISO 8601 durations and as \
        whole seconds, rounded down. Read it when your application starts, and give up retrying before the replay window ends.",
    query: &[],
    headers: &[],
    answer: schema,
    example: || serde_json::to_string(&Policy::of(&Config::defaults())).expect("the policy holds only JSON"),
    answer_headers: &[],
    problems: &[],
};

async fn get(state: web::Data<State>, _caller: Caller) -> HttpResponse {
    HttpResponse::Ok().json(Policy::of(&state.config))
}

fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
    schemas.named("IdempotencyPolicy", |_| policy().build().into()).into()
}

fn policy() -> ObjectBuilder {
    let members: [(&str, RefOr<Schema>); 12] = [
        ("keyHeader", text("The header that carries the key.").into()),
        ("key", key().into()),
        ("scope", words("What together names one intent.")),
        ("fingerprint", fingerprint().into()),
        ("recorded", recorded().into()),
        ("replayWindow", duration("How long the recorded answer is replayed.")),
        ("replayWindowSeconds", whole_number("The same in whole seconds, rounded down.").into()),
        ("keyMemory", duration("How long a spent key is remembered, from the same moment.")),
        ("keyMemorySeconds", whole_number("The same in whole seconds, rounded down.").into()),
        ("windowsCountFrom", text("From when both windows count.").into()),
        ("waitLimit", duration("How long a request waits for a rival of its key before it is answered with 202.")),
        ("waitLimitSeconds", whole_number("The same in whole seconds, rounded down.").into()),
    ];
    object("What a client may rely on.", members)
}

fn key() -> ObjectBuilder {
    object(
        "What is a key.",
        [
            (
                "pattern",
                text("A regular expression (ECMA-262) over the header's value, without the blanks around it.").into(),
            ),
            ("minLength", whole_number("The fewest characters, without quotes.").into()),
            ("maxLength", whole_number("The most characters, without quotes.").into()),
            ("caseSensitive", yes_or_no("Whether `a` and `A` are two keys.")),
            ("recommended", text("What to use where there is a choice.").into()),
        ],
    )
}

fn fingerprint() -> ObjectBuilder {
    object(
        "How two requests with one key are compared.",
        [
            (
                "version",
                text("The version that new keys are stored with; older ones are compared by their own.").into(),
            ),
            ("covers", words("What is compared; everything else is not.")),
        ],
    )
}

fn recorded() -> ObjectBuilder {
    object(
        "Which answers are recorded under the key and replayed.",
        [
            ("successes", yes_or_no("Whether 200 and 201 are.")),
            ("errors", words("The codes of the refusals that are.")),
            ("never", words("The codes that are not.")),
        ],
    )
}

fn object<const N: usize>(doc: &str, members: [(&str, RefOr<Schema>); N]) -> ObjectBuilder {
    let object = ObjectBuilder::new().schema_type(Type::Object).description(Some(doc));
    members.into_iter().fold(object, |object, (name, schema)| object.property(name, schema).required(name))
}

fn duration(doc: &str) -> RefOr<Schema> {
    text(&format!("{doc} An ISO 8601 duration in days, hours, minutes and seconds.")).pattern(Some("^P")).into()
}

fn words(doc: &str) -> RefOr<Schema> {
    let word = ObjectBuilder::new().schema_type(Type::String);
    Schema::Array(ArrayBuilder::new().description(Some(doc)).items(word).build()).into()
}

fn yes_or_no(doc: &str) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::Boolean).description(Some(doc)).into()
}
