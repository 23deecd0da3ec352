//! The cleaner at work: small batches, turns among the tenants, several at once, inside the service and by hand.

use std::collections::BTreeMap;
use std::time::Duration;

use diesel::{RunQueryDsl, sql_query};
use order_service::db::Db;

use super::{DAY, FORGOTTEN, SPENT, assert_whole, connect, order, seed, sweep};
use crate::harness::database::{Database, Dialect};
use crate::harness::http::Caller;
use crate::harness::process;
use crate::harness::wait::eventually;
use crate::harness::world::{World, on_both_databases, prove};

/// A sweep in the background takes less than a second; this is for one that never comes.
const LIMIT: Duration = Duration::from_mins(1);

/// Gives the seeded rows of a prefix to another tenant.
fn give_to(database: &Database, tenant: &str, prefix: &str) {
    for table in ["claims", "operations"] {
        database.execute(&format!("UPDATE {table} SET tenant_id = '{tenant}' WHERE idempotency_key LIKE '{prefix}-%'"));
    }
}

fn bodies_kept(world: &World) -> usize {
    world.rows("SELECT 1 AS kept FROM operations WHERE reply_body IS NOT NULL").len()
}

on_both_databases! {
    async fn a_batch_has_its_limit_and_the_tenants_take_turns(world: World) {
        world.shop();
        world.caller("zeta", "shop", &["orders:read"]);
        seed(world.database(), "a", 7, -60, DAY);
        seed(world.database(), "z", 4, -60, DAY);
        seed(world.database(), "fresh", 5, 60, DAY);
        give_to(world.database(), "zeta", "z");
        let batches = sweep(world.database(), 3);
        let done: Vec<_> =
            batches.iter().map(|batch| (batch.tenant_id.as_str(), batch.step.as_str(), batch.rows)).collect();
        assert_eq!(
            done,
            [("acme", "bodies", 3), ("zeta", "bodies", 3), ("acme", "bodies", 3), ("zeta", "bodies", 1), ("acme", "bodies", 1)]
        );
        assert_eq!((bodies_kept(&world), world.count("claims"), world.count("operations")), (5, 16, 16));
        assert_eq!(sweep(world.database(), 3), []);
    }

    async fn a_key_past_its_memory_goes_whole_and_the_oldest_goes_first(world: World) {
        world.shop();
        seed(world.database(), "late", 2, -DAY, -60);
        seed(world.database(), "early", 2, -DAY, -120);
        let mut db = connect(world.database());
        let mut sweeping = order_service::retention::Sweep::begin(&mut db, 2).expect("the database answers");
        let first = sweeping.clean_batch(&mut db).expect("done").expect("there is something to do");
        assert_eq!((first.step.as_str(), first.rows), ("keys", 2));
        let left = world.rows("SELECT idempotency_key FROM claims ORDER BY idempotency_key");
        assert_eq!(left, [serde_json::json!({"idempotency_key": "late-1"}), serde_json::json!({"idempotency_key": "late-2"})]);
        assert_whole(world.database());
        let steps: Vec<_> = sweep(world.database(), 500).iter().map(|batch| batch.step.as_str()).collect();
        assert_eq!((steps, world.count("claims"), world.count("operations")), (vec!["keys"], 0, 0));
    }

    async fn several_cleaners_share_the_work(world: World) {
        world.shop();
        seed(world.database(), "spent", 600, -60, DAY);
        seed(world.database(), "old", 600, -DAY, -60);
        let database = world.database();
        let totals = std::thread::scope(|scope| {
            let cleaners: Vec<_> = (0..3).map(|_| scope.spawn(|| sweep(database, 50))).collect();
            let mut totals = BTreeMap::new();
            for batch in cleaners.into_iter().flat_map(|cleaner| cleaner.join().expect("no cleaner fails")) {
                *totals.entry(batch.step.as_str()).or_insert(0) += batch.rows;
            }
            totals
        });
        // A key is forgotten by one of them alone. A body that was dropped is not dropped again.
        assert_eq!(totals["keys"], 600);
        assert_eq!(totals["bodies"], 600);
        assert_eq!((world.count("claims"), world.count("operations"), bodies_kept(&world)), (600, 600, 0));
        assert_whole(world.database());
    }

    async fn the_service_cleans_by_itself_and_counts_it(world: World) {
        world.restart(&[
            ("ORDERS_CLEANER_INTERVAL", "100ms"),
            ("ORDERS_CLEANER_BATCH", "2"),
            ("ORDERS_METRICS_BIND", "127.0.0.1:0"),
        ]).await;
        world.shop();
        seed(world.database(), "spent", 5, -60, DAY);
        seed(world.database(), "old", 3, -DAY, -60);
        eventually(LIMIT, "the cleaner to have done everything", async || {
            (world.count("claims") == 5 && bodies_kept(&world) == 0).then_some(())
        }).await;
        let metrics = Caller::new(world.metrics_address().expect("metrics are on"), None);
        eventually(LIMIT, "the sweep to be counted", async || {
            let text = metrics.get("/metrics").await.expect(200).text();
            [
                r#"orders_cleaner_rows_total{step="keys"} 3"#,
                r#"orders_cleaner_rows_total{step="bodies"} 5"#,
                r#"orders_cleaner_sweeps_total{outcome="done"}"#,
            ].iter().all(|line| text.contains(line)).then_some(())
        }).await;
    }

    async fn a_sweep_that_fails_is_counted_and_the_next_one_goes_on(world: World) {
        world.restart(&[("ORDERS_CLEANER_INTERVAL", "100ms"), ("ORDERS_METRICS_BIND", "127.0.0.1:0")]).await;
        world.shop();
        world.database().execute("ALTER TABLE outbox RENAME TO away");
        seed(world.database(), "old", 3, -DAY, -60);
        let metrics = Caller::new(world.metrics_address().expect("metrics are on"), None);
        eventually(LIMIT, "a sweep to fail", async || {
            let text = metrics.get("/metrics").await.expect(200).text();
            text.contains(r#"orders_cleaner_sweeps_total{outcome="failed"}"#).then_some(())
        }).await;
        assert_eq!((world.count("claims"), world.count("operations")), (3, 3));
        world.database().execute("ALTER TABLE away RENAME TO outbox");
        eventually(LIMIT, "the cleaner to go on", async || (world.count("claims") == 0).then_some(())).await;
    }

    async fn by_hand_it_counts_first_and_then_cleans_beside_the_service(world: World) {
        let shop = world.shop();
        world.caller("zeta", "shop", &["orders:read"]);
        world.caller("idle", "shop", &["orders:read"]);
        seed(world.database(), "spent", 4, -60, DAY);
        seed(world.database(), "old", 3, -DAY, -60);
        seed(world.database(), "z", 2, -60, DAY);
        give_to(world.database(), "zeta", "z");
        shop.post("/v1/orders", "key-1", &order(Some("1"))).await.expect(201);
        let retention = |arguments: &[&str]| {
            let output = process::run(world.database().url(), &[&["retention", "run"], arguments].concat(),
                &[("ORDERS_CLEANER_BATCH", "3")]);
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).expect("the program writes text")
        };

        let counted = "acme\t3 keys to forget\t4 bodies to drop\nzeta\t0 keys to forget\t2 bodies to drop\n";
        assert_eq!(retention(&["--dry-run"]), counted);
        assert_eq!(retention(&["--dry-run"]), counted);
        assert_eq!((world.count("claims"), bodies_kept(&world)), (10, 10));
        let done = "acme\t3 keys forgotten\t4 bodies dropped\nzeta\t0 keys forgotten\t2 bodies dropped\n";
        assert_eq!(retention(&[]), done);
        assert_eq!((world.count("claims"), bodies_kept(&world)), (7, 1));
        assert_eq!(retention(&[]), "");
        assert_eq!(retention(&["--dry-run"]), "");
        let replay = shop.post("/v1/orders", "key-1", &order(Some("1"))).await.expect(201);
        assert_eq!(replay.header("idempotent-replayed"), Some("true"));
    }

    async fn by_hand_it_says_what_is_missing(world: World) {
        let empty = Database::empty(world.dialect());
        let output = process::run(empty.url(), &["retention", "run", "--dry-run"], &[]);
        assert!(!output.status.success());
        assert_eq!(
            String::from_utf8_lossy(&output.stderr),
            "order-service: the database lacks migrations; run 'order-service migrate' first\n"
        );
    }
}

