//! `GET /v1/orders/{orderId}` and `GET /v1/orders`: the current state of orders.

use actix_web::http::header::{CACHE_CONTROL, ETAG, EntityTag, IF_NONE_MATCH, IfNoneMatch};
use actix_web::{HttpRequest, HttpResponse, web};
use diesel::prelude::*;

use super::answer::ProblemError;
use super::caller::Caller;
use super::fault::problem_of;
use super::page::{self, Cursor, Query};
use super::{State, path};
use crate::command::order_rows::{self, order_path};
use crate::command::reply::operation_path;
use crate::db::tables::orders;
use crate::db::{self, Db, Fault};
use crate::json::{self, Json};
use crate::on_db;
use crate::order::STATES;
use crate::problem::{Code, Problem};

pub mod contract;

/// The scope that reading needs.
pub const SCOPE: &str = "orders:read";

/// Answers `GET /v1/orders/{orderId}`.
///
/// # Errors
/// 403, 404, or a fault.
pub async fn get(request: HttpRequest, state: web::Data<State>, caller: Caller) -> Result<HttpResponse, ProblemError> {
    Ok(get_order(&request, &state, &caller, path::param(&request)?).await?)
}

async fn get_order(
    request: &HttpRequest,
    state: &State,
    caller: &Caller,
    order_id: String,
) -> Result<HttpResponse, Problem> {
    caller.require(SCOPE)?;
    let tenant_id = caller.0.tenant_id.clone();
    let found = state.pools.reads.run(move |db| db.snapshot(|db| find(db, &tenant_id, &order_id))).await;
    let (row, lines) = found
        .map_err(|fault| problem_of(request, &fault))?
        .ok_or_else(|| Problem::new(Code::OrderNotFound, "There is no order with this id."))?;
    let etag = EntityTag::new_strong(row.version.to_string());
    if is_known(request, &etag) {
        return Ok(HttpResponse::NotModified().insert_header((ETAG, etag)).finish());
    }
    let body = full(&row, &lines).map_err(|fault| problem_of(request, &fault))?;
    Ok(HttpResponse::Ok()
        .insert_header((ETAG, etag))
        .insert_header((CACHE_CONTROL, "private, no-cache"))
        .content_type("application/json")
        .body(body.to_string()))
}

/// Whether the client has this very version (RFC 9110, section 13.1.2: weak comparison).
fn is_known(request: &HttpRequest, etag: &EntityTag) -> bool {
    use actix_web::http::header::Header;
    if !request.headers().contains_key(IF_NONE_MATCH) {
        return false;
    }
    match IfNoneMatch::parse(request) {
        Ok(IfNoneMatch::Any) => true,
        Ok(IfNoneMatch::Items(tags)) => tags.iter().any(|tag| tag.weak_eq(etag)),
        Err(_) => false,
    }
}

/// An order's row, without the columns that only commands need.
#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = orders)]
struct Row {
    order_id: String,
    operation_id: String,
    status: String,
    erp_reference: Option<String>,
    paid_amount: String,
    document: String,
    version: i64,
    created_at: db::Instant,
    updated_at: db::Instant,
}

fn find(db: &mut Db, tenant_id: &str, order_id: &str) -> Result<Option<(Row, Vec<String>)>, Fault> {
    let row = on_db!(&mut *db, conn => orders::table
        .find((tenant_id, order_id))
        .select(Row::as_select())
        .first(conn)
        .optional())?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some((row, order_rows::lines(db, tenant_id, order_id)?)))
}

/// The order as it was sent, normalised, with what has become of it.
fn full(row: &Row, lines: &[String]) -> Result<Json, Fault> {
    let items = lines.iter().map(|line| stored(line)).collect::<Result<_, _>>()?;
    let mut members = members(&row.document)?;
    members.push(("items".to_owned(), Json::Array(items)));
    Ok(with_state(row, members))
}

/// The members that a list leaves out: they can be large, or are personal without need.
const NOT_IN_LISTS: &[&str] = &["billingAddress", "shippingAddress", "extensions"];

fn entry(row: &Row) -> Result<Json, Fault> {
    let mut members = members(&row.document)?;
    members.retain(|(name, _)| !NOT_IN_LISTS.contains(&name.as_str()));
    Ok(with_state(row, members))
}

fn stored(document: &str) -> Result<Json, Fault> {
    json::parse(document.as_bytes()).map_err(|error| Fault::Bug(format!("a stored document cannot be read: {error}")))
}

fn members(document: &str) -> Result<Vec<(String, Json)>, Fault> {
    match stored(document)? {
        Json::Object(members) => Ok(members),
        _ => Err(Fault::Bug("a stored order is not an object".to_owned())),
    }
}

