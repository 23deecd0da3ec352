//! Stock: what is on hand of each SKU, and what of it is reserved.
//!
//! Nothing here is a counter that could drift. What is reserved is the sum of the lines that hold a quantity now, and now
//! is the database's clock. Whoever changes what is on hand or reserves more of it locks the rows of the SKUs first, in the
//! order of their bytes, and reads the sum afterwards; so two rivals for the last piece come one after the other.

use std::collections::BTreeMap;
use std::time::Duration;

use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::BigInt;

use crate::db::tables::{reservation_lines, stock};
use crate::db::{self, Db, Fault};
use crate::{locked_on_db, on_db};

mod quantity;
pub mod reservation;

pub use quantity::{ASKED, ON_HAND, Quantity};

/// The longest SKU, in characters.
pub const MAX_SKU: usize = 255;

/// How long a command waits for a rival that changes the same stock. Unlike the wait for a key it is not the client's to choose:
/// a rival holds the row of a SKU for milliseconds.
pub const LOCK_WAIT: Duration = Duration::from_secs(5);

/// What there is of one SKU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// What is in the warehouse.
    pub on_hand: Quantity,
    /// What of it is reserved and neither released nor expired.
    pub reserved: Quantity,
}

impl Level {
    /// What can still be reserved.
    #[must_use]
    pub fn available(self) -> Quantity {
        self.on_hand.minus(self.reserved)
    }
}

/// The level of a SKU; `None` when nobody ever said what is on hand of it.
///
/// # Errors
/// A [`Fault`] of a query.
pub fn read(db: &mut Db, tenant_id: &str, sku: &str) -> Result<Option<Level>, Fault> {
    db.snapshot(|db| {
        let on_hand = on_db!(&mut *db, conn => stock::table
            .find((tenant_id, sku))
            .select(stock::on_hand)
            .first(conn)
            .optional())?;
        let Some(on_hand) = on_hand else { return Ok(None) };
        let now = db.now()?;
        let reserved = reserved(db, tenant_id, &[sku], now)?.remove(sku).unwrap_or(Quantity::ZERO);
        Ok(Some(Level { on_hand: Quantity(on_hand), reserved }))
    })
}

/// What became of [`put`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// The SKU is new.
    Created,
    /// What was on hand is replaced.
    Changed,
    /// Refused: so much is reserved, which is more. Nothing was written.
    BelowReserved(Quantity),
}

/// Says what is on hand of a SKU, from now on.
///
/// # Errors
/// A [`Fault`] of a statement.
pub fn put(db: &mut Db, tenant_id: &str, sku: &str, on_hand: Quantity, now: db::Instant) -> Result<Put, Fault> {
    if lock(db, tenant_id, &[sku])?.is_empty() {
        if insert(db, tenant_id, sku, on_hand, now)? {
            return Ok(Put::Created);
        }
        // A rival made the row between the two statements. It has committed, so that now there is a row to lock.
        lock(db, tenant_id, &[sku])?;
    }
    let reserved = reserved(db, tenant_id, &[sku], now)?.remove(sku).unwrap_or(Quantity::ZERO);
    if on_hand < reserved {
        return Ok(Put::BelowReserved(reserved));
    }
    on_db!(db, conn => diesel::update(stock::table.find((tenant_id, sku)))
        .set((stock::on_hand.eq(on_hand.0), stock::updated_at.eq(now)))
        .execute(conn))?;
    Ok(Put::Changed)
}

#[derive(Insertable)]
#[diesel(table_name = stock)]
struct NewStock<'a> {
    tenant_id: &'a str,
    sku: &'a str,
    on_hand: i64,
    created_at: db::Instant,
    updated_at: db::Instant,
}

fn insert(db: &mut Db, tenant_id: &str, sku: &str, on_hand: Quantity, now: db::Instant) -> Result<bool, Fault> {
    let row = NewStock { tenant_id, sku, on_hand: on_hand.0, created_at: now, updated_at: now };
    let inserted = on_db!(db, conn => diesel::insert_into(stock::table)
        .values(&row)
        .on_conflict_do_nothing()
        .execute(conn))?;
    Ok(inserted == 1)
}

/// Locks the rows of these SKUs, and tells what is on hand of those that exist.
fn lock(db: &mut Db, tenant_id: &str, skus: &[&str]) -> Result<BTreeMap<String, Quantity>, Fault> {
    let query = stock::table
        .filter(stock::tenant_id.eq(tenant_id))
        .filter(stock::sku.eq_any(skus))
        .order(stock::sku)
        .select((stock::sku, stock::on_hand));
    let rows = locked_on_db!(db, query, (conn, rows) => rows.load::<(String, i64)>(conn))?;
    Ok(by_sku(rows))
}

/// What is reserved of these SKUs at the moment `now`; nothing is left out.
fn reserved(
    db: &mut Db,
    tenant_id: &str,
    skus: &[&str],
    now: db::Instant,
) -> Result<BTreeMap<String, Quantity>, Fault> {
    // PostgreSQL adds BIGINTs to a NUMERIC.
    let rows = on_db!(db, conn => reservation_lines::table
        .filter(reservation_lines::tenant_id.eq(tenant_id))
        .filter(reservation_lines::sku.eq_any(skus))
        .filter(reservation_lines::held_until.gt(now))
        .group_by(reservation_lines::sku)
        .select((reservation_lines::sku, sql::<BigInt>("CAST(SUM(qty) AS BIGINT)")))
        .load::<(String, i64)>(conn))?;
    Ok(by_sku(rows))
}

fn by_sku(rows: Vec<(String, i64)>) -> BTreeMap<String, Quantity> {
    rows.into_iter().map(|(sku, millionths)| (sku, Quantity(millionths))).collect()
}
