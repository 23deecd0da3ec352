//! One sweep: what was due when it began, tenant by tenant, in small batches. Each batch is a short transaction of its own,
//! and never waits for a row: what a request or another cleaner has locked is left for the next sweep. So it can be stopped
//! at any moment, can run in several processes at once, and can be part of no deadlock.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use diesel::dsl::{self, exists};
use diesel::prelude::*;

use crate::command::forget::forget;
use crate::db::tables::{claims, operations, tenants};
use crate::db::{Db, Fault, Instant};
use crate::{load_unlocked, on_db};

/// What can be due for a tenant. Keys go first: the body of a forgotten key need not be dropped any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Past the key memory: the claim, its operation and the operation's messages are removed.
    Keys,
    /// Past the replay window: the recorded body is dropped, and the key stays spent.
    Bodies,
}

impl Step {
    /// The value of the label `step` of the metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Step::Keys => "keys",
            Step::Bodies => "bodies",
        }
    }

    fn next(self) -> Option<Step> {
        match self {
            Step::Keys => Some(Step::Bodies),
            Step::Bodies => None,
        }
    }
}

/// What one transaction did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Whose rows they were.
    pub tenant_id: String,
    /// What was done to them.
    pub step: Step,
    /// How many keys were forgotten or bodies dropped; at most the size of a batch.
    pub rows: usize,
}

/// A sweep that goes on with each call of [`Sweep::clean_batch`].
#[derive(Debug)]
pub struct Sweep {
    now: Instant,
    limit: usize,
    waiting: VecDeque<(String, Step)>,
}

impl Sweep {
    /// Reads the database's clock, once for the whole sweep, and looks which tenants have something due. That costs a look
    /// into two indexes for each tenant. A batch has at most `limit` rows.
    ///
    /// # Errors
    /// A [`Fault`] of the queries.
    pub fn begin(db: &mut Db, limit: u32) -> Result<Sweep, Fault> {
        let now = db.now()?;
        let mut waiting = VecDeque::new();
        for tenant_id in every_tenant(db)? {
            if let Some(step) = first_step(db, &tenant_id, now)? {
                waiting.push_back((tenant_id, step));
            }
        }
        Ok(Sweep { now, limit: limit as usize, waiting })
    }

    /// Cleans one batch of one tenant, in a transaction. The tenants take turns, so that one with years of rows does not
    /// hold up the others. `None`: nothing is left that was due and not locked.
    ///
    /// # Errors
    /// A [`Fault`]: this batch did nothing, the ones before it are done.
    pub fn clean_batch(&mut self, db: &mut Db) -> Result<Option<Batch>, Fault> {
        let Some((tenant_id, step)) = self.waiting.pop_front() else { return Ok(None) };
        let rows = db.transaction(LOCK_WAIT, |db| match step {
            Step::Keys => forget_keys(db, &tenant_id, self.now, self.limit),
            Step::Bodies => drop_bodies(db, &tenant_id, self.now, self.limit),
        })?;
        // Not "fewer than the limit": a few locked rows must not put off all the others.
        let next = if rows > 0 { Some(step) } else { step.next() };
        self.waiting.extend(next.map(|step| (tenant_id.clone(), step)));
        Ok(Some(Batch { tenant_id, step, rows }))
    }
}

/// How long a lock is waited for that was not taken in passing: of a migration, or of somebody at an old message. Shorter than
/// PostgreSQL's `deadlock_timeout` (1 s), so that the cleaner gives way before the database ends a request.
const LOCK_WAIT: Duration = Duration::from_millis(200);

/// The operations of a tenant whose key memory is over. One that is not final has no end, and so is never among them.
#[dsl::auto_type]
#[expect(clippy::elidable_lifetime_names, reason = "the macro needs the name")]
fn keys_due<'a>(tenant_id: &'a str, now: Instant) -> _ {
    operations::table.filter(operations::tenant_id.eq(tenant_id)).filter(operations::remember_until.le(now))
}

/// The operations of a tenant whose replay window is over, and whose body is still kept.
#[dsl::auto_type]
#[expect(clippy::elidable_lifetime_names, reason = "the macro needs the name")]
fn bodies_due<'a>(tenant_id: &'a str, now: Instant) -> _ {
    operations::table
        .filter(operations::tenant_id.eq(tenant_id))
        .filter(operations::reply_body.is_not_null())
        .filter(operations::replay_until.le(now))
}

