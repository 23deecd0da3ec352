//! What the service writes about its work: one line for each request, with its trace, and never a body or a secret; and the
//! counts beside it.

use reqwest::Method;
use serde_json::json;

use crate::harness::database::Database;
use crate::harness::http::{Caller, send};
use crate::harness::orders::with;
use crate::harness::process::{self, Process};
use crate::harness::world::{World, on_both_databases};

/// What must be in no line, beside the API key.
const PRIVATE: &[&str] = &["s3cret", "ann@shop.example", "cus_private", "Novák"];

/// A service that logs, on a database of its own, and a client of it.
fn service(world: &World, filter: &str) -> (Database, Process, Caller) {
    let database = Database::migrated(world.dialect());
    let process = Process::serve(database.url(), &[("RUST_LOG", filter)]);
    let arguments = ["key", "add", "--tenant", "acme", "--client", "shop", "--scopes", "orders:write,orders:read"];
    let made = process::run(database.url(), &arguments, &[]);
    assert!(made.status.success(), "{made:?}");
    let api_key = String::from_utf8(made.stdout).expect("a key is text").trim_end().to_owned();
    let caller = Caller::new(process.address(), Some(api_key));
    (database, process, caller)
}

/// An order that is full of what belongs to nobody else.
fn private_order() -> serde_json::Value {
    with(
        &json!({"customerId": "cus_private", "customer": {"email": "ann@shop.example", "lastName": "Novák"}, "note": "s3cret"}),
    )
}

/// A traceparent of this number.
fn trace(number: usize) -> (String, String) {
    let id = format!("{number:032x}");
    (format!("00-{id}-00f067aa0ba902b7-01"), id)
}

on_both_databases! {
    async fn each_request_has_one_line_without_a_body_or_a_secret(world: World) {
        // The most talkative level, of our own code and of everything below it.
        let (database, process, shop) = service(&world, "debug");
        let order = private_order();
        let invalid = with(&json!({"note": "s3cret", "currency": "s3cret"}));
        let cases = [
            ("one", &order, 201, "executed"),
            ("one", &order, 201, "replayed"),
            ("one", &invalid, 409, "conflict"),
            ("two", &invalid, 400, "refused"),
            ("not a key", &order, 400, "-"),
        ];
        for (number, (key, body, status, _)) in (1..).zip(cases) {
            let request = shop.command(Method::POST, "/v1/orders", key, body).header("traceparent", trace(number).0);
            send(request).await.expect(status);
        }
        database.execute("CREATE UNIQUE INDEX one_of_a_kind ON outbox (kind)");
        let request = shop.command(Method::POST, "/v1/orders", "three", &order).header("traceparent", trace(6).0);
        send(request).await.expect(500);
        let stranger = shop.with_api_key(Some("osk_s3cret".to_owned()));
        let request = stranger.command(Method::POST, "/v1/orders", "one", &order).header("traceparent", trace(7).0);
        send(request).await.expect(401);
        let request = shop.request(Method::GET, "/v1/s3cret/%0aINFO?s3cret=1").header("traceparent", trace(8).0);
        send(request).await.expect(404);

        let secret = shop.api_key().expect("a client has one").to_owned();
        let (status, log) = process.terminate();
        assert!(status.success(), "{log}");
        let line_of = |number: usize| {
            let id = format!("trace_id={} ", trace(number).1);
            let lines: Vec<&str> =
                log.lines().filter(|line| line.contains(&id) && line.contains("order_service::access")).collect();
            assert_eq!(lines.len(), 1, "{number}: {log}");
            lines[0]
        };
        for (number, (_, _, status, outcome)) in (1..).zip(cases) {
            let expected = format!("tenant=acme client=shop command=orders.create outcome={outcome} status={status} ms=");
            assert!(line_of(number).contains(&expected), "{expected}\n{}", line_of(number));
        }
        assert!(line_of(6).contains("outcome=fault status=500"), "{}", line_of(6));
        assert!(line_of(7).contains("tenant=- client=-") && line_of(7).contains("status=401"), "{}", line_of(7));
        assert!(line_of(8).contains("status=404") && line_of(8).contains("route=none"), "{}", line_of(8));
        // The failure itself is told once, where its trace is known.
        let told = log.lines().filter(|line| line.contains("order_service::fault") && line.contains(&trace(6).1)).count();
        assert_eq!(told, 1, "{log}");
        for private in PRIVATE.iter().copied().chain([secret.as_str()]) {
            assert!(!log.contains(private), "{private}: {log}");
        }
    }

    async fn commands_are_counted_by_what_became_of_them(world: World) {
        world.restart(&[("ORDERS_METRICS_BIND", "127.0.0.1:0")]).await;
        let shop = world.shop();
        let (order, invalid) = (private_order(), json!({}));
        for (key, body, status) in
            [("one", &order, 201), ("one", &order, 201), ("one", &order, 201), ("one", &invalid, 409), ("two", &invalid, 400), ("two", &invalid, 400)]
        {
            shop.post("/v1/orders", key, body).await.expect(status);
        }
        let metrics = Caller::new(world.metrics_address().expect("the setting asked for them"), None);
        let page = metrics.get("/metrics").await.expect(200).text();
        for (outcome, count) in [("executed", 1), ("replayed", 3), ("conflict", 1), ("refused", 1)] {
            let line = format!("orders_commands_total{{command=\"orders.create\",outcome=\"{outcome}\"}} {count}");
            assert!(page.lines().any(|found| found == line), "{line}\n{page}");
        }
        assert!(page.contains("orders_pool_connections{state=\"max\"}"), "{page}");
        assert!(PRIVATE.iter().all(|private| !page.contains(private)));
        // They are not where clients are.
        shop.get("/metrics").await.expect(404);
    }
}
