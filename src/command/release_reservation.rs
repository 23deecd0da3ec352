//! `reservations.release`: the stock of a reservation is given back, once.

use super::create_reservation::reservation_path;
use super::fingerprint::Intent;
use super::{Command, Done, Method, Spec, Stop, Success, Tx};
use crate::db;
use crate::problem::{Code, Links, Problem};
use crate::schema::Object;
use crate::stock;
use crate::stock::reservation::{self, Found, State};

/// The reservation that is to be given back.
#[derive(Clone, Debug)]
pub struct ReleaseReservation {
    reservation_id: String,
}

static NOTHING: Object = Object { name: "Nothing", members: &[] };

impl Command for ReleaseReservation {
    const SPEC: Spec = Spec {
        name: "reservations.release",
        method: Method::Post,
        route: "/v1/reservations/{reservationId}/release",
        scope: "stock:write",
        body: &NOTHING,
        body_may_be_empty: true,
        summary: "Release a reservation",
        description: "Gives the stock of a reservation back. A reservation that was released before, by this command or by \
            the cancel of its order, or that has expired, holds nothing any more: `ReservationAlreadyReleased` says which.",
        examples: &[("all of it", "{}")],
        successes: &[Success {
            status: 200,
            meaning: "The stock is free again.",
            id_member: "reservationId",
            example: r#"{"status":"released","reservationId":"rsv_019adb5a34c27f10b6c9f1b0d5a1e9c4","operationId":"op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b","links":{"self":"/v1/reservations/rsv_019adb5a34c27f10b6c9f1b0d5a1e9c4","operation":"/v1/operations/op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b"}}"#,
        }],
        refusals: &[Code::ReservationNotFound, Code::ReservationAlreadyReleased],
    };

    fn parse(asked: &Intent) -> Result<ReleaseReservation, Problem> {
        let faults = NOTHING.faults(&asked.body);
        if !faults.is_empty() {
            return Err(Problem::invalid(faults));
        }
        Ok(ReleaseReservation { reservation_id: asked.parameter("reservationId").to_owned() })
    }

    fn execute(self, tx: &mut Tx<'_>) -> Result<Done, Stop> {
        tx.db.wait_for_locks(stock::LOCK_WAIT)?;
        let found = reservation::release(tx.db, &tx.call.tenant_id, &self.reservation_id, tx.now)?;
        let Some(found) = found else {
            return Err(Problem::new(Code::ReservationNotFound, "There is no reservation with this id.").into());
        };
        let path = reservation_path(&self.reservation_id);
        match found.state {
            State::Reserved => Ok(Done {
                status: 200,
                state: "released",
                id_member: "reservationId",
                id: self.reservation_id,
                path,
                order_id: found.order_id,
                goes_on: false,
            }),
            State::Released(_) | State::Expired(_) => Err(already_released(found, path).into()),
        }
    }
}

fn already_released(found: Found, path: String) -> Problem {
    let detail = match found.state {
        State::Expired(moment) => format!("The reservation expired at {}.", db::rfc3339(moment)),
        State::Released(moment) => format!("The reservation was released at {}.", db::rfc3339(moment)),
        State::Reserved => "The reservation holds nothing.".to_owned(),
    };
    Problem {
        order_id: found.order_id,
        links: Links::default().with("reservation", path),
        ..Problem::new(Code::ReservationAlreadyReleased, detail)
    }
}
