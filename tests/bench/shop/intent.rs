//! What the shop wants: orders in the shapes that real shops send, and what follows some of them.

use serde_json::{Value, json};

use super::Answer;
use crate::chance;

const SHAPES: [&str; 5] = [
    include_str!("../../payloads/order_in_yen.json"),
    include_str!("../../payloads/order_including_tax.json"),
    include_str!("../../payloads/order_with_promotion.json"),
    include_str!("../../payloads/order_with_six_decimals.json"),
    include_str!("../../payloads/rich_order.json"),
];

/// A command that the shop wants to be carried out once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// Its idempotency key.
    pub key: String,
    /// The command's name.
    pub command: &'static str,
    /// The method.
    pub method: &'static str,
    /// Where it is sent.
    pub path: String,
    /// The body, the same bytes in every attempt.
    pub body: String,
}

/// An order and what may follow it.
pub struct Family {
    /// The order.
    pub order: Intent,
    order_body: Value,
    follows: Follows,
}

enum Follows {
    Nothing,
    SameOrderUnderAnotherKey,
    Payment,
    Cancel,
}

impl Intent {
    /// The creation of an order. Its key is its number in the shop, too, so that a row tells which intent made it.
    pub fn create(key: &str, shape: &Value) -> Self {
        let mut body = shape.clone();
        body["externalOrderNumber"] = key.into();
        Self {
            key: key.to_owned(),
            command: "orders.create",
            method: "POST",
            path: "/v1/orders".to_owned(),
            body: body.to_string(),
        }
    }

    /// The smallest order, which has no permanent identity: the key alone guards it.
    pub fn smallest(key: &str) -> Self {
        Self::create(key, &json!({"customerId": "cus_123", "items": [{"sku": "ABC", "qty": 2}], "currency": "RUB"}))
    }

    /// A payment of one unit of the order's currency.
    pub fn payment(key: &str, order_id: &str, currency: &str) -> Self {
        let body = json!({"orderId": order_id, "amount": 1, "currency": currency, "method": "card", "reference": key});
        Self {
            key: key.to_owned(),
            command: "payments.create",
            method: "POST",
            path: "/v1/payments".to_owned(),
            body: body.to_string(),
        }
    }

    /// The cancelling of an order.
    pub fn cancel(key: &str, order_id: &str) -> Self {
        Self {
            key: key.to_owned(),
            command: "orders.cancel",
            method: "POST",
            path: format!("/v1/orders/{order_id}/cancel"),
            body: json!({"reason": "the customer changed their mind"}).to_string(),
        }
    }

    /// The stock of a SKU.
    pub fn stock(key: &str, sku: &str, on_hand: u32) -> Self {
        Self {
            key: key.to_owned(),
            command: "stock.put",
            method: "PUT",
            path: format!("/v1/stock/{sku}"),
            body: json!({"onHand": on_hand}).to_string(),
        }
    }

    /// A reservation of one piece each, in this order of the lines.
    pub fn reservation(key: &str, skus: [&str; 2]) -> Self {
        let items = skus.map(|sku| json!({"sku": sku, "qty": 1}));
        Self {
            key: key.to_owned(),
            command: "reservations.create",
            method: "POST",
            path: "/v1/reservations".to_owned(),
            body: json!({"items": items}).to_string(),
        }
    }
}

impl Family {
    /// The family of this number. Half of the orders have a permanent identity beside their key; some are not valid.
    pub fn new(seed: u64, number: usize, pays: bool) -> Self {
        let mut rng = chance::of(seed, &["family", &number.to_string()]);
        let key = format!("intent-{seed:x}-{number}");
        let shape = SHAPES[rng.usize(0..SHAPES.len())];
        let mut body: Value = serde_json::from_str(shape).expect("a payload is JSON");
        let has_identity = rng.bool();
        body["externalOrderId"] = if has_identity { key.clone().into() } else { Value::Null };
        if rng.u32(0..100) < 4 {
            body["items"][0]["qty"] = (-1).into();
        }
        let follows = match rng.u32(0..100) {
            0..8 if has_identity => Follows::SameOrderUnderAnotherKey,
            8..23 if pays => Follows::Payment,
            23..33 => Follows::Cancel,
            _ => Follows::Nothing,
        };
        Self { order: Intent::create(&key, &body), order_body: body, follows }
    }

    /// What follows the order, once it is made.
    pub fn follower(&self, answer: &Answer) -> Option<Intent> {
        let made: Value = serde_json::from_str(&answer.body).ok().filter(|_| answer.status == 201)?;
        let order_id = made["orderId"].as_str()?;
        let key = |what: &str| format!("{}-{what}", self.order.key);
        match self.follows {
            Follows::Nothing => None,
            Follows::SameOrderUnderAnotherKey => Some(Intent::create(&key("again"), &self.order_body)),
            Follows::Payment => {
                let currency = self.order_body["currency"].as_str()?.to_uppercase();
                Some(Intent::payment(&key("paid"), order_id, &currency))
            }
            Follows::Cancel => Some(Intent::cancel(&key("cancelled"), order_id)),
        }
    }
}
