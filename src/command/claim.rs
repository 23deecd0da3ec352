//! The claim of an idempotency key, and the result that is recorded under it. The claim is written first and never updated;
//! the result is a row of its own at the end of the same transaction.

use std::time::Duration;

use diesel::prelude::*;
use sha2::{Digest, Sha256};

use super::difference;
use super::forget::forget;
use super::reply::{Answer, Done, Recorded, Stop, operation_path};
use super::{Call, Tx};
use crate::db::tables::{claims, operations};
use crate::db::{self, Clock, Db, Fault};
use crate::on_db;
use crate::problem::{Code, Kept, Links, Problem};

#[cfg(feature = "deliberate-breaks")]
mod breaks;

/// What became of the attempt to win a key.
#[derive(Debug)]
pub enum Claim {
    /// The key is ours, from this moment of the database's clock on.
    Mine {
        /// The database's clock at the claim.
        now: db::Instant,
    },
    /// The key was won before, by a transaction that has committed.
    Taken(Box<Past>),
}

#[derive(Insertable)]
#[diesel(table_name = claims)]
struct NewClaim<'a> {
    tenant_id: &'a str,
    client_id: &'a str,
    command: &'a str,
    idempotency_key: &'a str,
    fingerprint: &'a str,
    operation_id: &'a str,
}

/// Wins the key of `call`, or finds who did. While a rival's transaction holds the key, the database makes us wait for it.
///
/// # Errors
/// [`Fault::ClaimHeld`] when the rival held the key for longer than the call may wait.
pub fn take(db: &mut Db, call: &Call) -> Result<Claim, Fault> {
    #[cfg(feature = "deliberate-breaks")]
    if let Some(claim) = breaks::take(db, call)? {
        return Ok(claim);
    }
    for _ in 0..TAKE_TRIES {
        if let Some(now) = insert(db, call)? {
            return Ok(Claim::Mine { now });
        }
        // The insert saw a committed rival. Only a new statement reads its rows (READ COMMITTED).
        match find(db, &call.tenant_id, call)? {
            Some(past) if past.is_forgotten => forget_key(db, call, past.now)?,
            Some(past) => return Ok(Claim::Taken(Box::new(past))),
            None => {}
        }
        // The row that stood in the way is forgotten, by us or by somebody else: the key is free, or won anew by a rival.
    }
    Err(Fault::Bug("a claim could neither be made nor found".to_owned()))
}

/// Each further try needs a claim that is forgotten between two of our statements; two of these in a row are an error.
const TAKE_TRIES: u32 = 3;

fn insert(db: &mut Db, call: &Call) -> Result<Option<db::Instant>, Fault> {
    let inserted = insert_key(db, call, call.key.as_str());
    if matches!(inserted, Ok(Some(_))) {
        call.turn.claimed();
    }
    inserted.map_err(|fault| held(call, fault))
}

/// Diesel does not tell a lock time-out from other errors (SQLSTATE 55P03 has no kind, and messages are localised), but a
/// lock time-out comes just when the patience is at its end. `another_can_be_made` removes the doubt.
fn held(call: &Call, fault: Fault) -> Fault {
    match fault {
        Fault::Database(_) if call.patience().is_zero() => Fault::ClaimHeld,
        other => other,
    }
}

fn insert_key(db: &mut Db, call: &Call, key: &str) -> Result<Option<db::Instant>, Fault> {
    let claim = NewClaim {
        tenant_id: &call.tenant_id,
        client_id: &call.client_id,
        command: call.command,
        idempotency_key: key,
        fingerprint: call.fingerprint.as_str(),
        operation_id: &call.operation_id,
    };
    let created_at = on_db!(db, conn => diesel::insert_into(claims::table)
        .values(&claim)
        .on_conflict_do_nothing()
        .returning(claims::created_at)
        .get_result(conn)
        .optional());
    Ok(created_at?)
}

/// Whether another key than the call's could be claimed right now. After a wait that was too long this tells a rival that
/// holds the very key (true) from a lock elsewhere, a full disk or a database that only reads (false). Leaves nothing.
pub fn another_can_be_made(db: &mut Db, call: &Call) -> bool {
    // No client can send this key: a blank is not allowed in one.
    let decoy = format!("decoy {}", uuid::Uuid::new_v4());
    db.rehearsal(DECOY_WAIT, |db| insert_key(db, call, &decoy)).is_ok()
}

