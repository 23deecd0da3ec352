//! What the tasks `erp` and `mail` share: a connection is checked before it is written down, and asked when a person wants to
//! know.

use order_service::config::{Config, SECRET_PREFIX};
use order_service::db::{self, Db};
use order_service::outbox::Channel;
use order_service::outbox::connection::{self, Wanted};
use order_service::{api_key, app};

use super::{Failure, printable};

/// Makes or changes the connection of a tenant.
pub(super) fn set(
    config: &Config,
    db: &mut Db,
    (tenant, channel): (&str, Channel),
    wanted: &Wanted<'_>,
) -> Result<(), Failure> {
    if !api_key::tenant_exists(db, tenant)? {
        return Err(format!("there is no tenant '{tenant}'; 'key add' makes one").into());
    }
    if wanted.secret_name.is_some_and(|name| !name.starts_with(SECRET_PREFIX)) {
        return Err(format!("--secret-env names a variable that begins with {SECRET_PREFIX}").into());
    }
    app::check_connection(config, (tenant, channel), wanted)?;
    let waiting = connection::set(db, tenant, channel, wanted)?;
    println!("tenant '{tenant}' is connected by '{}'; {waiting} messages wait for it", wanted.kind);
    Ok(())
}

/// Refuses options that a kind of connection does not have: whoever typed them expects something of them.
pub(super) fn refuse_strangers(kind: &str, strangers: &[&str]) -> Result<(), Failure> {
    if strangers.is_empty() {
        return Ok(());
    }
    Err(format!(
        "a connection of the kind '{kind}' has no {}; leave it out, or choose another kind",
        strangers.join(", ")
    )
    .into())
}

/// Asks the other side of a connection, and says what is wrong.
pub(super) fn check(config: &Config, db: &mut Db, (tenant, channel): (&str, Channel)) -> Result<(), Failure> {
    let found = connection::find(db, tenant, channel)?.ok_or_else(|| match channel {
        Channel::Erp => format!("tenant '{tenant}' has no ERP; 'erp set' makes the connection"),
        Channel::Mail => format!("tenant '{tenant}' has no mail server; 'mail set' makes the connection"),
    })?;
    if let (Some(until), Some(reason)) = (found.paused_until, &found.pause_reason) {
        println!("paused until {}: {}", db::rfc3339(until), printable(reason));
    }
    let now = db.now()?;
    let said = actix_web::rt::System::new().block_on(app::ping(config, (channel, &found), now));
    println!("{}", printable(&said.map_err(|failure| printable(&failure.to_string()))?));
    Ok(())
}
