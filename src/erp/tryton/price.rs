//! The price of one unit as Tryton takes it: without tax, with at most four decimals, so that the line comes out at the
//! sender's figure. Where four decimals cannot say it, the line is refused, and no figure is changed.

use rust_decimal::Decimal;

use super::known::taxes;
use crate::money::{exact, sum};
use crate::order::Line;

/// The decimals of a price in Tryton, unless its configuration says otherwise (`price_decimal`).
const PRICE_DIGITS: u32 = 4;

/// Why a line has no price that Tryton takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoPrice {
    #[error("its price needs more than {PRICE_DIGITS} decimals, which the ERP does not take")]
    TooFine,
    #[error("its prices include a tax that has neither a rate nor an amount")]
    UnknownTax,
    #[error("its figures are too large")]
    TooLarge,
}

/// The price of one unit of a line, without tax; `None` for a line that tells no price. `minor_digits` are the currency's:
/// Tryton rounds the amount of a line to them.
pub(super) fn unit_price(
    line: Line<'_>,
    qty: Decimal,
    includes_tax: bool,
    minor_digits: u32,
) -> Result<Option<Decimal>, NoPrice> {
    let base = line.document().text("priceBaseQty").and_then(exact).unwrap_or(Decimal::ONE);
    let stated = match line.unit_price() {
        Some(price) => Some(price.checked_div(base).ok_or(NoPrice::TooLarge)?),
        None => None,
    };
    let total = match (line.total(), stated) {
        (Some(total), _) => total,
        (None, Some(stated)) => stated.checked_mul(qty).ok_or(NoPrice::TooLarge)?,
        (None, None) => return Ok(None),
    };
    let net = if includes_tax { without_tax(line, total)? } else { total };
    let wanted = net.round_dp(minor_digits);
    // The stated price comes first: people compare it. After a discount, or with tax in it, it is not what the line costs.
    let stated = stated.filter(|_| !includes_tax);
    let derived = net.checked_div(qty).ok_or(NoPrice::TooLarge)?;
    let candidates = stated.into_iter().chain([derived]).map(|price| price.round_dp(PRICE_DIGITS).normalize());
    for price in candidates {
        let amount = price.checked_mul(qty).ok_or(NoPrice::TooLarge)?;
        if amount.round_dp(minor_digits) == wanted {
            return Ok(Some(price));
        }
    }
    Err(NoPrice::TooFine)
}

/// A total without the taxes in it: by their amounts where each has one, else by their rates.
fn without_tax(line: Line<'_>, total: Decimal) -> Result<Decimal, NoPrice> {
    let member = |name: &'static str| taxes(line).iter().map(move |tax| tax.text(name).and_then(exact));
    if let Some(tax) = sum(member("amount")) {
        return total.checked_sub(tax).ok_or(NoPrice::TooLarge);
    }
    let rate = sum(member("rate")).ok_or(NoPrice::UnknownTax)?;
    total.checked_div(Decimal::ONE + rate / Decimal::ONE_HUNDRED).ok_or(NoPrice::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;
    use crate::order::Order;

    fn price(line: &str, includes_tax: bool) -> Result<Option<String>, NoPrice> {
        let order =
            format!(r#"{{"customerId":"c","currency":"EUR","pricesIncludeTax":{includes_tax},"items":[{line}]}}"#);
        let order = Order::parse(&json::parse(order.as_bytes()).expect("JSON")).expect("it is an order");
        let line = order.lines().next().expect("a line");
        let qty = exact(line.qty()).expect("a quantity");
        unit_price(line, qty, includes_tax, 2).map(|price| price.map(|price| price.to_string()))
    }

    #[test]
    fn a_price_comes_out_at_the_total_of_its_line() {
        for (line, expected) in [
            (r#"{"sku":"A","qty":2,"unitPrice":"19.90"}"#, "19.9"),
            (r#"{"sku":"A","qty":2,"unitPrice":"19.90","total":"39.80"}"#, "19.9"),
            // After a discount the total decides.
            (r#"{"sku":"A","qty":2,"unitPrice":"19.90","total":"35.00"}"#, "17.5"),
            (r#"{"sku":"A","qty":3,"total":"10.00"}"#, "3.3333"),
            (r#"{"sku":"A","qty":"0.5","unit":"KGM","unitPrice":20,"total":"10"}"#, "20"),
            (r#"{"sku":"A","qty":250,"unitPrice":"12.5","priceBaseQty":100}"#, "0.125"),
            (r#"{"sku":"A","qty":2,"unitPrice":"1.666667","total":"3.33"}"#, "1.6667"),
            (r#"{"sku":"A","qty":1,"unitPrice":0}"#, "0"),
            (r#"{"kind":"discount","name":"-","qty":1,"total":"-3.25"}"#, "-3.25"),
        ] {
            assert_eq!(price(line, false), Ok(Some(expected.to_owned())), "{line}");
        }
        assert_eq!(price(r#"{"sku":"A","qty":1}"#, false), Ok(None));
    }

    #[test]
    fn what_four_decimals_cannot_say_is_refused() {
        // A thousand pieces at 0.01001 are 10.01; at 0.0100 they are 10.00.
        assert_eq!(price(r#"{"sku":"A","qty":1000,"total":"10.01"}"#, false), Err(NoPrice::TooFine));
        assert_eq!(price(r#"{"sku":"A","qty":1000,"unitPrice":"0.010014"}"#, false), Err(NoPrice::TooFine));
    }

    #[test]
    fn tax_is_taken_out_by_its_amount_or_by_its_rate() {
        for (line, expected) in [
            (r#"{"sku":"A","qty":1,"unitPrice":"19.90","taxes":[{"rate":19}]}"#, "16.7227"),
            (
                r#"{"sku":"A","qty":3,"unitPrice":"19.90","total":"59.70","taxes":[{"rate":19,"amount":"9.53"}]}"#,
                "16.7233",
            ),
            (r#"{"sku":"A","qty":1,"unitPrice":"5"}"#, "5"),
        ] {
            assert_eq!(price(line, true), Ok(Some(expected.to_owned())), "{line}");
        }
        let without = r#"{"sku":"A","qty":1,"unitPrice":"5","taxes":[{"category":"S"}]}"#;
        assert_eq!(price(without, true), Err(NoPrice::UnknownTax));
    }
}
