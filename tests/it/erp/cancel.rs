//! A cancel before the ERP was asked, after it, and too late.

use serde_json::json;

use crate::harness::erp::{FakeErp, Step};
use crate::harness::http::Caller;
use crate::harness::relay::{HandRelay, create, operation, order, shop_with};
use crate::harness::world::{World, on_both_databases};

async fn cancel(shop: &Caller, order_id: &str) -> (String, String) {
    let answer = shop.post(&format!("/v1/orders/{order_id}/cancel"), "cancel", &json!({})).await.expect(200).json();
    let text = |name: &str| answer[name].as_str().expect("every answer has it").to_owned();
    (text("status"), text("operationId"))
}

on_both_databases! {
    async fn before_the_erp_was_asked_the_hand_over_is_withdrawn(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "lookup");
        let (order_id, operation_id) = create(&shop, "1").await;
        let (status, cancelling) = cancel(&shop, &order_id).await;
        assert_eq!(status, "cancelled");
        assert_eq!(operation(&shop, &cancelling).await["status"], "succeeded");
        let withdrawn = operation(&shop, &operation_id).await;
        assert_eq!((&withdrawn["status"], &withdrawn["error"]), (&json!("failed"), &json!("OrderWithdrawn")));
        relay.drain(&world).await;
        assert_eq!(erp.requests("POST").len(), 0);
    }

    /// An attempt that surely did not arrive has asked the ERP nothing.
    async fn what_surely_did_not_arrive_can_still_be_withdrawn(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "lookup");
        erp.script(&[Step::Busy("1")]);
        let (order_id, _) = create(&shop, "1").await;
        relay.step().await;
        assert_eq!(cancel(&shop, &order_id).await.0, "cancelled");
    }

    async fn what_may_have_arrived_is_handed_over_first_and_then_cancelled(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "lookup");
        erp.script(&[Step::AcceptThenCut]);
        let (order_id, operation_id) = create(&shop, "1").await;
        relay.step().await;
        let (status, cancelling) = cancel(&shop, &order_id).await;
        assert_eq!(status, "cancelling");
        relay.drain(&world).await;
        assert_eq!(operation(&shop, &operation_id).await["status"], "succeeded");
        assert_eq!(operation(&shop, &cancelling).await["status"], "succeeded");
        assert_eq!((order(&shop, &order_id).await["status"].clone(), erp.orders(), erp.cancelled()), (json!("cancelled"), vec!["web/1".to_owned()], vec!["web/1".to_owned()]));
    }

    async fn too_late_is_said_and_the_order_stays_confirmed(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "lookup");
        let (order_id, operation_id) = create(&shop, "1").await;
        relay.drain(&world).await;
        erp.script(&[Step::Status(422)]);
        let (status, cancelling) = cancel(&shop, &order_id).await;
        assert_eq!(status, "cancelling");
        relay.drain(&world).await;
        let late = operation(&shop, &cancelling).await;
        assert_eq!((&late["status"], &late["error"]), (&json!("failed"), &json!("OrderNotCancellable")));
        assert_eq!(order(&shop, &order_id).await["status"], "confirmed");
        assert_eq!(operation(&shop, &operation_id).await["status"], "succeeded");
    }

    async fn a_cancel_whose_answer_is_lost_is_asked_again(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "hold");
        let (order_id, _) = create(&shop, "1").await;
        relay.drain(&world).await;
        erp.script(&[Step::AcceptThenCut]);
        let (_, cancelling) = cancel(&shop, &order_id).await;
        relay.drain(&world).await;
        assert_eq!(operation(&shop, &cancelling).await["status"], "succeeded");
        assert_eq!((order(&shop, &order_id).await["status"].clone(), erp.cancelled().len()), (json!("cancelled"), 1));
    }

    async fn a_refused_order_that_is_being_cancelled_is_cancelled(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[("ORDERS_ERP_SETTLE", "0s")]));
        let shop = shop_with(&world, &erp, "lookup");
        erp.script(&[Step::Cut, Step::Status(422)]);
        let (order_id, operation_id) = create(&shop, "1").await;
        relay.step().await;
        let (status, cancelling) = cancel(&shop, &order_id).await;
        assert_eq!(status, "cancelling");
        relay.drain(&world).await;
        assert_eq!(operation(&shop, &operation_id).await["error"], "RefusedByErp");
        assert_eq!(operation(&shop, &cancelling).await["status"], "succeeded");
        assert_eq!((order(&shop, &order_id).await["status"].clone(), erp.cancelled().len()), (json!("cancelled"), 0));
    }
}
