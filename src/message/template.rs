//! What a message says: templates compiled into the program, filled from the order as it stands. The first line of a template
//! is the subject; after an empty line follows the text. Nothing here is markup, so nothing is escaped.

use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use rust_decimal::Decimal;
use serde::Serialize;

use super::recipient;
use crate::db::Fault;
use crate::json::Json;
use crate::money::{Currency, exact};
use crate::order;

/// The template that tells what is paid. It says something only where there is a payment.
pub const PAYMENT_RECEIVED: &str = "payment-received";

/// The names of the templates.
pub const TEMPLATES: &[&str] = &["order-confirmation", "order-cancelled", PAYMENT_RECEIVED];

/// The languages that every template is written in.
pub const LOCALES: &[&str] = &["en", "de"];

/// The language where neither the client nor the order names a known one.
const DEFAULT_LOCALE: &str = "en";

/// Every template: its name, its language, and what it says.
static SOURCES: &[(&str, &str, &str)] = &[
    ("order-confirmation", "en", include_str!("templates/en/order-confirmation.txt")),
    ("order-confirmation", "de", include_str!("templates/de/order-confirmation.txt")),
    ("order-cancelled", "en", include_str!("templates/en/order-cancelled.txt")),
    ("order-cancelled", "de", include_str!("templates/de/order-cancelled.txt")),
    ("payment-received", "en", include_str!("templates/en/payment-received.txt")),
    ("payment-received", "de", include_str!("templates/de/payment-received.txt")),
];

/// The language of messages about an order: the one of its customer where templates are written in it, whatever its region.
#[must_use]
pub fn locale_of_order(document: &Json) -> &'static str {
    let wished = document.get("customer").and_then(|customer| customer.text("locale")).unwrap_or_default();
    let language = wished.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
    LOCALES.iter().find(|known| **known == language).unwrap_or(&DEFAULT_LOCALE)
}

/// An order as a template sees it.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Our id of the order; people are shown the shop's number where there is one.
    pub order_id: &'a str,
    /// The order's document, with or without its lines.
    pub document: &'a Json,
    /// The lines.
    pub lines: &'a [Json],
    /// The sum of its payments, an exact decimal.
    pub paid_amount: &'a str,
    /// ISO 4217.
    pub currency: &'a str,
}

/// A filled template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// One line.
    pub subject: String,
    /// Plain text, lines ended by `\n`.
    pub body: String,
}

#[derive(Serialize)]
struct Context {
    number: String,
    customer: Option<String>,
    lines: Vec<LineContext>,
    total: Option<String>,
    paid: String,
}

#[derive(Serialize)]
struct LineContext {
    title: String,
    qty: String,
    total: Option<String>,
}

/// Fills a template.
///
/// # Errors
/// [`Fault::Bug`] for a template that is not known or cannot be filled, or an order that cannot be read.
pub fn fill(template: &str, locale: &str, facts: Facts<'_>) -> Result<Text, Fault> {
    let bug = |what: &str| Fault::Bug(format!("the message {template} in {locale} {what}"));
    let source = SOURCES.iter().find(|(name, language, _)| (*name, *language) == (template, locale));
    let (_, _, source) = source.ok_or_else(|| bug("has no template"))?;
    let context = context(facts, locale).ok_or_else(|| bug("is about an order that cannot be read"))?;
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    let filled = environment.render_named_str(template, source, context);
    let filled = filled.map_err(|error| bug(&format!("cannot be filled: {error}")))?;
    let (subject, body) = filled.split_once("\n\n").ok_or_else(|| bug("has no subject"))?;
    Ok(Text { subject: one_line(subject), body: format!("{}\n", body.trim_end()) })
}

fn context(facts: Facts<'_>, locale: &str) -> Option<Context> {
    let currency = Currency::from_code(facts.currency)?;
    let money = |amount: Decimal| localised(&money(amount, currency), locale);
    let number = facts.document.text("externalOrderNumber").or_else(|| facts.document.text("externalOrderId"));
    let line = |line: &Json| {
        let title = line.text("name").or_else(|| line.text("sku")).or_else(|| line.text("kind")).unwrap_or_default();
        LineContext {
            title: one_line(title),
            qty: localised(line.text("qty").unwrap_or_default(), locale),
            total: line.text("total").and_then(exact).map(money),
        }
    };
    Some(Context {
        number: one_line(number.unwrap_or(facts.order_id)),
        customer: facts.document.get("customer").and_then(recipient::name),
        lines: facts.lines.iter().map(line).collect(),
        total: order::gross(facts.document).map(money),
        paid: money(exact(facts.paid_amount)?),
    })
}

