//! Orders as clients read them back: what was sent, normalised and never recomputed; pages; and what belongs to others.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::http::{Answer, Caller, send};
use crate::harness::orders::{Tally, smallest, with};
use crate::harness::world::{World, on_both_databases};

/// What the service adds to what was sent.
const ADDED: &[&str] =
    &["orderId", "status", "erpReference", "paidAmount", "operationId", "createdAt", "updatedAt", "links"];

/// Makes an order of this JSON text and reads it back.
async fn made(caller: &Caller, key: &str, body: impl Into<Vec<u8>>) -> Answer {
    let created = caller.post_bytes("/v1/orders", key, body).await.expect(201);
    caller.get(created.header("location").expect("it was made")).await.expect(200)
}

/// The values of one member of every line.
fn of_lines(order: &Value, member: &str) -> Vec<Value> {
    let lines = order["items"].as_array().expect("an order has lines");
    lines.iter().map(|line| line[member].clone()).collect()
}

/// The ids of a page.
fn ids(page: &Value) -> Vec<String> {
    let orders = page["orders"].as_array().expect("a page has orders").iter();
    orders.map(|order| order["orderId"].as_str().expect("an order has an id").to_owned()).collect()
}

on_both_databases! {
    async fn an_order_is_given_back_as_it_was_sent_in_its_normal_form(world: World) {
        let shop = world.shop();
        let read = made(&shop, "rich", include_str!("../payloads/rich_order.json")).await;
        let Value::Object(mut order) = read.json() else { panic!("an order is an object") };
        let added: Vec<Value> = ADDED.iter().map(|name| order.remove(*name).expect("it is there")).collect();
        let stored: Value = serde_json::from_str(include_str!("../payloads/rich_order.stored.json")).expect("JSON");
        assert_eq!(Value::Object(order), stored);
        assert_eq!(added[1..4], [json!("accepted"), json!(null), json!("0")]);
        assert_eq!(added[5], added[6]);
        assert_eq!(added[7]["operation"], json!(format!("/v1/operations/{}", added[4].as_str().expect("an id"))));
        assert_eq!(read.header("content-type"), Some("application/json"));
    }

    async fn an_etag_saves_reading_what_is_known(world: World) {
        let shop = world.shop();
        let created = shop.post("/v1/orders", "one", &smallest()).await.expect(201);
        let path = created.header("location").expect("it was made").to_owned();
        let etag = shop.get(&path).await.expect(200).header("etag").expect("an order has one").to_owned();
        let conditional = |tags: String| send(shop.request(Method::GET, &path).header("If-None-Match", tags));
        for tags in [etag.clone(), format!("W/{etag}"), format!("\"other\", {etag}"), "*".to_owned()] {
            let known = conditional(tags.clone()).await.expect(304);
            assert_eq!((known.header("etag"), known.body.len()), (Some(etag.as_str()), 0), "{tags}");
        }
        for tags in ["\"other\"", "rubbish", ""] {
            conditional(tags.to_owned()).await.expect(200);
        }
        let head = send(shop.request(Method::HEAD, &path)).await.expect(200);
        assert_eq!((head.header("etag"), head.body.len()), (Some(etag.as_str()), 0));
        shop.post(&format!("{path}/cancel"), "two", &json!({})).await.expect(200);
        let changed = conditional(etag.clone()).await.expect(200);
        assert_ne!(changed.header("etag"), Some(etag.as_str()));
    }

    async fn quantities_are_exact_from_the_shop_to_the_message(world: World) {
        let shop = world.shop();
        let sent = ["0.5", "1.5", "0.001", "1000000", "0.000001", "999999999.999999", "1e-6", "\"2.50\""];
        let exact = ["0.5", "1.5", "0.001", "1000000", "0.000001", "999999999.999999", "0.000001", "2.5"];
        let lines: Vec<String> = sent.iter().map(|qty| format!(r#"{{"sku":"A","unit":"KGM","qty":{qty}}}"#)).collect();
        let body = format!(r#"{{"customerId":"c","currency":"EUR","items":[{}]}}"#, lines.join(","));
        let order = made(&shop, "one", body).await.json();
        assert_eq!(of_lines(&order, "qty"), exact);
        let rows = world.rows("SELECT qty FROM order_lines ORDER BY line_no");
        assert_eq!(rows.iter().map(|row| row["qty"].clone()).collect::<Vec<_>>(), exact);
        let payload = world.rows("SELECT payload FROM outbox")[0]["payload"].as_str().expect("a text").to_owned();
        let message: Value = serde_json::from_str(&payload).expect("a message is JSON");
        assert_eq!(of_lines(&message["order"], "qty"), exact);
    }

    async fn any_script_and_any_sign_comes_back_byte_by_byte(world: World) {
        let shop = world.shop();
        let texts = [
            "🙏🏽 👨‍👩‍👧 \r\n Ďurčáková",
            // Decomposed letters, the sign of the unit, directions of writing, and what looks like escapes.
            "D\u{30c}urc\u{30c}a\u{301}k \u{212b}",
            "שלום \u{202e}עולם",
            r"a\u0000b",
            "<script>alert('x')</script> & \"quoted\" \\ %00 \u{7f} \u{2028}",
            " blanks stay ",
        ];
        for (number, text) in texts.iter().enumerate() {
            let body = with(&json!({"note": text, "customer": {"name": text}}));
            let order = made(&shop, &format!("key-{number}"), body.to_string()).await.json();
            assert_eq!((&order["note"], &order["customer"]["name"]), (&json!(text), &json!(text)));
            let query = format!("SELECT payload FROM outbox WHERE order_id = '{}'", order["orderId"].as_str().expect("an id"));
            let payload = world.rows(&query)[0]["payload"].as_str().expect("a text").to_owned();
            let message: Value = serde_json::from_str(&payload).expect("a message is JSON");
            assert_eq!(message["order"]["note"], json!(text));
        }
    }

    async fn lines_never_merge_and_keep_their_order(world: World) {
        let shop = world.shop();
        let order = with(&json!({"items": [
            {"lineId": "1", "sku": "SET", "qty": 1, "unitPrice": "20.00", "total": "20.00"},
            {"lineId": "2", "parentLineId": "1", "sku": "SET", "qty": 1, "total": "0.00"},
            {"sku": "SET", "qty": 1},
            {"sku": "SET", "qty": 1},
        ]}));
        let read = made(&shop, "one", order.to_string()).await.json();
        assert_eq!(of_lines(&read, "lineId"), [json!("1"), json!("2"), json!(null), json!(null)]);
        assert_eq!(of_lines(&read, "total"), [json!("20"), json!("0"), json!(null), json!(null)]);
        assert_eq!(of_lines(&read, "parentLineId")[1], "1");
        assert_eq!(Tally::of(world.database()), Tally { lines: 4, ..Tally::orders(1) });
    }

    async fn the_figures_of_the_sender_are_kept(world: World) {
        let shop = world.shop();
        for (key, total) in [("up", "12.35"), ("down", "12.34")] {
            let order = with(&json!({
                "currency": "EUR", "totals": {"net": total, "tax": "0", "gross": total},
                "items": [{"sku": "A", "qty": 1000, "unitPrice": "1.2345", "priceBaseQty": 100, "total": total, "taxes": [{"rate": 0, "amount": 0}]}],
            }));
            let read = made(&shop, key, order.to_string()).await.json();
            assert_eq!(of_lines(&read, "total"), [json!(total)]);
            assert_eq!(read["totals"]["gross"], json!(total));
        }
    }

    async fn what_belongs_to_another_tenant_does_not_exist(world: World) {
        let (shop, other) = (world.shop(), world.caller("other", "shop", &["orders:read", "orders:write"]));
        let created = shop.post("/v1/orders", "one", &smallest()).await.expect(201);
        let path = created.header("location").expect("it was made").to_owned();
        let without_trace = |answer: Answer| {
            let mut problem = answer.expect(404).json();
            problem["traceId"] = json!("");
            problem
        };
        let foreign = without_trace(other.get(&path).await);
        assert_eq!(foreign["error"], "OrderNotFound");
        assert_eq!(foreign, without_trace(other.get("/v1/orders/ord_0").await));
        assert_eq!(other.get("/v1/orders").await.expect(200).json(), json!({"orders": [], "nextCursor": null}));
        let cancel = other.post(&format!("{path}/cancel"), "two", &json!({})).await.expect(404);
        assert_eq!(cancel.error(), "OrderNotFound");
        assert_eq!(shop.get(&path).await.expect(200).json()["status"], "accepted");
    }

    async fn pages_are_walked_without_loss_or_repeat_while_orders_come(world: World) {
        let shop = world.shop();
        let mut expected = Vec::new();
        for number in 0..25 {
            let created = shop.post("/v1/orders", &format!("key-{number}"), &smallest()).await.expect(201).json();
            expected.insert(0, created["orderId"].as_str().expect("an id").to_owned());
        }
        let (mut found, mut query) = (Vec::new(), "?limit=7".to_owned());
        for number in 0.. {
            let page = shop.get(&format!("/v1/orders{query}")).await.expect(200).json();
            found.extend(ids(&page));
            shop.post("/v1/orders", &format!("late-{number}"), &smallest()).await.expect(201);
            match page["nextCursor"].as_str() {
                Some(cursor) => query = format!("?limit=7&cursor={cursor}"),
                None => break,
            }
        }
        assert_eq!(found, expected);
        // A full last page has nothing behind it; more than asked for is never given.
        let all = shop.get("/v1/orders?limit=29").await.expect(200).json();
        assert_eq!((ids(&all).len(), &all["nextCursor"]), (29, &json!(null)));
        assert_eq!(ids(&shop.get("/v1/orders").await.expect(200).json()).len(), 20);
        let entry = &all["orders"][0];
        assert!(entry["items"].is_null() && entry["links"]["self"].is_string(), "{entry}");
    }

    async fn every_filter_finds_its_orders(world: World) {
        let shop = world.shop();
        let mut order_ids = Vec::new();
        for (number, members) in [
            json!({"channel": "web/sk", "externalOrderId": "1", "customerId": "ann"}),
            json!({"channel": "web/cz", "externalOrderId": "1", "customerId": "bob"}),
            json!({"externalOrderId": "2", "customerId": "ann"}),
        ]
        .iter()
        .enumerate()
        {
            let created = shop.post("/v1/orders", &format!("key-{number}"), &with(members)).await.expect(201).json();
            order_ids.push(created["orderId"].as_str().expect("an id").to_owned());
        }
        shop.post(&format!("/v1/orders/{}/cancel", order_ids[2]), "no", &json!({})).await.expect(200);
        let created_at = shop.get(&format!("/v1/orders/{}", order_ids[1])).await.json()["createdAt"].clone();
        let created_at = created_at.as_str().expect("an instant");
        for (query, expected) in [
            ("channel=web/sk".to_owned(), vec![0]),
            ("channel=".to_owned(), vec![2]),
            ("externalOrderId=1".to_owned(), vec![1, 0]),
            ("externalOrderId=1&channel=web%2Fcz".to_owned(), vec![1]),
            ("customerId=ann".to_owned(), vec![2, 0]),
            ("status=cancelled".to_owned(), vec![2]),
            ("status=accepted&customerId=ann".to_owned(), vec![0]),
            ("status=rejected".to_owned(), vec![]),
            ("createdFrom=2000-01-01T00:00:00Z&createdTo=2000-01-02T00:00:00%2B02:00".to_owned(), vec![]),
            (format!("createdFrom={created_at}&externalOrderId=1&channel=web/cz"), vec![1]),
            (format!("createdTo={created_at}&channel=web/cz"), vec![]),
        ] {
            let found = ids(&shop.get(&format!("/v1/orders?{query}")).await.expect(200).json());
            let expected: Vec<&String> = expected.into_iter().map(|index: usize| &order_ids[index]).collect();
            assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{query}");
        }
    }

    async fn a_query_that_is_not_valid_is_told_with_every_fault(world: World) {
        let shop = world.shop();
        for (query, pointers) in [
            ("limit=0", vec!["/limit"]),
            ("limit=101", vec!["/limit"]),
            ("limit=ten", vec!["/limit"]),
            ("cursor=rubbish", vec!["/cursor"]),
            ("cursor=00ff", vec!["/cursor"]),
            ("status=lost", vec!["/status"]),
            ("createdFrom=2026-01-01", vec!["/createdFrom"]),
            ("createdTo=2026-01-01T00:00:00", vec!["/createdTo"]),
            ("limit=1&limit=2", vec!["/limit"]),
            ("colour=red", vec![""]),
            // No text of the database holds U+0000; the second is hidden in what looks like a cursor.
            ("channel=%00", vec!["/channel"]),
            ("cursor=312000", vec!["/cursor"]),
            ("limit=0&status=lost&createdTo=x", vec!["/limit", "/status", "/createdTo"]),
        ] {
            let refused = shop.get(&format!("/v1/orders?{query}")).await.expect(400);
            assert_eq!(refused.error(), "InvalidParameter", "{query}");
            let problem = refused.json();
            let details = problem["details"].as_array().expect("it says what is wrong").iter();
            let told: Vec<&str> = details.map(|detail| detail["pointer"].as_str().expect("a pointer")).collect();
            assert_eq!(told, pointers, "{query}");
        }
    }
}
