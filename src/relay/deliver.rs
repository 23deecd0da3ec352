//! One attempt, without the database: look where the last outcome is unknown, send where that is safe, and report.

use std::future::Future;
use std::time::{Duration, Instant};

use super::Rules;
use crate::db;
use crate::erp::{Cancelled, Delivery, Failure, Gateway, Taken, Verification};
use crate::outbox::lease::Leased;
use crate::outbox::{Kind, Outcome};

/// What an attempt leaves of the question whether the ERP has the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// Nothing: it surely has, or surely has not.
    None,
    /// What there was before: nothing was sent.
    Kept,
    /// It was sent, and nobody knows.
    Arose,
}

/// How an attempt ended.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) outcome: Outcome,
    pub(super) detail: String,
    pub(super) doubt: Doubt,
    /// The ERP's own name of the order, where it told one.
    pub(super) erp_reference: Option<String>,
    /// When the ERP wants to be asked again.
    pub(super) retry_after: Option<Duration>,
    /// Before this moment a look cannot say more than it has said.
    pub(super) not_before: Option<db::Instant>,
    /// Nobody but a person can remove the doubt.
    pub(super) ask_a_person: bool,
}

impl Report {
    pub(super) fn new(outcome: Outcome, detail: impl Into<String>, doubt: Doubt) -> Report {
        Report {
            outcome,
            detail: detail.into(),
            doubt,
            erp_reference: None,
            retry_after: None,
            not_before: None,
            ask_a_person: false,
        }
    }

    fn taken(taken: Taken) -> Report {
        let (outcome, detail) = if taken.before {
            (Outcome::AlreadyThere, "the ERP had it already")
        } else {
            (Outcome::Delivered, "the ERP has taken it")
        };
        Report { erp_reference: taken.erp_reference, ..Report::new(outcome, detail, Doubt::None) }
    }

    /// The report of a failure that leaves `doubt` where it says nothing about it itself.
    pub(super) fn of_failure(failure: &Failure, doubt: Doubt) -> Report {
        let detail = failure.to_string();
        match failure {
            Failure::Refused(_) => Report::new(Outcome::Refused, detail, Doubt::None),
            // Something is there under our name, perhaps of our own making: nothing may be taken back as if it were not.
            Failure::Conflict(_) => Report::new(Outcome::Conflict, detail, Doubt::Arose),
            Failure::Misconfigured(_) => Report::new(Outcome::Misconfigured, detail, doubt),
            Failure::NotDelivered(_) => Report::new(Outcome::NotDelivered, detail, doubt),
            Failure::Unavailable { retry_after, .. } => {
                Report { retry_after: *retry_after, ..Report::new(Outcome::Unavailable, detail, doubt) }
            }
            Failure::Unknown(_) => Report::new(Outcome::Unknown, detail, Doubt::Arose),
        }
    }
}

/// Attempts to deliver a message. `deadline` is the end of its lease: nothing is sent that could still be under way then.
pub(super) async fn deliver(gateway: &dyn Gateway, leased: &Leased, rules: &Rules, deadline: Instant) -> Report {
    let name = (leased.message_id.as_str(), leased.kind);
    let delivery = Delivery::new(name, &leased.payload, &leased.trace_id, (leased.number, leased.leased_at));
    let delivery = match delivery {
        Ok(delivery) => delivery,
        Err(failure) => return Report::of_failure(&failure, Doubt::Kept),
    };
    let verification = gateway.verification(leased.kind);
    let limits = Limits { request: rules.erp_timeout, deadline };
    let window_ends = leased.unknown_since.map(|since| since + rules.settle_window);
    let absent = match window_ends {
        None => Doubt::None,
        Some(window_ends) => match verify(gateway, verification, &delivery, leased, (window_ends, limits)).await {
            Ok(doubt) => doubt,
            Err(report) => return *report,
        },
    };
    if Instant::now() + rules.erp_timeout > deadline {
        let detail = "the lease was nearly over before anything was sent";
        return Report::new(Outcome::NotDelivered, detail, absent);
    }
    let report = in_time(limits, send(gateway, &delivery, absent)).await;
    let report = report.unwrap_or_else(|failure| Report::of_failure(&failure, absent));
    last_word(report, verification, window_ends, delivery.now)
}

/// Whether a refusal is the last word. After an unknown outcome an earlier request may have been taken all the same, or may
/// still be at work: then it takes a look that counts, or a person, to say that the ERP does not have it.
fn last_word(report: Report, verification: Verification, window_ends: Option<db::Instant>, now: db::Instant) -> Report {
    let ask_a_person = report.outcome == Outcome::Unknown && verification == Verification::AskAPerson;
    let (Outcome::Refused, Some(window_ends)) = (report.outcome, window_ends) else {
        return Report { ask_a_person, ..report };
    };
    let in_doubt = |not_before, ask_a_person| {
        let detail = format!("refused, but an earlier request may have been taken: {}", report.detail);
        Report { not_before, ask_a_person, ..Report::new(Outcome::Unknown, detail, Doubt::Kept) }
    };
    match verification {
        Verification::LookThenSend if window_ends > now => in_doubt(Some(window_ends), false),
        // The look before this attempt said that it is not there, when that counted.
        Verification::LookThenSend | Verification::LookAndWait => report,
        Verification::SendAgain | Verification::AskAPerson => in_doubt(None, true),
    }
}

/// Until when an attempt may go on.
#[derive(Clone, Copy)]
struct Limits {
    /// The most time of one request to the ERP.
    request: Duration,
    /// The end of the lease.
    deadline: Instant,
}

