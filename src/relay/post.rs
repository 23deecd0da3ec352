//! One attempt to send a mail, without the database. There is no look at the mail server: where a mail may have been sent, only
//! a person can tell, and only a person has it sent again.

use std::time::Instant;

use super::Rules;
use super::deliver::{Doubt, Report};
use crate::mail::{Letter, Mailer};
use crate::outbox::Outcome;
use crate::outbox::lease::Leased;

/// Attempts to send a mail. `deadline` is the end of its lease: nothing is sent that could still be under way then.
pub(super) async fn post(mailer: &Mailer, leased: &Leased, rules: &Rules, deadline: Instant) -> Report {
    let letter = match Letter::read(&leased.message_id, &leased.payload) {
        Ok(letter) => letter,
        Err(failure) => return Report::of_failure(&failure, Doubt::Kept),
    };
    let in_doubt = leased.unknown_since.is_some();
    if in_doubt && !leased.resend_asked {
        let detail = "nobody but a person can tell whether the mail was sent";
        return Report { ask_a_person: true, ..Report::new(Outcome::Unknown, detail, Doubt::Kept) };
    }
    let doubt = if in_doubt { Doubt::Kept } else { Doubt::None };
    let until = Instant::now() + rules.erp_timeout;
    if until > deadline {
        return Report::new(Outcome::NotDelivered, "the lease was nearly over before anything was sent", doubt);
    }
    match mailer.send(&letter, until).await {
        Ok(()) => Report::new(Outcome::Delivered, "the mail server has taken it", Doubt::None),
        Err(failure) => {
            let report = Report::of_failure(&failure, doubt);
            Report { ask_a_person: report.outcome == Outcome::Unknown, ..report }
        }
    }
}
