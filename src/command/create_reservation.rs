//! `reservations.create`: stock is put aside, all lines or none, for an order or for a cart, for good or until a moment.

use super::fingerprint::Intent;
use super::{Command, Done, Method, Spec, Stop, Success, Tx, order_rows};
use crate::db;
use crate::json::Json;
use crate::problem::{Code, Problem};
use crate::schema::{Fault as BodyFault, Faults, Kind, Member, Object, code};
use crate::stock::reservation::{self, Line, Shortage, Wanted};
use crate::stock::{self, MAX_SKU, Quantity};

/// The reservation that the client wants.
#[derive(Clone, Debug)]
pub struct CreateReservation {
    lines: Vec<Line>,
    order_id: Option<String>,
    expires_at: Option<db::Instant>,
}

/// The most lines of a reservation: as many as an order has.
const MAX_LINES: usize = crate::order::MAX_LINES;

static RESERVATION: Object = Object {
    name: "Reservation",
    members: &[
        Member::required(
            "items",
            Kind::List { of: &Kind::Object(&LINE), min: 1, max: MAX_LINES },
            "What is to be put aside: all of it or nothing.",
        ),
        Member::optional(
            "orderId",
            Kind::Text { min: 1, max: 64 },
            "The order that it is for. When that is cancelled, the stock is free again.",
        ),
        Member::optional(
            "expiresAt",
            Kind::Instant,
            "When the stock is free again by itself, to the millisecond; a later part of it is dropped. It must lie in the \
             future by the database's clock. Absent: never.",
        ),
    ],
};

static LINE: Object = Object {
    name: "ReservationLine",
    members: &[
        Member::required(
            "sku",
            Kind::Text { min: 1, max: MAX_SKU },
            "The stock keeping unit. It may stand on several lines; what counts is their sum.",
        ),
        Member::required(
            "qty",
            Kind::Decimal(stock::ASKED),
            "The quantity: at most 9 digits before and 6 after the point.",
        ),
    ],
};

