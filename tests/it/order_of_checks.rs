//! A request with several faults is told of the first, in the order of the contract: 401, 403, the key, 415 and 413, the
//! malformed body, then the claim. Nobody learns more than they may, and nothing before the claim touches the key.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::head::Head;
use crate::harness::http::send;
use crate::harness::orders::{Tally, smallest};
use crate::harness::raw::RawConnection;
use crate::harness::world::{CLIENT, TENANT, World, on_both_databases};

/// The faults in the order of the contract, each with its status and code. A request has all from one of them on.
const FAULTS: &[(u16, &str)] = &[
    (401, "Unauthenticated"),
    (403, "Forbidden"),
    (400, "IdempotencyKeyInvalid"),
    (415, "UnsupportedMediaType"),
    (413, "PayloadTooLarge"),
    (400, "MalformedRequest"),
    (409, "IdempotencyKeyConflict"),
];

on_both_databases! {
    async fn of_several_faults_the_first_is_told(world: World) {
        let (shop, reader) = (world.shop(), world.caller(TENANT, CLIENT, &["orders:read"]));
        shop.post("/v1/orders", "done", &smallest()).await.expect(201);
        let before = world.database().everything();
        for (number, (status, code)) in FAULTS.iter().enumerate() {
            let has = |name: &str| FAULTS[number..].iter().any(|(_, fault)| *fault == name);
            let mut head = Head::new("POST", "/v1/orders");
            if !has("Unauthenticated") {
                let caller = if has("Forbidden") { &reader } else { &shop };
                head = head.line(format!("Authorization: Bearer {}", caller.api_key().expect("it has one")));
            }
            let key = if has("IdempotencyKeyInvalid") { "not a key" } else { "done" };
            head = head.line(format!("Idempotency-Key: {key}"));
            let media_type = if has("UnsupportedMediaType") { "text/plain" } else { "application/json" };
            head = head.line(format!("Content-Type: {media_type}"));
            let body = if has("MalformedRequest") { "{" } else { r#"{"noSuchMember":1}"# };
            let length = if has("PayloadTooLarge") { 1 << 30 } else { body.len() };
            head = head.line(format!("Content-Length: {length}"));

            let mut connection = RawConnection::open(world.address());
            connection.send(&[head.bytes(), body.as_bytes().to_vec()].concat());
            let answer = connection.answer();
            assert_eq!(answer.status, Some(*status), "{code}: {}", answer.head);
            let problem: Value = serde_json::from_slice(&answer.body).expect("a problem is JSON");
            assert_eq!(problem["error"], *code);
            assert_eq!(problem["status"], *status);
            assert_eq!(world.database().everything(), before, "{code}");
        }
    }

    async fn a_missing_precondition_is_told_before_the_claim_and_before_the_faults_of_the_body(world: World) {
        let shop = world.shop();
        let put = |body: &'static str| {
            let request = shop.request(Method::PUT, "/v1/orders/web-1").header("Idempotency-Key", "one");
            request.header("Content-Type", "application/json").body(body)
        };
        assert_eq!(send(put("{")).await.expect(400).error(), "MalformedRequest");
        assert_eq!(send(put(r#"{"noSuchMember":1}"#)).await.expect(428).error(), "PreconditionRequired");
        assert_eq!(Tally::of(world.database()), Tally::default());
        let made = shop.command(Method::PUT, "/v1/orders/web-1", "one", &smallest()).header("If-None-Match", "*");
        send(made).await.expect(201);
        // The key is done now, and still the request is not even compared.
        assert_eq!(send(put(r#"{"noSuchMember":1}"#)).await.expect(428).error(), "PreconditionRequired");
        assert_eq!(Tally::of(world.database()), Tally::orders(1));
    }

    async fn who_may_not_read_learns_nothing_of_what_exists(world: World) {
        let (shop, writer) = (world.shop(), world.caller(TENANT, CLIENT, &["orders:write"]));
        let path = shop.post("/v1/orders", "one", &smallest()).await.expect(201).json()["links"]["self"].clone();
        for path in [path.as_str().expect("a path"), "/v1/orders/ord_0", "/v1/orders?limit=rubbish"] {
            let mut refused = writer.get(path).await.expect(403).json();
            refused["traceId"] = json!("");
            let mut unknown = writer.get("/v1/orders").await.expect(403).json();
            unknown["traceId"] = json!("");
            assert_eq!(refused, unknown, "{path}");
        }
    }
}