/// Removes the doubt about an earlier attempt. `Ok` allows sending, and says what doubt there still is; `Err` is the end of
/// this attempt.
async fn verify(
    gateway: &dyn Gateway,
    verification: Verification,
    delivery: &Delivery,
    leased: &Leased,
    (window_ends, limits): (db::Instant, Limits),
) -> Result<Doubt, Box<Report>> {
    let absence_counts = match verification {
        Verification::SendAgain => return Ok(Doubt::Kept),
        Verification::AskAPerson if leased.resend_asked => return Ok(Doubt::Kept),
        Verification::AskAPerson => {
            let detail = "nobody but a person can tell whether the ERP has it";
            return Err(Box::new(Report { ask_a_person: true, ..Report::new(Outcome::Unknown, detail, Doubt::Kept) }));
        }
        Verification::LookThenSend => true,
        Verification::LookAndWait => window_ends <= delivery.now,
    };
    match in_time(limits, gateway.find(delivery)).await {
        Ok(Some(found)) => {
            let found = Taken { before: true, ..found };
            Err(Box::new(match delivery.kind {
                Kind::OrderCreated | Kind::OrderReplaced => advance(gateway, delivery, limits, found).await,
                Kind::OrderCancelled | Kind::PaymentReceived | Kind::MessageRequested => Report::taken(found),
            }))
        }
        // Where the ERP refuses a second one, the first may still come: the doubt stays until a request has its answer.
        Ok(None) if verification == Verification::LookThenSend => Ok(Doubt::Kept),
        Ok(None) if absence_counts => Ok(Doubt::None),
        Ok(None) => {
            let detail = "not found yet, but the ERP may still be working on it";
            let report = Report::new(Outcome::Unknown, detail, Doubt::Kept);
            Err(Box::new(Report { not_before: Some(window_ends), ..report }))
        }
        // A look that fails has changed nothing, and says nothing about the message.
        Err(Failure::Refused(detail)) => Err(Box::new(Report::new(Outcome::Unknown, detail, Doubt::Kept))),
        Err(failure) => Err(Box::new(Report { doubt: Doubt::Kept, ..Report::of_failure(&failure, Doubt::Kept) })),
    }
}

/// An order that the ERP has is driven on. The order is there whatever comes of this, so nothing is to be sent again; a failure
/// keeps the doubt, and the next attempt finds it and drives on.
async fn advance(gateway: &dyn Gateway, delivery: &Delivery, limits: Limits, taken: Taken) -> Report {
    match in_time(limits, gateway.advance(delivery)).await {
        Ok(named) => Report::taken(Taken { erp_reference: named.or(taken.erp_reference), ..taken }),
        Err(failure) => Report { doubt: Doubt::Arose, ..Report::of_failure(&failure, Doubt::Arose) },
    }
}

async fn send(gateway: &dyn Gateway, delivery: &Delivery, absent: Doubt) -> Result<Report, Failure> {
    match delivery.kind {
        Kind::OrderCreated | Kind::OrderReplaced => {
            let taken = gateway.create(delivery).await?;
            match gateway.advance(delivery).await {
                Ok(named) => Ok(Report::taken(Taken { erp_reference: named.or(taken.erp_reference), ..taken })),
                Err(failure) => Ok(Report { doubt: Doubt::Arose, ..Report::of_failure(&failure, Doubt::Arose) }),
            }
        }
        Kind::PaymentReceived => gateway.receive_payment(delivery).await.map(Report::taken),
        Kind::MessageRequested => Err(Failure::Conflict("a mail has come on the way to the ERP".to_owned())),
        Kind::OrderCancelled => Ok(match gateway.cancel(delivery).await? {
            Cancelled::Now => Report::new(Outcome::Delivered, "the ERP has cancelled it", Doubt::None),
            Cancelled::Before => Report::new(Outcome::AlreadyThere, "the ERP had cancelled it already", Doubt::None),
            Cancelled::NotFound => Report::new(Outcome::AlreadyThere, "the ERP has no such order", Doubt::None),
            Cancelled::TooLate(detail) => Report::new(Outcome::Refused, detail, absent),
        }),
    }
}

/// A gateway that hangs in spite of its own time-out must not outlive the lease.
async fn in_time<T>(limits: Limits, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let end = limits.deadline.min(Instant::now() + limits.request);
    let answered = tokio::time::timeout_at(end.into(), work).await;
    answered.unwrap_or_else(|_| Err(Failure::Unknown("the ERP did not answer in time".to_owned())))
}

#[cfg(test)]
mod tests {
    use super::{Doubt, Report};
    use crate::erp::Failure;

    #[test]
    fn only_a_failure_that_surely_left_nothing_leaves_no_doubt() {
        let text = || "why".to_owned();
        let unavailable = Failure::Unavailable { detail: text(), retry_after: None };
        for (failure, of_none, of_kept) in [
            (Failure::Refused(text()), Doubt::None, Doubt::None),
            (Failure::Conflict(text()), Doubt::Arose, Doubt::Arose),
            (Failure::Misconfigured(text()), Doubt::None, Doubt::Kept),
            (Failure::NotDelivered(text()), Doubt::None, Doubt::Kept),
            (unavailable, Doubt::None, Doubt::Kept),
            (Failure::Unknown(text()), Doubt::Arose, Doubt::Arose),
        ] {
            let found = [Doubt::None, Doubt::Kept].map(|before| Report::of_failure(&failure, before).doubt);
            assert_eq!(found, [of_none, of_kept], "{failure:?}");
        }
    }
}
