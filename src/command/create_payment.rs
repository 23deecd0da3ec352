//! `payments.create`: the shop tells that an order, or a part of it, was paid. The payment, the order's paid amount and the
//! message to the ERP are written together.

use rust_decimal::Decimal;

use super::fingerprint::Intent;
use super::order_rows::{self, OrderRow};
use super::{Command, Done, Method, Spec, Stop, Success, Tx};
use crate::db::Fault;
use crate::json::{self, Json};
use crate::money::{Currency, exact, sum};
use crate::order;
use crate::outbox::{self, Channel, connection};
use crate::payment::{self, Payment};
use crate::problem::{Code, Links, Problem};
use crate::schema::{DecimalRule, Faults, Kind, Member, Object, Sign, code};

/// The payment that was made.
#[derive(Clone, Debug)]
pub struct CreatePayment {
    order_id: String,
    amount: Decimal,
    currency: Currency,
    document: Json,
}

/// The body of the command.
pub static PAYMENT: Object = Object {
    name: "Payment",
    members: &[
        Member::required("orderId", Kind::Text { min: 1, max: 64 }, "The order that was paid."),
        Member::required(
            "amount",
            Kind::Decimal(DecimalRule::new(15, 6, Sign::Positive)),
            "What was paid: greater than 0, with at most the currency's minor digits (JPY 0, EUR 2, KWD 3).",
        ),
        Member::required("currency", Kind::Currency, "The currency of the order: ISO 4217, either case in."),
        Member::required(
            "method",
            Kind::Text { min: 1, max: 255 },
            "The shop's name of the method, such as `card`, `bank_transfer` or `cod`.",
        ),
        Member::optional(
            "reference",
            Kind::Text { min: 1, max: 255 },
            "The payment provider's name of the payment, unique in the order for ever.",
        ),
        Member::optional("paidAt", Kind::Instant, "When it was paid."),
    ],
};

impl Command for CreatePayment {
    const SPEC: Spec = Spec {
        name: "payments.create",
        method: Method::Post,
        route: "/v1/payments",
        scope: "payments:write",
        body: &PAYMENT,
        body_may_be_empty: false,
        summary: "Record a payment of an order",
        description: "Writes a payment down, adds it to the order's `paidAmount` (its `ETag` changes) and tells the ERP. \
            `reference` makes a payment for ever unique in its order, whatever key it comes with; a payment without one is \
            guarded by its idempotency key alone, for as long as that is remembered. `Overpayment` is said only where the \
            order was sent with `totals.gross`: more than that cannot be paid. A rejected or cancelled order takes no \
            payment (`OrderClosed`); one that is being cancelled does, because the ERP may still say that it is too late.",
        examples: &[(
            "card",
            r#"{"orderId":"ord_019adb5a34c27f10b6c9f1b0d5a1e9c4","amount":"39.90","currency":"EUR","method":"card","reference":"pi_3QK2","paidAt":"2026-03-02T08:15:31Z"}"#,
        )],
        successes: &[Success {
            status: 201,
            meaning: "The payment is written down.",
            id_member: "paymentId",
            example: r#"{"status":"received","paymentId":"pay_019adb5a34c27f10b6c9f1b0d5a1e9c4","operationId":"op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b","links":{"self":"/v1/payments/pay_019adb5a34c27f10b6c9f1b0d5a1e9c4","operation":"/v1/operations/op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b"}}"#,
        }],
        refusals: &[
            Code::OrderNotFound,
            Code::OrderClosed,
            Code::DuplicatePayment,
            Code::CurrencyMismatch,
            Code::Overpayment,
        ],
    };

    fn parse(asked: &Intent) -> Result<CreatePayment, Problem> {
        let document = PAYMENT.complete(&asked.body);
        let mut faults = Faults::default();
        PAYMENT.check(&asked.body, &mut faults);
        let order_id = document.text("orderId").map(str::to_owned);
        let amount = document.text("amount").and_then(exact);
        let currency = document.text("currency").and_then(Currency::from_code);
        if let (Some(amount), Some(currency)) = (amount, currency) {
            fits_the_currency(amount, currency, &mut faults);
        }
        let faults = faults.into_vec();
        match (order_id, amount, currency) {
            (Some(order_id), Some(amount), Some(currency)) if faults.is_empty() => {
                Ok(CreatePayment { order_id, amount, currency, document })
            }
            _ => Err(Problem::invalid(faults)),
        }
    }

