//! How far an operation's message is: the members `erp` and `mail` of an operation.

use std::collections::HashMap;

use diesel::prelude::*;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};

use crate::api::document::schemas::one_of;
use crate::db::tables::{connections, orders, outbox};
use crate::db::{self, Db, Fault};
use crate::on_db;
use crate::outbox::attempt::{self, Attempt};
use crate::outbox::{Channel, Outcome};

/// The states of a message, as clients see them.
pub const STATES: &[&str] =
    &["waiting", "delivering", "retrying", "unresolved", "delivered", "refused", "abandoned", "withdrawn"];

/// How far an operation's message is, by the channel that it takes.
#[derive(Clone, Debug)]
pub enum Delivery {
    /// To the ERP.
    Erp(ErpDelivery),
    /// To the customer.
    Mail(MailDelivery),
}

impl Delivery {
    /// Whether nothing was ever tried: what a tenant without the channel shows.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        match self {
            Delivery::Erp(erp) => erp.state == "waiting",
            Delivery::Mail(mail) => mail.state == "waiting",
        }
    }

    /// The member `erp`.
    #[must_use]
    pub fn erp(&self) -> Option<&ErpDelivery> {
        if let Delivery::Erp(erp) = self { Some(erp) } else { None }
    }

    /// The member `mail`.
    #[must_use]
    pub fn mail(&self) -> Option<&MailDelivery> {
        if let Delivery::Mail(mail) = self { Some(mail) } else { None }
    }
}

/// How far the message to the ERP is.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Delivery)]
pub struct ErpDelivery {
    /// `waiting`: not tried yet. `delivering`: under way. `retrying`: tried, and to be tried again. `unresolved`: a person has to
    /// look. The others are final.
    #[schema(schema_with = states)]
    state: &'static str,
    /// Our permanent name of the order inside the ERP.
    reference: String,
    /// The ERP's own name of the order, where it told one.
    #[schema(required)]
    erp_reference: Option<String>,
    /// When it is tried next, while it waits: at its own time, or when the connection's pause is over.
    #[schema(format = DateTime, required)]
    next_attempt_at: Option<String>,
    /// Every attempt, the first first.
    attempts: Vec<AttemptView>,
}

/// How far the mail to the customer is.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MailDelivery {
    /// `waiting`: not tried yet. `delivering`: under way. `retrying`: tried, and to be tried again. `unresolved`: a person has to
    /// look. The others are final.
    #[schema(schema_with = states)]
    state: &'static str,
    /// The message. The `Message-ID` of the mail is this name at the sender's domain.
    message_id: String,
    /// When it is tried next, while it waits: at its own time, or when the connection's pause is over.
    #[schema(format = DateTime, required)]
    next_attempt_at: Option<String>,
    /// Every attempt, the first first.
    attempts: Vec<AttemptView>,
}

impl MailDelivery {
    /// The message.
    #[must_use]
    pub fn message_id(&self) -> &str {
        &self.message_id
    }
}

/// One attempt to bring a message to the ERP or to the mail server.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Attempt)]
struct AttemptView {
    /// Counts from 1.
    number: i32,
    /// When it began.
    #[schema(format = DateTime)]
    started_at: String,
    /// When it ended; `null` while it is under way.
    #[schema(format = DateTime, required)]
    ended_at: Option<String>,
    /// How it ended; `null` while it is under way. `unknown`: nobody knows whether it arrived; at the ERP it is looked for
    /// before it is sent again, a mail waits for a person.
    #[schema(required, schema_with = outcomes)]
    outcome: Option<String>,
    /// A short sentence for people, in the other side's own words where it said something.
    #[schema(required)]
    detail: Option<String>,
}

fn states() -> ObjectBuilder {
    one_of(STATES, "How far it is.")
}

fn outcomes() -> ObjectBuilder {
    let names: Vec<&str> = Outcome::ALL.map(Outcome::as_str).to_vec();
    one_of(&names, "How it ended; `null` while it is under way.")
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
}

#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = outbox)]
struct MessageRow {
    message_id: String,
    operation_id: String,
    channel: String,
    order_id: String,
    state: String,
    attempts: i32,
    next_attempt_at: db::Instant,
}

