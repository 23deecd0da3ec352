//! The lost answer: the same request again gets the same answer, whatever has happened since; and what counts as the same.

use std::collections::BTreeSet;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::http::{Answer, Caller, send};
use crate::harness::orders::{Tally, smallest, with};
use crate::harness::raw::RawConnection;
use crate::harness::wait::eventually;
use crate::harness::world::{World, on_both_databases};

/// How long the service may take to write an order down whose client does not listen.
const LIMIT: Duration = Duration::from_secs(20);

/// The bytes of the smallest order, as a client sends them.
fn bytes(caller: &Caller, key: &str) -> Vec<u8> {
    let body = smallest().to_string();
    let api_key = caller.api_key().expect("a client has an API key");
    let head = format!(
        "POST /v1/orders HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {api_key}\r\nIdempotency-Key: {key}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    (head + &body).into_bytes()
}

/// Says that `replay` is `first` again: status, bytes, and every header but those of the transport and the present request.
fn is_replay_of(replay: &Answer, first: &Answer) {
    assert_eq!((replay.status, replay.text()), (first.status, first.text()));
    let own = |answer: &Answer| -> BTreeSet<(String, Vec<u8>)> {
        let all = answer.headers.iter().map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()));
        all.filter(|(name, _)| !["date", "x-trace-id", "idempotent-replayed"].contains(&name.as_str())).collect()
    };
    assert_eq!(own(replay), own(first));
    assert_eq!(first.header("idempotent-replayed"), Some("false"));
    assert_eq!(replay.header("idempotent-replayed"), Some("true"));
    assert_ne!(replay.header("x-trace-id"), first.header("x-trace-id"));
}

