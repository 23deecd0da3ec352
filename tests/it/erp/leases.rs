//! A lease ends, and who lost it changes nothing any more; messages of one order go one after the other.

use std::time::Duration;

use order_service::db::Db;
use order_service::outbox::Outcome;
use order_service::outbox::lease::{self, Terms};
use order_service::outbox::settle::{self, Next, Settlement};
use serde_json::json;

use crate::harness::erp::{FakeErp, Step};
use crate::harness::relay::{
    HandRelay, create, end_leases, end_settle_window, make_due, operation, outcomes, relay_config, shop_with,
};
use crate::harness::wait::eventually;
use crate::harness::world::{TENANT, World, on_both_databases, on_postgres};
use crate::retention::{FORGOTTEN, age_where};

const SOON: Duration = Duration::from_secs(30);
const TERMS: Terms = Terms { parallel: 4, length: Duration::from_mins(1) };

on_both_databases! {
    /// Stuck claims 13, and field case 67: the stale relay's write is refused.
    async fn a_dead_relays_message_is_taken_over_and_its_token_is_worth_nothing(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "lookup");
        let (_, operation_id) = create(&shop, "1").await;
        let mut db = Db::open(&relay_config(world.database(), &[]).database).expect("the database takes connections");
        let (_, mut stale) = lease::lease(&mut db, TENANT, TERMS).expect("it works").expect("it is due");
        let stale = stale.remove(0);
        assert_eq!(relay.step().await, 0, "while the lease lasts nobody else has it");

        end_leases(&world);
        assert_eq!(relay.step().await, 1);
        let done = operation(&shop, &operation_id).await;
        assert_eq!((&done["status"], outcomes(&done)), (&json!("succeeded"), vec!["unknown".into(), "delivered".into()]));
        assert_eq!((erp.requests("GET").len(), erp.requests("POST").len()), (1, 1), "what the lost one did is not known: look first");
        assert!(relay.metrics.render().contains("orders_erp_reclaimed_total 1"));

        let refused = Settlement {
            outcome: Outcome::Refused,
            detail: String::new(),
            next: Next::Refused,
            unknown_since: None,
            counts: false,
        };
        let settled = db.transaction(SOON, |db| {
            let now = db.now()?;
            settle::settle(db, &stale, &refused, now)
        });
        assert!(!settled.expect("it works"), "who lost the lease changes nothing");
        assert_eq!(operation(&shop, &operation_id).await, done);
    }

    /// Stuck claims 10: no length is not no lease.
    async fn a_lease_of_no_length_is_a_lease_that_is_over(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "lookup");
        let (_, operation_id) = create(&shop, "1").await;
        let columns = "SELECT state, lease_token IS NULL AS free, next_attempt_at IS NULL AS endless FROM outbox";
        let is = |row: &serde_json::Value, name: &str| row[name] == 1 || row[name] == true;
        let before = world.rows(columns);
        assert!(before[0]["state"] == "waiting" && is(&before[0], "free"), "{before:?}");
        let mut db = Db::open(&relay_config(world.database(), &[]).database).expect("the database takes connections");
        let terms = Terms { length: Duration::ZERO, ..TERMS };
        assert_eq!(lease::lease(&mut db, TENANT, terms).expect("it works").expect("it is due").1.len(), 1);
        let leased = world.rows(columns);
        assert!(leased[0]["state"] == "leased" && !is(&leased[0], "free") && !is(&leased[0], "endless"), "{leased:?}");
        assert_eq!(relay.step().await, 1, "it is taken over at once");
        assert!(relay.metrics.render().contains("orders_erp_reclaimed_total 1"));
        assert_eq!(outcomes(&operation(&shop, &operation_id).await).first().map(String::as_str), Some("unknown"));
    }

    async fn a_relay_that_is_slower_than_its_lease_writes_nothing(world: World) {
        let (erp, slow, quick) = (FakeErp::start(), HandRelay::new(&world, &[]), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "lookup");
        erp.script(&[Step::AcceptThenHang]);
        let (_, operation_id) = create(&shop, "1").await;
        let other = async {
            eventually(SOON, "the request is under way", async || (!erp.orders().is_empty()).then_some(())).await;
            end_leases(&world);
            assert_eq!(quick.step().await, 1);
        };
        assert_eq!(tokio::join!(slow.step(), other).0, 1);
        assert!(slow.metrics.render().contains("orders_erp_lost_leases_total 1"));
        let done = operation(&shop, &operation_id).await;
        assert_eq!((&done["status"], outcomes(&done)), (&json!("succeeded"), vec!["unknown".into(), "already_there".into()]));
        assert_eq!((erp.requests("POST").len(), erp.orders().len()), (1, 1));
    }

    /// The lost relay may have sent it as late as the end of its lease, however old an earlier doubt is.
    async fn the_doubt_about_a_message_that_is_taken_over_is_as_young_as_its_lease(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "lookup");
        erp.script(&[Step::Cut]);
        let (_, operation_id) = create(&shop, "1").await;
        relay.step().await;
        make_due(&world);
        end_settle_window(&world);
        let mut db = Db::open(&relay_config(world.database(), &[]).database).expect("the database takes connections");
        // A lease without a length is over at once; it is a lease all the same (field case 10).
        let none = Terms { length: Duration::ZERO, ..TERMS };
        lease::lease(&mut db, TENANT, none).expect("it works").expect("it is due");
        assert_eq!(relay.step().await, 1);
        let asked = (erp.requests("GET").len(), erp.requests("POST").len());
        assert_eq!(asked, (1, 1), "absent proves nothing so soon after the lost relay may have sent it");
        assert_eq!(outcomes(&operation(&shop, &operation_id).await), ["unknown", "unknown", "unknown"]);
    }

    async fn messages_of_one_order_go_one_after_the_other(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[("ORDERS_ERP_SETTLE", "0s")]));
        let shop = shop_with(&world, &erp, "lookup");
        erp.script(&[Step::Cut]);
        let (order_id, _) = create(&shop, "1").await;
        for (key, amount) in [("p1", 1), ("p2", 2)] {
            let payment = json!({"orderId": order_id, "amount": amount, "currency": "EUR", "method": "card"});
            shop.post("/v1/payments", key, &payment).await.expect(201);
        }
        for _ in 0..2 {
            make_due(&world);
            assert_eq!(relay.step().await, 1, "the hand-over alone, though all is due");
        }
        for _ in 0..2 {
            make_due(&world);
            assert_eq!(relay.step().await, 1, "one payment after the other");
        }
        let kinds: Vec<String> = erp.requests("POST").iter().map(|request| request.body.clone()).collect();
        assert!(kinds[2].contains(r#""amount":"1""#) && kinds[3].contains(r#""amount":"2""#), "{kinds:?}");
        assert_eq!(world.rows("SELECT DISTINCT status FROM operations"), [json!({"status": "succeeded"})]);
    }

    async fn a_tenant_without_an_erp_is_done_at_once_and_can_be_connected_later(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let plain = world.shop();
        let (order_id, operation_id) = create(&plain, "early").await;
        let done = operation(&plain, &operation_id).await;
        assert_eq!((&done["status"], &done["erp"]), (&json!("succeeded"), &json!(null)));
        assert_eq!(relay.step().await, 0);
        let shop = shop_with(&world, &erp, "lookup");
        relay.drain(&world).await;
        assert_eq!(crate::harness::relay::order(&shop, &order_id).await["status"], "confirmed");
        let after = operation(&plain, &operation_id).await;
        assert_eq!((&after["completedAt"], outcomes(&after)), (&done["completedAt"], vec!["delivered".to_owned()]));
    }
}

