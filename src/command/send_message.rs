//! `messages.send`: the shop wants a mail sent to the order's customer. It is written here, from a template and the order as
//! it stands, so that every attempt sends the same mail; the relay hands it to the mail server.

use super::fingerprint::Intent;
use super::order_rows::{self, OrderRow};
use super::{Command, Done, Method, Spec, Stop, Success, Tx};
use crate::db::Fault;
use crate::json::{self, Json};
use crate::message::recipient::{self, Recipient};
use crate::message::template::{self, Facts, LOCALES, PAYMENT_RECEIVED, TEMPLATES};
use crate::message::{self, Message, Status};
use crate::money::exact;
use crate::outbox;
use crate::problem::{Code, Problem};
use crate::schema::{Kind, Member, Object};

/// The message that is to be sent.
#[derive(Clone, Debug)]
pub struct SendMessage {
    order_id: String,
    template: String,
    locale: Option<String>,
}

/// The body of the command.
static BODY: Object = Object {
    name: "MessageRequest",
    members: &[
        Member::required("orderId", Kind::Text { min: 1, max: 64 }, "The order whose customer is written to."),
        Member::required("template", Kind::Token(TEMPLATES), "What the message says."),
        Member::optional(
            "locale",
            Kind::Token(LOCALES),
            "In which language. Absent: the one of the order's `customer.locale` where it is known, else `en`.",
        ),
    ],
};

impl Command for SendMessage {
    const SPEC: Spec = Spec {
        name: "messages.send",
        method: Method::Post,
        route: "/v1/messages",
        scope: "messages:write",
        body: &BODY,
        body_may_be_empty: false,
        summary: "Send a message to the order's customer",
        description: "Sends an e-mail to the `customer.email` of the order, from a template and the order as it stands now. The \
            operation tells how far it is; a tenant that has no mail server yet has messages that wait. The same key never \
            sends a second mail. Where the answer of the mail server is lost nobody can tell whether the mail was sent: the \
            operation is then `unresolved`, and only a person has it sent again, under the same `Message-ID`.",
        examples: &[
            (
                "confirmation",
                r#"{"orderId":"ord_019adb5a34c27f10b6c9f1b0d5a1e9c4","template":"order-confirmation","locale":"de"}"#,
            ),
            ("smallest", r#"{"orderId":"ord_019adb5a34c27f10b6c9f1b0d5a1e9c4","template":"payment-received"}"#),
        ],
        successes: &[Success {
            status: 201,
            meaning: "The message is written down, and goes to the mail server.",
            id_member: "messageId",
            example: r#"{"status":"processing","messageId":"msg_019adb5a34c27f10b6c9f1b0d5a1e9c4","operationId":"op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b","links":{"self":"/v1/messages/msg_019adb5a34c27f10b6c9f1b0d5a1e9c4","operation":"/v1/operations/op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b"}}"#,
        }],
        refusals: &[Code::OrderNotFound, Code::NoRecipient, Code::NothingPaid],
    };

    fn parse(asked: &Intent) -> Result<SendMessage, Problem> {
        let faults = BODY.faults(&asked.body);
        let text = |member: &str| asked.body.text(member).map(str::to_owned);
        match (text("orderId"), text("template")) {
            (Some(order_id), Some(template)) if faults.is_empty() => {
                Ok(SendMessage { order_id, template, locale: text("locale") })
            }
            _ => Err(Problem::invalid(faults)),
        }
    }

    fn execute(self, tx: &mut Tx<'_>) -> Result<Done, Stop> {
        // The lock keeps the order as it is while it is written about.
        let order = order_rows::lock_existing(tx, &self.order_id)?;
        let document = read(&order.document)?;
        let Some(recipient) = recipient::of_order(&document) else {
            let detail = "The order has no customer.email, or it is no address to which mail can be sent.";
            return Err(Problem::about_order(Code::NoRecipient, detail, &self.order_id).into());
        };
        let nothing_paid = exact(&order.paid_amount).is_none_or(|paid| paid.is_zero());
        if self.template == PAYMENT_RECEIVED && nothing_paid {
            let detail = "The order's paidAmount is 0, so there is no payment to tell of.";
            return Err(Problem::about_order(Code::NothingPaid, detail, &self.order_id).into());
        }
        let locale = self.locale.as_deref().unwrap_or_else(|| template::locale_of_order(&document));
        let mail = self.write(tx, &order, &document, (&recipient, locale))?;
        let message_id = order_rows::announce(tx, outbox::Kind::MessageRequested, &order, Some(("mail", &mail)))?;
        let row = Message {
            tenant_id: tx.call.tenant_id.clone(),
            message_id: message_id.clone(),
            order_id: order.order_id.clone(),
            client_id: tx.call.client_id.clone(),
            operation_id: tx.call.operation_id.clone(),
            template: self.template,
            locale: locale.to_owned(),
            status: Status::Processing.as_str().to_owned(),
            created_at: tx.now,
            updated_at: tx.now,
        };
        message::insert(tx.db, &row)?;
        Ok(Done {
            status: 201,
            state: Status::Processing.as_str(),
            id_member: "messageId",
            path: message_path(&message_id),
            id: message_id,
            order_id: Some(order.order_id),
            // Without a mail server it waits for one: to write a mail down is not to send it.
            goes_on: true,
        })
    }
}

/// The path of a message.
#[must_use]
pub fn message_path(message_id: &str) -> String {
    format!("/v1/messages/{message_id}")
}

impl SendMessage {
    /// The mail as every attempt sends it.
    fn write(
        &self,
        tx: &mut Tx<'_>,
        order: &OrderRow,
        document: &Json,
        (recipient, locale): (&Recipient, &str),
    ) -> Result<Json, Fault> {
        let lines = order_rows::lines(tx.db, &tx.call.tenant_id, &order.order_id)?;
        let lines = lines.iter().map(|line| read(line)).collect::<Result<Vec<Json>, Fault>>()?;
        let facts = Facts {
            order_id: &order.order_id,
            document,
            lines: &lines,
            paid_amount: &order.paid_amount,
            currency: &order.currency,
        };
        let text = template::fill(&self.template, locale, facts)?;
        let value = |text: &str| Json::Text(text.to_owned());
        let name = recipient.name.as_deref().map(|name| ("name".to_owned(), value(name)));
        let members = [("address", recipient.address.as_str()), ("subject", &text.subject), ("text", &text.body)];
        let members = members.map(|(name, text)| (name.to_owned(), value(text)));
        Ok(Json::Object(name.into_iter().chain(members).collect()))
    }
}

fn read(stored: &str) -> Result<Json, Fault> {
    json::parse(stored.as_bytes()).map_err(|_| Fault::Bug("a stored order cannot be read".to_owned()))
}
