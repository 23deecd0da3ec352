//! Many orders, two relays that are processes of their own, and an ERP that dies twice under way.

use std::time::{Duration, Instant};

use order_service::erp::tryton::options::Target;
use serde_json::json;

use crate::bench::{create, order, process_settings, shop};
use crate::harness::database::Dialect;
use crate::harness::process::Process;
use crate::harness::wait::until;
use crate::harness::world::{World, prove_within};
use crate::tryton::Tryton;

/// More than a lease holds many times over, and little enough for a build.
const ORDERS: usize = 200;

/// How long a third of them may take on a busy machine; an idle one needs some ten seconds for all.
const LIMIT: Duration = Duration::from_mins(3);

/// On PostgreSQL, where relays are many. The sales stay drafts: to confirm one takes Tryton up to two seconds, and the others
/// have shown it.
#[test]
fn two_relays_and_an_erp_that_dies_twice_make_each_order_one_sale() {
    prove_within(2 * LIMIT, Dialect::Postgres, body);
}

async fn body(world: World) {
    let tryton = Tryton::start();
    let shop = shop(&world, &tryton, Target::Draft);
    for number in 0..ORDERS {
        create(&shop, &order(&format!("{number:03}"))).await;
    }
    let own = [("ORDERS_RETRY_BASE", "50ms"), ("ORDERS_RETRY_CAP", "1s"), ("ORDERS_RELAY_INTERVAL", "20ms")];
    let settings = process_settings(&tryton, &own);
    let begun = Instant::now();
    let relays = [Process::relay(world.database().url(), &settings), Process::relay(world.database().url(), &settings)];
    for part in [ORDERS / 3, 2 * ORDERS / 3] {
        until(LIMIT, &format!("the ERP has {part} sales"), || tryton.count("sale_sale") >= part);
        tryton.kill();
        assert!(tryton.count("sale_sale") < ORDERS, "it died under way");
        tryton.resume();
    }
    until(LIMIT, "every order is confirmed", || {
        world.rows("SELECT 1 AS one FROM orders WHERE status <> 'confirmed'").is_empty()
    });
    println!("{ORDERS} orders, two restarts: {:?}", begun.elapsed());

    let expected: Vec<String> = (0..ORDERS).map(|number| format!("web/{number:03}")).collect();
    assert_eq!(tryton.references(), expected, "each once");
    assert_eq!(tryton.count("sale_line"), ORDERS, "each whole");
    assert_eq!(tryton.count("party_party WHERE code LIKE '%cus_123'"), 1);
    assert_eq!(world.rows("SELECT DISTINCT status FROM operations"), [json!({"status": "succeeded"})]);
    let troubled = "outcome IN ('not_delivered', 'unavailable', 'unknown')";
    assert!(world.count(&format!("attempts WHERE {troubled}")) > 0, "the relays have felt that the ERP died");
    for relay in relays {
        let (status, log) = relay.terminate();
        assert!(status.success(), "{status}");
        assert!(log.contains("outcome=delivered") || log.contains("outcome=already_there"), "both have worked:\n{log}");
    }
}
