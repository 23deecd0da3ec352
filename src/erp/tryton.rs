//! Tryton (8.0 and later, with its module `web_shop`), reached by its REST API. An order is a sale of a web shop: the pair
//! of web shop and `web_id`, our reference, is unique in Tryton's database, and that alone makes one order one sale. A look
//! proves presence and never absence, as an earlier request may still be waiting for a lock.
//!
//! Questions and the customer's party come before the sale, so that a failure there has surely made none.

use std::sync::Arc;

use url::Url;

use super::http::Client;
use super::{Cancelled, Delivery, Failure, Gateway, Listing, Pending, Taken, Verification};
use crate::config::Secrets;
use crate::db;
use crate::json::Json;
use crate::order::Order;
use crate::outbox::Kind;
use crate::outbox::connection::Connection;

mod known;
mod listing;
pub mod options;
mod party;
mod payment;
mod price;
mod rest;
mod sale;
#[cfg(test)]
mod tests;
mod value;

pub(super) use known::Memory;
use known::{Asking, Shelf};
use options::{Options, Payments, Target};
use rest::{Rest, Said};
use sale::{FIELDS, Mapping};

/// The name of this kind of connection.
pub const KIND: &str = "tryton";

const SALE: &str = "sale.sale";
const SHOP: &str = "web.shop";

/// The models that the gateway writes.
const MODELS: [&str; 5] = [SALE, "sale.line", "party.party", "party.address", "ir.note"];

/// The Tryton of one tenant.
#[allow(missing_debug_implementations, reason = "it holds a secret")]
pub struct Tryton {
    rest: Rest,
    options: Options,
    shelf: Arc<Shelf>,
}

/// The web shop whose sales they are.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shop {
    name: String,
    company: i64,
    company_name: String,
    /// The currency of the company, in which Tryton's own prices are.
    currency: String,
}

/// Tryton at the time of one attempt.
struct Session<'a> {
    rest: Rest,
    shop: Shop,
    options: &'a Options,
    shelf: &'a Shelf,
    now: Option<db::Instant>,
}

impl Tryton {
    pub(super) fn open(
        connection: &Connection,
        client: &Client,
        secrets: &Secrets,
        memory: &Memory,
    ) -> Result<Tryton, Failure> {
        let wrong = |text: String| Failure::Misconfigured(text);
        let url = connection.url.as_deref().ok_or_else(|| wrong("Tryton needs a URL".to_owned()))?;
        let name = connection.secret_name.as_deref();
        let name = name.ok_or_else(|| wrong("Tryton needs a key: the secret of the connection".to_owned()))?;
        let key = secrets.get(name).ok_or_else(|| wrong(format!("the variable {name} is not set")))?;
        let options = Options::read(&connection.options)?;
        let url: Url = client.check(url)?;
        let shelf = memory.of(&format!("{} {url} {}", connection.tenant_id, connection.options));
        Ok(Tryton { rest: Rest::new(client, url, (name, key))?, options, shelf })
    }

