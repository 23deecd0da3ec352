//! What follows an attempt: a pure function of how it ended, of what was spent, and of a random number.

use std::time::Duration;

use super::deliver::{Doubt, Report};
use crate::config::Retry;
use crate::db;
use crate::outbox::Outcome;
use crate::outbox::lease::{DEAD_AFTER, Leased};
use crate::outbox::settle::{Next, Settlement};

/// The pause after so many failures in a row, 1 or more: between nothing and twice the pause of the failure before, but
/// never over the cap ("full jitter"), so that what failed together does not come back together.
fn backoff(retry: &Retry, failures: u32, random: u64) -> Duration {
    let doubled = 1_u64.checked_shl(failures.saturating_sub(1)).unwrap_or(u64::MAX);
    let most = millis(retry.base).saturating_mul(doubled).min(millis(retry.cap));
    Duration::from_millis(random % most.saturating_add(1))
}

/// Whether a message that failed once more, as its `spent`th attempt that counts, has another.
fn has_another(retry: &Retry, spent: u32, since: db::Instant, now: db::Instant) -> bool {
    spent < retry.attempts && (now - since).to_std().unwrap_or_default() < retry.budget
}

/// Whether a message has no attempt left, counted at its lease. Its time does not count here: it may be over only because no
/// relay was there.
pub(super) fn is_spent(leased: &Leased, retry: &Retry) -> bool {
    u32::try_from(leased.spent).unwrap_or_default() >= retry.attempts
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// What becomes of the message.
pub(super) fn settlement(report: &Report, leased: &Leased, retry: &Retry, random: u64, now: db::Instant) -> Settlement {
    let counts = match report.outcome {
        // That nobody is there was known before: it costs an order the time of its budget, and none of its attempts.
        Outcome::NotDelivered if leased.is_probe => false,
        Outcome::NotDelivered | Outcome::Unavailable | Outcome::Unknown => true,
        // Misconfigured is no fault of the message's: it has its whole budget when the connection is well again.
        Outcome::Delivered | Outcome::AlreadyThere | Outcome::Refused | Outcome::Conflict | Outcome::Misconfigured => {
            false
        }
    };
    let next = match report.outcome {
        Outcome::Delivered | Outcome::AlreadyThere => Next::Delivered,
        Outcome::Refused => Next::Refused,
        Outcome::Conflict => Next::Parked,
        Outcome::Unknown if report.ask_a_person => Next::Parked,
        // The pause of the connection decides when it is tried again.
        Outcome::Misconfigured => Next::Again(now),
        Outcome::NotDelivered | Outcome::Unavailable | Outcome::Unknown => {
            let spent = u32::try_from(leased.spent).unwrap_or_default() + u32::from(counts);
            if has_another(retry, spent, leased.spent_since.unwrap_or(now), now) {
                Next::Again(next_attempt(report, retry, spent, random, now))
            } else {
                Next::Parked
            }
        }
    };
    let unknown_since = match report.doubt {
        Doubt::None => None,
        Doubt::Kept => leased.unknown_since,
        Doubt::Arose => Some(now),
    };
    Settlement { outcome: report.outcome, detail: report.detail.clone(), next, unknown_since, counts }
}

/// Not before the pause is over, not before the ERP wants it (within the cap), and not before a look can say anything.
fn next_attempt(report: &Report, retry: &Retry, spent: u32, random: u64, now: db::Instant) -> db::Instant {
    let wished = report.retry_after.unwrap_or_default().min(retry.cap);
    let pause = backoff(retry, spent, random).max(wished);
    report.not_before.map_or(now + pause, |not_before| not_before.max(now + pause))
}

/// How the connection does after an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Health {
    /// Failures in a row.
    pub(super) failures: i32,
    /// Until when nothing is sent.
    pub(super) paused_until: Option<db::Instant>,
}

