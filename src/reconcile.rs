//! Compares our orders with the ERP's, by reference, and says what one side lacks and what the other tells differently.
//! It works in small pages: no transaction is open while the ERP is asked, and each correction is a transaction of its own.
//!
//! Where the ERP can list, its list is read first and what it lacks is looked up once more. Where it cannot, each of our
//! orders is looked up, and nobody can tell what the ERP has besides.

use std::collections::HashSet;

use futures_util::future::join_all;

use crate::command::hand_over_again::{self, Standing, Why};
use crate::db::{self, Fault, Pool};
use crate::erp::{Delivery, Failure, Gateway, Listed, Listing, Taken, Verification};
use crate::outbox::Kind;

mod judge;
mod ours;

use judge::Verdict;
use ours::{Order, Place};

/// Who asks for a hand-over to be repeated, in the table of interventions.
pub const WHO: &str = "reconcile";

/// Our orders that are read at a time. Their documents are up to 16 KiB each.
const PAGE: i64 = 100;

/// What the two sides differ in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// We say that the ERP has it, and it has not.
    Missing,
    /// The ERP has an order under a name like ours that we do not know.
    Extra,
    /// Both have it, and tell it differently.
    Different,
}

impl Difference {
    /// The name in the report.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Difference::Missing => "missing",
            Difference::Extra => "extra",
            Difference::Different => "different",
        }
    }
}

/// One order in which the two sides differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How.
    pub difference: Difference,
    /// Our permanent name of it inside the ERP.
    pub reference: String,
    /// Its id here.
    pub order_id: Option<String>,
    /// The ERP's own name of it.
    pub erp_reference: Option<String>,
    /// What differs, and what was done about it, in words.
    pub detail: String,
}

/// What a comparison tells while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// So many orders of ours are to be compared.
    Orders(i64),
    /// Some orders of ours were compared.
    Compared(u64),
    /// The two sides differ.
    Found(Finding),
}

/// What a comparison came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The orders of ours that were looked at.
    pub compared: u64,
    /// Those of them that are still on their way, so that there is nothing to compare.
    pub on_their_way: u64,
    /// The ERP lacks them.
    pub missing: u64,
    /// We do not know them; `None` where the ERP cannot list.
    pub extra: Option<u64>,
    /// They differ.
    pub different: u64,
    /// Those that are handed over once more.
    pub queued: u64,
}

impl Summary {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.missing + self.extra.unwrap_or_default() + self.different == 0
    }
}

