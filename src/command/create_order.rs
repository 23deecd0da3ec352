//! `orders.create`: an e-shop hands an order over. The order, its lines and its message to the ERP are written in the
//! transaction that claimed the key.

use diesel::prelude::*;

use super::fingerprint::Intent;
use super::{Command, Done, Method, Spec, Stop, Success, Tx};
use crate::db::Fault;
use crate::db::tables::{order_lines, orders};
use crate::json::Json;
use crate::on_db;
use crate::order::{self, Order};
use crate::outbox::{self, Message};
use crate::problem::{Code, Links, Problem};

/// The order that the client wants to exist.
#[derive(Clone, Debug)]
pub struct CreateOrder(Order);

impl Command for CreateOrder {
    const SPEC: Spec = Spec {
        name: "orders.create",
        method: Method::Post,
        route: "/v1/orders",
        scope: "orders:write",
        body: &order::ORDER,
        body_may_be_empty: false,
        summary: "Create an order",
        description: "Hands an order over to the ERP side. The answer says that it is written down; how far it is on its \
            way to the ERP is told by the operation. `externalOrderId` is the shop's own technical id: within \
            (tenant, channel) it makes an order for ever unique, whatever key it comes with. An order without one is \
            guarded by its idempotency key alone, for as long as that is remembered.",
        examples: &[
            ("smallest", r#"{"customerId":"cus_123","items":[{"sku":"ABC","qty":2}],"currency":"EUR"}"#),
            ("shop", include_str!("create_order_example.json")),
        ],
        successes: &[Success {
            status: 201,
            meaning: "The order is written down, once.",
            id_member: "orderId",
            example: r#"{"status":"accepted","orderId":"ord_019adb5a34c27f10b6c9f1b0d5a1e9c4","operationId":"op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b","links":{"self":"/v1/orders/ord_019adb5a34c27f10b6c9f1b0d5a1e9c4","operation":"/v1/operations/op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b"}}"#,
        }],
        refusals: &[Code::DuplicateOrder],
    };

    fn parse(asked: &Intent) -> Result<CreateOrder, Problem> {
        Order::parse(&asked.body).map(CreateOrder).map_err(Problem::invalid)
    }

    fn execute(self, tx: &mut Tx<'_>) -> Result<Done, Stop> {
        let order = self.0;
        let order_id = format!("ord_{}", uuid::Uuid::now_v7().simple());
        if !insert_order(tx, &order_id, &order)? {
            return Err(duplicate(tx, &order)?.into());
        }
        insert_lines(tx, &order_id, &order)?;
        announce(tx, &order_id, &order)?;
        Ok(Done {
            status: 201,
            state: "accepted",
            id_member: "orderId",
            path: order_path(&order_id),
            order_id: Some(order_id.clone()),
            id: order_id,
            // Nothing carries a message on yet: to write the order down is all that is promised.
            goes_on: false,
        })
    }
}

/// The path of an order.
#[must_use]
pub fn order_path(order_id: &str) -> String {
    format!("/v1/orders/{order_id}")
}

#[derive(Insertable)]
#[diesel(table_name = orders, treat_none_as_default_value = false)]
struct NewOrder<'a> {
    tenant_id: &'a str,
    order_id: &'a str,
    client_id: &'a str,
    operation_id: &'a str,
    channel: &'a str,
    external_order_id: Option<&'a str>,
    customer_id: Option<&'a str>,
    currency: &'a str,
    status: &'a str,
    reference: &'a str,
    paid_amount: &'a str,
    document: &'a str,
    version: i64,
    created_at: crate::db::Instant,
    updated_at: crate::db::Instant,
}

/// The first version of every order.
const FIRST_VERSION: i64 = 1;

/// Writes the order, unless its shop order exists already: then it writes nothing and says `false`.
fn insert_order(tx: &mut Tx<'_>, order_id: &str, order: &Order) -> Result<bool, Fault> {
    let row = NewOrder {
        tenant_id: &tx.call.tenant_id,
        order_id,
        client_id: &tx.call.client_id,
        operation_id: &tx.call.operation_id,
        channel: order.channel(),
        external_order_id: order.external_order_id(),
        customer_id: order.customer_id(),
        currency: order.currency().code(),
        status: "accepted",
        reference: &reference(order_id, order),
        paid_amount: "0",
        document: &order.head().to_string(),
        version: FIRST_VERSION,
        created_at: tx.now,
        updated_at: tx.now,
    };
    let inserted = on_db!(&mut *tx.db, conn => diesel::insert_into(orders::table)
        .values(&row)
        .on_conflict_do_nothing()
        .execute(conn))?;
    Ok(inserted == 1)
}

/// Our permanent name of the order inside the ERP: the shop's own name where there is one, so that even a database that was
/// restored from an old backup cannot make a second sale.
fn reference(order_id: &str, order: &Order) -> String {
    match order.external_order_id() {
        Some(external) => format!("{}/{external}", order.channel()),
        None => order_id.to_owned(),
    }
}

fn duplicate(tx: &mut Tx<'_>, order: &Order) -> Result<Problem, Fault> {
    let existing: String = on_db!(&mut *tx.db, conn => orders::table
        .filter(orders::tenant_id.eq(&tx.call.tenant_id))
        .filter(orders::channel.eq(order.channel()))
        .filter(orders::external_order_id.eq(order.external_order_id()))
        .select(orders::order_id)
        .first(conn))?;
    Ok(Problem {
        links: Links::default().with("order", order_path(&existing)),
        order_id: Some(existing),
        ..Problem::new(
            Code::DuplicateOrder,
            "An order with this channel and externalOrderId exists; it came with another idempotency key.",
        )
    })
}

#[derive(Insertable)]
#[diesel(table_name = order_lines, treat_none_as_default_value = false)]
struct NewLine<'a> {
    tenant_id: &'a str,
    order_id: &'a str,
    line_no: i32,
    kind: &'a str,
    sku: Option<&'a str>,
    qty: &'a str,
    document: String,
}

fn insert_lines(tx: &mut Tx<'_>, order_id: &str, order: &Order) -> Result<(), Fault> {
    let rows: Vec<NewLine<'_>> = (1..)
        .zip(order.lines())
        .map(|(line_no, line)| NewLine {
            tenant_id: &tx.call.tenant_id,
            order_id,
            line_no,
            kind: line.kind(),
            sku: line.sku(),
            qty: line.qty(),
            document: line.document().to_string(),
        })
        .collect();
    on_db!(&mut *tx.db, conn => diesel::insert_into(order_lines::table).values(&rows).execute(conn))?;
    Ok(())
}

/// Leaves the message for the ERP.
fn announce(tx: &mut Tx<'_>, order_id: &str, order: &Order) -> Result<(), Fault> {
    let text = |value: &str| Json::Text(value.to_owned());
    let payload = Json::Object(vec![
        ("type".to_owned(), text("order.created")),
        ("reference".to_owned(), text(&reference(order_id, order))),
        ("orderId".to_owned(), text(order_id)),
        ("occurredAt".to_owned(), text(&crate::db::rfc3339(tx.now))),
        ("order".to_owned(), order.document().clone()),
    ]);
    let message = Message {
        tenant_id: &tx.call.tenant_id,
        operation_id: &tx.call.operation_id,
        kind: "order.created",
        order_id,
        position: FIRST_VERSION,
        payload: &payload.to_string(),
    };
    outbox::append(tx.db, &message, tx.now)
}
