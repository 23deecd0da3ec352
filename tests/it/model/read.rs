//! What is read, and requests that never reach a claim: they must say what the model says, and change nothing.

use std::fmt::Write;

use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::body::SKUS;
use super::contract::{Age, Verdict, problem, same, unrecorded};
use super::play::{ApiKey, Play};
use super::rules::{Order, Outcome, decimal};
use super::spelling::Spelling;
use super::step::{Broken, Read, Rights};
use super::wish;
use crate::harness::http::{Answer, send};

impl Play<'_, '_> {
    /// A request that is refused before the claim: that it leaves nothing is seen in the rows at the end.
    pub(super) async fn broken(&mut self, client: usize, broken: Broken) -> Verdict {
        let ApiKey { caller, rights } = self.api_keys[client][0].clone();
        let caller = if matches!(broken, Broken::NoApiKey) { caller.with_api_key(None) } else { caller };
        let request = caller.request(reqwest::Method::POST, "/v1/orders");
        let keyed = |request: reqwest::RequestBuilder| request.header("Idempotency-Key", "k\"0");
        let json = |request: reqwest::RequestBuilder, body: &'static str| {
            request.header("Content-Type", "application/json").body(body)
        };
        let order = r#"{"customerId":"cus_1","currency":"EUR","items":[{"sku":"A","qty":1}]}"#;
        let twice = r#"{"customerId":"cus_1","currency":"EUR","currency":"EUR","items":[{"sku":"A","qty":1}]}"#;
        let (request, status, code) = match broken {
            Broken::NoKey => (json(request, order), 400, "IdempotencyKeyMissing"),
            Broken::BlankKey => (json(request.header("Idempotency-Key", " "), order), 400, "IdempotencyKeyInvalid"),
            Broken::TwoKeys => (json(keyed(keyed(request)), order), 400, "IdempotencyKeyInvalid"),
            Broken::NotJson => (json(keyed(request), "{\"customerId\":"), 400, "MalformedRequest"),
            Broken::TwiceTheMember => (json(keyed(request), twice), 400, "MalformedRequest"),
            Broken::PlainText => {
                (keyed(request).header("Content-Type", "text/plain").body(order), 415, "UnsupportedMediaType")
            }
            Broken::NoApiKey => (json(keyed(request), order), 401, "Unauthenticated"),
        };
        let (status, code) = match rights {
            Rights::Revoked => (401, "Unauthenticated"),
            Rights::ReadOnly if status != 401 => (403, "Forbidden"),
            Rights::All | Rights::ReadOnly | Rights::WriteOnly => (status, code),
        };
        let answer = send(request).await;
        writeln!(self.log, "{broken:?}\n  -> {}", answer.text()).expect("text takes text");
        unrecorded(&answer, status, code)
    }

    /// Reads something, and compares it.
    pub(super) async fn read(&mut self, client: usize, slot: usize, read: Read) -> Verdict {
        let ApiKey { caller, rights } = self.api_keys[client][slot].clone();
        let Some(path) = self.path(client, read) else { return Ok(()) };
        let answer = caller.get(&path).await;
        writeln!(self.log, "client {client}, API key {slot}, GET {path}\n  -> {}", answer.text()).expect("text");
        let needs_scope = !matches!(read, Read::Operation(_) | Read::OperationByKey(_));
        match rights {
            Rights::Revoked => problem(&answer, 401, "Unauthenticated"),
            Rights::WriteOnly if needs_scope => problem(&answer, 403, "Forbidden"),
            Rights::All | Rights::ReadOnly | Rights::WriteOnly => self.compare(client, read, &answer),
        }
    }

    fn path(&self, client: usize, read: Read) -> Option<String> {
        Some(match read {
            Read::Order(name) => format!("/v1/orders/{}", wish::order_id(&self.model, client, name)),
            Read::Orders => "/v1/orders?limit=100".to_owned(),
            Read::Stock(sku) => format!("/v1/stock/{}", Spelling::default().segment(SKUS[sku])),
            Read::Reservation(nth) => format!("/v1/reservations/{}", wish::reservation_id(&self.model, client, nth)),
            Read::Payment(nth) => {
                let payment = self.model.tenant(client).payments.get(nth);
                format!("/v1/payments/{}", payment.map_or("pay_nobody", |payment| payment.id.as_str()))
            }
            Read::Message(nth) => {
                let mail = self.model.tenant(client).mails.get(nth);
                format!("/v1/messages/{}", mail.map_or("msg_nobody", |mail| mail.id.as_str()))
            }
            Read::Operation(nth) => {
                let scope = self.nth_claim(nth)?;
                format!("/v1/operations/{}", self.model.claims[&scope].operation)
            }
            Read::OperationByKey(nth) => {
                let scope = self.nth_claim(nth)?;
                let key = Spelling::default().segment(&scope.key);
                format!("/v1/operations?command={}&idempotencyKey={key}", scope.command.name())
            }
        })
    }

    fn compare(&self, client: usize, read: Read, answer: &Answer) -> Verdict {
        let tenant = self.model.tenant(client);
        match read {
            Read::Order(name) => match tenant.order(&wish::order_id(&self.model, client, name)) {
                Some(order) => shows_order(order, answer),
                None => problem(answer, 404, "OrderNotFound"),
            },
            Read::Orders => {
                let found = answer.json()["orders"].as_array().cloned().unwrap_or_default();
                let mut found: Vec<String> = found.iter().map(|order| text(&order["orderId"])).collect();
                let mut expected: Vec<String> = tenant.orders.iter().map(|order| order.id.clone()).collect();
                found.sort_unstable();
                expected.sort_unstable();
                same("the orders of the tenant", expected, found)
            }
            Read::Stock(sku) => match tenant.stock.get(SKUS[sku]) {
                Some(on_hand) => shows_stock(*on_hand, tenant.reserved(SKUS[sku]), answer),
                None => problem(answer, 404, "SkuNotFound"),
            },
            Read::Reservation(nth) => match tenant.reservation(&wish::reservation_id(&self.model, client, nth)) {
                Some(reservation) => {
                    let body = answer.json();
                    let found = (body["status"].as_str(), body["orderId"].as_str());
                    same("the reservation", (Some(reservation.state), reservation.order.as_deref()), found)
                }
                None => problem(answer, 404, "ReservationNotFound"),
            },
            Read::Payment(nth) => match tenant.payments.get(nth) {
                Some(payment) => shows_all(&payment.body, &answer.json()),
                None => problem(answer, 404, "PaymentNotFound"),
            },
            Read::Message(nth) => match tenant.mails.get(nth) {
                Some(mail) => {
                    let body = answer.json();
                    let told = ["orderId", "operationId", "template", "locale", "status"].map(|name| text(&body[name]));
                    let known = [&mail.order, &mail.operation, &mail.template, &mail.locale].map(Clone::clone);
                    let [order, operation, template, locale] = known;
                    same("the message", [order, operation, template, locale, "processing".to_owned()], told)
                }
                None => problem(answer, 404, "MessageNotFound"),
            },
            Read::Operation(nth) | Read::OperationByKey(nth) => self.shows_operation(client, nth, read, answer),
        }
    }

    /// An operation is seen by its own client, and only while its key is remembered. Another client that names the same
    /// key means its own.
    fn shows_operation(&self, client: usize, nth: usize, read: Read, answer: &Answer) -> Verdict {
        let mut scope = self.nth_claim(nth).expect("it was there when the path was made");
        let by_key = matches!(read, Read::OperationByKey(_));
        if by_key {
            scope.client = client;
        }
        let claim = self.model.claims.get(&scope).filter(|claim| claim.age != Age::Forgotten && scope.client == client);
        let body = answer.json();
        let found = if by_key { body["operations"].get(0).cloned() } else { Some(body.clone()) };
        let Some(claim) = claim else {
            return if by_key { same("the operation", None, found) } else { problem(answer, 404, "OperationNotFound") };
        };
        let (status, error, order) = match &claim.outcome {
            Outcome::Done { goes_on, order, .. } => (if *goes_on { "processing" } else { "succeeded" }, None, order),
            Outcome::Refused { code, order, .. } => ("failed", Some(*code), order),
        };
        let found = found.unwrap_or_default();
        let told = ["operationId", "command", "status", "error", "orderId"].map(|member| found[member].clone());
        let name = scope.command.name();
        same("the operation", [json!(claim.operation), json!(name), json!(status), json!(error), json!(order)], told)
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("").to_owned()
}

