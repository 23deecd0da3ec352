//! Failures of ours and of the database: the command is whole or absent, the same key finds out which, nothing internal is
//! told, and the service is well again without a restart.

use std::time::Duration;

use actix_web::rt;
use reqwest::Method;

use crate::harness::database::{Database, Dialect};
use crate::harness::head::Head;
use crate::harness::http::{Answer, Caller, send};
use crate::harness::orders::{Tally, smallest};
use crate::harness::proxy::{Mode, Proxy};
use crate::harness::raw::RawConnection;
use crate::harness::rival::{Rival, until_waiting};
use crate::harness::wait::eventually;
use crate::harness::world::{World, on_both_databases, on_postgres};

/// How long the service and the server may take to see that a connection is gone.
const LIMIT: Duration = Duration::from_secs(30);

/// Says that the answer is the 503 that advises the same key, and nothing of what is inside.
fn is_unavailable(answer: &Answer) {
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert_eq!(answer.error(), "ServiceUnavailable");
    assert!(answer.header("retry-after").is_some());
    assert_eq!(answer.json()["retry"]["sameKey"], true);
    tells_nothing(answer);
}

/// Says that nothing internal is in the body.
fn tells_nothing(answer: &Answer) {
    let body = answer.text().to_ascii_lowercase();
    for word in [
        "outbox",
        "insert into",
        "select ",
        "constraint",
        "relation",
        "postgres",
        "sqlite",
        "diesel",
        ".rs",
        "panicked",
        "127.0.0.1",
    ] {
        assert!(!body.contains(word), "{word}: {body}");
    }
}

/// Whether a connection of the service stands inside a transaction; and, on SQLite, whether anybody holds the write lock.
async fn no_transaction_is_left(database: &Database) {
    match database.dialect() {
        Dialect::Postgres => {
            eventually(LIMIT, "the end of every transaction", async || {
                let open = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() \
                    AND state LIKE 'idle in transaction%'";
                database.rows(open).is_empty().then_some(())
            })
            .await;
        }
        Dialect::Sqlite => Rival::begin(database, "SELECT 1").roll_back(),
    }
}

/// A wire between the service and its PostgreSQL, the service on it, and a client.
async fn on_a_wire(world: &World) -> (Proxy, Caller) {
    let (wire, url) = Proxy::to(world.database().url());
    world.restart(&[("DATABASE_URL", &url), ("ORDERS_POOL_TIMEOUT", "500ms")]).await;
    (wire, world.shop())
}

