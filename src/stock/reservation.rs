//! Reservations: all lines or none, for good or until a moment, and given back once.
//!
//! A line holds its quantity by `held_until` alone. When that moment is over the quantity is free, whether or not anybody
//! has looked; so there is nothing to clean up, and no clean-up that could be late.

use std::collections::BTreeMap;

use chrono::{NaiveDate, NaiveDateTime, NaiveTime};
use diesel::prelude::*;

use super::{Quantity, lock, reserved};
use crate::db::tables::{reservation_lines, reservations};
use crate::db::{self, Db, Fault};
use crate::{locked_on_db, on_db};

/// How long a line holds that does not expire: the end of the last year that the API can name.
const FOR_GOOD: NaiveDateTime = NaiveDateTime::new(
    NaiveDate::from_ymd_opt(9999, 12, 31).expect("a day of the calendar"),
    NaiveTime::from_hms_opt(23, 59, 59).expect("a time of the day"),
);

/// One line: so much of a SKU. A SKU may stand on several lines; what counts is their sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The stock keeping unit.
    pub sku: String,
    /// How much of it.
    pub qty: Quantity,
}

/// A reservation that is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The tenant whose stock it is.
    pub tenant_id: &'a str,
    /// Its name, made by the program.
    pub reservation_id: &'a str,
    /// The application that asks.
    pub client_id: &'a str,
    /// The operation that makes it.
    pub operation_id: &'a str,
    /// The order it is for, which exists.
    pub order_id: Option<&'a str>,
    /// When its stock is free again by itself, after `now`.
    pub expires_at: Option<db::Instant>,
    /// Its lines, at least one.
    pub lines: &'a [Line],
}

/// What is available of the SKUs that lack; `None` for a SKU that nobody knows.
pub type Shortage = BTreeMap<String, Option<Quantity>>;

/// Reserves all lines, or none and says which SKUs lack; in the second case nothing was written.
///
/// # Errors
/// A [`Fault`] of a statement.
pub fn reserve(db: &mut Db, wanted: &Wanted<'_>, now: db::Instant) -> Result<Result<(), Shortage>, Fault> {
    let shortage = shortage(db, wanted, now)?;
    if !shortage.is_empty() {
        return Ok(Err(shortage));
    }
    insert(db, wanted, now)?;
    Ok(Ok(()))
}

fn shortage(db: &mut Db, wanted: &Wanted<'_>, now: db::Instant) -> Result<Shortage, Fault> {
    let asked = sums(wanted.lines);
    let skus: Vec<&str> = asked.keys().copied().collect();
    let on_hand = lock(db, wanted.tenant_id, &skus)?;
    let reserved = reserved(db, wanted.tenant_id, &skus, now)?;
    let available = |sku: &str| {
        let on_hand = *on_hand.get(sku)?;
        Some(on_hand.minus(reserved.get(sku).copied().unwrap_or(Quantity::ZERO)))
    };
    Ok(asked
        .into_iter()
        .map(|(sku, qty)| (sku, qty, available(sku)))
        .filter(|(_, qty, available)| available.is_none_or(|available| available < *qty))
        .map(|(sku, _, available)| (sku.to_owned(), available))
        .collect())
}

/// How much of each SKU the lines ask for together.
#[must_use]
pub fn sums(lines: &[Line]) -> BTreeMap<&str, Quantity> {
    let mut sums = BTreeMap::new();
    for line in lines {
        let sum = sums.entry(line.sku.as_str()).or_insert(Quantity::ZERO);
        *sum = sum.plus(line.qty);
    }
    sums
}

#[derive(Insertable)]
#[diesel(table_name = reservations, treat_none_as_default_value = false)]
struct NewReservation<'a> {
    tenant_id: &'a str,
    reservation_id: &'a str,
    client_id: &'a str,
    operation_id: &'a str,
    order_id: Option<&'a str>,
    expires_at: Option<db::Instant>,
    created_at: db::Instant,
}

#[derive(Insertable)]
#[diesel(table_name = reservation_lines)]
struct NewLine<'a> {
    tenant_id: &'a str,
    reservation_id: &'a str,
    line_no: i32,
    sku: &'a str,
    qty: i64,
    held_until: db::Instant,
}

fn insert(db: &mut Db, wanted: &Wanted<'_>, now: db::Instant) -> Result<(), Fault> {
    let &Wanted { tenant_id, reservation_id, client_id, operation_id, order_id, expires_at, lines } = wanted;
    let row =
        NewReservation { tenant_id, reservation_id, client_id, operation_id, order_id, expires_at, created_at: now };
    on_db!(&mut *db, conn => diesel::insert_into(reservations::table).values(&row).execute(conn))?;
    let rows: Vec<NewLine<'_>> = (1..)
        .zip(lines)
        .map(|(line_no, line)| NewLine {
            tenant_id,
            reservation_id,
            line_no,
            sku: &line.sku,
            qty: line.qty.0,
            held_until: expires_at.unwrap_or(FOR_GOOD),
        })
        .collect();
    on_db!(db, conn => diesel::insert_into(reservation_lines::table).values(&rows).execute(conn))?;
    Ok(())
}

/// How a reservation stands at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It holds its stock.
    Reserved,
    /// It was given back.
    Released(db::Instant),
    /// Its time is over.
    Expired(db::Instant),
}

impl State {
    /// The names of all states, as the API writes them.
    pub const NAMES: [&str; 3] = ["reserved", "released", "expired"];

