//! What each outcome leads to: once in effect, whatever becomes of the answer.

use serde_json::{Value, json};

use crate::harness::erp::{FakeErp, Request, Step};
use crate::harness::relay::{HandRelay, create, make_due, operation, order, outcomes, shop_with};
use crate::harness::world::{World, on_both_databases};

/// The headers that no attempt changes: all but the time, the signature over it, and the span of the trace.
fn same_headers(request: &Request) -> Vec<String> {
    let own = ["webhook-timestamp: ", "webhook-signature: ", "traceparent: "];
    request.headers.iter().filter(|line| !own.iter().any(|name| line.starts_with(name))).cloned().collect()
}

on_both_databases! {
    async fn an_order_reaches_the_erp_once_and_everybody_can_see_it(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "lookup");
        let (order_id, operation_id) = create(&shop, "1001").await;
        let before = shop.get(&format!("/v1/orders/{order_id}")).await.expect(200);
        assert_eq!(before.json()["status"], "accepted");
        let waiting = operation(&shop, &operation_id).await;
        assert_eq!((&waiting["status"], &waiting["erp"]["state"]), (&json!("processing"), &json!("waiting")));
        assert_eq!((&waiting["completedAt"], &waiting["expiresAt"]), (&Value::Null, &Value::Null));

        assert_eq!((relay.step().await, relay.step().await), (1, 0));
        let (done, sold) = (operation(&shop, &operation_id).await, order(&shop, &order_id).await);
        assert_eq!((&done["status"], &sold["status"]), (&json!("succeeded"), &json!("confirmed")));
        assert_eq!((&sold["erpReference"], &done["erp"]["erpReference"]), (&json!("SO-1"), &json!("SO-1")));
        assert_eq!((&done["erp"]["reference"], &done["erp"]["state"]), (&json!("web/1001"), &json!("delivered")));
        assert_eq!(outcomes(&done), ["delivered"]);
        assert!(done["completedAt"].is_string() && done["expiresAt"].is_string(), "{done}");
        let after = shop.get(&format!("/v1/orders/{order_id}")).await.expect(200);
        assert_ne!(before.header("etag"), after.header("etag"), "the ERP's change is a visible one");
        assert_eq!(erp.orders(), ["web/1001"]);
    }

    async fn a_webhook_is_signed_and_says_who_it_is(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "lookup");
        let (order_id, _) = create(&shop, "1001").await;
        relay.step().await;
        let request = erp.requests("POST").remove(0);
        assert_eq!((request.path.as_str(), request.header("content-type")), ("/hooks/orders", "application/json"));
        assert_eq!(request.header("idempotency-key"), request.header("webhook-id"));
        assert!(request.header("webhook-signature").starts_with("v1,"));
        let rows = world.rows("SELECT message_id, payload, trace_id FROM outbox");
        assert_eq!(rows[0]["message_id"], request.header("webhook-id"));
        assert_eq!(rows[0]["payload"], request.body.as_str());
        let trace = rows[0]["trace_id"].as_str().expect("it has a trace");
        assert!(request.header("traceparent").starts_with(&format!("00-{trace}-")), "{}", request.header("traceparent"));
        let message: Value = serde_json::from_str(&request.body).expect("it is JSON");
        assert_eq!((&message["type"], &message["orderId"]), (&json!("order.created"), &json!(order_id)));
        assert_eq!(message["order"]["items"][0]["qty"], "2");
    }

    /// Field cases 64, 73, 74 and 83: the ERP has it and we do not know it.
    async fn a_lost_answer_is_looked_for_and_not_sent_again(world: World) {
        for step in [Step::AcceptThenCut, Step::AcceptThenHang, Step::AcceptThenRubbish] {
            let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
            let shop = shop_with(&world, &erp, "lookup");
            erp.script(&[step]);
            let name = format!("{step:?}");
            let (order_id, operation_id) = create(&shop, &name).await;
            relay.step().await;
            let unknown = operation(&shop, &operation_id).await;
            assert_eq!((&unknown["status"], &unknown["erp"]["state"]), (&json!("processing"), &json!("retrying")), "{name}");
            assert!(unknown["erp"]["nextAttemptAt"].is_string(), "{unknown}");
            assert_eq!(outcomes(&unknown), ["unknown"]);

            make_due(&world);
            relay.step().await;
            let done = operation(&shop, &operation_id).await;
            assert_eq!((&done["status"], outcomes(&done)), (&json!("succeeded"), vec!["unknown".into(), "already_there".into()]));
            assert_eq!(order(&shop, &order_id).await["erpReference"], "SO-1", "the look-up told it");
            assert_eq!((erp.requests("POST").len(), erp.requests("GET").len(), erp.orders().len()), (1, 1, 1), "{name}");
        }
    }

    /// Measured with a real ERP: the first request committed after a look-up had said "absent".
    async fn absent_within_the_settle_window_proves_nothing(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        erp.ignore_keys();
        let shop = shop_with(&world, &erp, "lookup");
        erp.script(&[Step::HangThenAccept]);
        let (_, operation_id) = create(&shop, "late").await;
        relay.step().await;
        for _ in 0..3 {
            make_due(&world);
            assert_eq!(relay.step().await, 1);
        }
        assert_eq!((erp.requests("POST").len(), erp.requests("GET").len()), (1, 3), "it looked and did not send");
        let next = world.rows("SELECT next_attempt_at > unknown_since AS later FROM outbox");
        assert!(next[0]["later"] == 1 || next[0]["later"] == true, "the next look is when the window ends: {next:?}");

        erp.release();
        crate::harness::wait::until(std::time::Duration::from_secs(20), "the ERP commits late", || !erp.orders().is_empty());
        make_due(&world);
        relay.step().await;
        assert_eq!(operation(&shop, &operation_id).await["status"], "succeeded");
        assert_eq!((erp.requests("POST").len(), erp.orders().len()), (1, 1));
    }

    /// Field cases 89 and 90: the second try has the same bytes and the same key.
    async fn what_the_erp_surely_has_not_is_sent_again_byte_for_byte(world: World) {
        for step in [Step::Cut, Step::Status(500), Step::Busy("0")] {
            let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[("ORDERS_ERP_SETTLE", "0s")]));
            erp.ignore_keys();
            let shop = shop_with(&world, &erp, "lookup");
            erp.script(&[step]);
            let (_, operation_id) = create(&shop, &format!("{step:?}")).await;
            relay.drain(&world).await;
            assert_eq!(operation(&shop, &operation_id).await["status"], "succeeded", "{step:?}");
            let requests = erp.requests("POST");
            assert_eq!((requests.len(), erp.orders().len()), (2, 1), "{step:?}");
            assert_eq!(requests[0].body, requests[1].body);
            assert_eq!(same_headers(&requests[0]), same_headers(&requests[1]), "{step:?}");
            // What was surely not done needs no look.
            let looks = usize::from(!matches!(step, Step::Busy(_)));
            assert_eq!(erp.requests("GET").len(), looks, "{step:?}");
        }
    }

    /// Field case 82: "exists already" is no failure, of whatever is told.
    async fn what_the_erp_says_it_has_already_is_done(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "lookup");
        erp.script(&[Step::Status(409); 3]);
        let (order_id, operation_id) = create(&shop, "1").await;
        let payment = json!({"orderId": order_id, "amount": 5, "currency": "EUR", "method": "card"});
        let paid = shop.post("/v1/payments", "pay", &payment).await.expect(201).json();
        relay.drain(&world).await;
        let cancelled = shop.post(&format!("/v1/orders/{order_id}/cancel"), "cancel", &json!({})).await.expect(200).json();
        relay.drain(&world).await;
        let text = |answer: &Value| answer["operationId"].as_str().expect("every answer has it").to_owned();
        for operation_id in [operation_id, text(&paid), text(&cancelled)] {
            let done = operation(&shop, &operation_id).await;
            assert_eq!((&done["status"], outcomes(&done)), (&json!("succeeded"), vec!["already_there".to_owned()]));
        }
        assert_eq!(order(&shop, &order_id).await["status"], "cancelled");
        assert_eq!(erp.requests("POST").len(), 3);
    }

    /// A shop that corrects a refused order wants the stock that it has put aside for it; who gives it up releases it.
    async fn a_refused_order_keeps_its_reservations_until_they_are_released(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "lookup");
        erp.script(&[Step::Status(422)]);
        let stock = |on_hand: i32| json!({"onHand": on_hand});
        crate::harness::http::send(shop.command(reqwest::Method::PUT, "/v1/stock/ABC", "s", &stock(5))).await.expect(201);
        let (order_id, operation_id) = create(&shop, "1").await;
        let wish = json!({"orderId": order_id, "items": [{"sku": "ABC", "qty": 2}]});
        let reserved = shop.post("/v1/reservations", "r", &wish).await.expect(201).json();
        relay.drain(&world).await;
        assert_eq!(operation(&shop, &operation_id).await["error"], "RefusedByErp");
        let held = || world.rows("SELECT released_at IS NULL AS held FROM reservations")[0]["held"].clone();
        assert!(held() == 1 || held() == true, "it may be corrected: {}", held());
        let path = format!("/v1/reservations/{}/release", reserved["reservationId"].as_str().expect("an id"));
        shop.post(&path, "free", &json!({})).await.expect(200);
        assert!(held() == 0 || held() == false, "{}", held());
    }

    async fn a_refusal_is_final_and_a_corrected_order_can_follow(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "lookup");
        erp.script(&[Step::Status(422)]);
        let body = json!({"customerId": "c", "items": [{"sku": "NONE", "qty": 1}], "currency": "EUR"});
        let put = |key: &str, precondition: (&'static str, String), body: &Value| {
            shop.request(reqwest::Method::PUT, "/v1/orders/web-1")
                .header("Idempotency-Key", key)
                .header(precondition.0, precondition.1)
                .json(body)
        };
        let first = crate::harness::http::send(put("k1", ("If-None-Match", "*".into()), &body)).await.expect(201).json();
        let payment = json!({"orderId": "web-1", "amount": 5, "currency": "EUR", "method": "card"});
        let paid = shop.post("/v1/payments", "pay-1", &payment).await.expect(201).json();
        relay.drain(&world).await;
        let refused = operation(&shop, first["operationId"].as_str().expect("an id")).await;
        assert_eq!((&refused["status"], &refused["error"]), (&json!("failed"), &json!("RefusedByErp")));
        assert_eq!(refused["erp"]["attempts"][0]["detail"], "the ERP answered 422: the ERP's own words");
        assert_eq!(order(&shop, "web-1").await["status"], "rejected");
        // The money was paid all the same: a person sees it.
        let paid = paid["operationId"].as_str().expect("an id");
        assert_eq!(operation(&shop, paid).await["status"], "unresolved");
        assert_eq!(erp.payments().len(), 0);

        let body = json!({"customerId": "c", "items": [{"sku": "ABC", "qty": 1}], "currency": "EUR"});
        let second = crate::harness::http::send(put("k2", ("If-Match", "*".into()), &body)).await.expect(200).json();
        assert_eq!(operation(&shop, paid).await["status"], "processing");
        relay.drain(&world).await;
        assert_eq!(operation(&shop, second["operationId"].as_str().expect("an id")).await["status"], "succeeded");
        assert_eq!(operation(&shop, paid).await["status"], "succeeded");
        assert_eq!(order(&shop, "web-1").await["status"], "confirmed");
        let kinds: Vec<String> = erp.requests("POST").iter().map(|request| request.body[..30].to_owned()).collect();
        assert!(kinds[1].contains("order.replaced") && kinds[2].contains("payment.received"), "{kinds:?}");
    }

    async fn what_the_receiver_deduplicates_is_sent_again_without_a_look(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "resend");
        erp.script(&[Step::AcceptThenCut]);
        let (_, operation_id) = create(&shop, "again").await;
        relay.drain(&world).await;
        let done = operation(&shop, &operation_id).await;
        assert_eq!((&done["status"], outcomes(&done)), (&json!("succeeded"), vec!["unknown".into(), "already_there".into()]));
        assert_eq!((erp.requests("POST").len(), erp.requests("GET").len(), erp.orders().len()), (2, 0, 1));
    }
}
