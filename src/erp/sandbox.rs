//! An ERP inside this process, for the first run and for demonstrations. It takes every order and forgets it with the
//! process. The member `extensions."sandbox.fault"` of an order makes it fail in a way that can be watched.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::{Cancelled, Delivery, Failure, Gateway, Pending, Taken, Verification};
use crate::db;
use crate::json::Json;
use crate::outbox::Kind;

/// The name of this kind of connection.
pub const KIND: &str = "sandbox";

/// The attempts that fail of an order with the fault `down`, before the sandbox is up again.
const DOWN_FOR: i32 = 3;

/// How long an order with the fault `slow` takes.
const SLOW: Duration = Duration::from_secs(3);

/// The orders of every tenant: by tenant and reference, whether it is cancelled.
type Orders = Arc<Mutex<HashMap<(String, String), bool>>>;

/// The sandbox of a process.
#[derive(Clone, Debug, Default)]
pub struct Sandbox {
    orders: Orders,
}

impl Sandbox {
    /// The sandbox as one tenant sees it.
    #[must_use]
    pub fn of(&self, tenant_id: &str) -> TenantSandbox {
        TenantSandbox { tenant_id: tenant_id.to_owned(), orders: Arc::clone(&self.orders) }
    }
}

/// The sandbox of one tenant.
#[derive(Clone, Debug)]
pub struct TenantSandbox {
    tenant_id: String,
    orders: Orders,
}

/// How an order can ask to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The order is taken and the answer is lost, once.
    LostAnswer,
    /// The sandbox is away for the first attempts.
    Down,
    /// The order is refused for good.
    Refuse,
    /// The answer takes its time.
    Slow,
    /// The order is there already, as if an earlier attempt had arrived.
    Duplicate,
}

impl Fault {
    fn asked_for(delivery: &Delivery) -> Option<Fault> {
        let extensions = delivery.document.get("order").and_then(|order| order.get("extensions"))?;
        match extensions.get("sandbox.fault").and_then(Json::as_text)? {
            "lost-answer" => Some(Fault::LostAnswer),
            "down" => Some(Fault::Down),
            "refuse" => Some(Fault::Refuse),
            "slow" => Some(Fault::Slow),
            "duplicate" => Some(Fault::Duplicate),
            _ => None,
        }
    }
}

impl TenantSandbox {
    fn key(&self, delivery: &Delivery) -> (String, String) {
        (self.tenant_id.clone(), delivery.reference.clone())
    }

    fn store(&self, delivery: &Delivery) -> Taken {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let before = orders.insert(self.key(delivery), false).is_some();
        Taken { erp_reference: Some(number_of(delivery)), before }
    }

    async fn take(&self, delivery: &Delivery) -> Result<Taken, Failure> {
        match Fault::asked_for(delivery) {
            Some(Fault::LostAnswer) => match self.store(delivery) {
                known @ Taken { before: true, .. } => Ok(known),
                _ => Err(Failure::Unknown("the sandbox took the order and lost its answer, as asked".to_owned())),
            },
            Some(Fault::Down) if delivery.number <= DOWN_FOR => {
                Err(Failure::NotDelivered("the sandbox is down, as asked".to_owned()))
            }
            Some(Fault::Down) | None => Ok(self.store(delivery)),
            Some(Fault::Refuse) => Err(Failure::Refused("the sandbox refuses this order, as asked".to_owned())),
            Some(Fault::Slow) => {
                tokio::time::sleep(SLOW).await;
                Ok(self.store(delivery))
            }
            Some(Fault::Duplicate) => Ok(Taken { before: true, ..self.store(delivery) }),
        }
    }

    fn known(&self, delivery: &Delivery) -> Option<Taken> {
        let orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let found = orders.contains_key(&self.key(delivery));
        found.then(|| Taken { erp_reference: Some(number_of(delivery)), before: true })
    }

    fn undo(&self, delivery: &Delivery) -> Cancelled {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        match orders.insert(self.key(delivery), true) {
            Some(true) => Cancelled::Before,
            Some(false) => Cancelled::Now,
            None => Cancelled::NotFound,
        }
    }
}

/// The number that the sandbox gives an order: made of the reference, so that a restart gives the same one.
fn number_of(delivery: &Delivery) -> String {
    let digest = hex::encode(Sha256::digest(&delivery.reference));
    format!("SANDBOX-{}", digest[..8].to_uppercase())
}

impl Gateway for TenantSandbox {
    fn verification(&self, kind: Kind) -> Verification {
        match kind {
            Kind::OrderCreated | Kind::OrderReplaced => Verification::LookThenSend,
            Kind::OrderCancelled | Kind::PaymentReceived => Verification::SendAgain,
            Kind::MessageRequested => Verification::AskAPerson,
        }
    }

    fn ping(&self, now: db::Instant) -> Pending<'_, String> {
        let _ = now;
        Box::pin(async { Ok("the sandbox is part of this program, and always there".to_owned()) })
    }

    fn find<'a>(&'a self, delivery: &'a Delivery) -> Pending<'a, Option<Taken>> {
        Box::pin(async { Ok(self.known(delivery)) })
    }

    fn create<'a>(&'a self, delivery: &'a Delivery) -> Pending<'a, Taken> {
        Box::pin(self.take(delivery))
    }

    fn cancel<'a>(&'a self, delivery: &'a Delivery) -> Pending<'a, Cancelled> {
        Box::pin(async { Ok(self.undo(delivery)) })
    }

    fn receive_payment<'a>(&'a self, delivery: &'a Delivery) -> Pending<'a, Taken> {
        let _ = delivery;
        Box::pin(async { Ok(Taken::default()) })
    }
}
