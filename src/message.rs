//! Messages to customers: which of them were asked for, and how far each is. What a message says is made by [`template`] when it
//! is asked for; the text and the address are kept with the message on its way out, and nowhere else.

use diesel::prelude::*;

use crate::db::tables::messages;
use crate::db::{self, Db, Fault};
use crate::on_db;

pub mod recipient;
pub mod template;

/// How far a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It waits for the mail server, or is on its way to it.
    Processing,
    /// A person has to look whether it was sent.
    Unresolved,
    /// The mail server has taken it. Final.
    Sent,
    /// It was refused, or given up. Final.
    Failed,
}

impl Status {
    /// Every status.
    pub const ALL: [Status; 4] = [Status::Processing, Status::Unresolved, Status::Sent, Status::Failed];

    /// The name in the database and in answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Processing => "processing",
            Status::Unresolved => "unresolved",
            Status::Sent => "sent",
            Status::Failed => "failed",
        }
    }
}

/// A message as it is stored.
#[derive(Clone, Debug, Queryable, Selectable, Insertable)]
#[diesel(table_name = messages)]
pub struct Message {
    /// The tenant whose customer it is for.
    pub tenant_id: String,
    /// Its name, the one of the message on its way out.
    pub message_id: String,
    /// The order that it is about.
    pub order_id: String,
    /// The application that asked for it.
    pub client_id: String,
    /// The operation that goes on with it.
    pub operation_id: String,
    /// Which text.
    pub template: String,
    /// In which language.
    pub locale: String,
    /// [`Status::as_str`].
    pub status: String,
    /// When it was asked for.
    pub created_at: db::Instant,
    /// When its status changed last.
    pub updated_at: db::Instant,
}

/// Writes a message down.
///
/// # Errors
/// A [`Fault`] of the insert.
pub fn insert(db: &mut Db, message: &Message) -> Result<(), Fault> {
    on_db!(db, conn => diesel::insert_into(messages::table).values(message).execute(conn))?;
    Ok(())
}

/// Sets how far a message is.
///
/// # Errors
/// A [`Fault`] of the update.
pub fn set_status(
    db: &mut Db,
    (tenant_id, message_id): (&str, &str),
    status: Status,
    now: db::Instant,
) -> Result<(), Fault> {
    on_db!(db, conn => diesel::update(messages::table.find((tenant_id, message_id)))
        .set((messages::status.eq(status.as_str()), messages::updated_at.eq(now)))
        .execute(conn))?;
    Ok(())
}

/// The message of this id.
///
/// # Errors
/// A [`Fault`] of the query.
pub fn find(db: &mut Db, tenant_id: &str, message_id: &str) -> Result<Option<Message>, Fault> {
    let found = on_db!(db, conn => messages::table
        .find((tenant_id, message_id))
        .select(Message::as_select())
        .first(conn)
        .optional());
    Ok(found?)
}
