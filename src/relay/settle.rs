//! What an attempt means is written down in one transaction: the message, the attempt, the order, the operation, and how the
//! connection does. A database that does not take it is asked again, and the ERP is not.

use std::time::Duration;

use super::deliver::Report;
use super::{Rules, policy};
use crate::command::order_rows;
use crate::command::settlement::{self, Conclusion, Subject};
use crate::db::{self, Db, Fault, Pool};
use crate::outbox::connection::{self, Connection};
use crate::outbox::lease::Leased;
use crate::outbox::settle::{self as message, Next};
use crate::problem::Code;

/// How long a settlement waits for a rival that changes the same order.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// How often a database that does not take the settlement is asked. After that the lease ends, and the next relay finds the
/// order at the ERP.
const TRIES: u32 = 100;

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(200);

/// Settles an attempt. `false`: the lease was lost, and nothing was written.
pub(super) async fn settle(pool: &Pool, leased: Leased, report: Report, rules: Rules) -> Result<bool, Fault> {
    let mut tries_left = TRIES;
    loop {
        let (attempt, outcome) = (leased.clone(), report.clone());
        let settled = pool.run(move |db| write(db, &attempt, &outcome, &rules)).await;
        tries_left -= 1;
        match settled {
            // A settlement whose COMMIT is in doubt is tried again like the others: the lease's token decides. One that did
            // arrive then looks like a lost lease, which harms nobody.
            Err(fault) if passes_by_waiting(&fault) && tries_left > 0 => {
                log::warn!("attempt {} of {} is not written down yet: {fault}", leased.number, leased.message_id);
                tokio::time::sleep(PAUSE).await;
            }
            settled => return settled,
        }
    }
}

fn passes_by_waiting(fault: &Fault) -> bool {
    match fault {
        Fault::Busy
        | Fault::Unreachable(_)
        | Fault::Database(_)
        | Fault::Serialization(_)
        | Fault::CommitUnknown(_) => true,
        Fault::ClaimHeld | Fault::Bug(_) => false,
    }
}

fn write(db: &mut Db, leased: &Leased, report: &Report, rules: &Rules) -> Result<bool, Fault> {
    let random = random()?;
    db.transaction(LOCK_WAIT, |db| {
        let tenant_id = leased.tenant_id.as_str();
        // The order before its messages, as every command does.
        order_rows::find_and_lock(db, tenant_id, &leased.order_id)?;
        let now = db.now()?;
        let settlement = policy::settlement(report, leased, &rules.retry, random, now);
        if !message::settle(db, leased, &settlement, now)? {
            return Ok(false);
        }
        let subject = Subject {
            tenant_id,
            order_id: &leased.order_id,
            operation_id: &leased.operation_id,
            message_id: &leased.message_id,
            kind: leased.kind,
        };
        let conclusion = match settlement.next {
            Next::Delivered => Some(Conclusion::Delivered(report.erp_reference.as_deref())),
            Next::Refused => Some(Conclusion::No(Code::RefusedByErp)),
            Next::Parked => Some(Conclusion::Unresolved),
            Next::Again(_) => None,
        };
        if let Some(conclusion) = conclusion {
            settlement::conclude(db, &subject, conclusion, rules.retention, now)?;
        }
        report_health(db, leased, report, rules, (random, now))?;
        Ok(true)
    })
}

/// Nothing is written, and nobody waits, while the connection does as before.
fn report_health(
    db: &mut Db,
    leased: &Leased,
    report: &Report,
    rules: &Rules,
    (random, now): (u64, db::Instant),
) -> Result<(), Fault> {
    let (tenant_id, channel) = (leased.tenant_id.as_str(), leased.kind.channel());
    let change = |connection: &Connection| {
        // What failed by a connection that was changed since says nothing about the new one.
        if connection.created_at != leased.connection_made_at {
            return None;
        }
        let kind = (report.outcome, leased.spent > 0);
        let health = policy::health(kind, connection.failures, &rules.retry, random, now);
        (health.failures != connection.failures || health.paused_until != connection.paused_until).then_some(health)
    };
    if connection::find(db, tenant_id, channel)?.as_ref().and_then(change).is_none() {
        return Ok(());
    }
    // Attempts of one connection that end together count one after the other.
    let Some(health) = connection::lock(db, tenant_id, channel)?.as_ref().and_then(change) else { return Ok(()) };
    let pause = health.paused_until.map(|until| (until, report.detail.as_str()));
    connection::report(db, (tenant_id, channel), health.failures, pause, now)
}

fn random() -> Result<u64, Fault> {
    getrandom::u64().map_err(|error| Fault::Bug(format!("no randomness: {error}")))
}