fn with_state(row: &Row, sent: Vec<(String, Json)>) -> Json {
    let text = |value: &str| Json::Text(value.to_owned());
    let links = vec![
        ("self".to_owned(), Json::Text(order_path(&row.order_id))),
        ("operation".to_owned(), Json::Text(operation_path(&row.operation_id))),
    ];
    let mut members = vec![
        ("orderId".to_owned(), text(&row.order_id)),
        ("status".to_owned(), text(&row.status)),
        ("erpReference".to_owned(), row.erp_reference.as_deref().map_or(Json::Null, text)),
        ("paidAmount".to_owned(), text(&row.paid_amount)),
        ("operationId".to_owned(), text(&row.operation_id)),
        ("createdAt".to_owned(), Json::Text(db::rfc3339(row.created_at))),
        ("updatedAt".to_owned(), Json::Text(db::rfc3339(row.updated_at))),
    ];
    members.extend(sent);
    members.push(("links".to_owned(), Json::Object(links)));
    Json::Object(members)
}

/// Answers `GET /v1/orders`.
///
/// # Errors
/// 403, 400 for a bad query, or a fault.
pub async fn list(request: HttpRequest, state: web::Data<State>, caller: Caller) -> Result<HttpResponse, ProblemError> {
    Ok(list_orders(&request, &state, &caller).await?)
}

/// What the client wants to see of the list.
#[derive(Debug)]
struct Filter {
    limit: i64,
    cursor: Option<Cursor>,
    status: Option<String>,
    channel: Option<String>,
    external_order_id: Option<String>,
    customer_id: Option<String>,
    created_from: Option<db::Instant>,
    created_to: Option<db::Instant>,
}

impl Filter {
    fn read(request: &HttpRequest) -> Result<Filter, Problem> {
        let mut query = Query::read(request, contract::LIST.query);
        let filter = Filter {
            limit: query.limit(),
            cursor: query.cursor(),
            status: query.one_of("status", STATES),
            channel: query.text("channel"),
            external_order_id: query.text("externalOrderId"),
            customer_id: query.text("customerId"),
            created_from: query.instant("createdFrom"),
            created_to: query.instant("createdTo"),
        };
        query.finish().map(|()| filter)
    }
}

async fn list_orders(request: &HttpRequest, state: &State, caller: &Caller) -> Result<HttpResponse, Problem> {
    caller.require(SCOPE)?;
    let filter = Filter::read(request)?;
    let tenant_id = caller.0.tenant_id.clone();
    let page = state.pools.reads.run(move |db| read_page(db, &tenant_id, &filter)).await;
    let page = page.map_err(|fault| problem_of(request, &fault))?;
    Ok(HttpResponse::Ok().content_type("application/json").body(page.to_string()))
}

fn read_page(db: &mut Db, tenant_id: &str, filter: &Filter) -> Result<Json, Fault> {
    let mut rows = on_db!(db, conn => {
        let mut query = orders::table.filter(orders::tenant_id.eq(tenant_id)).select(Row::as_select()).into_boxed();
        if let Some(cursor) = &filter.cursor {
            query = query.filter(orders::created_at.lt(cursor.created_at).or(
                orders::created_at.eq(cursor.created_at).and(orders::order_id.lt(&cursor.id))));
        }
        if let Some(status) = &filter.status {
            query = query.filter(orders::status.eq(status));
        }
        if let Some(channel) = &filter.channel {
            query = query.filter(orders::channel.eq(channel));
        }
        if let Some(external_order_id) = &filter.external_order_id {
            query = query.filter(orders::external_order_id.eq(external_order_id));
        }
        if let Some(customer_id) = &filter.customer_id {
            query = query.filter(orders::customer_id.eq(customer_id));
        }
        if let Some(from) = filter.created_from {
            query = query.filter(orders::created_at.ge(from));
        }
        if let Some(to) = filter.created_to {
            query = query.filter(orders::created_at.lt(to));
        }
        query.order((orders::created_at.desc(), orders::order_id.desc())).limit(filter.limit + 1).load::<Row>(conn)
    })?;
    let next =
        page::cut(&mut rows, filter.limit, |row| Cursor { created_at: row.created_at, id: row.order_id.clone() });
    let entries = rows.iter().map(entry).collect::<Result<_, _>>()?;
    Ok(Json::Object(vec![
        ("orders".to_owned(), Json::Array(entries)),
        ("nextCursor".to_owned(), next.map_or(Json::Null, Json::Text)),
    ]))
}
