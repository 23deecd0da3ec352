//! The program from outside: a start that fails says why in one line, the first start shows the way, keys are administered,
//! and a stop lets what is on its way finish.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, Output};
use std::time::Duration;

use actix_web::rt;
use serde_json::json;

use crate::harness::database::{Database, Dialect};
use crate::harness::http::Caller;
use crate::harness::orders::{Tally, smallest};
use crate::harness::process::{self, Process};
use crate::harness::raw::RawConnection;
use crate::harness::rival::{Rival, until_waiting};
use crate::harness::wait::until;
use crate::harness::world::{World, on_both_databases, on_postgres};

const LIMIT: Duration = Duration::from_secs(20);

/// Says that the service did not start, and why: exit code 1 and one line that names the setting.
fn fails_with(database_url: &str, settings: &[(&str, &str)], words: &[&str]) {
    let mut process = Process::spawn(database_url, settings);
    let (status, log) = (process.wait(), process.log());
    assert_eq!(status.code(), Some(1), "{settings:?}: {log}");
    // A log line begins with its time in brackets.
    let said: Vec<&str> = log.lines().filter(|line| !line.is_empty() && !line.starts_with('[')).collect();
    assert_eq!(said.len(), 1, "{settings:?}: {log}");
    assert!(said[0].starts_with("order-service: "), "{log}");
    for word in words {
        assert!(said[0].contains(word), "{settings:?}: {word}: {log}");
    }
    assert!(!log.contains("panicked") && !log.contains("s3cret"), "{log}");
}

/// What a run of the program printed.
fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).expect("it prints text")
}

/// Says that a run of the program failed, and that it said so in one line with these words.
fn failed(output: &Output, words: &[&str]) {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
}

#[test]
fn a_bad_setting_stops_the_start_with_one_line_that_names_it() {
    let database = Database::empty(Dialect::Sqlite);
    for (name, value) in [
        ("DATABASE_URL", "mysql://root:s3cret@localhost/orders"),
        ("DATABASE_URL", "orders.db"),
        ("DATABASE_URL", "sqlite://:memory:"),
        ("DATABASE_URL", "sqlite:///no/such/directory/orders.db"),
        ("DATABASE_URL", "postgres://shop:s3cret@127.0.0.1:1/orders"),
        ("ORDERS_BIND", "localhost"),
        ("ORDERS_POOL_SIZE", "0"),
        ("ORDERS_WAIT_LIMIT", "soon"),
        ("ORDERS_WAIT_LIMIT", "61s"),
        ("ORDERS_REPLAY_WINDOW", "1s"),
        ("ORDERS_KEY_MEMORY", "1d"),
        ("ORDERS_MAX_BODY", "1GiB"),
        ("ORDERS_CORS_ORIGINS", "https://shop.example/"),
        ("ORDERS_DEMO", "perhaps"),
        ("ORDERS_WAITLIMIT", "5s"),
        ("RUST_LOG", "order_service=loud"),
    ] {
        fails_with(database.url(), &[(name, value)], &[name]);
    }
}

#[test]
fn a_port_in_use_stops_the_start() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let address = taken.local_addr().expect("a bound listener has an address").to_string();
    for setting in ["ORDERS_BIND", "ORDERS_METRICS_BIND"] {
        let database = Database::empty(Dialect::Sqlite);
        // The key of the demo tenant is shown once, and not by a start that fails.
        fails_with(database.url(), &[(setting, address.as_str()), ("ORDERS_DEMO", "on")], &[setting, &address]);
        let process = Process::serve(database.url(), &[("ORDERS_DEMO", "on")]);
        assert!(process.log().contains("osk_"), "{setting}: {}", process.log());
    }
}

#[test]
fn a_sqlite_file_has_one_serving_process() {
    let database = Database::migrated(Dialect::Sqlite);
    let first = Process::serve(database.url(), &[]);
    fails_with(database.url(), &[], &["DATABASE_URL", "another process serves"]);
    // The lock is the process's: whatever way it ends, the next one starts.
    first.kill();
    let (status, log) = Process::serve(database.url(), &[]).terminate();
    assert!(status.success(), "{log}");
}

#[test]
fn the_first_start_shows_a_first_order_that_works() {
    for dialect in [Dialect::Sqlite, Dialect::Postgres] {
        let database = Database::empty(dialect);
        let process = Process::serve(database.url(), &[("ORDERS_DEMO", "on")]);
        let log = process.log();
        let begin = log.find("curl ").expect("the first start shows a curl line");
        let command = log[begin..].split("\n\n").next().expect("the line ends");
        let run = || printed(&Command::new("sh").args(["-c", command]).output().expect("every system has a shell"));
        let (first, again) = (run(), run());
        assert!(first.starts_with("HTTP/1.1 201 ") && first.contains("idempotent-replayed: false"), "{first}");
        assert!(again.starts_with("HTTP/1.1 201 ") && again.contains("idempotent-replayed: true"), "{again}");
        assert_eq!(Tally::of(&database), Tally::orders(1));
        assert_eq!(
            database.rows("SELECT tenant_id, client_id FROM orders"),
            [json!({"tenant_id": "demo", "client_id": "shop"})]
        );
        let (status, _) = process.terminate();
        assert!(status.success());
        // Only the first start shows it.
        assert!(!Process::serve(database.url(), &[("ORDERS_DEMO", "on")]).log().contains("osk_"));
        assert_eq!(database.count("api_keys"), 1);
    }
}

