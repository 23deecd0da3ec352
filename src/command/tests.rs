//! The spine across a deploy: rows that an older version of the program wrote, and rows that a newer one did.

use std::time::{Duration, Instant};

use diesel::prelude::*;
use tempfile::TempDir;

use super::create_order::CreateOrder;
use super::fingerprint::tests::stored_by_v0;
use super::fingerprint::{Fingerprint, Intent};
use super::gate::Gate;
use super::key::IdempotencyKey;
use super::{Answer, Call, Command, Recorded, Retention, claim, run};
use crate::config::DatabaseUrl;
use crate::db::tables::{claims, orders};
use crate::db::{Db, Fault, migrate};
use crate::json::parse;
use crate::on_db;

const ORDER: &str = r#"{"customerId":"c","items":[{"sku":"A","qty":2}],"currency":"EUR"}"#;

fn database() -> (TempDir, Db) {
    let home = tempfile::tempdir().unwrap();
    let url = DatabaseUrl::Sqlite(home.path().join("orders.db"));
    migrate(&url).unwrap();
    (home, Db::open(&url).unwrap())
}

fn intent(body: &str) -> Intent {
    Intent {
        method: CreateOrder::SPEC.method.as_str(),
        route: CreateOrder::SPEC.route,
        parameters: Vec::new(),
        if_match: None,
        if_none_match: None,
        table: CreateOrder::SPEC.body,
        body: parse(body.as_bytes()).unwrap(),
    }
}

/// Sends `body` under the one key of these tests, as the edge does.
async fn send(db: &mut Db, body: &str) -> Result<Answer, Fault> {
    let intent = intent(body);
    let operation_id = claim::operation_id("t", "c", CreateOrder::SPEC.name, "k");
    let deadline = Instant::now() + Duration::from_secs(5);
    let call = Call {
        tenant_id: "t".to_owned(),
        client_id: "c".to_owned(),
        command: CreateOrder::SPEC.name,
        key: IdempotencyKey::from_headers(&[b"k"]).unwrap(),
        turn: Gate::default().enter(&operation_id, deadline).await.unwrap(),
        operation_id,
        fingerprint: Fingerprint::of(&intent),
        member_digests: String::new(),
        trace_id: "0".repeat(32),
        deadline,
        retention: Retention { replay_window: Duration::from_hours(1), key_memory: Duration::from_hours(2) },
        intent: intent.clone(),
    };
    run(db, &call, CreateOrder::parse(&intent))
}

/// Makes the stored claim one that another version of the program has written.
fn rewrite_fingerprint(db: &mut Db, fingerprint: &str) {
    on_db!(db, conn => diesel::update(claims::table).set(claims::fingerprint.eq(fingerprint)).execute(conn)).unwrap();
}

fn orders(db: &mut Db) -> i64 {
    on_db!(db, conn => orders::table.count().get_result(conn)).unwrap()
}

fn first(answer: Result<Answer, Fault>) -> Recorded {
    match answer {
        Ok(Answer::First { recorded, .. }) => recorded,
        other => panic!("the first call is carried out, and not {other:?}"),
    }
}

#[tokio::test]
async fn a_row_of_an_older_version_is_compared_by_its_rules_and_replayed() {
    let (_home, mut db) = database();
    let first = first(send(&mut db, ORDER).await);
    rewrite_fingerprint(&mut db, &stored_by_v0(&intent(ORDER)));
    let respelled = r#"{"currency":"EUR","items":[{"qty":2,"sku":"A"}],"customerId":"c"}"#;
    match send(&mut db, respelled).await {
        Ok(Answer::Replay { recorded, .. }) => assert_eq!(recorded, first),
        other => panic!("an honest retry across a deploy is a replay, and not {other:?}"),
    }
    assert_eq!(orders(&mut db), 1);
}

#[tokio::test]
async fn another_intent_conflicts_with_a_row_of_an_older_version() {
    let (_home, mut db) = database();
    first(send(&mut db, ORDER).await);
    rewrite_fingerprint(&mut db, &stored_by_v0(&intent(ORDER)));
    let other = ORDER.replace('2', "3");
    assert!(matches!(send(&mut db, &other).await, Ok(Answer::Conflict(_))));
    assert_eq!(orders(&mut db), 1);
}

#[tokio::test]
async fn a_row_of_a_version_to_come_is_a_fault_and_never_a_conflict() {
    let (_home, mut db) = database();
    first(send(&mut db, ORDER).await);
    rewrite_fingerprint(&mut db, "v9:00");
    assert!(matches!(send(&mut db, ORDER).await, Err(Fault::Bug(_))));
    assert_eq!(orders(&mut db), 1);
}
