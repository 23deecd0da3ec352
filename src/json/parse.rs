//! The strict parser: one pass, no recursion beyond 64 levels, and a message that says where and what to do.
//!
//! Only the structure is walked here; the content of strings is decoded by `serde_json`. No library was found that
//! refuses duplicate names, bounds the depth and keeps numbers exact whichever features of it are switched on.

use super::{Json, Number};
use std::collections::HashSet;

/// The most levels of objects and arrays within each other. A deeper body is malformed: no order needs it.
pub const MAX_LEVELS: usize = 64;

/// How much of a member name a message repeats, in characters.
const SHOWN_NAME: usize = 64;

/// The bytes are not one unambiguous JSON value. The text says where, what is wrong, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct Malformed {
    /// The line of the fault, from 1.
    pub line: usize,
    /// The column of the fault in characters, from 1.
    pub column: usize,
    /// What is wrong and what to do; never a value that was sent, at most the start of a member's name.
    pub problem: String,
}

/// Reads exactly one JSON value.
///
/// # Errors
/// [`Malformed`] for bytes that are not UTF-8 or not JSON, a byte order mark, an empty body, anything after the value,
/// a member name twice in one object, U+0000 or a lone surrogate in any text, numbers of more than
/// [`Number::MAX_DIGITS`] digits, and more than [`MAX_LEVELS`] levels.
pub fn parse(bytes: &[u8]) -> Result<Json, Malformed> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            return Err(malformed_at(&valid, valid.len(), "this byte is not valid UTF-8; send the body in UTF-8"));
        }
    };
    let mut parser = Parser { text, at: 0, digits_added: 0 };
    if text.starts_with('\u{feff}') {
        return Err(parser.malformed("the body begins with a byte order mark; send it without one"));
    }
    parser.skip_blanks();
    if parser.peek().is_none() {
        return Err(parser.malformed("the body is empty; send a JSON value"));
    }
    let value = parser.value(0)?;
    parser.skip_blanks();
    match parser.peek() {
        None => Ok(value),
        Some(_) => Err(parser.malformed("something follows the JSON value; send one value and nothing after it")),
    }
}

/// The most digits that all exponents of a body together may stand for beyond what was sent. A few bytes such as `1e990` are
/// a thousand digits, and a body of them would be a thousand times as large in memory as on the wire.
const MAX_DIGITS_ADDED: usize = 64 * 1024;

