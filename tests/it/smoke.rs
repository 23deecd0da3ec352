//! The harness proves itself: what the other tests rely on is tested here.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::cluster::Cluster;
use crate::harness::database::{Database, Dialect};
use crate::harness::http::Caller;
use crate::harness::process;
use crate::harness::wait::until;
use crate::harness::world::{World, on_both_databases, prove};

const SOON: Duration = Duration::from_secs(20);

fn smallest_order() -> Value {
    json!({"customerId": "cus_123", "items": [{"sku": "ABC", "qty": 2}], "currency": "RUB"})
}

/// Whether a process exists, a zombie that nobody has reaped included.
fn exists(process_id: u32) -> bool {
    process::signal("-0", process_id)
}

on_both_databases! {
    async fn a_database_shows_its_rows_in_one_form(world: World) {
        let database = Database::empty(world.dialect());
        database.execute("CREATE TABLE marks (id TEXT PRIMARY KEY, number BIGINT, remark TEXT)");
        database.execute("INSERT INTO marks VALUES ('ľ', 9007199254740993, NULL), ('z', -1, '')");
        assert_eq!(database.count("marks"), 2);
        assert_eq!(
            database.rows("SELECT id, number, remark FROM marks ORDER BY number DESC"),
            [
                json!({"id": "ľ", "number": 9_007_199_254_740_993_i64, "remark": null}),
                json!({"id": "z", "number": -1, "remark": ""}),
            ]
        );
    }

    async fn a_world_does_not_see_another(world: World) {
        let other = Database::migrated(world.dialect());
        world.shop().post("/v1/orders", "key-1", &smallest_order()).await.expect(201);
        assert_eq!(world.count("orders"), 1);
        assert_eq!(other.count("orders"), 0);
        assert_eq!(other.count("tenants"), 0);
    }

    async fn a_caller_says_who_it_is(world: World) {
        let shop = world.shop();
        assert_eq!(world.stranger().get("/v1/orders").await.expect(401).error(), "Unauthenticated");
        assert_eq!(shop.with_api_key(None).get("/v1/orders").await.expect(401).error(), "Unauthenticated");
        shop.get("/v1/orders").await.expect(200);

        let other = world.caller("other", "shop", &["orders:write"]);
        assert_ne!(other.api_key(), shop.api_key());
        other.post_bytes("/v1/orders", "key-1", smallest_order().to_string()).await.expect(201);
        assert_eq!(
            world.rows("SELECT tenant_id, client_id FROM orders"),
            [json!({"tenant_id": "other", "client_id": "shop"})]
        );
    }

    async fn a_restart_keeps_the_rows_and_takes_new_settings(world: World) {
        let shop = world.shop();
        let first = shop.post("/v1/orders", "key-1", &smallest_order()).await.expect(201);
        assert_eq!(world.metrics_address(), None);

        world.restart(&[("ORDERS_METRICS_BIND", "127.0.0.1:0")]).await;
        let again = shop.at(world.address()).post("/v1/orders", "key-1", &smallest_order()).await.expect(201);
        assert_eq!(again.body, first.body);
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
        let metrics = world.metrics_address().expect("the setting asked for metrics");
        Caller::new(metrics, None).get("/metrics").await.expect(200);
    }

    async fn a_bare_connection_sends_any_bytes(world: World) {
        let mut broken = world.raw();
        assert!(broken.send(b"this is no HTTP\r\n\r\n"));
        assert_eq!(broken.answer().status, Some(400));

        let mut half = world.raw();
        half.send(b"POST /v1/orders HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{");
        half.finish_sending();
        let answer = half.answer();
        assert_eq!(answer.status, Some(401));
        assert!(answer.head.contains("www-authenticate: Bearer"), "{}", answer.head);
        let problem: Value = serde_json::from_slice(&answer.body).expect("a problem is JSON");
        assert_eq!(problem["error"], "Unauthenticated");
        assert_eq!(world.count("orders"), 0);
    }

    async fn a_process_serves_until_it_is_asked_to_stop(world: World) {
        let database = Database::migrated(world.dialect());
        let made = process::run(
            database.url(),
            &["key", "add", "--tenant", "acme", "--client", "shop", "--scopes", "orders:write"],
            &[],
        );
        assert!(made.status.success(), "{made:?}");
        let api_key = String::from_utf8(made.stdout).expect("a key is text").trim_end().to_owned();

        let process = process::Process::serve(database.url(), &[("ORDERS_POOL_SIZE", "2")]);
        let caller = Caller::new(process.address(), Some(api_key));
        caller.post("/v1/orders", "key-1", &smallest_order()).await.expect(201);
        drop(caller);
        let (status, log) = process.terminate();
        assert!(status.success(), "{status}:\n{log}");
        assert_eq!(database.count("orders"), 1);
    }

    async fn a_killed_process_is_reaped(world: World) {
        let database = Database::migrated(world.dialect());
        let process = process::Process::serve(database.url(), &[]);
        let id = process.id();
        assert!(exists(id));
        assert!(!process.kill().success());
        assert!(!exists(id));
    }

    async fn a_start_that_fails_is_seen(world: World) {
        let database = Database::migrated(world.dialect());
        let mut process = process::Process::spawn(database.url(), &[("ORDERS_POOL_SIZE", "none")]);
        assert!(!process.wait().success());
        assert!(process.log().contains("ORDERS_POOL_SIZE"), "{}", process.log());
    }
}

