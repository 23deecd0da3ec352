//! The operations of the contract document: each command from its `Spec`, each read from its `Read`. A new command or read
//! appears here by being in its list.

use serde_json::{Value, json};
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::link::{Link, LinkBuilder};
use utoipa::openapi::path::{HttpMethod, Operation, OperationBuilder, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{ContentBuilder, Required, Response, ResponseBuilder, Schema};

use super::headers::{AnswerHeader, RequestHeader};
use super::problems::{self, Recording};
use super::schemas::{Schemas, links, one_of, text};
use crate::api::READS;
use crate::api::read::{Access, Read};
use crate::command::{Command, CommandVisitor, Method, Spec, Success};
use crate::problem::{Code, Kept};

const JSON: &str = "application/json";

/// The name of the security scheme.
pub(super) const BEARER: &str = "apiKey";

/// What the checks before the claim, the claim itself and the service can say to any command, in the order of the checks.
const OF_EVERY_COMMAND: [Code; 14] = [
    Code::Unauthenticated,
    Code::NotAcceptable,
    Code::Forbidden,
    Code::IdempotencyKeyMissing,
    Code::IdempotencyKeyInvalid,
    Code::UnsupportedMediaType,
    Code::PayloadTooLarge,
    Code::RequestTimeout,
    Code::MalformedRequest,
    Code::InvalidRequest,
    Code::IdempotencyKeyConflict,
    Code::IdempotencyKeyExpired,
    Code::RateLimited,
    Code::ServiceUnavailable,
];

/// One operation of the document, with what the document as a whole has to know of it.
pub(super) struct Described {
    pub(super) path: &'static str,
    pub(super) method: HttpMethod,
    pub(super) tag: String,
    pub(super) scope: Option<&'static str>,
    pub(super) codes: Vec<Code>,
    pub(super) operation: Operation,
}

/// Describes every command that it visits.
pub(super) struct Commands<'a> {
    pub(super) schemas: &'a mut Schemas,
    pub(super) described: Vec<Described>,
}

impl CommandVisitor for Commands<'_> {
    fn visit<C: Command + Clone>(&mut self) {
        self.described.push(command(self.schemas, &C::SPEC));
    }
}

fn command(schemas: &mut Schemas, spec: &Spec) -> Described {
    let tag = spec.name.split('.').next().unwrap_or(spec.name).to_owned();
    let mut codes = OF_EVERY_COMMAND.to_vec();
    codes.push(Code::InternalError);
    codes.extend(spec.refusals);
    let conditional = spec.refusals.contains(&Code::PreconditionFailed);
    if conditional {
        codes.push(Code::PreconditionRequired);
    }
    let mut operation = OperationBuilder::new()
        .tag(&tag)
        .operation_id(Some(camel_case(spec.name)))
        .summary(Some(spec.summary))
        .description(Some(command_description(spec)))
        .security(SecurityRequirement::new(BEARER, [spec.scope]))
        .request_body(Some(request_body(schemas, spec)));
    for name in path_parameters(spec.route) {
        operation = operation.parameter(path_parameter(name));
    }
    operation = operation.parameter_ref(RequestHeader::IdempotencyKey.reference());
    if conditional {
        operation = operation.parameter_ref(RequestHeader::IfMatch.reference());
        operation = operation.parameter_ref(RequestHeader::IfAbsent.reference());
    }
    operation = operation.parameter_ref(RequestHeader::Prefer.reference());
    operation = operation.parameter_ref(RequestHeader::Traceparent.reference());
    for success in spec.successes {
        operation = operation.response(success.status.to_string(), success_response(schemas, spec, success));
    }
    operation = operation.response("202", in_progress(schemas));
    for (status, response) in problems::responses(&codes, Recording::Command) {
        operation = operation.response(status, response);
    }
    let extension = json!({ "command": spec.name, "recorded": recorded_codes(spec) });
    let operation =
        operation.extensions(Some(ExtensionsBuilder::new().add("x-idempotency", extension).build())).build();
    let method = match spec.method {
        Method::Post => HttpMethod::Post,
        Method::Put => HttpMethod::Put,
    };
    Described { path: spec.route, method, tag, scope: Some(spec.scope), codes, operation }
}

fn command_description(spec: &Spec) -> String {
    format!(
        "{}\n\nCommand `{}`, scope `{}`. Send it again with the same key after a time-out, a 202, a 5xx or a lost \
         connection: it is carried out once, and every repeat gets the recorded answer. Recorded are success and these \
         refusals: {}. A new try after a refusal is a new intent and needs a new key.",
        spec.description,
        spec.name,
        spec.scope,
        recorded_codes(spec).iter().map(|code| format!("`{code}`")).collect::<Vec<_>>().join(", "),
    )
}