    fn execute(self, tx: &mut Tx<'_>) -> Result<Done, Stop> {
        // The lock makes payments of one order come one after the other: each sees what was paid before.
        let order = order_rows::lock_existing(tx, &self.order_id)?;
        self.refuse_closed(&order)?;
        self.refuse_duplicate(tx, &order)?;
        self.refuse_other_currency(&order)?;
        let paid = self.paid_with(&order)?;
        let payment_id = format!("pay_{}", uuid::Uuid::now_v7().simple());
        let row = Payment {
            tenant_id: tx.call.tenant_id.clone(),
            payment_id: payment_id.clone(),
            order_id: order.order_id.clone(),
            client_id: tx.call.client_id.clone(),
            operation_id: tx.call.operation_id.clone(),
            reference: self.reference().map(str::to_owned),
            document: self.document.to_string(),
            created_at: tx.now,
        };
        payment::insert(tx.db, &row)?;
        order_rows::set_paid_amount(tx, &order, &paid.normalize().to_string())?;
        self.announce(tx, &order, &payment_id)?;
        let goes_on = connection::exists(tx.db, &tx.call.tenant_id, Channel::Erp)?;
        Ok(Done {
            status: 201,
            state: "received",
            id_member: "paymentId",
            path: payment_path(&payment_id),
            id: payment_id,
            order_id: Some(order.order_id),
            goes_on,
        })
    }
}

/// The path of a payment.
#[must_use]
pub fn payment_path(payment_id: &str) -> String {
    format!("/v1/payments/{payment_id}")
}

fn fits_the_currency(amount: Decimal, currency: Currency, faults: &mut Faults) {
    if !currency.can_express(amount) {
        let (code, digits) = (currency.code(), currency.minor_digits());
        let message = format!("An amount of {code} has at most {digits} digits after the point.");
        faults.add("/amount", code::TOO_MANY_DIGITS, message);
    }
}

impl CreatePayment {
    fn reference(&self) -> Option<&str> {
        self.document.text("reference")
    }

    fn refuse_closed(&self, order: &OrderRow) -> Result<(), Stop> {
        match order.status.as_str() {
            "accepted" | "confirmed" | "cancelling" => Ok(()),
            status => {
                let detail = format!("The order is {status}; it takes no payment.");
                Err(Problem::about_order(Code::OrderClosed, detail, &self.order_id).into())
            }
        }
    }

    /// Looked at before the amount: a payment that is told twice would else be an overpayment.
    fn refuse_duplicate(&self, tx: &mut Tx<'_>, order: &OrderRow) -> Result<(), Stop> {
        let Some(reference) = self.reference() else { return Ok(()) };
        let existing = payment::with_reference(tx.db, &tx.call.tenant_id, &order.order_id, reference)?;
        let Some(existing) = existing else { return Ok(()) };
        let detail = "The order has a payment with this reference; it came with another idempotency key.";
        let problem = Problem::about_order(Code::DuplicatePayment, detail, &order.order_id);
        let links: Links = problem.links.clone().with("payment", payment_path(&existing));
        Err(Problem { links, ..problem }.into())
    }

    fn refuse_other_currency(&self, order: &OrderRow) -> Result<(), Stop> {
        if order.currency == self.currency.code() {
            return Ok(());
        }
        let detail = format!("The order is in {}, the payment in {}.", order.currency, self.currency.code());
        Err(Problem::about_order(Code::CurrencyMismatch, detail, &order.order_id).into())
    }

    /// What is paid of the order with this payment. More than its gross total is refused, where that is known.
    fn paid_with(&self, order: &OrderRow) -> Result<Decimal, Stop> {
        let unreadable = |what: &str| Fault::Bug(format!("the {what} of a stored order cannot be read"));
        let before = exact(&order.paid_amount).ok_or_else(|| unreadable("paid amount"))?;
        let head = json::parse(order.document.as_bytes()).map_err(|_| unreadable("document"))?;
        let gross = order::gross(&head);
        let paid = sum([Some(before), Some(self.amount)]).ok_or_else(|| unreadable("paid amount"))?;
        match gross {
            Some(gross) if paid > gross => {
                let open = (gross - before).max(Decimal::ZERO).normalize();
                let detail = format!("Of the order's total {open} {} is open.", order.currency);
                Err(Problem::about_order(Code::Overpayment, detail, &order.order_id).into())
            }
            _ => Ok(paid),
        }
    }

    /// Leaves the message for the ERP: what was sent, and our name of the payment.
    fn announce(&self, tx: &mut Tx<'_>, order: &OrderRow, payment_id: &str) -> Result<(), Fault> {
        let mut payment = vec![("paymentId".to_owned(), Json::Text(payment_id.to_owned()))];
        let sent = self.document.as_object().unwrap_or_default();
        payment.extend(sent.iter().filter(|(name, _)| name != "orderId").cloned());
        let content = Json::Object(payment);
        order_rows::announce(tx, outbox::Kind::PaymentReceived, order, Some(("payment", &content)))?;
        Ok(())
    }
}
