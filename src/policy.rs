//! The idempotency policy: what a client may rely on, as one value. It is answered by `GET /v1/idempotency-policy`, and stands
//! at the top of the contract document as `x-idempotency`; both are written from here.

use std::time::Duration;

use serde::Serialize;

use crate::command::fingerprint;
use crate::command::key;
use crate::config::Config;
use crate::problem::{CATALOGUE, Code, Kept};

/// What becomes of an idempotency key, and for how long. Windows count from the moment the operation became final.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// The header that carries the key.
    pub key_header: &'static str,
    /// What is a key.
    pub key: KeySyntax,
    /// What together names one intent.
    pub scope: &'static [&'static str],
    /// How two requests with one key are compared.
    pub fingerprint: FingerprintRule,
    /// Which answers are recorded and replayed.
    pub recorded: Recorded,
    /// How long the recorded answer is replayed: an ISO 8601 duration.
    pub replay_window: String,
    /// The same in whole seconds, rounded down.
    pub replay_window_seconds: u64,
    /// How long a spent key is remembered, from the same moment: an ISO 8601 duration.
    pub key_memory: String,
    /// The same in whole seconds, rounded down.
    pub key_memory_seconds: u64,
    /// From when both windows count.
    pub windows_count_from: &'static str,
    /// How long a request waits for a rival of its key before it is answered with 202: an ISO 8601 duration. `Prefer: wait`
    /// can make it shorter.
    pub wait_limit: String,
    /// The same in whole seconds, rounded down.
    pub wait_limit_seconds: u64,
}

/// What is a key.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeySyntax {
    /// A regular expression (ECMA-262) over the header's value without the blanks around it.
    pub pattern: &'static str,
    /// The fewest characters, without the quotes of the quoted form.
    pub min_length: usize,
    /// The most characters, without the quotes of the quoted form.
    pub max_length: usize,
    /// Whether `a` and `A` are two keys.
    pub case_sensitive: bool,
    /// What to use where there is a choice.
    pub recommended: &'static str,
}

/// How two requests with one key are compared.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FingerprintRule {
    /// The version that new keys are stored with. A stored fingerprint is compared by the rules of its own version.
    pub version: &'static str,
    /// What is compared; everything else, such as credentials and tracing, is not.
    pub covers: &'static [&'static str],
}

/// Which answers are recorded under the key, and replayed.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recorded {
    /// Whether 2xx answers of commands that were carried out are. 202 is none of these.
    pub successes: bool,
    /// The refusals that are.
    pub errors: Vec<Code>,
    /// The errors that are not: the key is as free or as taken as it was.
    pub never: Vec<Code>,
}

impl Policy {
    /// The policy of a service with these settings.
    #[must_use]
    pub fn of(config: &Config) -> Policy {
        Policy {
            key_header: "Idempotency-Key",
            key: KeySyntax {
                pattern: key::PATTERN,
                min_length: 1,
                max_length: key::MAX_LENGTH,
                case_sensitive: true,
                recommended: "UUID",
            },
            scope: &["tenant", "client", "command", "key"],
            fingerprint: FingerprintRule {
                version: fingerprint::CURRENT_VERSION,
                covers: &["method", "route", "path parameters", "If-Match", "If-None-Match", "normalised body"],
            },
            recorded: Recorded { successes: true, errors: codes(Kept::Recorded), never: codes(Kept::NotRecorded) },
            replay_window: iso_8601(config.replay_window),
            replay_window_seconds: config.replay_window.as_secs(),
            key_memory: iso_8601(config.key_memory),
            key_memory_seconds: config.key_memory.as_secs(),
            windows_count_from: "the moment the operation became final",
            wait_limit: iso_8601(config.wait_limit),
            wait_limit_seconds: config.wait_limit.as_secs(),
        }
    }
}

fn codes(kept: Kept) -> Vec<Code> {
    CATALOGUE.iter().filter(|entry| entry.kept == kept).map(|entry| entry.code).collect()
}

/// A duration as ISO 8601 writes it: `P7D`, `PT1H30M`, `PT0.25S`. Only units of a fixed length are used.
fn iso_8601(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (days, hours, minutes, seconds) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    let part = |value: u64, unit: &str| if value == 0 { String::new() } else { format!("{value}{unit}") };
    let date = part(days, "D");
    let fraction = match duration.subsec_nanos() {
        0 => part(seconds, "S"),
        nanos => format!("{seconds}.{}S", format!("{nanos:09}").trim_end_matches('0')),
    };
    let time = part(hours, "H") + &part(minutes, "M") + &fraction;
    match (date.is_empty(), time.is_empty()) {
        (true, true) => "PT0S".to_owned(),
        (_, true) => format!("P{date}"),
        (_, false) => format!("P{date}T{time}"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::iso_8601;

    #[test]
    fn durations_are_written_as_iso_8601_without_units_of_varying_length() {
        let day = 86_400_000;
        for (millis, text) in [
            (0, "PT0S"),
            (250, "PT0.25S"),
            (5_000, "PT5S"),
            (90_000, "PT1M30S"),
            (7 * day, "P7D"),
            (400 * day, "P400D"),
            (day + 3_600_000 + 1, "P1DT1H0.001S"),
        ] {
            assert_eq!(iso_8601(Duration::from_millis(millis)), text);
        }
    }
}
