//! The header `Prefer` (RFC 7240): how long the client is willing to wait.

use std::time::Duration;

use actix_web::http::header::HeaderMap;

/// What stands for any larger number of seconds (RFC 9111, section 1.2.2), so that no sum with it can overflow.
const MOST_SECONDS: u64 = 1 << 31;

/// The time of `Prefer: wait=N`, in whole seconds; `None` where the client did not say. The server's own limit is not
/// applied here. What cannot be understood is ignored, because a preference never makes a request fail (section 2), and
/// of a preference that is given twice only the first counts.
#[must_use]
pub fn wait(headers: &HeaderMap) -> Option<Duration> {
    let values = headers.get_all("prefer").filter_map(|value| value.to_str().ok());
    let mut preferences = values.flat_map(|value| split_outside_quotes(value, ','));
    preferences.find_map(value_of_wait).and_then(seconds).map(Duration::from_secs)
}

/// The header that tells the client that its `wait` was heeded, with the seconds that hold (section 3).
#[must_use]
pub fn applied(wait: Duration) -> (&'static str, String) {
    ("preference-applied", format!("wait={}", wait.as_secs()))
}

/// The value of a preference that is a `wait`, empty where it has none; `None` for another preference.
fn value_of_wait(preference: &str) -> Option<&str> {
    let without_parameters = split_outside_quotes(preference, ';').next()?;
    let (name, value) = without_parameters.split_once('=').unwrap_or((without_parameters, ""));
    name.trim().eq_ignore_ascii_case("wait").then(|| unquote(value.trim()))
}

fn seconds(digits: &str) -> Option<u64> {
    let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then(|| digits.parse().unwrap_or(MOST_SECONDS).min(MOST_SECONDS))
}

/// A word may be quoted (section 2): `wait="20"` is `wait=20`.
fn unquote(word: &str) -> &str {
    word.strip_prefix('"').and_then(|word| word.strip_suffix('"')).unwrap_or(word)
}

/// The parts between the separators that are not inside a quoted string (RFC 9110, section 5.6.4).
fn split_outside_quotes(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |character| {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ => return character == separator && !quoted,
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};

    use super::wait;

    fn seconds(values: &[&str]) -> Option<u64> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(HeaderName::from_static("prefer"), HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        wait(&headers).as_ref().map(Duration::as_secs)
    }

    #[test]
    fn a_wait_is_read_in_every_form_that_the_rfc_allows() {
        for value in
            ["wait=20", "wait=\"20\"", "Wait = 20", "WAIT=20;foo=bar", "respond-async, wait=20", " ,, wait=20 ,"]
        {
            assert_eq!(seconds(&[value]), Some(20), "{value}");
        }
        assert_eq!(seconds(&["respond-async", "wait=20"]), Some(20));
        assert_eq!(seconds(&["wait=0"]), Some(0));
    }

    #[test]
    fn other_preferences_and_rubbish_are_ignored() {
        for value in [
            "",
            "respond-async",
            "wait",
            "wait=",
            "wait=-1",
            "wait=+1",
            "wait=1.5",
            "wait=ten",
            "await=20",
            "wait=\"20",
            "foo;wait=20",
            "foo=\"a, wait=20\"",
            "foo=\"\\\", wait=20\"",
            "wait=2 0",
            "ž, wait=20",
        ] {
            assert_eq!(seconds(&[value]), None, "{value}");
        }
        assert_eq!(seconds(&[]), None);
        assert_eq!(seconds(&["foo=\"a, wait=1\", wait=20"]), Some(20));
    }

    #[test]
    fn of_two_waits_the_first_counts() {
        assert_eq!(seconds(&["wait=3, wait=20"]), Some(3));
        assert_eq!(seconds(&["wait=3", "wait=20"]), Some(3));
    }

    #[test]
    fn a_huge_wait_is_a_long_one_and_not_an_error() {
        assert_eq!(seconds(&["wait=99999999999999999999999"]), Some(1 << 31));
    }
}
