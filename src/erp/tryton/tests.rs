//! The mapping of an order to a sale, with what Tryton knows given by hand.

use std::collections::HashMap;

use rust_decimal::Decimal;

use super::Shop;
use super::known::{Known, Product, Unit};
use super::options::Options;
use super::sale::{Buyer, Mapping};
use crate::erp::Failure;
use crate::json::{self, Json};
use crate::money::exact;
use crate::order::Order;

const PIECE: Unit = Unit { id: 1, digits: 0 };

fn amount(text: &str) -> Decimal {
    exact(text).expect("the test writes decimals")
}

fn known() -> Known {
    let product = |id, price: &str| Product { id, unit: PIECE, price: exact(price), taxes: Some(vec![7]) };
    let products = HashMap::from([
        ("TEE".to_owned(), vec![product(11, "19.9")]),
        ("COFFEE".to_owned(), vec![product(12, "")]),
        ("SHIP".to_owned(), vec![product(13, "4.9")]),
        ("TWICE".to_owned(), vec![product(14, "1"), product(15, "1")]),
        ("HIDDEN".to_owned(), vec![Product { taxes: None, ..product(16, "1") }]),
    ]);
    let units = [("C62", vec![]), ("KGM", vec![Unit { id: 2, digits: 3 }]), ("XBX", vec![])];
    let taxes = [("19", vec![7]), ("7", vec![8, 9]), ("0", vec![]), ("23", vec![])];
    Known {
        products,
        units: units.into_iter().map(|(code, units)| (code.to_owned(), units)).collect(),
        taxes: taxes.into_iter().map(|(rate, ids)| (amount(rate), ids)).collect(),
        countries: HashMap::new(),
        currency: Some(3),
    }
}

fn order(text: &str) -> Order {
    Order::parse(&json::parse(text.as_bytes()).expect("it is JSON")).expect("it is an order")
}

fn mapped(order: &Order) -> Result<Json, Failure> {
    let mut options = Options::of_web_shop(5);
    options.skus.insert("shipping".to_owned(), "SHIP".to_owned());
    let shop =
        Shop { name: "Shop".to_owned(), company: 4, company_name: "Acme".to_owned(), currency: "EUR".to_owned() };
    let known = known();
    let mapping = Mapping { order, known: &known, options: &options, shop: &shop };
    let buyer = Buyer { party: 21, invoice_address: 22, shipment_address: 23 };
    mapping.sale("web/1", Some("2026-03-01T23:59:59.000Z"), &buyer)
}

const RICH: &str = r#"{"customerId":"c","currency":"EUR","externalOrderNumber":"2026-1","placedAt":"2026-03-02T00:30:00+01:00",
 "items":[
  {"lineId":"1","sku":"TEE","qty":"2.0","unitPrice":"19.90","total":"35","taxes":[{"rate":"19.0","amount":"6.65"}],
   "attributes":[{"name":"Gravur","value":"Pre Ľubku 💚"}]},
  {"sku":"COFFEE","qty":"0.5","unit":"KGM","unitPrice":"20","taxes":[{"rate":0}]},
  {"parentLineId":"1","name":"Ribbon","qty":1},
  {"kind":"shipping","name":"DHL","sku":"dhl","qty":1,"unitPrice":"4.90","taxes":[{"rate":19}]},
  {"kind":"discount","name":"SPRING","qty":1,"total":"-3.25"}],
 "discounts":[{"code":"SPRING","amount":"3.25"}],
 "shippingAddress":{"pickupPointId":"4711"},"payment":{"method":"cod","status":"pending"},"note":"2×.\r\n<b>"}"#;

/// The whole request, pinned: what leaves the service changes only where somebody means it to.
#[test]
fn an_order_becomes_this_sale() {
    let sale = mapped(&order(RICH)).expect("it can be said in Tryton").to_string();
    let expected = [
        r#"{"company":4,"party":21,"invoice_address":22,"shipment_address":23,"currency":3,"#,
        r#""sale_date":{"__class__":"date","year":2026,"month":3,"day":1},"reference":"2026-1","web_shop":5,"web_id":"web/1","#,
        r#""comment":"2×.\r\n<b>\nPick-up point: 4711\nPayment: cod, pending","lines":[["create",["#,
        r#"{"product":11,"description":null,"quantity":2,"unit":1,"unit_price":{"__class__":"Decimal","decimal":"17.5"},"#,
        r#""taxes":[["add",[7]]],"note":"Gravur: Pre Ľubku 💚"},"#,
        r#"{"product":12,"description":null,"quantity":0.5,"unit":2,"unit_price":{"__class__":"Decimal","decimal":"20"},"#,
        r#""taxes":[["add",[]]],"note":null},"#,
        r#"{"product":null,"description":"Ribbon","quantity":1,"unit":null,"unit_price":{"__class__":"Decimal","decimal":"0"},"#,
        r#""taxes":[["add",[]]],"note":null},"#,
        r#"{"product":13,"description":"DHL","quantity":1,"unit":1,"unit_price":{"__class__":"Decimal","decimal":"4.9"},"#,
        r#""taxes":[["add",[7]]],"note":null},"#,
        r#"{"product":null,"description":"SPRING","quantity":1,"unit":null,"unit_price":{"__class__":"Decimal","decimal":"-3.25"},"#,
        r#""taxes":[["add",[]]],"note":null}]]]}"#,
    ]
    .concat();
    assert_eq!(sale, expected);
}

