//! A tenant whose ERP is a real one: its shop, its orders, and the relays that bring them.

use std::net::SocketAddr;

use order_service::config::{Config, Secrets};
use order_service::erp::tryton::options::{Options, Target};
use order_service::outbox::Channel;
use order_service::outbox::connection::Wanted;
use serde_json::{Value, json};

use crate::harness::http::Caller;
use crate::harness::relay::{FAST, HandRelay, relay_config, set};
use crate::harness::world::{TENANT, World};
use crate::tryton::Tryton;

/// The variable that holds the key.
pub const KEY: &str = "ORDERS_SECRET_TRYTON";

/// A sale takes its time on a busy machine, and the ERP is meant to be the slow one.
pub const PATIENT: [(&str, &str); 2] = [("ORDERS_ERP_TIMEOUT", "25s"), ("ORDERS_LEASE", "60s")];

/// A shop that may do everything, of a tenant whose ERP is this Tryton at this address.
pub fn shop_at(world: &World, tryton: &Tryton, address: SocketAddr, target: Target) -> Caller {
    let shop = world.caller(
        TENANT,
        "shop",
        &["orders:write", "orders:read", "payments:write", "operations:read", "operations:manage"],
    );
    let (url, options) = (url(address), Options { target, ..Options::of_web_shop(tryton.web_shop()) }.to_json());
    set(
        world,
        TENANT,
        Channel::Erp,
        &Wanted { kind: "tryton", url: Some(&url), secret_name: Some(KEY), options: &options },
    );
    shop
}

/// As [`shop_at`], at the ERP's own address.
pub fn shop(world: &World, tryton: &Tryton, target: Target) -> Caller {
    shop_at(world, tryton, tryton.address(), target)
}

/// The URL of the connection.
pub fn url(address: SocketAddr) -> String {
    format!("http://{address}/erp")
}

/// A relay that is moved by hand and holds the ERP's key.
pub fn relay(world: &World, tryton: &Tryton, settings: &[(&str, &str)]) -> HandRelay {
    relay_with_key(world, tryton.bearer(), settings)
}

/// A relay that is moved by hand and holds this key.
pub fn relay_with_key(world: &World, key: &str, settings: &[(&str, &str)]) -> HandRelay {
    let settings: Vec<(&str, &str)> = PATIENT.iter().chain(settings).copied().collect();
    let secrets = Secrets::from_iter([(KEY.to_owned(), key.to_owned())]);
    HandRelay::of(&Config { secrets, ..relay_config(world.database(), &settings) })
}

/// The settings of a relay that is a process, or of the command line.
pub fn process_settings<'a>(tryton: &'a Tryton, own: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    FAST.iter().chain(&PATIENT).chain(&[(KEY, tryton.bearer())]).chain(own).copied().collect()
}

/// An order of one line of one customer.
pub fn order(external: &str) -> Value {
    json!({
        "customerId": "cus_123", "currency": "EUR", "channel": "web", "externalOrderId": external,
        "items": [{"sku": "TEE-BLK-M", "qty": 2, "unitPrice": "19.90", "total": "39.80", "taxes": [{"rate": 19, "amount": "7.56"}]}],
        "totals": {"net": "39.80", "tax": "7.56", "gross": "47.36"}
    })
}

/// Sends an order; returns its id and its operation's.
pub async fn create(shop: &Caller, order: &Value) -> (String, String) {
    let key = order["externalOrderId"].as_str().expect("the orders of these tests have a name").to_owned();
    let answer = shop.post("/v1/orders", &key, order).await.expect(201).json();
    let text = |name: &str| answer[name].as_str().expect("every answer has it").to_owned();
    (text("orderId"), text("operationId"))
}
