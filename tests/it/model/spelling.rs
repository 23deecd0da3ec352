//! Other spellings of the same request, by the table of the contract: what a client may change between two tries without
//! changing what it asks for.

use std::collections::BTreeSet;
use std::fmt::Write;

use proptest::prelude::*;
use proptest::sample::subsequence;
use serde_json::{Map, Value};

/// One way to write the same thing differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Twist {
    /// Members in the reverse order.
    Reversed,
    /// White space between all tokens.
    Blanks,
    /// Every character of every string as `\uXXXX`.
    Escapes,
    /// Decimals as text with zeros at both ends.
    ZerosInText,
    /// Decimals as numbers.
    Numbers,
    /// Decimals as numbers with zeros at the end.
    ZerosInNumbers,
    /// Decimals as numbers with an exponent.
    Exponents,
    /// Currency codes in lower case.
    LowerCase,
    /// Optional members that are absent as `null`.
    Nulls,
    /// Default values written out.
    Defaults,
    /// Instants with another offset.
    Offset,
    /// The idempotency key as a quoted string.
    QuotedKey,
    /// Characters of the path escaped that need not be.
    EscapedPath,
    /// No body at all for `{}`.
    NoBody,
}

const ALL: [Twist; 14] = [
    Twist::Reversed,
    Twist::Blanks,
    Twist::Escapes,
    Twist::ZerosInText,
    Twist::Numbers,
    Twist::ZerosInNumbers,
    Twist::Exponents,
    Twist::LowerCase,
    Twist::Nulls,
    Twist::Defaults,
    Twist::Offset,
    Twist::QuotedKey,
    Twist::EscapedPath,
    Twist::NoBody,
];

/// A set of twists; of several for the same thing the first counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spelling(BTreeSet<Twist>);

/// Mostly the plain form, else any mixture.
pub fn any_spelling() -> BoxedStrategy<Spelling> {
    let plain = Just(Spelling::default());
    let twisted = subsequence(ALL.to_vec(), 1..=5).prop_map(|twists| Spelling(twists.into_iter().collect()));
    prop_oneof![2 => plain, 3 => twisted].boxed()
}

/// Members that are decimals, wherever they stand outside the open bag.
const DECIMALS: [&str; 4] = ["qty", "onHand", "amount", "gross"];
/// Members that are instants.
const INSTANTS: [&str; 1] = ["expiresAt"];
/// The open bag, in which every value is content.
const BAG: &str = "extensions";

impl Spelling {
    /// These twists.
    pub fn of<const N: usize>(twists: [Twist; N]) -> Self {
        Self(BTreeSet::from(twists))
    }

    fn has(&self, twist: Twist) -> bool {
        self.0.contains(&twist)
    }

    /// The idempotency key as it stands in the header.
    pub fn key(&self, key: &str) -> String {
        if self.has(Twist::QuotedKey) { format!("\"{}\"", key.replace('"', "\\\"")) } else { key.to_owned() }
    }

    /// One segment of a path.
    pub fn segment(&self, segment: &str) -> String {
        let mut path = String::new();
        for byte in segment.bytes() {
            let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
            if plain && !self.has(Twist::EscapedPath) {
                path.push(char::from(byte));
            } else {
                write!(path, "%{byte:02X}").expect("text takes text");
            }
        }
        path
    }

    /// A body in the plain form, as JSON text; `None` for a body that may be left out and is. `optional` are the members
    /// that a body of this command may have and that are `null` when they are absent; `defaults` those of an order.
    pub fn body(&self, body: &Value, optional: &[&str], is_order: bool) -> Option<String> {
        let mut body = body.clone();
        if self.has(Twist::NoBody) && body == Value::Object(Map::new()) {
            return None;
        }
        if self.has(Twist::Defaults) && is_order {
            write_defaults(&mut body);
        }
        if self.has(Twist::Nulls) {
            let members = body.as_object_mut().expect("a body is an object");
            for name in optional {
                members.entry(*name).or_insert(Value::Null);
            }
        }
        let mut text = String::new();
        self.write(&mut text, "", &body, false);
        Some(text)
    }

    fn write(&self, text: &mut String, name: &str, value: &Value, in_bag: bool) {
        let blank = if self.has(Twist::Blanks) { "\r\n\t " } else { "" };
        match value {
            Value::Object(members) => {
                let mut members: Vec<(&String, &Value)> = members.iter().collect();
                if self.has(Twist::Reversed) {
                    members.reverse();
                }
                text.push('{');
                for (index, (member, value)) in members.into_iter().enumerate() {
                    text.push_str(if index > 0 { "," } else { "" });
                    text.push_str(blank);
                    self.write_string(text, member);
                    text.push_str(blank);
                    text.push(':');
                    self.write(text, member, value, in_bag || member == BAG);
                }
                text.push_str(blank);
                text.push('}');
            }
            Value::Array(elements) => {
                text.push('[');
                for (index, element) in elements.iter().enumerate() {
                    text.push_str(if index > 0 { "," } else { "" });
                    text.push_str(blank);
                    self.write(text, name, element, in_bag);
                }
                text.push(']');
            }
            Value::String(content) if !in_bag => self.write_text(text, name, content),
            Value::String(content) => self.write_string(text, content),
            Value::Number(number) if self.has(Twist::ZerosInNumbers) => write!(text, "{number}.0").expect("text"),
            other => write!(text, "{other}").expect("text"),
        }
    }

    fn write_text(&self, text: &mut String, name: &str, content: &str) {
        if DECIMALS.contains(&name) {
            return self.write_decimal(text, content);
        }
        match name {
            "currency" if self.has(Twist::LowerCase) => self.write_string(text, &content.to_lowercase()),
            name if INSTANTS.contains(&name) && self.has(Twist::Offset) => {
                let instant = chrono::DateTime::parse_from_rfc3339(content).expect("the plain form has instants");
                let east = chrono::FixedOffset::east_opt(5400).expect("an hour and a half");
                self.write_string(text, &instant.with_timezone(&east).to_rfc3339());
            }
            _ => self.write_string(text, content),
        }
    }

    fn write_decimal(&self, text: &mut String, decimal: &str) {
        let point = if decimal.contains('.') { "" } else { "." };
        let zeros = format!("{decimal}{point}00");
        let fraction = decimal.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let digits = decimal.replace('.', "");
        let digits = if digits.len() > 1 { digits.trim_start_matches('0') } else { &digits };
        if self.has(Twist::ZerosInText) {
            let (sign, unsigned) = zeros.split_at(usize::from(zeros.starts_with('-')));
            self.write_string(text, &format!("{sign}00{unsigned}"));
        } else if self.has(Twist::Numbers) {
            text.push_str(decimal);
        } else if self.has(Twist::ZerosInNumbers) {
            text.push_str(&zeros);
        } else if self.has(Twist::Exponents) {
            write!(text, "{digits}e-{fraction}").expect("text takes text");
        } else {
            self.write_string(text, decimal);
        }
    }

    fn write_string(&self, text: &mut String, content: &str) {
        if !self.has(Twist::Escapes) {
            return write!(text, "{}", Value::from(content)).expect("text takes text");
        }
        text.push('"');
        for unit in content.encode_utf16() {
            write!(text, "\\u{unit:04x}").expect("text takes text");
        }
        text.push('"');
    }
}

fn write_defaults(order: &mut Value) {
    order["pricesIncludeTax"] = false.into();
    for item in order["items"].as_array_mut().into_iter().flatten() {
        item["kind"] = "product".into();
        item["unit"] = "C62".into();
        item["priceBaseQty"] = "1.0".into();
        item["taxes"] = Value::Array(Vec::new());
    }
}
