//! Decimals in a body: a JSON number or text, exact, with limits of digits and sign.

use crate::json::{Json, Number};

/// What decimals a member takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecimalRule {
    /// The most digits before the point, leading zeros not counted.
    pub whole_digits: usize,
    /// The most digits after the point, trailing zeros not counted.
    pub fraction_digits: usize,
    /// Which signs it takes.
    pub sign: Sign,
}

/// Which signs a decimal may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// Greater than zero.
    Positive,
    /// Zero or greater.
    NotNegative,
    /// Any.
    Any,
}

/// Why a decimal breaks its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Breach {
    TooManyDigits,
    TooSmall,
}

impl DecimalRule {
    /// The rule of a quantity, price or amount.
    #[must_use]
    pub const fn new(whole_digits: usize, fraction_digits: usize, sign: Sign) -> DecimalRule {
        DecimalRule { whole_digits, fraction_digits, sign }
    }

    /// Whether `text` is a decimal that follows this rule.
    #[must_use]
    pub fn admits(self, text: &str) -> bool {
        Number::from_decimal(text).is_some_and(|number| self.check(&number).is_ok())
    }

    pub(super) fn check(self, number: &Number) -> Result<(), Breach> {
        let negative = number.as_str().starts_with('-');
        let unsigned = number.as_str().trim_start_matches('-');
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        if whole.len() > self.whole_digits || fraction.len() > self.fraction_digits {
            return Err(Breach::TooManyDigits);
        }
        let too_small = match self.sign {
            Sign::Positive => negative || unsigned == "0",
            Sign::NotNegative => negative,
            Sign::Any => false,
        };
        if too_small { Err(Breach::TooSmall) } else { Ok(()) }
    }
}

/// The exact decimal in a number or in text; `None` when it is neither.
pub(super) fn read(value: &Json) -> Option<Number> {
    match value {
        Json::Number(number) => Some(number.clone()),
        Json::Text(text) => Number::from_decimal(text),
        _ => None,
    }
}
