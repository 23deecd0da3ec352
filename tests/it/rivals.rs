//! Rivals for the same stock and the same order: each gets a plain answer, the last piece goes once, and no two of them wait
//! for each other.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::{Connection, PgConnection};
use futures_util::future::{join, join_all, join4};
use reqwest::Method;
use serde_json::json;

use crate::harness::database::Dialect;
use crate::harness::http::{Answer, Caller, send};
use crate::harness::process::Process;
use crate::harness::wait::eventually;
use crate::harness::world::{World, on_both_databases, prove};
use crate::payments::{order, pay, teller};
use crate::reservations::reserve;
use crate::stock::{level, put, warehouse};

const SOON: Duration = Duration::from_secs(20);

/// The statuses of the answers, in order of size.
fn statuses(answers: &[Answer]) -> Vec<u16> {
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status.as_u16()).collect();
    statuses.sort_unstable();
    statuses
}

/// One success among refusals.
fn one_of(rivals: usize) -> Vec<u16> {
    let mut expected = vec![409; rivals];
    expected[0] = 201;
    expected
}

/// The same caller at the service of the test, and where a second process may serve the database, at that one too.
fn entrances(world: &World, caller: Caller) -> (Vec<Caller>, Option<Process>) {
    match world.dialect() {
        Dialect::Sqlite => (vec![caller], None),
        Dialect::Postgres => {
            let process = world.process(&[]);
            (vec![caller.at(process.address()), caller], Some(process))
        }
    }
}

