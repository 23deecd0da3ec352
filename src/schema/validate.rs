//! Validation of a body by its table: every fault at once, each with a JSON Pointer.
//!
//! A fault in one member never hides a fault in another. Rules that join several members (totals, references between
//! lines) are the command's own, and run beside these.

use super::decimal::{self, Breach};
use super::{DecimalRule, Fault, Faults, Kind, Member, Object, Presence, Sign, code, in_utc, is_country};
use crate::json::Json;
use crate::money::Currency;

/// The longest member name, in characters, that a pointer repeats; a longer unknown name is reported at its object.
const NAME_IN_POINTER: usize = 200;

impl Object {
    /// Everything that is wrong with `body`; empty when it is valid. The number of faults listed is bounded, see
    /// [`Faults::LISTED`].
    #[must_use]
    pub fn faults(&self, body: &Json) -> Vec<Fault> {
        let mut faults = Faults::default();
        self.check(body, &mut faults);
        faults.into_vec()
    }

    /// As [`faults`](Object::faults), for a command that adds faults of rules of its own.
    pub fn check(&self, body: &Json, faults: &mut Faults) {
        Walk { pointer: String::new(), faults }.object(self, body);
    }
}

/// The walk over a body: where it stands, and what it has found.
struct Walk<'a> {
    pointer: String,
    faults: &'a mut Faults,
}

