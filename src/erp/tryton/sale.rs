//! An order as a sale of Tryton's, and the comparison of the two. Pure: what Tryton knows was asked before. What cannot be
//! said in Tryton is refused by the number of its line, and nothing is dropped or rounded in silence.

use rust_decimal::Decimal;

use super::known::{Known, Product, Unit, counts_pieces, product_code, taxes};
use super::options::Options;
use super::price::unit_price;
use super::{Shop, value};
use crate::erp::Failure;
use crate::json::Json;
use crate::money::{exact, sum};
use crate::order::{Line, Order, gross};

/// What is asked of a sale.
pub(super) const FIELDS: &[&str] =
    &["web_id", "number", "state", "currency.code", "untaxed_amount", "total_amount", "lines"];

/// Who buys, as Tryton's ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Buyer {
    pub(super) party: i64,
    pub(super) invoice_address: i64,
    pub(super) shipment_address: i64,
}

/// What makes an order a sale.
#[derive(Clone, Copy)]
pub(super) struct Mapping<'a> {
    pub(super) order: &'a Order,
    pub(super) known: &'a Known,
    pub(super) options: &'a Options,
    pub(super) shop: &'a Shop,
}

impl Mapping<'_> {
    /// The sale that is to be made. `reference` is our permanent name, which Tryton keeps unique in the web shop; `placed` is
    /// when the order was written down, for one that does not say when it was placed.
    pub(super) fn sale(&self, reference: &str, placed: Option<&str>, buyer: &Buyer) -> Result<Json, Failure> {
        let document = self.order.document();
        let currency = self.currency()?;
        let seen = document.text("externalOrderNumber").or_else(|| document.text("externalOrderId"));
        let lines = self.lines()?;
        let day = document.text("placedAt").or(placed).and_then(day);
        Ok(value::object([
            ("company", value::integer(self.shop.company)),
            ("party", value::integer(buyer.party)),
            ("invoice_address", value::integer(buyer.invoice_address)),
            ("shipment_address", value::integer(buyer.shipment_address)),
            ("currency", value::integer(currency)),
            ("sale_date", day.map_or(Json::Null, value::date)),
            ("reference", value::text(seen.unwrap_or(reference))),
            ("web_shop", value::integer(i64::from(self.options.web_shop))),
            ("web_id", value::text(reference)),
            ("comment", value::optional(comment(document).as_deref())),
            ("lines", value::made(lines)),
        ]))
    }

    /// The currency of the sale.
    pub(super) fn currency(&self) -> Result<i64, Failure> {
        self.known.currency.ok_or_else(|| {
            Failure::Refused(format!("the ERP does not know the currency {}", self.order.currency().code()))
        })
    }

    /// The lines of the sale, one for each of the order's and in their order.
    pub(super) fn lines(&self) -> Result<Vec<Json>, Failure> {
        let document = self.order.document();
        let untaxed = self.order.lines().all(|line| taxes(line).is_empty());
        let includes_tax = document.get("pricesIncludeTax").and_then(Json::as_bool) == Some(true);
        let tax = document.get("totals").and_then(|totals| totals.text("tax")).and_then(exact);
        if untaxed && !includes_tax && tax.is_some_and(|tax| !tax.is_zero()) {
            return Err(Failure::Refused("the order has tax in its totals and none in its lines".to_owned()));
        }
        // A shop that says nothing of tax leaves it to the ERP. One that tells totals has said that there is none.
        let own_taxes = untaxed && !includes_tax && document.get("totals").is_none();
        let line = |(number, line)| {
            let one = One { mapping: self, line, includes_tax, own_taxes };
            one.record().map_err(|failure| match failure {
                Failure::Refused(text) => Failure::Refused(format!("item {number}: {text}")),
                other => other,
            })
        };
        (1..).zip(self.order.lines()).map(line).collect()
    }
}

/// One line on its way.
struct One<'a> {
    mapping: &'a Mapping<'a>,
    line: Line<'a>,
    includes_tax: bool,
    own_taxes: bool,
}

