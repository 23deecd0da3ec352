//! The rules that join several members of an order. Each looks only at members that are well formed themselves, so that
//! it can run beside the table's own checks and all faults are reported at once.
//!
//! The rules read the normal form; its pointers are those of the body, as no element of an array is dropped or moved.

use super::table::{LINE_KINDS, NEGATIVE_KINDS};
use super::totals;
use crate::json::Json;
use crate::schema::{Faults, code};
use std::collections::{HashMap, HashSet};

/// Adds the faults of all rules.
pub(super) fn check(body: &Json, faults: &mut Faults) {
    let lines = body.get("items").and_then(Json::as_array).unwrap_or_default();
    let ids = LineIds::read(lines);
    names_its_customer(body, faults);
    products_have_a_name(lines, faults);
    line_ids_are_unique(&ids, faults);
    parents_exist(lines, &ids, faults);
    no_line_is_its_own_parent(lines, &ids, faults);
    only_reductions_are_negative(lines, faults);
    discounts_name_lines(body, &ids, faults);
    totals::check(body, lines, faults);
}

/// Which ids the lines have, and where each stands first and again.
struct LineIds<'a> {
    first: HashMap<&'a str, usize>,
    repeated: Vec<usize>,
}

impl<'a> LineIds<'a> {
    fn read(lines: &'a [Json]) -> LineIds<'a> {
        let mut ids = LineIds { first: HashMap::new(), repeated: Vec::new() };
        for (index, line) in lines.iter().enumerate() {
            if let Some(id) = line.text("lineId") {
                if ids.first.contains_key(id) {
                    ids.repeated.push(index);
                } else {
                    ids.first.insert(id, index);
                }
            }
        }
        ids
    }

    fn contains(&self, id: &str) -> bool {
        self.first.contains_key(id)
    }
}

/// What the line is; `None` when it is no line at all, or says something that is not known.
fn kind_of(line: &Json) -> Option<&str> {
    line.as_object()?;
    let kind = line.get("kind").map_or(Some(LINE_KINDS[0]), Json::as_text)?;
    LINE_KINDS.contains(&kind).then_some(kind)
}

fn names_its_customer(body: &Json, faults: &mut Faults) {
    let is_object = body.as_object().is_some();
    if is_object && body.get("customerId").is_none() && body.get("customer").is_none() {
        faults.add("/customerId", code::REQUIRED, "Say who orders: send `customerId`, or `customer`.");
    }
}

fn products_have_a_name(lines: &[Json], faults: &mut Faults) {
    for (index, line) in lines.iter().enumerate() {
        let named = line.get("sku").is_some() || line.get("name").is_some_and(|name| name.as_text() != Some(""));
        if kind_of(line) == Some("product") && !named {
            faults.add(format!("/items/{index}/sku"), code::REQUIRED, "A product line needs `sku` or `name`.");
        }
    }
}

fn line_ids_are_unique(ids: &LineIds, faults: &mut Faults) {
    for index in &ids.repeated {
        faults.add(
            format!("/items/{index}/lineId"),
            code::NOT_UNIQUE,
            "An earlier line of this order has the same `lineId`; give each line its own.",
        );
    }
}

fn parents_exist(lines: &[Json], ids: &LineIds, faults: &mut Faults) {
    for (index, line) in lines.iter().enumerate() {
        if line.text("parentLineId").is_some_and(|parent| !ids.contains(parent)) {
            faults.add(
                format!("/items/{index}/parentLineId"),
                code::UNKNOWN_LINE,
                "No line of this order has this `lineId`; send the parent line in the same order.",
            );
        }
    }
}

/// Follows the parents upwards from every line. A line that was followed once is not followed again, so the whole walk
/// takes as many steps as there are lines. One fault is reported for each circle.
fn no_line_is_its_own_parent(lines: &[Json], ids: &LineIds, faults: &mut Faults) {
    let parent_of = |index: usize| ids.first.get(lines[index].text("parentLineId")?).copied();
    let mut followed = HashSet::new();
    for start in 0..lines.len() {
        let mut chain = HashSet::new();
        let mut next = Some(start);
        while let Some(index) = next.filter(|index| !followed.contains(index)) {
            if !chain.insert(index) {
                faults.add(
                    format!("/items/{index}/parentLineId"),
                    code::CYCLIC_PARENT,
                    "This line is, through its parents, its own parent; end the chain at a line without `parentLineId`.",
                );
                break;
            }
            next = parent_of(index);
        }
        followed.extend(chain);
    }
}

fn only_reductions_are_negative(lines: &[Json], faults: &mut Faults) {
    for (index, line) in lines.iter().enumerate() {
        if kind_of(line).is_none_or(|kind| NEGATIVE_KINDS.contains(&kind)) {
            continue;
        }
        let taxes = line.get("taxes").and_then(Json::as_array).unwrap_or_default();
        let tax_amounts =
            taxes.iter().enumerate().map(|(tax, value)| (format!("taxes/{tax}/amount"), value.get("amount")));
        let prices = ["unitPrice", "total"].map(|name| (name.to_owned(), line.get(name)));
        for (place, value) in prices.into_iter().chain(tax_amounts) {
            if value.and_then(totals::amount).is_some_and(|amount| amount.is_sign_negative()) {
                faults.add(
                    format!("/items/{index}/{place}"),
                    code::TOO_SMALL,
                    format!(
                        "This must not be negative; only lines of kind {} may lower the order.",
                        NEGATIVE_KINDS.join(", ")
                    ),
                );
            }
        }
    }
}

fn discounts_name_lines(body: &Json, ids: &LineIds, faults: &mut Faults) {
    let discounts = body.get("discounts").and_then(Json::as_array).unwrap_or_default();
    for (index, discount) in discounts.iter().enumerate() {
        let applies_to = discount.get("appliesTo").and_then(Json::as_array).unwrap_or_default();
        for (place, id) in applies_to.iter().enumerate() {
            if id.as_text().is_some_and(|id| !ids.contains(id)) {
                faults.add(
                    format!("/discounts/{index}/appliesTo/{place}"),
                    code::UNKNOWN_LINE,
                    "No line of this order has this `lineId`.",
                );
            }
        }
    }
}
