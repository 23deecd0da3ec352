//! `GET /v1/reservations/{reservationId}`: a reservation as it stands now, by the database's clock.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;

use super::State;
use super::answer::ProblemError;
use super::caller::Caller;
use super::fault::problem_of;
use super::path;
use super::stock::SCOPE;
use crate::command::create_reservation::reservation_path;
use crate::command::order_rows::order_path;
use crate::command::reply::operation_path;
use crate::db;
use crate::problem::{Code, Links, Problem};
use crate::stock::reservation::{self, Reservation};

/// Answers `GET /v1/reservations/{reservationId}`.
///
/// # Errors
/// 403, 404, or a fault.
pub async fn get(request: HttpRequest, state: web::Data<State>, caller: Caller) -> Result<HttpResponse, ProblemError> {
    Ok(get_reservation(&request, &state, &caller).await?)
}

async fn get_reservation(request: &HttpRequest, state: &State, caller: &Caller) -> Result<HttpResponse, Problem> {
    caller.require(SCOPE)?;
    let id = path::param(request)?;
    let tenant_id = caller.0.tenant_id.clone();
    let found = state.pools.reads.run(move |db| reservation::find(db, &tenant_id, &id)).await;
    let reservation = found
        .map_err(|fault| problem_of(request, &fault))?
        .ok_or_else(|| Problem::new(Code::ReservationNotFound, "There is no reservation with this id."))?;
    Ok(HttpResponse::Ok().json(View::of(&reservation)))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct View<'a> {
    reservation_id: &'a str,
    status: &'static str,
    items: Vec<Item<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    order_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    operation_id: &'a str,
    created_at: String,
    links: Links,
}

#[derive(Serialize)]
struct Item<'a> {
    sku: &'a str,
    qty: String,
}

impl View<'_> {
    fn of(reservation: &Reservation) -> View<'_> {
        let links = Links::default()
            .with("self", reservation_path(&reservation.reservation_id))
            .with("operation", operation_path(&reservation.operation_id));
        let order_id = reservation.order_id.as_deref();
        View {
            reservation_id: &reservation.reservation_id,
            status: reservation.state.name(),
            items: reservation.lines.iter().map(|line| Item { sku: &line.sku, qty: line.qty.to_string() }).collect(),
            order_id,
            expires_at: reservation.expires_at.map(db::rfc3339),
            operation_id: &reservation.operation_id,
            created_at: db::rfc3339(reservation.created_at),
            links: match order_id {
                Some(order_id) => links.with("order", order_path(order_id)),
                None => links,
            },
        }
    }
}
