//! `GET /v1/payments/{paymentId}`: a payment as it was sent, normalised.

use actix_web::{HttpRequest, HttpResponse, web};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};

use super::State;
use super::answer::ProblemError;
use super::caller::Caller;
use super::document::schemas::{Schemas, instant, links, one_of, text};
use super::fault::problem_of;
use super::path;
use super::read::{Access, Read};
use crate::command::create_payment::{PAYMENT, payment_path};
use crate::command::order_rows::order_path;
use crate::command::reply::operation_path;
use crate::db::{self, Fault};
use crate::json::{self, Json};
use crate::payment::{self, Payment};
use crate::problem::{Code, Problem};

/// The scope that reading needs.
pub const SCOPE: &str = "payments:read";

/// `GET /v1/payments/{paymentId}`.
pub static GET: Read = Read {
    path: "/v1/payments/{paymentId}",
    route: || web::route().to(get),
    name: "paymentsGet",
    tag: "payments",
    access: Access::Scope(SCOPE),
    summary: "Read a payment",
    description: "The payment as it was sent, normalised, and beside that what the service knows.",
    query: &[],
    headers: &[],
    answer: |schemas| schemas.named("Payment", payment_schema).into(),
    example: || {
        r#"{"paymentId":"pay_019adb5a34c27f10b6c9f1b0d5a1e9c4","status":"received",
        "operationId":"op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b","createdAt":"2026-12-02T08:15:31.402611Z",
        "orderId":"ord_019adb5a34c27f10b6c9f1b0d5a1e9c4","amount":"39.9","currency":"EUR","method":"card",
        "links":{"self":"/v1/payments/pay_019adb5a34c27f10b6c9f1b0d5a1e9c4",
        "order":"/v1/orders/ord_019adb5a34c27f10b6c9f1b0d5a1e9c4",
        "operation":"/v1/operations/op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b"}}"#
            .to_owned()
    },
    answer_headers: &[],
    problems: &[Code::PaymentNotFound],
};

fn payment_schema(schemas: &mut Schemas) -> Schema {
    let known = [
        ("paymentId", RefOr::from(text("The id of the payment."))),
        ("status", one_of(&["received"], "Always `received`.").into()),
        ("operationId", text("The operation that wrote the payment.").into()),
        ("createdAt", instant("When the payment was written down, in UTC.").into()),
        ("links", links(&["self", "order", "operation"]).into()),
    ];
    let payment = ObjectBuilder::new().schema_type(Type::Object);
    let payment =
        known.into_iter().fold(payment, |payment, (name, schema)| payment.property(name, schema).required(name));
    schemas.stored_members(payment, &PAYMENT, &[]).build().into()
}

/// Answers `GET /v1/payments/{paymentId}`.
///
/// # Errors
/// 403, 404, or a fault.
pub async fn get(request: HttpRequest, state: web::Data<State>, caller: Caller) -> Result<HttpResponse, ProblemError> {
    Ok(get_payment(&request, &state, &caller).await?)
}

async fn get_payment(request: &HttpRequest, state: &State, caller: &Caller) -> Result<HttpResponse, Problem> {
    caller.require(SCOPE)?;
    let id = path::param(request)?;
    let tenant_id = caller.0.tenant_id.clone();
    let found = state.pools.reads.run(move |db| payment::find(db, &tenant_id, &id)).await;
    let payment = found
        .map_err(|fault| problem_of(request, &fault))?
        .ok_or_else(|| Problem::new(Code::PaymentNotFound, "There is no payment with this id."))?;
    let body = view(&payment).map_err(|fault| problem_of(request, &fault))?;
    Ok(HttpResponse::Ok().content_type("application/json").body(body.to_string()))
}

/// The members that were sent, and beside them what the service knows.
fn view(payment: &Payment) -> Result<Json, Fault> {
    let Ok(Json::Object(sent)) = json::parse(payment.document.as_bytes()) else {
        return Err(Fault::Bug("a stored payment cannot be read".to_owned()));
    };
    let text = |value: &str| Json::Text(value.to_owned());
    let links = vec![
        ("self".to_owned(), Json::Text(payment_path(&payment.payment_id))),
        ("order".to_owned(), Json::Text(order_path(&payment.order_id))),
        ("operation".to_owned(), Json::Text(operation_path(&payment.operation_id))),
    ];
    let mut members = vec![
        ("paymentId".to_owned(), text(&payment.payment_id)),
        ("status".to_owned(), text("received")),
        ("operationId".to_owned(), text(&payment.operation_id)),
        ("createdAt".to_owned(), Json::Text(db::rfc3339(payment.created_at))),
    ];
    members.extend(sent);
    members.push(("links".to_owned(), Json::Object(links)));
    Ok(Json::Object(members))
}
