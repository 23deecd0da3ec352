//! Bodies of commands in one plain form, in which two bodies are equal when they mean the same.
//!
//! Decimals are text without needless zeros, codes are in upper case, and what is absent is not there. Every other
//! spelling of the same content is made from this form by [`super::spelling`], so that the model compares values only.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

/// The SKUs of all bodies. The second has to be escaped in a path.
pub const SKUS: [&str; 2] = ["A", "ľ/b"];

/// Members that no command knows.
pub const UNKNOWN: [&str; 2] = ["frobnicate", "surplus"];

/// What is wrong with a body that is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A required member is missing.
    Missing,
    /// A decimal that must be greater than zero is not.
    Zero,
    /// There is a member that nobody knows.
    Unknown,
    /// The currency does not exist.
    Currency,
}

/// An order as it may be sent.
#[derive(Clone, Debug)]
pub struct OrderBody {
    /// ISO 4217.
    pub currency: &'static str,
    /// SKU, as an index of [`SKUS`], and quantity.
    pub lines: Vec<(usize, &'static str)>,
    /// The shop's own id, of few.
    pub external: Option<usize>,
    /// Whether the order names its channel, and has a customer who can be written to.
    pub channel: bool,
    /// The total, which payments may not exceed.
    pub gross: Option<&'static str>,
    /// A member that is content and nothing more.
    pub extra: Option<Extra>,
    /// What is wrong with it.
    pub fault: Option<Fault>,
}

/// Members whose spelling tempts.
#[derive(Clone, Copy, Debug)]
pub enum Extra {
    /// Text that can be escaped, and blanks at its end, which count.
    Note,
    /// In the open bag a number is not a text.
    BagOfNumber,
    /// See [`Extra::BagOfNumber`].
    BagOfText,
}

impl OrderBody {
    /// The body in the plain form.
    pub fn value(&self) -> Value {
        let mut items: Vec<Value> =
            self.lines.iter().map(|(sku, qty)| json!({"sku": SKUS[*sku], "qty": qty})).collect();
        let mut body = Map::new();
        body.insert("customerId".to_owned(), "cus_1".into());
        body.insert("currency".to_owned(), self.currency.into());
        if let Some(number) = self.external {
            body.insert("externalOrderId".to_owned(), format!("shop/{number}").into());
        }
        if self.channel {
            body.insert("channel".to_owned(), "web".into());
            body.insert("customer".to_owned(), json!({"email": "jana@customer.example"}));
        }
        if let Some(gross) = self.gross {
            body.insert("totals".to_owned(), json!({ "gross": gross }));
        }
        match self.extra {
            None => {}
            Some(Extra::Note) => drop(body.insert("note".to_owned(), "Ľuba 🧀 \"\\\n ".into())),
            Some(Extra::BagOfNumber) => drop(body.insert("extensions".to_owned(), json!({"qty": 2, "none": null}))),
            Some(Extra::BagOfText) => drop(body.insert("extensions".to_owned(), json!({"qty": "2"}))),
        }
        match self.fault {
            None => {}
            Some(Fault::Missing) => drop(body.remove("currency")),
            Some(Fault::Zero) => items[0]["qty"] = "0".into(),
            Some(Fault::Unknown) => drop(body.insert(UNKNOWN[0].to_owned(), 1.into())),
            Some(Fault::Currency) => drop(body.insert("currency".to_owned(), "EURO".into())),
        }
        body.insert("items".to_owned(), items.into());
        Value::Object(body)
    }
}

/// Any order; one in eight is not valid.
pub fn any_order() -> BoxedStrategy<OrderBody> {
    let line = (0..SKUS.len(), select(vec!["1", "0.5"]));
    let fault = select(vec![Fault::Missing, Fault::Zero, Fault::Unknown, Fault::Currency]);
    let extra = select(vec![Extra::Note, Extra::BagOfNumber, Extra::BagOfText]);
    (
        prop_oneof![4 => Just("EUR"), 1 => Just("USD")],
        prop::collection::vec(line, 1..=2),
        prop::option::weighted(0.4, 0..2_usize),
        prop::bool::weighted(0.3),
        prop::option::weighted(0.5, select(vec!["3", "10.5"])),
        prop::option::weighted(0.3, extra),
        prop::option::weighted(0.12, fault),
    )
        .prop_map(|(currency, lines, external, channel, gross, extra, fault)| OrderBody {
            currency,
            lines,
            external,
            channel,
            gross,
            extra,
            fault,
        })
        .boxed()
}
