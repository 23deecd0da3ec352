//! A rival of another process holds the key: how long the others wait, and what they hear when it takes too long, when it
//! commits and when it rolls back. Only PostgreSQL lets somebody else hold one row.

use actix_web::rt;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use order_service::command::claim::operation_id;

use crate::harness::http::{Answer, Caller, send};
use crate::harness::orders::{Tally, smallest, with};
use crate::harness::rival::{Rival, until_waiting};
use crate::harness::world::{CLIENT, TENANT, World, on_postgres};

const CREATE: &str = "orders.create";

/// Sends the smallest order under the key `held`; `wait` is the client's preference in seconds.
async fn post_held(caller: &Caller, wait: Option<u32>) -> Answer {
    let request = caller.command(Method::POST, "/v1/orders", "held", &smallest());
    match wait {
        Some(seconds) => send(request.header("Prefer", format!("wait={seconds}"))).await,
        None => send(request).await,
    }
}

/// The same, while the test goes on.
fn post_held_meanwhile(caller: &Caller) -> rt::task::JoinHandle<Answer> {
    let caller = caller.clone();
    rt::spawn(async move { post_held(&caller, None).await })
}

/// Says that `answer` is the 202 of the key `held`, whole, and returns the path of the operation.
fn is_in_progress(answer: &Answer) -> String {
    let id = operation_id(TENANT, CLIENT, CREATE, "held");
    let link = format!("/v1/operations/{id}");
    assert_eq!(answer.status, 202, "{}", answer.text());
    assert_eq!(answer.json(), json!({"status": "processing", "operationId": id, "links": {"operation": link}}));
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(answer.header("idempotency-key"), Some("held"));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("idempotent-replayed"), None);
    link
}

/// Says that `answer` is the 503 that advises the same key.
fn is_unavailable(answer: &Answer) {
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert_eq!(answer.error(), "ServiceUnavailable");
    let seconds = answer.header("retry-after").expect("it says when to come back").parse::<u64>();
    assert!(seconds.is_ok_and(|seconds| seconds > 0));
    assert_eq!(answer.json()["retry"]["sameKey"], true);
}

