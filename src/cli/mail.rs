//! `order-service mail`: by which server a tenant sends mails to its customers, and whether it answers.

use clap::{Args, Subcommand};
use order_service::config::Config;
use order_service::db::{self, Db};
use order_service::mail::{KINDS, SMTP, Sender};
use order_service::outbox::Channel;
use order_service::outbox::connection::Wanted;

use super::{Failure, connection};

#[derive(Subcommand)]
pub(crate) enum Task {
    /// Make or change the connection of a tenant. What waits for it is sent from now on.
    Set(Set),
    /// Ask the mail server of a tenant whether it is there and lets us in, and say what is wrong. Sends nothing.
    Check {
        /// The company whose mail server it is.
        #[arg(long)]
        tenant: String,
    },
}

#[derive(Args)]
pub(crate) struct Set {
    /// The company whose mails they are. It exists as soon as it has an API key.
    #[arg(long)]
    tenant: String,
    /// smtp: a mail server. sandbox: takes every mail and sends none.
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(KINDS))]
    kind: String,
    /// Where the mail server is: smtps://<host>[:465] is encrypted from the first byte, smtp://<host>[:587] by STARTTLS.
    #[arg(long, required_if_eq("kind", "smtp"))]
    url: Option<String>,
    /// Who the mails come from, such as 'Shop <orders@shop.example>'.
    #[arg(long, required_if_eq("kind", "smtp"))]
    from: Option<String>,
    /// The name to log in with, where the server wants a login.
    #[arg(long, requires = "secret_env")]
    user: Option<String>,
    /// The name of the variable that holds the password; it begins with `ORDERS_SECRET_`.
    #[arg(long, requires = "user")]
    secret_env: Option<String>,
}

pub(crate) fn run(config: &Config, task: Task) -> Result<(), Failure> {
    db::migrate(&config.database)?;
    let mut db = Db::open(&config.database)?;
    match task {
        Task::Set(set) => connect(config, &mut db, &set),
        Task::Check { tenant } => connection::check(config, &mut db, (&tenant, Channel::Mail)),
    }
}

fn connect(config: &Config, db: &mut Db, set: &Set) -> Result<(), Failure> {
    let options_of_smtp = [
        ("--url", set.url.is_some()),
        ("--from", set.from.is_some()),
        ("--user", set.user.is_some()),
        ("--secret-env", set.secret_env.is_some()),
    ];
    let given = options_of_smtp.into_iter().filter(|(_, given)| *given && set.kind != SMTP).map(|(name, _)| name);
    connection::refuse_strangers(&set.kind, &given.collect::<Vec<_>>())?;
    let options = match &set.from {
        Some(from) if set.kind == SMTP => Sender { from, user: set.user.as_deref() }.options(),
        _ => "{}".to_owned(),
    };
    let (url, secret_name) = (set.url.as_deref(), set.secret_env.as_deref());
    let wanted = Wanted { kind: &set.kind, url, secret_name, options: &options };
    connection::set(config, db, (&set.tenant, Channel::Mail), &wanted)
}
