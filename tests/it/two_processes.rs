//! What only a process of its own can show: two that share one PostgreSQL, and one that is killed in the middle.

use std::collections::BTreeSet;

use actix_web::rt;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;

use crate::harness::database::{Database, Dialect};
use crate::harness::http::{Answer, Caller, send};
use crate::harness::orders::{Tally, smallest};
use crate::harness::process::{self, Process};
use crate::harness::rival::{Rival, stop_at_the_outbox, until_waiting, until_written};
use crate::harness::world::{World, on_both_databases, on_postgres};

/// Sends the smallest order while the test goes on; a connection that breaks is no answer.
fn post_meanwhile(caller: &Caller, key: &str) -> rt::task::JoinHandle<Option<Answer>> {
    let request = caller.command(Method::POST, "/v1/orders", key, &smallest());
    rt::spawn(async move {
        let response = request.send().await.ok()?;
        let (status, headers) = (response.status(), response.headers().clone());
        Some(Answer { status, headers, body: response.bytes().await.ok()?.to_vec() })
    })
}

/// A client of the process, with a key that the program itself has issued.
fn client_of(process: &Process, database: &Database) -> Caller {
    let arguments = ["key", "add", "--tenant", "acme", "--client", "shop", "--scopes", "orders:write,orders:read"];
    let made = process::run(database.url(), &arguments, &[]);
    assert!(made.status.success(), "{made:?}");
    let api_key = String::from_utf8(made.stdout).expect("a key is text").trim_end().to_owned();
    Caller::new(process.address(), Some(api_key))
}

on_postgres! {
    async fn a_hundred_rivals_over_two_processes_make_one_order(world: World) {
        let (one, two) = (world.process(&[]), world.process(&[]));
        let shop = world.shop();
        let callers = [shop.at(one.address()), shop.at(two.address())];
        let order = smallest();
        let answers = join_all((0..100).map(|number| callers[number % 2].post("/v1/orders", "one", &order))).await;
        for answer in &answers {
            // On a busy machine a rival may hear that the key is at work; nobody may hear of a fault.
            assert!(answer.status == 201 || answer.status == 202, "{}", answer.text());
        }
        let settled = join_all((0..100).map(|number| callers[number % 2].post("/v1/orders", "one", &order))).await;
        let made = answers.iter().chain(&settled).filter(|answer| answer.status == 201);
        let ids: BTreeSet<String> = made.map(|answer| answer.json()["orderId"].to_string()).collect();
        assert_eq!(ids.len(), 1, "{ids:?}");
        assert!(settled.iter().all(|answer| answer.status == 201 && answer.header("idempotent-replayed") == Some("true")));
        assert_eq!(Tally::of(world.database()), Tally::orders(1));
    }

    async fn a_call_that_comes_before_the_first_has_committed_waits_for_it(world: World) {
        let (one, two) = (world.process(&[]), world.process(&[]));
        let shop = world.shop();
        let hold = Rival::begin(world.database(), "LOCK TABLE outbox IN ACCESS EXCLUSIVE MODE");
        let first = post_meanwhile(&shop.at(one.address()), "one");
        until_waiting(world.database(), 1).await;
        let second = post_meanwhile(&shop.at(two.address()), "one");
        until_waiting(world.database(), 2).await;
        let impatient = shop.at(world.address()).command(Method::POST, "/v1/orders", "one", &smallest());
        let pending = send(impatient.header("Prefer", "wait=0")).await.expect(202);
        hold.roll_back();

        let first = first.await.expect("it ends").expect("it is answered").expect(201);
        let second = second.await.expect("it ends").expect("it is answered").expect(201);
        assert_eq!(first.header("idempotent-replayed"), Some("false"));
        assert_eq!(second.header("idempotent-replayed"), Some("true"));
        assert_eq!(second.body, first.body);
        assert_eq!(pending.json()["operationId"], first.json()["operationId"]);
        assert_eq!(Tally::of(world.database()), Tally::orders(1));
    }
}

on_both_databases! {
    async fn a_kill_in_the_middle_of_the_transaction_leaves_the_key_free(world: World) {
        // On SQLite a file has one serving process, and the world's own has its own file.
        let database = Database::migrated(world.dialect());
        let process = Process::serve(database.url(), &[]);
        let client = client_of(&process, &database);
        let (request, release) = match database.dialect() {
            Dialect::Postgres => {
                let hold = Rival::begin(&database, "LOCK TABLE outbox IN ACCESS EXCLUSIVE MODE");
                let request = post_meanwhile(&client, "one");
                until_waiting(&database, 1).await;
                (request, Box::new(|| hold.roll_back()) as Box<dyn FnOnce()>)
            }
            Dialect::Sqlite => {
                let undo = stop_at_the_outbox(&database);
                let request = post_meanwhile(&client, "one");
                until_written(&database).await;
                let database = &database;
                (request, Box::new(move || database.execute(undo)) as Box<dyn FnOnce()>)
            }
        };
        process.kill();
        assert_eq!(request.await.expect("it ends"), None);
        release();
        assert_eq!(Tally::of(&database), Tally::default());

        let process = Process::serve(database.url(), &[]);
        let client = client.at(process.address());
        let answer = client.post("/v1/orders", "one", &smallest()).await.expect(201);
        assert_eq!(answer.header("idempotent-replayed"), Some("false"));
        assert_eq!(Tally::of(&database), Tally::orders(1));
    }

    async fn a_rival_in_the_same_process_hears_that_the_key_is_at_work(world: World) {
        let database = Database::migrated(world.dialect());
        let process = Process::serve(database.url(), &[]);
        let client = client_of(&process, &database);
        let hold = match database.dialect() {
            Dialect::Postgres => Some(Rival::begin(&database, "LOCK TABLE outbox IN ACCESS EXCLUSIVE MODE")),
            Dialect::Sqlite => {
                stop_at_the_outbox(&database);
                None
            }
        };
        let first = post_meanwhile(&client, "one");
        match database.dialect() {
            Dialect::Postgres => until_waiting(&database, 1).await,
            Dialect::Sqlite => until_written(&database).await,
        }
        let rival = client.command(Method::POST, "/v1/orders", "one", &smallest()).header("Prefer", "wait=1");
        let rival = send(rival).await.expect(202);
        assert_eq!(rival.json()["status"], json!("processing"));
        assert_eq!(rival.header("preference-applied"), Some("wait=1"));
        if let Some(hold) = hold {
            hold.roll_back();
            let first = first.await.expect("it ends").expect("it is answered").expect(201);
            assert_eq!(first.json()["operationId"], rival.json()["operationId"]);
        }
    }
}
