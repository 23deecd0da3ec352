//! The rows of an order, as the commands that write them share them: insert, lock, replace, and the messages to the ERP.

use std::time::Duration;

use diesel::prelude::*;

use super::Tx;
use crate::db::tables::{order_lines, orders};
use crate::db::{self, Db, Fault};
use crate::json::Json;
use crate::order::Order;
use crate::outbox::{self as messages, Kind, Message};
use crate::problem::{Code, Problem};
use crate::{locked_on_db, on_db};

/// The first version of every order.
pub const FIRST_VERSION: i64 = 1;

/// How long a command waits for a rival that changes the same order. Unlike the wait for a key it is not the client's to
/// choose: a rival holds an order for milliseconds.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// A wait for a lock that is shorter than this may end before a rival that only takes its time.
const LOCK_WAIT_AT_LEAST: Duration = Duration::from_secs(1);

/// The path of an order.
#[must_use]
pub fn order_path(order_id: &str) -> String {
    format!("/v1/orders/{order_id}")
}

#[derive(Insertable)]
#[diesel(table_name = orders, treat_none_as_default_value = false)]
struct NewOrder<'a> {
    tenant_id: &'a str,
    order_id: &'a str,
    client_id: &'a str,
    operation_id: &'a str,
    channel: &'a str,
    external_order_id: Option<&'a str>,
    customer_id: Option<&'a str>,
    currency: &'a str,
    status: &'a str,
    reference: &'a str,
    paid_amount: &'a str,
    document: &'a str,
    version: i64,
    created_at: db::Instant,
    updated_at: db::Instant,
}

/// Writes the order and its lines, unless its id or its shop order exists already: then it writes nothing and says `false`.
///
/// # Errors
/// A [`Fault`] of the inserts.
pub fn insert(tx: &mut Tx<'_>, order_id: &str, order: &Order) -> Result<bool, Fault> {
    // A rival may be making the same order under another key. The usual patience is long enough for it, and costs no
    // statement.
    if tx.lock_wait < LOCK_WAIT_AT_LEAST {
        tx.db.wait_for_locks(LOCK_WAIT)?;
    }
    let row = NewOrder {
        tenant_id: &tx.call.tenant_id,
        order_id,
        client_id: &tx.call.client_id,
        operation_id: &tx.call.operation_id,
        channel: order.channel(),
        external_order_id: order.external_order_id(),
        customer_id: order.customer_id(),
        currency: order.currency().code(),
        status: "accepted",
        reference: &reference(order_id, order),
        paid_amount: "0",
        document: &order.head().to_string(),
        version: FIRST_VERSION,
        created_at: tx.now,
        updated_at: tx.now,
    };
    let inserted = on_db!(&mut *tx.db, conn => diesel::insert_into(orders::table)
        .values(&row)
        .on_conflict_do_nothing()
        .execute(conn))?;
    if inserted == 0 {
        return Ok(false);
    }
    insert_lines(tx, order_id, order)?;
    Ok(true)
}

/// Our permanent name of the order inside the ERP: the shop's own name where there is one, so that even a database that was
/// restored from an old backup cannot make a second sale. A slash inside the shop's id is escaped, because a channel may hold
/// slashes too and two shop orders must never share a name; the last slash is always the one between the two.
fn reference(order_id: &str, order: &Order) -> String {
    match order.external_order_id() {
        Some(external) => format!("{}/{}", order.channel(), external.replace('%', "%25").replace('/', "%2F")),
        None => order_id.to_owned(),
    }
}

/// What an order is found by that has a certain name inside the ERP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity<'a> {
    /// The order's id.
    Id(&'a str),
    /// The shop's own name of it.
    ShopOrder {
        /// The sales channel.
        channel: &'a str,
        /// The shop's id.
        external: String,
    },
}

/// What an order is found by that has this name inside the ERP. The order has to be looked at: anybody can write such a name.
#[must_use]
pub fn identity(reference: &str) -> Identity<'_> {
    match reference.rsplit_once('/') {
        Some((channel, external)) => {
            Identity::ShopOrder { channel, external: external.replace("%2F", "/").replace("%25", "%") }
        }
        None => Identity::Id(reference),
    }
}

#[derive(Insertable)]
#[diesel(table_name = order_lines, treat_none_as_default_value = false)]
struct NewLine<'a> {
    tenant_id: &'a str,
    order_id: &'a str,
    line_no: i32,
    kind: &'a str,
    sku: Option<&'a str>,
    qty: &'a str,
    document: String,
}

fn insert_lines(tx: &mut Tx<'_>, order_id: &str, order: &Order) -> Result<(), Fault> {
    let rows: Vec<NewLine<'_>> = (1..)
        .zip(order.lines())
        .map(|(line_no, line)| NewLine {
            tenant_id: &tx.call.tenant_id,
            order_id,
            line_no,
            kind: line.kind(),
            sku: line.sku(),
            qty: line.qty(),
            document: line.document().to_string(),
        })
        .collect();
    on_db!(&mut *tx.db, conn => diesel::insert_into(order_lines::table).values(&rows).execute(conn))?;
    Ok(())
}