on_both_databases! {
    async fn the_last_piece_is_reserved_once(world: World) {
        let (entrances, _process) = entrances(&world, warehouse(&world));
        put(&entrances[0], "ABC", "s1", "1").await.expect(201);
        let rivals = entrances.iter().cycle().take(16).enumerate();
        let answers = join_all(rivals.map(async |(number, caller)| {
            reserve(caller, &format!("r{number}"), &[("ABC", "1")]).await
        }))
        .await;
        assert_eq!(statuses(&answers), one_of(16));
        assert!(answers.iter().all(|answer| answer.status == 201 || answer.error() == "InsufficientStock"));
        assert_eq!((world.count("reservations"), world.count("reservation_lines")), (1, 1));
        assert_eq!(level(&entrances[0], "ABC").await, ["1", "1", "0"]);
    }

    async fn an_order_is_paid_in_full_once(world: World) {
        let (entrances, _process) = entrances(&world, teller(&world));
        let order_id = order(&world, "o1", "39.90").await;
        let rivals = entrances.iter().cycle().take(16).enumerate();
        let answers = join_all(rivals.map(async |(number, caller)| {
            pay(caller, &format!("p{number}"), &order_id, "39.90", None).await
        }))
        .await;
        assert_eq!(statuses(&answers), one_of(16));
        assert!(answers.iter().all(|answer| answer.status == 201 || answer.error() == "Overpayment"));
        assert_eq!(world.count("payments"), 1);
        assert_eq!(world.rows("SELECT paid_amount, version FROM orders"), [json!({"paid_amount": "39.9", "version": 2})]);
    }

    async fn parts_that_are_paid_at_once_add_up(world: World) {
        let (entrances, _process) = entrances(&world, teller(&world));
        let order_id = order(&world, "o1", "39.90").await;
        let rivals = entrances.iter().cycle().take(12).enumerate();
        let answers = join_all(rivals.map(async |(number, caller)| {
            pay(caller, &format!("p{number}"), &order_id, "3.30", None).await
        }))
        .await;
        assert_eq!(statuses(&answers), [201; 12]);
        assert_eq!(world.rows("SELECT paid_amount, version FROM orders"), [json!({"paid_amount": "39.6", "version": 13})]);
        let positions = world.rows("SELECT position FROM outbox WHERE kind = 'payment.received' ORDER BY position");
        assert_eq!(positions, (2..=13).map(|position| json!({"position": position})).collect::<Vec<_>>());
    }

    async fn a_reference_that_is_told_at_once_under_many_keys_is_one_payment(world: World) {
        let (entrances, _process) = entrances(&world, teller(&world));
        let order_id = order(&world, "o1", "39.90").await;
        let rivals = entrances.iter().cycle().take(8).enumerate();
        let answers = join_all(rivals.map(async |(number, caller)| {
            pay(caller, &format!("p{number}"), &order_id, "1", Some("pi_1")).await
        }))
        .await;
        assert_eq!(statuses(&answers), one_of(8));
        assert!(answers.iter().all(|answer| answer.status == 201 || answer.error() == "DuplicatePayment"));
        assert_eq!(world.rows("SELECT reference FROM payments"), [json!({"reference": "pi_1"})]);
    }

    /// Two that lock the same rows in opposite orders would wait for each other, and the database would end one of them.
    async fn opposite_orders_of_lines_meet_no_deadlock(world: World) {
        let (entrances, _process) = entrances(&world, warehouse(&world));
        put(&entrances[0], "A", "a", "1000").await.expect(201);
        put(&entrances[0], "B", "b", "1000").await.expect(201);
        let rounds = entrances.iter().cycle().take(40).enumerate().map(async |(number, caller)| {
            let key = |what: &str| format!("{what}{number}");
            let (there, back, a, b) = (key("there"), key("back"), key("a"), key("b"));
            let answers = join4(
                reserve(caller, &there, &[("A", "1"), ("B", "1")]),
                reserve(caller, &back, &[("B", "1"), ("A", "1")]),
                put(caller, "A", &a, "1000"),
                put(caller, "B", &b, "1000"),
            )
            .await;
            let path = |answer: &Answer| format!("{}/release", answer.json()["links"]["self"].as_str().expect("a link"));
            let released = caller.post(&path(&answers.0), &key("release"), &json!({})).await;
            [answers.0, answers.1, answers.2, answers.3, released].map(|answer| answer.status.as_u16())
        });
        assert_eq!(join_all(rounds).await, [[201, 201, 200, 200, 200]; 40]);
        assert_eq!(level(&entrances[0], "A").await, ["1000", "40", "960"]);
        assert_eq!(level(&entrances[0], "B").await, ["1000", "40", "960"]);
    }

    async fn a_cancel_and_a_reservation_of_the_same_order_leave_no_stock_held(world: World) {
        let (warehouse, shop) = (warehouse(&world), world.shop());
        put(&warehouse, "ABC", "s1", "1000").await.expect(201);
        for round in 0..10 {
            let order_id = order(&world, &format!("o{round}"), "1").await;
            let cancel = format!("/v1/orders/{order_id}/cancel");
            let key = format!("k{round}");
            let body = json!({"items": [{"sku": "ABC", "qty": 1}], "orderId": order_id});
            let reserving = warehouse.post("/v1/reservations", &key, &body);
            let nothing = json!({});
            let (reserved, cancelled) = join(reserving, shop.post(&cancel, &key, &nothing)).await;
            cancelled.expect(200);
            assert!(reserved.status == 201 || reserved.error() == "OrderClosed", "{}", reserved.text());
        }
        assert_eq!(level(&warehouse, "ABC").await, ["1000", "0", "1000"]);
    }
}

/// The client's patience is for its key. A row that somebody else has locked for a moment is waited for all the same.
#[test]
fn a_client_that_does_not_wait_for_its_key_still_gets_past_a_locked_row_on_postgres() {
    prove(Dialect::Postgres, async |world: World| {
        let warehouse = warehouse(&world);
        put(&warehouse, "ABC", "s1", "1").await.expect(201);
        let mut holder = PgConnection::establish(world.database().url()).expect("the database takes connections");
        holder.batch_execute("BEGIN; SELECT * FROM stock FOR UPDATE").expect("the row is free");

        let request = warehouse.request(Method::POST, "/v1/reservations").header("Idempotency-Key", "r1");
        let body = json!({"items": [{"sku": "ABC", "qty": 1}]});
        let reserving = send(request.header("Prefer", "wait=0").json(&body));
        let freeing = async {
            eventually(SOON, "the command to wait for the row", async || {
                let waiting = "SELECT 1 AS waits FROM pg_locks WHERE NOT granted";
                (!world.rows(waiting).is_empty()).then_some(())
            })
            .await;
            holder.batch_execute("ROLLBACK").expect("the transaction is open");
        };
        let (reserved, ()) = join(reserving, freeing).await;
        reserved.expect(201);
        assert_eq!(world.count("reservations"), 1);
    });
}
