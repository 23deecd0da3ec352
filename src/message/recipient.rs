//! Who an order's messages go to: the customer's name and address, as far as mail can be sent there.

use email_address::{EmailAddress, Options};

use super::template::one_line;
use crate::json::Json;

/// The customer of an order, as a mail names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipient {
    /// The name, on one line; `None` where the order has none.
    pub name: Option<String>,
    /// The address: one, without a name, and without anything that could begin another line.
    pub address: String,
}

/// The recipient of the messages about an order, read from its document; `None` where `customer.email` is absent or is no
/// address (RFC 5321, section 4.1.2; an address literal such as `a@[192.0.2.1]` is none that a shop has customers at).
#[must_use]
pub fn of_order(document: &Json) -> Option<Recipient> {
    let customer = document.get("customer")?;
    let address = customer.text("email")?.trim();
    let options = Options::default().without_domain_literal().without_display_text();
    EmailAddress::parse_with_options(address, options).ok()?;
    // A quoted local part may hold anything by the letter of the standard, and mailers disagree about it. No customer has such
    // an address.
    if address.chars().any(|character| character == '"' || character.is_whitespace() || character.is_control()) {
        return None;
    }
    Some(Recipient { name: name(customer), address: address.to_owned() })
}

/// The full name: as it was sent, or of its parts.
#[must_use]
pub fn name(customer: &Json) -> Option<String> {
    let part = |member: &str| customer.text(member).map(one_line).filter(|part| !part.is_empty());
    part("name").or_else(|| match (part("firstName"), part("lastName")) {
        (Some(first), Some(last)) => Some(format!("{first} {last}")),
        (first, last) => first.or(last),
    })
}

#[cfg(test)]
mod tests {
    use super::{Recipient, of_order};
    use crate::json;

    fn read(customer: &str) -> Option<Recipient> {
        of_order(&json::parse(format!(r#"{{"customer":{customer}}}"#).as_bytes()).expect("the test writes JSON"))
    }

    #[test]
    fn an_order_without_an_address_has_no_recipient() {
        for customer in [
            "{}",
            r#"{"email":""}"#,
            r#"{"email":"nobody"}"#,
            r#"{"email":"@shop.example"}"#,
            r#"{"email":"a@shop.example, b@shop.example"}"#,
            r#"{"email":"A <a@shop.example>"}"#,
            r#"{"email":"a@[127.0.0.1]"}"#,
            r#"{"email":"\"a b\"@shop.example"}"#,
            r#"{"email":"\"a\"@shop.example"}"#,
            r#"{"email":"a@shop.example\r\nBcc: b@shop.example"}"#,
            r#"{"email":"a\u0007@shop.example"}"#,
        ] {
            assert_eq!(read(customer), None, "{customer}");
        }
    }

    #[test]
    fn a_recipient_has_one_line_of_name_and_one_address() {
        let whole = read(r#"{"email":" jana@shop.example ","name":"Jana\r\nBcc: x","firstName":"no"}"#);
        assert_eq!(whole, Some(Recipient { name: Some("Jana Bcc: x".into()), address: "jana@shop.example".into() }));
        let parts = read(r#"{"email":"jürgen@shop.example","firstName":"Jürgen","lastName":"Groß"}"#);
        assert_eq!(parts, Some(Recipient { name: Some("Jürgen Groß".into()), address: "jürgen@shop.example".into() }));
        assert_eq!(read(r#"{"email":"a@b.example","name":" "}"#).map(|found| found.name), Some(None));
    }
}
