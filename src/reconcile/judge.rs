//! Whether the two sides say the same of one order: pure functions of what each of them knows.

use crate::command::hand_over_again::Standing;
use crate::erp::Listed;
use crate::money::Currency;

use super::ours::Order;

/// What a comparison of one order came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Both sides say the same.
    Equal,
    /// A relay is at it, so that there is nothing to compare yet.
    OnItsWay,
    /// The ERP lacks it. In words.
    Missing(String),
    /// They differ. In words.
    Different(String),
}

/// Whether the ERP should have the order by what we say.
pub(super) fn is_to_be_there(order: &Order) -> bool {
    matches!(order.status.as_str(), "accepted" | "confirmed" | "cancelling")
}

/// Whether the ERP is just being told of the order for the first time.
pub(super) fn is_on_its_way(order: &Order) -> bool {
    order.status == "accepted" && order.hand_over == Standing::OnItsWay
}

/// The ERP has no order of this reference.
pub(super) fn absent(order: &Order) -> Verdict {
    if is_on_its_way(order) {
        return Verdict::OnItsWay;
    }
    if !is_to_be_there(order) {
        return Verdict::Equal;
    }
    let rest = match (&order.hand_over, order.status.as_str()) {
        (Standing::OnItsWay, _) => "; its hand-over is on its way",
        (Standing::WithAPerson, _) => "; its operation is unresolved: retry it, or resolve it",
        (Standing::Gone, _) => "; there is no hand-over that could be repeated",
        (Standing::Stopped(_), _) => "; its hand-over was repeated and has stopped",
        (Standing::Over(_), "cancelling") => "; it is being cancelled",
        (Standing::Over(_), _) => "",
    };
    Verdict::Missing(format!("{} here, and the ERP has none{rest}", order.status))
}

/// A look has found the order. It tells its own name and nothing else.
pub(super) fn found(order: &Order, erp_reference: Option<&str>) -> Verdict {
    let mut differences = Vec::from_iter(wrong_state(order));
    differences.extend(other_name(order, erp_reference));
    verdict(&differences)
}

/// The list holds the order.
pub(super) fn listed(order: &Order, listed: &Listed) -> Verdict {
    if is_on_its_way(order) {
        return Verdict::OnItsWay;
    }
    if listed.cancelled {
        return match order.status.as_str() {
            "accepted" | "confirmed" => verdict(&[format!("{} here, cancelled at the ERP", order.status)]),
            // What is cancelled, or refused, or about to be, is nowhere sold: its figures matter to nobody.
            _ => Verdict::Equal,
        };
    }
    let mut differences = Vec::from_iter(wrong_state(order));
    if order.status == "cancelled" {
        differences.push("cancelled here, and not at the ERP".to_owned());
    }
    differences.extend(other_name(order, listed.erp_reference.as_deref()));
    if let Some(theirs) = listed.currency.as_ref().filter(|theirs| **theirs != order.currency) {
        differences.push(format!("currency {} here, {theirs} there", order.currency));
    }
    differences.extend(other_total(order, listed));
    if let Some(theirs) = listed.lines.filter(|theirs| *theirs != order.lines) {
        differences.push(format!("{} lines here, {theirs} there", order.lines));
    }
    verdict(&differences)
}

fn verdict(differences: &[String]) -> Verdict {
    if differences.is_empty() { Verdict::Equal } else { Verdict::Different(differences.join("; ")) }
}

/// What the ERP has, and should not have by what we say.
fn wrong_state(order: &Order) -> Option<String> {
    match (order.status.as_str(), &order.hand_over) {
        ("rejected", _) => Some("rejected here, and the ERP has it".to_owned()),
        (_, Standing::Stopped(_)) => {
            Some("the ERP has it; its hand-over was repeated and has stopped, and what follows waits".to_owned())
        }
        ("accepted", Standing::WithAPerson) => {
            Some("the ERP has it; its operation is unresolved: resolve it as delivered".to_owned())
        }
        ("accepted", Standing::Gone) => {
            Some("the ERP has it, and nothing here says that it was handed over".to_owned())
        }
        _ => None,
    }
}

fn other_name(order: &Order, erp_reference: Option<&str>) -> Option<String> {
    let (ours, theirs) = order.erp_reference.as_deref().zip(erp_reference)?;
    (ours != theirs).then(|| format!("the ERP's name is {ours} here, {theirs} there"))
}