fn shows_order(order: &Order, answer: &Answer) -> Verdict {
    let body = answer.json();
    let tag = format!("\"{}\"", order.version);
    same("ETag", Some(tag.as_str()), answer.header("etag"))?;
    let told = ["orderId", "status", "paidAmount", "operationId"].map(|member| text(&body[member]));
    let paid = order.paid.normalize().to_string();
    same("the order", [order.id.clone(), order.status.to_owned(), paid, order.operation.clone()], told)?;
    shows_all(&order.body, &body)
}

/// What was sent is there, whatever else is.
fn shows_all(sent: &Value, found: &Value) -> Verdict {
    match (sent, found) {
        (Value::Object(sent), Value::Object(_)) => {
            sent.iter().try_for_each(|(name, value)| shows_all(value, &found[name]))
        }
        (Value::Array(sent), Value::Array(all)) => {
            same("the number of elements", sent.len(), all.len())?;
            sent.iter().zip(all).try_for_each(|(sent, found)| shows_all(sent, found))
        }
        _ => same("a member", sent, found),
    }
}

fn shows_stock(on_hand: Decimal, reserved: Decimal, answer: &Answer) -> Verdict {
    let body = answer.json();
    let told = ["onHand", "reserved", "available"].map(|member| decimal(&body[member]));
    same("the stock", [on_hand, reserved, on_hand - reserved], told)
}
