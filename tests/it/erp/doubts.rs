//! Doubts that one attempt leaves for the next, and failures of one message that must not become those of the others: a
//! refusal that is not the last word, poisoned orders, a cancel behind a payment, a relay that dies over a message.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::{Connection, PgConnection};
use order_service::db::Db;
use order_service::outbox::Channel;
use order_service::outbox::lease::{self, Terms};
use serde_json::json;

use crate::harness::erp::{FakeErp, Step};
use crate::harness::relay::{
    HandRelay, connect, create, make_due, operation, order, outcomes, relay_config, shop_with,
};
use crate::harness::wait::eventually;
use crate::harness::world::{TENANT, World, on_both_databases, on_postgres};
use crate::retention::{FORGOTTEN, age_where};

const SOON: Duration = Duration::from_secs(30);
const EVERYTHING: &[&str] = &["orders:write", "orders:read", "payments:write", "operations:read", "operations:manage"];

on_both_databases! {
    /// A firewall answers 403 to the second request; the first has been taken.
    async fn a_refusal_after_a_lost_answer_is_a_matter_for_a_person(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "resend");
        erp.script(&[Step::AcceptThenCut, Step::Status(403)]);
        let (order_id, operation_id) = create(&shop, "1").await;
        relay.drain(&world).await;
        let ended = operation(&shop, &operation_id).await;
        assert_eq!((&ended["status"], outcomes(&ended)), (&json!("unresolved"), vec!["unknown".to_owned(); 2]));
        assert_eq!(order(&shop, &order_id).await["status"], "accepted", "it is not rejected: the ERP has it");
        assert_eq!(erp.orders().len(), 1);
    }

    async fn a_cancel_that_may_have_arrived_is_not_too_late_because_the_second_one_is(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "lookup");
        let (order_id, _) = create(&shop, "1").await;
        relay.drain(&world).await;
        erp.script(&[Step::AcceptThenCut, Step::Status(404)]);
        let cancel = shop.post(&format!("/v1/orders/{order_id}/cancel"), "c", &json!({})).await.expect(200).json();
        relay.drain(&world).await;
        let operation_id = cancel["operationId"].as_str().expect("an id");
        assert_eq!(operation(&shop, operation_id).await["status"], "unresolved");
        assert_eq!(order(&shop, &order_id).await["status"], "cancelling");
    }

    async fn the_erps_name_of_a_payment_is_not_its_name_of_the_order(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "lookup");
        let (order_id, _) = create(&shop, "1").await;
        let payment = json!({"orderId": order_id, "amount": 1, "currency": "EUR", "method": "card"});
        shop.post("/v1/payments", "p", &payment).await.expect(201);
        relay.drain(&world).await;
        assert_eq!((erp.payments().len(), &order(&shop, &order_id).await["erpReference"]), (1, &json!("SO-1")));
    }

    async fn poisoned_orders_do_not_make_the_connection_rest_for_the_others(world: World) {
        let settings = [("ORDERS_ERP_SETTLE", "0s"), ("ORDERS_RELAY_PARALLEL", "8")];
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &settings));
        let shop = shop_with(&world, &erp, "lookup");
        erp.always("web/bad", Step::Status(500));
        for number in 0..6 {
            create(&shop, &format!("bad-{number}")).await;
        }
        for _ in 0..4 {
            make_due(&world);
            relay.step().await;
        }
        let (_, good) = create(&shop, "good").await;
        make_due(&world);
        assert_eq!(relay.step().await, 1, "the connection seems dead: one message tries");
        assert_eq!(operation(&shop, &good).await["status"], "succeeded", "and it is the one that has not failed yet");
        for _ in 0..4 {
            make_due(&world);
            relay.step().await;
        }
        let failures = world.rows("SELECT failures, paused_until FROM connections");
        assert_eq!(failures, [json!({"failures": 0, "paused_until": null})], "old failures again say nothing new");
    }

    async fn an_erp_that_is_not_there_costs_an_order_time_and_no_attempts(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "lookup");
        drop(erp);
        let (_, operation_id) = create(&shop, "1").await;
        for _ in 0..30 {
            make_due(&world);
            assert_eq!(relay.step().await, 1);
        }
        let waiting = operation(&shop, &operation_id).await;
        assert_eq!((&waiting["status"], outcomes(&waiting)), (&json!("processing"), vec!["not_delivered".to_owned(); 30]));
        world.database().execute("UPDATE outbox SET spent_since = '2000-01-01 00:00:00'");
        make_due(&world);
        relay.step().await;
        assert_eq!(operation(&shop, &operation_id).await["status"], "unresolved");
    }

    async fn a_cancel_does_not_wait_for_a_doubt_about_money(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "lookup");
        let (order_id, _) = create(&shop, "1").await;
        relay.drain(&world).await;
        erp.script(&[Step::AcceptThenCut]);
        let payment = json!({"orderId": order_id, "amount": 1, "currency": "EUR", "method": "card"});
        let paid = shop.post("/v1/payments", "p", &payment).await.expect(201).json();
        relay.drain(&world).await;
        let paid = paid["operationId"].as_str().expect("an id");
        assert_eq!(operation(&shop, paid).await["status"], "unresolved");
        shop.post(&format!("/v1/orders/{order_id}/cancel"), "c", &json!({})).await.expect(200);
        relay.drain(&world).await;
        assert_eq!((&order(&shop, &order_id).await["status"], erp.cancelled().len()), (&json!("cancelled"), 1));
        assert_eq!(operation(&shop, paid).await["status"], "unresolved", "the payment still is a matter for a person");
    }

    async fn a_message_that_its_relays_die_over_has_a_budget_too(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[("ORDERS_RETRY_ATTEMPTS", "3")]));
        let shop = shop_with(&world, &erp, "resend");
        let (_, operation_id) = create(&shop, "1").await;
        let mut db = Db::open(&relay_config(world.database(), &[]).database).expect("the database takes connections");
        let none = Terms { parallel: 4, length: Duration::ZERO };
        for _ in 0..3 {
            lease::lease(&mut db, TENANT, Channel::Erp, none).expect("it works").expect("it is due");
        }
        assert_eq!(relay.step().await, 1);
        assert_eq!(operation(&shop, &operation_id).await["status"], "unresolved");
        assert_eq!(erp.requests("POST").len(), 0, "three relays have died over it");
    }

    async fn what_failed_by_the_old_connection_says_nothing_of_the_new_one(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[("ORDERS_RETRY_CAP", "15m")]));
        let shop = shop_with(&world, &erp, "lookup");
        erp.script(&[Step::Hang]);
        create(&shop, "1").await;
        let person = async {
            eventually(SOON, "the request is under way", async || (!erp.requests("POST").is_empty()).then_some(())).await;
            connect(&world, TENANT, &erp, "lookup");
        };
        tokio::join!(relay.step(), person);
        assert_eq!(world.rows("SELECT failures FROM connections"), [json!({"failures": 0})]);
    }

    async fn a_key_is_forgotten_and_its_message_is_delivered_all_the_same(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = world.caller(TENANT, "shop", EVERYTHING);
        let (order_id, operation_id) = create(&shop, "1").await;
        connect(&world, TENANT, &erp, "lookup");
        age_where(world.database(), FORGOTTEN, &format!("operation_id = '{operation_id}'"));
        // Who needs the key forgets it.
        let body = json!({
            "customerId": "cus_123", "items": [{"sku": "ABC", "qty": 2}], "currency": "EUR",
            "channel": "web", "externalOrderId": "1"
        });
        shop.post("/v1/orders", "key-1", &body).await.expect(409);
        relay.drain(&world).await;
        assert_eq!(order(&shop, &order_id).await["status"], "confirmed");
        assert_eq!(erp.orders(), ["web/1"]);
    }
}

on_postgres! {
    async fn a_fault_at_one_tenant_loses_nothing_that_was_leased_for_another(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "lookup");
        let other = world.caller("zzz", "shop", EVERYTHING);
        connect(&world, "zzz", &erp, "lookup");
        let (_, operation_id) = create(&shop, "1").await;
        create(&other, "2").await;
        let mut rival = PgConnection::establish(world.database().url()).expect("the server takes connections");
        rival.batch_execute("BEGIN; SELECT 1 FROM connections WHERE tenant_id = 'zzz' FOR UPDATE").expect("it is free");
        assert_eq!(relay.step().await, 1, "the order of the tenant before it");
        assert_eq!(operation(&shop, &operation_id).await["status"], "succeeded");
        rival.batch_execute("ROLLBACK").expect("the transaction is open");
        relay.drain(&world).await;
        assert_eq!(erp.orders().len(), 2);
    }
}
