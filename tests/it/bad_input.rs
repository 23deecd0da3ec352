//! Bodies that no honest client sends: each gets its 4xx problem at once, leaves its key free, and leaves the service as
//! well as it was.

use serde_json::Value;

use crate::harness::head::Head;
use crate::harness::http::Caller;
use crate::harness::orders::{Tally, smallest, with};
use crate::harness::raw::{RawAnswer, RawConnection};
use crate::harness::world::{World, on_both_databases};

/// One more than the largest body.
const TOO_MANY: usize = 1024 * 1024 + 1;

/// Sends bytes and reads the answer.
fn exchange(world: &World, bytes: &[u8]) -> RawAnswer {
    let mut connection = RawConnection::open(world.address());
    // The service may answer and close before it has read everything.
    connection.send(bytes);
    connection.answer()
}

fn is_problem(answer: &RawAnswer, status: u16, code: &str, what: &str) {
    assert_eq!(answer.status, Some(status), "{what}: {}", answer.head);
    let problem: Value = serde_json::from_slice(&answer.body).expect("a problem is JSON");
    assert_eq!(problem["error"], code, "{what}");
}

/// Says that nothing was kept, and that the key makes an order when it comes with a good body.
async fn leaves_the_key_free(world: &World, shop: &Caller, key: &str) {
    let before = Tally::of(world.database());
    let made = shop.post("/v1/orders", key, &smallest()).await.expect(201);
    assert_eq!(made.header("idempotent-replayed"), Some("false"), "{key}");
    assert_eq!(Tally::of(world.database()), before + Tally::orders(1), "{key}");
}

