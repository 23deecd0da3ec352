//! Reservations: all lines or none, the last piece once, free again when released, when expired or with the order.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::http::{Answer, Caller};
use crate::harness::wait::eventually;
use crate::harness::world::{World, on_both_databases};
use crate::stock::{assert_replay, level, put, warehouse, without_request};

/// Longer than the shortest expiry of a test, on a busy machine.
const SOON: Duration = Duration::from_secs(20);

/// Asks for one reservation of the lines `[sku, qty]`.
pub async fn reserve(caller: &Caller, key: &str, lines: &[(&str, &str)]) -> Answer {
    caller.post("/v1/reservations", key, &json!({"items": items(lines)})).await
}

fn items(lines: &[(&str, &str)]) -> Vec<Value> {
    lines.iter().map(|(sku, qty)| json!({"sku": sku, "qty": qty})).collect()
}

async fn release(caller: &Caller, key: &str, reservation_id: &str) -> Answer {
    caller.post_bytes(&format!("/v1/reservations/{reservation_id}/release"), key, "{}").await
}

fn id(answer: &Answer, member: &str) -> String {
    answer.json()[member].as_str().expect("an id is text").to_owned()
}

async fn order(world: &World, key: &str) -> String {
    let body = json!({"customerId": "cus_123", "items": [{"sku": "ABC", "qty": 2}], "currency": "EUR"});
    id(&world.shop().post("/v1/orders", key, &body).await.expect(201), "orderId")
}

/// Lets the time of a reservation be over, without waiting for it.
fn let_expire(world: &World) {
    world.database().execute(
        "UPDATE reservations SET expires_at = '2020-01-01 00:00:00'; \
         UPDATE reservation_lines SET held_until = '2020-01-01 00:00:00'",
    );
}

