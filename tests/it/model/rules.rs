//! The rules of business, small enough to be seen to be right: what one tenant has, and what a command does to it.

use std::collections::BTreeMap;
use std::str::FromStr;

use rust_decimal::Decimal;
use serde_json::Value;

use super::ask::{Ask, Kind};

/// What one tenant has.
#[derive(Clone, Debug, Default)]
pub struct Tenant {
    pub orders: Vec<Order>,
    pub stock: BTreeMap<String, Decimal>,
    pub reservations: Vec<Reservation>,
    pub payments: Vec<Payment>,
    pub messages: Vec<Message>,
    pub mails: Vec<Mail>,
}

#[derive(Clone, Debug)]
pub struct Order {
    pub id: String,
    pub client: usize,
    /// The operation that handed it over last.
    pub operation: String,
    pub body: Value,
    pub channel: String,
    pub external: Option<String>,
    pub status: &'static str,
    pub paid: Decimal,
    pub version: i64,
}

#[derive(Clone, Debug)]
pub struct Reservation {
    pub id: String,
    pub operation: String,
    pub order: Option<String>,
    pub lines: Vec<(String, Decimal)>,
    pub may_expire: bool,
    /// `reserved`, `released` or `expired`.
    pub state: &'static str,
}

#[derive(Clone, Debug)]
pub struct Payment {
    pub id: String,
    pub operation: String,
    pub order: String,
    pub reference: Option<String>,
    pub body: Value,
}

/// A message to a customer.
#[derive(Clone, Debug)]
pub struct Mail {
    pub id: String,
    pub operation: String,
    pub order: String,
    pub template: String,
    pub locale: String,
}

/// A message on its way out, to the ERP or to a customer.
#[derive(Clone, Debug)]
pub struct Message {
    pub operation: String,
    pub order: String,
    pub kind: &'static str,
    pub position: i64,
    /// `waiting`, `withdrawn`, `delivered`, `refused`, or `parked` behind a hand-over that was refused.
    pub state: &'static str,
}

/// What a command comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out.
    Done {
        status: u16,
        state: &'static str,
        id: String,
        order: Option<String>,
        /// Whether its operation is not final yet.
        goes_on: bool,
    },
    /// The rules say no.
    Refused { status: u16, code: &'static str, order: Option<String> },
}

/// The names that only the service can give.
#[derive(Clone, Debug)]
pub struct Names {
    /// Of what the command makes.
    pub made: String,
    /// Of the operation.
    pub operation: String,
    /// The client that asks.
    pub client: usize,
}

/// A decimal of the plain form.
pub fn decimal(value: &Value) -> Decimal {
    let text = value.as_str().expect("decimals of the plain form are text");
    Decimal::from_str(text).expect("the plain form has valid decimals").normalize()
}

fn refused(status: u16, code: &'static str, order: Option<&str>) -> Outcome {
    Outcome::Refused { status, code, order: order.map(str::to_owned) }
}

fn order_done(status: u16, state: &'static str, id: &str) -> Outcome {
    Outcome::Done { status, state, id: id.to_owned(), order: Some(id.to_owned()), goes_on: state == "cancelling" }
}

/// The message that is a mail, which no command takes back.
const A_MAIL: &str = "message.requested";

/// The messages that hand an order over.
pub const HAND_OVERS: [&str; 2] = ["order.created", "order.replaced"];

impl Tenant {
    /// Carries a command out, or says why not. A refusal changes nothing.
    pub fn execute(&mut self, ask: &Ask, names: &Names) -> Outcome {
        if ask.invalid {
            return refused(400, "InvalidRequest", None);
        }
        match ask.kind {
            Kind::Create => self.create(&names.made, ask, names),
            Kind::Put if ask.if_none_match.is_some() => self.create(&ask.target, ask, names),
            Kind::Put => self.replace(ask, names),
            Kind::Cancel => self.cancel(ask, names),
            Kind::Pay => self.pay(ask, names),
            Kind::Stock => self.put_stock(ask),
            Kind::Reserve => self.reserve(ask, names),
            Kind::Release => self.release(&ask.target),
            Kind::Send => self.send(ask, names),
        }
    }

    pub fn order(&self, id: &str) -> Option<&Order> {
        self.orders.iter().find(|order| order.id == id)
    }

    pub fn reservation(&self, id: &str) -> Option<&Reservation> {
        self.reservations.iter().find(|reservation| reservation.id == id)
    }

    fn order_mut(&mut self, id: &str) -> &mut Order {
        self.orders.iter_mut().find(|order| order.id == id).expect("the order was looked at before")
    }