/// An amount with its currency: at least the currency's minor digits, and never fewer than the shop sent.
fn money(amount: Decimal, currency: Currency) -> String {
    let mut amount = amount.normalize();
    amount.rescale(amount.scale().max(currency.minor_digits()));
    format!("{amount} {}", currency.code())
}

/// A decimal as it is written in the language.
fn localised(decimal: &str, locale: &str) -> String {
    if locale == "de" { decimal.replace('.', ",") } else { decimal.to_owned() }
}

/// A text that came from outside, on one line: what breaks lines, and other control characters, become single blanks.
#[must_use]
pub fn one_line(text: &str) -> String {
    let words = text.split(|character: char| character.is_control() || character.is_whitespace());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{Facts, LOCALES, SOURCES, TEMPLATES, Text, fill, locale_of_order};
    use crate::json::{self, Json};

    const LINES: &str = r#"[{"kind":"product","sku":"ABC","qty":"2","name":"Käse\nBcc: x","total":"39.9"},
        {"kind":"shipping","qty":"1","total":"4.125"},{"kind":"product","sku":"T-1","qty":"0.5"}]"#;

    fn read(text: &str) -> Json {
        json::parse(text.as_bytes()).expect("the test writes JSON")
    }

    fn filled(template: &str, locale: &str, document: &str, lines: &str) -> Text {
        let (document, lines) = (read(document), read(lines));
        let lines = lines.as_array().expect("lines are an array");
        let facts = Facts { order_id: "ord_1", document: &document, lines, paid_amount: "12.5", currency: "EUR" };
        fill(template, locale, facts).unwrap_or_else(|fault| panic!("{template} {locale}: {fault}"))
    }

    #[test]
    fn every_template_is_there_in_every_language_and_can_be_filled_from_any_order() {
        assert_eq!(SOURCES.len(), TEMPLATES.len() * LOCALES.len());
        for template in TEMPLATES {
            for locale in LOCALES {
                let rich = r##"{"customer":{"firstName":"Jürgen"},"externalOrderNumber":"#48 😀\r\n","totals":{"gross":"44.03"}}"##;
                for (document, number) in [("{}", "ord_1"), (rich, "#48 😀")] {
                    for lines in [r#"[{"kind":"fee","qty":"1"}]"#, LINES] {
                        let text = filled(template, locale, document, lines);
                        assert!(text.subject.contains(number), "{text:?}");
                        assert!(!text.subject.contains(char::is_control), "{text:?}");
                        assert!(text.body.contains(number) && !text.body.contains("\n\n\n"), "{text:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn figures_are_those_of_the_shop_in_the_language_of_the_customer() {
        let document = r#"{"customer":{"name":"Jürgen Groß"},"totals":{"gross":"44"}}"#;
        let english = filled("order-confirmation", "en", document, LINES).body;
        for part in [
            "Dear Jürgen Groß,",
            "2 × Käse Bcc: x: 39.90 EUR\n",
            "1 × shipping: 4.125 EUR\n",
            "0.5 × T-1\n",
            "Total: 44.00 EUR\n",
        ] {
            assert!(english.contains(part), "{part} is not in {english}");
        }
        let german = filled("payment-received", "de", document, LINES).body;
        assert!(german.contains("12,50 EUR") && german.contains("44,00 EUR"), "{german}");
    }

    #[test]
    fn the_language_is_the_customers_where_it_is_known() {
        for (customer, locale) in [
            (r#"{"locale":"de-AT"}"#, "de"),
            (r#"{"locale":"DE_de"}"#, "de"),
            (r#"{"locale":"sk-SK"}"#, "en"),
            (r#"{"locale":""}"#, "en"),
            ("{}", "en"),
        ] {
            assert_eq!(locale_of_order(&read(&format!(r#"{{"customer":{customer}}}"#))), locale, "{customer}");
        }
    }
}
