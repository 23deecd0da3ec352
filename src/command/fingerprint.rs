//! The fingerprint of a command: whether two requests with one key are the same intent.
//!
//! It is a SHA-256 over the parts that make the intent, each with its length in front, so that no two lists of parts
//! have the same bytes. The version stands in front of the digest, `v1:<hex>`, and a stored fingerprint is compared by
//! the rules of its own version: a release that changes the rules must not turn an honest retry into a conflict.
//! Credentials, tracing and transport headers are no part of it.

use crate::json::Json;
use crate::schema::Object;
use sha2::{Digest, Sha256};
use std::fmt;

/// What a client asks for: everything that the fingerprint covers.
#[derive(Debug, Clone)]
pub struct Intent {
    /// The HTTP method, in upper case.
    pub method: &'static str,
    /// The route template, such as `/v1/orders/{orderId}/cancel`.
    pub route: &'static str,
    /// The path parameters, decoded: name and value, in the order of the template.
    pub parameters: Vec<(String, String)>,
    /// The value of `If-Match`; absent is not the same as empty.
    pub if_match: Option<String>,
    /// The value of `If-None-Match`.
    pub if_none_match: Option<String>,
    /// The table of the body, which says what of it is content.
    pub table: &'static Object,
    /// The body as it was parsed; an empty body is `{}` where the command allows it.
    pub body: Json,
}

/// The version that new claims are stored with.
pub const CURRENT_VERSION: &str = "v1";

/// The fingerprint of an intent, by the rules of the present version: `v1:` and 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint(String);

/// A stored fingerprint is of a version that this release does not know: a newer release wrote it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the stored fingerprint has the unknown version {0:?}; a newer release wrote it, finish its rollout or its rollback"
)]
pub struct UnknownVersion(String);

impl Fingerprint {
    /// The fingerprint to store with a new claim.
    #[must_use]
    pub fn of(intent: &Intent) -> Fingerprint {
        VERSIONS.fingerprint(intent)
    }

    /// The text to store.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Intent {
    /// The decoded path parameter `name`; empty when the route has no such parameter.
    #[must_use]
    pub fn parameter(&self, name: &str) -> &str {
        self.parameters.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// Whether `stored` is the fingerprint of this intent, by the rules of the version in front of it.
    ///
    /// # Errors
    /// [`UnknownVersion`] when no rules for that version are known.
    pub fn matches(&self, stored: &str) -> Result<bool, UnknownVersion> {
        VERSIONS.matches(self, stored)
    }
}

/// One version of the rules: its name, and what it hashes.
struct Version {
    name: &'static str,
    digest: fn(&Intent) -> [u8; 32],
}

/// The rules to make fingerprints by, and the older ones to compare by. A version is never removed while a claim of it is remembered.
struct Versions {
    present: Version,
    past: &'static [Version],
}

static VERSIONS: Versions = Versions { present: Version { name: CURRENT_VERSION, digest: digest_v1 }, past: PAST };

/// No older version has ever been released.
#[cfg(not(test))]
const PAST: &[Version] = &[];

/// The tests have one, so that rows of an older version can be met.
#[cfg(test)]
const PAST: &[Version] = &[tests::V0];

impl Versions {
    fn fingerprint(&self, intent: &Intent) -> Fingerprint {
        Fingerprint(format!("{}:{}", self.present.name, hex::encode((self.present.digest)(intent))))
    }

