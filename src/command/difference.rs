//! What a conflict can say without showing anything: which members of the body differ from those of the first request.
//! Beside each recorded answer lie truncated keyed digests of the top-level members; they go when the answer goes.

use std::collections::BTreeMap;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::fingerprint::{Fingerprint, Intent};
use crate::json::Json;
use crate::schema::Fault;

/// Bytes of a digest that are kept: enough that a difference is not missed, too few to search for a value.
const KEPT_BYTES: usize = 8;

/// The most members that are compared of those that the command does not know, and the most bytes of their names: a body
/// that is not valid cannot make the record long.
const MAX_UNKNOWN: usize = 20;
const MAX_UNKNOWN_NAME: usize = 64;

/// The digests of the top-level members of a normalised body, as a JSON text.
///
/// Each is keyed with the fingerprint, so that equal values in two orders have different digests.
///
/// # Panics
/// Never: a map of text can be written.
#[must_use]
pub fn member_digests(asked: &Intent, fingerprint: &Fingerprint) -> String {
    serde_json::to_string(&digests(asked, fingerprint.as_str())).expect("a map of text")
}

fn digests(asked: &Intent, key: &str) -> BTreeMap<String, String> {
    let Json::Object(members) = asked.table.normal(&asked.body) else { return BTreeMap::new() };
    let (known, mut others): (Vec<_>, Vec<_>) =
        members.into_iter().partition(|(name, _)| asked.table.member(name).is_some());
    others.retain(|(name, _)| name.len() <= MAX_UNKNOWN_NAME);
    others.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    others.truncate(MAX_UNKNOWN);
    known.into_iter().chain(others).map(|(name, value)| (name, digest(key, &value))).collect()
}

fn digest(key: &str, value: &Json) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).expect("a key of any length is allowed");
    mac.update(value.canonical().as_bytes());
    hex::encode(&mac.finalize().into_bytes()[..KEPT_BYTES])
}

/// The members of `asked` that are not what the first request sent: a JSON Pointer for each, never a value. `stored` are
/// the digests of the first request, and `fingerprint` is its fingerprint. Empty when the body is the same, and the
/// difference lies in the path or in a precondition.
#[must_use]
pub fn differences(asked: &Intent, stored: &str, fingerprint: &str) -> Vec<Fault> {
    let Ok(first) = serde_json::from_str::<BTreeMap<String, String>>(stored) else { return Vec::new() };
    let present = digests(asked, fingerprint);
    let mut names: Vec<&String> = first.keys().chain(present.keys()).collect();
    names.sort_unstable();
    names.dedup();
    names
        .into_iter()
        .filter(|name| first.get(*name) != present.get(*name))
        .map(|name| Fault {
            pointer: format!("/{}", name.replace('~', "~0").replace('/', "~1")),
            code: "Differs",
            message: "This member is not what the first request with this key sent.".to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;
    use crate::order::ORDER;

    fn asked(body: &str) -> Intent {
        Intent {
            method: "POST",
            route: "/v1/orders",
            parameters: Vec::new(),
            if_match: None,
            if_none_match: None,
            table: &ORDER,
            body: parse(body.as_bytes()).unwrap(),
        }
    }

    fn pointers(first: &str, second: &str) -> Vec<String> {
        let first = asked(first);
        let fingerprint = Fingerprint::of(&first);
        let stored = member_digests(&first, &fingerprint);
        differences(&asked(second), &stored, fingerprint.as_str()).into_iter().map(|fault| fault.pointer).collect()
    }

    #[test]
    fn members_that_are_changed_added_or_left_out_are_named() {
        let first = r#"{"currency":"EUR","note":"a","items":[{"sku":"A","qty":1}]}"#;
        let second = r#"{"currency":"EUR","items":[{"sku":"A","qty":2}],"a/b~c":1}"#;
        assert_eq!(pointers(first, second), ["/a~1b~0c", "/items", "/note"]);
    }

    #[test]
    fn a_body_of_unknown_members_has_a_short_record() {
        let members: Vec<String> = (0..5_000).map(|number| format!(r#""m{number}":1"#)).collect();
        let long_name = "n".repeat(MAX_UNKNOWN_NAME + 1);
        let body = format!(r#"{{"note":"a",{},"{long_name}":1}}"#, members.join(","));
        assert_eq!(pointers(&body, r#"{"note":"a"}"#).len(), MAX_UNKNOWN);
    }

    #[test]
    fn another_spelling_is_no_difference() {
        assert!(
            pointers(r#"{"currency":"eur","items":[{"qty":"2.0"}]}"#, r#"{"items":[{"qty":2}],"currency":"EUR"}"#)
                .is_empty()
        );
    }

    #[test]
    fn the_digest_of_a_value_tells_nothing_about_another_order() {
        let digest_of_note = |body: &str| {
            let asked = asked(body);
            digests(&asked, Fingerprint::of(&asked).as_str())["note"].clone()
        };
        assert_ne!(digest_of_note(r#"{"note":"x"}"#), digest_of_note(r#"{"note":"x","channel":"y"}"#));
    }
}