on_both_databases! {
    async fn a_reservation_holds_its_lines_and_is_read_as_it_was_sent(world: World) {
        let warehouse = warehouse(&world);
        put(&warehouse, "ABC", "s1", "5").await.expect(201);
        put(&warehouse, "%C4%BE%2F1", "s3", "5").await.expect(201);
        let body = json!({"items": [{"sku": "ľ/1", "qty": "1.50"}, {"sku": "ABC", "qty": 2}, {"sku": "ABC", "qty": 1}],
            "expiresAt": "2099-03-02T09:15:31.4804+01:00"});
        let made = warehouse.post("/v1/reservations", "r1", &body).await.expect(201);
        let (reservation, operation) = (id(&made, "reservationId"), id(&made, "operationId"));
        let path = format!("/v1/reservations/{reservation}");
        assert_eq!(made.header("location"), Some(path.as_str()));
        assert_eq!(made.json()["status"], "reserved");

        let mut read = warehouse.get(&path).await.expect(200).json();
        read.as_object_mut().expect("a reservation is an object").remove("createdAt").expect("it has a time");
        assert_eq!(
            read,
            json!({"reservationId": reservation, "status": "reserved",
                "items": [{"sku": "ľ/1", "qty": "1.5"}, {"sku": "ABC", "qty": "2"}, {"sku": "ABC", "qty": "1"}],
                "expiresAt": "2099-03-02T08:15:31.480Z", "operationId": operation,
                "links": {"self": path, "operation": format!("/v1/operations/{operation}")}})
        );
        assert_eq!(level(&warehouse, "ABC").await, ["5", "3", "2"]);
        assert_eq!(level(&warehouse, "%C4%BE%2F1").await, ["5", "1.5", "3.5"]);
        assert_eq!((world.count("reservations"), world.count("reservation_lines")), (1, 3));

        let replay = warehouse.post("/v1/reservations", "r1", &body).await.expect(201);
        assert_replay(&replay, &made);
        assert_eq!((world.count("reservations"), world.count("reservation_lines")), (1, 3));
    }

    async fn a_shortage_names_the_lines_that_lack_and_reserves_nothing(world: World) {
        let warehouse = warehouse(&world);
        put(&warehouse, "A", "s1", "5").await.expect(201);
        put(&warehouse, "B", "s2", "2").await.expect(201);
        let refused =
            reserve(&warehouse, "r1", &[("A", "5"), ("B", "1.5"), ("nobody knows it", "1"), ("B", "1")]).await.expect(409);
        assert_eq!(refused.error(), "InsufficientStock");
        assert_eq!(
            refused.json()["details"],
            json!([
                {"pointer": "/items/1/qty", "code": "NotAvailable",
                    "message": "2 of this SKU is available, 2.5 is asked for."},
                {"pointer": "/items/2/sku", "code": "UnknownSku", "message": "There is no stock of this SKU."},
                {"pointer": "/items/3/qty", "code": "NotAvailable",
                    "message": "2 of this SKU is available, 2.5 is asked for."},
            ])
        );
        assert_eq!((world.count("reservations"), world.count("reservation_lines")), (0, 0));
        assert_eq!((world.count("claims"), world.count("operations"), world.count("outbox")), (3, 3, 0));
        reserve(&warehouse, "r2", &[("A", "5"), ("B", "1"), ("B", "1")]).await.expect(201);
        assert_eq!(level(&warehouse, "B").await, ["2", "2", "0"]);
    }

    /// The case that refusals are recorded for: a lost "out of stock" must not become an order when it is asked for again.
    async fn a_refusal_for_lack_of_stock_stays_one_when_stock_arrives(world: World) {
        let warehouse = warehouse(&world);
        put(&warehouse, "ABC", "s1", "0").await.expect(201);
        let refused = reserve(&warehouse, "r1", &[("ABC", "1")]).await.expect(409);
        assert_eq!(refused.error(), "InsufficientStock");
        put(&warehouse, "ABC", "s2", "1").await.expect(200);

        let replay = reserve(&warehouse, "r1", &[("ABC", "1")]).await.expect(409);
        assert_replay(&replay, &refused);
        assert_eq!(world.count("reservations"), 0);
        assert_eq!(level(&warehouse, "ABC").await, ["1", "0", "1"]);

        reserve(&warehouse, "r2", &[("ABC", "1")]).await.expect(201);
        assert_eq!(level(&warehouse, "ABC").await, ["1", "1", "0"]);
        assert_eq!(reserve(&warehouse, "r1", &[("ABC", "1")]).await.expect(409).body, refused.body);
    }

    async fn what_has_expired_is_free_though_nobody_cleaned_up(world: World) {
        let warehouse = warehouse(&world);
        put(&warehouse, "ABC", "s1", "1").await.expect(201);
        let body = json!({"items": items(&[("ABC", "1")]), "expiresAt": "2099-01-01T00:00:00Z"});
        let reservation = id(&warehouse.post("/v1/reservations", "r1", &body).await.expect(201), "reservationId");
        reserve(&warehouse, "r2", &[("ABC", "1")]).await.expect(409);
        let_expire(&world);

        assert_eq!(level(&warehouse, "ABC").await, ["1", "0", "1"]);
        let path = format!("/v1/reservations/{reservation}");
        assert_eq!(warehouse.get(&path).await.expect(200).json()["status"], "expired");
        put(&warehouse, "ABC", "s2", "0").await.expect(200);
        put(&warehouse, "ABC", "s3", "1").await.expect(200);
        reserve(&warehouse, "r3", &[("ABC", "1")]).await.expect(201);
        // There is nothing to give back, and what the other holds is not given back by mistake.
        let refused = release(&warehouse, "r4", &reservation).await.expect(409);
        assert_eq!(refused.error(), "ReservationAlreadyReleased");
        assert_eq!(refused.json()["detail"], "The reservation expired at 2020-01-01T00:00:00.000Z.");
        assert_eq!(level(&warehouse, "ABC").await, ["1", "1", "0"]);
    }

    async fn a_reservation_expires_by_the_clock_of_the_database(world: World) {
        let warehouse = warehouse(&world);
        put(&warehouse, "ABC", "s1", "2").await.expect(201);
        let first = id(&reserve(&warehouse, "r1", &[("ABC", "1")]).await.expect(201), "reservationId");
        let now = id(&warehouse.get(&format!("/v1/reservations/{first}")).await.expect(200), "createdAt");
        let now = chrono::DateTime::parse_from_rfc3339(&now).expect("the API writes RFC 3339");
        let soon = (now + Duration::from_secs(3)).to_rfc3339();
        let body = json!({"items": items(&[("ABC", "1")]), "expiresAt": soon});
        let short = id(&warehouse.post("/v1/reservations", "r2", &body).await.expect(201), "reservationId");
        let path = format!("/v1/reservations/{short}");
        eventually(SOON, "the expiry", async || {
            (warehouse.get(&path).await.expect(200).json()["status"] == "expired").then_some(())
        })
        .await;
        assert_eq!(level(&warehouse, "ABC").await, ["2", "1", "1"]);
        reserve(&warehouse, "r3", &[("ABC", "1")]).await.expect(201);
    }

    async fn an_expiry_that_is_over_is_refused_and_recorded(world: World) {
        let warehouse = warehouse(&world);
        put(&warehouse, "ABC", "s1", "1").await.expect(201);
        let body = json!({"items": items(&[("ABC", "1")]), "expiresAt": "2020-01-01T00:00:00Z"});
        let refused = warehouse.post("/v1/reservations", "r1", &body).await.expect(400);
        assert_eq!(refused.error(), "InvalidRequest");
        assert_eq!(refused.json()["details"][0]["pointer"], "/expiresAt");
        assert_eq!(refused.json()["details"][0]["code"], "NotInTheFuture");
        let replay = warehouse.post("/v1/reservations", "r1", &body).await.expect(400);
        assert_replay(&replay, &refused);
        assert_eq!((world.count("reservations"), world.count("claims")), (0, 2));
    }

    async fn a_body_that_breaks_the_rules_is_refused_with_every_fault(world: World) {
        let warehouse = warehouse(&world);
        let body = json!({"items": [{"sku": "", "qty": 0}, {"qty": "1.0000001"}], "orderId": "", "until": 1});
        let refused = warehouse.post("/v1/reservations", "r1", &body).await.expect(400);
        let details = refused.json()["details"].clone();
        let pointers: Vec<&str> =
            details.as_array().expect("a list").iter().filter_map(|fault| fault["pointer"].as_str()).collect();
        assert_eq!(
            pointers,
            ["/items/0/sku", "/items/0/qty", "/items/1/sku", "/items/1/qty", "/orderId", "/until"]
        );
        warehouse.post("/v1/reservations", "r2", &json!({"items": []})).await.expect(400);
        assert_eq!((world.count("reservations"), world.count("operations")), (0, 2));
    }

    async fn a_release_frees_the_stock_once(world: World) {
        let warehouse = warehouse(&world);
        put(&warehouse, "ABC", "s1", "2").await.expect(201);
        let reservation = id(&reserve(&warehouse, "r1", &[("ABC", "2")]).await.expect(201), "reservationId");
        let path = format!("/v1/reservations/{reservation}");

        // An empty body is `{}`.
        let empty = warehouse.request(reqwest::Method::POST, &format!("{path}/release")).header("Idempotency-Key", "r2");
        let released = crate::harness::http::send(empty).await.expect(200);
        assert_eq!(released.json()["status"], "released");
        assert_eq!(released.json()["links"]["self"], path);
        assert_eq!(release(&warehouse, "r2", &reservation).await.expect(200).body, released.body);
        assert_eq!(level(&warehouse, "ABC").await, ["2", "0", "2"]);
        assert_eq!(warehouse.get(&path).await.expect(200).json()["status"], "released");
        assert_eq!(
            world.rows("SELECT count(*) AS held FROM reservation_lines WHERE held_until IS NOT NULL"),
            [json!({"held": 0})]
        );

        reserve(&warehouse, "r3", &[("ABC", "2")]).await.expect(201);
        let again = release(&warehouse, "r4", &reservation).await.expect(409);
        assert_eq!(again.error(), "ReservationAlreadyReleased");
        assert_eq!(again.json()["links"]["reservation"], path);
        assert_eq!(level(&warehouse, "ABC").await, ["2", "2", "0"]);
        assert_eq!(release(&warehouse, "r5", "rsv_0").await.expect(404).error(), "ReservationNotFound");
    }

    async fn a_cancelled_order_gives_back_what_it_had_reserved(world: World) {
        let warehouse = warehouse(&world);
        put(&warehouse, "ABC", "s1", "9").await.expect(201);
        let (first, second) = (order(&world, "o1").await, order(&world, "o2").await);
        let of = |order: &str, qty: &str| json!({"items": items(&[("ABC", qty)]), "orderId": order});
        let mine = warehouse.post("/v1/reservations", "r1", &of(&first, "1")).await.expect(201);
        warehouse.post("/v1/reservations", "r2", &of(&first, "2")).await.expect(201);
        warehouse.post("/v1/reservations", "r3", &of(&second, "3")).await.expect(201);
        let path = id(&mine, "reservationId");
        let read = warehouse.get(&format!("/v1/reservations/{path}")).await.expect(200).json();
        assert_eq!((&read["orderId"], &read["links"]["order"]), (&json!(first), &json!(format!("/v1/orders/{first}"))));
        assert_eq!(level(&warehouse, "ABC").await, ["9", "6", "3"]);

        world.shop().post(&format!("/v1/orders/{first}/cancel"), "c1", &json!({})).await.expect(200);
        assert_eq!(level(&warehouse, "ABC").await, ["9", "3", "6"]);
        assert_eq!(release(&warehouse, "r4", &path).await.expect(409).error(), "ReservationAlreadyReleased");

        let refused = warehouse.post("/v1/reservations", "r5", &of(&first, "1")).await.expect(409);
        assert_eq!((refused.error(), &refused.json()["orderId"]), ("OrderClosed".to_owned(), &json!(first)));
        assert_eq!(refused.json()["links"]["order"], format!("/v1/orders/{first}"));
        for status in ["rejected", "cancelling"] {
            world.database().execute(&format!("UPDATE orders SET status = '{status}' WHERE order_id = '{second}'"));
            let refused = warehouse.post("/v1/reservations", status, &of(&second, "1")).await.expect(409);
            assert_eq!(refused.error(), "OrderClosed");
        }
        let unknown = warehouse.post("/v1/reservations", "r6", &of("ord_0", "1")).await.expect(404);
        assert_eq!(unknown.error(), "OrderNotFound");
        assert_eq!(world.count("reservations"), 3);
    }

    async fn a_reservation_is_seen_by_its_tenant_and_with_its_scope_alone(world: World) {
        let warehouse = warehouse(&world);
        put(&warehouse, "ABC", "s1", "1").await.expect(201);
        let order = order(&world, "o1").await;
        let reservation = id(&reserve(&warehouse, "r1", &[("ABC", "1")]).await.expect(201), "reservationId");
        let path = format!("/v1/reservations/{reservation}");
        assert_eq!(world.shop().get(&path).await.expect(403).error(), "Forbidden");
        assert_eq!(reserve(&world.shop(), "r1", &[("ABC", "1")]).await.expect(403).error(), "Forbidden");

        let stranger = world.caller("other", "warehouse", &["stock:write", "stock:read"]);
        let (theirs, unknown) = (stranger.get(&path).await.expect(404), stranger.get("/v1/reservations/rsv_0").await);
        assert_eq!(without_request(&theirs), without_request(&unknown.expect(404)));
        let (theirs, unknown) = (release(&stranger, "r1", &reservation).await, release(&stranger, "r2", "rsv_0").await);
        assert_eq!(without_request(&theirs.expect(404)), without_request(&unknown.expect(404)));
        put(&stranger, "ABC", "s1", "1").await.expect(201);
        let body = json!({"items": items(&[("ABC", "1")]), "orderId": order});
        let refused = stranger.post("/v1/reservations", "r3", &body).await.expect(404);
        assert_eq!(refused.error(), "OrderNotFound");
        assert_eq!(level(&warehouse, "ABC").await, ["1", "1", "0"]);
        assert_eq!(world.count("reservations"), 1);
    }
}
