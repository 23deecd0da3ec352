//! Payments as notes at the sale. A sale has no place for a payment, and a note changes nothing of it: a comment would be
//! printed for the customer, and to write it would undo what a person writes at the same time.

use super::rest::Said;
use super::{Session, value};
use crate::erp::{Delivery, Failure, Taken};

const NOTE: &str = "ir.note";

impl Session<'_> {
    /// The note of a payment, by the message's name in it.
    pub(super) async fn find_note(&self, delivery: &Delivery) -> Result<Option<Taken>, Failure> {
        match self.sale_of_note(delivery).await? {
            Some(sale) => self.note_of(sale, delivery).await,
            None => Ok(None),
        }
    }

    pub(super) async fn note_payment(&self, delivery: &Delivery) -> Result<Taken, Failure> {
        let sale = self.sale_of_note(delivery).await?;
        let sale = sale.ok_or_else(|| Failure::Refused("the ERP has no sale of this order any more".to_owned()))?;
        if let Some(taken) = self.note_of(sale, delivery).await? {
            return Ok(taken);
        }
        let note =
            value::object([("resource", value::text(&resource(sale))), ("message", value::text(&words(delivery)))]);
        match self.rest.create(NOTE, &note, &[]).await? {
            Said::Done(_) => Ok(Taken::default()),
            Said::Refused(text) => Err(Failure::Refused(text)),
            Said::Missing => Err(Failure::Misconfigured("the ERP has no notes at this address".to_owned())),
        }
    }

    async fn sale_of_note(&self, delivery: &Delivery) -> Result<Option<i64>, Failure> {
        Ok(self.find(&delivery.reference).await?.and_then(|sale| value::id(&sale, &["id"])))
    }

    async fn note_of(&self, sale: i64, delivery: &Delivery) -> Result<Option<Taken>, Failure> {
        let domain = value::list([
            value::condition("resource", "=", value::text(&resource(sale))),
            value::condition("message", "like", value::text(&format!("%{}%", delivery.message_id))),
        ]);
        let notes = self.rest.search(NOTE, domain, &["message"]).await?;
        // The underscore of an id is a wildcard to Tryton.
        let found =
            notes.iter().any(|note| note.text("message").is_some_and(|text| text.contains(&delivery.message_id)));
        Ok(found.then_some(Taken { erp_reference: None, before: true }))
    }
}

fn resource(sale: i64) -> String {
    format!("{},{sale}", super::SALE)
}

/// The same in every attempt: what was paid, and the name of the message, by which the note is found again.
fn words(delivery: &Delivery) -> String {
    let payment = delivery.document.get("payment");
    let member = |name: &str| payment.and_then(|payment| payment.text(name)).filter(|text| !text.is_empty());
    let named = |label: &str, name: &str| member(name).map(|text| format!("{label}: {text}"));
    let amount = format!("Payment received: {} {}", member("amount").unwrap_or("?"), member("currency").unwrap_or(""));
    let lines = [
        Some(amount.trim_end().to_owned()),
        named("Method", "method"),
        named("Reference", "reference"),
        named("Paid at", "paidAt"),
        named("Payment", "paymentId"),
        Some(format!("Message: {}", delivery.message_id)),
    ];
    lines.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::words;
    use crate::erp::Delivery;
    use crate::outbox::Kind;

    #[test]
    fn a_note_says_what_was_paid_and_by_which_message_it_is_known() {
        let payload = r#"{"reference":"web/1","payment":{"paymentId":"pay_1","amount":"53.27","currency":"EUR","method":"card","reference":"pi_1"}}"#;
        let now = chrono::NaiveDate::from_ymd_opt(2026, 3, 2).and_then(|day| day.and_hms_opt(8, 0, 0)).expect("a date");
        let delivery =
            Delivery::new(("msg_1", Kind::PaymentReceived), payload, "trace", (1, now)).expect("it can be read");
        assert_eq!(
            words(&delivery),
            "Payment received: 53.27 EUR\nMethod: card\nReference: pi_1\nPayment: pay_1\nMessage: msg_1"
        );
    }
}
