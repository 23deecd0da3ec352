//! What a mail server says, without the customer's address: servers like to repeat it, often in another spelling, and the log
//! and the operation have no business with it.

use lettre::Address;
use url::Host;

/// What stands in the place of the address.
const INSTEAD: &str = "the recipient";

/// The words without the address of the recipient, whatever the case of its letters, and whether its domain is spelt with
/// letters of all scripts or in ASCII (RFC 5890, section 2.3.2.1).
pub(super) fn without(words: &str, recipient: &Address) -> String {
    let words = replaced(words, recipient.as_ref());
    match Host::parse(recipient.domain()) {
        Ok(ascii) => replaced(&words, &format!("{}@{ascii}", recipient.user())),
        Err(_) => words,
    }
}

fn replaced(words: &str, address: &str) -> String {
    let mut result = String::with_capacity(words.len());
    let mut rest = words;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = behind(rest, address) {
            result.push_str(INSTEAD);
            rest = after;
        } else {
            result.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    result
}

/// What follows the address that a text begins with; `None` where it begins with something else.
fn behind<'a>(text: &'a str, address: &str) -> Option<&'a str> {
    let mut rest = text.chars();
    let begins = address.chars().all(|wanted| rest.next().is_some_and(|found| is_same(found, wanted)));
    begins.then_some(rest.as_str())
}

fn is_same(one: char, other: char) -> bool {
    one == other || one.to_lowercase().eq(other.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::without;

    #[test]
    fn an_address_is_taken_out_in_every_spelling_and_nothing_else_is() {
        for (address, said, kept) in [
            ("jana@shop.example", "<jana@shop.example>: unknown", "<the recipient>: unknown"),
            ("Jana@shop.example", "<JANA@Shop.Example>: unknown", "<the recipient>: unknown"),
            ("jana@shop.example", "jana@shop.example, JANA@SHOP.EXAMPLE", "the recipient, the recipient"),
            ("jÜrgen@müller.example", "no Jürgen@MÜLLER.example", "no the recipient"),
            ("jana@müller.example", "no JANA@XN--MLLER-KVA.EXAMPLE.", "no the recipient."),
            ("jana@shop.example", "no ana@shop.example, ľ 😀 jana@shop", "no ana@shop.example, ľ 😀 jana@shop"),
            ("jana@shop.example", "", ""),
        ] {
            assert_eq!(without(said, &address.parse().expect("an address")), kept, "{said}");
        }
    }
}