#[test]
fn the_smallest_order_takes_the_price_and_the_taxes_of_the_product() {
    let sale = mapped(&order(r#"{"customerId":"c","currency":"EUR","items":[{"sku":"TEE","qty":2}]}"#));
    let sale = sale.expect("it can be said in Tryton").to_string();
    assert!(sale.contains(r#""unit_price":{"__class__":"Decimal","decimal":"19.9"},"taxes":[["add",[7]]]"#), "{sale}");
    // Without a day of its own it has the day on which it was written down; without a number our reference.
    assert!(sale.contains(r#""year":2026,"month":3,"day":1},"reference":"web/1""#), "{sale}");
    // Totals say that there is no tax.
    let exempt =
        r#"{"customerId":"c","currency":"EUR","items":[{"sku":"TEE","qty":2,"total":"9"}],"totals":{"gross":"9"}}"#;
    let sale = mapped(&order(exempt)).expect("it can be said in Tryton").to_string();
    assert!(sale.contains(r#""decimal":"4.5"},"taxes":[["add",[]]]"#), "{sale}");
}

#[test]
fn what_cannot_be_said_in_tryton_is_refused_by_the_number_of_its_line() {
    let first = r#"{"sku":"TEE","qty":1,"unitPrice":"1"}"#;
    for (line, said) in [
        (r#"{"sku":"NOPE","qty":1}"#, "unknown SKU NOPE: the ERP has no product of this code"),
        (r#"{"sku":"TWICE","qty":1}"#, "the ERP has 2 products of the code TWICE"),
        (r#"{"sku":"TEE","qty":"0.5"}"#, "0.5 has more decimals than the ERP's unit takes (0)"),
        (r#"{"sku":"TEE","qty":1,"unit":"XBX"}"#, "the unit XBX has no unit in the ERP; name one with --unit XBX=ID"),
        (r#"{"sku":"COFFEE","qty":1}"#, "it has no price, and the product has none in the ERP"),
        (r#"{"sku":"TEE","qty":1,"unit":"KGM"}"#, "it has no price, and the ERP's price is for another unit"),
        (r#"{"name":"Something","qty":1}"#, "it has neither a price nor a product that has one"),
        (r#"{"sku":"TEE","qty":1,"unitPrice":1,"taxes":[{"rate":23}]}"#, "the ERP has no tax of 23 % on sales"),
        (
            r#"{"sku":"TEE","qty":1,"unitPrice":1,"taxes":[{"rate":"7.00"}]}"#,
            "the ERP has 2 taxes of 7 %; name one with --tax 7=ID",
        ),
        (r#"{"sku":"TEE","qty":1,"unitPrice":1,"taxes":[{"amount":1}]}"#, "it has a tax without a rate"),
        (
            r#"{"sku":"TEE","qty":1000,"total":"10.01"}"#,
            "its price needs more than 4 decimals, which the ERP does not take",
        ),
    ] {
        let order = order(&format!(r#"{{"customerId":"c","currency":"EUR","items":[{first},{line}]}}"#));
        assert_eq!(mapped(&order), Err(Failure::Refused(format!("item 2: {said}"))), "{line}");
    }
    let foreign = order(r#"{"customerId":"c","currency":"CZK","items":[{"sku":"TEE","qty":1}]}"#);
    let said = "item 1: it has no price, and the ERP's price is in EUR".to_owned();
    assert_eq!(mapped(&foreign), Err(Failure::Refused(said)));
    let header = r#"{"customerId":"c","currency":"EUR","items":[{"sku":"TEE","qty":1,"unitPrice":"1"}],"totals":{"tax":"0.19"}}"#;
    let said = "the order has tax in its totals and none in its lines".to_owned();
    assert_eq!(mapped(&order(header)), Err(Failure::Refused(said)));
    let hidden = order(r#"{"customerId":"c","currency":"EUR","items":[{"sku":"HIDDEN","qty":1}]}"#);
    assert!(matches!(mapped(&hidden), Err(Failure::Misconfigured(_))), "a right that lacks is nobody's order's fault");
}

#[test]
fn settings_are_read_strictly_and_written_as_they_are_read() {
    let mut options = Options::of_web_shop(5);
    options.taxes.insert("5.5".to_owned(), 3);
    assert_eq!(Options::read(&options.to_json()), Ok(options));
    assert_eq!(Options::read(r#"{"webShop":5}"#), Ok(Options::of_web_shop(5)));
    for wrong in [
        "{}",
        r#"{"webShop":0}"#,
        r#"{"webShop":null}"#,
        r#"{"webShop":1,"target":"done"}"#,
        r#"{"webShop":1,"taxes":{"nineteen":1}}"#,
        r#"{"webShop":1,"skus":{"product":"A"}}"#,
        r#"{"webShop":1,"skus":{"freight":"A"}}"#,
        r#"{"webShop":1,"tragets":"draft"}"#,
    ] {
        assert!(matches!(Options::read(wrong), Err(Failure::Misconfigured(_))), "{wrong}");
    }
}
