//! The cleaner and the requests at the same rows at the same time: no fault, no second order, no half of a key.

use std::time::{Duration, Instant};

use order_service::retention::{Batch, Step, Sweep};
use serde_json::Value;

use crate::harness::database::Dialect;
use crate::harness::http::{Answer, Caller};
use crate::harness::wait::eventually;
use crate::harness::world::{World, on_both_databases, prove};
use crate::retention::{DAY, FORGOTTEN, SPENT, age_where, assert_whole, connect, order, seed};

/// How many keys are replayed against the cleaner: half of them spent, half of them forgotten.
const ROUNDS: usize = 1_000;
/// How many requests are made at a time where their order does not matter.
const AT_ONCE: usize = 16;

/// The cleaner starts at as many different moments of a replay, from its beginning to a little past its end.
const HEAD_STARTS: u32 = 16;

async fn post(shop: &Caller, number: usize) -> Answer {
    shop.post("/v1/orders", &format!("key-{number}"), &order(Some(&format!("order-{number}")))).await
}

/// Makes one order for each round, and makes their keys old: the even ones spent, the odd ones forgotten.
async fn make_old_orders(world: &World, shop: &Caller) {
    for first in (0..ROUNDS).step_by(AT_ONCE) {
        let numbers = first..(first + AT_ONCE).min(ROUNDS);
        for answer in futures_util::future::join_all(numbers.map(|number| post(shop, number))).await {
            answer.expect(201);
        }
    }
    let digit = |digits: [u8; 5]| digits.map(|digit| format!("idempotency_key LIKE '%{digit}'")).join(" OR ");
    age_where(world.database(), SPENT, &digit([0, 2, 4, 6, 8]));
    age_where(world.database(), FORGOTTEN, &digit([1, 3, 5, 7, 9]));
}

/// The spent keys (0) or the forgotten ones (1), in the order in which the cleaner takes them.
fn in_the_cleaners_order(world: &World, until: &str, kind: usize) -> Vec<usize> {
    let rows = world.rows(&format!("SELECT idempotency_key FROM operations ORDER BY {until}"));
    let number = |row: &Value| row["idempotency_key"].as_str()?.strip_prefix("key-")?.parse::<usize>().ok();
    let numbers = rows.iter().map(|row| number(row).expect("a key of this test"));
    numbers.filter(|number| number % 2 == kind).collect()
}

on_both_databases! {
    async fn a_replay_meets_the_cleaner_a_thousand_times(world: World) {
        let shop = world.shop();
        make_old_orders(&world, &shop).await;
        let forgotten = in_the_cleaners_order(&world, "remember_until", 1);
        let spent = in_the_cleaners_order(&world, "replay_until", 0);
        assert_eq!((forgotten.len(), spent.len()), (ROUNDS / 2, ROUNDS / 2));

        let (mut db, mut quickest) = (connect(world.database()), Duration::from_millis(5));
        let (mut keys, mut bodies) = (0, 0);
        for (round, number) in (0..).zip(forgotten.into_iter().chain(spent)) {
            let began = Instant::now();
            let head_start = quickest * (round % HEAD_STARTS) / (HEAD_STARTS - 4);
            let cleaner = actix_web::rt::task::spawn_blocking(move || {
                while began.elapsed() < head_start {
                    std::thread::yield_now();
                }
                let batch = Sweep::begin(&mut db, 1).and_then(|mut sweep| sweep.clean_batch(&mut db));
                (db, batch)
            });
            let (first, second) = tokio::join!(post(&shop, number), post(&shop, number));
            quickest = quickest.min(began.elapsed());
            let batch;
            (db, batch) = cleaner.await.expect("the cleaner does not panic");
            match batch.expect("the batch is done") {
                Some(Batch { step: Step::Keys, rows, .. }) => keys += rows,
                Some(Batch { step: Step::Bodies, rows, .. }) => bodies += rows,
                None => {}
            }
            let error = if number % 2 == 0 { "IdempotencyKeyExpired" } else { "DuplicateOrder" };
            for answer in [first, second] {
                assert_eq!(answer.expect(409).error(), error, "key-{number}");
            }
        }

        // Sometimes the cleaner forgot the key, and sometimes its replay had taken it anew already: so they did race.
        assert!((1..ROUNDS / 2).contains(&keys), "the cleaner was first {keys} times");
        assert_eq!(bodies, ROUNDS / 2);
        let rounds = i64::try_from(ROUNDS).expect("a small number");
        assert_eq!((world.count("orders"), world.count("claims"), world.count("operations")), (rounds, rounds, rounds));
        assert_eq!(world.count("outbox"), rounds / 2);
        let count = |condition: &str| world.rows(&format!("SELECT 1 AS found FROM operations WHERE {condition}")).len();
        assert_eq!(count("status = 'succeeded' AND reply_body IS NULL"), ROUNDS / 2);
        assert_eq!(count("error = 'DuplicateOrder' AND reply_body IS NOT NULL"), ROUNDS / 2);
        assert_whole(world.database());
    }

    async fn posts_go_on_beside_the_cleaner(world: World) {
        world.restart(&[("ORDERS_CLEANER_INTERVAL", "100ms"), ("ORDERS_CLEANER_BATCH", "100")]).await;
        let shop = world.shop();
        seed(world.database(), "spent", 1_000, -60, DAY);
        seed(world.database(), "old", 1_000, -DAY, -60);
        let left = || world.rows(
            "SELECT 1 AS found FROM operations WHERE operation_id LIKE 'op_old%' \
             OR (operation_id LIKE 'op_spent%' AND reply_body IS NOT NULL)",
        ).len();
        let mut made = 0;
        eventually(Duration::from_mins(1), "the cleaner to have done everything", async || {
            for answer in futures_util::future::join_all((made..made + AT_ONCE).map(|number| post(&shop, number))).await {
                answer.expect(201);
            }
            made += AT_ONCE;
            (left() == 0).then_some(())
        }).await;
        for answer in futures_util::future::join_all((0..AT_ONCE).map(|number| post(&shop, number))).await {
            assert_eq!(answer.expect(201).header("idempotent-replayed"), Some("true"));
        }

        let made = i64::try_from(made).expect("a small number");
        assert_eq!((world.count("orders"), world.count("claims")), (made, made + 1_000));
        assert_whole(world.database());
        if world.dialect() == Dialect::Postgres {
            let statistics = world.rows("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()");
            assert_eq!(statistics[0]["deadlocks"], 0);
        }
    }
}

#[test]
fn postgres_lets_one_of_the_rivals_for_a_forgotten_key_make_the_order() {
    // The rivals come in by two services, so that no gate of one process puts them in a row.
    prove(Dialect::Postgres, async |world| {
        let one = world.shop();
        let other = one.at(world.start_another(&[]).await);
        let body = order(None);
        for round in 1..=50 {
            let rivals = (0..8).map(|number| {
                let caller = if number % 2 == 0 { &one } else { &other };
                caller.post("/v1/orders", "key-1", &body)
            });
            let answers = futures_util::future::join_all(rivals).await;
            let bodies: Vec<Vec<u8>> = answers.into_iter().map(|answer| answer.expect(201).body).collect();
            assert!(bodies.iter().all(|body| *body == bodies[0]), "round {round}: one order id in all bodies");
            assert_eq!(world.count("orders"), round, "one order each time that the key is new");
            assert_eq!((world.count("claims"), world.count("operations"), world.count("outbox")), (1, 1, 1));
            age_where(world.database(), FORGOTTEN, "1 = 1");
        }
        assert_whole(world.database());
    });
}