    async fn session(&self, now: Option<db::Instant>) -> Result<Session<'_>, Failure> {
        let rest = now.map_or_else(|| self.rest.clone(), |now| self.rest.at(now));
        let shop = self.shop(&rest, now).await?;
        let rest = rest.of_company(shop.company);
        Ok(Session { rest, shop, options: &self.options, shelf: &self.shelf, now })
    }

    async fn shop(&self, rest: &Rest, now: Option<db::Instant>) -> Result<Shop, Failure> {
        let id = self.options.web_shop;
        let known = self.shelf.get(SHOP, &id.to_string(), now);
        let row = if let Some(row) = known { row } else { self.ask_for_shop(rest, now).await? };
        let text = |path: &[&str]| value::at(&row, path).and_then(Json::as_text).unwrap_or_default().to_owned();
        let company = value::id(&row, &["company", "id"]);
        let company = company.ok_or_else(|| {
            Failure::Misconfigured(format!("the user of the key does not see the company of web shop {id}"))
        })?;
        if let Some(other) = self.options.company.filter(|other| i64::from(*other) != company) {
            return Err(Failure::Misconfigured(format!(
                "web shop {id} is of company {company}, not of company {other}"
            )));
        }
        let company_name = text(&["company", "party", "name"]);
        Ok(Shop { name: text(&["name"]), company, company_name, currency: text(&["company", "currency", "code"]) })
    }

    async fn ask_for_shop(&self, rest: &Rest, now: Option<db::Instant>) -> Result<Json, Failure> {
        let id = self.options.web_shop;
        let row = rest.record(SHOP, i64::from(id), &["name", "company.party.name", "company.currency.code"]).await?;
        let Some(row) = row else {
            let rows = rest.search(SHOP, value::list([]), &["name"]).await.unwrap_or_default();
            let shops =
                rows.iter().filter_map(|row| Some(format!("{} '{}'", value::id(row, &["id"])?, row.text("name")?)));
            let shops = shops.collect::<Vec<_>>().join(", ");
            let shops =
                if shops.is_empty() { "none; check the name of the database in the URL".to_owned() } else { shops };
            return Err(Failure::Misconfigured(format!("there is no web shop {id}; the user of the key sees {shops}")));
        };
        self.shelf.put(SHOP, &id.to_string(), &row, now);
        Ok(row)
    }

    /// Says who answers, and whether the user of the key may do what the gateway does.
    async fn greet(&self) -> Result<String, Failure> {
        // A model that is not there is a failure of Tryton's, and could be any other.
        let session = self.session(None).await.map_err(|failure| match failure {
            Failure::NotDelivered(detail) if detail.contains("answered") => Failure::NotDelivered(format!(
                "{detail}; is the database up, and are its modules sale and web_shop activated?"
            )),
            other => other,
        })?;
        session.check_rights().await?;
        let Shop { name, company_name, .. } = &session.shop;
        Ok(format!("Tryton answers: web shop '{name}' of {company_name}, and the key may write sales"))
    }
}

/// The order of a hand-over.
fn order_of(delivery: &Delivery) -> Result<Order, Failure> {
    let order = delivery.document.get("order").and_then(|order| Order::parse(order).ok());
    order.ok_or_else(|| Failure::Conflict("the stored message has no order that can be read".to_owned()))
}

