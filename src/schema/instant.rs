//! Instants: RFC 3339 with an offset, compared and stored in UTC.
//!
//! The grammar is checked here and not by the calendar library, because the result is part of the fingerprint: what the
//! library tolerates may change with its version. The library does the arithmetic only.

use chrono::{Datelike, NaiveDate, NaiveDateTime, TimeDelta};

/// The most digits of a fraction of a second: nanoseconds.
const FRACTION_DIGITS: usize = 9;

/// The same instant in UTC, `2026-03-02T08:15:31.48Z`, without trailing zeros in the fraction. `None` when `text` is not
/// a date and time of RFC 3339 section 5.6 with an offset. Not taken: a space in place of the `T`, the second 60,
/// fractions finer than a nanosecond, and what lies outside the years 1 to 9999 in UTC.
#[must_use]
pub fn in_utc(text: &str) -> Option<String> {
    if !text.is_ascii() || text.len() < "2026-03-02T08:15:31Z".len() {
        return None;
    }
    let (seconds, rest) = text.split_at("2026-03-02T08:15:31".len());
    let (fraction, offset) = split_fraction(rest)?;
    let utc = read_seconds(seconds)?.checked_sub_signed(read_offset(offset)?)?;
    if !(1..=9999).contains(&utc.year()) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    Some(format!("{}{point}{fraction}Z", utc.format("%Y-%m-%dT%H:%M:%S")))
}

fn split_fraction(rest: &str) -> Option<(&str, &str)> {
    let Some(after_point) = rest.strip_prefix('.') else {
        return Some(("", rest));
    };
    let length = after_point.bytes().take_while(u8::is_ascii_digit).count();
    (1..=FRACTION_DIGITS).contains(&length).then(|| after_point.split_at(length))
}

/// `2026-03-02T08:15:31`, each field in its place.
fn read_seconds(text: &str) -> Option<NaiveDateTime> {
    let bytes = text.as_bytes();
    let separators = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    let in_place = separators.iter().all(|&(at, separator)| bytes[at] == separator) && matches!(bytes[10], b'T' | b't');
    if !in_place {
        return None;
    }
    let year = i32::try_from(digits(&text[0..4])?).ok()?;
    let date = NaiveDate::from_ymd_opt(year, digits(&text[5..7])?, digits(&text[8..10])?)?;
    date.and_hms_opt(digits(&text[11..13])?, digits(&text[14..16])?, digits(&text[17..19])?)
}

/// `Z`, or `+01:00` up to 23:59 either way.
fn read_offset(text: &str) -> Option<TimeDelta> {
    if matches!(text, "Z" | "z") {
        return Some(TimeDelta::zero());
    }
    let bytes = text.as_bytes();
    if bytes.len() != 6 || bytes[3] != b':' {
        return None;
    }
    let (hours, minutes) = (digits(&text[1..3])?, digits(&text[4..6])?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    let offset = TimeDelta::minutes(i64::from(hours * 60 + minutes));
    match bytes[0] {
        b'+' => Some(offset),
        b'-' => Some(-offset),
        _ => None,
    }
}

/// A number of digits only; the library would also take a sign.
fn digits(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}