struct Parser<'a> {
    text: &'a str,
    at: usize,
    digits_added: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Steps over `expected` and says whether it was there.
    fn take(&mut self, expected: u8) -> bool {
        let there = self.peek() == Some(expected);
        if there {
            self.at += 1;
        }
        there
    }

    /// A value that stands inside `levels` objects and arrays.
    fn value(&mut self, levels: usize) -> Result<Json, Malformed> {
        match self.peek() {
            Some(b'{') => self.object(levels + 1),
            Some(b'[') => self.array(levels + 1),
            Some(b'"') => self.string().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        }
    }

    fn object(&mut self, levels: usize) -> Result<Json, Malformed> {
        self.enter(levels)?;
        let mut members: Vec<(String, Json)> = Vec::new();
        let mut names = HashSet::new();
        self.skip_blanks();
        if self.take(b'}') {
            return Ok(Json::Object(members));
        }
        loop {
            self.skip_blanks();
            let start = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("a member name in double quotes"));
            }
            let name = self.string()?;
            if !names.insert(name.clone()) {
                self.at = start;
                return Err(self.duplicate(&name));
            }
            self.skip_blanks();
            if !self.take(b':') {
                return Err(self.unexpected("a colon after the member name"));
            }
            self.skip_blanks();
            let value = self.value(levels)?;
            members.push((name, value));
            self.skip_blanks();
            if self.take(b'}') {
                return Ok(Json::Object(members));
            }
            if !self.take(b',') {
                return Err(self.unexpected("a comma or the closing brace of the object"));
            }
        }
    }

    fn array(&mut self, levels: usize) -> Result<Json, Malformed> {
        self.enter(levels)?;
        let mut elements = Vec::new();
        self.skip_blanks();
        if self.take(b']') {
            return Ok(Json::Array(elements));
        }
        loop {
            self.skip_blanks();
            elements.push(self.value(levels)?);
            self.skip_blanks();
            if self.take(b']') {
                return Ok(Json::Array(elements));
            }
            if !self.take(b',') {
                return Err(self.unexpected("a comma or the closing bracket of the array"));
            }
        }
    }

    /// Steps over the opening bracket, unless that would be a level too deep.
    fn enter(&mut self, levels: usize) -> Result<(), Malformed> {
        if levels > MAX_LEVELS {
            return Err(self.malformed(format!(
                "objects and arrays stand more than {MAX_LEVELS} levels within each other; send a flatter body"
            )));
        }
        self.at += 1;
        Ok(())
    }

    /// Finds the end of the string, and leaves what is in it to `serde_json`.
    fn string(&mut self) -> Result<String, Malformed> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut end = start + 1;
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(0..0x20) => {
                    self.at = end;
                    return Err(self.malformed("a control character stands bare in a text; escape it, as in \\n"));
                }
                Some(_) => end += 1,
                None => return Err(self.malformed("this text has no closing quote; the body may have been cut off")),
            }
        }
        let decoded: String = serde_json::from_str(&self.text[start..=end]).map_err(|_| {
            self.malformed(
                "this text has a bad escape or half of a surrogate pair; send characters as themselves in UTF-8, \
                 or escape both halves, as in \\ud83d\\ude00",
            )
        })?;
        if decoded.contains('\0') {
            return Err(self.malformed("this text contains U+0000; send it without that character"));
        }
        self.at = end + 1;
        Ok(decoded)
    }

    fn number(&mut self) -> Result<Json, Malformed> {
        let rest = &self.text[self.at..];
        let length =
            rest.bytes().take_while(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')).count();
        let number = Number::from_literal(&rest[..length]).map_err(|error| self.malformed(error.to_string()))?;
        self.digits_added += number.as_str().len().saturating_sub(length);
        if self.digits_added > MAX_DIGITS_ADDED {
            return Err(
                self.malformed("the exponents up to here stand for too many digits; write numbers without them")
            );
        }
        self.at += length;
        Ok(Json::Number(number))
    }

    fn word(&mut self) -> Result<Json, Malformed> {
        let rest: &'a str = &self.text[self.at..];
        for (word, value) in [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))] {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        if rest.starts_with("NaN") || rest.starts_with("Infinity") {
            return Err(self.malformed("NaN and Infinity are not JSON; send a number, or leave the member out"));
        }
        Err(self.unexpected("a value: an object, an array, text in double quotes, a number, true, false or null"))
    }

    fn duplicate(&self, name: &str) -> Malformed {
        let shown: String = name.chars().take(SHOWN_NAME).collect();
        self.malformed(format!("the member name {shown:?} stands twice in one object; send each member once"))
    }

    fn unexpected(&self, wanted: &str) -> Malformed {
        match self.peek() {
            Some(_) => self.malformed(format!("this is not JSON; here should stand {wanted}")),
            None => self.malformed(format!("the body ends too early; here should stand {wanted}")),
        }
    }

    fn malformed(&self, problem: impl Into<String>) -> Malformed {
        malformed_at(self.text, self.at, problem)
    }
}

fn malformed_at(text: &str, at: usize, problem: impl Into<String>) -> Malformed {
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Malformed {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        problem: problem.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_of_exponents_does_not_grow_a_thousandfold() {
        let numbers = |count| format!("[{}1]", "1e990,".repeat(count));
        assert!(parse(numbers(60).as_bytes()).is_ok());
        let malformed = parse(numbers(1_000).as_bytes()).unwrap_err();
        assert!(malformed.to_string().contains("too many digits"), "{malformed}");
        assert!(
            parse(format!("[{}1]", "1234567890.5,".repeat(50_000)).as_bytes()).is_ok(),
            "plain numbers are never too many"
        );
    }
}