impl One<'_> {
    fn record(&self) -> Result<Json, Failure> {
        let line = self.line;
        let qty = exact(line.qty()).ok_or_else(|| refused("its quantity is too long".to_owned()))?.normalize();
        let product = self.product()?;
        let unit = self.unit(product)?;
        if let Some(unit) = unit.filter(|unit| qty.scale() > unit.digits) {
            return Err(refused(format!("{qty} has more decimals than the ERP's unit takes ({})", unit.digits)));
        }
        let price = self.price(qty, product, unit)?;
        let named = line.name().or(line.sku()).unwrap_or(line.kind());
        Ok(value::object([
            ("product", product.map_or(Json::Null, |product| value::integer(product.id))),
            // Goods have their own name in Tryton, in every language.
            (
                "description",
                if product.is_some() && line.kind() == "product" { Json::Null } else { value::text(named) },
            ),
            ("quantity", value::number(qty)),
            ("unit", unit.map_or(Json::Null, |unit| value::integer(unit.id))),
            ("unit_price", value::amount(price)),
            ("taxes", value::linked(&self.taxes(product)?)),
            ("note", value::optional(attributes(line).as_deref())),
        ]))
    }

    fn product(&self) -> Result<Option<&Product>, Failure> {
        let Some(code) = product_code(self.line, self.mapping.options) else { return Ok(None) };
        match self.mapping.known.products.get(code).map(Vec::as_slice) {
            Some([product]) => Ok(Some(product)),
            None | Some([]) => Err(refused(format!("unknown SKU {code}: the ERP has no product of this code"))),
            Some(several) => Err(refused(format!("the ERP has {} products of the code {code}", several.len()))),
        }
    }

    fn unit(&self, product: Option<&Product>) -> Result<Option<Unit>, Failure> {
        let code = self.line.unit();
        match self.mapping.known.units.get(code).map(Vec::as_slice) {
            Some([unit]) => Ok(Some(*unit)),
            None | Some([]) if counts_pieces(code) => Ok(product.map(|product| product.unit)),
            None | Some([]) => {
                Err(refused(format!("the unit {code} has no unit in the ERP; name one with --unit {code}=ID")))
            }
            Some(_) => Err(refused(format!("the ERP has several units for {code}; name one with --unit {code}=ID"))),
        }
    }

    fn price(&self, qty: Decimal, product: Option<&Product>, unit: Option<Unit>) -> Result<Decimal, Failure> {
        let digits = self.mapping.order.currency().minor_digits();
        let price = unit_price(self.line, qty, self.includes_tax, digits);
        match (price.map_err(|wrong| refused(wrong.to_string()))?, product) {
            (Some(price), _) => Ok(price),
            // What belongs to a set is paid with the set.
            (None, _) if self.line.parent_line_id().is_some() => Ok(Decimal::ZERO),
            (None, Some(product)) => self.own_price(product, unit),
            (None, None) => Err(refused("it has neither a price nor a product that has one".to_owned())),
        }
    }

    /// The price that Tryton has for a product, for an order that tells none.
    fn own_price(&self, product: &Product, unit: Option<Unit>) -> Result<Decimal, Failure> {
        let (ours, theirs) = (self.mapping.order.currency().code(), self.mapping.shop.currency.as_str());
        if ours != theirs {
            return Err(refused(format!("it has no price, and the ERP's price is in {theirs}")));
        }
        if self.includes_tax {
            return Err(refused("it has no price, and the ERP's price is without tax".to_owned()));
        }
        if unit.is_some_and(|unit| unit != product.unit) {
            return Err(refused("it has no price, and the ERP's price is for another unit".to_owned()));
        }
        product.price.ok_or_else(|| refused("it has no price, and the product has none in the ERP".to_owned()))
    }

    fn taxes(&self, product: Option<&Product>) -> Result<Vec<i64>, Failure> {
        if let Some(product) = product.filter(|_| self.own_taxes) {
            let hidden = "the user of the key may not read the taxes of products; add the group Account to it";
            return product.taxes.clone().ok_or_else(|| Failure::Misconfigured(hidden.to_owned()));
        }
        let taxes =
            taxes(self.line).iter().map(|tax| (tax.text("rate").and_then(exact), tax.text("amount").and_then(exact)));
        let mut ids = Vec::new();
        for (rate, amount) in taxes {
            let Some(rate) = rate.map(|rate| rate.normalize()) else {
                match amount {
                    Some(amount) if !amount.is_zero() => return Err(refused("it has a tax without a rate".to_owned())),
                    _ => continue,
                }
            };
            match self.mapping.known.taxes.get(&rate).map(Vec::as_slice) {
                Some([id]) => ids.push(*id),
                // No tax is as much as a tax of nothing; an accountant who wants it named names it.
                None | Some([]) if rate.is_zero() => {}
                None | Some([]) => return Err(refused(format!("the ERP has no tax of {rate} % on sales"))),
                Some(several) => {
                    let count = several.len();
                    return Err(refused(format!(
                        "the ERP has {count} taxes of {rate} %; name one with --tax {rate}=ID"
                    )));
                }
            }
        }
        Ok(ids)
    }
}

