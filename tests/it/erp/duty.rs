//! What only a person can decide waits for one, visibly, and is decided once.

use serde_json::{Value, json};

use crate::harness::erp::{FakeErp, Step};
use crate::harness::http::{Answer, Caller};
use crate::harness::relay::{HandRelay, create, operation, order, outcomes, shop_with};
use crate::harness::world::{World, on_both_databases};

async fn decide(shop: &Caller, operation_id: &str, what: &str, key: &str, body: &Value) -> Answer {
    shop.post(&format!("/v1/operations/{operation_id}/{what}"), key, body).await
}

/// An order whose delivery only a person can judge.
async fn unresolved(world: &World, erp: &FakeErp, relay: &HandRelay, step: Step) -> (Caller, String, String) {
    let shop = shop_with(world, erp, "hold");
    erp.script(&[step]);
    let (order_id, operation_id) = create(&shop, "1").await;
    relay.drain(world).await;
    let waits = operation(&shop, &operation_id).await;
    assert_eq!((&waits["status"], &waits["erp"]["state"]), (&json!("unresolved"), &json!("unresolved")));
    assert_eq!((&waits["completedAt"], &waits["expiresAt"]), (&Value::Null, &Value::Null));
    (shop, order_id, operation_id)
}

on_both_databases! {
    /// Field case 77: no look-up, no resend.
    async fn a_retry_sends_again_what_nobody_can_look_for(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let (shop, order_id, operation_id) = unresolved(&world, &erp, &relay, Step::Cut).await;
        assert_eq!(erp.requests("POST").len(), 1, "nothing is sent again by itself");
        let list = shop.get("/v1/operations?status=unresolved").await.expect(200).json();
        assert_eq!(list["operations"][0]["operationId"], operation_id.as_str());

        let first = decide(&shop, &operation_id, "retry", "r1", &json!({})).await.expect(200);
        assert_eq!(first.json()["status"], "processing");
        let again = decide(&shop, &operation_id, "retry", "r1", &json!({})).await.expect(200);
        assert_eq!((&again.body, again.header("idempotent-replayed")), (&first.body, Some("true")));
        let other = decide(&shop, &operation_id, "retry", "r2", &json!({})).await.expect(409);
        assert_eq!(other.error(), "OperationNotUnresolved");
        relay.drain(&world).await;
        let done = operation(&shop, &operation_id).await;
        assert_eq!((&done["status"], outcomes(&done)), (&json!("succeeded"), vec!["unknown".into(), "delivered".into()]));
        assert_eq!(order(&shop, &order_id).await["status"], "confirmed");
        let audit = world.rows("SELECT client_id, decision, target_operation_id FROM interventions");
        assert_eq!(audit, [json!({"client_id": "shop", "decision": "retry", "target_operation_id": operation_id})]);
    }

    async fn what_a_person_found_is_written_down_and_stays(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let (shop, order_id, operation_id) = unresolved(&world, &erp, &relay, Step::AcceptThenCut).await;
        let bad = decide(&shop, &operation_id, "resolve", "b", &json!({"outcome": "delivered"})).await.expect(400);
        assert_eq!(bad.json()["details"][0]["pointer"], "/erpReference");
        let found = json!({"outcome": "delivered", "erpReference": "SO-77"});
        decide(&shop, &operation_id, "resolve", "d", &found).await.expect(200);
        let (done, sold) = (operation(&shop, &operation_id).await, order(&shop, &order_id).await);
        assert_eq!((&done["status"], &sold["status"], &sold["erpReference"]), (&json!("succeeded"), &json!("confirmed"), &json!("SO-77")));
        assert!(done["completedAt"].is_string() && done["expiresAt"].is_string());
        assert_eq!(relay.step().await, 0);
        for (what, body) in [("retry", json!({})), ("resolve", json!({"outcome": "abandoned", "reason": "late"}))] {
            assert_eq!(decide(&shop, &operation_id, what, "x", &body).await.expect(409).error(), "OperationNotUnresolved");
        }
        assert_eq!(operation(&shop, &operation_id).await["completedAt"], done["completedAt"], "a final state never changes");
        assert_eq!(erp.requests("POST").len(), 1);
    }

    async fn what_is_given_up_is_rejected_with_the_reason_on_record(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let (shop, order_id, operation_id) = unresolved(&world, &erp, &relay, Step::Cut).await;
        let why = json!({"outcome": "abandoned", "reason": "ordered by telephone"});
        decide(&shop, &operation_id, "resolve", "a", &why).await.expect(200);
        let done = operation(&shop, &operation_id).await;
        assert_eq!((&done["status"], &done["error"]), (&json!("failed"), &json!("Abandoned")));
        assert_eq!(order(&shop, &order_id).await["status"], "rejected");
        assert_eq!(world.rows("SELECT reason FROM interventions")[0]["reason"], "ordered by telephone");
    }

    async fn who_may_not_manage_decides_nothing(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let (_, _, operation_id) = unresolved(&world, &erp, &relay, Step::Cut).await;
        let plain = world.shop();
        assert_eq!(decide(&plain, &operation_id, "retry", "r", &json!({})).await.expect(403).error(), "Forbidden");
        let stranger = world.caller("other", "desk", &["operations:manage"]);
        let hidden = decide(&stranger, &operation_id, "retry", "r", &json!({})).await.expect(404);
        assert_eq!(hidden.error(), "OperationNotFound");
        assert_eq!(world.count("interventions"), 0);
    }
}
