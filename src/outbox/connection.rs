//! The connection of a tenant to its ERP: a row, so that it can be changed while the service runs. It names the variable
//! that holds the secret, and never holds the secret.

use std::time::Duration;

use diesel::prelude::*;

use crate::db::tables::{erp_connections, outbox};
use crate::db::{self, Db, Fault};
use crate::{locked_on_db, on_db};

/// How long the administration of connections waits for a lock.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// How a tenant's ERP is reached, and how it does.
#[derive(Clone, Debug, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = erp_connections)]
pub struct Connection {
    /// The tenant whose ERP it is.
    pub tenant_id: String,
    /// Which gateway: `sandbox`, `tryton`, `webhook`.
    pub kind: String,
    /// Where the ERP is; the gateway says whether it needs this.
    pub url: Option<String>,
    /// The name of the variable that holds the secret.
    pub secret_name: Option<String>,
    /// The gateway's own settings, a JSON object.
    pub options: String,
    /// Failures of the connection in a row, whatever the message.
    pub failures: i32,
    /// Until when nothing is sent.
    pub paused_until: Option<db::Instant>,
    /// Why, for people.
    pub pause_reason: Option<String>,
}

/// Whether the tenant has an ERP, so that its orders travel.
///
/// # Errors
/// A [`Fault`] of the query.
pub fn exists(db: &mut Db, tenant_id: &str) -> Result<bool, Fault> {
    let found = on_db!(db, conn => erp_connections::table
        .find(tenant_id)
        .select(erp_connections::tenant_id)
        .first::<String>(conn)
        .optional());
    Ok(found?.is_some())
}

/// The connection of the tenant.
///
/// # Errors
/// A [`Fault`] of the query.
pub fn find(db: &mut Db, tenant_id: &str) -> Result<Option<Connection>, Fault> {
    let found = on_db!(db, conn => erp_connections::table
        .find(tenant_id)
        .select(Connection::as_select())
        .first(conn)
        .optional());
    Ok(found?)
}

/// As [`find`], and keeps relays from leasing for this tenant until the transaction ends.
///
/// # Errors
/// A [`Fault`], also when a rival holds it too long.
pub fn lock(db: &mut Db, tenant_id: &str) -> Result<Option<Connection>, Fault> {
    let found = locked_on_db!(
        db,
        erp_connections::table.find(tenant_id).select(Connection::as_select()),
        (conn, rows) => rows.first(conn).optional()
    );
    Ok(found?)
}

/// The tenants that have an ERP. The one question across tenants: a relay then serves one tenant at a time.
///
/// # Errors
/// A [`Fault`] of the query.
pub fn tenants(db: &mut Db) -> Result<Vec<String>, Fault> {
    let tenants = on_db!(db, conn => erp_connections::table
        .order(erp_connections::tenant_id)
        .select(erp_connections::tenant_id)
        .load(conn));
    Ok(tenants?)
}

/// How a connection is to be.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Which gateway.
    pub kind: &'a str,
    /// Where the ERP is.
    pub url: Option<&'a str>,
    /// The name of the variable that holds the secret.
    pub secret_name: Option<&'a str>,
    /// The gateway's own settings, a JSON object.
    pub options: &'a str,
}

/// Makes or changes the connection of a tenant; a changed one is not paused any more. Returns how many messages wait for it.
///
/// # Errors
/// A [`Fault`] of the statements.
pub fn set(db: &mut Db, tenant_id: &str, wanted: &Wanted<'_>) -> Result<i64, Fault> {
    db.transaction(LOCK_WAIT, |db| {
        // Only a transaction that begins with a write keeps its place on SQLite; the clock is asked for after it.
        on_db!(&mut *db, conn => diesel::delete(erp_connections::table.find(tenant_id)).execute(conn))?;
        let now = db.now()?;
        let row = (
            erp_connections::tenant_id.eq(tenant_id),
            erp_connections::kind.eq(wanted.kind),
            erp_connections::url.eq(wanted.url),
            erp_connections::secret_name.eq(wanted.secret_name),
            erp_connections::options.eq(wanted.options),
            erp_connections::created_at.eq(now),
            erp_connections::updated_at.eq(now),
        );
        on_db!(&mut *db, conn => diesel::insert_into(erp_connections::table).values(row).execute(conn))?;
        let waiting = on_db!(db, conn => outbox::table
            .filter(outbox::tenant_id.eq(tenant_id))
            .filter(outbox::state.eq(super::State::Waiting.as_str()))
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
    tenant_id: &str,
    failures: i32,
    pause: Option<(db::Instant, &str)>,
    now: db::Instant,
) -> Result<(), Fault> {
    on_db!(db, conn => diesel::update(erp_connections::table.find(tenant_id))
        .set((
            erp_connections::failures.eq(failures),
            erp_connections::paused_until.eq(pause.map(|(until, _)| until)),
            erp_connections::pause_reason.eq(pause.map(|(_, reason)| reason)),
            erp_connections::updated_at.eq(now),
        ))
        .execute(conn))?;
    Ok(())
}
