//! The way of a message to a customer, on both databases, by a mail server that does what the test asks of it.

mod answers;
mod channels;
mod commands;
mod killed;
mod set;
mod unknown;

use serde_json::{Value, json};

use crate::harness::http::Caller;
use crate::harness::relay::operation;
use crate::harness::smtp::{FakeSmtp, connect_mail};
use crate::harness::world::{TENANT, World};

/// A shop that may do everything, of a tenant that sends its mails by this server.
fn shop_with_mail(world: &World, server: &FakeSmtp) -> Caller {
    let shop = mail_shop(world);
    connect_mail(world, TENANT, server);
    shop
}

/// A shop that may do everything, of a tenant that has no mail server.
fn mail_shop(world: &World) -> Caller {
    let scopes = [
        "orders:write",
        "orders:read",
        "payments:write",
        "messages:write",
        "messages:read",
        "operations:read",
        "operations:manage",
    ];
    world.caller(TENANT, "shop", &scopes)
}

/// Creates an order of this customer; returns its id.
async fn order_of(shop: &Caller, key: &str, customer: &Value) -> String {
    let body = json!({
        "customer": customer, "currency": "EUR", "externalOrderNumber": format!("№{key} 😀"),
        "items": [{"sku": "ABC", "name": "Käse", "qty": 2, "total": "39.90"}], "totals": {"gross": "39.90"}
    });
    let answer = shop.post("/v1/orders", key, &body).await.expect(201).json();
    answer["orderId"].as_str().expect("every answer has it").to_owned()
}

/// Creates an order of a customer who has an address; returns its id.
async fn order(shop: &Caller, key: &str) -> String {
    order_of(shop, key, &json!({"name": "Jürgen Groß", "email": "jana@customer.example", "locale": "de-AT"})).await
}

/// Tells of a payment of 10 EUR for an order.
async fn pay(shop: &Caller, key: &str, order_id: &str) {
    let payment = json!({"orderId": order_id, "amount": "10", "currency": "EUR", "method": "card"});
    shop.post("/v1/payments", key, &payment).await.expect(201);
}

/// Asks for a message; returns its id and its operation's.
async fn ask(shop: &Caller, key: &str, order_id: &str, template: &str) -> (String, String) {
    let answer = shop.post("/v1/messages", key, &json!({"orderId": order_id, "template": template})).await.expect(201);
    let answer = answer.json();
    assert_eq!(answer["status"], "processing");
    let text = |name: &str| answer[name].as_str().expect("every answer has it").to_owned();
    (text("messageId"), text("operationId"))
}

/// The status of a message and of its operation.
async fn stands(shop: &Caller, (message_id, operation_id): (&str, &str)) -> (String, String) {
    let message = shop.get(&format!("/v1/messages/{message_id}")).await.expect(200).json();
    assert_eq!(message["operationId"], operation_id);
    let status = |value: &Value| value["status"].as_str().expect("everything has one").to_owned();
    (status(&message), status(&operation(shop, operation_id).await))
}

/// The outcomes of the attempts to send a mail.
fn outcomes(operation: &Value) -> Vec<&str> {
    let attempts = operation["mail"]["attempts"].as_array().expect("the operation has a mail");
    attempts.iter().map(|attempt| attempt["outcome"].as_str().unwrap_or("none")).collect()
}