fn refused(text: String) -> Failure {
    Failure::Refused(text)
}

/// The day of an instant, in UTC: the shop's own day is not known any more.
fn day(instant: &str) -> Option<chrono::NaiveDate> {
    chrono::DateTime::parse_from_rfc3339(instant).ok().map(|moment| moment.date_naive())
}

/// What people at the ERP should read: the customer's note, the pick-up point, how it is paid.
fn comment(document: &Json) -> Option<String> {
    let note = document.text("note").map(str::to_owned);
    let pick_up =
        ["shippingAddress", "billingAddress"].into_iter().find_map(|name| document.get(name)?.text("pickupPointId"));
    let pick_up = pick_up.map(|point| format!("Pick-up point: {point}"));
    let payment = document.get("payment").and_then(|payment| {
        let words = ["method", "status", "reference"].into_iter().filter_map(|name| payment.text(name));
        let words = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ");
        (!words.is_empty()).then(|| format!("Payment: {words}"))
    });
    joined([note, pick_up, payment])
}

/// What the customer chose or wrote for a line.
fn attributes(line: Line<'_>) -> Option<String> {
    let attributes = line.document().get("attributes").and_then(Json::as_array).unwrap_or_default().iter();
    joined(attributes.map(|attribute| Some(format!("{}: {}", attribute.text("name")?, attribute.text("value")?))))
}

fn joined(texts: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let texts: Vec<String> = texts.into_iter().flatten().filter(|text| !text.is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// Tryton's own name of a sale: its number, which it gets with the quotation; before that its id.
pub(super) fn name(sale: &Json) -> Option<String> {
    let number = sale.text("number").filter(|number| !number.is_empty()).map(str::to_owned);
    number.or_else(|| value::id(sale, &["id"]).map(|id| format!("id {id}")))
}

/// In what a sale differs from the order that it should be; `None` when it is the same.
pub(super) fn difference(sale: &Json, order: &Order) -> Option<String> {
    let (ours, theirs) = (order.currency().code(), value::at(sale, &["currency", "code"]).and_then(Json::as_text));
    if theirs != Some(ours) {
        return Some(format!("currency {}, ours is {ours}", theirs.unwrap_or("unknown")));
    }
    let (ours, theirs) =
        (order.lines().len(), value::at(sale, &["lines"]).and_then(Json::as_array).map_or(0, <[Json]>::len));
    if theirs != ours {
        return Some(format!("{theirs} lines, ours are {ours}"));
    }
    let (field, ours) = expected_total(order)?;
    let theirs = value::decimal(sale, &[field]);
    let near = theirs.is_some_and(|theirs| (theirs - ours).abs() <= order.currency().tolerance(order.lines().len()));
    let theirs = theirs.map_or_else(|| "unknown".to_owned(), |theirs| theirs.to_string());
    (!near).then(|| format!("a total of {theirs}, ours is {ours}"))
}

/// The total that a sale must have, and the field that holds it; `None` for an order that tells none.
fn expected_total(order: &Order) -> Option<(&'static str, Decimal)> {
    let document = order.document();
    if let Some(gross) = gross(document) {
        // The rounding of the whole is part of what the customer pays, and no line.
        let rounding = document.get("totals").and_then(|totals| totals.text("rounding")).and_then(exact);
        return Some(("total_amount", gross - rounding.unwrap_or_default()));
    }
    let lines = sum(order.lines().map(Line::total))?;
    let includes_tax = document.get("pricesIncludeTax").and_then(Json::as_bool) == Some(true);
    Some((if includes_tax { "total_amount" } else { "untaxed_amount" }, lines))
}
