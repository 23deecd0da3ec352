//! The relay brings messages to the ERP and mails to the mail server: lease, verify when the last outcome is unknown,
//! deliver, settle. Nothing outside is called inside a transaction. Delivery is at least once, its effect is once: what may
//! have arrived is looked for before it is sent again.
//!
//! Any number of relays work on one database. [`Relay::run_once`] is the whole of it; [`Relay::run`] is the loop round it.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::task::{JoinError, JoinSet};

use crate::command::Retention;
use crate::config::{Config, Retry};
use crate::db::{Fault, Pool};
use crate::erp::{Failure, Gateway, Gateways};
use crate::mail::{Mailer, Mailers};
use crate::metrics::Metrics;
use crate::outbox::connection::{self, Connection};
use crate::outbox::lease::{self, Leased, Terms};
use crate::outbox::{Channel, Outcome};

mod deliver;
mod policy;
mod post;
mod settle;

use deliver::{Doubt, Report};

/// Brings messages to the ERP and mails to the mail server, for every tenant that has them.
#[allow(missing_debug_implementations, reason = "the pool and the gateways have no Debug")]
pub struct Relay {
    pool: Pool,
    gateways: Gateways,
    mailers: Mailers,
    metrics: Arc<Metrics>,
    terms: Terms,
    rules: Rules,
    interval: Duration,
}

/// What the relay decides by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    retry: Retry,
    /// How long an ERP may go on with a request whose answer was lost.
    settle_window: Duration,
    /// The most time of one request to an ERP, or of one mail.
    erp_timeout: Duration,
    retention: Retention,
}

impl Relay {
    /// A relay that works with connections of `pool`.
    #[must_use]
    pub fn new(config: &Config, pool: Pool, metrics: Arc<Metrics>) -> Relay {
        Relay {
            pool,
            gateways: Gateways::new(config.secrets.clone(), config.erp_timeout, config.erp_allow_private),
            mailers: Mailers::new(config.secrets.clone(), config.erp_allow_private),
            metrics,
            terms: Terms { parallel: config.relay_parallel, length: config.lease },
            rules: Rules {
                retry: config.retry,
                settle_window: config.erp_settle,
                erp_timeout: config.erp_timeout,
                retention: Retention { replay_window: config.replay_window, key_memory: config.key_memory },
            },
            interval: config.relay_interval,
        }
    }

    /// Works until `stop` is ready, and then until the attempts under way have ended: they end within the lease. A fault of
    /// the database is logged and waited out; no message is lost to it, because its lease ends.
    pub async fn run(self: Arc<Relay>, stop: impl Future<Output = ()>) {
        let mut under_way = JoinSet::new();
        let mut ticks = tokio::time::interval(self.interval);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut stop = pin!(stop);
        loop {
            // An attempt that has ended makes room for another at once; a slow one holds up only itself.
            tokio::select! {
                () = &mut stop => break,
                _ = ticks.tick() => {}
                Some(ended) = under_way.join_next() => tell(ended),
            }
            match self.lease().await {
                Ok(jobs) => {
                    for job in jobs {
                        let relay = Arc::clone(&self);
                        under_way.spawn(async move { relay.attempt(job).await });
                    }
                }
                Err(fault) => log::warn!("the relay cannot lease: {fault}"),
            }
        }
        while let Some(ended) = under_way.join_next().await {
            tell(ended);
        }
    }

    /// Attempts, once, what is due of every tenant. Returns how many attempts were made.
    ///
    /// # Errors
    /// A [`Fault`] of the database, of the look for connections or of a settlement. What was leased is leased until its lease
    /// ends.
    pub async fn run_once(&self) -> Result<usize, Fault> {
        let jobs = self.lease().await?;
        let attempts = jobs.len();
        join_all(jobs.into_iter().map(|job| self.attempt(job))).await.into_iter().collect::<Result<Vec<()>, _>>()?;
        Ok(attempts)
    }

    /// Leases what is due of every tenant, one channel of one tenant after the other. A fault at one of them is logged and
    /// changes nothing for the others: what was leased for these has to be delivered.
    async fn lease(&self) -> Result<Vec<Job>, Fault> {
        let mut jobs = Vec::new();
        for (tenant_id, channel) in self.pool.run(connection::all).await? {
            let terms = self.terms;
            // By this machine's clock the lease is a little shorter than by the database's.
            let deadline = Instant::now() + terms.length;
            let leased = self.pool.run(move |db| {
                if lease::is_anything_due(db, &tenant_id, channel)? {
                    lease::lease(db, &tenant_id, channel, terms)
                } else {
                    Ok(None)
                }
            });
            let (connection, leased) = match leased.await {
                Ok(Some(leased)) => leased,
                Ok(None) => continue,
                Err(fault) => {
                    log::warn!("the relay cannot lease: {fault}");
                    continue;
                }
            };
            let way = self.open(&connection, channel);
            jobs.extend(leased.into_iter().map(|leased| Job { way: way.clone(), leased, deadline }));
        }
        Ok(jobs)
    }

    fn open(&self, connection: &Connection, channel: Channel) -> Result<Way, Failure> {
        match channel {
            Channel::Erp => self.gateways.open(connection).map(Arc::from).map(Way::Erp),
            Channel::Mail => self.mailers.open(connection).map(Arc::new).map(Way::Mail),
        }
    }

    /// One attempt from its lease to its settlement.
    async fn attempt(&self, job: Job) -> Result<(), Fault> {
        let Job { way, leased, deadline } = job;
        if leased.reclaimed {
            self.metrics.count_reclaimed();
        }
        let report = match way {
            // A message that its relays die over has a budget like any other.
            _ if leased.reclaimed && policy::is_spent(&leased, &self.rules.retry) => {
                let detail = "its relays stopped over it, again and again";
                Report { ask_a_person: true, ..Report::new(Outcome::Unknown, detail, Doubt::Kept) }
            }
            Ok(Way::Mail(mailer)) => post::post(&mailer, &leased, &self.rules, deadline).await,
            Ok(Way::Erp(gateway)) => deliver::deliver(&*gateway, &leased, &self.rules, deadline).await,
            Err(failure) => Report::of_failure(&failure, Doubt::Kept),
        };
        self.metrics.count_attempt(leased.kind.as_str(), report.outcome.as_str());
        log::info!(
            target: "order_service::delivery",
            "tenant={} operation={} order={} message={} kind={} attempt={} outcome={} trace={} detail={:?}",
            leased.tenant_id, leased.operation_id, leased.order_id, leased.message_id, leased.kind.as_str(),
            leased.number, report.outcome.as_str(), leased.trace_id, report.detail,
        );
        if !settle::settle(&self.pool, leased.clone(), report, self.rules).await? {
            self.metrics.count_lost_lease();
            log::warn!(
                "attempt {} of {} lost its lease before it was settled: another relay has the message, and looks first",
                leased.number,
                leased.message_id
            );
        }
        Ok(())
    }
}

/// Where messages go.
#[derive(Clone)]
enum Way {
    Erp(Arc<dyn Gateway>),
    Mail(Arc<Mailer>),
}

/// A leased message, and its way.
struct Job {
    way: Result<Way, Failure>,
    leased: Leased,
    deadline: Instant,
}

fn tell(ended: Result<Result<(), Fault>, JoinError>) {
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(fault)) => log::warn!("an attempt could not be settled; its lease ends, and another follows: {fault}"),
        Err(panic) => log::error!("an attempt ended in the middle; its lease ends, and another follows: {panic}"),
    }
}
