//! A connection that is wrong rests, and its orders wait: none of them pays for it, and none is lost.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::erp::{FakeErp, Step};
use crate::harness::http::Caller;
use crate::harness::process::Process;
use crate::harness::relay::{
    FAST, HandRelay, SECRET, connect, connect_to, create, make_due, operation, outcomes, shop_with,
};
use crate::harness::tls::Identity;
use crate::harness::wait::eventually;
use crate::harness::world::{TENANT, World, on_both_databases};

const SOON: Duration = Duration::from_mins(1);

/// One attempt is all that an order has: a connection's fault must not take it.
const ONE_ATTEMPT: &[(&str, &str)] = &[("ORDERS_RETRY_ATTEMPTS", "1"), ("ORDERS_RETRY_CAP", "1h")];

/// Says that the connection rests for this reason, and that the order neither paid for it nor waits for a person.
async fn rests(world: &World, shop: &Caller, operation_id: &str, reason: &str) {
    let waiting = operation(shop, operation_id).await;
    let attempt = &waiting["erp"]["attempts"][0];
    assert_eq!((&waiting["status"], &attempt["outcome"]), (&json!("processing"), &json!("misconfigured")));
    assert!(attempt["detail"].as_str().is_some_and(|detail| detail.starts_with(reason)), "{attempt}");
    let resting = world.rows("SELECT pause_reason, spent FROM connections, outbox WHERE paused_until IS NOT NULL");
    assert_eq!(resting, [json!({"pause_reason": attempt["detail"], "spent": 0})]);
}

async fn is_well(world: &World, shop: &Caller, operation_id: &str) {
    let done = operation(shop, operation_id).await;
    assert_eq!(
        (&done["status"], outcomes(&done)),
        (&json!("succeeded"), vec!["misconfigured".into(), "delivered".into()])
    );
    let connection = world.rows("SELECT failures, paused_until, pause_reason FROM connections");
    assert_eq!(connection, [json!({"failures": 0, "paused_until": null, "pause_reason": null})]);
}

on_both_databases! {
    async fn a_certificate_that_nobody_vouches_for_stops_the_connection_until_somebody_does(world: World) {
        let identity = Identity::signed_by_itself();
        let (erp, relay) = (FakeErp::start_with_tls(&identity), HandRelay::new(&world, ONE_ATTEMPT));
        let shop = shop_with(&world, &erp, "lookup");
        let (_, operation_id) = create(&shop, "1").await;
        assert_eq!((relay.step().await, relay.step().await), (1, 0));
        rests(&world, &shop, &operation_id, "the certificate or the TLS of the ERP is not accepted: invalid peer certificate").await;
        assert_eq!(erp.requests("POST").len(), 0, "nothing is said to somebody unknown");

        // Nobody touches the connection: the next probe meets a certificate that is trusted.
        make_due(&world);
        let certificate = identity.certificate();
        let trusting = [SECRET, ("SSL_CERT_FILE", certificate.to_str().expect("a path of ours"))];
        let settings: Vec<(&str, &str)> = FAST.iter().copied().chain(trusting).collect();
        let other = Process::relay(world.database().url(), &settings);
        eventually(SOON, "the order to be delivered", async || {
            (operation(&shop, &operation_id).await["status"] == "succeeded").then_some(())
        })
        .await;
        drop(other);
        is_well(&world, &shop, &operation_id).await;
        assert_eq!(erp.orders(), ["web/1"]);
    }

    async fn a_host_that_there_is_not_stops_the_connection_until_it_is_named_rightly(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, ONE_ATTEMPT));
        let shop = shop_with(&world, &erp, "lookup");
        connect_to(&world, TENANT, "https://erp.nowhere.invalid/orders", "lookup");
        let (_, operation_id) = create(&shop, "1").await;
        assert_eq!((relay.step().await, relay.step().await), (1, 0));
        rests(&world, &shop, &operation_id, "the host name 'erp.nowhere.invalid' cannot be resolved").await;
        connect(&world, TENANT, &erp, "lookup");
        assert_eq!(relay.step().await, 1, "a connection that was changed rests no longer");
        is_well(&world, &shop, &operation_id).await;
    }

    async fn an_order_that_comes_while_the_connection_rests_is_told_to_be_tried_after_it(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, ONE_ATTEMPT));
        let shop = shop_with(&world, &erp, "lookup");
        erp.script(&[Step::Status(401)]);
        create(&shop, "1").await;
        assert_eq!(relay.step().await, 1);
        let (_, operation_id) = create(&shop, "2").await;
        let waiting = operation(&shop, &operation_id).await;
        let instant = |text: &Value| chrono::DateTime::parse_from_rfc3339(text.as_str().expect("a text")).expect("an instant");
        let (next, created) = (instant(&waiting["erp"]["nextAttemptAt"]), instant(&waiting["createdAt"]));
        let rest = next - created;
        assert!(rest > chrono::TimeDelta::minutes(50) && rest <= chrono::TimeDelta::hours(1), "{waiting}");
        // A pause that is over moves nothing: the order's own time holds.
        world.database().execute("UPDATE connections SET paused_until = '2000-01-01 00:00:00'");
        let due = operation(&shop, &operation_id).await;
        assert!(instant(&due["erp"]["nextAttemptAt"]) - created < chrono::TimeDelta::minutes(1), "{due}");
    }

    async fn a_relay_alone_serves_its_metrics_and_nothing_else(world: World) {
        let erp = FakeErp::start();
        let shop = shop_with(&world, &erp, "lookup");
        let address = std::net::SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, crate::harness::ports::free_port()));
        let (_, operation_id) = create(&shop, "1").await;
        let bind = address.to_string();
        let settings: Vec<(&str, &str)> =
            FAST.iter().copied().chain([SECRET, ("ORDERS_METRICS_BIND", bind.as_str())]).collect();
        let relay = Process::relay(world.database().url(), &settings);
        eventually(SOON, "the order to be delivered", async || {
            (operation(&shop, &operation_id).await["status"] == "succeeded").then_some(())
        })
        .await;
        let watcher = shop.at(address);
        let metrics = watcher.get("/metrics").await.expect(200).text();
        let counted = r#"orders_erp_attempts_total{kind="order.created",outcome="delivered"} 1"#;
        assert!(metrics.contains(counted) && metrics.contains(r#"orders_pool_connections{state="max"} 1"#), "{metrics}");
        for path in ["/v1/orders", "/healthz", "/docs/", "/"] {
            watcher.get(path).await.expect(404);
        }
        let mut second = Process::relay(world.database().url(), &settings);
        assert_eq!(second.wait().code(), Some(1));
        assert!(second.log().contains("order-service: ORDERS_METRICS_BIND: cannot listen on"), "{}", second.log());
        let (status, log) = relay.terminate();
        assert!(status.success() && log.contains("stopped"), "{status}: {log}");
    }
}
