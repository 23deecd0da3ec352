//! `GET /v1/stock/{sku}`: what is on hand of a SKU, what of it is reserved now, and what is left.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::ObjectBuilder;

use super::State;
use super::answer::ProblemError;
use super::caller::Caller;
use super::document::schemas::{decimal_text, links};
use super::fault::problem_of;
use super::path;
use super::read::{Access, Read};
use crate::command::put_stock::stock_path;
use crate::problem::{Code, Links, Problem};
use crate::stock;

/// The scope that reading needs, for stock and for reservations.
pub const SCOPE: &str = "stock:read";

/// `GET /v1/stock/{sku}`.
pub static GET: Read = Read {
    path: "/v1/stock/{sku}",
    route: || web::route().to(get),
    name: "stockGet",
    tag: "stock",
    access: Access::Scope(SCOPE),
    summary: "Read the stock of a SKU",
    description: "What is on hand, what of it is reserved, and what is left. A reservation that has expired counts no more.",
    query: &[],
    headers: &[],
    answer: |schemas| schemas.of::<View>().into(),
    example: || {
        r#"{"sku":"ABC","onHand":"12","reserved":"2.5","available":"9.5","links":{"self":"/v1/stock/ABC"}}"#.to_owned()
    },
    answer_headers: &[],
    problems: &[Code::SkuNotFound],
};

/// Answers `GET /v1/stock/{sku}`.
///
/// # Errors
/// 403, 404 for a SKU of which nobody has said what is on hand, or a fault.
pub async fn get(request: HttpRequest, state: web::Data<State>, caller: Caller) -> Result<HttpResponse, ProblemError> {
    Ok(get_stock(&request, &state, &caller).await?)
}

/// The stock of one SKU.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Stock)]
struct View {
    /// The stock keeping unit.
    sku: String,
    /// What is in the warehouse, reserved or not.
    #[schema(schema_with = quantity)]
    on_hand: String,
    /// What is put aside.
    #[schema(schema_with = quantity)]
    reserved: String,
    /// What is left.
    #[schema(schema_with = quantity)]
    available: String,
    /// Where to go from here.
    #[schema(schema_with = link_to_itself)]
    links: Links,
}

fn quantity() -> ObjectBuilder {
    decimal_text("A quantity.")
}

fn link_to_itself() -> ObjectBuilder {
    links(&["self"])
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
