//! A mail before it is sent: made of a stored message alone, so that every attempt sends the same mail, its date and its
//! `Message-ID` included. What came from outside only ever becomes a value of lettre's types, which cannot break a header.

use std::time::SystemTime;

use lettre::message::header::{ContentType, HeaderName, HeaderValue, MIME_VERSION_1_0};
use lettre::message::{Mailbox, Message};
use lettre::{Address, message};

use crate::db;
use crate::erp::Failure;
use crate::json;

/// What is to be sent, and to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    message_id: String,
    to: Mailbox,
    subject: String,
    text: String,
    date: db::Instant,
}

impl Letter {
    /// Reads a stored message.
    ///
    /// # Errors
    /// [`Failure::Conflict`] for a payload that cannot be read: a person has to look.
    pub fn read(message_id: &str, payload: &str) -> Result<Letter, Failure> {
        let unreadable = || Failure::Conflict("the stored mail cannot be read".to_owned());
        let document = json::parse(payload.as_bytes()).map_err(|_| unreadable())?;
        let mail = document.get("mail").ok_or_else(unreadable)?;
        let text = |member: &str| mail.text(member).map(str::to_owned).ok_or_else(unreadable);
        // Whoever wrote the message took care of it; lettre would rather panic than write a header of two lines.
        let line = |text: &str| if text.contains(char::is_control) { Err(unreadable()) } else { Ok(text.to_owned()) };
        let address: Address = text("address")?.parse().map_err(|_| unreadable())?;
        Ok(Letter {
            message_id: message_id.to_owned(),
            to: Mailbox::new(mail.text("name").map(line).transpose()?, address),
            subject: line(&text("subject")?)?,
            text: text("text")?,
            date: document.text("occurredAt").and_then(db::from_rfc3339).ok_or_else(unreadable)?,
        })
    }

    /// The address it goes to.
    pub(super) fn recipient(&self) -> &Address {
        &self.to.email
    }

    /// The mail as it is sent (RFC 5322). Its `Message-ID` is our name of the message at the sender's domain.
    pub(super) fn compose(&self, from: &Mailbox) -> Result<Message, Failure> {
        let headers = message::Message::builder()
            .message_id(Some(format!("<{}@{}>", self.message_id, from.email.domain())))
            .date(SystemTime::from(self.date.and_utc()))
            .from(from.clone())
            .to(self.to.clone())
            .subject(self.subject.clone())
            .header(MIME_VERSION_1_0)
            .header(ContentType::TEXT_PLAIN);
        let unfit = |_| Failure::Conflict("no mail can be made of the stored one".to_owned());
        let mut mail = headers.body(self.text.clone()).map_err(unfit)?;
        // Nobody's holiday notice has to answer it (RFC 3834, section 5).
        let automatic = HeaderName::new_from_ascii_str("Auto-Submitted");
        mail.headers_mut().insert_raw(HeaderValue::new(automatic, "auto-generated".to_owned()));
        Ok(mail)
    }
}

#[cfg(test)]
mod tests {
    use super::Letter;
    use crate::erp::Failure;
    use crate::json::Json;
    use crate::message::recipient;

    fn payload(name: Option<&str>, address: &str, subject: &str) -> String {
        let member = |name: &str, text: &str| (name.to_owned(), Json::Text(text.to_owned()));
        let mut mail = vec![
            member("address", address),
            member("subject", subject),
            member("text", "Grüße 😀\nund so weiter\n.\n"),
        ];
        mail.extend(name.map(|name| member("name", name)));
        let occurred = member("occurredAt", "2026-03-02T08:15:31.402Z");
        Json::Object(vec![occurred, ("mail".to_owned(), Json::Object(mail))]).to_string()
    }

    fn composed(name: Option<&str>, address: &str, subject: &str) -> String {
        let letter = Letter::read("msg_1", &payload(name, address, subject)).expect("it can be read");
        let from = "Müller & Söhne <orders@shop.example>".parse().expect("a mailbox");
        let mail =
            || String::from_utf8(letter.compose(&from).expect("it can be made").formatted()).expect("it is text");
        assert_eq!(mail(), mail(), "every attempt sends the same bytes");
        mail()
    }

