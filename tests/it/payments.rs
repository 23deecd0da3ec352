//! Payments: each is told once, the order knows what was paid, and the ERP hears of it.

use serde_json::{Value, json};

use crate::harness::http::{Answer, Caller};
use crate::harness::world::{World, on_both_databases};
use crate::stock::{assert_replay, without_request};

/// An application of the tenant of `World::shop` that tells of payments.
pub fn teller(world: &World) -> Caller {
    world.caller("acme", "teller", &["payments:write", "payments:read"])
}

/// Makes an order with this gross total, and tells its id.
pub async fn order(world: &World, key: &str, gross: &str) -> String {
    let body = json!({"customerId": "cus_123", "items": [{"sku": "ABC", "qty": 1}], "currency": "EUR",
        "totals": {"gross": gross}});
    made(&world.shop().post("/v1/orders", key, &body).await.expect(201), "orderId")
}

/// Tells of a payment by card in EUR.
pub async fn pay(caller: &Caller, key: &str, order_id: &str, amount: &str, reference: Option<&str>) -> Answer {
    let body =
        json!({"orderId": order_id, "amount": amount, "currency": "EUR", "method": "card", "reference": reference});
    caller.post("/v1/payments", key, &body).await
}

fn made(answer: &Answer, member: &str) -> String {
    answer.json()[member].as_str().expect("an id is text").to_owned()
}

/// The `ETag` of an order, and what was paid of it.
async fn state(world: &World, order_id: &str) -> (String, Value) {
    let read = world.shop().get(&format!("/v1/orders/{order_id}")).await.expect(200);
    (read.header("etag").expect("an order has a version").to_owned(), read.json()["paidAmount"].clone())
}