/// Why a comparison did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// Nothing of this ERP can be compared.
    #[error("this ERP can neither list its orders nor be asked for one, so there is nothing to compare with")]
    NothingToCompare,
    /// The ERP does not answer as it should.
    #[error("the comparison stopped: {0}")]
    Erp(#[from] Failure),
    /// The database.
    #[error("the comparison stopped: {0}")]
    Database(#[from] Fault),
}

/// The comparison of one tenant.
#[allow(missing_debug_implementations, reason = "the pool and the gateway have no Debug")]
pub struct Reconciler {
    pool: Pool,
    gateway: Box<dyn Gateway>,
    tenant_id: String,
    /// Orders from this moment on.
    since: db::Instant,
    /// Look-ups at a time.
    parallel: usize,
    trace_id: String,
}

impl Reconciler {
    /// Compares the orders that `tenant_id` has made since a moment with what `gateway` reaches, `parallel` look-ups at a time.
    #[must_use]
    pub fn new(
        pool: Pool,
        gateway: Box<dyn Gateway>,
        tenant_id: &str,
        since: db::Instant,
        parallel: u32,
    ) -> Reconciler {
        let trace_id = uuid::Uuid::new_v4().simple().to_string();
        let parallel = usize::try_from(parallel).unwrap_or(usize::MAX).max(1);
        Reconciler { pool, gateway, tenant_id: tenant_id.to_owned(), since, parallel, trace_id }
    }

    /// Compares, and tells `seen` what it finds. With `fix`, what the ERP has lost is handed over once more: to do that twice
    /// changes nothing the second time.
    ///
    /// # Errors
    /// A [`Trouble`]. What was told until then holds, and what was queued is queued.
    pub async fn run(&self, fix: bool, mut seen: impl FnMut(Event)) -> Result<Summary, Trouble> {
        let mut summary = Summary::default();
        // What is made while this runs is on its way, and would keep the comparison from its end.
        let until = self.on_database(|db, _, _| db.now()).await?;
        seen(Event::Orders(self.on_database(move |db, tenant, since| ours::count(db, tenant, since, until)).await?));
        let listed = self.compare_listed(fix, &mut summary, &mut seen).await?;
        if listed.is_none() && !self.can_look() {
            return Err(Trouble::NothingToCompare);
        }
        let mut after: Option<Place> = None;
        loop {
            let from = after.clone();
            let page =
                self.on_database(move |db, tenant, since| ours::page(db, tenant, (since, until), from.as_ref(), PAGE));
            let page = page.await?;
            let Some(last) = page.last() else { return Ok(summary) };
            after = Some(last.place.clone());
            for orders in page.chunks(self.parallel) {
                let verdicts = join_all(orders.iter().map(|order| self.judge(order, listed.as_ref()))).await;
                for (order, verdict) in orders.iter().zip(verdicts) {
                    self.tell(order, verdict?, fix, &mut summary, &mut seen).await?;
                    summary.compared += 1;
                    seen(Event::Compared(1));
                }
            }
        }
    }

    /// Whether a single order can be looked up.
    fn can_look(&self) -> bool {
        match self.gateway.verification(Kind::OrderCreated) {
            Verification::LookThenSend | Verification::LookAndWait => true,
            Verification::SendAgain | Verification::AskAPerson => false,
        }
    }

    /// Works on the database, for the tenant and the moment of the comparison.
    async fn on_database<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut db::Db, &str, db::Instant) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let (tenant_id, since) = (self.tenant_id.clone(), self.since);
        self.pool.run(move |db| work(db, &tenant_id, since)).await
    }

    /// Compares what the ERP lists with ours. Returns the references that it listed; `None` when it cannot list.
    async fn compare_listed(
        &self,
        fix: bool,
        summary: &mut Summary,
        seen: &mut impl FnMut(Event),
    ) -> Result<Option<HashSet<String>>, Trouble> {
        let (mut references, mut after) = (HashSet::new(), None::<String>);
        loop {
            let (orders, next) = match self.gateway.list(self.since, after.as_deref()).await? {
                Listing::CannotList => return Ok(None),
                Listing::Page { orders, next } => (orders, next),
            };
            summary.extra = summary.extra.or(Some(0));
            let names: Vec<String> = orders.iter().map(|listed| listed.reference.clone()).collect();
            let known = self.on_database(move |db, tenant, _| ours::of_references(db, tenant, &names)).await?;
            for listed in orders {
                // An ERP that changes while it is listed may show an order twice.
                if !references.insert(listed.reference.clone()) {
                    continue;
                }
                match known.iter().find(|order| order.reference == listed.reference) {
                    None => {
                        summary.extra = summary.extra.map(|extra| extra + 1);
                        seen(Event::Found(extra(listed)));
                    }
                    Some(order) => {
                        if let Verdict::Different(detail) = judge::listed(order, &listed) {
                            let judged =
                                Judged { verdict: Verdict::Different(detail), erp_reference: listed.erp_reference };
                            self.tell(order, judged, fix, summary, seen).await?;
                        }
                    }
                }
            }
            if next.is_none() {
                return Ok(Some(references));
            }
            after = next;
        }
    }

    /// Judges an order of ours that the list does not hold, by a look where that can tell more.
    async fn judge(&self, order: &Order, listed: Option<&HashSet<String>>) -> Result<Judged, Failure> {
        let of = |verdict| Ok(Judged { verdict, erp_reference: order.erp_reference.clone() });
        if listed.is_some_and(|listed| listed.contains(&order.reference)) {
            return of(if judge::is_on_its_way(order) { Verdict::OnItsWay } else { Verdict::Equal });
        }
        let may_be_there = judge::is_to_be_there(order) || (listed.is_none() && order.status == "rejected");
        if !may_be_there || judge::is_on_its_way(order) || !self.can_look() {
            return of(judge::absent(order));
        }
        match self.gateway.find(&self.look_up(order).await?).await {
            Ok(None) => of(judge::absent(order)),
            Ok(Some(Taken { erp_reference, .. })) => {
                Ok(Judged { verdict: judge::found(order, erp_reference.as_deref()), erp_reference })
            }
            Err(Failure::Conflict(detail)) => of(Verdict::Different(detail)),
            Err(failure) => Err(failure),
        }
    }

    /// What an order is looked up with: its hand-over, or what there would be in one where it was forgotten.
    async fn look_up(&self, order: &Order) -> Result<Delivery, Failure> {
        let (order_id, reference) = (order.place.order_id.clone(), order.reference.clone());
        let read =
            self.on_database(move |db, tenant, _| Ok((ours::hand_over(db, tenant, &order_id)?, db.now()?))).await;
        let (hand_over, now) = read.map_err(|fault| Failure::NotDelivered(fault.to_string()))?;
        let (message_id, payload) = hand_over.unwrap_or_else(|| ours::stand_in(&order.place.order_id, &reference));
        Delivery::new((&message_id, Kind::OrderCreated), &payload, &self.trace_id, (1, now))
    }

    /// Counts what a comparison came to, mends it where that is wished and possible, and tells of it.
    async fn tell(
        &self,
        order: &Order,
        Judged { verdict, erp_reference }: Judged,
        fix: bool,
        summary: &mut Summary,
        seen: &mut impl FnMut(Event),
    ) -> Result<(), Fault> {
        let (difference, detail) = match verdict {
            Verdict::Equal => return Ok(()),
            Verdict::OnItsWay => {
                summary.on_their_way += 1;
                return Ok(());
            }
            Verdict::Missing(detail) => {
                summary.missing += 1;
                (Difference::Missing, detail)
            }
            Verdict::Different(detail) => {
                summary.different += 1;
                (Difference::Different, detail)
            }
        };
        let queued = fix && self.hand_over_again(order, difference).await?;
        summary.queued += u64::from(queued);
        let detail = if queued { format!("{detail}; it is handed over again") } else { detail };
        let (reference, order_id) = (order.reference.clone(), Some(order.place.order_id.clone()));
        seen(Event::Found(Finding { difference, reference, order_id, erp_reference, detail }));
        Ok(())
    }

    /// Hands the order over once more, where that mends the difference and is nobody's decision but ours.
    async fn hand_over_again(&self, order: &Order, difference: Difference) -> Result<bool, Fault> {
        match (&order.hand_over, difference) {
            (Standing::Stopped(_), _) | (Standing::Over(_), Difference::Missing) => {}
            (Standing::Over(_) | Standing::OnItsWay | Standing::WithAPerson | Standing::Gone, _) => return Ok(false),
        }
        let (order_id, trace_id) = (order.place.order_id.clone(), self.trace_id.clone());
        let reason = match difference {
            Difference::Missing => "The ERP has no order of this reference.",
            Difference::Different | Difference::Extra => "The hand-over has stopped, and others wait behind it.",
        };
        self.on_database(move |db, tenant, _| {
            let why = Why { who: WHO, reason, trace_id: &trace_id };
            hand_over_again::hand_over_again(db, tenant, &order_id, why)
        })
        .await
    }
}

/// What became of the comparison of one order.
struct Judged {
    verdict: Verdict,
    erp_reference: Option<String>,
}

fn extra(listed: Listed) -> Finding {
    let Listed { reference, erp_reference, cancelled, .. } = listed;
    let detail = if cancelled { "not known here; cancelled at the ERP" } else { "not known here" };
    Finding { difference: Difference::Extra, reference, order_id: None, erp_reference, detail: detail.to_owned() }
}
