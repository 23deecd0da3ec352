//! `GET /v1/messages/{messageId}`: a message to a customer, and how far it is. To whom it goes and what it says is not told.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::ObjectBuilder;

use super::State;
use super::answer::ProblemError;
use super::caller::Caller;
use super::document::schemas::{self, one_of};
use super::fault::problem_of;
use super::path;
use super::read::{Access, Read};
use crate::command::order_rows::order_path;
use crate::command::reply::operation_path;
use crate::command::send_message::message_path;
use crate::db;
use crate::message::template::{LOCALES, TEMPLATES};
use crate::message::{self, Message, Status};
use crate::problem::{Code, Links, Problem};

/// The scope that reading needs.
pub const SCOPE: &str = "messages:read";

/// `GET /v1/messages/{messageId}`.
pub static GET: Read = Read {
    path: "/v1/messages/{messageId}",
    route: || web::route().to(get),
    name: "messagesGet",
    tag: "messages",
    access: Access::Scope(SCOPE),
    summary: "Read a message",
    description: "Which message it is and how far it is. The attempts to send it are told by its operation.",
    query: &[],
    headers: &[],
    answer: |schemas| schemas.of::<View<'static>>().into(),
    example: || {
        r#"{"messageId":"msg_019adb5a34c27f10b6c9f1b0d5a1e9c4","status":"sent",
        "orderId":"ord_019adb5a34c27f10b6c9f1b0d5a1e9c4","template":"order-confirmation","locale":"de",
        "operationId":"op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b","createdAt":"2026-12-02T08:15:31.402Z",
        "updatedAt":"2026-12-02T08:15:32.001Z",
        "links":{"self":"/v1/messages/msg_019adb5a34c27f10b6c9f1b0d5a1e9c4",
        "order":"/v1/orders/ord_019adb5a34c27f10b6c9f1b0d5a1e9c4",
        "operation":"/v1/operations/op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b"}}"#
            .to_owned()
    },
    answer_headers: &[],
    problems: &[Code::MessageNotFound],
};

/// A message to a customer.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Message)]
struct View<'a> {
    /// The id of the message.
    message_id: &'a str,
    /// How far it is. `sent`: the mail server has taken it. `unresolved`: a person has to look whether it was sent.
    #[schema(schema_with = status)]
    status: &'a str,
    /// The order that it is about.
    order_id: &'a str,
    /// What it says.
    #[schema(schema_with = template)]
    template: &'a str,
    /// In which language.
    #[schema(schema_with = locale)]
    locale: &'a str,
    /// The operation that goes on with it.
    operation_id: &'a str,
    /// When it was asked for, in UTC.
    #[schema(format = DateTime)]
    created_at: String,
    /// When its status changed last, in UTC.
    #[schema(format = DateTime)]
    updated_at: String,
    /// Where to go from here.
    #[schema(schema_with = links)]
    links: Links,
}

fn status() -> ObjectBuilder {
    one_of(
        &Status::ALL.map(Status::as_str),
        "How far it is. `sent`: the mail server has taken it. `unresolved`: a person has to look whether it was sent.",
    )
}

fn template() -> ObjectBuilder {
    one_of(TEMPLATES, "What it says.")
}

fn locale() -> ObjectBuilder {
    one_of(LOCALES, "In which language.")
}

fn links() -> ObjectBuilder {
    schemas::links(&["self", "order", "operation"])
}

/// Answers `GET /v1/messages/{messageId}`.
///
/// # Errors
/// 403, 404, or a fault.
pub async fn get(request: HttpRequest, state: web::Data<State>, caller: Caller) -> Result<HttpResponse, ProblemError> {
    Ok(get_message(&request, &state, &caller).await?)
}

async fn get_message(request: &HttpRequest, state: &State, caller: &Caller) -> Result<HttpResponse, Problem> {
    caller.require(SCOPE)?;
    let id = path::param(request)?;
    let tenant_id = caller.0.tenant_id.clone();
    let found = state.pools.reads.run(move |db| message::find(db, &tenant_id, &id)).await;
    let message = found
        .map_err(|fault| problem_of(request, &fault))?
        .ok_or_else(|| Problem::new(Code::MessageNotFound, "There is no message with this id."))?;
    Ok(HttpResponse::Ok().json(view(&message)))
}

fn view(message: &Message) -> View<'_> {
    View {
        message_id: &message.message_id,
        status: &message.status,
        order_id: &message.order_id,
        template: &message.template,
        locale: &message.locale,
        operation_id: &message.operation_id,
        created_at: db::rfc3339(message.created_at),
        updated_at: db::rfc3339(message.updated_at),
        links: Links::default()
            .with("self", message_path(&message.message_id))
            .with("order", order_path(&message.order_id))
            .with("operation", operation_path(&message.operation_id)),
    }
}
