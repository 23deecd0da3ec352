//! The relay of the tests: it moves only when a test says so, and the clock is moved by moving what the rows say.

use std::sync::Arc;
use std::time::Duration;

use order_service::config::{Config, Secrets};
use order_service::db::{Db, Pool};
use order_service::metrics::{Metrics, PoolConnections};
use order_service::outbox::connection::{self, Wanted};
use order_service::relay::Relay;
use serde_json::Value;

use super::database::Database;
use super::erp::FakeErp;
use super::http::Caller;
use super::settings::config;
use super::world::{TENANT, World};

/// The variable that holds the secret of the tests' webhooks, and what it holds.
pub const SECRET: (&str, &str) = ("ORDERS_SECRET_HOOK", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");

/// What lets a relay of the tests work fast, and with an ERP on this machine.
pub const FAST: [(&str, &str); 6] = [
    ("ORDERS_ERP_ALLOW_PRIVATE", "on"),
    ("ORDERS_ERP_TIMEOUT", "1s"),
    ("ORDERS_LEASE", "20s"),
    ("ORDERS_RETRY_BASE", "1ms"),
    ("ORDERS_RETRY_CAP", "10ms"),
    ("ORDERS_RELAY_INTERVAL", "10ms"),
];

/// The configuration of a relay of the tests.
pub fn relay_config(database: &Database, settings: &[(&str, &str)]) -> Config {
    let all: Vec<(&str, &str)> = FAST.iter().chain(settings).copied().collect();
    let secrets = Secrets::from_iter([(SECRET.0.to_owned(), SECRET.1.to_owned())]);
    Config { secrets, ..config(database.url(), &all) }
}

/// A relay that is moved by hand, and what it counted.
pub struct HandRelay {
    relay: Relay,
    /// Its metrics.
    pub metrics: Arc<Metrics>,
}

impl HandRelay {
    /// A relay on the world's database.
    pub fn new(world: &World, settings: &[(&str, &str)]) -> Self {
        Self::on(world.database(), settings)
    }

    /// A relay on this database.
    pub fn on(database: &Database, settings: &[(&str, &str)]) -> Self {
        let config = relay_config(database, settings);
        let metrics = Arc::new(Metrics::new(PoolConnections::default));
        let pool = Pool::single(&config.database, Duration::from_secs(10));
        Self { relay: Relay::new(&config, pool, Arc::clone(&metrics)), metrics }
    }

    /// One round; returns how many attempts it made.
    pub async fn step(&self) -> usize {
        self.relay.run_once().await.expect("the database of the test works")
    }

    /// Rounds until there is nothing to do any more, without waiting for anything: what is due later counts as due now.
    pub async fn drain(&self, world: &World) {
        for _ in 0..200 {
            make_due(world);
            if self.step().await == 0 {
                return;
            }
        }
        panic!("the relay still finds work after 200 rounds");
    }
}

/// What waits for its next attempt, and a connection that rests, need wait no longer.
pub fn make_due(world: &World) {
    world.database().execute(
        "UPDATE outbox SET next_attempt_at = '2000-01-01 00:00:00' WHERE state = 'waiting'; \
         UPDATE erp_connections SET paused_until = NULL",
    );
}

/// Lets the settle window of every doubt be over.
pub fn end_settle_window(world: &World) {
    world.database().execute("UPDATE outbox SET unknown_since = '2000-01-01 00:00:00' WHERE unknown_since IS NOT NULL");
}

/// Lets every lease be over, as if its relay had died.
pub fn end_leases(world: &World) {
    world.database().execute("UPDATE outbox SET next_attempt_at = '2000-01-01 00:00:00' WHERE state = 'leased'");
}

/// Connects a tenant, which has a client already, to an ERP.
pub fn connect(world: &World, tenant: &str, erp: &FakeErp, unknown_outcome: &str) {
    connect_to(world, tenant, &erp.url(), unknown_outcome);
}

/// Connects a tenant, which has a client already, to a webhook at this address.
pub fn connect_to(world: &World, tenant: &str, url: &str, unknown_outcome: &str) {
    connect_on(world.database(), tenant, url, unknown_outcome);
}

/// As [`connect_to`], on this database.
pub fn connect_on(database: &Database, tenant: &str, url: &str, unknown_outcome: &str) {
    let options = format!(r#"{{"unknownOutcome":"{unknown_outcome}"}}"#);
    set(database, tenant, &Wanted { kind: "webhook", url: Some(url), secret_name: Some(SECRET.0), options: &options });
}

/// Connects a tenant to the sandbox.
pub fn connect_sandbox(world: &World, tenant: &str) {
    set(world.database(), tenant, &Wanted { kind: "sandbox", url: None, secret_name: None, options: "{}" });
}

fn set(database: &Database, tenant: &str, wanted: &Wanted<'_>) {
    let mut db = Db::open(&config(database.url(), &[]).database).expect("the database takes connections");
    connection::set(&mut db, tenant, wanted).expect("the tenant exists");
}

/// A shop that may do everything, of a tenant that is connected to this ERP.
pub fn shop_with(world: &World, erp: &FakeErp, unknown_outcome: &str) -> Caller {
    let shop = world.caller(
        TENANT,
        "shop",
        &["orders:write", "orders:read", "payments:write", "operations:read", "operations:manage", "stock:write"],
    );
    connect(world, TENANT, erp, unknown_outcome);
    shop
}

/// The operation as a client sees it.
pub async fn operation(shop: &Caller, operation_id: &str) -> Value {
    shop.get(&format!("/v1/operations/{operation_id}")).await.expect(200).json()
}

/// The order as a client sees it.
pub async fn order(shop: &Caller, order_id: &str) -> Value {
    shop.get(&format!("/v1/orders/{order_id}")).await.expect(200).json()
}

/// Creates an order with this name in the shop; returns its id and its operation's.
pub async fn create(shop: &Caller, external: &str) -> (String, String) {
    let body = serde_json::json!({
        "customerId": "cus_123", "items": [{"sku": "ABC", "qty": 2}], "currency": "EUR",
        "channel": "web", "externalOrderId": external
    });
    let answer = shop.post("/v1/orders", &format!("key-{external}"), &body).await.expect(201).json();
    let text = |name: &str| answer[name].as_str().expect("every answer has it").to_owned();
    (text("orderId"), text("operationId"))
}

/// The outcomes of an operation's attempts.
pub fn outcomes(operation: &Value) -> Vec<String> {
    let attempts = operation["erp"]["attempts"].as_array().expect("the operation has a message");
    attempts.iter().map(|attempt| attempt["outcome"].as_str().unwrap_or("none").to_owned()).collect()
}
