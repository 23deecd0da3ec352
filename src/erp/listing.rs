//! What an ERP has of ours, page by page, for the comparison of both sides. What it cannot tell of an order is absent.

use rust_decimal::Decimal;

/// One page of the orders that an ERP has of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listing {
    /// This kind of ERP cannot list its orders. Perhaps one can be looked up.
    CannotList,
    /// Some orders, in an order that does not change between two pages.
    Page {
        /// The orders of the page.
        orders: Vec<Listed>,
        /// What the next page is asked with; `None` after the last.
        next: Option<String>,
    },
}

/// An order as the ERP has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Our permanent name of it.
    pub reference: String,
    /// The ERP's own name of it.
    pub erp_reference: Option<String>,
    /// ISO 4217, upper case.
    pub currency: Option<String>,
    /// What the customer has to pay, tax included.
    pub total: Option<Decimal>,
    /// The number of its lines.
    pub lines: Option<usize>,
    /// Whether it is cancelled there.
    pub cancelled: bool,
}