fn every_tenant(db: &mut Db) -> Result<Vec<String>, Fault> {
    Ok(on_db!(db, conn => tenants::table.select(tenants::tenant_id).order(tenants::tenant_id).load(conn))?)
}

fn first_step(db: &mut Db, tenant_id: &str, now: Instant) -> Result<Option<Step>, Fault> {
    let due: (bool, bool) = on_db!(db, conn => diesel::select((
        exists(keys_due(tenant_id, now)),
        exists(bodies_due(tenant_id, now)),
    ))
    .get_result(conn))?;
    Ok(match due {
        (true, _) => Some(Step::Keys),
        (false, true) => Some(Step::Bodies),
        (false, false) => None,
    })
}

/// Forgets at most `limit` keys, those that ended first. What it removes it has locked before, without waiting for
/// anybody: so a request may wait for it, but the two never wait for each other.
///
/// Operations and claims are not joined: a planner that takes the four columns of a key for independent expects next to no
/// rows of the join, and reads whole tables for each batch.
fn forget_keys(db: &mut Db, tenant_id: &str, now: Instant, limit: usize) -> Result<usize, Fault> {
    let due = keys_due(tenant_id, now).order(operations::remember_until).limit(rows(limit)).select((
        operations::client_id,
        operations::command,
        operations::idempotency_key,
    ));
    let due: Vec<(String, String, String)> = load_unlocked!(&mut *db, due)?;
    let mut by_scope: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for (client_id, command, key) in &due {
        by_scope.entry((client_id, command)).or_default().push(key);
    }
    let mut forgotten = 0;
    for ((client_id, command), keys) in by_scope {
        let free = claims::table
            .filter(claims::tenant_id.eq(tenant_id))
            .filter(claims::client_id.eq(client_id))
            .filter(claims::command.eq(command))
            .filter(claims::idempotency_key.eq_any(&keys))
            .select(claims::idempotency_key);
        let free: Vec<String> = load_unlocked!(&mut *db, free)?;
        let free: Vec<&str> = free.iter().map(String::as_str).collect();
        forgotten += forget(db, (tenant_id, client_id, command), &free, now)?;
    }
    Ok(forgotten)
}

/// Drops at most `limit` recorded bodies, those whose window ended first, and what was derived from them.
fn drop_bodies(db: &mut Db, tenant_id: &str, now: Instant, limit: usize) -> Result<usize, Fault> {
    let found =
        bodies_due(tenant_id, now).order(operations::replay_until).limit(rows(limit)).select(operations::operation_id);
    let found: Vec<String> = load_unlocked!(&mut *db, found)?;
    let nothing = None::<String>;
    Ok(on_db!(db, conn => diesel::update(operations::table
        .filter(operations::tenant_id.eq(tenant_id))
        .filter(operations::operation_id.eq_any(&found)))
        .set((operations::reply_body.eq(&nothing), operations::member_digests.eq(&nothing)))
        .execute(conn))?)
}

fn rows(limit: usize) -> i64 {
    i64::try_from(limit).expect("a batch has at most 10,000 rows")
}

/// What a sweep would do for one tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// Whose rows they are.
    pub tenant_id: String,
    /// Keys that would be forgotten.
    pub keys: i64,
    /// Bodies that would be dropped, without those of these keys.
    pub bodies: i64,
}

/// Counts what is due now, for every tenant that has anything. Changes nothing; reads every index entry that is due.
///
/// # Errors
/// A [`Fault`] of the queries.
pub fn due(db: &mut Db) -> Result<Vec<Due>, Fault> {
    let now = db.now()?;
    db.snapshot(|db| {
        let mut due = Vec::new();
        for tenant_id in every_tenant(db)? {
            let keys = on_db!(&mut *db, conn => keys_due(&tenant_id, now).count().get_result(conn))?;
            let bodies = on_db!(&mut *db, conn => bodies_due(&tenant_id, now)
                .filter(operations::remember_until.gt(now))
                .count()
                .get_result(conn))?;
            if (keys, bodies) != (0, 0) {
                due.push(Due { tenant_id, keys, bodies });
            }
        }
        Ok(due)
    })
}
