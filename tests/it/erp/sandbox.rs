//! The first run: the service with its own relay, and an ERP inside it whose faults can be asked for.

use serde_json::{Value, json};

use crate::harness::http::Caller;
use crate::harness::relay::{HandRelay, connect_sandbox, end_settle_window, operation, order, outcomes};
use crate::harness::wait::eventually;
use crate::harness::world::{TENANT, World, on_both_databases};

const SOON: std::time::Duration = std::time::Duration::from_secs(30);

async fn end_of(shop: &Caller, fault: Option<&str>) -> (Value, Value) {
    let mut body = json!({"customerId": "cus_123", "items": [{"sku": "ABC", "qty": 2}], "currency": "EUR"});
    if let Some(fault) = fault {
        body["extensions"] = json!({"sandbox.fault": fault});
    }
    let created = shop.post("/v1/orders", fault.unwrap_or("none"), &body).await.expect(201).json();
    let (order_id, path) = (created["orderId"].clone(), created["links"]["operation"].clone());
    let path = path.as_str().expect("a path").to_owned();
    let done = eventually(SOON, "the operation is final", async || {
        let operation = shop.get(&path).await.expect(200).json();
        operation["completedAt"].is_string().then_some(operation)
    });
    (done.await, order(shop, order_id.as_str().expect("an id")).await)
}

on_both_databases! {
    async fn each_fault_of_the_sandbox_can_be_watched(world: World) {
        world.restart(&[("ORDERS_RELAY", "on"), ("ORDERS_RELAY_INTERVAL", "10ms"), ("ORDERS_RETRY_BASE", "1ms")]).await;
        let shop = world.shop();
        connect_sandbox(&world, TENANT);
        for (fault, status, seen) in [
            (None, "succeeded", &["delivered"][..]),
            (Some("lost-answer"), "succeeded", &["unknown", "already_there"]),
            (Some("down"), "succeeded", &["not_delivered", "not_delivered", "not_delivered", "delivered"]),
            (Some("refuse"), "failed", &["refused"]),
            (Some("slow"), "succeeded", &["delivered"]),
            (Some("duplicate"), "succeeded", &["already_there"]),
        ] {
            let (operation, order) = end_of(&shop, fault).await;
            assert_eq!((&operation["status"], outcomes(&operation)), (&json!(status), seen.iter().map(|&o| o.to_owned()).collect()), "{fault:?}");
            let confirmed = status == "succeeded";
            assert_eq!(order["status"], if confirmed { "confirmed" } else { "rejected" }, "{fault:?}");
            assert_eq!(order["erpReference"].as_str().is_some_and(|name| name.starts_with("SANDBOX-")), confirmed);
        }
    }
    /// What refuses a second one of a reference may still be at work on the first, and take it after all.
    async fn a_refusal_is_not_the_last_word_while_an_earlier_request_may_come_through(world: World) {
        let (shop, relay) = (world.shop(), HandRelay::new(&world, &[]));
        connect_sandbox(&world, TENANT);
        let body = json!({
            "customerId": "cus_123", "items": [{"sku": "ABC", "qty": 2}], "currency": "EUR",
            "extensions": {"sandbox.fault": "refuse"}
        });
        let created = shop.post("/v1/orders", "k", &body).await.expect(201).json();
        let operation_id = created["operationId"].as_str().expect("an id");
        world.database().execute("UPDATE outbox SET unknown_since = created_at");
        relay.step().await;
        let waiting = operation(&shop, operation_id).await;
        assert_eq!((&waiting["status"], outcomes(&waiting)), (&json!("processing"), vec!["unknown".to_owned()]));
        end_settle_window(&world);
        relay.drain(&world).await;
        let ended = operation(&shop, operation_id).await;
        assert_eq!((&ended["status"], &ended["error"]), (&json!("failed"), &json!("RefusedByErp")));
        assert_eq!(outcomes(&ended), ["unknown", "refused"]);
    }
}
