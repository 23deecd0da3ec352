//! `orders.cancel`: before the ERP was asked the hand-over is withdrawn; later the ERP has to be asked.

use serde_json::{Value, json};

use crate::harness::head::Head;
use crate::harness::http::{Answer, Caller};
use crate::harness::orders::{Tally, smallest};
use crate::harness::raw::RawConnection;
use crate::harness::world::{World, on_both_databases};

/// Makes an order and returns its path and the path of its operation.
async fn order(caller: &Caller, key: &str) -> (String, String) {
    let links = caller.post("/v1/orders", key, &smallest()).await.expect(201).json()["links"].clone();
    let path = |name: &str| links[name].as_str().expect("a path").to_owned();
    (path("self"), path("operation"))
}

async fn cancel(caller: &Caller, path: &str, key: &str) -> Answer {
    caller.post(&format!("{path}/cancel"), key, &json!({"reason": "changed their mind"})).await
}

/// Says that the answer is this refusal, that it is recorded, and that it left nothing else.
async fn is_refused(world: &World, caller: &Caller, path: &str, key: &str, code: &str) -> Answer {
    let before = Tally::of(world.database());
    let orders = world.rows("SELECT order_id, status, version FROM orders ORDER BY order_id");
    let first = cancel(caller, path, key).await;
    assert_eq!(first.error(), code, "{}", first.text());
    let replay = cancel(caller, path, key).await;
    assert_eq!((replay.status, &replay.body), (first.status, &first.body));
    assert_eq!(replay.header("idempotent-replayed"), Some("true"));
    assert_eq!(Tally::of(world.database()), before + Tally::answers(1), "{code}");
    assert_eq!(world.rows("SELECT order_id, status, version FROM orders ORDER BY order_id"), orders, "{code}");
    first
}

on_both_databases! {
    async fn before_the_erp_was_asked_the_hand_over_is_withdrawn(world: World) {
        let shop = world.shop();
        let (path, create) = order(&shop, "one").await;
        let etag = shop.get(&path).await.header("etag").expect("it has one").to_owned();
        let cancelled = cancel(&shop, &path, "no").await.expect(200);
        assert_eq!((&cancelled.json()["status"], cancelled.header("location")), (&json!("cancelled"), None));
        let now = shop.get(&path).await.expect(200);
        assert_eq!(now.json()["status"], "cancelled");
        assert_ne!(now.header("etag"), Some(etag.as_str()));
        assert_eq!(world.rows("SELECT kind, state FROM outbox"), [json!({"kind": "order.created", "state": "withdrawn"})]);
        assert_eq!(Tally::of(world.database()), Tally::orders(1) + Tally::answers(1));
        // What was final stays so.
        assert_eq!(shop.get(&create).await.expect(200).json()["status"], "succeeded");
        let operation = cancelled.json()["links"]["operation"].as_str().expect("a path").to_owned();
        let operation = shop.get(&operation).await.expect(200).json();
        assert_eq!((&operation["status"], &operation["command"]), (&json!("succeeded"), &json!("orders.cancel")));
        assert_eq!(operation["links"]["order"], json!(path));
    }

    async fn a_hand_over_on_its_way_ends_as_withdrawn(world: World) {
        let shop = world.shop();
        let (path, create) = order(&shop, "one").await;
        world.database().execute(
            "UPDATE operations SET status = 'processing', completed_at = NULL, replay_until = NULL, remember_until = NULL",
        );
        let pending = shop.get(&create).await.expect(200);
        assert!(pending.header("retry-after").is_some());
        assert_eq!(pending.json()["expiresAt"], json!(null));
        cancel(&shop, &path, "no").await.expect(200);
        let ended = shop.get(&create).await.expect(200).json();
        assert_eq!((&ended["status"], &ended["error"]), (&json!("failed"), &json!("OrderWithdrawn")));
        assert!(ended["completedAt"].is_string() && ended["expiresAt"].is_string(), "{ended}");
        // The answer that was recorded is the one that is given.
        let replay = shop.post("/v1/orders", "one", &smallest()).await.expect(201);
        assert_eq!(replay.json()["status"], "accepted");
    }

    async fn what_the_erp_has_is_asked_back(world: World) {
        let shop = world.shop();
        let (path, _) = order(&shop, "one").await;
        world.database().execute(
            "UPDATE outbox SET state = 'delivered'; UPDATE orders SET status = 'confirmed', erp_reference = 'SO1', version = 2",
        );
        let asked = cancel(&shop, &path, "no").await.expect(200);
        assert_eq!(asked.json()["status"], "cancelling");
        assert_eq!(shop.get(&path).await.expect(200).json()["status"], "cancelling");
        let operation = shop.get(asked.json()["links"]["operation"].as_str().expect("a path")).await.expect(200);
        assert_eq!(operation.json()["status"], "processing");
        assert!(operation.header("retry-after").is_some());
        let messages = world.rows("SELECT kind, state, payload FROM outbox ORDER BY position, message_id");
        assert_eq!((&messages[1]["kind"], &messages[1]["state"]), (&json!("order.cancelled"), &json!("waiting")));
        let payload: Value = serde_json::from_str(messages[1]["payload"].as_str().expect("a text")).expect("JSON");
        let order_id = path.rsplit('/').next().expect("a path has an end");
        assert_eq!((&payload["orderId"], &payload["reference"]), (&json!(order_id), &json!(order_id)));
        assert_eq!(payload["reason"], "changed their mind");
        // While the operation is not final its key does not expire, and a repeat gets the first answer.
        let replay = cancel(&shop, &path, "no").await.expect(200);
        assert_eq!((replay.header("idempotent-replayed"), &replay.body), (Some("true"), &asked.body));
        is_refused(&world, &shop, &path, "again", "OrderAlreadyCancelled").await;
    }

    async fn what_is_over_is_not_cancelled(world: World) {
        let shop = world.shop();
        let (path, _) = order(&shop, "one").await;
        world.database().execute("UPDATE orders SET status = 'rejected'");
        let refused = is_refused(&world, &shop, &path, "rejected", "OrderNotCancellable").await;
        assert_eq!(refused.json()["links"]["order"], json!(path));
        world.database().execute("UPDATE orders SET status = 'accepted'");
        cancel(&shop, &path, "no").await.expect(200);
        is_refused(&world, &shop, &path, "again", "OrderAlreadyCancelled").await;
        let unknown = is_refused(&world, &shop, "/v1/orders/ord_0", "unknown", "OrderNotFound").await;
        assert_eq!(unknown.status, 404);
    }

    async fn a_cancel_needs_no_body(world: World) {
        let shop = world.shop();
        let (path, _) = order(&shop, "one").await;
        let api_key = shop.api_key().expect("a client has one");
        let head = Head::new("POST", &format!("{path}/cancel")).line(format!("Authorization: Bearer {api_key}"));
        let mut connection = RawConnection::open(world.address());
        connection.send(&head.line("Idempotency-Key: no").with_body(b""));
        let first = connection.answer();
        assert_eq!(first.status, Some(200), "{}", first.head);
        // No body, an empty object and an absent reason are one intent.
        for body in [json!({}), json!({"reason": null})] {
            let replay = shop.post(&format!("{path}/cancel"), "no", &body).await.expect(200);
            assert_eq!((replay.header("idempotent-replayed"), &replay.body), (Some("true"), &first.body));
        }
        let other = shop.post(&format!("{path}/cancel"), "no", &json!({"reason": "x"})).await.expect(409);
        assert_eq!((other.error().as_str(), &other.json()["details"][0]["pointer"]), ("IdempotencyKeyConflict", &json!("/reason")));
    }
}
