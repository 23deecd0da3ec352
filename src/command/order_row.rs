//! The order that another command is about: its row, locked until the end of the transaction, so that what the command
//! decides by it stays true until it commits.

use diesel::prelude::*;

use super::create_order::order_path;
use super::{Stop, Tx};
use crate::db::tables::orders;
use crate::locked_on_db;
use crate::problem::{Code, Links, Problem};

/// What commands decide by, and carry on to the ERP.
#[derive(Clone, Debug, Queryable, Selectable)]
#[diesel(table_name = orders)]
pub struct OrderRow {
    /// Our name of the order.
    pub order_id: String,
    /// The state of the order.
    pub status: String,
    /// Our permanent name of it inside the ERP.
    pub reference: String,
    /// The currency of its amounts.
    pub currency: String,
    /// What has been paid, as exact decimal text.
    pub paid_amount: String,
    /// The order without its lines, as it was sent, normalised.
    pub document: String,
    /// Goes up by one with every visible change.
    pub version: i64,
}

/// Locks the order of this id and gives its row; rivals that are about the same order wait until this transaction ends.
///
/// # Errors
/// `OrderNotFound` is a refusal; else a fault of the query.
pub fn lock(tx: &mut Tx<'_>, order_id: &str) -> Result<OrderRow, Stop> {
    let row = locked_on_db!(
        &mut *tx.db,
        orders::table.find((&tx.call.tenant_id, order_id)).select(OrderRow::as_select()),
        (conn, rows) => rows.first::<OrderRow>(conn).optional()
    )?;
    row.ok_or_else(|| Problem::new(Code::OrderNotFound, "There is no order with this id.").into())
}

impl OrderRow {
    /// A refusal that is about this order, and links to it.
    #[must_use]
    pub fn refusal(&self, code: Code, detail: impl Into<String>) -> Problem {
        Problem {
            order_id: Some(self.order_id.clone()),
            links: Links::default().with("order", order_path(&self.order_id)),
            ..Problem::new(code, detail)
        }
    }
}