/// What is to be told of these operations, by their ids. An operation without a message has nothing here.
///
/// # Errors
/// A [`Fault`] of a query.
pub fn of_operations(db: &mut Db, tenant_id: &str, operation_ids: &[&str]) -> Result<HashMap<String, Delivery>, Fault> {
    let messages: Vec<MessageRow> = on_db!(&mut *db, conn => outbox::table
        .filter(outbox::tenant_id.eq(tenant_id))
        .filter(outbox::operation_id.eq_any(operation_ids))
        .select(MessageRow::as_select())
        .load(conn))?;
    if messages.is_empty() {
        return Ok(HashMap::new());
    }
    let order_ids: Vec<&str> = messages.iter().map(|message| message.order_id.as_str()).collect();
    let names: Vec<(String, String, Option<String>)> = on_db!(&mut *db, conn => orders::table
        .filter(orders::tenant_id.eq(tenant_id))
        .filter(orders::order_id.eq_any(order_ids))
        .select((orders::order_id, orders::reference, orders::erp_reference))
        .load(conn))?;
    let names: HashMap<String, (String, Option<String>)> =
        names.into_iter().map(|(order_id, ours, theirs)| (order_id, (ours, theirs))).collect();
    let pauses = pauses(db, tenant_id)?;
    let message_ids: Vec<String> = messages.iter().map(|message| message.message_id.clone()).collect();
    let mut attempts: HashMap<String, Vec<AttemptView>> = HashMap::new();
    for attempt in attempt::of_messages(db, tenant_id, &message_ids)? {
        attempts.entry(attempt.message_id.clone()).or_default().push(view(attempt));
    }
    messages
        .into_iter()
        .map(|message| {
            let name = names.get(&message.order_id).cloned().unwrap_or_default();
            let attempts = attempts.remove(&message.message_id).unwrap_or_default();
            let pause = pauses.get(&message.channel).copied().flatten();
            Ok((message.operation_id.clone(), delivery(message, name, (pause, attempts))?))
        })
        .collect()
}

/// Until when each connection of the tenant rests, by its channel.
fn pauses(db: &mut Db, tenant_id: &str) -> Result<HashMap<String, Option<db::Instant>>, Fault> {
    let rows: Vec<(String, Option<db::Instant>)> = on_db!(db, conn => connections::table
        .filter(connections::tenant_id.eq(tenant_id))
        .select((connections::channel, connections::paused_until))
        .load(conn))?;
    Ok(rows.into_iter().collect())
}

fn delivery(
    message: MessageRow,
    (reference, erp_reference): (String, Option<String>),
    (pause, attempts): (Option<db::Instant>, Vec<AttemptView>),
) -> Result<Delivery, Fault> {
    let state = state_of(&message);
    let waits = matches!(state, "waiting" | "retrying");
    // Nothing is sent while the connection rests, whatever the message's own time. A pause that is over is the earlier one.
    let next = pause.map_or(message.next_attempt_at, |pause| pause.max(message.next_attempt_at));
    let next_attempt_at = waits.then(|| db::rfc3339(next));
    Ok(match Channel::stored(&message.channel)? {
        Channel::Erp => Delivery::Erp(ErpDelivery { state, reference, erp_reference, next_attempt_at, attempts }),
        Channel::Mail => {
            Delivery::Mail(MailDelivery { state, message_id: message.message_id, next_attempt_at, attempts })
        }
    })
}

fn state_of(message: &MessageRow) -> &'static str {
    match message.state.as_str() {
        "waiting" if message.attempts == 0 => "waiting",
        "waiting" => "retrying",
        "leased" => "delivering",
        "parked" => "unresolved",
        "delivered" => "delivered",
        "refused" => "refused",
        "abandoned" => "abandoned",
        _ => "withdrawn",
    }
}

fn view(attempt: Attempt) -> AttemptView {
    AttemptView {
        number: attempt.number,
        started_at: db::rfc3339(attempt.started_at),
        ended_at: attempt.ended_at.map(db::rfc3339),
        outcome: attempt.outcome,
        detail: attempt.detail,
    }
}
