//! Exact decimal numbers: every spelling of one number has one canonical text.
//!
//! The canonical text has no exponent, no trailing zeros after the point, no needless leading zeros and no `-0`. It is
//! part of the fingerprint, version 1, and therefore frozen. No digit is ever lost: nothing here is a binary float.

/// An exact decimal, held as its canonical text: `2`, `-0.05`, `1200`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Number(String);

/// Why a literal is not a number that the service takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// Not of the grammar of RFC 8259 section 6.
    #[error(
        "this is not a JSON number; write it like 2, -2.5 or 2e3 (no leading zeros, no plus sign in front, digits on both sides of the point)"
    )]
    Grammar,
    /// Written out without an exponent it would need more than [`Number::MAX_DIGITS`] digits.
    #[error(
        "this number needs more than {} digits when written out; send a shorter number, or text",
        Number::MAX_DIGITS
    )]
    TooManyDigits,
}

impl Number {
    /// The most digits of a number, before and after the point together, when written out without an exponent.
    /// It keeps `1e999999999` from costing a gigabyte, and is far beyond any quantity or amount.
    pub const MAX_DIGITS: usize = 1_000;

    /// Reads a number literal of JSON (RFC 8259 section 6).
    ///
    /// # Errors
    /// [`NumberError`] says whether the grammar or the length is at fault.
    pub fn from_literal(literal: &str) -> Result<Number, NumberError> {
        let (negative, unsigned) = split_sign(literal);
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, read_exponent(exponent).ok_or(NumberError::Grammar)?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = split_point(mantissa).ok_or(NumberError::Grammar)?;
        if whole.len() > 1 && whole.starts_with('0') {
            return Err(NumberError::Grammar);
        }
        write_out(negative, whole, fraction, exponent).ok_or(NumberError::TooManyDigits)
    }

    /// Reads a decimal written as text, `-?[0-9]+(\.[0-9]+)?`: here leading zeros are allowed and an exponent is not.
    /// Its length is not limited, as it is already written out. `None` for any other text.
    #[must_use]
    pub fn from_decimal(text: &str) -> Option<Number> {
        let (negative, unsigned) = split_sign(text);
        let (whole, fraction) = split_point(unsigned)?;
        Some(place(negative, &strip(whole, fraction), 0))
    }

    /// The canonical text, which is itself a JSON number.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<u32> for Number {
    fn from(value: u32) -> Number {
        Number(value.to_string())
    }
}

/// Significant digits, and how many of them stand before the point (negative: zeros follow the point first).
struct Digits {
    text: String,
    before_point: i64,
}

fn split_sign(text: &str) -> (bool, &str) {
    text.strip_prefix('-').map_or((false, text), |unsigned| (true, unsigned))
}

fn split_point(text: &str) -> Option<(&str, &str)> {
    let (whole, fraction) = match text.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (text, ""),
    };
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    (!whole.is_empty() && all_digits(whole) && all_digits(fraction)).then_some((whole, fraction))
}

/// An exponent too long for an `i32` is as good as the largest one: the number is zero, or has too many digits.
fn read_exponent(text: &str) -> Option<i64> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(sign * i64::from(digits.parse::<i32>().unwrap_or(i32::MAX)))
}

fn strip(whole: &str, fraction: &str) -> Digits {
    let all = format!("{whole}{fraction}");
    let without_leading = all.trim_start_matches('0');
    let leading = all.len() - without_leading.len();
    Digits {
        text: without_leading.trim_end_matches('0').to_owned(),
        before_point: length(whole) - i64::try_from(leading).unwrap_or(i64::MAX),
    }
}

fn write_out(negative: bool, whole: &str, fraction: &str, exponent: i64) -> Option<Number> {
    let digits = strip(whole, fraction);
    let before = (digits.before_point + exponent).max(1);
    let after = (length(&digits.text) - digits.before_point - exponent).max(0);
    let fits = before.saturating_add(after) <= length_limit();
    (fits || digits.text.is_empty()).then(|| place(negative, &digits, exponent))
}

/// Writes the digits with their point; only called where the result is known to be short enough.
fn place(negative: bool, digits: &Digits, exponent: i64) -> Number {
    let Digits { text, before_point } = digits;
    if text.is_empty() {
        return Number("0".to_owned());
    }
    let sign = if negative { "-" } else { "" };
    let point = before_point + exponent;
    let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
    Number(if point <= 0 {
        format!("{sign}0.{}{text}", zeros(-point))
    } else if point >= length(text) {
        format!("{sign}{text}{}", zeros(point - length(text)))
    } else {
        let (whole, fraction) = text.split_at(usize::try_from(point).unwrap_or(0));
        format!("{sign}{whole}.{fraction}")
    })
}

fn length(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}

fn length_limit() -> i64 {
    i64::try_from(Number::MAX_DIGITS).unwrap_or(i64::MAX)
}
