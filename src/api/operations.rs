//! `GET /v1/operations/{operationId}` and `GET /v1/operations`: how far a command has come, for the client that waits and
//! for the duty desk.

use std::ops::Deref;
use std::time::Duration;

use actix_web::http::header::RETRY_AFTER;
use actix_web::{HttpRequest, HttpResponse, web};
use diesel::prelude::*;
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::ProblemError;
use super::caller::Caller;
use super::fault::problem_of;
use super::page::{self, Cursor, Query};
use super::{State, path, prefer};
use crate::command::claim;
use crate::command::order_rows::order_path;
use crate::command::reply::operation_path;
use crate::command::send_message::message_path;
use crate::db::tables::operations;
use crate::db::{self, Db, Fault};
use crate::on_db;
use crate::problem::{Code, Links, Problem};

pub mod contract;
pub mod delivery;

use delivery::{Delivery, ErpDelivery, MailDelivery};

/// The scope that shows the operations of every client of the tenant; each client sees its own without it.
pub const SCOPE: &str = "operations:read";

/// The states of an operation.
pub const STATES: &[&str] = &["processing", "succeeded", "failed", "unresolved"];

/// The longest that `Prefer: wait` can hold an answer, whatever the client asks for.
pub const MAX_WAIT: Duration = Duration::from_mins(1);

/// How soon a client may ask again for an operation that is not final.
const RETRY_AFTER_SECONDS: u64 = 1;

/// Answers `GET /v1/operations/{operationId}`; with `Prefer: wait=N` only when the operation has changed, is final, or the
/// time is over.
///
/// # Errors
/// 404 when the caller may see no such operation, or a fault.
pub async fn get(request: HttpRequest, state: web::Data<State>, caller: Caller) -> Result<HttpResponse, ProblemError> {
    let id = path::param(&request)?;
    let (mut row, mut response) = (read(&request, &state, &caller, &id).await?, HttpResponse::Ok());
    if let Some(wait) = prefer::wait(request.headers()).map(|wait| wait.min(MAX_WAIT)) {
        response.insert_header(prefer::applied(wait));
        if row.completed_at.is_none() {
            let change = state.watch.changed(&caller.0.tenant_id, &row.operation_id, row.updated_at);
            if tokio::time::timeout(wait, change).await.is_ok() {
                row = read(&request, &state, &caller, &id).await?;
            }
        }
    }
    if row.completed_at.is_none() {
        response.insert_header((RETRY_AFTER, RETRY_AFTER_SECONDS));
    }
    Ok(response.json(view(&row)))
}

async fn read(request: &HttpRequest, state: &State, caller: &Caller, operation_id: &str) -> Result<Shown, Problem> {
    let (tenant_id, operation_id) = (caller.0.tenant_id.clone(), operation_id.to_owned());
    let row = state.pools.reads.run(move |db| db.snapshot(|db| find(db, &tenant_id, &operation_id))).await;
    row.map_err(|fault| problem_of(request, &fault))?
        .filter(|row| row.client_id == caller.0.client_id || caller.0.has_scope(SCOPE))
        .ok_or_else(|| Problem::new(Code::OperationNotFound, "There is no operation with this id."))
}

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

/// An operation, and how far its message is.
#[derive(Debug)]
struct Shown {
    row: Row,
    delivery: Option<Delivery>,
}

impl Deref for Shown {
    type Target = Row;

    fn deref(&self) -> &Row {
        &self.row
    }
}

/// A tenant without an ERP has messages that nobody delivers: of an operation that is final all the same nothing is told.
fn with_delivery(db: &mut Db, tenant_id: &str, rows: Vec<Row>) -> Result<Vec<Shown>, Fault> {
    let ids: Vec<&str> = rows.iter().map(|row| row.operation_id.as_str()).collect();
    let mut deliveries = delivery::of_operations(db, tenant_id, &ids)?;
    let shown = rows.into_iter().map(|row| {
        let found = deliveries.remove(&row.operation_id);
        Shown { delivery: found.filter(|found| row.completed_at.is_none() || !found.is_untouched()), row }
    });
    Ok(shown.collect())
}

/// A forgotten operation is not there for anybody, whether or not the cleaner has been.
#[diesel::dsl::auto_type]
fn remembered() -> _ {
    operations::remember_until.is_null().or(operations::remember_until.gt(db::Clock.nullable()))
}

fn find(db: &mut Db, tenant_id: &str, operation_id: &str) -> Result<Option<Shown>, Fault> {
    let row = on_db!(&mut *db, conn => operations::table
        .find((tenant_id, operation_id))
        .filter(remembered())
        .select(Row::as_select())
        .first(conn)
        .optional())?;
    Ok(with_delivery(db, tenant_id, row.into_iter().collect())?.pop())
}

