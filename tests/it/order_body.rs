//! The body of an order: what is taken and how it is kept, what is refused and how that is said.

mod faults;
mod properties;
mod rules;
mod taken;

use order_service::json::{Json, parse};
use order_service::order::Order;
use order_service::schema::Fault;

fn json(text: &str) -> Json {
    parse(text.as_bytes()).unwrap_or_else(|malformed| panic!("{text}: {malformed}"))
}

#[track_caller]
fn taken(text: &str) -> Order {
    Order::parse(&json(text)).unwrap_or_else(|faults| panic!("{text} was refused: {faults:#?}"))
}

#[track_caller]
fn refused(text: &str) -> Vec<Fault> {
    match Order::parse(&json(text)) {
        Ok(order) => panic!("{text} was taken as {}", order.document()),
        Err(faults) => faults,
    }
}

/// The faults as `pointer code`, which is what clients branch on.
#[track_caller]
fn codes(text: &str) -> Vec<String> {
    refused(text).iter().map(|fault| format!("{} {}", fault.pointer, fault.code)).collect()
}

/// A valid order with `members` added to it.
fn order_with(members: &str) -> String {
    format!(r#"{{"customerId":"c","currency":"EUR","items":[{{"sku":"A","qty":1}}],{members}}}"#)
}

/// A valid order whose only line has `members` added to it.
fn line_with(members: &str) -> String {
    order_of_lines(&format!(r#"{{"sku":"A","qty":1,{members}}}"#))
}

/// An order of these lines.
fn order_of_lines(lines: &str) -> String {
    format!(r#"{{"customerId":"c","currency":"EUR","items":[{lines}]}}"#)
}
