//! `GET /v1/stock/{sku}`: what is on hand of a SKU, what of it is reserved now, and what is left.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;

use super::State;
use super::answer::ProblemError;
use super::caller::Caller;
use super::fault::problem_of;
use super::path;
use crate::command::put_stock::stock_path;
use crate::problem::{Code, Links, Problem};
use crate::stock;

/// The scope that reading needs, for stock and for reservations.
pub const SCOPE: &str = "stock:read";

/// Answers `GET /v1/stock/{sku}`.
///
/// # Errors
/// 403, 404 for a SKU of which nobody has said what is on hand, or a fault.
pub async fn get(request: HttpRequest, state: web::Data<State>, caller: Caller) -> Result<HttpResponse, ProblemError> {
    Ok(get_stock(&request, &state, &caller).await?)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct View {
    sku: String,
    on_hand: String,
    reserved: String,
    available: String,
    links: Links,
}

async fn get_stock(request: &HttpRequest, state: &State, caller: &Caller) -> Result<HttpResponse, Problem> {
    caller.require(SCOPE)?;
    let sku = path::param(request)?;
    let tenant_id = caller.0.tenant_id.clone();
    let asked = sku.clone();
    let level = state.pools.reads.run(move |db| stock::read(db, &tenant_id, &asked)).await;
    let level = level
        .map_err(|fault| problem_of(request, &fault))?
        .ok_or_else(|| Problem::new(Code::SkuNotFound, "Nobody has said what is on hand of this SKU."))?;
    Ok(HttpResponse::Ok().json(View {
        on_hand: level.on_hand.to_string(),
        reserved: level.reserved.to_string(),
        available: level.available().to_string(),
        links: Links::default().with("self", stock_path(&sku)),
        sku,
    }))
}