/// Rounding line by line may leave a minor unit a line.
fn other_total(order: &Order, listed: &Listed) -> Option<String> {
    let (ours, theirs) = order.total.zip(listed.total)?;
    let tolerance = Currency::from_code(&order.currency)?.tolerance(order.lines);
    let differs = ours.checked_sub(theirs).is_none_or(|difference| difference.abs() > tolerance);
    differs.then(|| format!("total {ours} here, {theirs} there"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::exact;
    use crate::reconcile::ours::Place;

    fn ours(status: &str) -> Order {
        Order {
            place: Place { created_at: chrono::NaiveDateTime::default(), order_id: "ord_1".to_owned() },
            reference: "web/1".to_owned(),
            status: status.to_owned(),
            currency: "EUR".to_owned(),
            erp_reference: Some("SO-1".to_owned()),
            total: exact("10.00"),
            lines: 2,
            hand_over: Standing::Over("msg_1".to_owned()),
        }
    }

    fn theirs() -> Listed {
        Listed {
            reference: "web/1".to_owned(),
            erp_reference: Some("SO-1".to_owned()),
            currency: Some("EUR".to_owned()),
            total: exact("10"),
            lines: Some(2),
            cancelled: false,
        }
    }

    fn words(verdict: Verdict) -> String {
        match verdict {
            Verdict::Equal => "equal".to_owned(),
            Verdict::OnItsWay => "on its way".to_owned(),
            Verdict::Missing(detail) | Verdict::Different(detail) => detail,
        }
    }

    #[test]
    fn each_member_that_differs_is_named_and_what_is_not_told_is_not_compared() {
        assert_eq!(listed(&ours("confirmed"), &theirs()), Verdict::Equal);
        let silent = Listed { erp_reference: None, currency: None, total: None, lines: None, ..theirs() };
        assert_eq!(listed(&ours("confirmed"), &silent), Verdict::Equal);
        assert_eq!(listed(&Order { total: None, ..ours("confirmed") }, &theirs()), Verdict::Equal);
        let other = Listed {
            erp_reference: Some("SO-2".to_owned()),
            currency: Some("CZK".to_owned()),
            total: exact("10.03"),
            lines: Some(3),
            ..theirs()
        };
        assert_eq!(
            words(listed(&ours("confirmed"), &other)),
            "the ERP's name is SO-1 here, SO-2 there; currency EUR here, CZK there; total 10.00 here, 10.03 there; \
             2 lines here, 3 there"
        );
        // A cent a line may be lost to rounding.
        assert_eq!(listed(&ours("confirmed"), &Listed { total: exact("10.02"), ..theirs() }), Verdict::Equal);
    }

    #[test]
    fn a_cancel_on_one_side_alone_is_a_difference() {
        let cancelled = Listed { cancelled: true, total: exact("0"), ..theirs() };
        for (status, live, gone) in [
            ("confirmed", "equal", "confirmed here, cancelled at the ERP"),
            ("cancelled", "cancelled here, and not at the ERP", "equal"),
            ("cancelling", "equal", "equal"),
            ("rejected", "rejected here, and the ERP has it", "equal"),
        ] {
            assert_eq!(words(listed(&ours(status), &theirs())), live);
            assert_eq!(words(listed(&ours(status), &cancelled)), gone);
        }
    }

    #[test]
    fn what_is_absent_is_missing_only_where_we_say_that_it_is_there() {
        for (status, hand_over, said) in [
            ("confirmed", Standing::Over(String::new()), "confirmed here, and the ERP has none"),
            ("confirmed", Standing::OnItsWay, "confirmed here, and the ERP has none; its hand-over is on its way"),
            ("accepted", Standing::OnItsWay, "on its way"),
            (
                "accepted",
                Standing::WithAPerson,
                "accepted here, and the ERP has none; its operation is unresolved: retry it, or resolve it",
            ),
            (
                "accepted",
                Standing::Gone,
                "accepted here, and the ERP has none; there is no hand-over that could be repeated",
            ),
            (
                "cancelling",
                Standing::Over(String::new()),
                "cancelling here, and the ERP has none; it is being cancelled",
            ),
            ("cancelled", Standing::Gone, "equal"),
            ("rejected", Standing::Gone, "equal"),
        ] {
            assert_eq!(words(absent(&Order { hand_over, ..ours(status) })), said);
        }
    }
}
