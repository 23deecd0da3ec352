//! A history: what each client asked, when, and what it heard. It can be written as lines of JSON, one for each event, in
//! the words of Jepsen: `invoke`, then `ok` (heard) or `info` (nobody knows). What surely had no effect is left out.

use std::fmt::Write;

use serde::Serialize;
use serde_json::json;

/// What a client asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// `POST /v1/orders` with a key.
    Create {
        /// The scope of the key.
        scope: Scope,
        /// Which body: equal numbers are equal intents.
        body: u8,
        /// The order's own identity, where the body has one.
        identity: Option<String>,
    },
    /// `GET /v1/orders?externalOrderId=…`.
    List {
        /// Whose orders.
        tenant: &'static str,
        /// The order's own identity.
        identity: String,
    },
    /// `GET /v1/operations?command=…&idempotencyKey=…`.
    Look {
        /// The scope of the key.
        scope: Scope,
    },
}

/// The scope of a key; the client and the command are always the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Scope {
    /// Whose key it is.
    pub tenant: &'static str,
    /// The key.
    pub key: String,
}

/// What a client hears.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Heard {
    /// 201: the order is made.
    Made(Answer),
    /// 409 `DuplicateOrder`: another key has made it.
    Duplicate(Answer),
    /// 409 `IdempotencyKeyConflict`.
    Conflict,
    /// 202.
    AtWork,
    /// The orders of an identity.
    Orders(Vec<String>),
    /// Whether the key names an operation.
    Known(bool),
    /// What the contract does not know here, such as 500.
    Other(String),
}

/// A recorded answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The order that it names.
    pub order: String,
    /// Status, `Content-Type`, `Location` and body, byte for byte.
    pub text: String,
    /// `Idempotent-Replayed`.
    pub replayed: bool,
}

/// One call, from its beginning to its end.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Who asked.
    pub client: usize,
    /// What.
    pub ask: Ask,
    /// When it was sent: nanoseconds since the run began.
    pub begin: u64,
    /// When and what was heard; `None`: it may have had its effect at any time since, or never.
    pub end: Option<(u64, Heard)>,
}

/// The history as lines of JSON, in the order of time.
pub fn lines(history: &[Entry]) -> String {
    let mut events = Vec::new();
    for entry in history {
        let of = |kind: &str, at: u64| json!({"time": at, "client": entry.client, "type": kind, "ask": entry.ask});
        events.push((entry.begin, of("invoke", entry.begin)));
        match &entry.end {
            Some((at, heard)) => {
                let mut event = of("ok", *at);
                event["heard"] = json!(heard);
                events.push((*at, event));
            }
            None => events.push((u64::MAX, json!({"client": entry.client, "type": "info", "ask": entry.ask}))),
        }
    }
    events.sort_by_key(|(at, _)| *at);
    events.into_iter().fold(String::new(), |mut text, (_, event)| {
        writeln!(text, "{event}").expect("a string takes everything");
        text
    })
}