/// The refusals of a command that are recorded, by name.
fn recorded_codes(spec: &Spec) -> Vec<&'static str> {
    let codes = [Code::InvalidRequest].into_iter().chain(spec.refusals.iter().copied());
    codes.map(Code::entry).filter(|entry| entry.kept == Kept::Recorded).map(|entry| entry.name).collect()
}

fn request_body(schemas: &mut Schemas, spec: &Spec) -> RequestBody {
    // The document sorts examples by name, and Swagger UI begins with the first: the number keeps the order of the Spec.
    let examples = (1..).zip(spec.examples).map(|(number, (name, body))| {
        let example = ExampleBuilder::new().summary(name.replace('_', " ")).value(Some(json_of(body)));
        (format!("{number}-{}", name.replace(' ', "-")), example.build())
    });
    let content = ContentBuilder::new().schema(Some(schemas.sent(spec.body))).examples_from_iter(examples).build();
    let (required, note) = if spec.body_may_be_empty {
        (Required::False, " An empty body is the same as `{}`.")
    } else {
        (Required::True, "")
    };
    RequestBodyBuilder::new()
        .description(Some(format!(
            "`application/json` in UTF-8, at most 1 MiB by default, without `Content-Encoding`.{note}"
        )))
        .required(Some(required))
        .content(JSON, content)
        .build()
}

fn success_response(schemas: &mut Schemas, spec: &Spec, success: &Success) -> Response {
    let name = format!("{}Done", pascal_case(spec.name));
    let schema = schemas.named(&name, |_| done(success));
    let content = ContentBuilder::new().schema(Some(schema)).example(Some(json_of(success.example))).build();
    let response = ResponseBuilder::new().description(success.meaning).content(JSON, content);
    let made = (success.status == 201).then_some(AnswerHeader::Location);
    let headers = [
        AnswerHeader::IdempotencyKey,
        AnswerHeader::IdempotentReplayed,
        AnswerHeader::IdempotencyExpires,
        AnswerHeader::PreferenceApplied,
        AnswerHeader::TraceId,
    ];
    let response = with_headers(response, made.into_iter().chain(headers));
    let members = [success.id_member, "operationId"];
    members
        .iter()
        .flat_map(|member| links_by(member))
        .fold(response, |response, (name, link)| response.link(name, link))
        .build()
}

/// Links to the reads that a member of the answer is the path parameter of.
fn links_by(member: &str) -> impl Iterator<Item = (&'static str, Link)> {
    READS.iter().filter(move |read| path_parameters(read.path).eq([member])).map(move |read| {
        let link = LinkBuilder::new()
            .operation_id(read.name)
            .parameter(member, format!("$response.body#/{member}"))
            .description(read.summary);
        (read.name, link.build())
    })
}

fn done(success: &Success) -> Schema {
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some("What the command did; the present state is one link away."))
        .property("status", text("The state of the resource when the command was carried out."))
        .property(success.id_member, text("The id of the resource."))
        .property("operationId", text("The operation that stands for the key.").pattern(Some(OPERATION_ID)))
        .property("links", links(&["self", "operation"]))
        .required("status")
        .required(success.id_member)
        .required("operationId")
        .required("links")
        .build()
        .into()
}

const OPERATION_ID: &str = "^op_[0-9a-f]{32}$";

/// 202: another request with this key is at work.
fn in_progress(schemas: &mut Schemas) -> Response {
    let schema = schemas.named("InProgress", |_| {
        ObjectBuilder::new()
            .schema_type(Type::Object)
            .description(Some("Another request with this key is at work."))
            .property("status", one_of(&["processing"], "Always `processing`."))
            .property("operationId", text("The operation that stands for the key.").pattern(Some(OPERATION_ID)))
            .property("links", links(&["operation"]))
            .required("status")
            .required("operationId")
            .required("links")
            .build()
            .into()
    });
    let example = json!({
        "status": "processing",
        "operationId": "op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b",
        "links": { "operation": "/v1/operations/op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b" },
    });
    let content = ContentBuilder::new().schema(Some(schema)).example(Some(example)).build();
    let response = ResponseBuilder::new().content(JSON, content).description(
        "A request with this key is at work, and stayed so past the wait limit. Send the same command with the same key \
         again after `Retry-After`. The operation is 404 until the first attempt commits, and stays 404 if that rolls \
         back. Not recorded.",
    );
    let headers = [
        AnswerHeader::IdempotencyKey,
        AnswerHeader::RetryAfter,
        AnswerHeader::PreferenceApplied,
        AnswerHeader::TraceId,
    ];
    with_headers(response, headers).build()
}