on_both_databases! {
    async fn an_answer_that_was_lost_names_the_same_order(world: World) {
        let shop = world.shop();
        let mut lost = RawConnection::open(world.address());
        assert!(lost.send(&bytes(&shop, "one")));
        eventually(LIMIT, "the order that nobody hears of", async || (world.count("orders") == 1).then_some(())).await;
        drop(lost);
        let order_id = world.rows("SELECT order_id FROM orders")[0]["order_id"].clone();
        let again = shop.post("/v1/orders", "one", &smallest()).await.expect(201);
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
        assert_eq!(again.json()["orderId"], order_id);
        assert_eq!(Tally::of(world.database()), Tally::orders(1));
    }

    async fn a_client_that_leaves_at_any_point_leaves_nothing_or_a_whole_order(world: World) {
        let shop = world.shop();
        for round in 0..10 {
            let key = format!("key-{round}");
            let request = bytes(&shop, &key);
            let length = u128::try_from(request.len()).expect("it is short");
            let point = usize::try_from(uuid::Uuid::new_v4().as_u128() % (length + 1)).expect("it is within the request");
            let mut leaving = RawConnection::open(world.address());
            leaving.send(&request[..point]);
            drop(leaving);
            let half = "SELECT order_id FROM orders WHERE \
                NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.order_id = orders.order_id) OR \
                NOT EXISTS (SELECT 1 FROM operations WHERE operations.order_id = orders.order_id) OR \
                NOT EXISTS (SELECT 1 FROM order_lines WHERE order_lines.order_id = orders.order_id)";
            assert_eq!(world.rows(half), Vec::<Value>::new(), "left after {point} bytes");
            shop.post("/v1/orders", &key, &smallest()).await.expect(201);
            assert_eq!(Tally::of(world.database()), Tally::orders(round + 1), "left after {point} bytes");
        }
    }

    async fn every_recorded_answer_is_given_again_byte_for_byte(world: World) {
        let shop = world.shop();
        let order = with(&json!({"channel": "web", "externalOrderId": "N1"}));
        let cases = [
            ("first", Method::POST, "/v1/orders", &order, 201),
            ("duplicate", Method::POST, "/v1/orders", &order, 409),
            ("invalid", Method::POST, "/v1/orders", &json!({"currency": "XXQ", "items": []}), 400),
            ("unknown", Method::POST, "/v1/orders/ord_0/cancel", &json!({}), 404),
            ("unmet", Method::PUT, "/v1/orders/web-1", &order, 412),
        ];
        for (key, method, path, body, status) in cases {
            let ask = || {
                let request = shop.command(method.clone(), path, key, body);
                send(if method == Method::PUT { request.header("If-Match", "\"1\"") } else { request })
            };
            let first = ask().await.expect(status);
            let before = world.database().everything();
            is_replay_of(&ask().await, &first);
            is_replay_of(&ask().await, &first);
            assert_eq!(world.database().everything(), before, "{key}");
            let location = (status == 201).then(|| first.json()["links"]["self"].as_str().expect("a path").to_owned());
            assert_eq!(first.header("location"), location.as_deref(), "{key}");
            let media_type = if status == 201 { "application/json" } else { "application/problem+json" };
            assert_eq!(first.header("content-type"), Some(media_type), "{key}");
        }
    }

    async fn a_replay_tells_what_the_command_did_and_not_what_is_now(world: World) {
        let shop = world.shop();
        let first = shop.post("/v1/orders", "one", &smallest()).await.expect(201);
        let path = first.json()["links"]["self"].as_str().expect("a path").to_owned();
        let cancel = format!("{path}/cancel");
        // The key is one of a command: on another command it is another intent.
        let cancelled = shop.post(&cancel, "one", &json!({})).await.expect(200);
        assert_eq!(cancelled.json()["status"], "cancelled");
        assert_ne!(cancelled.json()["operationId"], first.json()["operationId"]);

        let again = shop.post("/v1/orders", "one", &smallest()).await.expect(201);
        assert_eq!((again.header("idempotent-replayed"), &again.body), (Some("true"), &first.body));
        assert_eq!(again.json()["status"], "accepted");
        assert_eq!(shop.get(&path).await.expect(200).json()["status"], "cancelled");
        assert_eq!(Tally::of(world.database()), Tally::orders(1) + Tally::answers(1));
    }

    async fn a_correction_of_an_invalid_order_is_a_new_intent(world: World) {
        let shop = world.shop();
        let invalid = json!({"customerId": "cus_123", "items": [{"sku": "ABC", "qty": 0}], "currency": "RUB"});
        let first = shop.post("/v1/orders", "one", &invalid).await.expect(400);
        assert_eq!(first.error(), "InvalidRequest");
        is_replay_of(&shop.post("/v1/orders", "one", &invalid).await, &first);
        let corrected = shop.post("/v1/orders", "one", &smallest()).await.expect(409);
        assert_eq!(corrected.error(), "IdempotencyKeyConflict");
        let detail = corrected.json()["detail"].as_str().expect("a text").to_owned();
        assert!(detail.contains("refused as invalid") && detail.contains("new intent"), "{detail}");
        assert_eq!(Tally::of(world.database()), Tally::answers(1));
        shop.post("/v1/orders", "two", &smallest()).await.expect(201);
    }

    async fn another_spelling_of_the_same_order_is_the_same_intent(world: World) {
        let shop = world.shop();
        let first = r#"{"customerId":"ľ-1","currency":"EUR","placedAt":"2026-03-02T08:15:31Z","items":[{"sku":"A","qty":2}]}"#;
        let answer = shop.post_bytes("/v1/orders", "one", first).await.expect(201);
        let item = |qty: &str, rest: &str| {
            format!(r#"{{"customerId":"ľ-1","currency":"EUR","placedAt":"2026-03-02T08:15:31Z","items":[{{"sku":"A","qty":{qty}{rest}}}]}}"#)
        };
        let spellings = [
            " {\n\t\"items\" : [ { \"qty\":2, \"sku\":\"A\" } ],\"placedAt\":\"2026-03-02T08:15:31Z\",\"currency\":\"EUR\",\"customerId\":\"ľ-1\" }\r\n".to_owned(),
            first.replace('ľ', r"\u013e"),
            first.replace("EUR", "eur"),
            first.replace("08:15:31Z", "09:15:31+01:00"),
            first.replace("08:15:31Z", "08:15:31.000Z"),
            item("2.0", ""),
            item("2e0", ""),
            item("0.2E+1", ""),
            item("\"2\"", ""),
            item("\"2.00\"", ""),
            item("2", r#","priceBaseQty":1,"kind":"product","unit":"C62""#),
            item("2", r#","priceBaseQty":"1.0","kind":null,"attributes":[],"taxes":null"#),
            item("2", "").replace(r#""items""#, r#""note":null,"pricesIncludeTax":false,"discounts":[],"items""#),
        ];
        for spelling in spellings {
            let replay = shop.post_bytes("/v1/orders", "one", spelling.clone()).await;
            assert_eq!((replay.status.as_u16(), &replay.body), (201, &answer.body), "{spelling}\n{}", replay.text());
            assert_eq!(replay.header("idempotent-replayed"), Some("true"), "{spelling}");
        }
        assert_eq!(Tally::of(world.database()), Tally::orders(1));
    }

    async fn what_is_content_makes_another_intent_and_is_named(world: World) {
        let shop = world.shop();
        let order = |members: &str| format!(r#"{{"customerId":"c","currency":"EUR","items":[{{"sku":"A","qty":2}}]{members}}}"#);
        let lines = |first: &str, second: &str| {
            format!(r#"{{"customerId":"c","currency":"EUR","items":[{{"sku":"{first}","qty":1}},{{"sku":"{second}","qty":1}}]}}"#)
        };
        let cases = [
            (lines("A", "B"), lines("B", "A"), "/items"),
            (order(""), order("").replace('2', "3"), "/items"),
            (order(""), order("").replace(r#""A""#, r#""a""#), "/items"),
            (order(""), order("").replace(r#""qty""#, r#""name":"","qty""#), "/items"),
            (order(""), order(r#","note":"""#), "/note"),
            (order(r#","note":"s3cret""#), order(r#","note":"s3cret ""#), "/note"),
            // The same letters, composed and decomposed; the sign of the unit and the letter.
            (order(r#","note":"Ďurčák""#), order(",\"note\":\"D\u{30c}urc\u{30c}a\u{301}k\""), "/note"),
            (order(",\"note\":\"\u{212b}\""), order(",\"note\":\"\u{c5}\""), "/note"),
            (order(r#","extensions":{"n":2}"#), order(r#","extensions":{"n":"2"}"#), "/extensions"),
            (order(r#","extensions":{}"#), order(r#","extensions":{"n":null}"#), "/extensions"),
            (order(""), order(r#","extensions":{}"#), "/extensions"),
        ];
        for (number, (first, second, pointer)) in cases.iter().enumerate() {
            let key = format!("key-{number}");
            shop.post_bytes("/v1/orders", &key, first.clone()).await.expect(201);
            let before = Tally::of(world.database());
            let conflict = shop.post_bytes("/v1/orders", &key, second.clone()).await.expect(409);
            assert_eq!(conflict.error(), "IdempotencyKeyConflict");
            let problem = conflict.json();
            let details = problem["details"].as_array().expect("it says what differs");
            let pointers: Vec<&Value> = details.iter().map(|detail| &detail["pointer"]).collect();
            assert_eq!(pointers, [pointer], "{second}");
            assert!(!conflict.text().contains("s3cret"), "{}", conflict.text());
            assert_eq!(Tally::of(world.database()), before, "{second}");
            // The first request is as good as before.
            let replay = shop.post_bytes("/v1/orders", &key, first.clone()).await.expect(201);
            assert_eq!(replay.header("idempotent-replayed"), Some("true"));
        }
    }
}
