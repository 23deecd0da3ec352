//! `GET /v1/operations/{operationId}`: how far a command has come.

use actix_web::http::header::RETRY_AFTER;
use actix_web::{HttpRequest, HttpResponse, web};
use diesel::prelude::*;
use serde::Serialize;

use super::State;
use super::answer::ProblemError;
use super::caller::Caller;
use super::fault::problem_of;
use crate::command::create_order::order_path;
use crate::command::reply::operation_path;
use crate::db::tables::operations;
use crate::db::{self, Db, Fault};
use crate::on_db;
use crate::problem::{Code, Links, Problem};

/// The scope that shows the operations of every client of the tenant; each client sees its own without it.
pub const SCOPE: &str = "operations:read";

/// Answers `GET /v1/operations/{operationId}`.
///
/// # Errors
/// 404 when the caller may see no such operation, or a fault.
pub async fn get(
    request: HttpRequest,
    state: web::Data<State>,
    caller: Caller,
    id: web::Path<String>,
) -> Result<HttpResponse, ProblemError> {
    Ok(get_operation(&request, &state, &caller, id.into_inner()).await?)
}

async fn get_operation(
    request: &HttpRequest,
    state: &State,
    caller: &Caller,
    operation_id: String,
) -> Result<HttpResponse, Problem> {
    let tenant_id = caller.0.tenant_id.clone();
    let row = state.pools.reads.run(move |db| find(db, &tenant_id, &operation_id)).await;
    let row = row
        .map_err(|fault| problem_of(request, &fault))?
        .filter(|row| row.client_id == caller.0.client_id || caller.0.has_scope(SCOPE))
        .ok_or_else(|| Problem::new(Code::OperationNotFound, "There is no operation with this id."))?;
    let mut response = HttpResponse::Ok();
    if row.completed_at.is_none() {
        response.insert_header((RETRY_AFTER, RETRY_AFTER_SECONDS));
    }
    Ok(response.json(view(&row)))
}

/// How soon a client may ask again for an operation that is not final.
const RETRY_AFTER_SECONDS: u64 = 1;

#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = operations)]
struct Row {
    operation_id: String,
    client_id: String,
    command: String,
    status: String,
    error: Option<String>,
    order_id: Option<String>,
    created_at: db::Instant,
    updated_at: db::Instant,
    completed_at: Option<db::Instant>,
    replay_until: Option<db::Instant>,
}

fn find(db: &mut Db, tenant_id: &str, operation_id: &str) -> Result<Option<Row>, Fault> {
    let row = on_db!(db, conn => operations::table
        .find((tenant_id, operation_id))
        .select(Row::as_select())
        .first(conn)
        .optional());
    Ok(row?)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct View<'a> {
    operation_id: &'a str,
    command: &'a str,
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    order_id: Option<&'a str>,
    created_at: String,
    updated_at: String,
    completed_at: Option<String>,
    expires_at: Option<String>,
    error: Option<&'a str>,
    links: Links,
}

fn view(row: &Row) -> View<'_> {
    let mut links = Links::default().with("self", operation_path(&row.operation_id));
    if let Some(order_id) = &row.order_id {
        links = links.with("order", order_path(order_id));
    }
    View {
        operation_id: &row.operation_id,
        command: &row.command,
        status: &row.status,
        order_id: row.order_id.as_deref(),
        created_at: db::rfc3339(row.created_at),
        updated_at: db::rfc3339(row.updated_at),
        completed_at: row.completed_at.map(db::rfc3339),
        expires_at: row.replay_until.map(db::rfc3339),
        error: row.error.as_deref(),
        links,
    }
}
