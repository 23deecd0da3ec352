//! `orders.cancel`: the shop does not want the order any more. While the ERP was not asked, the hand-over is withdrawn in
//! the same transaction; later the ERP has to be asked, and may say that it is too late.

use super::fingerprint::Intent;
use super::operation::{self, End};
use super::{Command, Done, Method, Spec, Stop, Success, Tx, order_rows};
use crate::db::Fault;
use crate::json::Json;
use crate::order::id::ORDER_ID;
use crate::outbox;
use crate::problem::{Code, Problem};
use crate::schema::{Kind, Member, Object};
use crate::stock::reservation;

/// The order that is to be cancelled, and why.
#[derive(Clone, Debug)]
pub struct CancelOrder {
    order_id: String,
    reason: Option<String>,
}

/// The body of the command.
static BODY: Object = Object {
    name: "Cancellation",
    members: &[Member::optional("reason", Kind::Text { min: 1, max: 500 }, "Why, for the people at the ERP.")],
};

impl Command for CancelOrder {
    const SPEC: Spec = Spec {
        name: "orders.cancel",
        method: Method::Post,
        route: "/v1/orders/{orderId}/cancel",
        scope: "orders:write",
        body: &BODY,
        body_may_be_empty: true,
        summary: "Cancel an order",
        description: "Before the ERP was asked for the order, the hand-over is withdrawn and the order is `cancelled` at \
            once; the operation that created it ends as `failed` with `OrderWithdrawn` if it was still on its way. Later \
            the order becomes `cancelling` and the ERP is asked: it may agree, or say that it is too late. What the order \
            had reserved is free again at once.",
        examples: &[("reason", r#"{"reason":"The customer changed their mind."}"#), ("empty", "{}")],
        successes: &[Success {
            status: 200,
            meaning: "The order is cancelled, or the ERP is being asked.",
            id_member: "orderId",
            example: r#"{"status":"cancelled","orderId":"ord_019adb5a34c27f10b6c9f1b0d5a1e9c4","operationId":"op_0c5be3a94d7f8a2b4c6d8e0f1a2b6f1d","links":{"self":"/v1/orders/ord_019adb5a34c27f10b6c9f1b0d5a1e9c4","operation":"/v1/operations/op_0c5be3a94d7f8a2b4c6d8e0f1a2b6f1d"}}"#,
        }],
        refusals: &[Code::OrderNotFound, Code::OrderAlreadyCancelled, Code::OrderNotCancellable],
    };

    fn parse(asked: &Intent) -> Result<CancelOrder, Problem> {
        let faults = BODY.faults(&asked.body);
        if !faults.is_empty() {
            return Err(Problem::invalid(faults));
        }
        let reason = asked.body.text("reason").map(str::to_owned);
        Ok(CancelOrder { order_id: asked.parameter(ORDER_ID).to_owned(), reason })
    }

    fn execute(self, tx: &mut Tx<'_>) -> Result<Done, Stop> {
        let order = order_rows::lock_existing(tx, &self.order_id)?;
        match order.status.as_str() {
            "accepted" | "confirmed" => {}
            "cancelled" | "cancelling" => {
                let detail = format!("The order is {} already; another command asked for it.", order.status);
                return Err(Problem::about_order(Code::OrderAlreadyCancelled, detail, &order.order_id).into());
            }
            status => {
                let detail = format!("The order is {status}; only accepted and confirmed orders can be cancelled.");
                return Err(Problem::about_order(Code::OrderNotCancellable, detail, &order.order_id).into());
            }
        }
        let state = if withdraw(tx, &order.order_id)? {
            "cancelled"
        } else {
            let reason = self.reason.map(Json::Text);
            let content = reason.as_ref().map(|reason| ("reason", reason));
            order_rows::announce(tx, outbox::Kind::OrderCancelled, &order, content)?;
            "cancelling"
        };
        order_rows::set_status(tx, &order, state)?;
        reservation::release_of_order(tx.db, &tx.call.tenant_id, &order.order_id, tx.now)?;
        Ok(Done {
            status: 200,
            state,
            id_member: "orderId",
            path: order_rows::order_path(&order.order_id),
            order_id: Some(order.order_id.clone()),
            id: order.order_id,
            goes_on: state == "cancelling",
        })
    }
}

/// Takes back all that the ERP was to be told of the order, provided that it surely does not have it.
fn withdraw(tx: &mut Tx<'_>, order_id: &str) -> Result<bool, Fault> {
    let (tenant_id, retention) = (tx.call.tenant_id.as_str(), tx.call.retention);
    let Some(hand_over) = outbox::withdraw_hand_over(tx.db, tenant_id, order_id)? else { return Ok(false) };
    let rest = outbox::withdraw_rest(tx.db, tenant_id, order_id)?;
    let mut operation_ids: Vec<String> = rest.into_iter().map(|(operation_id, _)| operation_id).collect();
    operation_ids.push(hand_over);
    let end = End::Failed(Code::OrderWithdrawn);
    operation::end(tx.db, (tenant_id, &operation_ids), end, retention, tx.now)?;
    Ok(true)
}
