//! A lease ends, and who lost it changes nothing any more; messages of one order go one after the other.

use std::time::Duration;

use order_service::db::Db;
use order_service::outbox::Outcome;
use order_service::outbox::lease::{self, Terms};
use order_service::outbox::settle::{self, Next, Settlement};
use serde_json::json;

use crate::harness::database::Dialect;
use crate::harness::erp::{FakeErp, Step};
use crate::harness::relay::{
    HandRelay, create, end_leases, end_settle_window, make_due, operation, outcomes, relay_config, shop_with,
};
use crate::harness::wait::eventually;
use crate::harness::world::{TENANT, World, on_both_databases, prove};

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

    /// A person had looked before the relay sent and died; what has happened since only another look can tell.
    async fn a_permission_to_send_again_is_for_one_attempt(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "hold");
        erp.script(&[Step::Cut]);
        let (_, operation_id) = create(&shop, "1").await;
        relay.step().await;
        shop.post(&format!("/v1/operations/{operation_id}/retry"), "again", &json!({})).await.expect(200);
        let mut db = Db::open(&relay_config(world.database(), &[]).database).expect("the database takes connections");
        let none = Terms { length: Duration::ZERO, ..TERMS };
        let leased = lease::lease(&mut db, TENANT, none).expect("it works").expect("it is due").1;
        assert!(leased[0].resend_asked, "this attempt may send");
        assert_eq!(relay.step().await, 1);
        assert_eq!(erp.requests("POST").len(), 1, "the next one may not");
        assert_eq!(operation(&shop, &operation_id).await["status"], "unresolved");
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

/// Field case 80: the database refuses the settlement with 40001; it is asked again, and the ERP is not.
#[test]
fn a_settlement_that_meets_a_rival_is_written_again_without_a_request() {
    prove(Dialect::Postgres, |world: World| async move {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with(&world, &erp, "lookup");
        let (_, operation_id) = create(&shop, "1").await;
        // A sequence counts on when its transaction is rolled back.
        world.database().execute(
            "CREATE SEQUENCE tries; \
             CREATE FUNCTION refuse_twice() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                 IF nextval('tries') <= 2 THEN RAISE EXCEPTION 'rival' USING ERRCODE = '40001'; END IF; \
                 RETURN NEW; END $$; \
             CREATE TRIGGER refuse BEFORE UPDATE ON outbox FOR EACH ROW WHEN (NEW.state = 'delivered') \
                 EXECUTE FUNCTION refuse_twice()",
        );
        relay.step().await;
        assert_eq!(world.rows("SELECT last_value FROM tries"), [json!({"last_value": 3})]);
        assert_eq!(operation(&shop, &operation_id).await["status"], "succeeded");
        assert_eq!((erp.requests("POST").len(), erp.requests("GET").len()), (1, 0));
    });
}
