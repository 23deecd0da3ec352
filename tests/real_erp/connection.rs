//! The connection itself: how it is set and checked, and a key that is wrong for a while.

use order_service::erp::tryton::options::Target;
use serde_json::json;

use crate::bench::{self, KEY, create, order, process_settings, relay, relay_with_key, shop};
use crate::harness::process;
use crate::harness::relay::{make_due, operation, outcomes};
use crate::harness::world::{World, on_both_databases};
use crate::tryton::Tryton;

const PAUSED: &str =
    "SELECT pause_reason IS NOT NULL AS paused, (SELECT sum(spent) FROM outbox) AS spent FROM connections";

on_both_databases! {
    async fn a_wrong_key_costs_no_order_anything_and_the_right_one_brings_them_all(world: World) {
        let tryton = Tryton::start();
        let shop = shop(&world, &tryton, Target::Confirmed);
        let wrong = relay_with_key(&world, "no-key-of-anybody", &[("ORDERS_RETRY_ATTEMPTS", "1")]);
        let (_, first) = create(&shop, &order("1")).await;
        let (_, second) = create(&shop, &order("2")).await;
        for _ in 0..3 {
            make_due(&world);
            assert!(wrong.step().await > 0);
        }
        let seen = outcomes(&operation(&shop, &first).await);
        assert!(!seen.is_empty() && seen.iter().all(|outcome| outcome == "misconfigured"), "{seen:?}");
        let paused = world.rows(PAUSED).remove(0);
        assert!(paused["paused"] == true || paused["paused"] == 1, "{paused}");
        assert_eq!((&paused["spent"], tryton.count("sale_sale")), (&json!(0), 0));

        // The relay was started anew with the right key; nobody did anything else.
        let right = relay(&world, &tryton, &[("ORDERS_RETRY_ATTEMPTS", "1")]);
        right.drain(&world).await;
        for operation_id in [first, second] {
            assert_eq!(operation(&shop, &operation_id).await["status"], "succeeded");
        }
        assert_eq!(tryton.references(), ["web/1", "web/2"]);
        assert_eq!(world.rows("SELECT failures, pause_reason FROM connections"), [json!({"failures": 0, "pause_reason": null})]);
    }

    /// Somebody at the ERP takes the key back by mistake, and gives it again.
    async fn a_key_that_is_taken_back_and_given_again_needs_nobody_on_our_side(world: World) {
        let tryton = Tryton::start();
        let (shop, relay) = (shop(&world, &tryton, Target::Confirmed), relay(&world, &tryton, &[("ORDERS_RETRY_ATTEMPTS", "1")]));
        let (_, before) = create(&shop, &order("1")).await;
        relay.drain(&world).await;
        tryton.execute("UPDATE res_user_application SET state = 'cancelled'");
        let (_, during) = create(&shop, &order("2")).await;
        make_due(&world);
        relay.step().await;
        let waits = operation(&shop, &during).await;
        assert_eq!((&waits["status"], outcomes(&waits)), (&json!("processing"), vec!["misconfigured".to_owned()]));
        tryton.execute("UPDATE res_user_application SET state = 'validated'");
        relay.drain(&world).await;
        for operation_id in [before, during] {
            assert_eq!(operation(&shop, &operation_id).await["status"], "succeeded");
        }
        assert_eq!(tryton.references(), ["web/1", "web/2"]);
    }

    async fn a_connection_is_set_and_checked_by_the_command_line(world: World) {
        let tryton = Tryton::start();
        world.shop();
        let settings = process_settings(&tryton, &[]);
        let run = |arguments: &[&str], settings: &[(&str, &str)]| {
            let output = process::run(world.database().url(), arguments, settings);
            let text = [output.stdout, output.stderr].concat();
            (output.status.success(), String::from_utf8(text).expect("it is text"))
        };
        let (url, id) = (bench::url(tryton.address()), tryton.web_shop().to_string());
        let set = |web_shop: &str| {
            run(&["erp", "set", "--tenant", "acme", "--kind", "tryton", "--url", &url, "--secret-env", KEY, "--web-shop", web_shop], &settings)
        };
        let check = |settings: &[(&str, &str)]| run(&["erp", "check", "--tenant", "acme"], settings);
        let (done, said) = set(&id);
        assert!(done, "{said}");
        let (done, said) = check(&settings);
        assert!(done && said.contains("order-service") && said.contains("Demo Shop GmbH"), "{said}");

        let wrong_key: Vec<_> = settings.iter().copied().chain([(KEY, "no-key-of-anybody")]).collect();
        let (done, said) = check(&wrong_key);
        assert!(!done && said.contains(KEY) && !said.contains("no-key-of-anybody"), "{said}");
        let (done, said) = set("4711");
        assert!(done, "{said}");
        let (done, said) = check(&settings);
        assert!(!done && said.contains("no web shop 4711"), "{said}");
        set(&id);
        tryton.kill();
        let (done, said) = check(&settings);
        assert!(!done && !said.contains(tryton.bearer()), "{said}");
    }
}
