//! `GET /v1/reservations/{reservationId}`: a reservation as it stands now, by the database's clock.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::ObjectBuilder;

use super::State as Service;
use super::answer::ProblemError;
use super::caller::Caller;
use super::document::schemas::{decimal_text, links, one_of};
use super::fault::problem_of;
use super::path;
use super::read::{Access, Read};
use super::stock::SCOPE;
use crate::command::create_reservation::reservation_path;
use crate::command::order_rows::order_path;
use crate::command::reply::operation_path;
use crate::db;
use crate::problem::{Code, Links, Problem};
use crate::stock::reservation::{self, Reservation, State};

/// `GET /v1/reservations/{reservationId}`.
pub static GET: Read = Read {
    path: "/v1/reservations/{reservationId}",
    route: || web::route().to(get),
    name: "reservationsGet",
    tag: "reservations",
    access: Access::Scope(SCOPE),
    summary: "Read a reservation",
    description: "What is put aside, and whether it still is.",
    query: &[],
    headers: &[],
    answer: |schemas| schemas.of::<View<'static>>().into(),
    example: || {
        r#"{"reservationId":"rsv_019adb5a34c27f10b6c9f1b0d5a1e9c4","status":"reserved","items":[{"sku":"ABC","qty":"2"}],
        "operationId":"op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b","createdAt":"2026-12-02T08:15:31.402611Z",
        "links":{"self":"/v1/reservations/rsv_019adb5a34c27f10b6c9f1b0d5a1e9c4",
        "operation":"/v1/operations/op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b"}}"#
            .to_owned()
    },
    answer_headers: &[],
    problems: &[Code::ReservationNotFound],
};

/// Answers `GET /v1/reservations/{reservationId}`.
///
/// # Errors
/// 403, 404, or a fault.
pub async fn get(
    request: HttpRequest,
    state: web::Data<Service>,
    caller: Caller,
) -> Result<HttpResponse, ProblemError> {
    Ok(get_reservation(&request, &state, &caller).await?)
}

async fn get_reservation(request: &HttpRequest, state: &Service, caller: &Caller) -> Result<HttpResponse, Problem> {
    caller.require(SCOPE)?;
    let id = path::param(request)?;
    let tenant_id = caller.0.tenant_id.clone();
    let found = state.pools.reads.run(move |db| reservation::find(db, &tenant_id, &id)).await;
    let reservation = found
        .map_err(|fault| problem_of(request, &fault))?
        .ok_or_else(|| Problem::new(Code::ReservationNotFound, "There is no reservation with this id."))?;
    Ok(HttpResponse::Ok().json(View::of(&reservation)))
}

/// Stock that is or was put aside.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Reservation)]
struct View<'a> {
    /// The id of the reservation.
    reservation_id: &'a str,
    /// Whether the stock is still put aside.
    #[schema(schema_with = states)]
    status: &'static str,
    /// What is put aside.
    items: Vec<Item<'a>>,
    /// The order that it is for, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    order_id: Option<&'a str>,
    /// When the stock is free again, where there is an end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    expires_at: Option<String>,
    /// The operation that made the reservation.
    operation_id: &'a str,
    /// When it was made, in UTC.
    #[schema(format = DateTime)]
    created_at: String,
    /// Where to go from here.
    #[schema(schema_with = links_of_one)]
    links: Links,
}

/// One line of a reservation.
#[derive(Serialize, ToSchema)]
#[schema(as = ReservationLine)]
struct Item<'a> {
    /// The stock keeping unit.
    sku: &'a str,
    /// The quantity.
    #[schema(schema_with = quantity)]
    qty: String,
}

fn states() -> ObjectBuilder {
    one_of(&State::NAMES, "Whether the stock is still put aside.")
}

fn quantity() -> ObjectBuilder {
    decimal_text("The quantity.")
}

fn links_of_one() -> ObjectBuilder {
    links(&["self", "operation"])
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