/// Runs `work` while a transaction holds the rows that `lock` locks.
fn while_locked<T>(database: &Database, lock: &str, work: impl FnOnce() -> T) -> T {
    connect(database)
        .transaction(Duration::from_secs(5), |db| {
            let Db::Postgres(conn) = db else { panic!("rows are locked on PostgreSQL alone") };
            sql_query(lock).execute(conn)?;
            Ok(work())
        })
        .expect("nobody else holds these rows")
}

#[test]
fn postgres_leaves_what_a_rival_has_locked_to_the_next_sweep() {
    prove(Dialect::Postgres, async |world| {
        world.shop();
        seed(world.database(), "old", 3, -DAY, -60);
        for (prefix, lock, keys, bodies) in [
            // The body of the key that cannot be forgotten is past its window, too.
            ("spent", "SELECT 1 FROM claims WHERE idempotency_key = 'old-2' FOR UPDATE", 2, 4),
            ("later", "SELECT 1 FROM operations WHERE idempotency_key IN ('old-2', 'later-1') FOR UPDATE", 0, 2),
        ] {
            seed(world.database(), prefix, 3, -60, DAY);
            let batches = while_locked(world.database(), lock, || sweep(world.database(), 500));
            let rows = |step| batches.iter().filter(|batch| batch.step.as_str() == step).map(|batch| batch.rows).sum();
            assert_eq!((rows("keys"), rows("bodies")), (keys, bodies), "{lock}");
        }
        assert_eq!(sweep(world.database(), 500).len(), 2);
        assert_eq!((world.count("claims"), bodies_kept(&world)), (6, 0));
        assert_whole(world.database());
    });
}