/// A connection that is misconfigured rests for the whole cap; one that seems dead rests longer each time. Both get well by
/// themselves: after the pause one message tries. A message that fails `again` without anybody knowing how says more of
/// itself than of the connection, and makes it rest no longer.
pub(super) fn health(
    (outcome, again): (Outcome, bool),
    failures_before: i32,
    retry: &Retry,
    random: u64,
    now: db::Instant,
) -> Health {
    let failures =
        if outcome == Outcome::Unknown && again { failures_before } else { failures_before.saturating_add(1) };
    match outcome {
        Outcome::Delivered | Outcome::AlreadyThere | Outcome::Refused | Outcome::Conflict => {
            Health { failures: 0, paused_until: None }
        }
        Outcome::Misconfigured => Health { failures: failures.max(DEAD_AFTER), paused_until: Some(now + retry.cap) },
        Outcome::NotDelivered | Outcome::Unavailable | Outcome::Unknown if failures < DEAD_AFTER => {
            Health { failures, paused_until: None }
        }
        Outcome::NotDelivered | Outcome::Unavailable | Outcome::Unknown => {
            let since_dead = u32::try_from(failures - DEAD_AFTER).unwrap_or_default() + 1;
            Health { failures, paused_until: Some(now + backoff(retry, since_dead, random)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Retry, backoff, has_another, health};
    use crate::outbox::Outcome;
    use crate::outbox::lease::DEAD_AFTER;

    const RETRY: Retry = Retry {
        base: Duration::from_secs(1),
        cap: Duration::from_mins(15),
        attempts: 20,
        budget: Duration::from_hours(72),
    };

    fn noon() -> crate::db::Instant {
        chrono::NaiveDate::from_ymd_opt(2026, 3, 2).and_then(|day| day.and_hms_opt(12, 0, 0)).expect("a date")
    }

    #[test]
    fn a_pause_is_anything_up_to_a_limit_that_doubles_and_is_capped() {
        for (failures, most) in
            [(1, 1_000), (2, 2_000), (5, 16_000), (10, 512_000), (11, 900_000), (4_000_000, 900_000)]
        {
            assert_eq!(backoff(&RETRY, failures, 0), Duration::ZERO);
            assert_eq!(backoff(&RETRY, failures, most), Duration::from_millis(most));
            assert_eq!(backoff(&RETRY, failures, most + 1), Duration::ZERO, "the draw wraps round");
            assert!(backoff(&RETRY, failures, u64::MAX) <= Duration::from_millis(most));
        }
        let widest = Retry { base: Duration::MAX, cap: Duration::MAX, ..RETRY };
        assert_eq!(backoff(&widest, 64, u64::MAX - 1), Duration::from_millis(u64::MAX - 1));
    }

    #[test]
    fn a_budget_ends_by_attempts_and_by_time() {
        let later = |hours| noon() + Duration::from_hours(hours);
        assert!(has_another(&RETRY, 19, noon(), later(71)));
        assert!(!has_another(&RETRY, 20, noon(), noon()));
        assert!(!has_another(&RETRY, 1, noon(), later(72)));
        // A database whose clock was set back gives no endless budget, and takes none away.
        assert!(has_another(&RETRY, 1, later(1), noon()));
    }

    #[test]
    fn a_connection_rests_when_it_is_misconfigured_or_seems_dead_and_a_success_heals_it() {
        let dead = DEAD_AFTER - 1;
        assert_eq!(health((Outcome::Unknown, false), dead - 1, &RETRY, 7, noon()).paused_until, None);
        let resting = health((Outcome::NotDelivered, true), dead, &RETRY, 700, noon());
        assert_eq!((resting.failures, resting.paused_until), (DEAD_AFTER, Some(noon() + Duration::from_millis(700))));
        // A message that failed before says nothing new of the connection, and a dead one goes on resting as it did.
        assert_eq!(health((Outcome::Unknown, true), dead, &RETRY, 7, noon()).failures, dead);
        let again = health((Outcome::Unknown, true), DEAD_AFTER, &RETRY, 700, noon());
        assert_eq!((again.failures, again.paused_until), (DEAD_AFTER, Some(noon() + Duration::from_millis(700))));
        let wrong = health((Outcome::Misconfigured, false), 0, &RETRY, 7, noon());
        assert_eq!((wrong.failures, wrong.paused_until), (DEAD_AFTER, Some(noon() + RETRY.cap)));
        for outcome in [Outcome::Delivered, Outcome::AlreadyThere, Outcome::Refused, Outcome::Conflict] {
            let well = health((outcome, true), 99, &RETRY, 7, noon());
            assert_eq!((well.failures, well.paused_until), (0, None), "the ERP answered");
        }
    }
}
