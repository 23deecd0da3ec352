//! One line of an order: read access to its completed members.

use crate::json::Json;
use crate::money::exact;
use rust_decimal::Decimal;

/// A line of an order. Lines of a valid [`Order`](super::Order) have a quantity, a kind, a unit and a price base.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    document: &'a Json,
}

impl<'a> Line<'a> {
    pub(super) fn new(document: &'a Json) -> Line<'a> {
        Line { document }
    }

    /// The whole line.
    #[must_use]
    pub fn document(self) -> &'a Json {
        self.document
    }

    /// The shop's id of the line. Where lines have one, it and not the SKU is the line's identity.
    #[must_use]
    pub fn line_id(self) -> Option<&'a str> {
        self.document.text("lineId")
    }

    /// The `lineId` of the line that this one belongs to.
    #[must_use]
    pub fn parent_line_id(self) -> Option<&'a str> {
        self.document.text("parentLineId")
    }

    /// What the line is: `product`, `shipping`, `fee`, `discount`, `gift_card`, `deposit` or `rounding`.
    #[must_use]
    pub fn kind(self) -> &'a str {
        self.document.text("kind").unwrap_or_default()
    }

    /// The stock keeping unit.
    #[must_use]
    pub fn sku(self) -> Option<&'a str> {
        self.document.text("sku")
    }

    /// What the customer saw.
    #[must_use]
    pub fn name(self) -> Option<&'a str> {
        self.document.text("name")
    }

    /// The quantity as exact decimal text.
    #[must_use]
    pub fn qty(self) -> &'a str {
        self.document.text("qty").unwrap_or_default()
    }

    /// The unit of the quantity, a UN/ECE code.
    #[must_use]
    pub fn unit(self) -> &'a str {
        self.document.text("unit").unwrap_or_default()
    }

    /// The price of `priceBaseQty` units.
    #[must_use]
    pub fn unit_price(self) -> Option<Decimal> {
        self.document.text("unitPrice").and_then(exact)
    }

    /// The sender's total of the line, after discounts.
    #[must_use]
    pub fn total(self) -> Option<Decimal> {
        self.document.text("total").and_then(exact)
    }
}
