//! The model of the contract: what becomes of a key. It is told each try and its answer, and says where they part.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::ask::{Ask, Asked, Kind};
use super::rules::{Names, Outcome, Tenant};
use crate::harness::http::Answer;

/// Which tenant each client belongs to. The first and the last client have the same name.
pub const TENANT_OF: [usize; 3] = [0, 0, 1];

/// Everything that the service should know.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub tenants: [Tenant; 2],
    pub claims: BTreeMap<Scope, Claim>,
}

/// The scope of a key. The client stands for its tenant too.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scope {
    pub client: usize,
    pub command: Kind,
    pub key: String,
}

/// A key that was won.
#[derive(Clone, Debug)]
pub struct Claim {
    pub ask: Ask,
    pub operation: String,
    pub outcome: Outcome,
    /// The answer that was recorded.
    pub first: Answer,
    pub age: Age,
    /// Whether the cleaner has dropped the recorded body.
    pub is_body_dropped: bool,
}

/// How old a claim is, by its two windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Age {
    /// Within the replay window.
    Live,
    /// Past it, within the key memory.
    Spent,
    /// Past both.
    Forgotten,
}

/// Where the service and the model part.
pub type Verdict = Result<(), String>;

/// Says where two values part, if they do.
#[expect(clippy::needless_pass_by_value, reason = "callers compare values that they have just made")]
pub fn same<T: PartialEq + std::fmt::Debug>(what: &str, expected: T, found: T) -> Verdict {
    if expected == found { Ok(()) } else { Err(format!("{what}: expected {expected:?}, found {found:?}")) }
}

impl Asked {
    /// The scope of its key.
    pub fn scope(&self) -> Scope {
        Scope { client: self.client, command: self.ask.kind, key: self.key.clone() }
    }
}

impl Claim {
    /// Whether the operation has come to its end, so that its windows run.
    pub fn is_final(&self) -> bool {
        !matches!(self.outcome, Outcome::Done { goes_on: true, .. })
    }
}

impl Model {
    /// The tenant of a client.
    pub fn tenant(&self, client: usize) -> &Tenant {
        &self.tenants[TENANT_OF[client]]
    }

    /// Carries a try out, and compares the answer that the service gave.
    ///
    /// # Errors
    /// The first difference.
    pub fn judge(&mut self, asked: &Asked, answer: &Answer) -> Verdict {
        if asked.ask.kind == Kind::Put && asked.ask.if_match.is_none() && asked.ask.if_none_match.is_none() {
            return unrecorded(answer, 428, "PreconditionRequired");
        }
        let scope = asked.scope();
        match self.claims.get(&scope) {
            Some(claim) if claim.age != Age::Forgotten => claim.answer_again(asked, answer),
            Some(_) => {
                self.forget(&scope);
                self.execute(asked, answer)
            }
            None => self.execute(asked, answer),
        }
    }

    /// A key past its memory goes, its operation and the operation's messages with it.
    pub fn forget(&mut self, scope: &Scope) {
        let claim = self.claims.remove(scope).expect("only what is there is forgotten");
        self.tenants[TENANT_OF[scope.client]].messages.retain(|message| message.operation != claim.operation);
    }

    fn execute(&mut self, asked: &Asked, answer: &Answer) -> Verdict {
        let body = answer.json();
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        let link = text(&body["links"]["operation"]);
        let operation = link.strip_prefix("/v1/operations/").unwrap_or("").to_owned();
        // A refusal may name an order that exists.
        let made = if answer.status.is_success() { text(&body[asked.ask.kind.id_member()]) } else { String::new() };
        let names = Names { made, operation: operation.clone(), client: asked.client };
        self.is_new_name(&operation, "op_")?;
        let outcome = self.tenants[TENANT_OF[asked.client]].execute(&asked.ask, &names);
        first_answer(asked, &outcome, &operation, answer)?;
        let claim = Claim {
            ask: asked.ask.clone(),
            operation,
            outcome,
            first: answer.clone(),
            age: Age::Live,
            is_body_dropped: false,
        };
        self.claims.insert(asked.scope(), claim);
        Ok(())
    }

    fn is_new_name(&self, operation: &str, prefix: &str) -> Verdict {
        let is_known = self.claims.values().any(|claim| claim.operation == operation);
        same("the operation has a name of its own", (true, false), (operation.starts_with(prefix), is_known))
    }
}

