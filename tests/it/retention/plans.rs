//! The cleaner's statements, as they really run, use indexes on a filled table. The statements are caught on their way to the
//! database and explained there.

use std::sync::{Arc, Mutex};

use diesel::Connection;
use diesel::connection::InstrumentationEvent;
use order_service::db::Db;
use order_service::retention::Sweep;

use super::{DAY, clock_plus, connect, seed};
use crate::harness::database::{Database, Dialect};
use crate::harness::world::{World, on_both_databases};

/// Runs one sweep and returns what it sent to the database: the SQL, a marker, and the values.
fn statements_of_a_sweep(database: &Database) -> Vec<String> {
    let caught = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&caught);
    let catch = move |event: InstrumentationEvent<'_>| {
        if let InstrumentationEvent::StartQuery { query, .. } = event {
            seen.lock().expect("nobody panics with it").push(query.to_string());
        }
    };
    let mut db = connect(database);
    match &mut db {
        Db::Postgres(conn) => conn.set_instrumentation(catch),
        Db::Sqlite(conn) => conn.set_instrumentation(catch),
    }
    let mut sweep = Sweep::begin(&mut db, 100).expect("the database answers");
    while sweep.clean_batch(&mut db).expect("the batch is done").is_some() {}
    std::mem::take(&mut *caught.lock().expect("nobody panics with it"))
}

/// The values behind the marker, each as a literal of SQL.
fn literals(values: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let (mut depth, mut quoted) = (0, false);
    for letter in values.trim_start_matches('[').trim_end_matches(']').chars() {
        match letter {
            '"' => quoted = !quoted,
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 && !quoted => {
                found.push(String::new());
                continue;
            }
            _ => {}
        }
        found.last_mut().expect("it begins with one").push(letter);
    }
    found.iter().map(|value| literal(value.trim())).collect()
}

fn literal(value: &str) -> String {
    match value.strip_prefix('[') {
        Some(list) => format!("'{{{}}}'", list.trim_end_matches(']')),
        None => format!("'{}'", value.trim_matches('"')),
    }
}

/// How the database carries a statement out, a line for each step.
fn plan(database: &Database, statement: &str) -> Vec<String> {
    let (sql, values) = statement.split_once(" -- binds: ").expect("Diesel shows the values behind a marker");
    let (query, column) = match database.dialect() {
        Dialect::Sqlite => (format!("EXPLAIN QUERY PLAN {sql}"), "detail"),
        Dialect::Postgres => {
            let mut sql = sql.to_owned();
            for (index, value) in literals(values).iter().enumerate().rev() {
                sql = sql.replace(&format!("${}", index + 1), value);
            }
            (format!("SELECT plan_of($statement${sql}$statement$) AS line"), "line")
        }
    };
    let rows = database.rows(&query);
    rows.iter().map(|row| row[column].as_str().expect("a plan is text").to_owned()).collect()
}

/// 20,000 finished commands, of which a hundredth is due for each step, with a message each.
fn fill(database: &Database) {
    seed(database, "fresh", 19_600, 60, DAY);
    seed(database, "spent", 200, -60, DAY);
    seed(database, "old", 200, -DAY, -60);
    database.execute(&format!(
        "INSERT INTO outbox (tenant_id, message_id, operation_id, kind, order_id, position, state, payload, created_at) \
         SELECT tenant_id, 'msg_' || operation_id, operation_id, 'order.created', operation_id, 1, 'delivered', '{{}}', {} \
         FROM operations; ANALYZE",
        clock_plus(database, 0)
    ));
    if database.dialect() == Dialect::Postgres {
        database.execute(
            "CREATE FUNCTION plan_of(statement text) RETURNS SETOF text LANGUAGE plpgsql AS \
             $$ BEGIN RETURN QUERY EXECUTE 'EXPLAIN ' || statement; END $$",
        );
    }
}

on_both_databases! {
    async fn the_cleaner_reads_no_table_from_end_to_end(world: World) {
        world.shop();
        fill(world.database());
        let statements: Vec<String> = statements_of_a_sweep(world.database())
            .into_iter()
            .filter(|sql| ["operations", "claims", "outbox"].iter().any(|table| sql.contains(table)))
            .collect();
        assert_eq!((world.count("claims"), world.count("outbox")), (19_800, 19_800));

        let whole = match world.dialect() {
            Dialect::Sqlite => ["SCAN operations", "SCAN claims", "SCAN outbox"],
            Dialect::Postgres => ["Seq Scan on operations", "Seq Scan on claims", "Seq Scan on outbox"],
        };
        let mut plans = Vec::new();
        for statement in &statements {
            let plan = plan(world.database(), statement).join("\n");
            assert!(!whole.iter().any(|scan| plan.contains(scan)), "{statement}\n{plan}");
            plans.push((statement, plan));
        }
        for (start, index) in [
            ("SELECT EXISTS", "operations_by_remember_until"),
            ("SELECT EXISTS", "operations_by_replay_until"),
            ("SELECT operations.client_id", "operations_by_remember_until"),
            ("SELECT claims.idempotency_key", "claims"),
            ("SELECT operations.operation_id", "operations_by_replay_until"),
            ("DELETE FROM claims", "claims"),
            ("DELETE FROM operations", "operations"),
            ("DELETE FROM outbox", "outbox"),
            ("UPDATE operations", "operations"),
        ] {
            let plain = |sql: &str| sql.replace(['"', '`'], "").replace("( ", "(").replace("  ", " ");
            let of_this_kind: Vec<_> = plans.iter().filter(|(sql, _)| plain(sql).starts_with(start)).collect();
            assert!(!of_this_kind.is_empty(), "{start} is among\n{statements:#?}");
            for (sql, plan) in of_this_kind {
                assert!(plan.contains(index) && plan.to_lowercase().contains("index"), "{sql}\n{plan}");
            }
        }
    }
}
