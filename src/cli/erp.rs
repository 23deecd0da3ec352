//! `order-service erp`: which ERP a tenant has, and whether it answers.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use order_service::config::{Config, SECRET_PREFIX};
use order_service::db::{self, Db};
use order_service::erp::webhook::{self, UnknownOutcome};
use order_service::erp::{KINDS, tryton};
use order_service::outbox::connection::{self, Wanted};
use order_service::{api_key, app};

use super::Failure;
use super::reconcile::{self, Reconcile};

mod tryton_settings;

#[derive(Subcommand)]
pub(crate) enum Task {
    /// Make or change the connection of a tenant. What waits for it is delivered from now on.
    Set(Set),
    /// Ask the ERP of a tenant whether it is there and lets us in, and say what is wrong.
    Check {
        /// The company whose ERP it is.
        #[arg(long)]
        tenant: String,
    },
    /// Compare our orders with the ERP's, and say what is missing, extra or different.
    Reconcile(Reconcile),
}

#[derive(Args)]
pub(crate) struct Set {
    /// The company whose ERP it is. It exists as soon as it has an API key.
    #[arg(long)]
    tenant: String,
    /// Which gateway.
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(KINDS))]
    kind: String,
    /// Where the ERP is. Tryton: with the name of the database, <https://HOST/DATABASE>.
    #[arg(long, required_if_eq_any([("kind", "tryton"), ("kind", "webhook")]))]
    url: Option<String>,
    /// The name of the variable that holds the secret; it begins with `ORDERS_SECRET_`.
    #[arg(long, required_if_eq_any([("kind", "tryton"), ("kind", "webhook")]))]
    secret_env: Option<String>,
    /// webhook: what follows when nobody knows whether a message arrived. lookup: GET <url>/<reference> is asked. resend: the
    /// receiver promises to do nothing twice for one Idempotency-Key. hold: a person has to look.
    #[arg(long, value_parser = ["lookup", "resend", "hold"], default_value = "lookup")]
    unknown_outcome: String,
    #[command(flatten)]
    tryton: Box<tryton_settings::Settings>,
}

pub(crate) fn run(config: &Config, task: Task) -> Result<ExitCode, Failure> {
    if let Task::Reconcile(asked) = &task {
        return reconcile::run(config, asked);
    }
    db::migrate(&config.database)?;
    let mut db = Db::open(&config.database)?;
    match task {
        Task::Set(set) => connect(config, &mut db, &set)?,
        Task::Check { tenant } => {
            let found = connection::find(&mut db, &tenant)?;
            let found = found.ok_or_else(|| format!("tenant '{tenant}' has no ERP; 'erp set' makes the connection"))?;
            if let (Some(until), Some(reason)) = (found.paused_until, &found.pause_reason) {
                println!("paused until {}: {reason}", db::rfc3339(until));
            }
            let said = actix_web::rt::System::new().block_on(app::ping(config, &found))?;
            println!("{said}");
        }
        Task::Reconcile(_) => unreachable!("it was run above"),
    }
    Ok(ExitCode::SUCCESS)
}

fn connect(config: &Config, db: &mut Db, set: &Set) -> Result<(), Failure> {
    if !api_key::tenant_exists(db, &set.tenant)? {
        return Err(format!("there is no tenant '{}'; 'key add' makes one", set.tenant).into());
    }
    if set.secret_env.as_deref().is_some_and(|name| !name.starts_with(SECRET_PREFIX)) {
        return Err(format!("--secret-env names a variable that begins with {SECRET_PREFIX}").into());
    }
    let options = match (set.kind.as_str(), UnknownOutcome::named(&set.unknown_outcome)) {
        (webhook::KIND, Some(unknown_outcome)) => unknown_outcome.options(),
        (tryton::KIND, _) => set.tryton.options()?,
        _ => "{}".to_owned(),
    };
    let (url, secret_name) = (set.url.as_deref(), set.secret_env.as_deref());
    let wanted = Wanted { kind: &set.kind, url, secret_name, options: &options };
    app::check_connection(config, &set.tenant, &wanted)?;
    let waiting = connection::set(db, &set.tenant, &wanted)?;
    println!("tenant '{}' is connected by '{}'; {waiting} messages wait for it", set.tenant, set.kind);
    Ok(())
}