impl Session<'_> {
    /// Makes sure that the user of the key may do what the gateway does. Tryton refuses what is not allowed as it refuses a bad
    /// order, and no order must be lost to a right that lacks.
    async fn check_rights(&self) -> Result<(), Failure> {
        let question = value::object([("models", value::list(MODELS.map(value::text)))]);
        let Said::Done(access) = self.rest.call("ir.model.access", "get_access", &question).await? else {
            return Err(Failure::Misconfigured("the user of the key may not ask for its rights".to_owned()));
        };
        // Tryton answers 1 where its database has no truth values.
        let allowed = |answer: &Json| {
            answer.as_bool().unwrap_or_else(|| answer.as_number().is_some_and(|number| number.as_str() != "0"))
        };
        for model in MODELS {
            for right in ["read", "create", "write"] {
                if !value::at(&access, &[model, right]).is_some_and(allowed) {
                    return Err(Failure::Misconfigured(format!(
                        "the user of the key may not {right} {model}; add the group Sales to it"
                    )));
                }
            }
        }
        Ok(())
    }

    /// The sale of a reference, as far as Tryton shows it now.
    async fn find(&self, reference: &str) -> Result<Option<Json>, Failure> {
        let domain = value::list([
            value::condition("web_shop", "=", value::integer(i64::from(self.options.web_shop))),
            value::condition("web_id", "=", value::text(reference)),
        ]);
        Ok(self.rest.search(SALE, domain, FIELDS).await?.into_iter().next())
    }

    /// Finds the sale of an order, and makes sure that it is the same.
    async fn known(&self, reference: &str, order: &Order) -> Result<Option<Taken>, Failure> {
        let Some(sale) = self.find(reference).await? else { return Ok(None) };
        same(&sale, order)?;
        Ok(Some(Taken { erp_reference: sale::name(&sale), before: true }))
    }

    async fn create(&self, delivery: &Delivery) -> Result<Taken, Failure> {
        let made = self.make(delivery).await;
        if let Err(Failure::Refused(_)) = made {
            self.check_rights().await?;
        }
        made
    }

    /// The loop that is safe: look, make, and look once more when it is refused.
    async fn make(&self, delivery: &Delivery) -> Result<Taken, Failure> {
        let order = order_of(delivery)?;
        if let Some(taken) = self.known(&delivery.reference, &order).await? {
            return Ok(taken);
        }
        let asking =
            Asking { rest: &self.rest, options: self.options, shop: &self.shop, shelf: self.shelf, now: self.now };
        let known = known::gather(&asking, &order).await?;
        let mapping = Mapping { order: &order, known: &known, options: self.options, shop: &self.shop };
        // What cannot become a sale leaves no customer behind.
        mapping.currency()?;
        mapping.lines()?;
        let code = party::code(&order, self.options.web_shop, &delivery.reference);
        let buyer = party::buyer(&self.rest, &order, &code, &known.countries).await?;
        let sale = mapping.sale(&delivery.reference, delivery.document.text("occurredAt"), &buyer)?;
        match self.rest.create(SALE, &sale, FIELDS).await? {
            Said::Done(sale) => {
                same(&sale, &order)?;
                Ok(Taken { erp_reference: sale::name(&sale), before: false })
            }
            // It may be refused because it is there: an earlier request, or a rival's, has been faster.
            Said::Refused(text) => match self.known(&delivery.reference, &order).await? {
                Some(taken) => Ok(taken),
                None => Err(Failure::Refused(text)),
            },
            Said::Missing => Err(Failure::Misconfigured("the ERP has no sales at this address".to_owned())),
        }
    }

    /// Drives a sale on, one step after the other, and returns its name at the end.
    async fn advance(&self, reference: &str) -> Result<Option<String>, Failure> {
        let mut sale = self
            .find(reference)
            .await?
            .ok_or_else(|| Failure::Unknown("the ERP does not show the sale that it has taken".to_owned()))?;
        while let Some(button) = next_step(&sale, self.options.target)? {
            let id = value::id(&sale, &["id"]).ok_or_else(no_id)?;
            let said = self.rest.press((SALE, id), button, FIELDS).await?;
            let before = state(&sale).to_owned();
            // The answer to a button is of before the processing that it starts; the sale itself is asked.
            let now = self.find(reference).await?;
            sale = now.ok_or_else(|| Failure::Conflict("the sale has just been deleted in the ERP".to_owned()))?;
            if state(&sale) == before {
                let name = sale::name(&sale).unwrap_or_default();
                let text = if let Said::Refused(text) = said { text } else { "it gave no reason".to_owned() };
                return Err(Failure::Conflict(format!(
                    "the ERP has the sale ({name}, {before}) and does not {button} it: {text}"
                )));
            }
        }
        Ok(sale::name(&sale))
    }

    async fn cancel(&self, reference: &str) -> Result<Cancelled, Failure> {
        let Some(sale) = self.find(reference).await? else { return Ok(Cancelled::NotFound) };
        let id = value::id(&sale, &["id"]).ok_or_else(no_id)?;
        let too_late = |sale: &Json, text: &str| {
            let name = sale::name(sale).unwrap_or_default();
            Cancelled::TooLate(format!("the sale {name} is {} in the ERP{text}", state(sale)))
        };
        match state(&sale) {
            "cancelled" => return Ok(Cancelled::Before),
            "draft" | "quotation" => {}
            _ => return Ok(too_late(&sale, "")),
        }
        match self.rest.press((SALE, id), "cancel", FIELDS).await? {
            Said::Done(_) => Ok(Cancelled::Now),
            Said::Refused(text) => match self.find(reference).await? {
                Some(sale) if state(&sale) == "cancelled" => Ok(Cancelled::Now),
                Some(sale) => Ok(too_late(&sale, &format!(": {text}"))),
                None => Ok(Cancelled::NotFound),
            },
            Said::Missing => Ok(Cancelled::NotFound),
        }
    }
}

