//! A cancel before the ERP has the order, while it still can be taken back, and too late.

use order_service::erp::tryton::options::Target;
use serde_json::{Value, json};

use crate::bench::{create, order, relay, shop, shop_at};
use crate::harness::http::Caller;
use crate::harness::relay::{operation, outcomes};
use crate::harness::world::{World, on_both_databases};
use crate::tryton::Tryton;
use crate::wire::Wire;

async fn cancel(shop: &Caller, order_id: &str) -> (String, String) {
    let answer = shop.post(&format!("/v1/orders/{order_id}/cancel"), "cancel", &json!({})).await.expect(200).json();
    let text = |name: &str| answer[name].as_str().expect("every answer has it").to_owned();
    (text("status"), text("operationId"))
}

async fn status(shop: &Caller, order_id: &str) -> Value {
    crate::harness::relay::order(shop, order_id).await["status"].clone()
}

fn states(tryton: &Tryton) -> Vec<Value> {
    tryton.rows("SELECT state FROM sale_sale").into_iter().map(|row| row["state"].clone()).collect()
}

on_both_databases! {
    async fn before_the_erp_was_asked_it_never_hears_of_it(world: World) {
        let tryton = Tryton::start();
        let (shop, relay) = (shop(&world, &tryton, Target::Confirmed), relay(&world, &tryton, &[]));
        let (order_id, operation_id) = create(&shop, &order("1")).await;
        assert_eq!(cancel(&shop, &order_id).await.0, "cancelled");
        relay.drain(&world).await;
        assert_eq!(operation(&shop, &operation_id).await["error"], "OrderWithdrawn");
        assert_eq!(states(&tryton), Vec::<Value>::new());
    }

    async fn a_sale_that_is_not_confirmed_is_cancelled_once_though_the_answer_is_lost(world: World) {
        let tryton = Tryton::start();
        let (wire, relay) = (Wire::to(tryton.address()), relay(&world, &tryton, &[]));
        let shop = shop_at(&world, &tryton, wire.address(), Target::Quotation);
        let (order_id, operation_id) = create(&shop, &order("1")).await;
        relay.drain(&world).await;
        assert_eq!((states(&tryton), status(&shop, &order_id).await), (vec![json!("quotation")], json!("confirmed")));
        let (said, cancelling) = cancel(&shop, &order_id).await;
        assert_eq!(said, "cancelling");
        wire.lose_the_answer_to("/cancel");
        relay.drain(&world).await;
        assert_eq!(wire.lost(), 1);
        let done = operation(&shop, &cancelling).await;
        assert_eq!((&done["status"], outcomes(&done)), (&json!("succeeded"), vec!["unknown".into(), "already_there".into()]));
        assert_eq!((states(&tryton), status(&shop, &order_id).await), (vec![json!("cancelled")], json!("cancelled")));
        assert_eq!(operation(&shop, &operation_id).await["status"], "succeeded", "what was done stays done");
        assert_eq!(wire.posts("/cancel"), 1);
    }

    async fn a_confirmed_sale_cannot_be_taken_back(world: World) {
        let tryton = Tryton::start();
        let (shop, relay) = (shop(&world, &tryton, Target::Confirmed), relay(&world, &tryton, &[]));
        let (order_id, operation_id) = create(&shop, &order("1")).await;
        relay.drain(&world).await;
        let (said, cancelling) = cancel(&shop, &order_id).await;
        assert_eq!(said, "cancelling");
        relay.drain(&world).await;
        let late = operation(&shop, &cancelling).await;
        assert_eq!((&late["status"], &late["error"]), (&json!("failed"), &json!("OrderNotCancellable")));
        let why = late["erp"]["attempts"][0]["detail"].as_str().expect("an attempt says why");
        assert!(why.contains("is processing in the ERP"), "{why}");
        assert_eq!((states(&tryton), status(&shop, &order_id).await), (vec![json!("processing")], json!("confirmed")));
        assert_eq!(operation(&shop, &operation_id).await["status"], "succeeded");
    }
}
