//! What came, against what is declared: every problem is looked at as it comes, and the sum of them at the end.

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::Validator;
use order_service::problem::{Code, Retry};
use serde_json::{Value, json};

use super::declared::Operation;
use crate::contract::{closed, faults_by, validator};
use crate::harness::http::Answer;

/// Headers of the transport, which no operation declares; those of CORS beside them.
const OF_EVERY_ANSWER: &[&str] = &["connection", "content-length", "content-type", "date", "vary"];

/// What has come so far.
pub struct Ledger {
    schema: Validator,
    met: BTreeSet<(String, Code)>,
    headers: BTreeMap<(String, u16), BTreeSet<String>>,
}

impl Ledger {
    /// An empty one, for the problems of this document.
    pub fn of(document: &Value) -> Ledger {
        let schema = validator(&closed(document), &json!({"$ref": "#/components/schemas/Problem"}));
        Ledger { schema, met: BTreeSet::new(), headers: BTreeMap::new() }
    }

    /// Says that `answer` is just the problem `code`, as it is declared for the operation, and notes that it came.
    pub fn note(&mut self, operation: &Operation, code: Code, answer: &Answer) {
        let place = format!("{} {code:?}", operation.name);
        self.is_problem(&place, code, answer);
        assert!(operation.declares(code), "{place} came, and is not declared: {}", answer.text());
        let status = code.entry().status;
        let declared = &operation.problems[&status].headers;
        let ours = answer.headers.keys().map(reqwest::header::HeaderName::as_str);
        let ours: BTreeSet<String> = ours
            .filter(|name| !OF_EVERY_ANSWER.contains(name) && !name.starts_with("access-control-"))
            .map(str::to_owned)
            .collect();
        assert!(ours.is_subset(declared), "{place}: of {ours:?} only {declared:?} are declared");
        self.headers.entry((operation.name.clone(), status)).or_default().extend(ours);
        self.met.insert((operation.name.clone(), code));
    }

    /// Says that `answer` is the problem `code` as the catalogue has it.
    pub fn is_problem(&self, place: &str, code: Code, answer: &Answer) {
        let entry = code.entry();
        assert_eq!(answer.status.as_u16(), entry.status, "{place}: {}", answer.text());
        assert_eq!(answer.error(), entry.name, "{place}: {}", answer.text());
        let body = answer.json();
        assert_eq!(faults_by(&self.schema, &body), Vec::<String>::new(), "{place}: {body:#}");
        let said = (&body["status"], &body["title"], &body["message"], &body["type"]);
        let kind = format!("urn:order-service:problem:{}", entry.name);
        assert_eq!(said, (&json!(entry.status), &json!(entry.title), &json!(entry.advice), &json!(kind)), "{place}");

        let advised = entry.retry == Retry::SameKey;
        let seconds = answer.header("retry-after").map(|text| text.parse::<u64>().expect("whole seconds"));
        let retry = json!({"advised": advised, "sameKey": advised, "afterSeconds": seconds});
        assert_eq!(body["retry"], retry, "{place}: the body and Retry-After");
        assert!(seconds.is_none_or(|seconds| advised && seconds > 0), "{place}: {seconds:?}");
        // Nobody knows when a mistake of ours is mended; whatever else passes, passes in a time that can be told.
        assert_eq!(seconds.is_some(), advised && code != Code::InternalError, "{place}: Retry-After");
        assert_eq!(answer.header("www-authenticate").is_some(), code == Code::Unauthenticated, "{place}");
        assert_eq!(answer.header("x-trace-id"), body["traceId"].as_str(), "{place}");
    }

    /// Says that all has come that is declared, codes and headers, but for what `exempt` lets go.
    pub fn is_complete(&self, operations: &[Operation], exempt: impl Fn(&Operation, Code) -> bool) {
        let mut missing = Vec::new();
        for operation in operations {
            for (status, declared) in &operation.problems {
                let place = (operation.name.clone(), *status);
                let due = declared.codes.iter().filter(|code| !exempt(operation, **code));
                let absent: Vec<Code> =
                    due.copied().filter(|code| !self.met.contains(&(operation.name.clone(), *code))).collect();
                missing.extend(absent.iter().map(|code| format!("{} {code:?}", operation.name)));
                if let Some(seen) = self.headers.get(&place) {
                    assert!(
                        !absent.is_empty() || seen == &declared.headers,
                        "{place:?}: {seen:?} came, {:?} are declared",
                        declared.headers
                    );
                }
            }
        }
        assert!(
            missing.is_empty(),
            "declared, but nothing provokes it; add a recipe to tests/it/every_problem, or do not declare it: {missing:#?}"
        );
    }
}