impl Command for CreateReservation {
    const SPEC: Spec = Spec {
        name: "reservations.create",
        method: Method::Post,
        route: "/v1/reservations",
        scope: "stock:write",
        body: &RESERVATION,
        body_may_be_empty: false,
        summary: "Reserve stock",
        description: "Puts stock aside: all lines or none. `InsufficientStock` names in `details` every line that lacks, and \
            what is available. After `expiresAt` the stock is free again without anybody doing anything. Both are decided by \
            the database's clock at the moment the key was claimed. An order that is rejected, cancelled or being cancelled \
            takes no reservation (`OrderClosed`). A cancel gives back what its order had reserved; an order that the ERP \
            rejects keeps it, because a corrected one may take its place, until it is released. An `expiresAt` that is not in the future is `InvalidRequest`.",
        examples: &[
            (
                "cart",
                r#"{"items":[{"sku":"ABC","qty":2},{"sku":"DEF","qty":"0.5"}],"expiresAt":"2099-03-02T08:15:31Z"}"#,
            ),
            ("for good", r#"{"items":[{"sku":"ABC","qty":1}]}"#),
        ],
        successes: &[Success {
            status: 201,
            meaning: "All lines are reserved.",
            id_member: "reservationId",
            example: r#"{"status":"reserved","reservationId":"rsv_019adb5a34c27f10b6c9f1b0d5a1e9c4","operationId":"op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b","links":{"self":"/v1/reservations/rsv_019adb5a34c27f10b6c9f1b0d5a1e9c4","operation":"/v1/operations/op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b"}}"#,
        }],
        refusals: &[Code::InsufficientStock, Code::OrderNotFound, Code::OrderClosed],
    };

    fn parse(asked: &Intent) -> Result<CreateReservation, Problem> {
        let faults = RESERVATION.faults(&asked.body);
        if !faults.is_empty() {
            return Err(Problem::invalid(faults));
        }
        let document = RESERVATION.complete(&asked.body);
        let items = document.get("items").and_then(Json::as_array).unwrap_or_default();
        Ok(CreateReservation {
            lines: items.iter().filter_map(line).collect(),
            order_id: document.text("orderId").map(str::to_owned),
            expires_at: document.text("expiresAt").and_then(db::from_rfc3339),
        })
    }

    fn execute(self, tx: &mut Tx<'_>) -> Result<Done, Stop> {
        if self.expires_at.is_some_and(|moment| moment <= tx.now) {
            return Err(not_in_the_future().into());
        }
        // The order before the stock: every command that locks both does it in this order.
        if let Some(order_id) = &self.order_id {
            require_open(tx, order_id)?;
        }
        tx.db.wait_for_locks(stock::LOCK_WAIT)?;
        let reservation_id = format!("rsv_{}", uuid::Uuid::now_v7().simple());
        let wanted = Wanted {
            tenant_id: &tx.call.tenant_id,
            reservation_id: &reservation_id,
            client_id: &tx.call.client_id,
            operation_id: &tx.call.operation_id,
            order_id: self.order_id.as_deref(),
            expires_at: self.expires_at,
            lines: &self.lines,
        };
        if let Err(shortage) = reservation::reserve(tx.db, &wanted, tx.now)? {
            let refusal = insufficient(&self.lines, &shortage);
            return Err(Problem { order_id: self.order_id, ..refusal }.into());
        }
        Ok(Done {
            status: 201,
            state: reservation::State::Reserved.name(),
            id_member: "reservationId",
            path: reservation_path(&reservation_id),
            id: reservation_id,
            order_id: self.order_id,
            goes_on: false,
        })
    }
}

/// The path of a reservation.
#[must_use]
pub fn reservation_path(reservation_id: &str) -> String {
    format!("/v1/reservations/{reservation_id}")
}

/// A line of a valid body.
fn line(item: &Json) -> Option<Line> {
    Some(Line { sku: item.text("sku")?.to_owned(), qty: item.text("qty").and_then(Quantity::from_decimal)? })
}

/// The validity of a body must not depend on the time at which it is read, so this is looked at where the time is known.
fn not_in_the_future() -> Problem {
    Problem::invalid(vec![BodyFault {
        pointer: "/expiresAt".to_owned(),
        code: code::NOT_IN_THE_FUTURE,
        message: "This moment is over by the clock of the database; name a later one, or leave it out.".to_owned(),
    }])
}

/// An order that is being cancelled takes nothing more: its cancel has already given back what was reserved for it.
fn require_open(tx: &mut Tx<'_>, order_id: &str) -> Result<(), Stop> {
    let order = order_rows::lock_existing(tx, order_id)?;
    match order.status.as_str() {
        "accepted" | "confirmed" => Ok(()),
        status => {
            let detail = format!("The order is {status}; nothing can be reserved for it.");
            Err(Problem::about_order(Code::OrderClosed, detail, &order.order_id).into())
        }
    }
}

/// Names every line whose SKU lacks, by its place in the body: the answer is recorded, and repeats nothing that was sent.
fn insufficient(lines: &[Line], shortage: &Shortage) -> Problem {
    let asked = reservation::sums(lines);
    let mut faults = Faults::default();
    for (index, line) in lines.iter().enumerate() {
        match shortage.get(&line.sku) {
            Some(Some(available)) => faults.add(
                format!("/items/{index}/qty"),
                code::NOT_AVAILABLE,
                format!("{available} of this SKU is available, {} is asked for.", asked[line.sku.as_str()]),
            ),
            Some(None) => {
                faults.add(format!("/items/{index}/sku"), code::UNKNOWN_SKU, "There is no stock of this SKU.");
            }
            None => {}
        }
    }
    let detail = "Nothing was reserved: the stock does not suffice for the lines in 'details'.";
    Problem { details: faults.into_vec(), ..Problem::new(Code::InsufficientStock, detail) }
}
