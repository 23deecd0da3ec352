//! Money: exact decimals, and currencies with their minor units.
//!
//! Amounts are `rust_decimal` values, which hold 28 digits. The schemas admit 15 digits before the point and 6 after it,
//! so that even the sum of a thousand lines is exact. Nothing here rounds: the sender's figures are kept.

use iso_currency::Flag;
use rust_decimal::Decimal;

/// A currency of ISO 4217 in which something can be paid.
///
/// Codes without a minor unit are not taken: metals (`XAU`), units of account (`XDR`, `XUA`), the test code `XTS` and the
/// non-currency `XXX`. An amount in them could not be checked, and no shop sells in them. Funds codes (`CHE`) and currencies
/// that another has replaced (`HRK`, `BGN`) are taken: old orders are sent too, and the ERP knows what it accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Currency {
    code: iso_currency::Currency,
    minor_digits: u32,
}

impl Currency {
    /// The currency with this code in upper case.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Currency> {
        let code = iso_currency::Currency::from_code(code)?;
        let minor_digits = u32::from(code.exponent()?);
        (!code.flags().contains(&Flag::Special)).then_some(Currency { code, minor_digits })
    }

    /// The three letters, in upper case.
    #[must_use]
    pub fn code(self) -> &'static str {
        self.code.code()
    }

    /// The digits after the point of an amount: JPY 0, EUR 2, KWD 3.
    #[must_use]
    pub fn minor_digits(self) -> u32 {
        self.minor_digits
    }

    /// The smallest amount, such as 0.01 EUR.
    #[must_use]
    pub fn minor_unit(self) -> Decimal {
        Decimal::new(1, self.minor_digits)
    }

    /// Whether `amount` has no more digits after the point than the currency; trailing zeros do not count.
    #[must_use]
    pub fn can_express(self, amount: Decimal) -> bool {
        amount.normalize().scale() <= self.minor_digits
    }

    /// The difference that rounding line by line may leave in a sum: one minor unit a line.
    #[must_use]
    pub fn tolerance(self, lines: usize) -> Decimal {
        self.minor_unit() * Decimal::from(lines)
    }
}

/// The exact value of a decimal text; `None` when it is none, or has more digits than can be held exactly (28).
#[must_use]
pub fn exact(text: &str) -> Option<Decimal> {
    Decimal::from_str_exact(text).ok()
}

/// The exact sum; `None` when one of the amounts is not known, or the sum cannot be held.
#[must_use]
pub fn sum(amounts: impl IntoIterator<Item = Option<Decimal>>) -> Option<Decimal> {
    amounts.into_iter().try_fold(Decimal::ZERO, |sum, amount| sum.checked_add(amount?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(text: &str) -> Decimal {
        exact(text).expect("the test writes decimals")
    }

    #[test]
    fn a_currency_expresses_amounts_of_its_minor_unit_whatever_zeros_trail() {
        for (code, digits, fits, too_fine) in
            [("JPY", 0, "12.000", "12.5"), ("EUR", 2, "12.3400", "12.345"), ("KWD", 3, "12.3450", "12.3456")]
        {
            let currency = Currency::from_code(code).expect("it is a currency");
            assert_eq!((currency.code(), currency.minor_digits()), (code, digits));
            assert!(currency.can_express(amount(fits)), "{code} {fits}");
            assert!(!currency.can_express(amount(too_fine)), "{code} {too_fine}");
        }
    }

    #[test]
    fn the_tolerance_is_one_minor_unit_a_line() {
        let tolerance = |code: &str, lines| Currency::from_code(code).map(|currency| currency.tolerance(lines));
        assert_eq!(tolerance("JPY", 3), Some(amount("3")));
        assert_eq!(tolerance("EUR", 3), Some(amount("0.03")));
        assert_eq!(tolerance("KWD", 1_000), Some(amount("1")));
    }

    #[test]
    fn money_is_taken_in_currencies_that_have_a_minor_unit_and_in_no_others() {
        for code in ["EUR", "RUB", "CHE", "HRK", "CLF"] {
            assert!(Currency::from_code(code).is_some(), "{code}");
        }
        for code in ["XAU", "XDR", "XTS", "XXX", "XAD", "eur", "EU", ""] {
            assert!(Currency::from_code(code).is_none(), "{code}");
        }
    }

    #[test]
    fn a_sum_is_exact_or_unknown() {
        assert_eq!(sum(vec![exact("0.1"); 10]), Some(amount("1")));
        assert_eq!(sum([exact("1"), None]), None);
        assert_eq!(sum([Some(Decimal::MAX), exact("1")]), None);
        assert_eq!(exact("0.12345678901234567890123456789"), None, "29 digits cannot be held exactly");
    }
}
