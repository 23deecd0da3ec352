//! The rows of the database against the journal: everything that an answer promised is there, and nothing else is.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;

use super::{Findings, by, text};
use crate::harness::database::{Database, Dialect};
use crate::progress::comes_true;
use crate::shop::journal::Entry;

/// A transaction that is open for longer is stuck.
const LIMIT: Duration = Duration::from_secs(20);

/// What must not be there, each as a sentence's end and the rows that would be it.
const HALVES: [(&str, &str); 11] = [
    (
        "orders without the operation that made them",
        "orders o WHERE NOT EXISTS (SELECT 1 FROM operations p WHERE p.tenant_id = o.tenant_id AND p.operation_id = o.operation_id)",
    ),
    (
        "orders without exactly one hand-over",
        "orders o WHERE (SELECT count(*) FROM outbox m WHERE m.tenant_id = o.tenant_id AND m.order_id = o.order_id \
         AND m.kind = 'order.created') <> 1",
    ),
    (
        "orders without lines",
        "orders o WHERE NOT EXISTS (SELECT 1 FROM order_lines l WHERE l.tenant_id = o.tenant_id AND l.order_id = o.order_id)",
    ),
    (
        "messages without an operation",
        "outbox m WHERE NOT EXISTS (SELECT 1 FROM operations p WHERE p.tenant_id = m.tenant_id AND p.operation_id = m.operation_id)",
    ),
    (
        "messages without an order",
        "outbox m WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.tenant_id = m.tenant_id AND o.order_id = m.order_id)",
    ),
    (
        "claims without a result",
        "claims c WHERE NOT EXISTS (SELECT 1 FROM operations p WHERE p.tenant_id = c.tenant_id AND p.operation_id = c.operation_id)",
    ),
    (
        "results without a claim",
        "operations p WHERE NOT EXISTS (SELECT 1 FROM claims c WHERE c.tenant_id = p.tenant_id AND c.operation_id = p.operation_id)",
    ),
    (
        "results that say an order was made which is not there",
        "operations p WHERE p.command = 'orders.create' AND p.reply_status = 201 AND NOT EXISTS \
         (SELECT 1 FROM orders o WHERE o.tenant_id = p.tenant_id AND o.order_id = p.order_id)",
    ),
    (
        "payments without the operation that made them",
        "payments y WHERE NOT EXISTS (SELECT 1 FROM operations p WHERE p.tenant_id = y.tenant_id AND p.operation_id = y.operation_id)",
    ),
    ("attempts of a relay without an end", "attempts WHERE outcome IS NULL"),
    ("messages that wait for a person or were refused", "outbox WHERE state NOT IN ('delivered', 'withdrawn')"),
];

/// How many rows there are, by what stands behind FROM.
pub fn count(look: &Database, from: &str) -> i64 {
    look.rows(&format!("SELECT count(*) AS found FROM {from}"))[0]["found"].as_i64().unwrap_or(-1)
}

/// Each intent has its claim with the answer that was given, and there is no other claim.
pub fn claims_are_the_intents(look: &Database, answered: &[&Entry], findings: &mut Findings) {
    let rows = look.rows(
        "SELECT c.command AS command, c.idempotency_key AS name, p.reply_status AS status, p.reply_body AS body, \
         p.reply_location AS location FROM claims c LEFT JOIN operations p \
         ON p.tenant_id = c.tenant_id AND p.operation_id = c.operation_id",
    );
    let mut claims: HashMap<(&str, &str), &Value> =
        rows.iter().map(|row| ((text(row, "command"), text(row, "name")), row)).collect();
    for entry in answered {
        let answer = &entry.answers[0];
        let Some(row) = claims.remove(&(entry.command.as_str(), entry.key.as_str())) else {
            findings.lost += 1;
            findings.wrong(format!("{}: answered, and there is no claim", entry.key));
            continue;
        };
        let is_recorded = row["status"] == u64::from(answer.status)
            && row["body"].as_str() == Some(&answer.body)
            && row["location"].as_str() == answer.location.as_deref();
        if !is_recorded {
            findings.wrong(format!("{}: recorded is {row}, the answer was {answer:?}", entry.key));
        }
    }
    for (_, key) in claims.keys() {
        findings.wrong(format!("{key}: a claim, and no intent has its answer"));
    }
}

/// Each intent that was answered with 201 has one order, which says of itself that it is that intent's; no other has any.
pub fn orders_are_the_intents(look: &Database, answered: &[&Entry], findings: &mut Findings) {
    let mut rows = look.rows("SELECT order_id, document, status FROM orders");
    for row in &mut rows {
        let document: Value = serde_json::from_str(text(row, "document")).unwrap_or_default();
        row["mark"] = document["externalOrderNumber"].clone();
    }
    let mut orders = by(&rows, "mark");
    for entry in answered.iter().filter(|entry| entry.command == "orders.create") {
        let sent: Value = serde_json::from_str(&entry.body).expect("a body is JSON");
        let told: Value = serde_json::from_str(&entry.answers[0].body).expect("an answer is JSON");
        let made = orders.remove(text(&sent, "externalOrderNumber")).unwrap_or_default();
        let wanted = usize::from(entry.answers[0].status == 201);
        if made.len() != wanted {
            findings.duplicates += made.len().saturating_sub(wanted) as u64;
            findings.lost += wanted.saturating_sub(made.len()) as u64;
            findings.wrong(format!("{}: {} orders, not {wanted}", entry.key, made.len()));
        }
        if made.iter().any(|row| row["order_id"] != told["orderId"]) {
            findings.wrong(format!("{}: the answer names another order: {told}", entry.key));
        }
    }
    for (mark, rows) in orders {
        findings.duplicates += rows.len() as u64;
        findings.wrong(format!("{mark}: an order, and no intent has its answer"));
    }
}

/// Every effect has its result and its message, and every result its effect.
pub fn nothing_is_half(look: &Database, answered: &[&Entry], findings: &mut Findings) {
    for (what, from) in HALVES {
        findings.none(what, count(look, from));
    }
    for (command, table) in [("payments.create", "payments"), ("reservations.create", "reservations")] {
        let made = answered.iter().filter(|entry| entry.command == command && entry.answers[0].status == 201).count();
        let there = count(look, table);
        if i64::try_from(made).is_ok_and(|made| made != there) {
            findings.wrong(format!("{there} rows of {table}, and {made} answers that say so"));
        }
    }
}

/// No connection is left inside a transaction, and nobody holds the writer of a SQLite file.
pub fn no_transaction_is_open(look: &Database, findings: &mut Findings) {
    match look.dialect() {
        Dialect::Sqlite => look.execute("BEGIN IMMEDIATE; ROLLBACK"),
        Dialect::Postgres => {
            let open = || {
                look.rows(
                    "SELECT pid, state, query FROM pg_stat_activity WHERE datname = current_database() \
                     AND (state LIKE 'idle in transaction%' OR xact_start < now() - interval '10 s')",
                )
            };
            if !comes_true(LIMIT, || open().is_empty()) {
                findings.wrong(format!("connections stand inside a transaction: {:?}", open()));
            }
        }
    }
}
