//! The order as a value: its table, its rules, and read access for what stores and sends it. No I/O.
//!
//! [`ORDER`] is the body of the commands `orders.create` and `orders.put`. [`Order::parse`] reports every fault of a body
//! at once, those of single members and those of members that must fit together. The sender's figures are never changed.

pub mod id;
mod line;
mod rules;
mod table;
mod totals;

pub use line::Line;
pub use table::{LINE_KINDS, MAX_LINES, ORDER};

use rust_decimal::Decimal;

use crate::json::Json;
use crate::money::{Currency, exact};
use crate::schema::{Fault, Faults};

/// The states of an order.
pub const STATES: &[&str] = &["accepted", "confirmed", "rejected", "cancelling", "cancelled"];

/// The total that an order document asks the customer to pay, where the shop sent one.
#[must_use]
pub fn gross(document: &Json) -> Option<Decimal> {
    document.get("totals")?.text("gross").and_then(exact)
}

/// A valid order, in the form that is stored and given back: decimals as text, instants in UTC, codes in upper case,
/// defaults filled in, absent members absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    document: Json,
    currency: Currency,
}

impl Order {
    /// Reads the body of an order. A stored document reads back to the same order.
    ///
    /// # Errors
    /// Every fault of the body, by JSON Pointer. The list is never empty.
    pub fn parse(body: &Json) -> Result<Order, Vec<Fault>> {
        let mut faults = Faults::default();
        ORDER.check(body, &mut faults);
        rules::check(&ORDER.normal(body), &mut faults);
        let faults = faults.into_vec();
        match body.text("currency").map(str::to_ascii_uppercase).and_then(|code| Currency::from_code(&code)) {
            // The defaults are filled in only now: in a bad body of many empty lines they would take much memory.
            Some(currency) if faults.is_empty() => Ok(Order { document: ORDER.complete(body), currency }),
            _ => Err(faults),
        }
    }

    /// The whole document.
    #[must_use]
    pub fn document(&self) -> &Json {
        &self.document
    }

    /// The document without its lines, for storage beside the lines.
    #[must_use]
    pub fn head(&self) -> Json {
        let members = self.document.as_object().unwrap_or_default();
        Json::Object(members.iter().filter(|(name, _)| name != "items").cloned().collect())
    }

    /// The lines in the order sent.
    pub fn lines(&self) -> impl ExactSizeIterator<Item = Line<'_>> {
        self.document.get("items").and_then(Json::as_array).unwrap_or_default().iter().map(Line::new)
    }

    /// The currency of all amounts.
    #[must_use]
    pub fn currency(&self) -> Currency {
        self.currency
    }

    /// The shop's id of the customer.
    #[must_use]
    pub fn customer_id(&self) -> Option<&str> {
        self.document.text("customerId")
    }

    /// The sales channel; `""` when the order names none, as in the permanent identity (tenant, channel, external id).
    #[must_use]
    pub fn channel(&self) -> &str {
        self.document.text("channel").unwrap_or("")
    }

    /// The shop's technical id of the order.
    #[must_use]
    pub fn external_order_id(&self) -> Option<&str> {
        self.document.text("externalOrderId")
    }

    /// The order number that people see.
    #[must_use]
    pub fn external_order_number(&self) -> Option<&str> {
        self.document.text("externalOrderNumber")
    }

    /// When the customer placed the order: RFC 3339 in UTC.
    #[must_use]
    pub fn placed_at(&self) -> Option<&str> {
        self.document.text("placedAt")
    }
}
