//! Normalisation, version 1: what of a body is content and what is spelling. **Frozen.**
//!
//! Fingerprints of version 1 are stored with these rules in them; a change here would turn honest retries into
//! conflicts, so another rule is another version beside this one. The rules are total: they never fail, and treat a
//! valid and an invalid body alike, so that a change of a validation rule changes no fingerprint. The stored form is
//! the same walk with the defaults filled in, in the order of the table.

use super::{Kind, Member, Object, Presence, decimal, in_utc};
use crate::json::Json;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Defaults {
    Dropped,
    Filled,
}

impl Object {
    /// The body with every insignificant difference removed; two bodies are the same intent when the
    /// [`canonical`](Json::canonical) texts of their normal forms are equal.
    ///
    /// Of the members in the table: `null` is dropped, and so are a value equal to the default and an empty optional
    /// array. Decimals become canonical text, whether they came as number or as text. Codes become upper case, instants
    /// UTC. Everything else (text, members not in the table, values of a wrong kind, the inside of a bag) is kept as sent.
    #[must_use]
    pub fn normal(&self, body: &Json) -> Json {
        object(self, body, Defaults::Dropped)
    }

    /// The form that is stored and given back: as [`normal`](Object::normal), with the defaults filled in and the
    /// members in the order of the table. Meant for valid bodies, total on all.
    #[must_use]
    pub fn complete(&self, body: &Json) -> Json {
        object(self, body, Defaults::Filled)
    }
}

fn object(table: &Object, body: &Json, defaults: Defaults) -> Json {
    let Json::Object(sent) = body else {
        return body.clone();
    };
    let known = table.members.iter().filter_map(|member| {
        let value = body.get(member.name).map(|value| normalise(&member.kind, value, defaults));
        settle(member, value, defaults).map(|value| (member.name.to_owned(), value))
    });
    let unknown = sent.iter().filter(|(name, _)| table.member(name).is_none()).cloned();
    Json::Object(known.chain(unknown).collect())
}

/// Decides what a member's absence, `null`, default and empty array come to.
fn settle(member: &Member, value: Option<Json>, defaults: Defaults) -> Option<Json> {
    let value = value.filter(|value| !value.is_null());
    match member.presence {
        Presence::Required | Presence::Optional => value.filter(|value| !member.counts_as_absent(value)),
        Presence::Default(text) => {
            let default = default_value(&member.kind, text);
            match defaults {
                Defaults::Filled => Some(value.unwrap_or(default)),
                Defaults::Dropped => value.filter(|value| *value != default),
            }
        }
    }
}

fn default_value(kind: &Kind, text: &str) -> Json {
    match kind {
        Kind::Bool => Json::Bool(text == "true"),
        _ => Json::Text(text.to_owned()),
    }
}

fn normalise(kind: &Kind, value: &Json, defaults: Defaults) -> Json {
    let normal = match (kind, value) {
        (Kind::Decimal(_), value) => decimal::read(value).map(|number| Json::Text(number.as_str().to_owned())),
        // ASCII only: the mapping of other letters depends on the Unicode version of the day.
        (Kind::Currency | Kind::Country, Json::Text(code)) => Some(Json::Text(code.to_ascii_uppercase())),
        (Kind::Instant, Json::Text(text)) => in_utc(text).map(Json::Text),
        (Kind::Object(table), value) => Some(object(table, value, defaults)),
        (Kind::List { of, .. }, Json::Array(elements)) => {
            Some(Json::Array(elements.iter().map(|element| normalise(of, element, defaults)).collect()))
        }
        _ => None,
    };
    normal.unwrap_or_else(|| value.clone())
}
