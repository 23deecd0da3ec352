//! No claim is ever stuck: it lives and dies with its transaction, whatever ends that.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use order_service::db::Db;

use super::{assert_whole, connect, order};
use crate::harness::database::{Database, Dialect};
use crate::harness::http::Caller;
use crate::harness::process::{self, Process};
use crate::harness::wait::eventually;
use crate::harness::world::{World, on_both_databases};

/// A command reaches its second statement within a second or two, on a busy machine too.
const LIMIT: Duration = Duration::from_mins(1);

/// Makes the insert of an order's lines, which comes after the claim, take far longer than the test.
fn hold_up(database: &Database) {
    database.execute(match database.dialect() {
        Dialect::Postgres => {
            "CREATE FUNCTION hold_up() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN PERFORM pg_sleep(3600); RETURN NEW; END $$; \
             CREATE TRIGGER hold_up BEFORE INSERT ON order_lines FOR EACH ROW EXECUTE FUNCTION hold_up()"
        }
        // A triggered statement may not be recursive, but it may multiply.
        Dialect::Sqlite => {
            "CREATE TRIGGER hold_up BEFORE INSERT ON order_lines BEGIN \
             SELECT max(a.rowid + b.rowid + c.rowid + d.rowid + e.rowid + f.rowid + g.rowid + h.rowid + i.rowid) \
             FROM sqlite_schema a, sqlite_schema b, sqlite_schema c, sqlite_schema d, sqlite_schema e, \
             sqlite_schema f, sqlite_schema g, sqlite_schema h, sqlite_schema i; END"
        }
    });
}

const SLEEPERS: &str = "FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";

fn let_go(database: &Database) {
    match database.dialect() {
        // A server notices only at its next word to the client that nobody is there any more.
        Dialect::Postgres => database
            .execute(&format!("SELECT pg_terminate_backend(pid) {SLEEPERS}; DROP TRIGGER hold_up ON order_lines")),
        Dialect::Sqlite => database.execute("DROP TRIGGER hold_up"),
    }
}

/// Whether a command is in the middle of its transaction.
fn is_held_up(database: &Database) -> bool {
    match connect(database) {
        Db::Postgres(_) => !database.rows(&format!("SELECT 1 AS found {SLEEPERS}")).is_empty(),
        Db::Sqlite(mut conn) => {
            conn.batch_execute("PRAGMA busy_timeout = 0").expect("SQLite knows this setting");
            conn.batch_execute("BEGIN IMMEDIATE; ROLLBACK").is_err()
        }
    }
}

/// Issues an API key by the command line, as an operator does.
fn issue_key(database: &Database) -> String {
    let arguments = ["key", "add", "--tenant", "acme", "--client", "shop", "--scopes", "orders:write"];
    let output = process::run(database.url(), &arguments, &[]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("a key is text").trim().to_owned()
}

async fn a_killed_command_leaves_nothing_and_runs_at_once_afterwards(dialect: Dialect) {
    let database = Database::migrated(dialect);
    let key = issue_key(&database);
    let service = Process::serve(database.url(), &[]);
    let shop = Caller::new(service.address(), Some(key));
    hold_up(&database);
    let request = shop.request(reqwest::Method::POST, "/v1/orders").header("Idempotency-Key", "key-1");
    let cut_off = actix_web::rt::spawn(request.json(&order(Some("1"))).send());
    eventually(LIMIT, "the command to be in its transaction", async || is_held_up(&database).then_some(())).await;
    service.kill();
    assert!(cut_off.await.expect("the client does not panic").is_err(), "the answer is lost");

    let_go(&database);
    for table in ["claims", "operations", "orders", "outbox"] {
        assert_eq!(database.count(table), 0, "{table}");
    }
    let service = Process::serve(database.url(), &[]);
    let made = shop.at(service.address()).post("/v1/orders", "key-1", &order(Some("1"))).await.expect(201);
    assert_eq!(made.header("idempotent-replayed"), Some("false"));
    assert_eq!((database.count("orders"), database.count("claims"), database.count("outbox")), (1, 1, 1));
    assert_whole(&database);
}

#[test]
fn a_killed_command_leaves_nothing_on_sqlite() {
    actix_web::rt::System::new().block_on(a_killed_command_leaves_nothing_and_runs_at_once_afterwards(Dialect::Sqlite));
}

#[test]
fn a_killed_command_leaves_nothing_on_postgres() {
    actix_web::rt::System::new()
        .block_on(a_killed_command_leaves_nothing_and_runs_at_once_afterwards(Dialect::Postgres));
}

on_both_databases! {
    async fn a_fault_after_the_claim_leaves_the_key_free(world: World) {
        let shop = world.shop();
        world.database().execute("ALTER TABLE order_lines RENAME TO away");
        for _ in 0..2 {
            let fault = shop.post("/v1/orders", "key-1", &order(Some("1"))).await;
            assert!(fault.status.is_server_error(), "{}", fault.text());
            assert_eq!(fault.header("idempotent-replayed"), None);
            for table in ["claims", "operations", "orders", "outbox"] {
                assert_eq!(world.count(table), 0, "{table}");
            }
        }
        world.database().execute("ALTER TABLE away RENAME TO order_lines");
        let made = shop.post("/v1/orders", "key-1", &order(Some("1"))).await.expect(201);
        assert_eq!(made.header("idempotent-replayed"), Some("false"));
        assert_eq!((world.count("orders"), world.count("order_lines"), world.count("claims")), (1, 1, 1));
        assert_whole(world.database());
    }
}
