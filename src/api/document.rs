//! The contract document (OpenAPI 3.1), generated from the lists of commands and reads, and Swagger UI on top of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use actix_web::http::header::LOCATION;
use actix_web::{HttpResponse, Route, web};
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::PathsBuilder;
use utoipa::openapi::schema::{AdditionalProperties, ComponentsBuilder, ObjectBuilder, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::tag::{Tag, TagBuilder};
use utoipa::openapi::{
    Components, Info, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, PathItem, ServerBuilder,
};
use utoipa_swagger_ui::{Config as SwaggerConfig, SwaggerUi};

use super::read::{Access, Read};
use super::{READS, State};
use crate::api_key::SCOPES;
use crate::command::visit_commands;
use crate::config::Config;
use crate::policy::Policy;
use crate::problem::Code;
use headers::{AnswerHeader, RequestHeader};
use operations::{BEARER, Commands, Described};
use schemas::Schemas;

pub mod headers;
mod operations;
mod problems;
pub mod schemas;

/// Which times the document tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// Those of the settings' defaults, in the document that stands in the repository.
    Default,
    /// Those of the running service.
    Configured,
}

/// The document as `order-service openapi` prints it and as it stands in `openapi/openapi.json`: with the default times.
#[must_use]
pub fn default_text() -> String {
    text(&Config::defaults(), Times::Default)
}

/// The document of a service with these settings, as JSON with a line break at its end.
#[must_use]
pub fn text(config: &Config, times: Times) -> String {
    let mut text = document(config, times).to_pretty_json().expect("the document holds only JSON");
    text.push('\n');
    text
}

/// `GET /openapi.json`.
pub static GET: Read = Read {
    path: "/openapi.json",
    route: || web::route().to(serve),
    name: "serviceContract",
    tag: "service",
    access: Access::Open,
    summary: "Read this document",
    description: "This document, with the times that the service is configured with. Swagger UI shows it at `/docs/`.",
    query: &[],
    headers: &[],
    answer: |_| {
        ObjectBuilder::new()
            .schema_type(Type::Object)
            .description(Some("An OpenAPI 3.1 document."))
            .additional_properties(Some(AdditionalProperties::FreeForm(true)))
            .into()
    },
    example: || r#"{"openapi":"3.1.0"}"#.to_owned(),
    answer_headers: &[],
    problems: &[],
};

async fn serve(state: web::Data<State>) -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(state.contract.clone())
}

/// Adds Swagger UI at `/docs/`, and the way from `/docs` to it.
pub fn configure_swagger_ui(service: &mut web::ServiceConfig) {
    service.route("/docs", redirect_to_docs());
    let config = SwaggerConfig::from("/openapi.json")
        .try_it_out_enabled(true)
        .persist_authorization(true)
        .display_request_duration(true);
    service.service(SwaggerUi::new("/docs/{_:.*}").config(config));
}

fn redirect_to_docs() -> Route {
    web::get().to(|| async { HttpResponse::PermanentRedirect().insert_header((LOCATION, "/docs/")).finish() })
}

fn document(config: &Config, times: Times) -> OpenApi {
    let policy = Policy::of(config);
    let mut schemas = Schemas::default();
    problems::add_schema(&mut schemas);
    let mut commands = Commands { schemas: &mut schemas, described: Vec::new() };
    visit_commands(&mut commands);
    let mut described = commands.described;
    described.extend(READS.iter().map(|read| operations::read(&mut schemas, read)));
    let tags = tags(&described);
    let codes = described.iter().flat_map(|described| described.codes.iter().copied()).collect();
    let mut paths = PathsBuilder::new();
    for Described { path, method, operation, .. } in described {
        paths = paths.path(path, PathItem::new(method, operation));
    }
    let policy_json = serde_json::to_value(&policy).expect("the policy holds only JSON");
    let mut document = OpenApiBuilder::new()
        .info(info(&policy, config, times))
        .servers(Some([ServerBuilder::new()
            .url("/")
            .description(Some("The service that serves this document"))
            .build()]))
        .paths(paths)
        .components(Some(components(schemas, &codes)))
        .tags(Some(tags))
        .build();
    document.extensions = Some(ExtensionsBuilder::new().add("x-idempotency", policy_json).build());
    document
}

fn info(policy: &Policy, config: &Config, times: Times) -> Info {
    let which_times = match times {
        Times::Default => {
            "These are the defaults; an operator can set others. What holds is in `GET /v1/idempotency-policy`, and in the \
             document that the service serves."
        }
        Times::Configured => "These are the times that this service is configured with.",
    };
    let description = include_str!("document/introduction.md")
        .replace("{which_times}", which_times)
        .replace("{fingerprint_version}", policy.fingerprint.version)
        .replace("{replay_window}", &words(config.replay_window))
        .replace("{replay_window_iso}", &policy.replay_window)
        .replace("{key_memory}", &words(config.key_memory))
        .replace("{key_memory_iso}", &policy.key_memory)
        .replace("{wait_limit}", &words(config.wait_limit))
        .replace("{wait_limit_iso}", &policy.wait_limit);
    InfoBuilder::new()
        .title("Order service")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(description))
        .license(Some(LicenseBuilder::new().name("MIT").identifier(Some("MIT")).build()))
        .build()
}

/// A duration for people: in days where it is whole days, else with its units.
fn words(duration: Duration) -> String {
    const DAY: u64 = 86_400;
    match duration.as_secs() {
        DAY => "1 day".to_owned(),
        seconds if seconds > 0 && seconds % DAY == 0 && duration.subsec_nanos() == 0 => {
            format!("{} days", seconds / DAY)
        }
        _ => humantime::format_duration(duration).to_string(),
    }
}

fn components(schemas: Schemas, codes: &BTreeSet<Code>) -> Components {
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("osk_ and 64 hexadecimal digits")
        .description(Some(
            "The API key of a client application, made by `order-service key add`. It is checked on every call, replays \
             too; each operation names the scope that it needs.",
        ))
        .build();
    let mut components = ComponentsBuilder::new().security_scheme(BEARER, SecurityScheme::Http(bearer));
    for (name, schema) in schemas.into_components() {
        components = components.schema(name, schema);
    }
    for header in RequestHeader::ALL {
        let (name, parameter) = header.component();
        components = components.parameter(name, parameter);
    }
    for header in AnswerHeader::ALL {
        components = components.header(header.name(), header.component());
    }
    for (code, example) in problems::examples(codes) {
        components = components.example(code, example);
    }
    components.build()
}

/// A tag for each resource, in the order in which they are met, with the scopes that its operations need.
fn tags(described: &[Described]) -> Vec<Tag> {
    let mut scopes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut names: Vec<&str> = Vec::new();
    for Described { tag, scope, .. } in described {
        if !names.contains(&tag.as_str()) {
            names.push(tag);
        }
        let of_tag = scopes.entry(tag).or_default();
        of_tag.extend(scope.filter(|scope| !of_tag.contains(scope)));
    }
    let describe = |name: &str| {
        let meaning = |scope: &&str| {
            let meaning = SCOPES.iter().find(|(known, _)| known == scope).map_or("", |(_, meaning)| meaning);
            format!("`{scope}`: {meaning}")
        };
        match scopes[name].as_slice() {
            [] => "No scope is needed.".to_owned(),
            scopes => format!("Scopes: {}.", scopes.iter().map(meaning).collect::<Vec<_>>().join("; ")),
        }
    };
    names.iter().map(|name| TagBuilder::new().name(*name).description(Some(describe(name))).build()).collect()
}