/// Nobody else uses the decoy's key, so that any wait for it is for a lock elsewhere.
const DECOY_WAIT: Duration = Duration::from_millis(100);

/// A claimed key and its result, as found by a later call.
#[derive(Debug, Queryable)]
pub struct Past {
    fingerprint: String,
    operation_id: String,
    error: Option<String>,
    order_id: Option<String>,
    resource: Option<String>,
    reply_status: i32,
    reply_content_type: String,
    reply_location: Option<String>,
    reply_body: Option<String>,
    member_digests: Option<String>,
    replay_until: Option<db::Instant>,
    is_expired: bool,
    is_forgotten: bool,
    now: db::Instant,
}

fn find(db: &mut Db, tenant_id: &str, call: &Call) -> Result<Option<Past>, Fault> {
    let past = on_db!(db, conn => claims::table
        .inner_join(operations::table.on(operations::tenant_id
            .eq(claims::tenant_id)
            .and(operations::operation_id.eq(claims::operation_id))))
        .filter(claims::tenant_id.eq(tenant_id))
        .filter(claims::client_id.eq(&call.client_id))
        .filter(claims::command.eq(call.command))
        .filter(claims::idempotency_key.eq(call.key.as_str()))
        .select((
            claims::fingerprint,
            operations::operation_id,
            operations::error,
            operations::order_id,
            operations::resource,
            operations::reply_status,
            operations::reply_content_type,
            operations::reply_location,
            operations::reply_body,
            operations::member_digests,
            operations::replay_until,
            operations::replay_until.is_not_null().and(operations::replay_until.le(Clock.nullable()).assume_not_null()),
            operations::remember_until
                .is_not_null()
                .and(operations::remember_until.le(Clock.nullable()).assume_not_null()),
            Clock,
        ))
        .first::<Past>(conn)
        .optional());
    Ok(past?)
}

/// Frees the key of `call`. The cleaner may be at the same row, and then we wait for it as for a rival.
fn forget_key(db: &mut Db, call: &Call, now: db::Instant) -> Result<(), Fault> {
    let scope = (call.tenant_id.as_str(), call.client_id.as_str(), call.command);
    forget(db, scope, &[call.key.as_str()], now).map(|_| ()).map_err(|fault| held(call, fault))
}

impl Past {
    /// The answer to a call that found the key taken. The payload is compared before anything of the record is shown.
    ///
    /// # Errors
    /// [`Fault::Bug`] when the record cannot be read by this version of the program.
    pub fn answer(self, call: &Call) -> Result<Answer, Fault> {
        let same = call.intent.matches(&self.fingerprint).map_err(|error| Fault::Bug(error.to_string()))?;
        if !same {
            return Ok(Answer::Conflict(Box::new(self.conflict(call))));
        }
        let expires = self.replay_until.unwrap_or(self.now + call.retention.replay_window);
        match self.reply_body {
            Some(body) if !self.is_expired => {
                let recorded = Recorded {
                    status: u16::try_from(self.reply_status)
                        .map_err(|_| Fault::Bug(format!("recorded status {}", self.reply_status)))?,
                    content_type: self.reply_content_type,
                    location: self.reply_location,
                    body,
                };
                Ok(Answer::Replay { recorded, expires })
            }
            _ => Ok(Answer::Expired(Box::new(self.expired()))),
        }
    }

    fn conflict(&self, call: &Call) -> Problem {
        let first = if self.error.as_deref() == Some(Code::InvalidRequest.entry().name) {
            "The first request with this key was refused as invalid. A corrected order is a new intent and needs a new key."
        } else {
            "Another request was made with this key before. This one was not executed."
        };
        let details = match &self.member_digests {
            Some(stored) if !self.is_expired => difference::differences(&call.intent, stored, &self.fingerprint),
            _ => Vec::new(),
        };
        Problem { details, links: self.links(), ..Problem::new(Code::IdempotencyKeyConflict, first) }
    }

    fn expired(&self) -> Problem {
        Problem {
            order_id: self.order_id.clone(),
            links: self.links(),
            ..Problem::new(
                Code::IdempotencyKeyExpired,
                "This command was executed, but longer ago than the replay window; nothing was executed now.",
            )
        }
    }

    fn links(&self) -> Links {
        let links = match &self.resource {
            Some(path) => Links::default().with("self", path),
            None => Links::default(),
        };
        links.with("operation", operation_path(&self.operation_id))
    }
}

