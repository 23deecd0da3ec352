//! What the document declares of problems: of each operation the codes, under which status, and with which headers.

use std::collections::{BTreeMap, BTreeSet};

use order_service::problem::Code;
use serde_json::{Value, json};

use crate::contract::{operations, resolved};

/// The media type of every problem.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// One operation of the document.
pub struct Operation {
    /// Its `operationId`.
    pub name: String,
    /// HTTP method, in upper case.
    pub method: String,
    /// Path template.
    pub path: String,
    /// The name of the command; reads have none.
    pub command: Option<String>,
    /// The scope that it needs.
    pub scope: Option<String>,
    /// Its problems by status.
    pub problems: BTreeMap<u16, Declared>,
}

/// What is declared for one status.
pub struct Declared {
    /// The codes that share it.
    pub codes: BTreeSet<Code>,
    /// The names of the headers, in lower case.
    pub headers: BTreeSet<String>,
}

impl Operation {
    /// Every operation that the document describes.
    pub fn all(document: &Value) -> Vec<Operation> {
        operations(document)
            .into_iter()
            .map(|(method, path, described)| Operation {
                name: text(&described["operationId"]).expect("an operation has an id"),
                method,
                path: path.to_owned(),
                command: text(&described["x-idempotency"]["command"]),
                scope: text(&described["security"][0]["apiKey"][0]),
                problems: problems(document, &described["responses"]),
            })
            .collect()
    }

    /// Its codes, in the order of the catalogue.
    pub fn codes(&self) -> BTreeSet<Code> {
        self.problems.values().flat_map(|declared| declared.codes.iter().copied()).collect()
    }

    /// Whether the code is declared, under the status that the catalogue gives it.
    pub fn declares(&self, code: Code) -> bool {
        self.problems.get(&code.entry().status).is_some_and(|declared| declared.codes.contains(&code))
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn problems(document: &Value, responses: &Value) -> BTreeMap<u16, Declared> {
    let responses = responses.as_object().expect("an operation has answers").iter();
    let numbered = responses.map(|(status, response)| (status.parse().expect("a status"), response));
    numbered.filter(|(status, _)| *status >= 400).map(|(status, it)| (status, declared(document, status, it))).collect()
}

/// One code for each example; an example says the same code and status as its place in the document.
fn declared(document: &Value, status: u16, response: &Value) -> Declared {
    let content = &response["content"][PROBLEM_JSON];
    assert_eq!(content["schema"], json!({"$ref": "#/components/schemas/Problem"}), "{status}");
    let examples = content["examples"].as_object().expect("a problem has an example of each code");
    let code = |(name, example): (&String, &Value)| {
        let example = &resolved(document, example)["value"];
        assert_eq!((&example["error"], &example["status"]), (&json!(name), &json!(status)));
        Code::named(name).unwrap_or_else(|| panic!("{name} is not in the catalogue"))
    };
    let headers = response["headers"].as_object().into_iter().flat_map(|headers| headers.keys());
    Declared {
        codes: examples.iter().map(code).collect(),
        headers: headers.map(|name| name.to_ascii_lowercase()).collect(),
    }
}
