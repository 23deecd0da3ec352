//! The idempotency key: the client's name for one intent. What is a key and what is not is decided here and nowhere else.

use std::fmt;

use sfv::{BareItem, Item, Parser};

use crate::problem::{Code, Problem};

/// The longest key, in characters, measured after a quoted form was unquoted. Enough for a UUID or a composed name, and
/// short enough for an index.
pub const MAX_LENGTH: usize = 255;

/// The values that are keys, without blanks around them, as a regular expression (ECMA-262): a bare token that does not
/// begin with a quote, or a quoted string (RFC 8941, section 3.3.3) of visible characters.
pub const PATTERN: &str = r#"^(?:[!#-~][!-~]{0,254}|"(?:[!#-\[\]-~]|\\["\\]){1,255}")$"#;

/// A valid key: 1 to 255 visible ASCII characters (0x21 to 0x7E), case-sensitive. It is never cut off or changed, and it
/// can be logged and stored as it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Reads the key from all values of the request's `Idempotency-Key` headers. A quoted string (RFC 8941, section
    /// 3.3.3) and the bare token name the same key. What begins with a quote must be such a string and nothing more;
    /// blanks around the value are no part of it.
    ///
    /// # Errors
    /// `IdempotencyKeyMissing` where the header is absent; `IdempotencyKeyInvalid` where it is repeated, even with equal
    /// values, or is not a key.
    pub fn from_headers(values: &[&[u8]]) -> Result<IdempotencyKey, Problem> {
        match values {
            [] => Err(Problem::new(Code::IdempotencyKeyMissing, "The request has no Idempotency-Key header.")),
            [value] => IdempotencyKey::from_value(value),
            _ => Err(invalid("The Idempotency-Key header is repeated.")),
        }
    }

    fn from_value(value: &[u8]) -> Result<IdempotencyKey, Problem> {
        let value = trim_blanks(value);
        let key = if value.starts_with(b"\"") { unquote(value)?.into_bytes() } else { value.to_vec() };
        if key.is_empty() {
            return Err(invalid("The key is empty."));
        }
        if let Some(position) = key.iter().position(|byte| !byte.is_ascii_graphic()) {
            return Err(invalid(format!("Byte {} of the key is not a visible ASCII character.", position + 1)));
        }
        if key.len() > MAX_LENGTH {
            return Err(invalid(format!("The key has {} characters; at most {MAX_LENGTH} are allowed.", key.len())));
        }
        Ok(IdempotencyKey(String::from_utf8(key).expect("visible ASCII is UTF-8")))
    }

    /// The key as text, without quotes.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn trim_blanks(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// The content of an RFC 8941 string. Parameters are refused: no draft of the header gives them a meaning, and what is
/// ignored today could not get one tomorrow.
fn unquote(value: &[u8]) -> Result<String, Problem> {
    match Parser::new(value).parse::<Item>() {
        Ok(Item { bare_item: BareItem::String(content), params }) if params.is_empty() => Ok(content.into()),
        _ => Err(invalid("The key begins with a quote, but it is not a quoted string and nothing more.")),
    }
}

fn invalid(detail: impl Into<String>) -> Problem {
    Problem::new(Code::IdempotencyKeyInvalid, detail)
}

#[cfg(test)]
mod tests {
    use super::{IdempotencyKey, MAX_LENGTH};
    use crate::problem::Code;

    fn key(value: &[u8]) -> String {
        let key = IdempotencyKey::from_headers(&[value]);
        key.unwrap_or_else(|problem| panic!("{value:?}: {}", problem.detail)).as_str().to_owned()
    }

    fn refusal(values: &[&[u8]]) -> Code {
        IdempotencyKey::from_headers(values).expect_err("this is no key").code
    }

    #[test]
    fn an_absent_header_is_a_missing_key_and_never_an_empty_one() {
        assert_eq!(refusal(&[]), Code::IdempotencyKeyMissing);
    }

    #[test]
    fn an_empty_or_blank_value_is_invalid() {
        for value in ["", " ", "\t", " \t ", "\"\"", " \"\" ", "\" \"", "\"   \""] {
            assert_eq!(refusal(&[value.as_bytes()]), Code::IdempotencyKeyInvalid, "{value:?}");
        }
    }

    #[test]
    fn a_repeated_header_is_invalid_even_when_equal() {
        assert_eq!(refusal(&[b"k1", b"k2"]), Code::IdempotencyKeyInvalid);
        assert_eq!(refusal(&[b"k1", b"k1"]), Code::IdempotencyKeyInvalid);
        assert_eq!(refusal(&[b"k1", b""]), Code::IdempotencyKeyInvalid);
        assert_eq!(refusal(&[b"", b""]), Code::IdempotencyKeyInvalid);
    }

    #[test]
    fn a_list_folded_by_a_proxy_is_invalid_while_a_comma_alone_is_a_character() {
        assert_eq!(refusal(&[b"k1, k2"]), Code::IdempotencyKeyInvalid);
        assert_eq!(key(b"k1,k2"), "k1,k2");
    }

    #[test]
    fn bytes_outside_visible_ascii_are_invalid() {
        let values: [&[u8]; 9] = [
            b"a\tb",
            b"a b",
            "klju\u{10d}".as_bytes(),
            b"a\x7f",
            b"a\0b",
            b"a\r\nb",
            b"\xff",
            b"\"a b\"",
            b"a\x1b[31m",
        ];
        for value in values {
            assert_eq!(refusal(&[value]), Code::IdempotencyKeyInvalid, "{value:?}");
        }
    }

    #[test]
    fn path_like_and_percent_encoded_text_is_just_text() {
        assert_eq!(key(b"../../x"), "../../x");
        assert_eq!(key(b"%00"), "%00");
        assert_eq!(key(b"!~"), "!~");
    }

    #[test]
    fn a_quoted_string_and_the_bare_token_name_the_same_key() {
        let bare = key(b"8e03978e-40d5-43dd-bc93-6894a57f9324");
        assert_eq!(key(b"\"8e03978e-40d5-43dd-bc93-6894a57f9324\""), bare);
        assert_eq!(key(b" \t\"8e03978e-40d5-43dd-bc93-6894a57f9324\" "), bare);
        assert_eq!(key(br#""a\"b\\c""#), key(br#"a"b\c"#));
        assert_ne!(key(b"\"K1\""), key(b"k1"));
    }

    #[test]
    fn what_begins_with_a_quote_must_parse_wholly() {
        for value in [r#"""#, r#""k"#, r#""k"x"#, r#""k";p=1"#, r#""k";p"#, r#""k", "l""#, r#""a\b""#, r#""k" x"#] {
            assert_eq!(refusal(&[value.as_bytes()]), Code::IdempotencyKeyInvalid, "{value}");
        }
        let not_ascii = "\"klju\u{10d}\"".as_bytes();
        assert_eq!(refusal(&[not_ascii]), Code::IdempotencyKeyInvalid);
    }

    #[test]
    fn the_length_is_measured_after_unquoting_and_nothing_is_cut_off() {
        let longest = "x".repeat(MAX_LENGTH);
        assert_eq!(key(longest.as_bytes()), longest);
        assert_eq!(key(format!("\"{longest}\"").as_bytes()), longest);
        assert_eq!(key(format!("\"{}\"", r"\\".repeat(MAX_LENGTH)).as_bytes()), r"\".repeat(MAX_LENGTH));
        assert_eq!(refusal(&[format!("{longest}x").as_bytes()]), Code::IdempotencyKeyInvalid);
        assert_eq!(refusal(&[format!("\"{longest}x\"").as_bytes()]), Code::IdempotencyKeyInvalid);
    }
}
