//! Quantities of stock: exact, in whole millionths, so that both databases add and compare them as integers.

use std::fmt;

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use crate::money::exact;
use crate::schema::{DecimalRule, Sign};

/// What a body may say of a quantity that is reserved: more than nothing, 9 digits before the point and 6 after it.
pub const ASKED: DecimalRule = DecimalRule::new(9, FRACTION_DIGITS as usize, Sign::Positive);

/// What a body may say of a quantity on hand: as [`ASKED`], and nothing too.
pub const ON_HAND: DecimalRule = DecimalRule::new(9, FRACTION_DIGITS as usize, Sign::NotNegative);

/// Digits after the point.
const FRACTION_DIGITS: u32 = 6;

/// An exact quantity in millionths. With at most 9 digits before the point even the sum of a thousand lines fits in 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity(pub(super) i64);

impl Quantity {
    /// Nothing.
    pub const ZERO: Quantity = Quantity(0);

    /// The quantity in a decimal text; `None` when it is none, or follows neither [`ASKED`] nor [`ON_HAND`].
    #[must_use]
    pub fn from_decimal(text: &str) -> Option<Quantity> {
        if !ON_HAND.admits(text) {
            return None;
        }
        let mut decimal = exact(text)?;
        decimal.rescale(FRACTION_DIGITS);
        decimal.mantissa().to_i64().map(Quantity)
    }

    /// The sum, at most as much as can be held.
    #[must_use]
    pub fn plus(self, other: Quantity) -> Quantity {
        Quantity(self.0.saturating_add(other.0))
    }

    /// What is left without `other`; nothing, when that is more.
    #[must_use]
    pub fn minus(self, other: Quantity) -> Quantity {
        Quantity(self.0.saturating_sub(other.0).max(0))
    }
}

/// Decimal text without trailing zeros: `2`, `0.5`.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Decimal::new(self.0, FRACTION_DIGITS).normalize())
    }
}

#[cfg(test)]
mod tests {
    use super::Quantity;

    #[test]
    fn every_decimal_of_the_rule_keeps_its_value() {
        for (text, shown) in [
            ("0", "0"),
            ("2.00", "2"),
            ("0.000001", "0.000001"),
            ("007.5", "7.5"),
            ("999999999.999999", "999999999.999999"),
            ("1.50000000", "1.5"),
        ] {
            let quantity = Quantity::from_decimal(text).unwrap();
            assert_eq!(quantity.to_string(), shown, "{text}");
        }
        assert_eq!(Quantity::from_decimal("1"), Some(Quantity(1_000_000)));
    }

    #[test]
    fn what_the_rule_does_not_admit_is_no_quantity() {
        for text in ["", "-1", "1e3", "1000000000", "0.0000001", "x"] {
            assert_eq!(Quantity::from_decimal(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_left_is_never_negative() {
        assert_eq!(Quantity(2).minus(Quantity(3)), Quantity::ZERO);
        assert_eq!(Quantity(3).minus(Quantity(2)), Quantity(1));
    }
}
