//! What stands in the heads of requests and answers: the idempotency key in every form, the headers for browsers, the trace,
//! methods and paths.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::head::Head;
use crate::harness::http::{Caller, send};
use crate::harness::orders::{Tally, smallest};
use crate::harness::raw::{RawAnswer, RawConnection};
use crate::harness::world::{World, on_both_databases};

/// Sends the smallest order with these header lines beside the usual ones.
fn post(caller: &Caller, world: &World, lines: &[&[u8]]) -> RawAnswer {
    let head = lines.iter().fold(Head::command(caller, "/v1/orders"), |head, line| head.line(*line));
    let mut connection = RawConnection::open(world.address());
    connection.send(&head.with_body(smallest().to_string().as_bytes()));
    connection.answer()
}

/// The problem in a body.
fn problem(answer: &RawAnswer) -> Value {
    assert!(answer.head.to_ascii_lowercase().contains("content-type: application/problem+json"), "{}", answer.head);
    serde_json::from_slice(&answer.body).expect("a problem is JSON")
}

on_both_databases! {
    async fn what_is_no_key_is_refused_and_claims_nothing(world: World) {
        let shop = world.shop();
        let long = [b"Idempotency-Key: ".as_slice(), &[b'k'; 256]].concat();
        let cases: &[(&[&[u8]], &str)] = &[
            (&[], "IdempotencyKeyMissing"),
            // A proxy that drops or renames what it does not know.
            (&[b"X-Idempotency-Key: k1"], "IdempotencyKeyMissing"),
            (&[b"Idempotency-Key:"], "IdempotencyKeyInvalid"),
            (&[b"Idempotency-Key: \t "], "IdempotencyKeyInvalid"),
            (&[b"Idempotency-Key: \"\""], "IdempotencyKeyInvalid"),
            (&[b"Idempotency-Key: k1", b"Idempotency-Key: k1"], "IdempotencyKeyInvalid"),
            (&[b"Idempotency-Key: k1", b"idempotency-key: k2"], "IdempotencyKeyInvalid"),
            (&[b"Idempotency-Key: k1, k2"], "IdempotencyKeyInvalid"),
            (&[b"Idempotency-Key: a\tb"], "IdempotencyKeyInvalid"),
            (&["Idempotency-Key: klju\u{10d}".as_bytes()], "IdempotencyKeyInvalid"),
            (&[b"Idempotency-Key: \"unfinished"], "IdempotencyKeyInvalid"),
            (&[b"Idempotency-Key: \"k1\"; a=1"], "IdempotencyKeyInvalid"),
            (&[&long], "IdempotencyKeyInvalid"),
        ];
        for (lines, code) in cases {
            let answer = post(&shop, &world, lines);
            assert_eq!(answer.status, Some(400), "{}", answer.head);
            assert_eq!(problem(&answer)["error"], *code, "{}", String::from_utf8_lossy(&lines.concat()));
        }
        // What is no header at all never comes as far as that.
        for line in [b"Idempotency-Key: a\x7fb".as_slice(), b"Idempotency-Key: a\0b", b"Idempotency-Key: a\x1b[31m"] {
            assert_eq!(post(&shop, &world, &[line]).status, Some(400));
        }
        assert_eq!(Tally::of(world.database()), Tally::default());
    }

    async fn every_visible_character_is_just_a_character_of_the_key(world: World) {
        let shop = world.shop();
        let all: String = ('!'..='~').collect();
        let keys = ["../../x", "%00", "k1,k2", "K1", "k1", "';DROP/**/TABLE/**/orders;--", all.as_str(), &"k".repeat(255)];
        for (number, key) in (1..).zip(keys) {
            let answer = shop.post("/v1/orders", key, &smallest()).await.expect(201);
            assert_eq!(answer.header("idempotency-key"), Some(key));
            assert_eq!(answer.header("idempotent-replayed"), Some("false"), "{key}");
            assert_eq!(Tally::of(world.database()), Tally::orders(number), "{key}");

            let query = url::form_urlencoded::Serializer::new(String::new())
                .extend_pairs([("command", "orders.create"), ("idempotencyKey", key)])
                .finish();
            let found = shop.get(&format!("/v1/operations?{query}")).await.expect(200).json();
            assert_eq!(found["operations"][0]["operationId"], answer.json()["operationId"], "{key}");
        }
    }

    async fn the_quoted_and_the_bare_form_name_one_key(world: World) {
        let shop = world.shop();
        let first = post(&shop, &world, &[b"Idempotency-Key: 8e03978e-40d5"]);
        for line in [b"Idempotency-Key: \"8e03978e-40d5\"".as_slice(), b"IDEMPOTENCY-KEY: \t8e03978e-40d5 "] {
            let again = post(&shop, &world, &[line]);
            assert_eq!((again.status, &again.body), (Some(201), &first.body));
            assert!(again.head.contains("idempotent-replayed: true"), "{}", again.head);
        }
        assert_eq!(Tally::of(world.database()), Tally::orders(1));
    }

    async fn reads_never_look_at_a_key(world: World) {
        let shop = world.shop();
        for (method, path) in [
            (Method::GET, "/v1/orders"), (Method::HEAD, "/v1/orders"), (Method::OPTIONS, "/v1/orders"),
            (Method::GET, "/v1/operations"), (Method::GET, "/healthz"), (Method::GET, "/readyz"),
        ] {
            for key in ["k1", "not a key"] {
                let answer = send(shop.request(method.clone(), path).header("Idempotency-Key", key)).await;
                assert!(answer.status == 200 || method == Method::OPTIONS, "{method} {path}: {}", answer.text());
                assert_eq!(answer.header("idempotent-replayed"), None);
            }
        }
        assert_eq!(Tally::of(world.database()), Tally::default());
        shop.post("/v1/orders", "k1", &smallest()).await.expect(201);
    }

    async fn a_browser_may_send_the_key_and_read_the_answer(world: World) {
        let origin = ("Origin", "https://shop.example");
        for asked in ["idempotency-key, content-type, authorization", "if-match,if-none-match,prefer,traceparent"] {
            let preflight = world.stranger().request(Method::OPTIONS, "/v1/orders").header(origin.0, origin.1);
            let preflight = preflight.header("Access-Control-Request-Method", "POST");
            let answer = send(preflight.header("Access-Control-Request-Headers", asked)).await;
            assert!(answer.status.is_success(), "{asked}: {}", answer.text());
            let allowed = answer.header("access-control-allow-headers").expect("it says which").to_ascii_lowercase();
            assert!(asked.split(',').all(|name| allowed.contains(name.trim())), "{asked}: {allowed}");
        }
        let command = world.shop().command(Method::POST, "/v1/orders", "k1", &smallest()).header(origin.0, origin.1);
        let refused = world.stranger().request(Method::POST, "/v1/orders").header(origin.0, origin.1);
        for answer in [send(command).await.expect(201), send(refused).await.expect(401)] {
            assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
            let exposed = answer.header("access-control-expose-headers").expect("it says which").to_ascii_lowercase();
            for name in
                ["idempotency-key", "idempotent-replayed", "idempotency-expires", "location", "retry-after", "etag", "x-trace-id"]
            {
                assert!(exposed.contains(name), "{name}: {exposed}");
            }
        }
        assert_eq!(Tally::of(world.database()), Tally::orders(1));
    }

    async fn an_origin_that_is_not_named_gets_no_leave(world: World) {
        world.restart(&[("ORDERS_CORS_ORIGINS", "https://shop.example")]).await;
        let preflight = |origin: &str| {
            let request = world.stranger().request(Method::OPTIONS, "/v1/orders").header("Origin", origin);
            send(request.header("Access-Control-Request-Method", "POST"))
        };
        let own = preflight("https://shop.example").await;
        assert_eq!(own.header("access-control-allow-origin"), Some("https://shop.example"));
        let other = preflight("https://evil.example").await;
        assert_eq!(other.header("access-control-allow-origin"), None);
        assert_eq!(other.error(), "MalformedRequest");
    }

    async fn the_trace_of_the_caller_is_kept(world: World) {
        let shop = world.shop();
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let send_invalid = |parent: &str| {
            let request = shop.command(Method::POST, "/v1/orders", "k1", &json!({}));
            send(request.header("traceparent", parent.to_owned()))
        };
        let first = send_invalid(&format!("00-{trace}-00f067aa0ba902b7-01")).await.expect(400);
        assert_eq!(first.header("x-trace-id"), Some(trace));
        assert_eq!(first.json()["traceId"], trace);
        // A recorded problem keeps the trace of the request that met it; the header is of the present one.
        let replay = send_invalid("rubbish").await.expect(400);
        assert_eq!(replay.body, first.body);
        assert_ne!(replay.header("x-trace-id"), Some(trace));
        assert_eq!(world.rows("SELECT trace_id FROM operations"), [json!({"trace_id": trace})]);
    }

    async fn wrong_paths_and_methods_are_problems(world: World) {
        let shop = world.shop();
        let nowhere = shop.post("/v1/nothing", "k1", &json!({})).await.expect(404);
        assert_eq!(nowhere.error(), "RouteNotFound");
        for (method, path, allowed) in [
            (Method::DELETE, "/v1/orders", ["GET", "HEAD", "POST"].as_slice()),
            (Method::POST, "/v1/orders/ord_0", &["GET", "HEAD", "PUT"]),
            (Method::GET, "/v1/orders/ord_0/cancel", &["POST"]),
            (Method::POST, "/v1/operations/op_0", &["GET", "HEAD"]),
        ] {
            let answer = send(shop.command(method.clone(), path, "k1", &json!({}))).await.expect(405);
            assert_eq!(answer.error(), "MethodNotAllowed", "{method} {path}");
            let mut allow: Vec<&str> = answer.header("allow").expect("it says which").split(", ").collect();
            allow.sort_unstable();
            assert_eq!(allow, allowed, "{method} {path}");
        }
        assert_eq!(Tally::of(world.database()), Tally::default());
    }
}