/// Describes a read.
pub(super) fn read(schemas: &mut Schemas, read: &Read) -> Described {
    let (scope, access) = match read.access {
        Access::Open => (None, "Needs no API key.".to_owned()),
        Access::AnyKey => (None, "Any valid API key will do.".to_owned()),
        Access::Scope(scope) => (Some(scope), format!("Scope `{scope}`.")),
    };
    let mut operation = OperationBuilder::new()
        .tag(read.tag)
        .operation_id(Some(read.name))
        .summary(Some(read.summary))
        .description(Some(format!("{}\n\n{access} A read never looks at `Idempotency-Key`.", read.description)));
    operation = match read.access {
        // An empty requirement: no key is needed here.
        Access::Open => operation.security(SecurityRequirement::default()),
        _ => operation.security(SecurityRequirement::new(BEARER, scope)),
    };
    for name in path_parameters(read.path) {
        operation = operation.parameter(path_parameter(name));
    }
    for parameter in read.query {
        let parameter = ParameterBuilder::new()
            .name(parameter.name)
            .parameter_in(ParameterIn::Query)
            .required(Required::False)
            .description(Some(parameter.doc))
            .schema(Some((parameter.schema)()));
        operation = operation.parameter(parameter);
    }
    for header in read.headers.iter().chain(&[RequestHeader::Traceparent]) {
        operation = operation.parameter_ref(header.reference());
    }
    operation = operation.response("200", found(schemas, read));
    if read.headers.contains(&RequestHeader::IfNoneMatch) {
        let unchanged = ResponseBuilder::new().description("The version that you have is still the present one.");
        operation = operation.response("304", with_headers(unchanged, [AnswerHeader::ETag, AnswerHeader::TraceId]));
    }
    let codes = read_codes(read);
    for (status, response) in problems::responses(&codes, Recording::Read) {
        operation = operation.response(status, response);
    }
    Described {
        path: read.path,
        method: HttpMethod::Get,
        tag: read.tag.to_owned(),
        scope,
        codes,
        operation: operation.build(),
    }
}

fn read_codes(read: &Read) -> Vec<Code> {
    let mut codes = read.problems.to_vec();
    if read.access != Access::Open {
        codes.extend([
            Code::Unauthenticated,
            Code::NotAcceptable,
            Code::RateLimited,
            Code::ServiceUnavailable,
            Code::InternalError,
        ]);
    }
    if path_parameters(read.path).next().is_some() {
        codes.push(Code::MalformedRequest);
    }
    if matches!(read.access, Access::Scope(_)) {
        codes.push(Code::Forbidden);
    }
    codes
}

fn found(schemas: &mut Schemas, read: &Read) -> Response {
    let schema = (read.answer)(schemas);
    let content = ContentBuilder::new().schema(Some(schema)).example(Some(json_of(&(read.example)()))).build();
    let response = ResponseBuilder::new().description("The answer.").content(JSON, content);
    with_headers(response, read.answer_headers.iter().copied().chain([AnswerHeader::TraceId])).build()
}

fn with_headers(response: ResponseBuilder, headers: impl IntoIterator<Item = AnswerHeader>) -> ResponseBuilder {
    headers.into_iter().fold(response, |response, header| response.header_ref(header.name(), header.reference()))
}

/// The names between braces of a route template.
fn path_parameters(route: &'static str) -> impl Iterator<Item = &'static str> {
    route.split('{').skip(1).filter_map(|rest| rest.split('}').next())
}

fn path_parameter(name: &str) -> ParameterBuilder {
    let doc = match name.strip_suffix("Id") {
        Some(resource) => format!("The id of the {resource}."),
        None => format!("The {name}, percent-encoded where it holds reserved characters."),
    };
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(doc))
        // An id is made by a call before; a SKU can be tried out as it stands.
        .example((name == "sku").then(|| json!("ABC")))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).max_length(Some(255))))
}

fn camel_case(name: &str) -> String {
    let mut parts = name.split('.');
    parts.next().unwrap_or_default().to_owned() + &parts.map(capitalised).collect::<String>()
}

fn pascal_case(name: &str) -> String {
    name.split('.').map(capitalised).collect()
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// The examples are written by hand as JSON texts; the test of the document reads every one.
fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("an example of the contract is not JSON: {error}: {text}"))
}