on_postgres! {
    /// Field case 80: the database refuses the settlement with 40001; it is asked again, and the ERP is not.
    async fn a_settlement_that_meets_a_rival_is_written_again_without_a_request(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "lookup");
        let (_, operation_id) = create(&shop, "1").await;
        refuse_twice(&world, "UPDATE", "WHEN (NEW.state = 'delivered')");
        relay.step().await;
        assert_eq!(world.rows("SELECT last_value FROM tries"), [json!({"last_value": 3})]);
        assert_eq!(operation(&shop, &operation_id).await["status"], "succeeded");
        assert_eq!((erp.requests("POST").len(), erp.requests("GET").len()), (1, 0));
    }

    /// Field case 69: the command fails behind its message, and runs again inside; what was rolled back was never written.
    async fn a_command_that_runs_again_leaves_one_message(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "lookup");
        refuse_twice(&world, "INSERT", "");
        create(&shop, "1").await;
        assert_eq!(world.rows("SELECT last_value FROM tries"), [json!({"last_value": 3})]);
        assert_eq!((world.count("outbox"), world.count("orders"), world.count("claims")), (1, 1, 1));
        relay.drain(&world).await;
        assert_eq!(erp.requests("POST").len(), 1);
    }

    /// Field case 60: a cleaner that sleeps inside its transaction, and a message whose relay has died.
    async fn a_cleaner_that_is_held_up_holds_up_no_relay(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "lookup");
        let (_, old) = create(&shop, "old").await;
        relay.drain(&world).await;
        let (_, stuck) = create(&shop, "stuck").await;
        age_where(world.database(), FORGOTTEN, "idempotency_key = 'key-old'");
        world.database().execute(
            "CREATE FUNCTION doze() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(3600); RETURN OLD; END $$; \
             CREATE TRIGGER doze BEFORE DELETE ON claims FOR EACH ROW EXECUTE FUNCTION doze()",
        );
        world.restart(&[("ORDERS_CLEANER_INTERVAL", "1s")]).await;
        let shop = shop.at(world.address());
        let asleep = "FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
        eventually(SOON, "the cleaner sleeps", async || {
            (!world.rows(&format!("SELECT 1 AS one {asleep}")).is_empty()).then_some(())
        })
        .await;
        let mut db = Db::open(&relay_config(world.database(), &[]).database).expect("the database takes connections");
        assert_eq!(lease::lease(&mut db, TENANT, TERMS).expect("it works").expect("it is due").1.len(), 1);
        end_leases(&world);
        assert_eq!(relay.step().await, 1);
        assert_eq!(operation(&shop, &stuck).await["status"], "succeeded");
        assert_eq!(world.rows(&format!("SELECT count(*) AS found {asleep}")), [json!({"found": 1})], "it still sleeps");
        // The trigger itself could not be dropped: the sleeper holds its table.
        world.database().execute(&format!(
            "CREATE OR REPLACE FUNCTION doze() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$; \
             SELECT pg_terminate_backend(pid) {asleep}"
        ));
        eventually(SOON, "the cleaner comes by again", async || {
            (shop.get(&format!("/v1/operations/{old}")).await.status == 404).then_some(())
        })
        .await;
    }
}

/// Lets the outbox refuse two statements of a kind with 40001, and take the third.
fn refuse_twice(world: &World, statement: &str, when: &str) {
    // A sequence counts on when its transaction is rolled back.
    world.database().execute(&format!(
        "CREATE SEQUENCE tries; \
         CREATE FUNCTION refuse_twice() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             IF nextval('tries') <= 2 THEN RAISE EXCEPTION 'rival' USING ERRCODE = '40001'; END IF; \
             RETURN NEW; END $$; \
         CREATE TRIGGER refuse AFTER {statement} ON outbox FOR EACH ROW {when} EXECUTE FUNCTION refuse_twice()"
    ));
}