/// The refusal of an order whose shop order exists, with the way to the one that does; `None` when there is none.
///
/// # Errors
/// A [`Fault`] of the query.
pub fn duplicate(tx: &mut Tx<'_>, order: &Order) -> Result<Option<Problem>, Fault> {
    let existing: Option<String> = on_db!(&mut *tx.db, conn => orders::table
        .filter(orders::tenant_id.eq(&tx.call.tenant_id))
        .filter(orders::channel.eq(order.channel()))
        .filter(orders::external_order_id.eq(order.external_order_id()))
        .select(orders::order_id)
        .first(conn)
        .optional())?;
    let detail = "An order with this channel and externalOrderId exists; it came with another idempotency key.";
    Ok(existing.map(|existing| Problem::about_order(Code::DuplicateOrder, detail, &existing)))
}

/// What commands need to know of an order that exists.
#[derive(Clone, Debug, Queryable, Selectable)]
#[diesel(table_name = orders)]
pub struct OrderRow {
    /// Its id.
    pub order_id: String,
    /// The operation that handed it over.
    pub operation_id: String,
    /// The sales channel; empty where the shop named none.
    pub channel: String,
    /// The shop's own id.
    pub external_order_id: Option<String>,
    /// ISO 4217, upper case.
    pub currency: String,
    /// `accepted`, `confirmed`, `rejected`, `cancelling` or `cancelled`.
    pub status: String,
    /// Our permanent name of it inside the ERP.
    pub reference: String,
    /// The ERP's own name of it.
    pub erp_reference: Option<String>,
    /// The sum of its payments, an exact decimal.
    pub paid_amount: String,
    /// What was sent, normalised, without the lines.
    pub document: String,
    /// Goes up with every visible change; the `ETag`.
    pub version: i64,
}

/// Finds an order of the caller's tenant and keeps rivals from changing it until the transaction ends.
///
/// # Errors
/// A [`Fault`], also when a rival holds it too long.
pub fn lock(tx: &mut Tx<'_>, order_id: &str) -> Result<Option<OrderRow>, Fault> {
    tx.db.wait_for_locks(LOCK_WAIT)?;
    find_and_lock(tx.db, &tx.call.tenant_id, order_id)
}

/// As [`lock`], for a transaction that has no call: it waits as long as the transaction does for any lock.
///
/// # Errors
/// A [`Fault`], also when a rival holds it too long.
pub fn find_and_lock(db: &mut Db, tenant_id: &str, order_id: &str) -> Result<Option<OrderRow>, Fault> {
    let row = locked_on_db!(
        db,
        orders::table.find((tenant_id, order_id)).select(OrderRow::as_select()),
        (conn, rows) => rows.first(conn).optional()
    );
    Ok(row?)
}

/// As [`lock`], with the refusal of an order that does not exist.
///
/// # Errors
/// `OrderNotFound`, or a [`Fault`].
pub fn lock_existing(tx: &mut Tx<'_>, order_id: &str) -> Result<OrderRow, super::Stop> {
    let row = lock(tx, order_id)?;
    row.ok_or_else(|| Problem::new(Code::OrderNotFound, "There is no order with this id.").into())
}

/// Sets the state of a locked order, as a new version.
///
/// # Errors
/// A [`Fault`] of the update.
pub fn set_status(tx: &mut Tx<'_>, order: &OrderRow, status: &str) -> Result<(), Fault> {
    on_db!(&mut *tx.db, conn => diesel::update(orders::table.find((&tx.call.tenant_id, &order.order_id)))
        .set((orders::status.eq(status), orders::version.eq(order.version + 1), orders::updated_at.eq(tx.now)))
        .execute(conn))?;
    Ok(())
}

/// Sets what the ERP made of a locked order, its state and, where it told one, its own name of it, as a new version.
///
/// # Errors
/// A [`Fault`] of the update.
pub fn set_by_erp(
    db: &mut Db,
    tenant_id: &str,
    order: &OrderRow,
    (status, erp_reference): (&str, Option<&str>),
    now: db::Instant,
) -> Result<(), Fault> {
    let erp_reference = erp_reference.or(order.erp_reference.as_deref());
    on_db!(db, conn => diesel::update(orders::table.find((tenant_id, &order.order_id)))
        .set((
            orders::status.eq(status),
            orders::erp_reference.eq(erp_reference),
            orders::version.eq(order.version + 1),
            orders::updated_at.eq(now),
        ))
        .execute(conn))?;
    Ok(())
}