impl Walk<'_> {
    fn fault(&mut self, code: &'static str, message: impl Into<String>) {
        self.faults.add(self.pointer.as_str(), code, message);
    }

    /// Runs `check` one step further down, at the member or element `step`.
    fn within(&mut self, step: &str, check: impl FnOnce(&mut Self)) {
        let length = self.pointer.len();
        self.pointer.push('/');
        if step.contains(['~', '/']) {
            self.pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
        } else {
            self.pointer.push_str(step);
        }
        check(self);
        self.pointer.truncate(length);
    }

    fn object(&mut self, table: &Object, body: &Json) {
        let Some(sent) = body.as_object() else {
            return self.fault(code::WRONG_TYPE, "This must be an object.");
        };
        for member in table.members {
            self.within(member.name, |walk| walk.member(member, body.get(member.name)));
        }
        let unknown: Vec<&str> =
            sent.iter().map(|(name, _)| name.as_str()).filter(|name| table.member(name).is_none()).collect();
        if !unknown.is_empty() {
            self.unknown(table, &unknown);
        }
    }

    fn unknown(&mut self, table: &Object, names: &[&str]) {
        let known: Vec<&str> = table.members.iter().map(|member| member.name).collect();
        let bag = table.members.iter().find(|member| matches!(member.kind, Kind::Bag { .. }));
        let advice = bag.map_or(String::new(), |bag| format!(" Data of your own goes into `{}`.", bag.name));
        let message = format!("This member is not known here. Known: {}.{advice}", known.join(", "));
        for name in names {
            if name.chars().nth(NAME_IN_POINTER).is_some() {
                self.fault(code::UNKNOWN_MEMBER, "A member with a very long name is not known here; leave it out.");
            } else {
                self.within(name, |walk| walk.fault(code::UNKNOWN_MEMBER, message.as_str()));
            }
        }
    }

    fn member(&mut self, member: &Member, value: Option<&Json>) {
        match value.filter(|value| !value.is_null()) {
            Some(value) if member.counts_as_absent(value) => {}
            Some(value) => self.value(&member.kind, value),
            None if member.presence == Presence::Required => {
                self.fault(code::REQUIRED, format!("`{}` is required.", member.name));
            }
            None => {}
        }
    }

    fn value(&mut self, kind: &Kind, value: &Json) {
        match kind {
            Kind::Text { min, max } => self.text(value, |walk, text| walk.length(text, *min, *max)),
            Kind::Token(tokens) => self.one_of(value, tokens),
            Kind::Decimal(rule) => self.decimal(*rule, value),
            Kind::Currency => self.pattern(
                value,
                |code| Currency::from_code(&code.to_ascii_uppercase()).is_some(),
                code::NOT_A_CURRENCY,
                "This must be a currency code of ISO 4217 in use for payments, such as EUR.",
            ),
            Kind::Country => self.pattern(
                value,
                |code| is_country(&code.to_ascii_uppercase()),
                code::NOT_A_COUNTRY,
                "This must be a country code of ISO 3166-1 alpha-2, such as SK.",
            ),
            Kind::Instant => self.pattern(
                value,
                |text| in_utc(text).is_some(),
                code::NOT_AN_INSTANT,
                "This must be a date and time of RFC 3339 with an offset, such as 2026-03-02T08:15:31Z or 2026-03-02T09:15:31+01:00.",
            ),
            Kind::Unit => self.pattern(
                value,
                is_unit,
                code::NOT_A_UNIT,
                "This must be a unit of measure code of UN/ECE Recommendation 20, such as C62 (piece) or KGM: up to three capital letters and digits.",
            ),
            Kind::Bool => {
                if value.as_bool().is_none() {
                    self.fault(code::WRONG_TYPE, "This must be true or false, without quotes.");
                }
            }
            Kind::List { of, min, max } => self.list(of, *min, *max, value),
            Kind::Object(table) => self.object(table, value),
            Kind::Bag { max_bytes } => self.bag(*max_bytes, value),
        }
    }

    fn text(&mut self, value: &Json, check: impl FnOnce(&mut Self, &str)) {
        match value.as_text() {
            Some(text) => check(self, text),
            None => self.fault(code::WRONG_TYPE, "This must be text in double quotes."),
        }
    }

    fn length(&mut self, text: &str, min: usize, max: usize) {
        let length = text.chars().count();
        if length < min {
            self.fault(code::TOO_SHORT, format!("This text must have at least {}.", count(min, "character")));
        } else if length > max {
            self.fault(
                code::TOO_LONG,
                format!("This text has {length} characters; at most {max} are allowed. Nothing is cut off."),
            );
        }
    }

    fn one_of(&mut self, value: &Json, tokens: &[&str]) {
        self.text(value, |walk, text| {
            if !tokens.contains(&text) {
                walk.fault(code::NOT_ONE_OF, format!("This must be one of: {}.", tokens.join(", ")));
            }
        });
    }

    fn pattern(&mut self, value: &Json, fits: impl FnOnce(&str) -> bool, code: &'static str, allowed: &str) {
        self.text(value, |walk, text| {
            if !fits(text) {
                walk.fault(code, allowed);
            }
        });
    }

    fn decimal(&mut self, rule: DecimalRule, value: &Json) {
        let Some(number) = decimal::read(value) else {
            let (code, message) = match value {
                Json::Text(_) => (
                    code::NOT_A_DECIMAL,
                    "This text must be a decimal such as 2 or -0.50: digits, a point, no exponent.",
                ),
                _ => (code::WRONG_TYPE, "This must be a decimal, as a number or as text, such as 2 or \"0.50\"."),
            };
            return self.fault(code, message);
        };
        match (rule.check(&number), rule.sign) {
            (Ok(()), _) => {}
            (Err(Breach::TooManyDigits), _) => self.fault(
                code::TOO_MANY_DIGITS,
                format!(
                    "This decimal may have at most {} before the point and {} after it.",
                    count(rule.whole_digits, "digit"),
                    rule.fraction_digits
                ),
            ),
            (Err(Breach::TooSmall), Sign::Positive) => self.fault(code::TOO_SMALL, "This must be greater than 0."),
            (Err(Breach::TooSmall), _) => self.fault(code::TOO_SMALL, "This must not be negative."),
        }
    }

    fn list(&mut self, of: &Kind, min: usize, max: usize, value: &Json) {
        let Some(elements) = value.as_array() else {
            return self.fault(code::WRONG_TYPE, "This must be an array.");
        };
        if elements.len() < min {
            self.fault(code::TOO_FEW, format!("This array must have at least {}.", count(min, "element")));
        } else if elements.len() > max {
            self.fault(
                code::TOO_MANY,
                format!("This array has {} elements; at most {max} are allowed.", elements.len()),
            );
        }
        for (index, element) in elements.iter().enumerate() {
            self.within(&index.to_string(), |walk| walk.value(of, element));
        }
    }

    fn bag(&mut self, max_bytes: usize, value: &Json) {
        if value.as_object().is_none() {
            return self.fault(code::WRONG_TYPE, "This must be an object.");
        }
        let bytes = value.canonical().len();
        if bytes > max_bytes {
            self.fault(
                code::TOO_LARGE,
                format!("This object has {bytes} bytes of JSON without blanks; at most {max_bytes} are allowed."),
            );
        }
    }
}

fn is_unit(text: &str) -> bool {
    (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}

/// A number with its noun: `1 digit`, `2 digits`.
fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
