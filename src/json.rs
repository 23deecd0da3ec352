//! JSON as the service reads it: strict, exact, and in the order of arrival.
//!
//! A fingerprint must see what the client sent. A general JSON tree has by then lost duplicate members, the digits of
//! large numbers and the difference between two spellings; so this room keeps a tree of its own. Numbers are exact
//! decimals and never pass through binary floats; what is ambiguous is refused (RFC 8259 with the limits of RFC 7493).

mod number;
mod parse;

pub use number::{Number, NumberError};
pub use parse::{MAX_LEVELS, Malformed, parse};

use serde::ser::{Error as _, SerializeMap, SerializeSeq};
use std::fmt::{self, Write};

/// A JSON value. An object keeps its members in the order of arrival and, when it came from [`parse()`], has no name twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An exact decimal; its spelling (`2`, `2.0`, `2e0`) is not kept.
    Number(Number),
    /// Text, exactly as sent; escapes are decoded, nothing is normalised.
    Text(String),
    /// Elements in their order, which is content.
    Array(Vec<Json>),
    /// Members in the order of arrival, which is not content.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// The value of the member `name`, when this is an object that has it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.as_object()?.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The text of the member `name`, when this is an object whose member is text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_text()
    }

    /// The text, when this is text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        if let Json::Text(text) = self { Some(text) } else { None }
    }

    /// The truth value, when this is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        if let Json::Bool(value) = self { Some(*value) } else { None }
    }

    /// The number, when this is one.
    #[must_use]
    pub fn as_number(&self) -> Option<&Number> {
        if let Json::Number(number) = self { Some(number) } else { None }
    }

    /// The elements, when this is an array.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Json]> {
        if let Json::Array(elements) = self { Some(elements) } else { None }
    }

    /// The members in the order of arrival, when this is an object.
    #[must_use]
    pub fn as_object(&self) -> Option<&[(String, Json)]> {
        if let Json::Object(members) = self { Some(members) } else { None }
    }

    /// Whether this is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Json::Null)
    }

    /// The one text that all spellings of this value share: structure, strings and member order (by UTF-16 code
    /// units) follow RFC 8785; numbers are exact decimals without an exponent, which RFC 8785 would round.
    #[must_use]
    pub fn canonical(&self) -> String {
        Canonical(self).to_string()
    }
}

/// Compact JSON text, members in the order they are held.
impl fmt::Display for Json {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(self, formatter, MemberOrder::AsHeld)
    }
}

struct Canonical<'a>(&'a Json);

impl fmt::Display for Canonical<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(self.0, formatter, MemberOrder::Canonical)
    }
}

/// For `serde_json`'s text output, where numbers keep every digit. A conversion to `serde_json::Value` would round them.
impl serde::Serialize for Json {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Json::Null => serializer.serialize_unit(),
            Json::Bool(value) => serializer.serialize_bool(*value),
            Json::Number(number) => serde_json::value::RawValue::from_string(number.as_str().to_owned())
                .map_err(S::Error::custom)?
                .serialize(serializer),
            Json::Text(text) => serializer.serialize_str(text),
            Json::Array(elements) => {
                let mut sequence = serializer.serialize_seq(Some(elements.len()))?;
                elements.iter().try_for_each(|element| sequence.serialize_element(element))?;
                sequence.end()
            }
            Json::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                members.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
                map.end()
            }
        }
    }
}

#[derive(Clone, Copy)]
enum MemberOrder {
    AsHeld,
    Canonical,
}

fn write(value: &Json, out: &mut impl Write, order: MemberOrder) -> fmt::Result {
    match value {
        Json::Null => out.write_str("null"),
        Json::Bool(value) => write!(out, "{value}"),
        Json::Number(number) => out.write_str(number.as_str()),
        Json::Text(text) => write_text(text, out),
        Json::Array(elements) => {
            out.write_char('[')?;
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.write_char(',')?;
                }
                write(element, out, order)?;
            }
            out.write_char(']')
        }
        Json::Object(members) => write_members(members, out, order),
    }
}

fn write_members(members: &[(String, Json)], out: &mut impl Write, order: MemberOrder) -> fmt::Result {
    let mut members: Vec<&(String, Json)> = members.iter().collect();
    if matches!(order, MemberOrder::Canonical) {
        members.sort_by(|(left, _), (right, _)| left.encode_utf16().cmp(right.encode_utf16()));
    }
    out.write_char('{')?;
    for (index, (name, value)) in members.into_iter().enumerate() {
        if index > 0 {
            out.write_char(',')?;
        }
        write_text(name, out)?;
        out.write_char(':')?;
        write(value, out, order)?;
    }
    out.write_char('}')
}

/// `serde_json` escapes exactly what RFC 8785 section 3.2.2.2 asks for; the golden vectors would show a change.
fn write_text(text: &str, out: &mut impl Write) -> fmt::Result {
    out.write_str(&serde_json::to_string(text).expect("text always has a JSON form"))
}