    fn at(now: db::Instant, expires_at: Option<db::Instant>, released_at: Option<db::Instant>) -> State {
        match (released_at, expires_at) {
            (Some(moment), _) => State::Released(moment),
            (None, Some(moment)) if moment <= now => State::Expired(moment),
            (None, _) => State::Reserved,
        }
    }

    /// The state as the API writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        let [reserved, released, expired] = State::NAMES;
        match self {
            State::Reserved => reserved,
            State::Released(_) => released,
            State::Expired(_) => expired,
        }
    }
}

/// What [`release`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The order that the reservation is for.
    pub order_id: Option<String>,
    /// How it stood before. Only a [`State::Reserved`] one is released now.
    pub state: State,
}

/// Gives the stock of a reservation back, if it holds any; `None` when there is no such reservation.
///
/// # Errors
/// A [`Fault`] of a statement.
pub fn release(db: &mut Db, tenant_id: &str, reservation_id: &str, now: db::Instant) -> Result<Option<Found>, Fault> {
    let query = reservations::table.find((tenant_id, reservation_id)).select((
        reservations::order_id,
        reservations::expires_at,
        reservations::released_at,
    ));
    let row = locked_on_db!(&mut *db, query, (conn, rows) =>
        rows.first::<(Option<String>, Option<db::Instant>, Option<db::Instant>)>(conn).optional())?;
    let Some((order_id, expires_at, released_at)) = row else { return Ok(None) };
    let state = State::at(now, expires_at, released_at);
    if state == State::Reserved {
        on_db!(&mut *db, conn => diesel::update(reservations::table.find((tenant_id, reservation_id)))
            .set(reservations::released_at.eq(now))
            .execute(conn))?;
        free_lines(db, tenant_id, &[reservation_id.to_owned()])?;
    }
    Ok(Some(Found { order_id, state }))
}

/// Gives the stock of all reservations of an order back, and tells how many there were. The order's row must be locked, so
/// that no reservation comes in between. What has expired stays expired.
///
/// # Errors
/// A [`Fault`] of a statement.
pub fn release_of_order(db: &mut Db, tenant_id: &str, order_id: &str, now: db::Instant) -> Result<usize, Fault> {
    // A rival that releases one of them holds only its row and waits for no other, so the order of these rows is free.
    let released: Vec<String> = on_db!(&mut *db, conn => diesel::update(reservations::table
            .filter(reservations::tenant_id.eq(tenant_id))
            .filter(reservations::order_id.eq(order_id))
            .filter(reservations::released_at.is_null())
            .filter(reservations::expires_at.is_null().or(reservations::expires_at.gt(now))))
        .set(reservations::released_at.eq(now))
        .returning(reservations::reservation_id)
        .get_results(conn))?;
    if !released.is_empty() {
        free_lines(db, tenant_id, &released)?;
    }
    Ok(released.len())
}

fn free_lines(db: &mut Db, tenant_id: &str, reservation_ids: &[String]) -> Result<(), Fault> {
    on_db!(db, conn => diesel::update(reservation_lines::table
            .filter(reservation_lines::tenant_id.eq(tenant_id))
            .filter(reservation_lines::reservation_id.eq_any(reservation_ids)))
        .set(reservation_lines::held_until.eq(None::<db::Instant>))
        .execute(conn))?;
    Ok(())
}

/// A reservation as it stands.
#[derive(Clone, Debug)]
pub struct Reservation {
    /// Its name.
    pub reservation_id: String,
    /// The operation that made it.
    pub operation_id: String,
    /// The order it is for.
    pub order_id: Option<String>,
    /// When its stock is free again by itself.
    pub expires_at: Option<db::Instant>,
    /// When it was made.
    pub created_at: db::Instant,
    /// How it stands now.
    pub state: State,
    /// Its lines, in the order sent.
    pub lines: Vec<Line>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = reservations)]
struct Row {
    operation_id: String,
    order_id: Option<String>,
    expires_at: Option<db::Instant>,
    released_at: Option<db::Instant>,
    created_at: db::Instant,
}

/// The reservation of this name, as it stands by the database's clock.
///
/// # Errors
/// A [`Fault`] of a query.
pub fn find(db: &mut Db, tenant_id: &str, reservation_id: &str) -> Result<Option<Reservation>, Fault> {
    db.snapshot(|db| {
        let row = on_db!(&mut *db, conn => reservations::table
            .find((tenant_id, reservation_id))
            .select(Row::as_select())
            .first(conn)
            .optional())?;
        let Some(row) = row else { return Ok(None) };
        let lines = on_db!(&mut *db, conn => reservation_lines::table
            .filter(reservation_lines::tenant_id.eq(tenant_id))
            .filter(reservation_lines::reservation_id.eq(reservation_id))
            .order(reservation_lines::line_no)
            .select((reservation_lines::sku, reservation_lines::qty))
            .load::<(String, i64)>(conn))?;
        let now = db.now()?;
        Ok(Some(Reservation {
            reservation_id: reservation_id.to_owned(),
            state: State::at(now, row.expires_at, row.released_at),
            operation_id: row.operation_id,
            order_id: row.order_id,
            expires_at: row.expires_at,
            created_at: row.created_at,
            lines: lines.into_iter().map(|(sku, qty)| Line { sku, qty: Quantity(qty) }).collect(),
        }))
    })
}
