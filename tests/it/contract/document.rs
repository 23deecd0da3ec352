//! The document is the one in the repository, and it is whole: every route, every command with every answer, every code.

use std::collections::BTreeSet;

use order_service::api;
use order_service::command::key::{IdempotencyKey, PATTERN};
use order_service::command::{Command, CommandVisitor, Spec, visit_commands};
use order_service::problem::CATALOGUE;
use serde_json::{Value, json};

use super::{faults, made, operations, resolved, stored};

/// The specs of all commands.
#[derive(Default)]
pub struct Specs(pub Vec<Spec>);

impl CommandVisitor for Specs {
    fn visit<C: Command + Clone>(&mut self) {
        self.0.push(C::SPEC);
    }
}

impl Specs {
    pub fn all() -> Vec<Spec> {
        let mut specs = Specs::default();
        visit_commands(&mut specs);
        specs.0
    }
}

#[test]
fn the_document_in_the_repository_is_the_one_that_the_code_makes() {
    let same = stored("openapi/openapi.json") == api::document::default_text();
    assert!(same, "openapi/openapi.json is not what the code makes: run `make openapi` and look at the difference");
}

#[test]
fn every_route_is_in_the_document_and_nothing_else() {
    let document = made();
    let described: BTreeSet<(String, &str)> =
        operations(&document).into_iter().map(|(method, path, _)| (method, path)).collect();
    // HEAD is GET without the body (RFC 9110, section 9.3.2), and is not described on its own.
    let routes: BTreeSet<(String, &str)> = api::routes().into_iter().filter(|(method, _)| method != "HEAD").collect();
    assert_eq!(described, routes);
    assert!(routes.len() > Specs::all().len());
}

#[test]
fn every_command_tells_every_answer_that_can_come() {
    let document = made();
    for spec in Specs::all() {
        let operation = &document["paths"][spec.route][spec.method.as_str().to_lowercase()];
        let responses = operation["responses"].as_object().unwrap_or_else(|| panic!("{} has no answers", spec.name));
        for status in ["202", "400", "401", "403", "408", "409", "413", "415", "429", "500", "503"] {
            assert!(responses.contains_key(status), "{}: {status} is not described", spec.name);
        }
        for success in spec.successes {
            assert!(responses.contains_key(&success.status.to_string()), "{}: {}", spec.name, success.status);
        }
        for entry in spec.refusals.iter().map(|code| code.entry()) {
            let response = &responses[&entry.status.to_string()];
            let examples = &response["content"]["application/problem+json"]["examples"];
            assert!(examples.get(entry.name).is_some(), "{}: no example of {}", spec.name, entry.name);
            assert!(response["description"].as_str().is_some_and(|text| text.contains(entry.name)), "{}", spec.name);
        }
        let parameters = operation["parameters"].as_array().expect("a command has parameters");
        let key = parameters.iter().map(|parameter| resolved(&document, parameter));
        let key = key.filter(|parameter| parameter["name"] == "Idempotency-Key").collect::<Vec<_>>();
        assert!(matches!(key.as_slice(), [key] if key["required"] == true), "{}", spec.name);
        let description = operation["description"].as_str().expect("a command has a description");
        assert!(description.contains(&format!("`{}`", spec.scope)), "{}: its scope is not named", spec.name);
    }
}

#[test]
fn the_enumeration_of_problems_is_the_catalogue() {
    let listed = &made()["components"]["schemas"]["Problem"]["properties"]["error"]["enum"];
    let names: Vec<&str> = CATALOGUE.iter().map(|entry| entry.name).collect();
    assert_eq!(*listed, json!(names));
}

#[test]
fn names_are_unique_and_everything_needs_a_key_but_the_open_reads() {
    let document = made();
    let mut names = BTreeSet::new();
    for (_, path, operation) in operations(&document) {
        let name = operation["operationId"].as_str().expect("an operation has an id");
        assert!(names.insert(name), "{name} names two operations");
        let open = ["/healthz", "/readyz", "/openapi.json"].contains(&path);
        let needs = operation["security"].as_array().expect("an operation says what it needs");
        assert_eq!(needs.iter().all(|need| need.get("apiKey").is_some()), !open, "{path}");
        assert_eq!(operation["responses"].get("401").is_some(), !open, "{path}");
    }
    assert_eq!(document["components"]["securitySchemes"]["apiKey"]["scheme"], "bearer");
}

#[test]
fn every_reference_leads_somewhere() {
    fn follow(document: &Value, value: &Value, followed: &mut usize) {
        match value {
            Value::Object(members) => {
                if members.get("$ref").is_some_and(Value::is_string) {
                    resolved(document, value);
                    *followed += 1;
                }
                members.values().for_each(|member| follow(document, member, followed));
            }
            Value::Array(elements) => elements.iter().for_each(|element| follow(document, element, followed)),
            _ => {}
        }
    }
    let (document, mut followed) = (made(), 0);
    follow(&document, &document, &mut followed);
    assert!(followed > 100, "{followed} references");
}

#[test]
fn the_pattern_of_a_key_takes_what_the_service_takes() {
    let schema = json!({ "type": "string", "pattern": PATTERN });
    let longest = "x".repeat(255);
    let (too_long, quoted) = (format!("{longest}x"), format!("\"{longest}\""));
    let quoted_too_long = format!("\"{too_long}\"");
    let escaped = format!("\"{}\"", r"\\".repeat(255));
    let mut values: Vec<String> = (0_u8..=127).map(|byte| char::from(byte).to_string()).collect();
    values.extend((0_u8..=127).map(|byte| format!("a{}b", char::from(byte))));
    values.extend((0_u8..=127).map(|byte| format!("\"a{}b\"", char::from(byte))));
    values.extend([longest, too_long, quoted, quoted_too_long, escaped]);
    let more =
        ["", "\"\"", "\"a", "a\"", "\"a\"b", "\"a\\b\"", "\"a\\\"\"", "\"a\\\\\"", "\"\\\"", "ä", "8e03978e-40d5"];
    values.extend(more.map(str::to_owned));
    for value in &values {
        // Blanks around a value are no part of it, and a pattern sees them.
        let service_takes = value.trim() == value && IdempotencyKey::from_headers(&[value.as_bytes()]).is_ok();
        assert_eq!(faults(&json!({}), &schema, &json!(value)).is_empty(), service_takes, "{value:?}");
    }
}