on_both_databases! {
    async fn a_payment_is_written_down_and_the_order_and_the_erp_know_of_it(world: World) {
        let teller = teller(&world);
        let order_id = order(&world, "o1", "39.90").await;
        let before = state(&world, &order_id).await;
        assert_eq!(before.1, "0");
        let body = json!({"orderId": order_id, "amount": "30.00", "currency": "eur", "method": "card",
            "reference": "pi_3QK2", "paidAt": "2026-03-02T09:15:31.50+01:00"});
        let paid = teller.post("/v1/payments", "p1", &body).await.expect(201);
        let (payment, operation) = (made(&paid, "paymentId"), made(&paid, "operationId"));
        let path = format!("/v1/payments/{payment}");
        assert_eq!(paid.header("location"), Some(path.as_str()));
        assert_eq!(paid.json()["status"], "received");

        let after = state(&world, &order_id).await;
        assert_eq!(after.1, "30");
        assert_ne!(after.0, before.0);
        let mut read = teller.get(&path).await.expect(200).json();
        read.as_object_mut().expect("a payment is an object").remove("createdAt").expect("it has a time");
        let links = json!({"self": path, "order": format!("/v1/orders/{order_id}"),
            "operation": format!("/v1/operations/{operation}")});
        assert_eq!(
            read,
            json!({"paymentId": payment, "status": "received", "operationId": operation, "orderId": order_id,
                "amount": "30", "currency": "EUR", "method": "card", "reference": "pi_3QK2",
                "paidAt": "2026-03-02T08:15:31.5Z", "links": links})
        );

        let messages = world.rows("SELECT operation_id, order_id, position, payload FROM outbox WHERE kind = 'payment.received'");
        assert_eq!(messages.len(), 1);
        assert_eq!(messages[0]["operation_id"], json!(operation));
        assert_eq!((&messages[0]["order_id"], &messages[0]["position"]), (&json!(order_id), &json!(2)));
        let mut payload: Value = serde_json::from_str(messages[0]["payload"].as_str().expect("text")).expect("JSON");
        payload.as_object_mut().expect("an object").remove("occurredAt").expect("a message has a time");
        assert_eq!(
            payload,
            json!({"type": "payment.received", "reference": order_id, "orderId": order_id,
                "payment": {"paymentId": payment, "amount": "30", "currency": "EUR", "method": "card",
                    "reference": "pi_3QK2", "paidAt": "2026-03-02T08:15:31.5Z"}})
        );

        pay(&teller, "p2", &order_id, "9.90", None).await.expect(201);
        assert_eq!(state(&world, &order_id).await.1, "39.9");
        let replay = teller.post("/v1/payments", "p1", &body).await.expect(201);
        assert_replay(&replay, &paid);
        assert_eq!(world.rows("SELECT paid_amount, version FROM orders"), [json!({"paid_amount": "39.9", "version": 3})]);
        assert_eq!(world.count("payments"), 2);
    }

    async fn a_refused_payment_leaves_nothing_but_its_claim_and_its_answer(world: World) {
        let teller = teller(&world);
        let order_id = order(&world, "o1", "39.90").await;
        pay(&teller, "p1", &order_id, "30", Some("pi_1")).await.expect(201);
        let rows = |tables: [&str; 3]| tables.map(|table| world.count(table));
        let before = (rows(["payments", "outbox", "claims"]), state(&world, &order_id).await);

        let over = pay(&teller, "p2", &order_id, "9.91", None).await.expect(409);
        assert_eq!(over.error(), "Overpayment");
        assert_eq!(over.json()["detail"], "Of the order's total 9.9 EUR is open.");
        assert_eq!(over.json()["links"]["order"], format!("/v1/orders/{order_id}"));
        // A payment that is told twice is a duplicate, though it would be too much too.
        let twice = pay(&teller, "p3", &order_id, "30", Some("pi_1")).await.expect(409);
        assert_eq!(twice.error(), "DuplicatePayment");
        let existing = world.rows("SELECT payment_id FROM payments")[0]["payment_id"].clone();
        let existing = existing.as_str().expect("an id is text");
        assert_eq!(twice.json()["links"]["payment"], format!("/v1/payments/{existing}"));
        let body = json!({"orderId": order_id, "amount": 1, "currency": "CZK", "method": "card"});
        let currency = teller.post("/v1/payments", "p4", &body).await.expect(409);
        assert_eq!((currency.error(), currency.json()["detail"].clone()),
            ("CurrencyMismatch".to_owned(), json!("The order is in EUR, the payment in CZK.")));
        assert_eq!(pay(&teller, "p5", "ord_0", "1", None).await.expect(404).error(), "OrderNotFound");

        let ([payments, outbox, claims], order_before) = before;
        assert_eq!(rows(["payments", "outbox", "claims"]), [payments, outbox, claims + 4]);
        assert_eq!(state(&world, &order_id).await, order_before);
        // The answer stays, though now the rest would fit.
        world.database().execute("UPDATE orders SET paid_amount = '0'");
        let replay = pay(&teller, "p2", &order_id, "9.91", None).await.expect(409);
        assert_replay(&replay, &over);
    }

    async fn an_amount_is_positive_and_fits_its_currency(world: World) {
        let teller = teller(&world);
        let order_id = order(&world, "o1", "39.90").await;
        let cases = [
            ("EUR", json!(0), "TooSmall"),
            ("EUR", json!("-1"), "TooSmall"),
            ("EUR", json!("0.001"), "TooManyDigits"),
            ("JPY", json!("1.5"), "TooManyDigits"),
            ("KWD", json!("0.0001"), "TooManyDigits"),
            ("EUR", json!("1,50"), "NotADecimal"),
        ];
        for (index, (currency, amount, code)) in cases.into_iter().enumerate() {
            let body = json!({"orderId": order_id, "amount": amount, "currency": currency, "method": "card"});
            let refused = teller.post("/v1/payments", &format!("k{index}"), &body).await.expect(400);
            let detail = &refused.json()["details"][0];
            assert_eq!((&detail["pointer"], &detail["code"]), (&json!("/amount"), &json!(code)), "{body}");
        }
        let refused = teller.post("/v1/payments", "all", &json!({"amount": "0.001", "currency": "EUR"})).await.expect(400);
        assert_eq!(refused.json()["details"].as_array().map(Vec::len), Some(3), "{}", refused.text());
        assert_eq!((world.count("payments"), world.count("operations")), (0, 8));
        pay(&teller, "k", &order_id, "1.500", None).await.expect(201);
    }

    async fn without_a_gross_total_nothing_is_too_much(world: World) {
        let teller = teller(&world);
        let body = json!({"customerId": "cus_123", "items": [{"sku": "ABC", "qty": 1, "total": 1}], "currency": "EUR"});
        let order_id = made(&world.shop().post("/v1/orders", "o1", &body).await.expect(201), "orderId");
        pay(&teller, "p1", &order_id, "999999999999999", None).await.expect(201);
        pay(&teller, "p2", &order_id, "0.01", None).await.expect(201);
        assert_eq!(state(&world, &order_id).await.1, "999999999999999.01");
    }

    async fn a_reference_is_unique_in_its_order_and_its_absence_is_not(world: World) {
        let teller = teller(&world);
        let (first, second) = (order(&world, "o1", "9").await, order(&world, "o2", "9").await);
        pay(&teller, "p1", &first, "1", Some("pi_1")).await.expect(201);
        pay(&teller, "p2", &second, "1", Some("pi_1")).await.expect(201);
        pay(&teller, "p3", &first, "1", Some("pi_2")).await.expect(201);
        pay(&teller, "p4", &first, "1", None).await.expect(201);
        pay(&teller, "p5", &first, "1", None).await.expect(201);
        assert_eq!(pay(&teller, "p6", &first, "1", Some("pi_2")).await.expect(409).error(), "DuplicatePayment");
        assert_eq!(state(&world, &first).await.1, "4");
        assert_eq!(world.count("payments"), 5);
    }

    async fn a_closed_order_takes_no_payment_and_one_that_is_being_cancelled_does(world: World) {
        let teller = teller(&world);
        let order_id = order(&world, "o1", "9").await;
        for (status, expected) in [("rejected", 409), ("cancelled", 409), ("cancelling", 201), ("confirmed", 201)] {
            world.database().execute(&format!("UPDATE orders SET status = '{status}'"));
            let answer = pay(&teller, status, &order_id, "1", None).await.expect(expected);
            assert!(expected == 201 || answer.error() == "OrderClosed", "{}", answer.text());
        }
        assert_eq!(world.count("payments"), 2);
    }

    async fn a_payment_is_seen_by_its_tenant_and_with_its_scope_alone(world: World) {
        let teller = teller(&world);
        let order_id = order(&world, "o1", "9").await;
        let paid = pay(&teller, "p1", &order_id, "1", None).await.expect(201);
        let path = format!("/v1/payments/{}", made(&paid, "paymentId"));
        assert_eq!(world.shop().get(&path).await.expect(403).error(), "Forbidden");
        assert_eq!(pay(&world.shop(), "p1", &order_id, "1", None).await.expect(403).error(), "Forbidden");

        let stranger = world.caller("other", "teller", &["payments:write", "payments:read"]);
        let (theirs, unknown) = (stranger.get(&path).await.expect(404), stranger.get("/v1/payments/pay_0").await);
        assert_eq!(theirs.error(), "PaymentNotFound");
        assert_eq!(without_request(&theirs), without_request(&unknown.expect(404)));
        let theirs = pay(&stranger, "p1", &order_id, "1", None).await.expect(404);
        let unknown = pay(&stranger, "p2", "ord_0", "1", None).await.expect(404);
        assert_eq!(without_request(&theirs), without_request(&unknown));
        assert_eq!(world.count("payments"), 1);
    }
}