/// How far a command has come.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Operation)]
struct View<'a> {
    /// The id of the operation, derived from tenant, client, command and key.
    operation_id: &'a str,
    /// The command, such as `orders.create`.
    command: &'a str,
    /// How far it has come. `succeeded` and `failed` are final for ever; `unresolved` needs a person.
    #[schema(schema_with = contract::status)]
    status: &'a str,
    /// The order that the command is about, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    order_id: Option<&'a str>,
    /// When the command was carried out.
    #[schema(format = DateTime)]
    created_at: String,
    /// When the operation changed last.
    #[schema(format = DateTime)]
    updated_at: String,
    /// When the operation became final.
    #[schema(format = DateTime, required)]
    completed_at: Option<String>,
    /// The end of the replay window.
    #[schema(format = DateTime, required)]
    expires_at: Option<String>,
    /// How far the message to the ERP is; `null` where there is none.
    #[schema(required)]
    erp: Option<&'a ErpDelivery>,
    /// How far the mail is; only of a message to a customer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    mail: Option<&'a MailDelivery>,
    /// The code of the refusal, when the operation failed.
    #[schema(required)]
    error: Option<&'a str>,
    /// Where to go from here.
    #[schema(schema_with = contract::links)]
    links: Links,
}

fn view(row: &Shown) -> View<'_> {
    let mut links = Links::default().with("self", operation_path(&row.operation_id));
    if let Some(order_id) = &row.order_id {
        links = links.with("order", order_path(order_id));
    }
    let delivery = row.delivery.as_ref();
    let mail = delivery.and_then(Delivery::mail);
    if let Some(mail) = mail {
        links = links.with("message", message_path(mail.message_id()));
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
        erp: delivery.and_then(Delivery::erp),
        mail,
        error: row.error.as_deref(),
        links,
    }
}

/// What the client wants to see of the list.
#[derive(Debug)]
struct Filter {
    limit: i64,
    cursor: Option<Cursor>,
    /// Whose operations: one client's, or the whole tenant's.
    client_id: Option<String>,
    operation_id: Option<String>,
    command: Option<String>,
    status: Option<String>,
    order_id: Option<String>,
}

impl Filter {
    fn read(request: &HttpRequest, caller: &Caller) -> Result<Filter, Problem> {
        let principal = &caller.0;
        let mut query = Query::read(request, contract::LIST.query);
        let (command, key) = (query.text("command"), query.text("idempotencyKey"));
        // The id of an operation is derived from its scope, and the scope of a key is one client's.
        let operation_id = key.as_deref().map(|key| match &command {
            Some(command) => claim::operation_id(&principal.tenant_id, &principal.client_id, command, key),
            None => String::new(),
        });
        if key.is_some() && command.is_none() {
            query.fault("command", "Required", "A key is one of a command: name the command, such as orders.create.");
        }
        let sees_all = principal.has_scope(SCOPE) && key.is_none();
        let filter = Filter {
            limit: query.limit(),
            cursor: query.cursor(),
            client_id: (!sees_all).then(|| principal.client_id.clone()),
            operation_id,
            command,
            status: query.one_of("status", STATES),
            order_id: query.text("orderId"),
        };
        query.finish().map(|()| filter)
    }
}

/// Answers `GET /v1/operations`: the client's own, or with `operations:read` the tenant's. `?command=&idempotencyKey=`
/// finds the one operation that a key of the asking client stands for.
///
/// # Errors
/// 400 for a bad query, or a fault.
pub async fn list(request: HttpRequest, state: web::Data<State>, caller: Caller) -> Result<HttpResponse, ProblemError> {
    let filter = Filter::read(&request, &caller)?;
    let (tenant_id, limit) = (caller.0.tenant_id, filter.limit);
    let rows = state.pools.reads.run(move |db| db.snapshot(|db| read_page(db, &tenant_id, &filter))).await;
    let mut rows = rows.map_err(|fault| problem_of(&request, &fault))?;
    let next_cursor =
        page::cut(&mut rows, limit, |row| Cursor { created_at: row.created_at, id: row.operation_id.clone() });
    Ok(HttpResponse::Ok().json(Page { operations: rows.iter().map(view).collect(), next_cursor }))
}

/// A page of operations, newest first.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OperationPage)]
struct Page<'a> {
    /// The operations of the page.
    operations: Vec<View<'a>>,
    /// The cursor of the next page; `null` on the last.
    #[schema(required)]
    next_cursor: Option<String>,
}

fn read_page(db: &mut Db, tenant_id: &str, filter: &Filter) -> Result<Vec<Shown>, Fault> {
    let rows = on_db!(&mut *db, conn => {
        let mut query = operations::table
            .filter(operations::tenant_id.eq(tenant_id))
            .filter(remembered())
            .select(Row::as_select())
            .into_boxed();
        if let Some(cursor) = &filter.cursor {
            query = query.filter(operations::created_at.lt(cursor.created_at).or(
                operations::created_at.eq(cursor.created_at).and(operations::operation_id.lt(&cursor.id))));
        }
        if let Some(client_id) = &filter.client_id {
            query = query.filter(operations::client_id.eq(client_id));
        }
        if let Some(operation_id) = &filter.operation_id {
            query = query.filter(operations::operation_id.eq(operation_id));
        }
        if let Some(command) = &filter.command {
            query = query.filter(operations::command.eq(command));
        }
        if let Some(status) = &filter.status {
            query = query.filter(operations::status.eq(status));
        }
        if let Some(order_id) = &filter.order_id {
            query = query.filter(operations::order_id.eq(order_id));
        }
        query
            .order((operations::created_at.desc(), operations::operation_id.desc()))
            .limit(filter.limit + 1)
            .load::<Row>(conn)
    })?;
    with_delivery(db, tenant_id, rows)
}
