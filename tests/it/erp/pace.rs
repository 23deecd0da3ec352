//! How often and how soon it is tried: never more than the schedule, never at the cost of the other orders.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::harness::erp::{FakeErp, Step};
use crate::harness::http::Caller;
use crate::harness::relay::{HandRelay, connect, create, make_due, operation, outcomes, shop_with};
use crate::harness::wait::eventually;
use crate::harness::world::{World, on_both_databases};

const SOON: std::time::Duration = std::time::Duration::from_secs(30);

/// Seconds from the end of the last attempt to the next.
fn pause(operation: &Value) -> i64 {
    let instant = |value: &Value| {
        let text = value.as_str().unwrap_or_else(|| panic!("an instant is missing in {operation}"));
        chrono::DateTime::parse_from_rfc3339(text).expect("the API writes RFC 3339")
    };
    let attempts = operation["erp"]["attempts"].as_array().expect("there were attempts");
    let ended = instant(&attempts.last().expect("there was one")["endedAt"]);
    (instant(&operation["erp"]["nextAttemptAt"]) - ended).num_seconds()
}

async fn create_owned(shop: &Caller, number: i32) {
    create(shop, &number.to_string()).await;
}

on_both_databases! {
    /// Field case 92: the requests are the schedule's and no more.
    async fn when_the_budget_is_spent_a_person_has_to_look(world: World) {
        // The default number of attempts, and two relays, which together try as often as one.
        let slow = [("ORDERS_RETRY_BASE", "1h"), ("ORDERS_RETRY_CAP", "1d")];
        let (erp, one, other) = (FakeErp::start(), HandRelay::new(&world, &slow), HandRelay::new(&world, &slow));
        let shop = shop_with(&world, &erp, "lookup");
        erp.always("web/1", Step::Busy("0"));
        let (_, operation_id) = create(&shop, "1").await;
        for round in 1..=10 {
            for relay in [&one, &other] {
                make_due(&world);
                assert_eq!(relay.step().await, 1, "round {round}");
                assert_eq!(relay.step().await + one.step().await, 0, "nobody tries before the next attempt is due");
            }
        }
        make_due(&world);
        assert_eq!(one.step().await + other.step().await, 0);
        let spent = operation(&shop, &operation_id).await;
        assert_eq!((&spent["status"], outcomes(&spent)), (&json!("unresolved"), vec!["unavailable".to_owned(); 20]));
        assert_eq!((erp.requests("POST").len(), erp.requests("GET").len()), (20, 0));

        // A person's retry has a new budget.
        shop.post(&format!("/v1/operations/{operation_id}/retry"), "r", &json!({})).await.expect(200);
        one.drain(&world).await;
        assert_eq!((operation(&shop, &operation_id).await["status"].clone(), erp.requests("POST").len()), (json!("unresolved"), 40));
    }

    async fn the_time_of_a_budget_ends_too(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "lookup");
        erp.always("web/1", Step::Busy("0"));
        let (_, operation_id) = create(&shop, "1").await;
        relay.step().await;
        world.database().execute("UPDATE outbox SET spent_since = '2000-01-01 00:00:00'");
        make_due(&world);
        relay.step().await;
        assert_eq!((operation(&shop, &operation_id).await["status"].clone(), erp.requests("POST").len()), (json!("unresolved"), 2));
    }

    async fn retry_after_is_obeyed_within_the_cap(world: World) {
        for (number, (asked, least, most)) in (0_i32..).zip([("30", 30, 31), ("86400", 60, 60), ("99999999999999999999", 60, 60), ("soon", 0, 1),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0, 1), ("Fri, 01 Jan 2100 00:00:00 GMT", 60, 60)]) {
            let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[("ORDERS_RETRY_CAP", "60s")]));
            let shop = shop_with(&world, &erp, "lookup");
            erp.script(&[Step::Busy(asked)]);
            let (_, operation_id) = create(&shop, &format!("{number}")).await;
            relay.step().await;
            let pause = pause(&operation(&shop, &operation_id).await);
            assert!((least..=most).contains(&pause), "{asked}: {pause} s");
            world.database().execute("UPDATE outbox SET state = 'abandoned'");
        }
    }

    async fn a_wrong_key_pauses_the_connection_and_not_the_orders(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[("ORDERS_RETRY_CAP", "1h"), ("ORDERS_RETRY_ATTEMPTS", "1")]));
        let shop = shop_with(&world, &erp, "lookup");
        erp.script(&[Step::Status(401), Step::Status(401)]);
        let (_, first) = create(&shop, "1").await;
        relay.step().await;
        let (_, second) = create(&shop, "2").await;
        assert_eq!(relay.step().await, 0, "while it is paused nothing is sent");
        let paused = world.rows("SELECT pause_reason, spent FROM erp_connections, outbox WHERE position = 1");
        assert_eq!(paused[0]["spent"], 0);
        let reason = paused[0]["pause_reason"].as_str().expect("a pause has a reason");
        assert!(reason.starts_with("the ERP answered 401: the ERP's own words; check that both sides hold the same secret"), "{reason}");
        make_due(&world);
        assert_eq!(relay.step().await, 1, "one order tries whether it is well again");
        relay.drain(&world).await;
        for operation_id in [first, second] {
            assert_eq!(operation(&shop, &operation_id).await["status"], "succeeded");
        }
        assert_eq!(world.rows("SELECT failures, pause_reason FROM erp_connections"), [json!({"failures": 0, "pause_reason": null})]);
    }

    async fn a_dead_erp_is_left_alone_and_tried_by_one_order(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[("ORDERS_RETRY_BASE", "1h"), ("ORDERS_RETRY_CAP", "1h")]));
        let shop = shop_with(&world, &erp, "lookup");
        erp.always("", Step::Busy("0"));
        for number in 0..12 {
            create(&shop, &number.to_string()).await;
        }
        let mut attempts = 0;
        for _ in 0..10 {
            attempts += relay.step().await;
        }
        assert_eq!(attempts, 8, "two rounds of four, and then it is taken for dead");
        make_due(&world);
        assert_eq!(relay.step().await, 1);
        assert_eq!(relay.step().await, 0, "it rests again");
        erp.always("nothing holds this", Step::Accept);
        relay.drain(&world).await;
        assert_eq!(erp.orders().len(), 12);
    }

    async fn a_poisoned_order_starves_no_other(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[("ORDERS_ERP_SETTLE", "0s")]));
        let shop = shop_with(&world, &erp, "lookup");
        erp.always("web/bad", Step::Status(500));
        let (_, bad) = create(&shop, "bad").await;
        for number in 0..10 {
            create(&shop, &number.to_string()).await;
        }
        for _ in 0..6 {
            make_due(&world);
            relay.step().await;
        }
        assert_eq!(erp.orders().len(), 10);
        assert_eq!(operation(&shop, &bad).await["status"], "processing");
    }

    async fn no_more_than_the_limit_is_under_way_whatever_relays_there_are(world: World) {
        let (erp, one, two) = (FakeErp::start(), HandRelay::new(&world, &[("ORDERS_ERP_TIMEOUT", "10s")]), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "lookup");
        erp.script(&[Step::HangThenAccept; 4]);
        for number in 0..8 {
            create(&shop, &number.to_string()).await;
        }
        let others = async {
            eventually(SOON, "four requests under way", async || (erp.requests("POST").len() == 4).then_some(())).await;
            assert_eq!(two.step().await, 0);
            erp.release();
        };
        assert_eq!(tokio::join!(one.step(), others).0, 4);
        two.drain(&world).await;
        assert_eq!((erp.orders().len(), erp.most_under_way()), (8, 4));
    }

    /// Field case 66: 500 messages that failed before, and three relays that start together.
    async fn several_relays_share_the_work_and_do_nothing_twice(world: World) {
        let erp = FakeErp::start();
        erp.ignore_keys();
        let shop = shop_with(&world, &erp, "lookup");
        for chunk in 0..25 {
            join_all((0..20).map(|number| create_owned(&shop, chunk * 20 + number))).await;
        }
        world.database().execute("UPDATE outbox SET attempts = 1, spent = 1, last_outcome = 'not_delivered'");
        let relays: Vec<HandRelay> = (0..3).map(|_| HandRelay::new(&world, &[("ORDERS_RELAY_PARALLEL", "16")])).collect();
        let attempts = join_all(relays.iter().map(async |relay| {
            let mut attempts = 0;
            eventually(SOON, "all orders are there", async || {
                attempts += relay.step().await;
                (erp.orders().len() >= 500).then_some(())
            })
            .await;
            attempts
        }))
        .await;
        assert_eq!(attempts.iter().sum::<usize>(), 500);
        assert!(attempts.iter().all(|attempts| *attempts > 0), "each had its part: {attempts:?}");
        assert_eq!((erp.requests("POST").len(), erp.orders().len()), (500, 500));
        assert_eq!((world.count("attempts"), world.rows("SELECT DISTINCT attempts FROM outbox")), (500, vec![json!({"attempts": 2})]));
    }

    /// Field case 70.
    async fn each_tenant_has_its_own_erp(world: World) {
        let (erp, other_erp, relay) = (FakeErp::start(), FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "lookup");
        let other = world.caller("other", "shop", &["orders:write", "orders:read"]);
        connect(&world, "other", &other_erp, "lookup");
        create(&shop, "ours").await;
        let (_, theirs) = create(&other, "theirs").await;
        relay.drain(&world).await;
        assert_eq!((erp.orders(), other_erp.orders()), (vec!["web/ours".to_owned()], vec!["web/theirs".to_owned()]));
        assert_eq!(operation(&other, &theirs).await["status"], "succeeded");
        assert_eq!(other_erp.requests("POST").len(), 1);
    }
}
