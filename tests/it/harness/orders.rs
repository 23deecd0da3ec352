//! The orders that tests send, and the rows that they expect of them.

use std::ops::Add;

use serde_json::{Value, json};

use super::database::Database;

/// The smallest valid order: one line.
pub fn smallest() -> Value {
    json!({"customerId": "cus_123", "items": [{"sku": "ABC", "qty": 2}], "currency": "RUB"})
}

/// The smallest order with these members on top of it, or in the place of its own.
pub fn with(members: &Value) -> Value {
    let mut order = smallest();
    let members = members.as_object().expect("members are an object");
    order.as_object_mut().expect("an order is an object").extend(members.clone());
    order
}

/// How many rows of each table there are: what a command leaves, all of it or nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Rows of `orders`.
    pub orders: i64,
    /// Rows of `order_lines`.
    pub lines: i64,
    /// Rows of `outbox`.
    pub messages: i64,
    /// Rows of `claims`.
    pub claims: i64,
    /// Rows of `operations`.
    pub operations: i64,
}

impl Tally {
    /// What is there now.
    pub fn of(database: &Database) -> Self {
        let counted = database.rows(
            "SELECT (SELECT count(*) FROM orders) AS orders, (SELECT count(*) FROM order_lines) AS order_lines, \
             (SELECT count(*) FROM outbox) AS messages, (SELECT count(*) FROM claims) AS claims, \
             (SELECT count(*) FROM operations) AS operations",
        );
        let number = |name: &str| counted[0][name].as_i64().expect("count(*) is an integer");
        Self {
            orders: number("orders"),
            lines: number("order_lines"),
            messages: number("messages"),
            claims: number("claims"),
            operations: number("operations"),
        }
    }

    /// What so many orders of one line leave, each made under a key of its own.
    pub fn orders(number: i64) -> Self {
        Self { orders: number, lines: number, messages: number, ..Self::answers(number) }
    }

    /// What so many keys leave whose commands wrote nothing but their answer, such as refusals.
    pub fn answers(number: i64) -> Self {
        Self { claims: number, operations: number, ..Self::default() }
    }
}

impl Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            orders: self.orders + other.orders,
            lines: self.lines + other.lines,
            messages: self.messages + other.messages,
            claims: self.claims + other.claims,
            operations: self.operations + other.operations,
        }
    }
}