on_postgres! {
    async fn a_commit_that_the_database_never_heard_of_left_nothing(world: World) {
        let (wire, shop) = on_a_wire(&world).await;
        wire.set(Mode::BreakBeforeCommit);
        let lost = shop.post("/v1/orders", "one", &smallest()).await;
        is_unavailable(&lost);
        assert!(lost.json()["detail"].as_str().is_some_and(|detail| detail.contains("not known")), "{}", lost.text());
        let again = shop.post("/v1/orders", "one", &smallest()).await.expect(201);
        assert_eq!(again.header("idempotent-replayed"), Some("false"));
        assert_eq!(Tally::of(world.database()), Tally::orders(1));
        no_transaction_is_left(world.database()).await;
    }

    async fn a_commit_whose_answer_was_lost_is_found_by_the_same_key(world: World) {
        let (wire, shop) = on_a_wire(&world).await;
        wire.set(Mode::BreakAfterCommit);
        let lost = shop.post("/v1/orders", "one", &smallest()).await;
        is_unavailable(&lost);
        assert!(lost.json()["detail"].as_str().is_some_and(|detail| detail.contains("not known")), "{}", lost.text());
        assert_eq!(Tally::of(world.database()), Tally::orders(1));
        let again = shop.post("/v1/orders", "one", &smallest()).await.expect(201);
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
        assert_eq!(Tally::of(world.database()), Tally::orders(1));
        no_transaction_is_left(world.database()).await;
    }

    async fn a_database_that_was_away_is_found_again_without_a_restart(world: World) {
        let (wire, shop) = on_a_wire(&world).await;
        shop.post("/v1/orders", "before", &smallest()).await.expect(201);
        wire.set(Mode::Cut);
        is_unavailable(&shop.post("/v1/orders", "during", &smallest()).await);
        is_unavailable(&shop.get("/v1/orders").await);
        is_unavailable(&shop.get("/readyz").await);
        shop.get("/healthz").await.expect(200);
        assert_eq!(Tally::of(world.database()), Tally::orders(1));

        wire.set(Mode::Whole);
        eventually(LIMIT, "a service that is ready", async || (shop.get("/readyz").await.status == 200).then_some(())).await;
        let made = shop.post("/v1/orders", "during", &smallest()).await.expect(201);
        assert_eq!(made.header("idempotent-replayed"), Some("false"));
        let replay = shop.post("/v1/orders", "before", &smallest()).await.expect(201);
        assert_eq!(replay.header("idempotent-replayed"), Some("true"));
        assert_eq!(Tally::of(world.database()), Tally::orders(2));
    }

    async fn a_connection_that_is_ended_in_the_middle_leaves_nothing(world: World) {
        let shop = world.shop();
        let hold = Rival::begin(world.database(), "LOCK TABLE outbox IN ACCESS EXCLUSIVE MODE");
        let caller = shop.clone();
        let request = rt::spawn(async move { caller.post("/v1/orders", "one", &smallest()).await });
        until_waiting(world.database(), 1).await;
        let ended = world.rows(
            "SELECT pg_terminate_backend(pid) AS ended FROM pg_stat_activity \
             WHERE datname = current_database() AND wait_event_type = 'Lock'",
        );
        assert_eq!(ended.len(), 1);
        is_unavailable(&request.await.expect("the request ends"));
        hold.roll_back();
        assert_eq!(Tally::of(world.database()), Tally::default());
        let made = shop.post("/v1/orders", "one", &smallest()).await.expect(201);
        assert_eq!(made.header("idempotent-replayed"), Some("false"));
        assert_eq!(Tally::of(world.database()), Tally::orders(1));
        no_transaction_is_left(world.database()).await;
    }

    async fn a_database_that_only_reads_is_not_a_key_at_work(world: World) {
        let shop = world.shop();
        let name = world.database().url().rsplit('/').next().expect("a URL has a path");
        world.database().execute(&format!(
            "ALTER DATABASE {name} SET default_transaction_read_only = on; \
             SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ));
        let request = shop.command(Method::POST, "/v1/orders", "one", &smallest()).header("Prefer", "wait=0");
        is_unavailable(&send(request).await);
        assert_eq!(Tally::of(world.database()), Tally::default());
    }
}

on_both_databases! {
    async fn two_hundred_clients_that_leave_harm_no_connection(world: World) {
        world.restart(&[("ORDERS_POOL_SIZE", "1")]).await;
        let shop = world.shop();
        for number in 0..200 {
            let head = Head::command(&shop, "/v1/orders").line(format!("Idempotency-Key: key-{}", number % 20));
            let mut leaving = RawConnection::open(world.address());
            leaving.send(&head.with_body(smallest().to_string().as_bytes()));
            drop(leaving);
        }
        for number in 0..20 {
            shop.post("/v1/orders", &format!("key-{number}"), &smallest()).await.expect(201);
        }
        shop.post("/v1/orders", "last", &smallest()).await.expect(201);
        assert_eq!(Tally::of(world.database()), Tally::orders(21));
        no_transaction_is_left(world.database()).await;
    }

    async fn a_mistake_of_ours_is_undone_and_tells_nothing(world: World) {
        let shop = world.shop();
        shop.post("/v1/orders", "one", &smallest()).await.expect(201);
        // A constraint that the program does not know of: no waiting helps, so this is no 503.
        world.database().execute("CREATE UNIQUE INDEX one_of_a_kind ON outbox (kind)");
        let failed = shop.post("/v1/orders", "two", &smallest()).await.expect(500);
        assert_eq!(failed.error(), "InternalError");
        assert_eq!(failed.json()["retry"]["sameKey"], true);
        tells_nothing(&failed);
        assert_eq!(Tally::of(world.database()), Tally::orders(1));
        no_transaction_is_left(world.database()).await;

        world.database().execute("DROP INDEX one_of_a_kind");
        let made = shop.post("/v1/orders", "two", &smallest()).await.expect(201);
        assert_eq!(made.header("idempotent-replayed"), Some("false"));
        assert_eq!(Tally::of(world.database()), Tally::orders(2));
    }

    async fn a_table_that_is_missing_tells_nothing(world: World) {
        let shop = world.shop();
        world.database().execute("ALTER TABLE outbox RENAME TO elsewhere");
        let failed = shop.post("/v1/orders", "one", &smallest()).await;
        assert!(failed.status.is_server_error(), "{}", failed.text());
        tells_nothing(&failed);
        world.database().execute("ALTER TABLE elsewhere RENAME TO outbox");
        assert_eq!(Tally::of(world.database()), Tally::default());
        shop.post("/v1/orders", "one", &smallest()).await.expect(201);
        assert_eq!(Tally::of(world.database()), Tally::orders(1));
    }
}
