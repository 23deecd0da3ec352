//! `order-service erp`: which ERP a tenant has, and whether it answers.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use order_service::config::Config;
use order_service::db::{self, Db};
use order_service::erp::webhook::{self, UnknownOutcome};
use order_service::erp::{KINDS, sandbox, tryton};
use order_service::outbox::Channel;
use order_service::outbox::connection::Wanted;

use super::reconcile::{self, Reconcile};
use super::{Failure, connection};

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
    /// receiver promises to do nothing twice for one Idempotency-Key. hold: a person has to look. Default: lookup.
    #[arg(long, value_parser = ["lookup", "resend", "hold"])]
    unknown_outcome: Option<String>,
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
        Task::Check { tenant } => connection::check(config, &mut db, (&tenant, Channel::Erp))?,
        Task::Reconcile(_) => unreachable!("it was run above"),
    }
    Ok(ExitCode::SUCCESS)
}

fn connect(config: &Config, db: &mut Db, set: &Set) -> Result<(), Failure> {
    connection::refuse_strangers(&set.kind, &set.strangers())?;
    let unknown_outcome = set.unknown_outcome.as_deref().map_or(Some(UnknownOutcome::default()), UnknownOutcome::named);
    let options = match (set.kind.as_str(), unknown_outcome) {
        (webhook::KIND, Some(unknown_outcome)) => unknown_outcome.options(),
        (tryton::KIND, _) => set.tryton.options()?,
        _ => "{}".to_owned(),
    };
    let (url, secret_name) = (set.url.as_deref(), set.secret_env.as_deref());
    let wanted = Wanted { kind: &set.kind, url, secret_name, options: &options };
    connection::set(config, db, (&set.tenant, Channel::Erp), &wanted)
}

impl Set {
    /// The options that were given and that this kind does not have.
    fn strangers(&self) -> Vec<&'static str> {
        let mut strangers = Vec::new();
        if self.kind == sandbox::KIND {
            strangers.extend(self.url.as_ref().map(|_| "--url"));
            strangers.extend(self.secret_env.as_ref().map(|_| "--secret-env"));
        }
        if self.kind != webhook::KIND {
            strangers.extend(self.unknown_outcome.as_ref().map(|_| "--unknown-outcome"));
        }
        if self.kind != tryton::KIND {
            strangers.extend(self.tryton.given());
        }
        strangers
    }
}
