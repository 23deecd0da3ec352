//! `stock.put`: the warehouse says what is on hand of a SKU. Never less than what is reserved of it.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::fingerprint::Intent;
use super::{Command, Done, Method, Spec, Stop, Success, Tx};
use crate::problem::{Code, Links, Problem};
use crate::schema::{Fault as BodyFault, Kind, Member, Object, code};
use crate::stock::{self, MAX_SKU, Put, Quantity};

/// What is to be on hand of a SKU.
#[derive(Clone, Debug)]
pub struct PutStock {
    sku: String,
    on_hand: Quantity,
}

static STOCK: Object = Object {
    name: "StockOnHand",
    members: &[Member::required(
        "onHand",
        Kind::Decimal(stock::ON_HAND),
        "What is in the warehouse, reserved or not: at most 9 digits before and 6 after the point.",
    )],
};

impl Command for PutStock {
    const SPEC: Spec = Spec {
        name: "stock.put",
        method: Method::Put,
        route: "/v1/stock/{sku}",
        scope: "stock:write",
        body: &STOCK,
        body_may_be_empty: false,
        summary: "Say what is on hand of a SKU",
        description: "Replaces the quantity on hand. A SKU is 1 to 255 characters of any script, percent-encoded in the \
            path; the first time makes it (201), later ones change it (200). What is reserved stays reserved: less than \
            that cannot be on hand.",
        examples: &[("pieces", r#"{"onHand":12}"#), ("weight", r#"{"onHand":"1.5"}"#)],
        successes: &[
            Success {
                status: 201,
                meaning: "The SKU is new.",
                id_member: "sku",
                example: r#"{"status":"stored","sku":"ABC","operationId":"op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b","links":{"self":"/v1/stock/ABC","operation":"/v1/operations/op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b"}}"#,
            },
            Success {
                status: 200,
                meaning: "What is on hand was replaced.",
                id_member: "sku",
                example: r#"{"status":"stored","sku":"ABC","operationId":"op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b","links":{"self":"/v1/stock/ABC","operation":"/v1/operations/op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b"}}"#,
            },
        ],
        refusals: &[Code::StockBelowReserved],
    };

    fn parse(asked: &Intent) -> Result<PutStock, Problem> {
        let sku = asked.parameter("sku");
        let mut faults = STOCK.faults(&asked.body);
        let length = sku.chars().count();
        if length > MAX_SKU {
            faults.push(BodyFault {
                pointer: String::new(),
                code: code::TOO_LONG,
                message: format!("The SKU in the path has {length} characters; at most {MAX_SKU} are allowed."),
            });
        }
        match STOCK.complete(&asked.body).text("onHand").and_then(Quantity::from_decimal) {
            Some(on_hand) if faults.is_empty() => Ok(PutStock { sku: sku.to_owned(), on_hand }),
            _ => Err(Problem::invalid(faults)),
        }
    }

    fn execute(self, tx: &mut Tx<'_>) -> Result<Done, Stop> {
        tx.db.wait_for_locks(stock::LOCK_WAIT)?;
        let path = stock_path(&self.sku);
        let status = match stock::put(tx.db, &tx.call.tenant_id, &self.sku, self.on_hand, tx.now)? {
            Put::Created => 201,
            Put::Changed => 200,
            Put::BelowReserved(reserved) => {
                let detail = format!("{reserved} of this SKU is reserved; that much at least has to be on hand.");
                let links = Links::default().with("stock", path);
                return Err(Problem { links, ..Problem::new(Code::StockBelowReserved, detail) }.into());
            }
        };
        Ok(Done { status, state: "stored", id_member: "sku", id: self.sku, path, order_id: None, goes_on: false })
    }
}

/// The path of a SKU's stock: one segment, whatever characters the SKU has.
#[must_use]
pub fn stock_path(sku: &str) -> String {
    format!("/v1/stock/{}", utf8_percent_encode(sku, &OTHER_THAN_UNRESERVED))
}

/// All but the unreserved characters of RFC 3986, section 2.3.
const OTHER_THAN_UNRESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

#[cfg(test)]
mod tests {
    use super::stock_path;

    #[test]
    fn a_sku_of_any_script_is_one_segment_of_the_path() {
        assert_eq!(stock_path("A-1_b.c~d"), "/v1/stock/A-1_b.c~d");
        assert_eq!(stock_path("A/B c?%+"), "/v1/stock/A%2FB%20c%3F%25%2B");
        assert_eq!(stock_path("ľ🧀"), "/v1/stock/%C4%BE%F0%9F%A7%80");
    }
}