impl Claim {
    fn answer_again(&self, asked: &Asked, answer: &Answer) -> Verdict {
        if asked.ask != self.ask {
            unrecorded(answer, 409, "IdempotencyKeyConflict")?;
            let differing = if self.age == Age::Live { differing_members(&self.ask, &asked.ask) } else { Vec::new() };
            let details = answer.json()["details"].clone();
            let pointers: Vec<Value> =
                details.as_array().into_iter().flatten().map(|detail| detail["pointer"].clone()).collect();
            return same("the members that differ", differing, pointers);
        }
        if self.age == Age::Spent {
            unrecorded(answer, 409, "IdempotencyKeyExpired")?;
            return same("the links of what it once made", self.links(), answer.json()["links"].clone());
        }
        let told = |answer: &Answer| {
            let header = |name| answer.header(name).map(str::to_owned);
            (answer.status, answer.text(), header("content-type"), header("location"), header("idempotency-key"))
        };
        same("the replay", told(&self.first), told(answer))?;
        same("Idempotent-Replayed", Some("true"), answer.header("idempotent-replayed"))?;
        same("Idempotency-Expires is there", true, answer.header("idempotency-expires").is_some())
    }

    fn links(&self) -> Value {
        let operation = format!("/v1/operations/{}", self.operation);
        match &self.outcome {
            Outcome::Done { .. } => json!({"self": self.first.json()["links"]["self"], "operation": operation}),
            Outcome::Refused { .. } => json!({ "operation": operation }),
        }
    }
}

/// The pointers of the top-level members that are not the same in both bodies.
fn differing_members(first: &Ask, second: &Ask) -> Vec<Value> {
    let members = |ask: &Ask| ask.body.as_object().expect("a body is an object").clone();
    let (first, second) = (members(first), members(second));
    let mut names: Vec<&String> = first.keys().chain(second.keys()).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| first.get(*name) != second.get(*name));
    names.into_iter().map(|name| Value::from(format!("/{name}"))).collect()
}

/// The answer to a try that was executed, or refused by the rules.
fn first_answer(asked: &Asked, outcome: &Outcome, operation: &str, answer: &Answer) -> Verdict {
    match outcome {
        Outcome::Done { status, state, id, .. } => {
            same("the status", (*status, None), (answer.status.as_u16(), answer.json()["error"].as_str()))?;
            let kind = asked.ask.kind;
            let location = own_path(kind, id);
            let links = json!({"self": location, "operation": format!("/v1/operations/{operation}")});
            let mut body = json!({"status": state, "operationId": operation, "links": links});
            body[kind.id_member()] = id.as_str().into();
            same("the body", body, answer.json())?;
            same("Content-Type", Some("application/json"), answer.header("content-type"))?;
            let location = (*status == 201).then_some(location.as_str());
            same("Location", location, answer.header("location"))?;
        }
        Outcome::Refused { status, code, order } => {
            problem(answer, *status, code)?;
            let body = answer.json();
            same("orderId", order.as_deref(), body["orderId"].as_str())?;
            same("the key in the problem", Some(asked.key.as_str()), body["idempotencyKey"].as_str())?;
            same("Location", None, answer.header("location"))?;
        }
    }
    same("Idempotency-Key", Some(asked.key.as_str()), answer.header("idempotency-key"))?;
    same("Idempotent-Replayed", Some("false"), answer.header("idempotent-replayed"))?;
    same("Idempotency-Expires is there", true, answer.header("idempotency-expires").is_some())
}

fn own_path(kind: Kind, id: &str) -> String {
    let escaped = super::spelling::Spelling::default().segment(id);
    match kind {
        Kind::Create | Kind::Put | Kind::Cancel => format!("/v1/orders/{escaped}"),
        Kind::Pay => format!("/v1/payments/{escaped}"),
        Kind::Stock => format!("/v1/stock/{escaped}"),
        Kind::Reserve | Kind::Release => format!("/v1/reservations/{escaped}"),
        Kind::Send => format!("/v1/messages/{escaped}"),
    }
}

pub fn problem(answer: &Answer, status: u16, code: &str) -> Verdict {
    let body = answer.json();
    let found = (answer.status.as_u16(), body["error"].as_str().unwrap_or("no problem"));
    same("the answer", (status, code), found)?;
    same("Content-Type", Some("application/problem+json"), answer.header("content-type"))?;
    same("advice to try again", json!(false), body["retry"]["advised"].clone())
}

/// A problem that leaves the key as it was.
pub fn unrecorded(answer: &Answer, status: u16, code: &str) -> Verdict {
    problem(answer, status, code)?;
    same("Idempotent-Replayed", None, answer.header("idempotent-replayed"))
}
