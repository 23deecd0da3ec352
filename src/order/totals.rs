//! The totals of an order against its lines. The sender's figures are kept; they only must not contradict each other.
//!
//! Every comparison allows one minor unit a line, because shops round line by line or once at the end, and both are right.
//! A total is checked only where all figures that it is compared with are there.

use super::table::AMOUNT;
use crate::json::Json;
use crate::money::{Currency, exact, sum};
use crate::schema::{Faults, code};
use rust_decimal::Decimal;

/// The amount in a normalised body; `None` when it is absent, or breaks the rule of amounts and has its own fault.
pub(super) fn amount(value: &Json) -> Option<Decimal> {
    let text = value.as_text().filter(|text| AMOUNT.admits(text))?;
    exact(text)
}

/// Adds the faults of the totals.
pub(super) fn check(body: &Json, lines: &[Json], faults: &mut Faults) {
    let Some(currency) = body.text("currency").and_then(Currency::from_code) else {
        return;
    };
    let Some(totals) = body.get("totals") else {
        return;
    };
    digits_fit_the_currency(totals, currency, faults);
    let Some(lines_total) = sum(lines.iter().map(|line| line.get("total").and_then(amount))) else {
        return;
    };
    let check = Check { totals, tolerance: currency.tolerance(lines.len()), currency, faults };
    if body.get("pricesIncludeTax").and_then(Json::as_bool) == Some(true) {
        check.with_tax_included(lines_total);
    } else {
        check.with_tax_on_top(lines_total, tax_of(lines));
    }
}

fn digits_fit_the_currency(totals: &Json, currency: Currency, faults: &mut Faults) {
    for name in ["net", "tax", "gross", "rounding"] {
        if totals.get(name).and_then(amount).is_some_and(|amount| !currency.can_express(amount)) {
            faults.add(
                format!("/totals/{name}"),
                code::TOO_MANY_DIGITS,
                format!(
                    "An amount of {} has at most {} digits after the point.",
                    currency.code(),
                    currency.minor_digits()
                ),
            );
        }
    }
}

/// The tax of all lines. A line without `taxes` has none; a tax without an amount makes the sum unknown.
fn tax_of(lines: &[Json]) -> Option<Decimal> {
    let taxes = lines.iter().flat_map(|line| line.get("taxes").and_then(Json::as_array).unwrap_or_default());
    sum(taxes.map(|tax| tax.get("amount").and_then(amount)))
}

struct Check<'a> {
    totals: &'a Json,
    tolerance: Decimal,
    currency: Currency,
    faults: &'a mut Faults,
}

impl Check<'_> {
    fn with_tax_included(mut self, lines_total: Decimal) {
        let expected = sum([Some(lines_total), self.rounding()]);
        self.agree("gross", expected, "the sum of the lines' `total` and `rounding`");
    }

    fn with_tax_on_top(mut self, lines_total: Decimal, lines_tax: Option<Decimal>) {
        self.agree("net", Some(lines_total), "the sum of the lines' `total`");
        self.agree("tax", lines_tax, "the sum of the lines' `taxes[].amount`");
        let expected = sum([self.total("net"), self.total("tax"), self.rounding()]);
        self.agree("gross", expected, "`net` + `tax` + `rounding`");
    }

    fn total(&self, name: &str) -> Option<Decimal> {
        self.totals.get(name).and_then(amount)
    }

    /// An absent rounding is none; an invalid one is unknown.
    fn rounding(&self) -> Option<Decimal> {
        self.totals.get("rounding").map_or(Some(Decimal::ZERO), amount)
    }

    fn agree(&mut self, name: &str, expected: Option<Decimal>, what: &str) {
        let (Some(sent), Some(expected)) = (self.total(name), expected) else {
            return;
        };
        if (sent - expected).abs() > self.tolerance {
            self.faults.add(
                format!("/totals/{name}"),
                code::TOTALS_DIFFER,
                format!(
                    "This differs from {what} by more than rounding explains; {} {} is allowed, one minor unit a line.",
                    self.tolerance,
                    self.currency.code()
                ),
            );
        }
    }
}