#[test]
fn two_services_share_a_postgres() {
    prove(Dialect::Postgres, |world| async move {
        let shop = world.shop();
        let first = shop.post("/v1/orders", "key-1", &smallest_order()).await.expect(201);
        let second = world.start_another(&[]).await;
        let third = world.process(&[]);
        for address in [second, third.address()] {
            let again = shop.at(address).post("/v1/orders", "key-1", &smallest_order()).await.expect(201);
            assert_eq!(again.body, first.body);
        }
        assert_eq!(world.count("orders"), 1);
    });
}

#[test]
fn a_test_that_fails_leaves_nothing_behind() {
    for dialect in [Dialect::Sqlite, Dialect::Postgres] {
        let left = Mutex::new(None);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            prove(dialect, |world| {
                let left = &left;
                async move {
                    let database = Database::migrated(dialect);
                    let process = process::Process::serve(database.url(), &[]);
                    *left.lock().expect("one thread") = Some((process.id(), world.database().url().to_owned()));
                    panic!("this failure is part of a test that passes");
                }
            });
        }));
        assert!(outcome.is_err());
        let (id, url) = left.into_inner().expect("one thread").expect("the body got as far as its failure");
        assert!(!exists(id));
        match dialect {
            Dialect::Sqlite => {
                let file = PathBuf::from(url.strip_prefix("sqlite://").expect("it is a SQLite URL"));
                assert!(!file.parent().expect("it is in a directory").exists());
            }
            Dialect::Postgres => {
                let name = url.rsplit('/').next().expect("a URL has a path").to_owned();
                let other = Database::empty(dialect);
                let found = other.rows(&format!("SELECT datname FROM pg_database WHERE datname = '{name}'"));
                assert!(found.is_empty(), "{found:?}");
            }
        }
    }
}

#[test]
#[should_panic(expected = "in vain until pigs fly")]
fn a_condition_that_never_holds_fails() {
    until(Duration::from_millis(50), "pigs fly", || false);
}

/// Tells a second run of this test binary that it is the one to be killed.
const VICTIM: &str = "ORDERS_TEST_VICTIM";

/// The test runs this very test a second time, in a process of its own, and kills that.
#[test]
#[expect(clippy::disallowed_methods, reason = "the two processes of this test tell each other apart by a variable")]
fn a_killed_test_run_takes_its_server_along() {
    if std::env::var_os(VICTIM).is_some() {
        println!("\n{}", Cluster::shared().home().display());
        std::io::stdout().flush().expect("the other process listens");
        // Nothing is ever sent: the process ends here by being killed, or with the one that started it.
        let _ = std::io::stdin().lines().next();
        return;
    }
    let mut victim = Command::new(std::env::current_exe().expect("the program has a path"))
        .args(["--exact", "smoke::a_killed_test_run_takes_its_server_along", "--nocapture"])
        .env(VICTIM, "yes")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program starts once more");
    let lines = BufReader::new(victim.stdout.take().expect("it is a pipe")).lines();
    let home = lines.map_while(Result::ok).find(|line| line.starts_with('/')).map(PathBuf::from);
    let home = home.expect("the other process says where its server is");
    let lines = std::fs::read_to_string(home.join("data/postmaster.pid")).expect("the server runs");
    // The format of the file: process id, data directory, start time, port.
    let port: u16 = lines.lines().nth(3).expect("it has a fourth line").parse().expect("that is the port");
    let listens = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
    assert!(listens());

    victim.kill().expect("it is ours");
    victim.wait().expect("it is ours");
    until(SOON, "the server is gone", || !listens());
    until(SOON, "the directory is removed", || !home.exists());
}