#[test]
fn the_demo_tenant_is_made_by_itself_only_on_sqlite() {
    for (dialect, tenants) in [(Dialect::Sqlite, 1), (Dialect::Postgres, 0)] {
        let database = Database::empty(dialect);
        drop(Process::serve(database.url(), &[("ORDERS_DEMO", "auto")]));
        assert_eq!(database.count("tenants"), tenants, "{dialect:?}");
    }
}

on_both_databases! {
    async fn api_keys_are_made_listed_and_revoked_beside_the_service(world: World) {
        let database = world.database();
        let add = |scopes: &str| {
            process::run(database.url(), &["key", "add", "--tenant", "acme", "--client", "till", "--scopes", scopes], &[])
        };
        let (one, two) = (printed(&add("orders:write,orders:read")), printed(&add("orders:read")));
        assert_eq!(one.lines().count(), 1, "the key alone: {one}");
        let (writer, reader) =
            (Caller::new(world.address(), Some(one.trim().to_owned())), Caller::new(world.address(), Some(two.trim().to_owned())));
        writer.post("/v1/orders", "one", &smallest()).await.expect(201);
        reader.post("/v1/orders", "two", &smallest()).await.expect(403);

        let list = || printed(&process::run(database.url(), &["key", "list"], &[]));
        let listed = list();
        assert_eq!(listed.lines().count(), 2, "{listed}");
        assert!(!listed.contains(one.trim()) && !listed.contains(two.trim()) && !listed.contains("osk_"), "{listed}");
        let line = listed.lines().find(|line| line.contains("orders:write")).expect("the first key");
        let fields: Vec<&str> = line.split('\t').collect();
        assert_eq!((fields[1], fields[2], fields[3], fields[5]), ("acme", "till", "orders:write,orders:read", "valid"));

        let revoke = |id: &str| process::run(database.url(), &["key", "revoke", id], &[]);
        let said = format!("{} is revoked; calls that begin from now on are refused\n", fields[0]);
        assert_eq!(printed(&revoke(fields[0])), said);
        writer.post("/v1/orders", "one", &smallest()).await.expect(401);
        reader.get("/v1/orders").await.expect(200);
        assert!(list().lines().any(|line| line.starts_with(fields[0]) && line.contains("revoked")));
        failed(&revoke(fields[0]), &[fields[0], "key list"]);
        failed(&add("orders:everything"), &["orders:everything", "orders:write"]);
        let bad = ["key", "add", "--tenant", "a b", "--client", "till", "--scopes", "orders:read"];
        failed(&process::run(database.url(), &bad, &[]), &["a b"]);
        assert_eq!(database.count("api_keys"), 2);
    }

    async fn migrations_are_applied_once_and_can_be_undone(world: World) {
        let database = Database::empty(world.dialect());
        let migrate = |arguments: &[&str]| printed(&process::run(database.url(), arguments, &[]));
        let applied = migrate(&["migrate"]);
        assert!(applied.lines().count() > 0);
        assert_eq!(migrate(&["migrate"]), "");
        assert_eq!(Tally::of(&database), Tally::default());
        assert_eq!(migrate(&["migrate", "--down"]).lines().count(), applied.lines().count());
        assert_eq!(migrate(&["migrate"]), applied);
    }

    async fn a_stop_waits_for_no_idle_connection(world: World) {
        let database = Database::migrated(world.dialect());
        let process = Process::serve(database.url(), &[]);
        let idle = RawConnection::open(process.address());
        let (status, log) = process.terminate();
        drop(idle);
        assert!(status.success(), "{status}: {log}");
        assert!(!log.contains("panicked"), "{log}");
    }
}

on_postgres! {
    async fn a_stop_lets_a_command_on_its_way_finish(world: World) {
        let process = world.process(&[]);
        let (id, address) = (process.id(), process.address());
        let hold = Rival::begin(world.database(), "LOCK TABLE outbox IN ACCESS EXCLUSIVE MODE");
        let caller = world.shop().at(address);
        let request = rt::spawn(async move { caller.post("/v1/orders", "one", &smallest()).await });
        until_waiting(world.database(), 1).await;
        assert!(process::signal("-TERM", id));
        until(LIMIT, "the service takes no more connections", || TcpStream::connect(address).is_err());
        hold.roll_back();
        let answer = request.await.expect("the request ends").expect(201);
        let mut process = process;
        let (status, log) = (process.wait(), process.log());
        assert!(status.success(), "{status}: {log}");
        let replay = world.shop().post("/v1/orders", "one", &smallest()).await.expect(201);
        assert_eq!(replay.body, answer.body);
        assert_eq!(Tally::of(world.database()), Tally::orders(1));
    }
}
