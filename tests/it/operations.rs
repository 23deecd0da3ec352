//! Operations as clients and the duty desk see them: by id and by key, one client's and the tenant's, in lists, and waited for.

use std::time::Duration;

use actix_web::rt;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::http::{Caller, send};
use crate::harness::orders::smallest;
use crate::harness::wait::eventually;
use crate::harness::world::{CLIENT, TENANT, World, on_both_databases};

/// How long a busy machine may take to tell of a change.
const LIMIT: Duration = Duration::from_secs(20);

/// Takes every final operation back on its way, as if an ERP were still being asked.
const UNDONE: &str =
    "UPDATE operations SET status = 'processing', completed_at = NULL, replay_until = NULL, remember_until = NULL";

/// Makes an order and returns its operation's path.
async fn operation(caller: &Caller, key: &str) -> String {
    let made = caller.post("/v1/orders", key, &smallest()).await.expect(201).json();
    made["links"]["operation"].as_str().expect("a path").to_owned()
}

/// The paths of the operations on a page.
fn paths(page: &Value) -> Vec<String> {
    let operations = page["operations"].as_array().expect("a page has operations").iter();
    operations.map(|operation| operation["links"]["self"].as_str().expect("a path").to_owned()).collect()
}

async fn list(caller: &Caller, query: &str) -> Vec<String> {
    paths(&caller.get(&format!("/v1/operations?{query}")).await.expect(200).json())
}

