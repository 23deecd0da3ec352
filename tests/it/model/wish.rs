//! From a wish, which names things by small numbers, to the very request, which names them by their ids.

use serde_json::{Value, json};

use super::ask::{Ask, Kind};
use super::body::{Fault, SKUS};
use super::contract::{Model, TENANT_OF};
use super::step::{Content, Expires, OrderName, Precondition, Wish};

/// The ids that clients choose. One has a character that only some systems expect in an id.
const CHOSEN: [&str; 2] = ["web-1", "Web_1.b"];

/// An order's id, as this client means it now.
pub fn order_id(model: &Model, client: usize, name: OrderName) -> String {
    let nth = |tenant: usize, nth: usize| {
        let orders = &model.tenants[tenant].orders;
        orders.get(nth % orders.len().max(1)).map(|order| order.id.clone())
    };
    let found = match name {
        OrderName::Nth(number) => nth(TENANT_OF[client], number),
        OrderName::Foreign(number) => nth(1 - TENANT_OF[client], number),
        OrderName::Chosen(number) => Some(CHOSEN[number].to_owned()),
        OrderName::Nobody => None,
        OrderName::NotToChoose => Some("ord_chosen".to_owned()),
    };
    found.unwrap_or_else(|| "ord_nobody".to_owned())
}

/// A reservation's id, as this client means it now.
pub fn reservation_id(model: &Model, client: usize, nth: usize) -> String {
    let reservations = &model.tenant(client).reservations;
    // One number in so many names none.
    let found = reservations.get(nth % (reservations.len() + 1));
    found.map_or_else(|| "rsv_nobody".to_owned(), |reservation| reservation.id.clone())
}

/// The request that this client sends for its wish now.
pub fn ask(model: &Model, client: usize, wish: &Wish) -> Ask {
    match wish {
        Wish::Create(order) => plain(Kind::Create, String::new(), order.value(), order.fault.is_some()),
        Wish::Put { order, precondition, content } => put(model, client, *order, *precondition, content),
        Wish::Cancel { order, reason } => {
            let body = if *reason { json!({"reason": "Ľutujem"}) } else { json!({}) };
            plain(Kind::Cancel, order_id(model, client, *order), body, false)
        }
        Wish::Pay { order, amount, currency, reference } => {
            let mut body = json!({"orderId": order_id(model, client, *order), "amount": amount, "currency": currency,
                "method": "card"});
            if let Some(number) = reference {
                body["reference"] = format!("pi_{number}").into();
            }
            plain(Kind::Pay, String::new(), body, ["0", "1.005"].contains(amount))
        }
        Wish::Stock { sku, on_hand } => {
            plain(Kind::Stock, SKUS[*sku].to_owned(), json!({ "onHand": on_hand }), on_hand.starts_with('-'))
        }
        Wish::Reserve { lines, order, expires } => {
            let items: Vec<Value> = lines.iter().map(|(sku, qty)| json!({"sku": SKUS[*sku], "qty": qty})).collect();
            let mut body = json!({ "items": items });
            if let Some(order) = order {
                body["orderId"] = order_id(model, client, *order).into();
            }
            match expires {
                Some(Expires::Past) => body["expiresAt"] = "2020-01-02T03:04:05Z".into(),
                Some(Expires::Future) => body["expiresAt"] = "2099-01-02T03:04:05Z".into(),
                None => {}
            }
            let invalid = lines.iter().any(|(_, qty)| *qty == "0") || matches!(expires, Some(Expires::Past));
            plain(Kind::Reserve, String::new(), body, invalid)
        }
        Wish::Release { reservation } => {
            plain(Kind::Release, reservation_id(model, client, *reservation), json!({}), false)
        }
        Wish::Send { order, template, locale } => {
            let mut body = json!({"orderId": order_id(model, client, *order), "template": template});
            if let Some(locale) = locale {
                body["locale"] = (*locale).into();
            }
            plain(Kind::Send, String::new(), body, *template == "spam")
        }
    }
}

fn plain(kind: Kind, target: String, body: Value, invalid: bool) -> Ask {
    Ask { kind, target, if_match: None, if_none_match: None, body, invalid }
}

fn put(model: &Model, client: usize, name: OrderName, precondition: Precondition, content: &Content) -> Ask {
    let id = order_id(model, client, name);
    let stands = model.tenant(client).order(&id);
    let smallest = || json!({"customerId": "cus_1", "currency": "EUR", "items": [{"sku": "A", "qty": "1"}]});
    let (body, fault): (Value, Option<Fault>) = match content {
        Content::Of(order) => (order.value(), order.fault),
        Content::AsItStands => (stands.map_or_else(smallest, |order| order.body.clone()), None),
        Content::Noted(number) => {
            let mut body = stands.map_or_else(smallest, |order| order.body.clone());
            body["note"] = number.to_string().into();
            (body, None)
        }
    };
    let version = stands.map_or(1, |order| order.version);
    let (if_match, if_none_match) = match precondition {
        Precondition::Absent => (None, Some("*".to_owned())),
        Precondition::Present => (Some("*".to_owned()), None),
        Precondition::Current => (Some(format!("\"{version}\"")), None),
        Precondition::Stale => (Some(format!("\"{}\"", version - 1)), None),
        Precondition::None => (None, None),
    };
    let chosen_badly = matches!(precondition, Precondition::Absent) && id.starts_with("ord_");
    Ask { if_match, if_none_match, ..plain(Kind::Put, id, body, fault.is_some() || chosen_badly) }
}
