//! What a client asks for, as plain data. Two asks are the same intent exactly when they are equal.

use serde_json::{Value, json};

use super::body::{SKUS, UNKNOWN};

/// The commands, by the table of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `orders.create`
    Create,
    /// `orders.put`
    Put,
    /// `orders.cancel`
    Cancel,
    /// `payments.create`
    Pay,
    /// `stock.put`
    Stock,
    /// `reservations.create`
    Reserve,
    /// `reservations.release`
    Release,
    /// `messages.send`
    Send,
}

impl Kind {
    /// The command's name in the scope of a key.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Create => "orders.create",
            Kind::Put => "orders.put",
            Kind::Cancel => "orders.cancel",
            Kind::Pay => "payments.create",
            Kind::Stock => "stock.put",
            Kind::Reserve => "reservations.create",
            Kind::Release => "reservations.release",
            Kind::Send => "messages.send",
        }
    }

    /// The HTTP method.
    pub fn method(self) -> reqwest::Method {
        match self {
            Kind::Put | Kind::Stock => reqwest::Method::PUT,
            Kind::Create | Kind::Cancel | Kind::Pay | Kind::Reserve | Kind::Release | Kind::Send => {
                reqwest::Method::POST
            }
        }
    }

    /// The path; `target` is a segment of it, escaped already.
    pub fn path(self, target: &str) -> String {
        match self {
            Kind::Create => "/v1/orders".to_owned(),
            Kind::Put => format!("/v1/orders/{target}"),
            Kind::Cancel => format!("/v1/orders/{target}/cancel"),
            Kind::Pay => "/v1/payments".to_owned(),
            Kind::Stock => format!("/v1/stock/{target}"),
            Kind::Reserve => "/v1/reservations".to_owned(),
            Kind::Release => format!("/v1/reservations/{target}/release"),
            Kind::Send => "/v1/messages".to_owned(),
        }
    }

    /// The member of the answer that names what the command is about.
    pub fn id_member(self) -> &'static str {
        match self {
            Kind::Create | Kind::Put | Kind::Cancel => "orderId",
            Kind::Pay => "paymentId",
            Kind::Stock => "sku",
            Kind::Reserve | Kind::Release => "reservationId",
            Kind::Send => "messageId",
        }
    }

    /// Members of the body that are optional, and that no body of the model has with another meaning than its own.
    pub fn optional_members(self) -> &'static [&'static str] {
        match self {
            Kind::Create | Kind::Put => &["shippingAddress", "note", "channel", "externalOrderId", "discounts"],
            Kind::Cancel => &["reason"],
            Kind::Pay => &["reference", "paidAt"],
            Kind::Reserve => &["orderId", "expiresAt"],
            Kind::Send => &["locale"],
            Kind::Stock | Kind::Release => &[],
        }
    }

    /// Whether the body is an order.
    pub fn is_order(self) -> bool {
        matches!(self, Kind::Create | Kind::Put)
    }
}

/// One intent: everything that the fingerprint covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The command.
    pub kind: Kind,
    /// The order, SKU or reservation in the path; empty where the path has none.
    pub target: String,
    /// `If-Match`.
    pub if_match: Option<String>,
    /// `If-None-Match`.
    pub if_none_match: Option<String>,
    /// The body in the plain form of [`super::body`].
    pub body: Value,
    /// Whether the body or the path breaks a rule that does not depend on any state.
    pub invalid: bool,
}

impl Ask {
    /// Text in a member of the body; empty where it is absent.
    pub fn text(&self, member: &str) -> &str {
        self.body[member].as_str().unwrap_or("")
    }

    /// The shop's own name of the order, which is unique for ever: channel and id.
    pub fn shop_order(&self) -> Option<(&str, &str)> {
        Some((self.text("channel"), self.body["externalOrderId"].as_str()?))
    }

    /// Another intent of the same command: with another body, or where `number` is odd and the command has them, with
    /// another path or another precondition.
    pub fn changed(&self, number: usize) -> Ask {
        let mut other = self.clone();
        match self.kind {
            // A body that is not valid stays so; a name that no client may choose is only wrong where it is to be made.
            Kind::Put if number % 2 == 1 && !self.invalid => {
                other.if_none_match = None;
                other.if_match = Some("\"99\"".to_owned());
            }
            Kind::Cancel | Kind::Release | Kind::Stock if number % 2 == 1 => other.target.push('x'),
            Kind::Create | Kind::Put => other.body["note"] = format!("changed {number}").into(),
            Kind::Cancel => other.body["reason"] = format!("changed {number}").into(),
            Kind::Pay => other.body["method"] = format!("changed {number}").into(),
            Kind::Stock => {
                other.body["onHand"] = format!("10{number}").into();
                other.invalid = false;
            }
            Kind::Reserve => {
                let items = other.body["items"].as_array_mut().expect("a reservation has items");
                items.push(json!({"sku": SKUS[0], "qty": format!("0.{number}5")}));
            }
            Kind::Send => {
                other.body["template"] = ["order-cancelled", "no-such-template"][number % 2].into();
                other.invalid = number % 2 == 1;
            }
            Kind::Release => {
                other.body[UNKNOWN[1]] = number.into();
                other.invalid = true;
            }
        }
        other
    }
}

/// An ask of one client under one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The client, as an index of [`super::play::CLIENTS`].
    pub client: usize,
    /// The idempotency key.
    pub key: String,
    /// What it asks for.
    pub ask: Ask,
}
