//! Our orders as the comparison needs them, read in pages by the time at which they were made.

use std::collections::HashMap;

use diesel::prelude::*;
use rust_decimal::Decimal;

use crate::command::hand_over_again::{Standing, standings};
use crate::command::order_rows::{Identity, identity};
use crate::db::tables::{order_lines, orders, outbox};
use crate::db::{self, Db, Fault};
use crate::json::{self, Json};
use crate::on_db;
use crate::order::gross;
use crate::outbox::Kind;

/// The place of an order among all of its tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) created_at: db::Instant,
    pub(super) order_id: String,
}

/// An order as we have it.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) place: Place,
    pub(super) reference: String,
    pub(super) status: String,
    pub(super) currency: String,
    pub(super) erp_reference: Option<String>,
    /// What the customer has to pay, where the shop has told it.
    pub(super) total: Option<Decimal>,
    pub(super) lines: usize,
    pub(super) hand_over: Standing,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = orders)]
struct Row {
    order_id: String,
    created_at: db::Instant,
    reference: String,
    status: String,
    currency: String,
    erp_reference: Option<String>,
    document: String,
}

/// How many orders the tenant has made from a moment to another.
pub(super) fn count(db: &mut Db, tenant_id: &str, since: db::Instant, until: db::Instant) -> Result<i64, Fault> {
    let count = on_db!(db, conn => orders::table
        .filter(orders::tenant_id.eq(tenant_id))
        .filter(orders::created_at.between(since, until))
        .count()
        .get_result(conn));
    Ok(count?)
}

/// The next orders from a moment to another, the first made first.
pub(super) fn page(
    db: &mut Db,
    tenant_id: &str,
    (since, until): (db::Instant, db::Instant),
    after: Option<&Place>,
    limit: i64,
) -> Result<Vec<Order>, Fault> {
    // Nothing is before the first: no id is the empty text.
    let (moment, id) = after.map_or((since, ""), |place| (place.created_at, place.order_id.as_str()));
    let rows = on_db!(&mut *db, conn => orders::table
        .filter(orders::tenant_id.eq(tenant_id))
        // Says less than the next condition, and lets the index begin where the page does.
        .filter(orders::created_at.between(moment, until))
        .filter(orders::created_at.gt(moment).or(orders::created_at.eq(moment).and(orders::order_id.gt(id))))
        .order((orders::created_at, orders::order_id))
        .limit(limit)
        .select(Row::as_select())
        .load(conn))?;
    whole(db, tenant_id, rows)
}

/// Those of our orders that have one of these references.
pub(super) fn of_references(db: &mut Db, tenant_id: &str, references: &[String]) -> Result<Vec<Order>, Fault> {
    let mut rows = Vec::new();
    for reference in references {
        let row: Option<Row> = match identity(reference) {
            Identity::Id(order_id) => on_db!(&mut *db, conn => orders::table
                .find((tenant_id, order_id))
                .select(Row::as_select())
                .first(conn)
                .optional())?,
            Identity::ShopOrder { channel, external } => on_db!(&mut *db, conn => orders::table
                .filter(orders::tenant_id.eq(tenant_id))
                .filter(orders::channel.eq(&channel))
                .filter(orders::external_order_id.eq(&external))
                .select(Row::as_select())
                .first(conn)
                .optional())?,
        };
        rows.extend(row.filter(|row| row.reference == *reference));
    }
    whole(db, tenant_id, rows)
}

/// Adds to the rows of orders what other tables tell of them.
fn whole(db: &mut Db, tenant_id: &str, rows: Vec<Row>) -> Result<Vec<Order>, Fault> {
    let order_ids: Vec<String> = rows.iter().map(|row| row.order_id.clone()).collect();
    let lines: Vec<(String, i64)> = on_db!(&mut *db, conn => order_lines::table
        .filter(order_lines::tenant_id.eq(tenant_id))
        .filter(order_lines::order_id.eq_any(&order_ids))
        .group_by(order_lines::order_id)
        .select((order_lines::order_id, diesel::dsl::count_star()))
        .load(conn))?;
    let lines: HashMap<String, i64> = lines.into_iter().collect();
    let mut hand_overs = standings(db, tenant_id, &order_ids)?;
    rows.into_iter()
        .map(|row| {
            let document = json::parse(row.document.as_bytes());
            let document = document.map_err(|_| Fault::Bug("a stored order cannot be read".to_owned()))?;
            Ok(Order {
                total: gross(&document),
                lines: lines.get(&row.order_id).copied().and_then(|lines| usize::try_from(lines).ok()).unwrap_or(0),
                hand_over: hand_overs.remove(&row.order_id).unwrap_or(Standing::Gone),
                place: Place { created_at: row.created_at, order_id: row.order_id },
                reference: row.reference,
                status: row.status,
                currency: row.currency,
                erp_reference: row.erp_reference,
            })
        })
        .collect()
}

/// The last hand-over of an order: its name and its payload.
pub(super) fn hand_over(db: &mut Db, tenant_id: &str, order_id: &str) -> Result<Option<(String, String)>, Fault> {
    let found = on_db!(db, conn => outbox::table
        .filter(outbox::tenant_id.eq(tenant_id))
        .filter(outbox::order_id.eq(order_id))
        .filter(outbox::kind.eq_any(Kind::HAND_OVERS.map(Kind::as_str)))
        .order(outbox::message_id.desc())
        .select((outbox::message_id, outbox::payload))
        .first(conn)
        .optional());
    Ok(found?)
}

/// What names an order whose hand-over is forgotten: enough to look for it, and nothing that is ever sent.
pub(super) fn stand_in(order_id: &str, reference: &str) -> (String, String) {
    let text = |value: &str| Json::Text(value.to_owned());
    let members = [("type", Kind::OrderCreated.as_str()), ("reference", reference), ("orderId", order_id)];
    let payload = Json::Object(members.map(|(name, value)| (name.to_owned(), text(value))).to_vec());
    (format!("msg_{}", uuid::Uuid::now_v7().simple()), payload.to_string())
}