fn state(sale: &Json) -> &str {
    sale.text("state").unwrap_or_default()
}

fn no_id() -> Failure {
    Failure::NotDelivered("the ERP's answer has no id".to_owned())
}

/// The sale under our reference has to be the order.
fn same(sale: &Json, order: &Order) -> Result<(), Failure> {
    match sale::difference(sale, order) {
        None => Ok(()),
        Some(difference) => {
            let name = sale::name(sale).unwrap_or_default();
            Err(Failure::Conflict(format!("the ERP's sale ({name}) has {difference}")))
        }
    }
}

/// The button that brings a sale nearer to what is wanted of it; `None` when it is there, or further.
fn next_step(sale: &Json, target: Target) -> Result<Option<&'static str>, Failure> {
    match (state(sale), target) {
        ("cancelled", _) => {
            let name = sale::name(sale).unwrap_or_default();
            Err(Failure::Conflict(format!("the sale {name} was cancelled in the ERP")))
        }
        ("draft", Target::Quotation | Target::Confirmed) => Ok(Some("quote")),
        ("quotation", Target::Confirmed) => Ok(Some("confirm")),
        _ => Ok(None),
    }
}

impl Gateway for Tryton {
    fn verification(&self, kind: Kind) -> Verification {
        match kind {
            // Tryton makes one sale of a reference, and cancels one once.
            Kind::OrderCreated | Kind::OrderReplaced | Kind::OrderCancelled => Verification::LookThenSend,
            // Nothing keeps a second note away, so that "not found" has to wait.
            Kind::PaymentReceived => match self.options.payments {
                Payments::Note => Verification::LookAndWait,
                Payments::Ignore => Verification::SendAgain,
            },
            // No gateway ever gets a mail.
            Kind::MessageRequested => Verification::AskAPerson,
        }
    }

    fn ping(&self, now: db::Instant) -> Pending<'_, String> {
        let _ = now;
        Box::pin(self.greet())
    }

    fn find<'a>(&'a self, delivery: &'a Delivery) -> Pending<'a, Option<Taken>> {
        Box::pin(async {
            let session = self.session(Some(delivery.now)).await?;
            match delivery.kind {
                Kind::OrderCreated | Kind::OrderReplaced => {
                    session.known(&delivery.reference, &order_of(delivery)?).await
                }
                Kind::PaymentReceived => session.find_note(delivery).await,
                Kind::MessageRequested => Ok(None),
                Kind::OrderCancelled => {
                    let sale = session.find(&delivery.reference).await?.filter(|sale| state(sale) == "cancelled");
                    Ok(sale.map(|_| Taken { erp_reference: None, before: true }))
                }
            }
        })
    }

    fn create<'a>(&'a self, delivery: &'a Delivery) -> Pending<'a, Taken> {
        Box::pin(async { self.session(Some(delivery.now)).await?.create(delivery).await })
    }

    fn advance<'a>(&'a self, delivery: &'a Delivery) -> Pending<'a, Option<String>> {
        Box::pin(async { self.session(Some(delivery.now)).await?.advance(&delivery.reference).await })
    }

    fn cancel<'a>(&'a self, delivery: &'a Delivery) -> Pending<'a, Cancelled> {
        Box::pin(async { self.session(Some(delivery.now)).await?.cancel(&delivery.reference).await })
    }

    fn receive_payment<'a>(&'a self, delivery: &'a Delivery) -> Pending<'a, Taken> {
        Box::pin(async {
            match self.options.payments {
                Payments::Ignore => Ok(Taken::default()),
                Payments::Note => self.session(Some(delivery.now)).await?.note_payment(delivery).await,
            }
        })
    }

    fn list<'a>(&'a self, since: db::Instant, after: Option<&'a str>) -> Pending<'a, Listing> {
        Box::pin(async move { self.session(None).await?.list(since, after).await })
    }
}
