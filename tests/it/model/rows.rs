//! All rows that the tenants of a sequence should have, and those that they have.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde_json::{Value, json};

use super::contract::{Model, TENANT_OF, Verdict};
use super::rules::{Outcome, Tenant};
use crate::harness::database::{Database, Dialect};

/// The names under which a model's tenants and clients are known to the database.
#[derive(Clone, Debug)]
pub struct Names {
    pub tenants: [String; 2],
    pub clients: [&'static str; 3],
}

/// A table as the model sees it: columns to compare, each a name and an expression, and the rows that it expects.
struct Table {
    name: &'static str,
    columns: &'static [(&'static str, &'static str)],
    expected: fn(&Expected<'_>) -> Vec<Value>,
}

struct Expected<'a> {
    model: &'a Model,
    names: &'a Names,
    number: usize,
    tenant: &'a Tenant,
}

/// Columns that are compared as they are.
macro_rules! columns {
    ($($name:ident $(= $expression:literal)?),* $(,)?) => { &[$((stringify!($name), columns!(@ $name $($expression)?))),*] };
    (@ $name:ident) => { stringify!($name) };
    (@ $name:ident $expression:literal) => { $expression };
}

const TABLES: [Table; 10] = [
    Table { name: "claims", columns: columns![client_id, command, idempotency_key, operation_id], expected: claims },
    Table {
        name: "operations",
        columns: columns![
            client_id,
            command,
            idempotency_key,
            operation_id,
            status,
            error,
            order_id,
            reply_status,
            reply_body,
            has_digests = "CASE WHEN member_digests IS NULL THEN 0 ELSE 1 END",
        ],
        expected: operations,
    },
    Table {
        name: "orders",
        columns: columns![
            order_id,
            client_id,
            operation_id,
            channel,
            external_order_id,
            currency,
            status,
            reference,
            paid_amount,
            version,
        ],
        expected: orders,
    },
    Table { name: "order_lines", columns: columns![order_id, line_no, kind, sku, qty], expected: order_lines },
    Table { name: "outbox", columns: columns![operation_id, kind, order_id, position, state], expected: outbox },
    Table { name: "stock", columns: columns![sku, on_hand], expected: stock },
    Table {
        name: "reservations",
        columns: columns![
            reservation_id,
            operation_id,
            order_id,
            is_released = "CASE WHEN released_at IS NULL THEN 0 ELSE 1 END",
        ],
        expected: reservations,
    },
    Table {
        name: "reservation_lines",
        columns: columns![
            reservation_id,
            line_no,
            sku,
            qty,
            is_held = "CASE WHEN held_until IS NULL THEN 0 ELSE 1 END",
        ],
        expected: reservation_lines,
    },
    Table {
        name: "messages",
        columns: columns![message_id, order_id, operation_id, template, locale, status],
        expected: messages,
    },
    Table { name: "payments", columns: columns![payment_id, order_id, operation_id, reference], expected: payments },
];

/// Compares every table of the two tenants.
///
/// # Errors
/// The rows that only one side has.
pub fn compare(model: &Model, names: &Names, database: &Database) -> Verdict {
    let all = read(names, database);
    for (number, tenant) in model.tenants.iter().enumerate() {
        for table in &TABLES {
            let here = |row: &&Value| row["source"] == table.name && row["tenant_id"] == names.tenants[number].as_str();
            let found: Vec<Value> = all.iter().filter(here).map(content).collect();
            let expected = (table.expected)(&Expected { model, names, number, tenant });
            let only = |these: &[Value], those: &[Value]| -> String {
                let rows: Vec<String> = these.iter().filter(|row| !those.contains(row)).map(Value::to_string).collect();
                rows.join("\n    ")
            };
            let (missing, surplus) = (only(&expected, &found), only(&found, &expected));
            if !missing.is_empty() || !surplus.is_empty() || expected.len() != found.len() {
                let name = table.name;
                return Err(format!("rows of {name}, tenant {number}:\n  missing: {missing}\n  too many: {surplus}"));
            }
        }
    }
    Ok(())
}

/// The rows of all tables, each as a JSON text beside its table and its tenant: one look for all of them.
fn read(names: &Names, database: &Database) -> Vec<Value> {
    let function = match database.dialect() {
        Dialect::Postgres => "jsonb_build_object",
        Dialect::Sqlite => "json_object",
    };
    let [one, other] = &names.tenants;
    let queries = TABLES.map(|table| {
        let pairs: Vec<String> = table.columns.iter().map(|(name, column)| format!("'{name}', {column}")).collect();
        let (name, pairs) = (table.name, pairs.join(", "));
        format!(
            "SELECT '{name}' AS source, tenant_id, CAST({function}({pairs}) AS TEXT) AS content FROM {name} \
             WHERE tenant_id IN ('{one}', '{other}')"
        )
    });
    database.rows(&queries.join(" UNION ALL "))
}

fn content(row: &Value) -> Value {
    serde_json::from_str(row["content"].as_str().unwrap_or("")).expect("the database writes JSON")
}

fn claims(from: &Expected<'_>) -> Vec<Value> {
    let own = from.model.claims.iter().filter(|(scope, _)| TENANT_OF[scope.client] == from.number);
    own.map(|(scope, claim)| {
        json!({"client_id": from.names.clients[scope.client], "command": scope.command.name(),
            "idempotency_key": scope.key, "operation_id": claim.operation})
    })
    .collect()
}

fn operations(from: &Expected<'_>) -> Vec<Value> {
    let own = from.model.claims.iter().filter(|(scope, _)| TENANT_OF[scope.client] == from.number);
    own.map(|(scope, claim)| {
        let (status, error, order) = match &claim.outcome {
            Outcome::Done { goes_on, order, .. } => (if *goes_on { "processing" } else { "succeeded" }, None, order),
            Outcome::Refused { code, order, .. } => ("failed", Some(*code), order),
        };
        json!({"client_id": from.names.clients[scope.client], "command": scope.command.name(),
            "idempotency_key": scope.key, "operation_id": claim.operation, "status": status, "error": error,
            "order_id": order, "reply_status": claim.first.status.as_u16(),
            "reply_body": (!claim.is_body_dropped).then(|| claim.first.text()),
            "has_digests": i32::from(!claim.is_body_dropped)})
    })
    .collect()
}

fn orders(from: &Expected<'_>) -> Vec<Value> {
    let reference = |id: &str, channel: &str, external: Option<&String>| match external {
        Some(external) => format!("{channel}/{}", external.replace('/', "%2F")),
        None => id.to_owned(),
    };
    let rows = from.tenant.orders.iter().map(|order| {
        json!({"order_id": order.id, "client_id": from.names.clients[order.client], "operation_id": order.operation,
            "channel": order.channel, "external_order_id": order.external, "currency": order.body["currency"],
            "status": order.status, "reference": reference(&order.id, &order.channel, order.external.as_ref()),
            "paid_amount": order.paid.normalize().to_string(), "version": order.version})
    });
    rows.collect()
}

fn order_lines(from: &Expected<'_>) -> Vec<Value> {
    let mut rows = Vec::new();
    for order in &from.tenant.orders {
        let items = order.body["items"].as_array().expect("an order has items");
        rows.extend((1..).zip(items).map(|(line_no, item): (i32, _)| {
            json!({"order_id": order.id, "line_no": line_no, "kind": "product", "sku": item["sku"],
                "qty": item["qty"]})
        }));
    }
    rows
}

fn outbox(from: &Expected<'_>) -> Vec<Value> {
    let rows = from.tenant.messages.iter().map(|message| {
        json!({"operation_id": message.operation, "kind": message.kind, "order_id": message.order,
            "position": message.position, "state": message.state})
    });
    rows.collect()
}

/// Quantities lie in whole millionths.
fn millionths(quantity: Decimal) -> i64 {
    (quantity * Decimal::from(1_000_000)).to_i64().expect("the quantities of the test are small")
}

fn stock(from: &Expected<'_>) -> Vec<Value> {
    from.tenant.stock.iter().map(|(sku, on_hand)| json!({"sku": sku, "on_hand": millionths(*on_hand)})).collect()
}

fn reservations(from: &Expected<'_>) -> Vec<Value> {
    let rows = from.tenant.reservations.iter().map(|reservation| {
        json!({"reservation_id": reservation.id, "operation_id": reservation.operation, "order_id": reservation.order,
            "is_released": i32::from(reservation.state == "released")})
    });
    rows.collect()
}

fn reservation_lines(from: &Expected<'_>) -> Vec<Value> {
    let mut rows = Vec::new();
    for reservation in &from.tenant.reservations {
        rows.extend((1..).zip(&reservation.lines).map(|(line_no, (sku, qty)): (i32, _)| {
            json!({"reservation_id": reservation.id, "line_no": line_no, "sku": sku, "qty": millionths(*qty),
                "is_held": i32::from(reservation.state != "released")})
        }));
    }
    rows
}

fn messages(from: &Expected<'_>) -> Vec<Value> {
    let rows = from.tenant.mails.iter().map(|mail| {
        json!({"message_id": mail.id, "order_id": mail.order, "operation_id": mail.operation,
            "template": mail.template, "locale": mail.locale, "status": "processing"})
    });
    rows.collect()
}

fn payments(from: &Expected<'_>) -> Vec<Value> {
    let rows = from.tenant.payments.iter().map(|payment| {
        json!({"payment_id": payment.id, "order_id": payment.order, "operation_id": payment.operation,
            "reference": payment.reference})
    });
    rows.collect()
}