    fn create(&mut self, id: &str, ask: &Ask, names: &Names) -> Outcome {
        if self.order(id).is_some() {
            return refused(412, "PreconditionFailed", Some(id));
        }
        let same = |order: &&Order| {
            ask.shop_order() == order.external.as_deref().map(|external| (order.channel.as_str(), external))
        };
        if ask.shop_order().is_some()
            && let Some(existing) = self.orders.iter().find(same)
        {
            return refused(409, "DuplicateOrder", Some(&existing.id));
        }
        self.orders.push(Order {
            id: id.to_owned(),
            client: names.client,
            operation: names.operation.clone(),
            body: ask.body.clone(),
            channel: ask.text("channel").to_owned(),
            external: ask.body["externalOrderId"].as_str().map(str::to_owned),
            status: "accepted",
            paid: Decimal::ZERO,
            version: 1,
        });
        self.tell("order.created", id, 1, names);
        order_done(201, "accepted", id)
    }

    fn replace(&mut self, ask: &Ask, names: &Names) -> Outcome {
        let id = ask.target.as_str();
        let Some(old) = self.order(id).cloned() else { return refused(412, "PreconditionFailed", Some(id)) };
        if old.body == ask.body {
            return order_done(200, old.status, id);
        }
        if ask.if_match.as_deref() != Some("*") && ask.if_match != Some(format!("\"{}\"", old.version)) {
            return refused(412, "PreconditionFailed", Some(id));
        }
        let external = old.external.as_deref();
        if (old.channel.as_str(), external) != (ask.text("channel"), ask.body["externalOrderId"].as_str()) {
            return refused(409, "OrderIdentityFixed", Some(id));
        }
        if !["accepted", "rejected"].contains(&old.status) {
            return refused(409, "OrderNotReplaceable", Some(id));
        }
        if old.paid > Decimal::ZERO && old.body["currency"] != ask.body["currency"] {
            return refused(409, "CurrencyMismatch", Some(id));
        }
        if ask.body["totals"].is_object() && decimal(&ask.body["totals"]["gross"]) < old.paid {
            return refused(409, "Overpayment", Some(id));
        }
        let withdrawn = self.withdraw_hand_over(id);
        if withdrawn.is_none() && old.status != "rejected" {
            return refused(409, "OrderNotReplaceable", Some(id));
        }
        let order = self.order_mut(id);
        order.body = ask.body.clone();
        order.operation.clone_from(&names.operation);
        order.status = "accepted";
        order.version += 1;
        if let Some(position) = withdrawn {
            self.tell("order.created", id, position, names);
        } else {
            // What was held back when the ERP refused the order comes after the new hand-over.
            let held_back = |message: &&mut Message| message.order == id && message.state == "parked";
            self.messages.iter_mut().filter(held_back).for_each(|message| message.state = "waiting");
            self.tell("order.replaced", id, 1, names);
        }
        order_done(200, "accepted", id)
    }

    fn cancel(&mut self, ask: &Ask, names: &Names) -> Outcome {
        let id = ask.target.as_str();
        let Some(old) = self.order(id).cloned() else { return refused(404, "OrderNotFound", None) };
        match old.status {
            "accepted" | "confirmed" => {}
            "cancelled" | "cancelling" => return refused(409, "OrderAlreadyCancelled", Some(id)),
            _ => return refused(409, "OrderNotCancellable", Some(id)),
        }
        let state = if self.withdraw(id) { "cancelled" } else { "cancelling" };
        if state == "cancelling" {
            self.tell("order.cancelled", id, old.version + 1, names);
        }
        let order = self.order_mut(id);
        order.status = state;
        order.version += 1;
        for reservation in &mut self.reservations {
            if reservation.order.as_deref() == Some(id) && reservation.state == "reserved" {
                reservation.state = "released";
            }
        }
        order_done(200, state, id)
    }

    /// Withdraws the order's waiting messages, provided that the ERP was not asked for the order yet.
    fn withdraw(&mut self, order: &str) -> bool {
        let not_asked = self.withdraw_hand_over(order).is_some();
        if not_asked {
            let waits =
                |message: &&mut Message| message.order == order && message.state == "waiting" && message.kind != A_MAIL;
            self.messages.iter_mut().filter(waits).for_each(|message| message.state = "withdrawn");
        }
        not_asked
    }

    /// Withdraws the hand-over of the order, if it waits, and tells its place among the order's messages.
    fn withdraw_hand_over(&mut self, order: &str) -> Option<i64> {
        let waits = |message: &&mut Message| message.order == order && message.state == "waiting";
        let hand_over = self.messages.iter_mut().filter(waits).find(|message| HAND_OVERS.contains(&message.kind))?;
        hand_over.state = "withdrawn";
        Some(hand_over.position)
    }

    fn tell(&mut self, kind: &'static str, order: &str, position: i64, names: &Names) {
        let (operation, order) = (names.operation.clone(), order.to_owned());
        self.messages.push(Message { operation, order, kind, position, state: "waiting" });
    }

