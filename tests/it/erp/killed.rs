//! A relay that is killed with -9 at each step: the ERP has the order once, and everybody sees it in the end.

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use serde_json::json;

use crate::harness::database::Dialect;
use crate::harness::erp::{FakeErp, Step};
use crate::harness::http::Caller;
use crate::harness::process::Process;
use crate::harness::relay::{
    FAST, HandRelay, SECRET, connect, connect_to, create, end_leases, end_settle_window, make_due, operation, shop_with,
};
use crate::harness::rival::Rival;
use crate::harness::wait::until;
use crate::harness::world::{TENANT, World, on_both_databases};

const SOON: Duration = Duration::from_mins(1);

fn start(world: &World, interval: &str) -> Process {
    let own = [SECRET, ("ORDERS_ERP_TIMEOUT", "15s"), ("ORDERS_RELAY_INTERVAL", interval)];
    let settings: Vec<(&str, &str)> = FAST.iter().copied().chain(own).collect();
    Process::relay(world.database().url(), &settings)
}

/// After the death of a relay: time passes, another one comes.
async fn the_next_relay_ends_it_well(world: &World, erp: &FakeErp, shop: &Caller, operation_id: &str) {
    end_leases(world);
    let next = HandRelay::new(world, &[]);
    next.step().await;
    erp.release();
    end_settle_window(world);
    next.drain(world).await;
    assert_eq!(operation(shop, operation_id).await["status"], "succeeded");
    assert_eq!(erp.orders(), ["web/1"]);
    assert_eq!(world.rows("SELECT status FROM orders"), [json!({"status": "confirmed"})]);
}

on_both_databases! {
    async fn before_the_lease(world: World) {
        let erp = FakeErp::start();
        let shop = shop_with(&world, &erp, "lookup");
        let (_, operation_id) = create(&shop, "1").await;
        world.database().execute("UPDATE outbox SET next_attempt_at = '2100-01-01 00:00:00'");
        // Its first round finds nothing due, and the next one would be in a minute.
        let relay = start(&world, "1m");
        until(SOON, "the relay is at work", || relay.log().contains("bringing orders to the ERP"));
        make_due(&world);
        relay.kill();
        assert_eq!(world.count("attempts"), 0);
        the_next_relay_ends_it_well(&world, &erp, &shop, &operation_id).await;
        assert_eq!((erp.requests("GET").len(), erp.requests("POST").len()), (0, 1));
    }

    async fn after_the_lease_and_before_the_request(world: World) {
        let erp = FakeErp::start();
        let shop = shop_with(&world, &erp, "lookup");
        // It takes connections and never greets: the relay gets no further than the handshake of TLS, before its request.
        let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        connect_to(&world, TENANT, &format!("https://{}/", silent.local_addr().expect("it is bound")), "lookup");
        let (_, operation_id) = create(&shop, "1").await;
        let relay = start(&world, "10ms");
        until(SOON, "the message is leased", || world.rows("SELECT state FROM outbox") == [json!({"state": "leased"})]);
        relay.kill();
        assert_eq!(world.rows("SELECT outcome FROM attempts"), [json!({"outcome": null})]);
        connect(&world, TENANT, &erp, "lookup");
        the_next_relay_ends_it_well(&world, &erp, &shop, &operation_id).await;
        // The next one cannot know how far it had come, and looks first.
        assert_eq!((erp.requests("GET").len(), erp.requests("POST").len()), (1, 1));
    }

    async fn after_the_request_was_sent_and_before_the_erp_did_anything(world: World) {
        let erp = FakeErp::start();
        let shop = shop_with(&world, &erp, "lookup");
        erp.script(&[Step::Hang]);
        let (_, operation_id) = create(&shop, "1").await;
        let relay = start(&world, "10ms");
        erp.wait_for_posts(1);
        relay.kill();
        the_next_relay_ends_it_well(&world, &erp, &shop, &operation_id).await;
        assert_eq!(erp.requests("POST").len(), 2);
    }

    async fn after_the_erp_has_it_and_before_its_answer(world: World) {
        let erp = FakeErp::start();
        let shop = shop_with(&world, &erp, "lookup");
        erp.script(&[Step::AcceptThenHang]);
        let (_, operation_id) = create(&shop, "1").await;
        let relay = start(&world, "10ms");
        until(SOON, "the ERP has the order", || !erp.orders().is_empty());
        relay.kill();
        the_next_relay_ends_it_well(&world, &erp, &shop, &operation_id).await;
        assert_eq!(erp.requests("POST").len(), 1);
    }

    /// Field case 64.
    async fn after_the_answer_and_before_it_is_written_down(world: World) {
        let erp = FakeErp::start();
        let shop = shop_with(&world, &erp, "lookup");
        erp.script(&[Step::HangThenAccept]);
        let (_, operation_id) = create(&shop, "1").await;
        let relay = start(&world, "10ms");
        erp.wait_for_posts(1);
        // Somebody holds what a settlement needs: the rows, and on SQLite the file.
        let hold = match world.dialect() {
            Dialect::Postgres => "SELECT 1 FROM orders FOR UPDATE",
            Dialect::Sqlite => "SELECT 1",
        };
        let rival = Rival::begin(world.database(), hold);
        erp.release();
        until(SOON, "the attempt has ended and cannot be written down", || relay.log().contains("outcome=delivered"));
        relay.kill();
        rival.roll_back();
        assert_eq!(world.rows("SELECT state FROM outbox"), [json!({"state": "leased"})]);
        the_next_relay_ends_it_well(&world, &erp, &shop, &operation_id).await;
        assert_eq!((erp.requests("GET").len(), erp.requests("POST").len()), (1, 1));
    }

    async fn a_relay_that_is_asked_to_stop_ends_what_it_has_begun(world: World) {
        let erp = FakeErp::start();
        let shop = shop_with(&world, &erp, "lookup");
        erp.script(&[Step::HangThenAccept]);
        let (_, operation_id) = create(&shop, "1").await;
        let relay = start(&world, "10ms");
        erp.wait_for_posts(1);
        assert!(crate::harness::process::signal("-TERM", relay.id()));
        erp.release();
        let (status, log) = relay.terminate();
        assert!(status.success() && log.contains("outcome=delivered"), "{status}: {log}");
        assert_eq!(operation(&shop, &operation_id).await["status"], "succeeded");
    }
}