on_both_databases! {
    async fn a_client_sees_its_own_and_the_duty_desk_those_of_the_tenant(world: World) {
        let shop = world.shop();
        let connector = world.caller(TENANT, "connector", &["orders:write"]);
        let desk = world.caller(TENANT, "desk", &["operations:read"]);
        let other = world.caller("other", CLIENT, &["orders:write", "operations:read"]);
        let (ours, theirs) = (operation(&shop, "one").await, operation(&connector, "one").await);
        assert_ne!(ours, theirs);
        shop.get(&ours).await.expect(200);
        connector.get(&theirs).await.expect(200);
        for (caller, path) in [(&shop, &theirs), (&connector, &ours), (&other, &ours), (&other, &theirs)] {
            assert_eq!(caller.get(path).await.expect(404).error(), "OperationNotFound");
        }
        for path in [&ours, &theirs] {
            desk.get(path).await.expect(200);
        }
        assert_eq!(list(&shop, "").await, std::slice::from_ref(&ours));
        assert_eq!(list(&connector, "").await, std::slice::from_ref(&theirs));
        assert_eq!(list(&desk, "").await, [theirs, ours]);
        assert_eq!(list(&other, "").await, Vec::<String>::new());
    }

    async fn an_operation_is_found_by_the_key_without_sending_again(world: World) {
        let shop = world.shop();
        let desk = world.caller(TENANT, "desk", &["operations:read"]);
        let made = operation(&shop, "one").await;
        assert_eq!(list(&shop, "command=orders.create&idempotencyKey=one").await, [made]);
        for query in ["command=orders.create&idempotencyKey=two", "command=orders.cancel&idempotencyKey=one"] {
            assert_eq!(list(&shop, query).await, Vec::<String>::new(), "{query}");
        }
        // A key is one of the asking client's.
        assert_eq!(list(&desk, "command=orders.create&idempotencyKey=one").await, Vec::<String>::new());
        let refused = shop.get("/v1/operations?idempotencyKey=one").await.expect(400);
        assert_eq!((refused.error().as_str(), &refused.json()["details"][0]["pointer"]), ("InvalidParameter", &json!("/command")));
    }

    async fn lists_are_filtered_and_paged(world: World) {
        let shop = world.shop();
        let mut made = Vec::new();
        for number in 0..9 {
            made.insert(0, operation(&shop, &format!("key-{number}")).await);
        }
        let order = shop.get(&made[0]).await.json()["links"]["order"].as_str().expect("a path").to_owned();
        let cancel = shop.post(&format!("{order}/cancel"), "no", &json!({})).await.expect(200).json();
        let cancel = cancel["links"]["operation"].as_str().expect("a path").to_owned();
        let refused = shop.post(&format!("{order}/cancel"), "no-2", &json!({})).await.expect(409).json();
        let refused = refused["links"]["operation"].as_str().expect("a path").to_owned();

        let order_id = order.rsplit('/').next().expect("a path has an end");
        assert_eq!(list(&shop, &format!("orderId={order_id}&command=orders.cancel")).await, [refused.clone(), cancel.clone()]);
        assert_eq!(list(&shop, &format!("orderId={order_id}&status=succeeded")).await, [cancel, made[0].clone()]);
        assert_eq!(list(&shop, "status=failed").await, [refused]);
        assert_eq!(list(&shop, "status=unresolved").await, Vec::<String>::new());
        world.database().execute(&format!(
            "UPDATE operations SET status = 'unresolved', completed_at = NULL, replay_until = NULL, remember_until = NULL \
             WHERE operation_id = '{}'",
            made[4].rsplit('/').next().expect("a path has an end")
        ));
        assert_eq!(list(&shop, "status=unresolved").await, [made[4].clone()]);

        let (mut found, mut query) = (Vec::new(), "command=orders.create&limit=4".to_owned());
        loop {
            let page = shop.get(&format!("/v1/operations?{query}")).await.expect(200).json();
            found.extend(paths(&page));
            let Some(cursor) = page["nextCursor"].as_str() else { break };
            query = format!("command=orders.create&limit=4&cursor={cursor}");
        }
        assert_eq!(found, made);
        for query in ["status=lost", "limit=0", "cursor=x", "colour=red"] {
            assert_eq!(shop.get(&format!("/v1/operations?{query}")).await.expect(400).error(), "InvalidParameter");
        }
    }

    async fn what_is_final_is_told_at_once(world: World) {
        let shop = world.shop();
        let path = operation(&shop, "one").await;
        let waited = send(shop.request(Method::GET, &path).header("Prefer", "wait=60")).await.expect(200);
        assert_eq!(waited.header("preference-applied"), Some("wait=60"));
        assert_eq!(waited.header("retry-after"), None);
        let operation = waited.json();
        assert_eq!((&operation["status"], &operation["error"]), (&json!("succeeded"), &json!(null)));
        assert_eq!(operation["links"]["self"], json!(path));
        assert!(operation["completedAt"].is_string() && operation["expiresAt"].is_string());
    }

    async fn a_wait_ends_with_the_change_or_with_its_time(world: World) {
        let shop = world.shop();
        let path = operation(&shop, "one").await;
        world.database().execute(UNDONE);
        for (wished, applied) in [("wait=0", "wait=0"), ("wait=1", "wait=1")] {
            let waited = send(shop.request(Method::GET, &path).header("Prefer", wished)).await.expect(200);
            assert_eq!(waited.json()["status"], "processing");
            assert_eq!(waited.header("preference-applied"), Some(applied));
            assert!(waited.header("retry-after").is_some());
        }
        let (caller, watched) = (shop.clone(), path.clone());
        let waiting = rt::spawn(async move {
            send(caller.request(Method::GET, &watched).header("Prefer", "wait=600")).await
        });
        // Another request goes on meanwhile; then somebody else ends the operation.
        shop.get(&path).await.expect(200);
        world.database().execute(
            "UPDATE operations SET status = 'failed', error = 'OrderWithdrawn', completed_at = '2099-01-01 00:00:00', \
             updated_at = '2099-01-01 00:00:00'",
        );
        eventually(LIMIT, "the end of the wait", async || waiting.is_finished().then_some(())).await;
        let waited = waiting.await.expect("the request ends").expect(200);
        assert_eq!(waited.header("preference-applied"), Some("wait=60"));
        assert_eq!((&waited.json()["status"], &waited.json()["error"]), (&json!("failed"), &json!("OrderWithdrawn")));
    }

    async fn an_operation_that_nobody_made_does_not_exist(world: World) {
        let shop = world.shop();
        for path in ["/v1/operations/op_0", "/v1/operations/%00", "/v1/operations/op_0%2F1"] {
            let answer = shop.get(path).await;
            assert!(answer.status == 404 || answer.status == 400, "{path}: {}", answer.text());
            assert!(["OperationNotFound", "MalformedRequest"].contains(&answer.error().as_str()));
        }
        assert_eq!(world.stranger().get("/v1/operations").await.expect(401).error(), "Unauthenticated");
    }
}