    fn matches(&self, intent: &Intent, stored: &str) -> Result<bool, UnknownVersion> {
        let (name, digest) = stored.split_once(':').unwrap_or(("", stored));
        let version = std::iter::once(&self.present)
            .chain(self.past)
            .find(|version| version.name == name)
            .ok_or_else(|| UnknownVersion(name.to_owned()))?;
        Ok(hex::encode((version.digest)(intent)) == digest)
    }
}

/// Version 1. Frozen, and so is [`Object::normal`], on which it stands.
fn digest_v1(intent: &Intent) -> [u8; 32] {
    let mut parts = Parts(Sha256::new());
    parts.text("v1");
    parts.text(intent.method);
    parts.text(intent.route);
    parts.count(intent.parameters.len());
    for (name, value) in &intent.parameters {
        parts.text(name);
        parts.text(value);
    }
    parts.optional(intent.if_match.as_deref());
    parts.optional(intent.if_none_match.as_deref());
    parts.text(&intent.table.normal(&intent.body).canonical());
    parts.0.finalize().into()
}

/// Feeds parts to the hash so that their boundaries are part of it. Lengths and counts are 8 bytes, big-endian.
struct Parts(Sha256);

impl Parts {
    fn text(&mut self, text: &str) {
        self.count(text.len());
        self.0.update(text.as_bytes());
    }

    fn count(&mut self, count: usize) {
        self.0.update((count as u64).to_be_bytes());
    }

    /// A list of no or one text, so that absent and empty differ.
    fn optional(&mut self, text: Option<&str>) {
        self.count(usize::from(text.is_some()));
        if let Some(text) = text {
            self.text(text);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    //! A release to come, with rules of version 2 beside those of version 1.

    use super::*;
    use crate::json::parse;
    use crate::order::ORDER;

    /// An older version, which had its own idea of what a body is.
    pub(super) const V0: Version = Version { name: "v0", digest: digest_v0 };

    fn digest_v0(intent: &Intent) -> [u8; 32] {
        Sha256::digest(intent.body.canonical()).into()
    }

    /// The fingerprint that the older version would have stored.
    pub fn stored_by_v0(intent: &Intent) -> String {
        format!("v0:{}", hex::encode(digest_v0(intent)))
    }

    /// Rules that differ from version 1 for every body: the body is hashed as it was sent.
    fn digest_v2(intent: &Intent) -> [u8; 32] {
        let mut parts = Parts(Sha256::new());
        parts.text("v2");
        parts.text(intent.method);
        parts.text(&intent.body.to_string());
        parts.0.finalize().into()
    }

    static NEXT_RELEASE: Versions = Versions {
        present: Version { name: "v2", digest: digest_v2 },
        past: &[Version { name: "v1", digest: digest_v1 }],
    };

    fn intent(body: &Json) -> Intent {
        Intent {
            method: "POST",
            route: "/v1/orders",
            parameters: Vec::new(),
            if_match: None,
            if_none_match: None,
            table: &ORDER,
            body: body.clone(),
        }
    }

    fn json(text: &str) -> Json {
        parse(text.as_bytes()).expect("the test sends JSON")
    }

    #[test]
    fn a_row_of_version_1_still_matches_after_an_upgrade_to_version_2() {
        let (sent, retried, other) =
            (json(r#"{"note":"a","items":[{"qty":2}]}"#), json(r#"{"items":[{"qty":"2.0"}],"note":"a"}"#), json("{}"));
        let stored = VERSIONS.fingerprint(&intent(&sent));

        assert!(stored.as_str().starts_with("v1:"));
        assert_eq!(NEXT_RELEASE.matches(&intent(&retried), stored.as_str()), Ok(true));
        assert_eq!(NEXT_RELEASE.matches(&intent(&other), stored.as_str()), Ok(false));
    }

    #[test]
    fn an_upgraded_release_writes_version_2_and_compares_it_by_its_own_rules() {
        let (sent, reordered) = (json(r#"{"note":"a","qty":2}"#), json(r#"{"qty":2,"note":"a"}"#));
        let stored = NEXT_RELEASE.fingerprint(&intent(&sent));

        assert!(stored.as_str().starts_with("v2:"));
        assert_eq!(NEXT_RELEASE.matches(&intent(&sent), stored.as_str()), Ok(true));
        assert_eq!(NEXT_RELEASE.matches(&intent(&reordered), stored.as_str()), Ok(false));
        assert_eq!(VERSIONS.matches(&intent(&sent), stored.as_str()), Err(UnknownVersion("v2".to_owned())));
    }
}