#[test]
fn postgres_answers_while_a_cleaner_is_slow() {
    prove(Dialect::Postgres, async |world| {
        world.restart(&[("ORDERS_POOL_SIZE", "1")]).await;
        let shop = world.shop();
        for (key, aged) in [("spent", SPENT), ("old", FORGOTTEN)] {
            shop.post("/v1/orders", key, &order(Some(key))).await.expect(201);
            super::age_where(world.database(), aged, &format!("idempotency_key = '{key}'"));
        }
        // A batch that does not come to its end holds the rows as this transaction does.
        let mut db = connect(world.database());
        let Db::Postgres(conn) = &mut db else { panic!("this test is for PostgreSQL") };
        sql_query("BEGIN").execute(conn).expect("a transaction begins");
        sql_query("SELECT 1 FROM claims, operations FOR UPDATE").execute(conn).expect("nobody holds these rows");

        assert_eq!(
            shop.post("/v1/orders", "spent", &order(Some("spent"))).await.expect(409).error(),
            "IdempotencyKeyExpired"
        );
        shop.post("/v1/orders", "new", &order(Some("new"))).await.expect(201);
        // The forgotten key itself is the one thing that has to wait, as long as its client wants, and then hears the truth.
        let request = shop.request(reqwest::Method::POST, "/v1/orders").header("Idempotency-Key", "old");
        let waiting = crate::harness::http::send(request.header("Prefer", "wait=1").json(&order(Some("old")))).await;
        assert_eq!(waiting.expect(202).json()["status"], "processing");

        sql_query("ROLLBACK").execute(conn).expect("a transaction ends");
        assert_eq!(shop.post("/v1/orders", "old", &order(Some("old"))).await.expect(409).error(), "DuplicateOrder");
        assert_eq!(world.count("orders"), 3);
    });
}
