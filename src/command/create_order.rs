//! `orders.create`: an e-shop hands an order over. The order, its lines and its message to the ERP are written in the
//! transaction that claimed the key.

use super::fingerprint::Intent;
use super::order_rows;
use super::{Command, Done, Method, Spec, Stop, Success, Tx};
use crate::db::Fault;
use crate::order::id::new_order_id;
use crate::order::{self, Order};
use crate::outbox::{Channel, Kind, connection};
use crate::problem::{Code, Problem};

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
        let order_id = new_order_id();
        if !order_rows::insert(tx, &order_id, &order)? {
            return match order_rows::duplicate(tx, &order)? {
                Some(duplicate) => Err(duplicate.into()),
                None => Err(Fault::Bug("an order could neither be made nor found".to_owned()).into()),
            };
        }
        order_rows::hand_over(tx, Kind::OrderCreated, &order_id, &order)?;
        let goes_on = connection::exists(tx.db, &tx.call.tenant_id, Channel::Erp)?;
        Ok(Done {
            status: 201,
            state: "accepted",
            id_member: "orderId",
            path: order_rows::order_path(&order_id),
            order_id: Some(order_id.clone()),
            id: order_id,
            // Without an ERP to write the order down is all that is promised.
            goes_on,
        })
    }
}
