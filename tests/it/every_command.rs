//! What every command keeps, whatever it does: the list of commands is the program's own, so that a new one is held to it.

pub mod recipes;

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use order_service::api_key::SCOPES;
use order_service::command::claim::operation_id;
use order_service::command::{Command, CommandVisitor, Spec, visit_commands};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::database::Database;
use crate::harness::http::{Answer, Caller, send};
use crate::harness::rival::Rival;
use crate::harness::world::{CLIENT, TENANT, World, on_both_databases, on_postgres};
use recipes::{Call, RECIPES, Recipe, Step};

/// The commands of the program, each with its recipe.
fn commands() -> Vec<(Spec, &'static Recipe)> {
    struct Specs(Vec<Spec>);
    impl CommandVisitor for Specs {
        fn visit<C: Command + Clone>(&mut self) {
            self.0.push(C::SPEC);
        }
    }
    let mut specs = Specs(Vec::new());
    visit_commands(&mut specs);
    let recipe = |name: &str| {
        let found = RECIPES.iter().find(|recipe| recipe.command == name);
        found.unwrap_or_else(|| panic!("{name} has no recipe: add one to tests/it/every_command/recipes.rs"))
    };
    specs.0.into_iter().map(|spec| (spec, recipe(spec.name))).collect()
}

/// A client that may do everything.
pub fn client(world: &World) -> Caller {
    let scopes: Vec<&str> = SCOPES.iter().map(|(name, _)| *name).collect();
    world.caller(TENANT, CLIENT, &scopes)
}

/// The members of the answers so far, by name.
pub type Names = BTreeMap<String, String>;

/// `text` with every `{name}` replaced.
pub fn filled(text: &str, names: &Names) -> String {
    names.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

/// Makes what has to be there before a command.
async fn prepare(recipe: &Recipe, client: &Caller, database: &Database) -> Names {
    take_steps(recipe.command, recipe.before, client, database).await
}

/// Makes what has to be there before, once for each `purpose`, and returns the members of the answers.
pub async fn take_steps(purpose: &str, steps: &[Step], client: &Caller, database: &Database) -> Names {
    let mut names = Names::new();
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Sql(statement) => database.execute(&filled(statement, &names)),
            Step::Call(call) => {
                let answer = ask(client, call, &names, Some(&format!("{purpose}-before-{number}"))).await;
                assert!(answer.status.is_success(), "{purpose}: {}", answer.text());
                let Value::Object(members) = answer.json() else { panic!("an answer is an object") };
                names.extend(
                    members.iter().filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))),
                );
            }
        }
    }
    names
}

/// Sends a call under a key, or without one.
pub async fn ask(client: &Caller, call: &Call, names: &Names, key: Option<&str>) -> Answer {
    send(request(client, call, names, key)).await
}

/// A call under a key, or without one, for a test to add to.
pub fn request(client: &Caller, call: &Call, names: &Names, key: Option<&str>) -> reqwest::RequestBuilder {
    let method = call.method.parse::<Method>().expect("a method");
    let mut request = client.request(method, &filled(call.path, names)).header("Content-Type", "application/json");
    for (name, value) in call.headers {
        request = request.header(*name, *value);
    }
    if let Some(key) = key {
        request = request.header("Idempotency-Key", key);
    }
    request.body(filled(call.body, names))
}