/// Sets what has been paid of a locked order, as a new version.
///
/// # Errors
/// A [`Fault`] of the update.
pub fn set_paid_amount(tx: &mut Tx<'_>, order: &OrderRow, paid_amount: &str) -> Result<(), Fault> {
    on_db!(&mut *tx.db, conn => diesel::update(orders::table.find((&tx.call.tenant_id, &order.order_id)))
        .set((
            orders::paid_amount.eq(paid_amount),
            orders::version.eq(order.version + 1),
            orders::updated_at.eq(tx.now),
        ))
        .execute(conn))?;
    Ok(())
}

/// Puts `order` in the place of a locked one, as a new version that this call's operation hands over.
///
/// # Errors
/// A [`Fault`] of the writes.
pub fn replace(tx: &mut Tx<'_>, old: &OrderRow, order: &Order) -> Result<(), Fault> {
    let tenant_id = &tx.call.tenant_id;
    on_db!(&mut *tx.db, conn => diesel::update(orders::table.find((tenant_id, &old.order_id)))
        .set((
            orders::operation_id.eq(&tx.call.operation_id),
            orders::customer_id.eq(order.customer_id()),
            orders::currency.eq(order.currency().code()),
            orders::status.eq("accepted"),
            orders::document.eq(order.head().to_string()),
            orders::version.eq(old.version + 1),
            orders::updated_at.eq(tx.now),
        ))
        .execute(conn))?;
    on_db!(&mut *tx.db, conn => diesel::delete(order_lines::table
        .filter(order_lines::tenant_id.eq(tenant_id))
        .filter(order_lines::order_id.eq(&old.order_id)))
        .execute(conn))?;
    insert_lines(tx, &old.order_id, order)
}

/// The stored lines of an order, each as JSON text, in their order.
///
/// # Errors
/// A [`Fault`] of the query.
pub fn lines(db: &mut Db, tenant_id: &str, order_id: &str) -> Result<Vec<String>, Fault> {
    let lines = on_db!(db, conn => order_lines::table
        .filter(order_lines::tenant_id.eq(tenant_id))
        .filter(order_lines::order_id.eq(order_id))
        .order(order_lines::line_no)
        .select(order_lines::document)
        .load(conn));
    Ok(lines?)
}

/// Leaves a message about an order for the ERP, behind those that wait already. `content` is the member that it adds.
///
/// # Errors
/// A [`Fault`] of the insert.
pub fn announce(tx: &mut Tx<'_>, kind: Kind, order: &OrderRow, content: Option<(&str, &Json)>) -> Result<(), Fault> {
    append(tx, kind, (&order.order_id, &order.reference), order.version + 1, content)
}

/// Leaves the message that hands a whole order over. Whatever version it is of, it comes before all else that is told of the
/// order: a payment that waits for the hand-over waits for the one that replaces it, too.
///
/// # Errors
/// A [`Fault`] of the insert.
pub fn hand_over(tx: &mut Tx<'_>, kind: Kind, order_id: &str, order: &Order) -> Result<(), Fault> {
    let reference = reference(order_id, order);
    append(tx, kind, (order_id, &reference), FIRST_VERSION, Some(("order", order.document())))
}

fn append(
    tx: &mut Tx<'_>,
    kind: Kind,
    (order_id, reference): (&str, &str),
    position: i64,
    content: Option<(&str, &Json)>,
) -> Result<(), Fault> {
    let text = |value: &str| Json::Text(value.to_owned());
    let mut payload = vec![
        ("type".to_owned(), text(kind.as_str())),
        ("reference".to_owned(), text(reference)),
        ("orderId".to_owned(), text(order_id)),
        ("occurredAt".to_owned(), Json::Text(db::rfc3339(tx.now))),
    ];
    payload.extend(content.map(|(name, content)| (name.to_owned(), content.clone())));
    let message = Message {
        tenant_id: &tx.call.tenant_id,
        operation_id: &tx.call.operation_id,
        kind,
        order_id,
        position,
        payload: &Json::Object(payload).to_string(),
        trace_id: &tx.call.trace_id,
    };
    messages::append(tx.db, &message, tx.now)
}

#[cfg(test)]
mod tests {
    use super::{Identity, identity, reference};
    use crate::json::parse;
    use crate::order::Order;

    #[test]
    fn an_order_is_found_by_its_name_inside_the_erp_whatever_the_shop_calls_it() {
        for (channel, external) in
            [("web", "1"), ("", "1"), ("a/b", "x/y"), ("%2F", "%2F%25/%"), ("/", "/"), ("č", "š%")]
        {
            let body = format!(
                r#"{{"customerId":"c","currency":"EUR","items":[{{"sku":"A","qty":1}}],
                    "channel":"{channel}","externalOrderId":"{external}"}}"#
            );
            // No channel is the empty one.
            let body = body.replace(r#""channel":"","#, "");
            let order = Order::parse(&parse(body.as_bytes()).expect("it is JSON")).expect("it is valid");
            let external = external.to_owned();
            assert_eq!(identity(&reference("ord_1", &order)), Identity::ShopOrder { channel, external });
        }
        assert_eq!(identity("ord_1"), Identity::Id("ord_1"));
    }
}