#[derive(Insertable)]
#[diesel(table_name = operations, treat_none_as_default_value = false)]
struct NewOperation<'a> {
    tenant_id: &'a str,
    operation_id: &'a str,
    client_id: &'a str,
    command: &'a str,
    idempotency_key: &'a str,
    status: &'a str,
    error: Option<&'a str>,
    order_id: Option<&'a str>,
    resource: Option<&'a str>,
    reply_status: i32,
    reply_content_type: &'a str,
    reply_location: Option<&'a str>,
    reply_body: &'a str,
    member_digests: &'a str,
    trace_id: &'a str,
    created_at: db::Instant,
    updated_at: db::Instant,
    completed_at: Option<db::Instant>,
    replay_until: Option<db::Instant>,
    remember_until: Option<db::Instant>,
}

/// Records what became of a claimed command, as the last statement of its transaction, and makes the answer of it.
///
/// # Errors
/// A fault of the command passes through: its transaction is rolled back, and the key is free.
pub fn record(tx: &mut Tx<'_>, outcome: Result<Done, Stop>) -> Result<Answer, Fault> {
    let (recorded, result) = match outcome {
        Ok(done) => succeeded(tx.call, done),
        Err(Stop::Refused(problem)) => refused(tx.call, *problem)?,
        Err(Stop::Fault(fault)) => return Err(fault),
    };
    #[cfg(feature = "deliberate-breaks")]
    breaks::before_the_reply(tx.db)?;
    let call = tx.call;
    let is_final = result.status != "processing";
    let until = |window| is_final.then(|| tx.now + window);
    let operation = NewOperation {
        tenant_id: &call.tenant_id,
        operation_id: &call.operation_id,
        client_id: &call.client_id,
        command: call.command,
        idempotency_key: call.key.as_str(),
        status: result.status,
        error: result.error,
        order_id: result.order_id.as_deref(),
        resource: result.resource.as_deref(),
        reply_status: i32::from(recorded.status),
        reply_content_type: &recorded.content_type,
        reply_location: recorded.location.as_deref(),
        reply_body: &recorded.body,
        member_digests: &call.member_digests,
        trace_id: &call.trace_id,
        created_at: tx.now,
        updated_at: tx.now,
        completed_at: is_final.then_some(tx.now),
        replay_until: until(call.retention.replay_window),
        remember_until: until(call.retention.key_memory),
    };
    on_db!(&mut *tx.db, conn => diesel::insert_into(operations::table).values(&operation).execute(conn))?;
    Ok(Answer::First { refused: result.error.is_some(), expires: tx.now + call.retention.replay_window, recorded })
}

/// What the operation's row says beside the recorded answer.
struct OperationResult {
    status: &'static str,
    error: Option<&'static str>,
    order_id: Option<String>,
    resource: Option<String>,
}

fn succeeded(call: &Call, done: Done) -> (Recorded, OperationResult) {
    let recorded = Recorded {
        status: done.status,
        content_type: "application/json".to_owned(),
        location: (done.status == 201).then(|| done.path.clone()),
        body: done.body(&call.operation_id),
    };
    let status = if done.goes_on { "processing" } else { "succeeded" };
    (recorded, OperationResult { status, error: None, order_id: done.order_id, resource: Some(done.path) })
}

fn refused(call: &Call, problem: Problem) -> Result<(Recorded, OperationResult), Fault> {
    let entry = problem.code.entry();
    if entry.kept != Kept::Recorded {
        return Err(Fault::Bug(format!("a command was refused with {}, which is not a refusal", entry.name)));
    }
    let problem = Problem { links: problem.links.with("operation", operation_path(&call.operation_id)), ..problem };
    let recorded = Recorded {
        status: entry.status,
        content_type: "application/problem+json".to_owned(),
        location: None,
        body: problem.body(&call.trace_id, Some(call.key.as_str())),
    };
    let result =
        OperationResult { status: "failed", error: Some(entry.name), order_id: problem.order_id, resource: None };
    Ok((recorded, result))
}

/// The name of the operation that stands for a key: derived from the scope, so that a caller which lost everything but its
/// key can name it. 128 bits of a SHA-256 over the length-prefixed parts.
#[must_use]
pub fn operation_id(tenant_id: &str, client_id: &str, command: &str, key: &str) -> String {
    let mut hash = Sha256::new();
    for part in ["operation:v1", tenant_id, client_id, command, key] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    format!("op_{}", hex::encode(&hash.finalize()[..16]))
}