/// Bodies that are not one JSON value of ours, by name.
fn malformed_bodies() -> Vec<(&'static str, Vec<u8>)> {
    let good = smallest().to_string();
    let text = |text: &str| text.as_bytes().to_vec();
    let nested = |open: &str, close: &str, levels: usize| {
        format!(
            r#"{{"customerId":"c","currency":"EUR","items":[{{"sku":"A","qty":1}}],"extensions":{}{}}}"#,
            open.repeat(levels),
            close.repeat(levels)
        )
    };
    vec![
        ("empty", Vec::new()),
        ("blank", text(" \r\n")),
        ("truncated", good.as_bytes()[..good.len() - 1].to_vec()),
        ("truncated-text", text(r#"{"customerId":"c"#)),
        ("trailing-value", text(&format!("{good} {{}}"))),
        ("trailing-bytes", text(&format!("{good}\0\0\0"))),
        ("trailing-comma", text(&good.replace('}', ",}"))),
        ("byte-order-mark", [b"\xef\xbb\xbf".as_slice(), good.as_bytes()].concat()),
        ("utf-16", good.encode_utf16().flat_map(u16::to_le_bytes).collect()),
        ("latin-1", b"{\"customerId\":\"\xe9\",\"currency\":\"EUR\",\"items\":[{\"sku\":\"A\",\"qty\":1}]}".to_vec()),
        ("duplicate-member", text(&good.replacen('{', r#"{"currency":"CZK","#, 1))),
        ("duplicate-nested", text(r#"{"customerId":"c","currency":"EUR","items":[{"sku":"A","qty":1,"qty":2}]}"#)),
        ("duplicate-escaped", text(&good.replacen('{', r#"{"\u0063urrency":"CZK","#, 1))),
        ("nan", text(&good.replace('2', "NaN"))),
        ("infinity", text(&good.replace('2', "-Infinity"))),
        ("hexadecimal", text(&good.replace('2', "0x2"))),
        ("lone-surrogate", text(&good.replace("ABC", r"\ud800"))),
        ("surrogates-swapped", text(&good.replace("ABC", r"\ude00\ud83d"))),
        ("zero-character", text(&good.replace("ABC", r"A\u0000C"))),
        ("control-character", text(&good.replace("ABC", "A\u{1}C"))),
        ("single-quotes", text(&good.replace('"', "'"))),
        ("comment", text(&format!("/* an order */ {good}"))),
        ("ten-thousand-levels", text(&nested("[", "]", 10_000))),
        ("ten-thousand-objects", text(&nested("{\"a\":", "}", 10_000).replace(":}", ":1}"))),
        ("open-brackets", text(&"[".repeat(500_000))),
    ]
}

on_both_databases! {
    async fn a_body_that_is_not_json_is_malformed_and_leaves_the_key_free(world: World) {
        let shop = world.shop();
        for (name, body) in malformed_bodies() {
            let head = Head::command(&shop, "/v1/orders").line(format!("Idempotency-Key: {name}"));
            is_problem(&exchange(&world, &head.with_body(&body)), 400, "MalformedRequest", name);
            leaves_the_key_free(&world, &shop, name).await;
        }
    }

    async fn a_body_that_is_not_plain_json_is_refused_unread(world: World) {
        let shop = world.shop();
        let api_key = shop.api_key().expect("a client has one").to_owned();
        let good = smallest().to_string();
        // The beginning of a gzip stream; whether it holds a gigabyte is never found out.
        let bomb = [b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xec\xc1\x01\x01\x00\x00\x00\x80\x90\xfe\xaf".as_slice(), &[0; 1000]].concat();
        let cases: &[(&str, &[&str], &[u8])] = &[
            ("bomb", &["Content-Type: application/json", "Content-Encoding: gzip"], &bomb),
            ("plain-said-packed", &["Content-Type: application/json", "Content-Encoding: br"], good.as_bytes()),
            ("text", &["Content-Type: text/plain"], good.as_bytes()),
            ("form", &["Content-Type: application/x-www-form-urlencoded"], b"customerId=c"),
            ("no-type", &[], good.as_bytes()),
            ("rubbish-type", &["Content-Type: json"], good.as_bytes()),
            ("charset", &["Content-Type: application/json; charset=utf-16"], good.as_bytes()),
            ("two-types", &["Content-Type: application/json", "Content-Type: text/plain"], good.as_bytes()),
        ];
        for (name, lines, body) in cases {
            let head = Head::new("POST", "/v1/orders").line(format!("Authorization: Bearer {api_key}"));
            let head = lines.iter().fold(head.line(format!("Idempotency-Key: {name}")), |head, line| head.line(*line));
            is_problem(&exchange(&world, &head.with_body(body)), 415, "UnsupportedMediaType", name);
            leaves_the_key_free(&world, &shop, name).await;
        }
    }

    async fn a_body_is_at_most_one_mebibyte(world: World) {
        let shop = world.shop();
        let command = |key: &str| Head::command(&shop, "/v1/orders").line(format!("Idempotency-Key: {key}"));
        // Declared: refused before a byte of it is sent.
        let declared = command("declared").line(format!("Content-Length: {TOO_MANY}")).bytes();
        is_problem(&exchange(&world, &declared), 413, "PayloadTooLarge", "declared");
        leaves_the_key_free(&world, &shop, "declared").await;
        // Undeclared: refused with the first byte too many, though the body never ends.
        let mut endless = command("chunked").line("Transfer-Encoding: chunked").bytes();
        endless.extend(format!("{TOO_MANY:x}\r\n").into_bytes());
        endless.extend(vec![b' '; TOO_MANY]);
        is_problem(&exchange(&world, &endless), 413, "PayloadTooLarge", "chunked");
        leaves_the_key_free(&world, &shop, "chunked").await;
        // One byte less is an order.
        let mut body = smallest().to_string().into_bytes();
        body.resize(TOO_MANY - 1, b' ');
        assert_eq!(exchange(&world, &command("largest").with_body(&body)).status, Some(201));
    }

    async fn a_body_that_does_not_come_is_given_up(world: World) {
        world.restart(&[("ORDERS_BODY_TIMEOUT", "200ms")]).await;
        let shop = world.shop();
        let command = |key: &str| Head::command(&shop, "/v1/orders").line(format!("Idempotency-Key: {key}"));
        let half = [command("half").line("Content-Length: 100").bytes(), b"{\"customerId\":".to_vec()].concat();
        is_problem(&exchange(&world, &half), 408, "RequestTimeout", "half");
        let stalled = [command("stalled").line("Transfer-Encoding: chunked").bytes(), b"5\r\n{\"cus\r\n".to_vec()].concat();
        is_problem(&exchange(&world, &stalled), 408, "RequestTimeout", "stalled");
        assert_eq!(Tally::of(world.database()), Tally::default());
        leaves_the_key_free(&world, &shop, "half").await;
        leaves_the_key_free(&world, &shop, "stalled").await;
    }

    async fn a_large_order_is_an_order(world: World) {
        let shop = world.shop();
        let line = serde_json::json!({"sku": "A", "qty": 1, "name": "n".repeat(400)});
        let order = with(&serde_json::json!({"items": vec![line; 1000], "note": "ž".repeat(5000)}));
        let first = shop.post("/v1/orders", "large", &order).await.expect(201);
        let replay = shop.post("/v1/orders", "large", &order).await.expect(201);
        assert_eq!((replay.header("idempotent-replayed"), &replay.body), (Some("true"), &first.body));
        let stored = Tally { lines: 1000, ..Tally::orders(1) };
        assert_eq!(Tally::of(world.database()), stored);
        let path = first.json()["links"]["self"].as_str().expect("a path").to_owned();
        let read = shop.get(&path).await.expect(200).json();
        assert_eq!(read["items"].as_array().map(Vec::len), Some(1000));
    }
}
