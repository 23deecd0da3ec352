//! `order-service erp reconcile`: what our orders and the ERP's differ in, a line each, for people and for scripts.

use std::io::{self, IsTerminal, Write, stderr, stdout};
use std::process::ExitCode;

use chrono::{DateTime, NaiveDate, NaiveTime};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use order_service::app;
use order_service::config::Config;
use order_service::db::{self, Db, Instant, Pool};
use order_service::erp::sandbox;
use order_service::outbox::{Channel, connection};
use order_service::reconcile::{Event, Finding, Reconciler, Summary};

use super::{Failure, printable};

/// As diff(1) says it: both sides are equal, they differ, and there was trouble.
const DIFFERENT: u8 = 1;
/// See [`DIFFERENT`].
const TROUBLE: u8 = 2;

#[derive(Args)]
pub(crate) struct Reconcile {
    /// The company whose orders these are.
    #[arg(long)]
    tenant: String,
    /// Orders that were made from this day (UTC) or moment on, such as 2026-11-01 or 2026-11-01T08:00:00Z.
    #[arg(long, value_parser = moment)]
    since: Instant,
    /// Hand over again what the ERP has lost. The relay looks for it before it sends.
    #[arg(long)]
    fix: bool,
}

/// Compares, and prints. Exit code 0: equal; 1: they differ; 2: they could not be compared.
pub(crate) fn run(config: &Config, asked: &Reconcile) -> Result<ExitCode, Failure> {
    match compare(config, asked) {
        Ok(summary) => Ok(if summary.is_equal() { ExitCode::SUCCESS } else { ExitCode::from(DIFFERENT) }),
        Err(error) if crate::is_broken_pipe(error.as_ref()) => Err(error),
        Err(error) => {
            eprintln!("order-service: {error}");
            Ok(ExitCode::from(TROUBLE))
        }
    }
}

fn compare(config: &Config, asked: &Reconcile) -> Result<Summary, Failure> {
    db::migrate(&config.database)?;
    let found = connection::find(&mut Db::open(&config.database)?, &asked.tenant, Channel::Erp)?;
    let found = found.ok_or_else(|| format!("tenant '{}' has no ERP; 'erp set' makes the connection", asked.tenant))?;
    if found.kind == sandbox::KIND {
        return Err("the sandbox lives in the serving process and forgets with it; there is nothing to compare".into());
    }
    let gateway = app::gateway(config, &found)?;
    let pool = Pool::single(&config.database, config.pool_timeout);
    let reconciler = Reconciler::new(pool, gateway, &asked.tenant, asked.since, config.relay_parallel);
    let progress = progress();
    let mut written = Ok(());
    let compared = actix_web::rt::System::new().block_on(reconciler.run(asked.fix, |event| match event {
        Event::Orders(count) => progress.set_length(count.unsigned_abs()),
        Event::Compared(count) => progress.inc(count),
        Event::Found(finding) => {
            let line = progress.suspend(|| write_finding(&finding));
            written = std::mem::replace(&mut written, Ok(())).and(line);
        }
    }));
    progress.finish_and_clear();
    written?;
    let summary = compared?;
    write_summary(&summary)?;
    Ok(summary)
}

/// A bar on a terminal, and nothing anywhere else.
fn progress() -> ProgressBar {
    if !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style =
        ProgressStyle::with_template("{bar:40} {pos}/{len} orders, {eta} left").expect("the template is constant");
    ProgressBar::no_length().with_style(style)
}

fn write_finding(finding: &Finding) -> io::Result<()> {
    let member = |value: &Option<String>| value.as_deref().map_or_else(|| "-".to_owned(), printable);
    writeln!(
        stdout(),
        "{}\t{}\t{}\t{}\t{}",
        finding.difference.as_str(),
        printable(&finding.reference),
        member(&finding.order_id),
        member(&finding.erp_reference),
        printable(&finding.detail),
    )
}

fn write_summary(summary: &Summary) -> io::Result<()> {
    let Summary { compared, on_their_way, missing, extra, different, queued } = summary;
    let extra = extra.map_or_else(|| "unknown".to_owned(), |extra| extra.to_string());
    writeln!(
        stdout(),
        "summary\tcompared={compared}\ton_their_way={on_their_way}\tmissing={missing}\textra={extra}\tdifferent={different}\tqueued={queued}"
    )?;
    if summary.extra.is_none() {
        let note =
            "this ERP cannot list its orders: each of ours was looked up, and what it has besides cannot be told";
        writeln!(stderr(), "order-service: {note}")?;
    }
    Ok(())
}

fn moment(text: &str) -> Result<Instant, String> {
    if let Ok(day) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        return Ok(day.and_time(NaiveTime::MIN));
    }
    let moment = DateTime::parse_from_rfc3339(text).map(|moment| moment.naive_utc());
    moment.map_err(|_| "it is a day such as 2026-11-01, or a moment such as 2026-11-01T08:00:00Z".to_owned())
}
