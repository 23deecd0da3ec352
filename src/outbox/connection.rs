//! The connection of a tenant to its ERP, or to the server that takes its mails: a row for each channel, so that it can be
//! changed while the service runs. It names the variable that holds the secret, and never holds the secret.

use std::time::Duration;

use diesel::prelude::*;

use super::{Channel, State};
use crate::db::tables::{connections, outbox};
use crate::db::{self, Db, Fault};
use crate::{locked_on_db, on_db};

/// How long the administration of connections waits for a lock.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// How the other side of a channel is reached, and how it does.
#[derive(Clone, Debug, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = connections)]
pub struct Connection {
    /// The tenant whose connection it is.
    pub tenant_id: String,
    /// [`Channel::as_str`].
    pub channel: String,
    /// Which gateway, such as `webhook`, or which way to send mails, such as `smtp`.
    pub kind: String,
    /// Where the other side is; the kind says whether it needs this.
    pub url: Option<String>,
    /// The name of the variable that holds the secret.
    pub secret_name: Option<String>,
    /// The kind's own settings, a JSON object.
    pub options: String,
    /// Failures of the connection in a row, whatever the message.
    pub failures: i32,
    /// Until when nothing is sent.
    pub paused_until: Option<db::Instant>,
    /// Why, for people.
    pub pause_reason: Option<String>,
    /// When it was made or last changed by a person.
    pub created_at: db::Instant,
}

/// Whether the tenant has this channel: an ERP, so that its orders travel, or a server that takes its mails.
///
/// # Errors
/// A [`Fault`] of the query.
pub fn exists(db: &mut Db, tenant_id: &str, channel: Channel) -> Result<bool, Fault> {
    let found = on_db!(db, conn => connections::table
        .find((tenant_id, channel.as_str()))
        .select(connections::tenant_id)
        .first::<String>(conn)
        .optional());
    Ok(found?.is_some())
}

/// The connection of the tenant.
///
/// # Errors
/// A [`Fault`] of the query.
pub fn find(db: &mut Db, tenant_id: &str, channel: Channel) -> Result<Option<Connection>, Fault> {
    let found = on_db!(db, conn => connections::table
        .find((tenant_id, channel.as_str()))
        .select(Connection::as_select())
        .first(conn)
        .optional());
    Ok(found?)
}

/// As [`find`], and keeps relays from leasing for this connection until the transaction ends.
///
/// # Errors
/// A [`Fault`], also when a rival holds it too long.
pub fn lock(db: &mut Db, tenant_id: &str, channel: Channel) -> Result<Option<Connection>, Fault> {
    let found = locked_on_db!(
        db,
        connections::table.find((tenant_id, channel.as_str())).select(Connection::as_select()),
        (conn, rows) => rows.first(conn).optional()
    );
    Ok(found?)
}

/// The tenants and the channels that they have. The one question across tenants: a relay then serves one at a time.
///
/// # Errors
/// A [`Fault`] of the query.
pub fn all(db: &mut Db) -> Result<Vec<(String, Channel)>, Fault> {
    let rows: Vec<(String, String)> = on_db!(db, conn => connections::table
        .order((connections::tenant_id, connections::channel))
        .select((connections::tenant_id, connections::channel))
        .load(conn))?;
    rows.into_iter().map(|(tenant_id, channel)| Ok((tenant_id, Channel::stored(&channel)?))).collect()
}

/// How a connection is to be.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Which gateway, or which way to send mails.
    pub kind: &'a str,
    /// Where the other side is.
    pub url: Option<&'a str>,
    /// The name of the variable that holds the secret.
    pub secret_name: Option<&'a str>,
    /// The kind's own settings, a JSON object.
    pub options: &'a str,
}

/// Makes or changes a connection of a tenant; a changed one is not paused any more. Returns how many messages wait for it.
///
/// # Errors
/// A [`Fault`] of the statements.
pub fn set(db: &mut Db, tenant_id: &str, channel: Channel, wanted: &Wanted<'_>) -> Result<i64, Fault> {
    db.transaction(LOCK_WAIT, |db| {
        // Only a transaction that begins with a write keeps its place on SQLite; the clock is asked for after it.
        let key = (tenant_id, channel.as_str());
        on_db!(&mut *db, conn => diesel::delete(connections::table.find(key)).execute(conn))?;
        let now = db.now()?;
        let row = (
            connections::tenant_id.eq(tenant_id),
            connections::channel.eq(channel.as_str()),
            connections::kind.eq(wanted.kind),
            connections::url.eq(wanted.url),
            connections::secret_name.eq(wanted.secret_name),
            connections::options.eq(wanted.options),
            connections::created_at.eq(now),
            connections::updated_at.eq(now),
        );
        on_db!(&mut *db, conn => diesel::insert_into(connections::table).values(row).execute(conn))?;
        let waiting = on_db!(db, conn => outbox::table
            .filter(outbox::tenant_id.eq(tenant_id))
            .filter(outbox::channel.eq(channel.as_str()))
            .filter(outbox::state.eq(State::Waiting.as_str()))
            .count()
            .get_result(conn));
        Ok(waiting?)
    })
}

/// Writes down how the connection does after an attempt. `pause` is until when nothing is sent, and why.
///
/// # Errors
/// A [`Fault`] of the update.
pub fn report(
    db: &mut Db,
    (tenant_id, channel): (&str, Channel),
    failures: i32,
    pause: Option<(db::Instant, &str)>,
    now: db::Instant,
) -> Result<(), Fault> {
    on_db!(db, conn => diesel::update(connections::table.find((tenant_id, channel.as_str())))
        .set((
            connections::failures.eq(failures),
            connections::paused_until.eq(pause.map(|(until, _)| until)),
            connections::pause_reason.eq(pause.map(|(_, reason)| reason)),
            connections::updated_at.eq(now),
        ))
        .execute(conn))?;
    Ok(())
}