    fn pay(&mut self, ask: &Ask, names: &Names) -> Outcome {
        let id = ask.text("orderId");
        let Some(order) = self.order(id).cloned() else { return refused(404, "OrderNotFound", None) };
        if !["accepted", "confirmed", "cancelling"].contains(&order.status) {
            return refused(409, "OrderClosed", Some(id));
        }
        let reference = ask.body["reference"].as_str();
        let same = |payment: &Payment| payment.order == id && payment.reference.as_deref() == reference;
        if reference.is_some() && self.payments.iter().any(same) {
            return refused(409, "DuplicatePayment", Some(id));
        }
        if order.body["currency"] != ask.body["currency"] {
            return refused(409, "CurrencyMismatch", Some(id));
        }
        let paid = order.paid + decimal(&ask.body["amount"]);
        if order.body["totals"].is_object() && paid > decimal(&order.body["totals"]["gross"]) {
            return refused(409, "Overpayment", Some(id));
        }
        let changed = self.order_mut(id);
        changed.paid = paid;
        changed.version += 1;
        self.payments.push(Payment {
            id: names.made.clone(),
            operation: names.operation.clone(),
            order: id.to_owned(),
            reference: reference.map(str::to_owned),
            body: ask.body.clone(),
        });
        self.tell("payment.received", id, order.version + 1, names);
        let (id, order) = (names.made.clone(), Some(id.to_owned()));
        Outcome::Done { status: 201, state: "received", id, order, goes_on: false }
    }

    fn send(&mut self, ask: &Ask, names: &Names) -> Outcome {
        let id = ask.text("orderId");
        let Some(order) = self.order(id).cloned() else { return refused(404, "OrderNotFound", None) };
        if !order.body["customer"]["email"].is_string() {
            return refused(409, "NoRecipient", Some(id));
        }
        if ask.text("template") == "payment-received" && order.paid.is_zero() {
            return refused(409, "NothingPaid", Some(id));
        }
        self.mails.push(Mail {
            id: names.made.clone(),
            operation: names.operation.clone(),
            order: id.to_owned(),
            template: ask.text("template").to_owned(),
            locale: ask.body["locale"].as_str().unwrap_or("en").to_owned(),
        });
        self.tell(A_MAIL, id, order.version + 1, names);
        let (id, order) = (names.made.clone(), Some(id.to_owned()));
        // It waits for a mail server, which these tenants do not have.
        Outcome::Done { status: 201, state: "processing", id, order, goes_on: true }
    }

    /// What is reserved of a SKU now.
    pub fn reserved(&self, sku: &str) -> Decimal {
        let holding = self.reservations.iter().filter(|reservation| reservation.state == "reserved");
        holding.flat_map(|reservation| &reservation.lines).filter(|(of, _)| of == sku).map(|(_, qty)| qty).sum()
    }

    fn put_stock(&mut self, ask: &Ask) -> Outcome {
        let (sku, on_hand) = (ask.target.clone(), decimal(&ask.body["onHand"]));
        if on_hand < self.reserved(&sku) {
            return refused(409, "StockBelowReserved", None);
        }
        let known = self.stock.insert(sku.clone(), on_hand);
        let status = if known.is_none() { 201 } else { 200 };
        Outcome::Done { status, state: "stored", id: sku, order: None, goes_on: false }
    }

    fn reserve(&mut self, ask: &Ask, names: &Names) -> Outcome {
        let order = ask.body["orderId"].as_str();
        if let Some(id) = order {
            match self.order(id).map(|order| order.status) {
                None => return refused(404, "OrderNotFound", None),
                Some("accepted" | "confirmed") => {}
                Some(_) => return refused(409, "OrderClosed", order),
            }
        }
        let items = ask.body["items"].as_array().expect("a valid body has items");
        let lines: Vec<(String, Decimal)> =
            items.iter().map(|item| (item["sku"].as_str().unwrap_or("").to_owned(), decimal(&item["qty"]))).collect();
        let lacks = |sku: &String| {
            let asked: Decimal = lines.iter().filter(|(of, _)| of == sku).map(|(_, qty)| qty).sum();
            self.stock.get(sku).is_none_or(|on_hand| asked > on_hand - self.reserved(sku))
        };
        if lines.iter().any(|(sku, _)| lacks(sku)) {
            return refused(409, "InsufficientStock", order);
        }
        self.reservations.push(Reservation {
            id: names.made.clone(),
            operation: names.operation.clone(),
            order: order.map(str::to_owned),
            lines,
            may_expire: ask.body["expiresAt"].is_string(),
            state: "reserved",
        });
        let (id, order) = (names.made.clone(), order.map(str::to_owned));
        Outcome::Done { status: 201, state: "reserved", id, order, goes_on: false }
    }

    fn release(&mut self, id: &str) -> Outcome {
        let Some(found) = self.reservations.iter_mut().find(|reservation| reservation.id == id) else {
            return refused(404, "ReservationNotFound", None);
        };
        if found.state != "reserved" {
            return refused(409, "ReservationAlreadyReleased", found.order.as_deref());
        }
        found.state = "released";
        let order = found.order.clone();
        Outcome::Done { status: 200, state: "released", id: id.to_owned(), order, goes_on: false }
    }
}
