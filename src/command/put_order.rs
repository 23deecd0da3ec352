//! `orders.put`: create or replace an order under an id that the client chose. A precondition says which of the two is
//! meant, so that nobody overwrites what they have not seen.

use super::fingerprint::Intent;
use super::operation::{self, End, Open};
use super::order_rows::{self, OrderRow};
use super::precondition::Precondition;
use super::{Command, Done, Method, Spec, Stop, Success, Tx};
use crate::db::Fault;
use crate::json;
use crate::money::exact;
use crate::order::id::{ORDER_ID, may_be_chosen};
use crate::order::{self, Order};
use crate::outbox::{self, Channel, Kind, State, connection};
use crate::problem::{Code, Problem};
use crate::schema::Fault as BodyFault;

/// The order as the client wants it, and when it may be written.
#[derive(Clone, Debug)]
pub struct PutOrder {
    order_id: String,
    precondition: Precondition,
    order: Order,
}

impl Command for PutOrder {
    const SPEC: Spec = Spec {
        name: "orders.put",
        method: Method::Put,
        route: "/v1/orders/{orderId}",
        scope: "orders:write",
        body: &order::ORDER,
        body_may_be_empty: false,
        summary: "Create or replace an order under an id of your own",
        description: "`If-None-Match: *` creates the order under the id in the path: `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`, not \
            beginning with `ord_`. `If-Match: <etag>` replaces it, while the ERP was not asked for it or after the ERP \
            rejected it; `channel` and `externalOrderId` never change. Without a precondition the answer is 428. A stale \
            `If-Match` is 412, but 200 when the order already is what was sent (RFC 9110, section 13.1.1).",
        examples: &[("smallest", r#"{"customerId":"cus_123","items":[{"sku":"ABC","qty":2}],"currency":"EUR"}"#)],
        successes: &[
            Success {
                status: 201,
                meaning: "The order is written down, once.",
                id_member: "orderId",
                example: r#"{"status":"accepted","orderId":"web-48211","operationId":"op_5be3a94d7f8a2b4c6d8e0f1a2b6f1d0c","links":{"self":"/v1/orders/web-48211","operation":"/v1/operations/op_5be3a94d7f8a2b4c6d8e0f1a2b6f1d0c"}}"#,
            },
            Success {
                status: 200,
                meaning: "The order is replaced, or is already what was sent.",
                id_member: "orderId",
                example: r#"{"status":"accepted","orderId":"web-48211","operationId":"op_94d7f8a2b4c6d8e0f1a2b6f1d0c5be3a","links":{"self":"/v1/orders/web-48211","operation":"/v1/operations/op_94d7f8a2b4c6d8e0f1a2b6f1d0c5be3a"}}"#,
            },
        ],
        refusals: &[
            Code::PreconditionFailed,
            Code::DuplicateOrder,
            Code::OrderIdentityFixed,
            Code::OrderNotReplaceable,
            Code::CurrencyMismatch,
            Code::Overpayment,
        ],
    };

    fn parse(asked: &Intent) -> Result<PutOrder, Problem> {
        let precondition = Precondition::of(asked)?;
        let order_id = asked.parameter(ORDER_ID).to_owned();
        let mut faults = Vec::new();
        if precondition == Precondition::Absent && !may_be_chosen(&order_id) {
            faults.push(BodyFault {
                pointer: String::new(),
                code: "BadOrderId",
                message:
                    "The order id in the path has to be 1 to 64 letters, digits, '.', '_' or '-', begin with a letter \
                    or digit, and not begin with 'ord_'."
                        .to_owned(),
            });
        }
        match Order::parse(&asked.body) {
            Ok(order) if faults.is_empty() => Ok(PutOrder { order_id, precondition, order }),
            Ok(_) => Err(Problem::invalid(faults)),
            Err(found) => {
                faults.extend(found);
                Err(Problem::invalid(faults))
            }
        }
    }

    fn execute(self, tx: &mut Tx<'_>) -> Result<Done, Stop> {
        match self.precondition {
            Precondition::Absent => self.create(tx),
            Precondition::Present | Precondition::Version(_) => self.replace(tx),
        }
    }
}

impl PutOrder {
    fn create(self, tx: &mut Tx<'_>) -> Result<Done, Stop> {
        if !order_rows::insert(tx, &self.order_id, &self.order)? {
            if order_rows::lock(tx, &self.order_id)?.is_some() {
                return Err(self.failed("There is an order with this id already."));
            }
            return match order_rows::duplicate(tx, &self.order)? {
                Some(duplicate) => Err(duplicate.into()),
                None => Err(Fault::Bug("an order could neither be made nor found".to_owned()).into()),
            };
        }
        order_rows::hand_over(tx, Kind::OrderCreated, &self.order_id, &self.order)?;
        let goes_on = connection::exists(tx.db, &tx.call.tenant_id, Channel::Erp)?;
        Ok(done(self.order_id, 201, "accepted", goes_on))
    }

    fn replace(self, tx: &mut Tx<'_>) -> Result<Done, Stop> {
        let Some(old) = order_rows::lock(tx, &self.order_id)? else {
            return Err(self.failed("There is no order with this id."));
        };
        if self.is_what_stands(tx, &old)? {
            let state = state_name(&old.status)?;
            return Ok(done(self.order_id, 200, state, false));
        }
        if !self.knows(&old) {
            return Err(self.failed("The order has changed since you read it; If-Match names another version."));
        }
        self.may_replace(&old)?;
        let kind = match outbox::withdraw_hand_over(tx.db, &tx.call.tenant_id, &old.order_id)? {
            Some(operation_id) => {
                let end = End::Failed(Code::OrderWithdrawn);
                let operations = (tx.call.tenant_id.as_str(), [operation_id]);
                operation::end(tx.db, (operations.0, &operations.1), end, tx.call.retention, tx.now)?;
                Kind::OrderCreated
            }
            None if old.status == "rejected" => {
                release_held_back(tx, &old.order_id)?;
                Kind::OrderReplaced
            }
            None => {
                let detail = "The ERP was asked for this order already; cancel it and send a new one.";
                return Err(Problem::about_order(Code::OrderNotReplaceable, detail, &old.order_id).into());
            }
        };
        order_rows::replace(tx, &old, &self.order)?;
        order_rows::hand_over(tx, kind, &old.order_id, &self.order)?;
        let goes_on = connection::exists(tx.db, &tx.call.tenant_id, Channel::Erp)?;
        Ok(done(self.order_id, 200, "accepted", goes_on))
    }

    /// Whether the client knows the version that stands.
    fn knows(&self, old: &OrderRow) -> bool {
        match &self.precondition {
            Precondition::Version(tags) => tags.contains(&old.version.to_string()),
            Precondition::Present => true,
            Precondition::Absent => false,
        }
    }

    /// Whether the order that stands is what was sent, by the rules of the fingerprint: in the open bag too, which is kept as it
    /// came, the order of the members and the spelling of numbers say nothing.
    fn is_what_stands(&self, tx: &mut Tx<'_>, old: &OrderRow) -> Result<bool, Fault> {
        if canonical(&old.document)? != self.order.head().canonical() {
            return Ok(false);
        }
        // No line has a bag, so that equal lines have equal texts.
        let lines = order_rows::lines(tx.db, &tx.call.tenant_id, &old.order_id)?;
        Ok(lines.into_iter().eq(self.order.lines().map(|line| line.document().to_string())))
    }

    /// What never changes, and what states allow.
    fn may_replace(&self, old: &OrderRow) -> Result<(), Problem> {
        let refuse = |code, detail: &str| Err(Problem::about_order(code, detail, &old.order_id));
        if old.channel != self.order.channel() || old.external_order_id.as_deref() != self.order.external_order_id() {
            return refuse(Code::OrderIdentityFixed, "The order has another channel or externalOrderId.");
        }
        if !matches!(old.status.as_str(), "accepted" | "rejected") {
            let detail = format!("The order is {}; only accepted and rejected orders can be replaced.", old.status);
            return refuse(Code::OrderNotReplaceable, &detail);
        }
        if old.paid_amount != "0" && old.currency != self.order.currency().code() {
            return refuse(Code::CurrencyMismatch, "The order has payments in another currency.");
        }
        let (gross, paid) = (order::gross(self.order.document()), exact(&old.paid_amount));
        if gross.zip(paid).is_some_and(|(gross, paid)| gross < paid) {
            let detail =
                format!("{} {} of the order is paid already; its total cannot be less.", old.paid_amount, old.currency);
            return refuse(Code::Overpayment, &detail);
        }
        Ok(())
    }

    fn failed(&self, detail: &str) -> Stop {
        Problem::about_order(Code::PreconditionFailed, detail, &self.order_id).into()
    }
}

/// What was to be told of the order when the ERP refused it waited for a person, and now waits for this hand-over.
fn release_held_back(tx: &mut Tx<'_>, order_id: &str) -> Result<(), Fault> {
    let tenant_id = tx.call.tenant_id.as_str();
    let released = outbox::move_all(tx.db, (tenant_id, order_id), State::Parked, State::Waiting)?;
    operation::set_open(tx.db, (tenant_id, &released), Open::Processing, tx.now)
}

fn done(order_id: String, status: u16, state: &'static str, goes_on: bool) -> Done {
    Done {
        status,
        state,
        id_member: "orderId",
        path: order_rows::order_path(&order_id),
        order_id: Some(order_id.clone()),
        id: order_id,
        goes_on,
    }
}

fn state_name(status: &str) -> Result<&'static str, Fault> {
    let known = order::STATES.iter().find(|state| **state == status);
    known.copied().ok_or_else(|| Fault::Bug(format!("a stored order has the unknown state {status:?}")))
}

fn canonical(document: &str) -> Result<String, Fault> {
    let stored = json::parse(document.as_bytes());
    stored.map(|stored| stored.canonical()).map_err(|_| Fault::Bug("a stored order cannot be read".to_owned()))
}
