//! Values as Tryton's JSON writes them, both ways. An amount is an exact decimal in text; no number becomes a binary float.

use chrono::{Datelike, NaiveDate, Timelike};
use rust_decimal::Decimal;

use crate::db;
use crate::json::{Json, Number};
use crate::money::exact;

pub(super) fn text(value: &str) -> Json {
    Json::Text(value.to_owned())
}

/// The text, or `null` where there is none.
pub(super) fn optional(value: Option<&str>) -> Json {
    value.map_or(Json::Null, text)
}

pub(super) fn integer(value: i64) -> Json {
    number(Decimal::from(value))
}

/// A number with every digit.
pub(super) fn number(value: Decimal) -> Json {
    Json::Number(Number::from_decimal(&value.normalize().to_string()).expect("a decimal is written as a decimal"))
}

pub(super) fn list(values: impl IntoIterator<Item = Json>) -> Json {
    Json::Array(values.into_iter().collect())
}

pub(super) fn object<const N: usize>(members: [(&str, Json); N]) -> Json {
    Json::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

pub(super) fn amount(value: Decimal) -> Json {
    object([("__class__", text("Decimal")), ("decimal", text(&value.to_string()))])
}

pub(super) fn date(day: NaiveDate) -> Json {
    object([
        ("__class__", text("date")),
        ("year", integer(i64::from(day.year()))),
        ("month", integer(i64::from(day.month()))),
        ("day", integer(i64::from(day.day()))),
    ])
}

pub(super) fn instant(moment: db::Instant) -> Json {
    object([
        ("__class__", text("datetime")),
        ("year", integer(i64::from(moment.year()))),
        ("month", integer(i64::from(moment.month()))),
        ("day", integer(i64::from(moment.day()))),
        ("hour", integer(i64::from(moment.hour()))),
        ("minute", integer(i64::from(moment.minute()))),
        ("second", integer(i64::from(moment.second()))),
        ("microsecond", integer(i64::from(moment.nanosecond() / 1_000))),
    ])
}

/// A condition of a domain.
pub(super) fn condition(field: &str, operator: &str, value: Json) -> Json {
    list([text(field), text(operator), value])
}

/// New records inside another.
pub(super) fn made(records: impl IntoIterator<Item = Json>) -> Json {
    list([list([text("create"), list(records)])])
}

/// Links to records that exist.
pub(super) fn linked(ids: &[i64]) -> Json {
    list([list([text("add"), list(ids.iter().copied().map(integer))])])
}

/// What stands at the end of a path of members.
pub(super) fn at<'a>(record: &'a Json, path: &[&str]) -> Option<&'a Json> {
    path.iter().try_fold(record, |record, name| record.get(name)).filter(|value| !value.is_null())
}

/// The id of a record, or any other whole number, at the end of a path.
pub(super) fn id(record: &Json, path: &[&str]) -> Option<i64> {
    at(record, path)?.as_number()?.as_str().parse().ok()
}

/// The ids at the end of a path: of records, or of themselves.
pub(super) fn ids(record: &Json, path: &[&str]) -> Option<Vec<i64>> {
    let each = at(record, path)?.as_array()?.iter();
    each.map(|value| id(value, &[]).or_else(|| id(value, &["id"]))).collect()
}

/// The exact amount at the end of a path.
pub(super) fn decimal(record: &Json, path: &[&str]) -> Option<Decimal> {
    exact(at(record, path)?.text("decimal")?)
}
