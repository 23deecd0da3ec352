//! All rows that the tenants of a sequence should have, and those that they have.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde_json::{Value, json};

use super::contract::{Model, TENANT_OF, Verdict};
use super::rules::{Outcome, Tenant};
use crate::harness::database::Database;

/// The names under which a model's tenants and clients are known to the database.
#[derive(Clone, Debug)]
pub struct Names {
    pub tenants: [String; 2],
    pub clients: [&'static str; 3],
}

/// A table as the model sees it: columns to compare, and the rows that it expects for a tenant.
struct Table {
    name: &'static str,
    columns: &'static str,
    expected: fn(&Expected<'_>) -> Vec<Value>,
}

struct Expected<'a> {
    model: &'a Model,
    names: &'a Names,
    number: usize,
    tenant: &'a Tenant,
}

const TABLES: [Table; 9] = [
    Table { name: "claims", columns: "client_id, command, idempotency_key, operation_id", expected: claims },
    Table {
        name: "operations",
        columns: "client_id, command, idempotency_key, operation_id, status, error, order_id, reply_status, reply_body, \
            CASE WHEN member_digests IS NULL THEN 0 ELSE 1 END AS digests",
        expected: operations,
    },
    Table {
        name: "orders",
        columns: "order_id, client_id, operation_id, channel, external_order_id, currency, status, reference, paid_amount, \
            version",
        expected: orders,
    },
    Table { name: "order_lines", columns: "order_id, line_no, kind, sku, qty", expected: order_lines },
    Table { name: "outbox", columns: "operation_id, kind, order_id, position, state", expected: outbox },
    Table { name: "stock", columns: "sku, on_hand", expected: stock },
    Table {
        name: "reservations",
        columns: "reservation_id, operation_id, order_id, CASE WHEN released_at IS NULL THEN 0 ELSE 1 END AS released",
        expected: reservations,
    },
    Table {
        name: "reservation_lines",
        columns: "reservation_id, line_no, sku, qty, CASE WHEN held_until IS NULL THEN 0 ELSE 1 END AS held",
        expected: reservation_lines,
    },
    Table { name: "payments", columns: "payment_id, order_id, operation_id, reference", expected: payments },
];

/// Compares every table of the two tenants.
///
/// # Errors
/// The rows that only one side has.
pub fn compare(model: &Model, names: &Names, database: &Database) -> Verdict {
    for (number, tenant) in model.tenants.iter().enumerate() {
        for table in &TABLES {
            let (columns, name, id) = (table.columns, table.name, &names.tenants[number]);
            let found = database.rows(&format!("SELECT {columns} FROM {name} WHERE tenant_id = '{id}'"));
            let expected = (table.expected)(&Expected { model, names, number, tenant });
            let only = |these: &[Value], those: &[Value]| -> Vec<String> {
                these.iter().filter(|row| !those.contains(row)).map(|row| format!("\n    {row}")).collect()
            };
            let (missing, surplus) = (only(&expected, &found), only(&found, &expected));
            if !missing.is_empty() || !surplus.is_empty() || expected.len() != found.len() {
                let (missing, surplus) = (missing.concat(), surplus.concat());
                return Err(format!("rows of {name}, tenant {number}:\n  missing: {missing}\n  too many: {surplus}"));
            }
        }
    }
    Ok(())
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
            "digests": i32::from(!claim.is_body_dropped)})
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
            "released": i32::from(reservation.state == "released")})
    });
    rows.collect()
}

fn reservation_lines(from: &Expected<'_>) -> Vec<Value> {
    let mut rows = Vec::new();
    for reservation in &from.tenant.reservations {
        rows.extend((1..).zip(&reservation.lines).map(|(line_no, (sku, qty)): (i32, _)| {
            json!({"reservation_id": reservation.id, "line_no": line_no, "sku": sku, "qty": millionths(*qty),
                "held": i32::from(reservation.state != "released")})
        }));
    }
    rows
}

fn payments(from: &Expected<'_>) -> Vec<Value> {
    let rows = from.tenant.payments.iter().map(|payment| {
        json!({"payment_id": payment.id, "order_id": payment.order, "operation_id": payment.operation,
            "reference": payment.reference})
    });
    rows.collect()
}