    #[test]
    fn a_mail_is_ascii_with_a_stable_name_and_the_date_of_the_command() {
        let mail = composed(Some("Jürgen Groß"), "j@shop.example", "Ihre Bestellung №1");
        assert!(mail.is_ascii(), "{mail}");
        for line in [
            "Message-ID: <msg_1@shop.example>",
            "Date: Mon, 02 Mar 2026 08:15:31 +0000",
            "Auto-Submitted: auto-generated",
        ] {
            assert!(mail.lines().any(|found| found == line), "{line} is not in\n{mail}");
        }
    }

    #[test]
    fn nothing_from_outside_becomes_a_header() {
        let evil = "a\r\nBcc: victim@shop.example\r\n\r\nbody";
        for payload in [payload(Some(evil), "j@shop.example", "s"), payload(None, "j@shop.example", evil)] {
            assert!(matches!(Letter::read("msg_1", &payload), Err(Failure::Conflict(_))), "{payload}");
        }
        let evil = "\",:;<>@[]\\()\u{202e}\u{a0}=?utf-8?q?=0D=0ABcc:_x?= Bcc: victim@shop.example, b@c.example";
        let mail = composed(Some(evil), "j@shop.example", evil);
        let (head, _) = mail.split_once("\r\n\r\n").expect("a mail has a head");
        let names: Vec<&str> = head
            .split("\r\n")
            .filter(|line| !line.starts_with(' '))
            .filter_map(|line| line.split(':').next())
            .collect();
        assert!(!names.iter().any(|name| name.eq_ignore_ascii_case("bcc")), "{head}");
        assert_eq!(names.len(), 9, "{head}");
    }

    /// The address that a command would take from an order with this one.
    fn taken(address: &str) -> Option<String> {
        let member = |name: &str, value: Json| Json::Object(vec![(name.to_owned(), value)]);
        let order = member("customer", member("email", Json::Text(address.to_owned())));
        recipient::of_order(&order).map(|recipient| recipient.address)
    }

    /// The address that the envelope of a mail to this one has.
    fn sent_to(address: &str) -> Option<String> {
        let letter = Letter::read("msg_1", &payload(Some("Jana"), address, "s")).ok()?;
        let mail = letter.compose(&"orders@shop.example".parse().expect("a mailbox")).ok()?;
        mail.envelope().to().first().map(ToString::to_string)
    }

    #[test]
    fn an_address_that_a_command_takes_is_one_that_a_mail_can_be_sent_to() {
        let long = format!("{}@shop.example", "a".repeat(64));
        for address in [
            "jana@shop.example",
            "Jana.O'Neill+tag@Shop.Example",
            "jürgen@shop.example",
            "jana@müller.example",
            "jana@xn--mller-kva.example",
            "用户@例え.jp",
            "a!#$%&'*+/=?^_`{|}~-z@shop.example",
            "a@b.c.d.shop.example",
            &long,
        ] {
            assert_eq!((taken(address), sent_to(address)), (Some(address.into()), Some(address.into())), "{address}");
        }
        let longer = format!("a{long}");
        for address in [
            r#""a\"b"@shop.example"#,
            r#""><x@y"@shop.example"#,
            r#""@"@shop.example"#,
            "nobody",
            "@shop.example",
            "a@",
            "a@b@shop.example",
            "a..b@shop.example",
            ".a@shop.example",
            "a@shop..example",
            "a@-shop.example",
            "<a@shop.example>",
            "a@b.example, c@d.example",
            "a\r\nb@shop.example",
            "jana@[192.0.2.1]",
            &longer,
        ] {
            assert_eq!((taken(address), sent_to(address)), (None, None), "{address}");
        }
        // Quotes that are not needed are taken off on the way, so that the address would not be the one that was sent to us.
        let quoted = r#""jana"@shop.example"#;
        assert_eq!((taken(quoted), sent_to(quoted)), (None, Some("jana@shop.example".to_owned())));
    }

    #[test]
    fn what_cannot_be_read_waits_for_a_person() {
        for bad in
            ["", "{}", r#"{"mail":{}}"#, &payload(None, "no address", "s"), &payload(None, "a@b.example\r\nx", "s")]
        {
            assert!(matches!(Letter::read("msg_1", bad), Err(Failure::Conflict(_))), "{bad}");
        }
    }
}