/// The call with a body that no command takes: an unknown member.
pub fn with_bad_body(call: &Call) -> Call {
    Call { body: r#"{"noSuchMember":"s3cret"}"#, ..*call }
}

/// Says that `replay` is `first` again, byte for byte.
pub fn is_replay_of(replay: &Answer, first: &Answer, command: &str) {
    assert_eq!(replay.status, first.status, "{command}: {}", replay.text());
    assert_eq!(replay.body, first.body, "{command}");
    for name in ["content-type", "location", "idempotency-key"] {
        assert_eq!(replay.header(name), first.header(name), "{command}: {name}");
    }
    assert_eq!(first.header("idempotent-replayed"), Some("false"), "{command}");
    assert_eq!(replay.header("idempotent-replayed"), Some("true"), "{command}");
}

/// Says that the replay window ends where the operation says; or, where it is not final, a window from now.
fn expires_rightly(answer: &Answer, operation: &Value, command: &str) {
    let header = answer.header("idempotency-expires").expect("it is on every keyed answer");
    let expires = DateTime::parse_from_rfc2822(header).expect("an HTTP date").to_utc();
    let instant = |member: &str| -> Option<DateTime<Utc>> {
        operation[member].as_str().map(|text| DateTime::parse_from_rfc3339(text).expect("RFC 3339").to_utc())
    };
    let window = TimeDelta::days(7);
    if let Some(completed) = instant("completedAt") {
        let until = instant("expiresAt").expect("a final operation has an end of its window");
        assert_eq!(until - completed, window, "{command}");
        assert_eq!(expires.timestamp(), until.timestamp(), "{command}");
    } else {
        let date = DateTime::parse_from_rfc2822(answer.header("date").expect("an answer has a date")).expect("a date");
        assert_eq!(instant("expiresAt"), None, "{command}");
        assert!((expires - date.to_utc() - window).abs() < TimeDelta::minutes(1), "{command}: {expires}");
    }
}

on_both_databases! {
    async fn without_a_key_nothing_happens(world: World) {
        let client = client(&world);
        for (spec, recipe) in commands() {
            let names = prepare(recipe, &client, world.database()).await;
            let before = world.database().everything();
            let answer = ask(&client, &recipe.call, &names, None).await.expect(400);
            assert_eq!(answer.error(), "IdempotencyKeyMissing", "{}", spec.name);
            assert_eq!(world.database().everything(), before, "{}", spec.name);
        }
    }

    async fn who_asks_is_looked_at_before_anything_else(world: World) {
        let client = client(&world);
        for (spec, recipe) in commands() {
            let names = prepare(recipe, &client, world.database()).await;
            let other = SCOPES.iter().map(|(name, _)| *name).find(|name| *name != spec.scope).expect("there are several");
            let powerless = world.caller(TENANT, CLIENT, &[other]);
            // The key is done: knowing it opens nothing.
            let done = ask(&client, &recipe.call, &names, Some(spec.name)).await;
            assert!(done.status.is_success(), "{}: {}", spec.name, done.text());
            let before = world.database().everything();
            for key in [Some(spec.name), None, Some("not a key")] {
                let stranger = ask(&world.stranger(), &recipe.call, &names, key).await.expect(401);
                assert_eq!(stranger.error(), "Unauthenticated", "{}", spec.name);
                let refused = ask(&powerless, &with_bad_body(&recipe.call), &names, key).await.expect(403);
                assert_eq!(refused.error(), "Forbidden", "{}", spec.name);
                assert!(refused.json()["detail"].as_str().is_some_and(|detail| detail.contains(spec.scope)));
            }
            assert_eq!(world.database().everything(), before, "{}", spec.name);
        }
    }

    async fn a_repeat_gets_the_same_bytes_and_changes_nothing(world: World) {
        let client = client(&world);
        for (spec, recipe) in commands() {
            let names = prepare(recipe, &client, world.database()).await;
            let first = ask(&client, &recipe.call, &names, Some(spec.name)).await;
            let declared = spec.successes.iter().any(|success| success.status == first.status.as_u16());
            assert!(declared, "{}: {}", spec.name, first.text());
            let body = first.json();
            assert_eq!(body["operationId"], operation_id(TENANT, CLIENT, spec.name, spec.name), "{}", spec.name);
            let location = (first.status == 201).then(|| body["links"]["self"].as_str().expect("a path"));
            assert_eq!(first.header("location"), location, "{}", spec.name);

            let before = world.database().everything();
            let replay = ask(&client, &recipe.call, &names, Some(spec.name)).await;
            is_replay_of(&replay, &first, spec.name);
            assert_eq!(world.database().everything(), before, "{}", spec.name);

            let operation = client.get(body["links"]["operation"].as_str().expect("a path")).await.expect(200).json();
            assert_eq!(operation["command"], spec.name);
            expires_rightly(&first, &operation, spec.name);
            expires_rightly(&replay, &operation, spec.name);
        }
    }

    async fn another_body_under_the_key_is_a_conflict(world: World) {
        let client = client(&world);
        for (spec, recipe) in commands() {
            let names = prepare(recipe, &client, world.database()).await;
            let done = ask(&client, &recipe.call, &names, Some(spec.name)).await;
            assert!(done.status.is_success(), "{}: {}", spec.name, done.text());
            let before = world.database().everything();
            let conflict = ask(&client, &with_bad_body(&recipe.call), &names, Some(spec.name)).await.expect(409);
            assert_eq!(conflict.error(), "IdempotencyKeyConflict", "{}", spec.name);
            assert_eq!(conflict.header("idempotent-replayed"), None, "{}", spec.name);
            let problem = conflict.json();
            assert_eq!(problem["idempotencyKey"], spec.name);
            let details = problem["details"].as_array().expect("it says which members differ").iter();
            let pointers: Vec<&Value> = details.map(|detail| &detail["pointer"]).collect();
            assert!(pointers.contains(&&json!("/noSuchMember")), "{}: {pointers:?}", spec.name);
            assert!(!conflict.text().contains("s3cret"), "{}: {}", spec.name, conflict.text());
            assert_eq!(world.database().everything(), before, "{}", spec.name);
        }
    }

    async fn a_refusal_is_recorded_and_leaves_nothing_else(world: World) {
        let client = client(&world);
        for (spec, recipe) in commands() {
            let names = prepare(recipe, &client, world.database()).await;
            let done = ask(&client, &recipe.call, &names, Some(spec.name)).await;
            assert!(done.status.is_success(), "{}: {}", spec.name, done.text());
            let (refused, code) = recipe.refused;
            for (call, code, key) in
                [(refused, code, format!("{}-no", spec.name)), (with_bad_body(&recipe.call), "InvalidRequest", format!("{}-bad", spec.name))]
            {
                let before = world.database().everything();
                let first = ask(&client, &call, &names, Some(&key)).await;
                assert_eq!(first.error(), code, "{}: {}", spec.name, first.text());
                let after = world.database().everything();
                for (table, rows) in &after {
                    let more = usize::from(table == "claims" || table == "operations");
                    assert_eq!(rows.len(), before[table].len() + more, "{}: {table}", spec.name);
                    assert!(more == 1 || rows == &before[table], "{}: {table}", spec.name);
                }
                let replay = ask(&client, &call, &names, Some(&key)).await;
                is_replay_of(&replay, &first, spec.name);
                assert_eq!(world.database().everything(), after, "{}", spec.name);
                let operation = client.get(first.json()["links"]["operation"].as_str().expect("a path")).await;
                let operation = operation.expect(200).json();
                assert_eq!((&operation["status"], &operation["error"]), (&json!("failed"), &json!(code)));
                expires_rightly(&replay, &operation, spec.name);
            }
        }
    }
}

on_postgres! {
    async fn a_key_that_a_rival_holds_is_at_work(world: World) {
        let client = client(&world);
        for (spec, recipe) in commands() {
            let names = prepare(recipe, &client, world.database()).await;
            let rival = Rival::claims(world.database(), spec.name, spec.name);
            let request = || request(&client, &recipe.call, &names, Some(spec.name)).header("Prefer", "wait=0");
            let pending = send(request()).await.expect(202);
            let id = operation_id(TENANT, CLIENT, spec.name, spec.name);
            assert_eq!(pending.json()["status"], "processing", "{}", spec.name);
            assert_eq!(pending.json()["operationId"], id, "{}", spec.name);
            assert_eq!(pending.header("retry-after"), Some("1"), "{}", spec.name);
            rival.roll_back();
            let done = send(request()).await;
            assert!(done.status.is_success(), "{}: {}", spec.name, done.text());
            assert_eq!(done.json()["operationId"], id, "{}", spec.name);
        }
    }
}
