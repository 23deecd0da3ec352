//! The contract document against the code, and the code against the document.

mod document;
mod errors_page;
mod examples;
mod served;

use std::fs;
use std::path::Path;

use jsonschema::Validator;
use order_service::api;
use serde_json::{Value, json};

/// The document that the code makes.
fn made() -> Value {
    serde_json::from_str(&api::document::default_text()).expect("the document is JSON")
}

/// A file of the repository.
fn stored(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every operation of the document: method in upper case, path, and what it says.
pub fn operations(document: &Value) -> Vec<(String, &str, &Value)> {
    let paths = document["paths"].as_object().expect("the document has paths");
    let mut operations = Vec::new();
    for (path, item) in paths {
        for (method, operation) in item.as_object().expect("a path has methods") {
            operations.push((method.to_uppercase(), path.as_str(), operation));
        }
    }
    operations
}

/// What a value stands for: itself, or the component that it refers to.
pub fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(reference) => {
            let pointer = reference.trim_start_matches('#');
            document.pointer(pointer).unwrap_or_else(|| panic!("{reference} leads nowhere"))
        }
        None => value,
    }
}

/// The document with every object of its schemas closed: a member that no schema names is then a fault.
pub fn closed(document: &Value) -> Value {
    fn close(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.values_mut().for_each(close);
                if members.contains_key("properties") && !members.contains_key("additionalProperties") {
                    members.insert("additionalProperties".to_owned(), Value::Bool(false));
                }
            }
            Value::Array(elements) => elements.iter_mut().for_each(close),
            _ => {}
        }
    }
    let mut document = document.clone();
    close(&mut document["components"]["schemas"]);
    document
}

/// What is wrong with `value`, by a schema of the document.
fn faults(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    faults_by(&validator(document, schema), value)
}

/// A schema of the document, ready to be asked many times.
pub fn validator(document: &Value, schema: &Value) -> Validator {
    let whole = json!({ "allOf": [schema], "components": { "schemas": document["components"]["schemas"] } });
    jsonschema::draft202012::options()
        .should_validate_formats(true)
        .build(&whole)
        .unwrap_or_else(|error| panic!("a schema of the document is none: {error}"))
}

/// What is wrong with `value`, by this validator.
pub fn faults_by(validator: &Validator, value: &Value) -> Vec<String> {
    validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
}
