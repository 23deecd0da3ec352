//! What every gateway keeps, whatever ERP is behind it. It knows nothing of the harness, so that it also runs beside a real ERP.

use order_service::db;
use order_service::erp::{Cancelled, Delivery, Gateway, Listed, Listing};
use order_service::outbox::Kind;

/// What an ERP needs to be tried.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    /// The kind of gateway, for messages.
    pub kind: &'a str,
    /// Begins every reference; new to the ERP.
    pub prefix: &'a str,
    /// The code of a product that the ERP has a price for.
    pub sku: &'a str,
    /// The time of the attempts.
    pub now: db::Instant,
    /// A moment before the first of them, by the ERP's clock.
    pub since: db::Instant,
}

impl Trial<'_> {
    /// A message about the order of this number, as the relay hands it to a gateway.
    pub fn delivery(&self, kind: Kind, number: u32) -> Delivery {
        let (reference, sku) = (self.reference(number), self.sku);
        let (name, content) = match kind {
            Kind::OrderCreated | Kind::OrderReplaced => (
                "order",
                format!(r#""order":{{"customerId":"cus_1","items":[{{"sku":"{sku}","qty":2}}],"currency":"EUR"}}"#),
            ),
            Kind::OrderCancelled => ("cancel", r#""reason":"no longer wanted""#.to_owned()),
            Kind::PaymentReceived => (
                "payment",
                r#""payment":{"paymentId":"pay_1","amount":"19","currency":"EUR","method":"card"}"#.to_owned(),
            ),
            Kind::MessageRequested => unreachable!("no gateway ever gets a mail"),
        };
        let payload = format!(
            r#"{{"type":"{}","reference":"{reference}","orderId":"ord_1","occurredAt":"2026-03-02T08:00:00.000Z",{content}}}"#,
            kind.as_str()
        );
        let id = format!("msg_{name}_{reference}");
        Delivery::new((&id, kind), &payload, &"a".repeat(32), (1, self.now)).expect("the payload can be read")
    }

    fn reference(&self, number: u32) -> String {
        format!("{}/a b/{number}", self.prefix)
    }
}

/// Tries a gateway, and fails with the promise that it does not keep. Returns how many orders the ERP has got.
pub async fn keeps_the_promises(gateway: &dyn Gateway, trial: &Trial<'_>) -> usize {
    let kind = trial.kind;
    gateway.ping(trial.now).await.unwrap_or_else(|failure| panic!("{kind}: {failure}"));
    let order = trial.delivery(Kind::OrderCreated, 1);
    assert_eq!(gateway.find(&order).await, Ok(None), "{kind}: nothing is there yet");
    let nothing = gateway.cancel(&trial.delivery(Kind::OrderCancelled, 9)).await;
    assert!(matches!(nothing, Ok(Cancelled::NotFound | Cancelled::Now)), "{kind}: {nothing:?}");

    let first = gateway.create(&order).await.expect(kind);
    assert!(!first.before && first.erp_reference.is_some(), "{kind}: {first:?}");
    let again = gateway.create(&order).await.expect(kind);
    assert!(again.before, "{kind}: a second one is not made");
    let found = gateway.find(&order).await.expect(kind).expect(kind);
    assert!(found.before && found.erp_reference == first.erp_reference, "{kind}: {found:?}");
    assert_eq!(gateway.find(&trial.delivery(Kind::OrderCreated, 2)).await, Ok(None), "{kind}: another order");

    let payment = trial.delivery(Kind::PaymentReceived, 1);
    gateway.receive_payment(&payment).await.expect(kind);
    gateway.receive_payment(&payment).await.expect(kind);
    let cancel = trial.delivery(Kind::OrderCancelled, 1);
    assert_eq!(gateway.cancel(&cancel).await, Ok(Cancelled::Now), "{kind}");
    assert_eq!(gateway.cancel(&cancel).await, Ok(Cancelled::Before), "{kind}");

    let other = trial.delivery(Kind::OrderCreated, 2);
    gateway.create(&other).await.expect(kind);
    let named = gateway.advance(&other).await.expect(kind);
    assert_eq!(gateway.advance(&other).await, Ok(named), "{kind}: to be driven on twice is to be driven on once");
    lists(gateway, trial).await;
    2
}

/// An ERP that can list its orders names each of ours once, on one of its pages.
async fn lists(gateway: &dyn Gateway, trial: &Trial<'_>) {
    let (mut ours, mut after): (Vec<Listed>, Option<String>) = (Vec::new(), None);
    loop {
        match gateway.list(trial.since, after.as_deref()).await.expect(trial.kind) {
            Listing::CannotList => return,
            Listing::Page { orders, next } => {
                ours.extend(orders.into_iter().filter(|order| order.reference.starts_with(trial.prefix)));
                match next {
                    None => break,
                    next => after = next,
                }
            }
        }
    }
    let seen: Vec<(String, bool)> = ours.iter().map(|order| (order.reference.clone(), order.cancelled)).collect();
    assert_eq!(seen, [(trial.reference(1), true), (trial.reference(2), false)], "{}", trial.kind);
}
