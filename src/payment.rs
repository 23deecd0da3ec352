//! Payments: what was paid for an order, as the shop told it, and found again by its reference.

use diesel::prelude::*;

use crate::db::tables::payments;
use crate::db::{self, Db, Fault};
use crate::on_db;

/// A payment as it is stored.
#[derive(Clone, Debug, Queryable, Selectable, Insertable)]
#[diesel(table_name = payments, treat_none_as_default_value = false)]
pub struct Payment {
    /// The tenant whose order was paid.
    pub tenant_id: String,
    /// Its name, made by the program.
    pub payment_id: String,
    /// The order that was paid.
    pub order_id: String,
    /// The application that told of it.
    pub client_id: String,
    /// The operation that wrote it down.
    pub operation_id: String,
    /// The payment provider's name of it, unique in the order for ever.
    pub reference: Option<String>,
    /// What was sent, normalised.
    pub document: String,
    /// When it was written down.
    pub created_at: db::Instant,
}

/// Writes a payment down. The order's row must be locked, and the reference new to the order.
///
/// # Errors
/// A [`Fault`] of the insert.
pub fn insert(db: &mut Db, payment: &Payment) -> Result<(), Fault> {
    on_db!(db, conn => diesel::insert_into(payments::table).values(payment).execute(conn))?;
    Ok(())
}

/// The payment of an order that has this reference, by its id.
///
/// # Errors
/// A [`Fault`] of the query.
pub fn with_reference(db: &mut Db, tenant_id: &str, order_id: &str, reference: &str) -> Result<Option<String>, Fault> {
    let found = on_db!(db, conn => payments::table
        .filter(payments::tenant_id.eq(tenant_id))
        .filter(payments::order_id.eq(order_id))
        .filter(payments::reference.eq(reference))
        .select(payments::payment_id)
        .first(conn)
        .optional());
    Ok(found?)
}

/// The payment of this id.
///
/// # Errors
/// A [`Fault`] of the query.
pub fn find(db: &mut Db, tenant_id: &str, payment_id: &str) -> Result<Option<Payment>, Fault> {
    let found = on_db!(db, conn => payments::table
        .find((tenant_id, payment_id))
        .select(Payment::as_select())
        .first(conn)
        .optional());
    Ok(found?)
}