on_postgres! {
    async fn the_one_that_asks_and_those_behind_it_hear_that_the_key_is_at_work(world: World) {
        world.restart(&[("ORDERS_WAIT_LIMIT", "3s")]).await;
        let shop = world.shop();
        let rival = Rival::claims(world.database(), CREATE, "held");
        let leader = post_held_meanwhile(&shop);
        until_waiting(world.database(), 1).await;
        let followers = join_all((0..20).map(|_| post_held(&shop, None))).await;
        let link = is_in_progress(&leader.await.expect("the request ends"));
        for follower in &followers {
            is_in_progress(follower);
            assert_eq!(follower.header("preference-applied"), None);
        }
        // Nobody sees the operation before the first attempt commits.
        assert_eq!(shop.get(&link).await.expect(404).error(), "OperationNotFound");
        assert_eq!(Tally::of(world.database()), Tally::default());

        rival.roll_back();
        let first = post_held(&shop, None).await.expect(201);
        assert_eq!(first.header("idempotent-replayed"), Some("false"));
        assert_eq!(shop.get(&link).await.expect(200).json()["orderId"], first.json()["orderId"]);
        assert_eq!(Tally::of(world.database()), Tally::orders(1));
    }

    async fn a_client_may_choose_to_wait_less_and_not_to_wait_more(world: World) {
        world.restart(&[("ORDERS_WAIT_LIMIT", "1s")]).await;
        let shop = world.shop();
        let rival = Rival::claims(world.database(), CREATE, "held");
        for (wished, applied) in [(0, "wait=0"), (1, "wait=1"), (60, "wait=1")] {
            let answer = post_held(&shop, Some(wished)).await;
            is_in_progress(&answer);
            assert_eq!(answer.header("preference-applied"), Some(applied));
        }
        rival.roll_back();
        let answer = post_held(&shop, Some(0)).await.expect(201);
        assert_eq!(answer.header("preference-applied"), Some("wait=0"));
        let replay = post_held(&shop, Some(0)).await.expect(201);
        assert_eq!((replay.header("idempotent-replayed"), &replay.body), (Some("true"), &answer.body));
    }

    async fn after_a_rollback_of_the_holder_the_waiter_executes(world: World) {
        let shop = world.shop();
        let rival = Rival::claims(world.database(), CREATE, "held");
        let waiter = post_held_meanwhile(&shop);
        until_waiting(world.database(), 1).await;
        rival.roll_back();
        let answer = waiter.await.expect("the request ends").expect(201);
        assert_eq!(answer.header("idempotent-replayed"), Some("false"));
        assert_eq!(Tally::of(world.database()), Tally::orders(1));
    }

    async fn after_a_commit_of_the_holder_the_waiter_replays(world: World) {
        let shop = world.shop();
        let model = shop.post("/v1/orders", "model", &smallest()).await.expect(201);
        let rival = Rival::executes(world.database(), CREATE, "held", "model");
        let waiter = post_held_meanwhile(&shop);
        until_waiting(world.database(), 1).await;
        let followers = [post_held_meanwhile(&shop), post_held_meanwhile(&shop)];
        rival.commit();
        for waiting in [waiter].into_iter().chain(followers) {
            let answer = waiting.await.expect("the request ends").expect(201);
            assert_eq!(answer.header("idempotent-replayed"), Some("true"));
            assert_eq!(answer.header("location"), model.header("location"));
            assert_eq!(answer.body, model.body);
        }
        assert_eq!(Tally::of(world.database()), Tally::orders(1) + Tally::answers(1));
    }

    async fn another_body_hears_of_the_work_before_the_commit_and_of_the_conflict_after_it(world: World) {
        let shop = world.shop();
        shop.post("/v1/orders", "model", &smallest()).await.expect(201);
        let rival = Rival::executes(world.database(), CREATE, "held", "model");
        let other = with(&json!({"items": [{"sku": "ABC", "qty": 3}]}));
        let request = || shop.command(Method::POST, "/v1/orders", "held", &other).header("Prefer", "wait=0");
        is_in_progress(&send(request()).await);
        rival.commit();
        let conflict = send(request()).await.expect(409);
        assert_eq!(conflict.error(), "IdempotencyKeyConflict");
        assert_eq!(conflict.json()["details"][0]["pointer"], "/items");
        assert_eq!(Tally::of(world.database()), Tally::orders(1) + Tally::answers(1));
    }

    async fn a_lock_elsewhere_is_no_key_at_work(world: World) {
        // Just long enough to be the wait for everything that is locked.
        world.restart(&[("ORDERS_WAIT_LIMIT", "1200ms")]).await;
        let shop = world.shop();
        for table in ["claims", "orders", "outbox", "operations"] {
            let rival = Rival::begin(world.database(), &format!("LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"));
            is_unavailable(&post_held(&shop, None).await);
            rival.roll_back();
            assert_eq!(Tally::of(world.database()), Tally::default(), "{table}");
        }
        post_held(&shop, None).await.expect(201);
        assert_eq!(Tally::of(world.database()), Tally::orders(1));
    }

    async fn the_language_of_the_database_changes_nothing(world: World) {
        let name = world.database().url().rsplit('/').next().expect("a URL has a path");
        // A system that has no such locale speaks English on.
        world.database().execute(&format!(
            "DO $$ BEGIN ALTER DATABASE {name} SET lc_messages = 'C.UTF-8'; EXCEPTION WHEN OTHERS THEN NULL; END $$"
        ));
        world.restart(&[]).await;
        let shop = world.shop();
        let rival = Rival::claims(world.database(), CREATE, "held");
        is_in_progress(&post_held(&shop, Some(0)).await);
        is_in_progress(&post_held(&shop, Some(1)).await);
        rival.roll_back();
        let rival = Rival::begin(world.database(), "LOCK TABLE claims IN ACCESS EXCLUSIVE MODE");
        is_unavailable(&post_held(&shop, Some(0)).await);
        rival.roll_back();
        post_held(&shop, Some(0)).await.expect(201);
        assert_eq!(Tally::of(world.database()), Tally::orders(1));
    }

    async fn a_full_pool_is_no_key_at_work(world: World) {
        world.restart(&[("ORDERS_POOL_SIZE", "1"), ("ORDERS_POOL_TIMEOUT", "200ms"), ("ORDERS_WAIT_LIMIT", "20s")]).await;
        let shop = world.shop();
        let rival = Rival::claims(world.database(), CREATE, "held");
        let waiter = post_held_meanwhile(&shop);
        until_waiting(world.database(), 1).await;
        is_unavailable(&post_held(&shop, Some(0)).await);
        is_unavailable(&shop.post("/v1/orders", "free", &smallest()).await);
        rival.roll_back();
        waiter.await.expect("the request ends").expect(201);
        shop.post("/v1/orders", "free", &smallest()).await.expect(201);
        assert_eq!(Tally::of(world.database()), Tally::orders(2));
    }

    async fn a_shop_order_that_a_rival_makes_is_waited_for_whatever_the_patience(world: World) {
        let shop = world.shop();
        let of = |external: &str| with(&json!({"externalOrderId": external}));
        shop.post("/v1/orders", "model", &of("model")).await.expect(201);
        for (external, commits) in [("N1", true), ("N2", false)] {
            let rival = Rival::begin(
                world.database(),
                &format!(
                    "INSERT INTO orders SELECT (jsonb_populate_record(model, \
                     '{{\"order_id\": \"rival-{external}\", \"external_order_id\": \"{external}\"}}')).* \
                     FROM orders AS model WHERE external_order_id = 'model'"
                ),
            );
            let request = shop.command(Method::POST, "/v1/orders", external, &of(external)).header("Prefer", "wait=0");
            let waiter = rt::spawn(send(request));
            until_waiting(world.database(), 1).await;
            if commits {
                rival.commit();
                let refused = waiter.await.expect("the request ends").expect(409);
                assert_eq!((refused.error().as_str(), &refused.json()["orderId"]), ("DuplicateOrder", &json!("rival-N1")));
            } else {
                rival.roll_back();
                waiter.await.expect("the request ends").expect(201);
            }
        }
    }

    async fn a_held_key_holds_up_no_other_key(world: World) {
        let shop = world.shop();
        let rival = Rival::claims(world.database(), CREATE, "held");
        let rivals: Vec<_> = (0..60).map(|_| post_held_meanwhile(&shop)).collect();
        until_waiting(world.database(), 1).await;
        // Three connections of the four are left to them: only one of the rivals asks the database.
        let keys: Vec<String> = (0..50).map(|number| format!("free-{number}")).collect();
        let order = smallest();
        let others = join_all(keys.iter().map(|key| shop.post("/v1/orders", key, &order))).await;
        assert!(others.iter().all(|answer| answer.status == 201));
        assert_eq!(Tally::of(world.database()), Tally::orders(50));
        rival.roll_back();
        let answers: Vec<Value> = join_all(rivals).await.into_iter().map(|ended| ended.expect("it ends").expect(201).json()).collect();
        assert!(answers.iter().all(|answer| answer == &answers[0]));
        assert_eq!(Tally::of(world.database()), Tally::orders(51));
    }
}
