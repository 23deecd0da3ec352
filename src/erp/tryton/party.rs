//! Who buys: a party of Tryton's for each customer of the shop, and for each order of a guest one of its own. The code of a
//! party is unique in Tryton, so that two orders of one customer at the same time make one.
//!
//! An existing party is never changed, but for an address that it does not have yet.

use std::collections::HashMap;

use super::rest::{Rest, Said, nothing_changed};
use super::sale::Buyer;
use super::value;
use crate::erp::Failure;
use crate::json::Json;
use crate::order::Order;

const MODEL: &str = "party.party";

/// The fields of an address that make it the one that we mean.
const ADDRESS: [&str; 6] = ["party_name", "attn", "street_unstructured", "postal_code", "city", "country"];

/// What is asked of a party.
const FIELDS: &[&str] = &[
    "code",
    "addresses.party_name",
    "addresses.attn",
    "addresses.street_unstructured",
    "addresses.postal_code",
    "addresses.city",
    "addresses.country",
];

/// Finds or makes the party of an order, with its addresses. Whatever fails here, the sale was not sent.
pub(super) async fn buyer(
    rest: &Rest,
    order: &Order,
    code: &str,
    countries: &HashMap<String, i64>,
) -> Result<Buyer, Failure> {
    let document = order.document();
    let address = |name: &str| document.get(name).map(|address| wanted(address, countries)).transpose();
    let (billing, shipping) = (address("billingAddress")?, address("shippingAddress")?);
    let invoice = billing.clone().or_else(|| shipping.clone());
    let shipment = shipping.or(billing);
    let addresses: Vec<Json> = [invoice.clone(), shipment.clone()].into_iter().flatten().collect();
    let party = match find(rest, code).await? {
        Some(party) => with_addresses(rest, party, &addresses).await?,
        None => made(rest, order, code, &addresses).await?,
    };
    // Should Tryton have written the address in another way, it is the newest.
    let newest = || all(&party).iter().filter_map(|address| value::id(address, &["id"])).max();
    let place = |address: &Option<Json>| match address {
        Some(address) => has(&party, address).or_else(newest),
        // An order without an address goes to the first that the party has.
        None => all(&party).first().and_then(|address| value::id(address, &["id"])),
    };
    let no_address = || Failure::Misconfigured("the user of the key may not read addresses of parties".to_owned());
    Ok(Buyer {
        party: value::id(&party, &["id"]).ok_or_else(no_address)?,
        invoice_address: place(&invoice).ok_or_else(no_address)?,
        shipment_address: place(&shipment).ok_or_else(no_address)?,
    })
}

/// The code of an order's party. A customer's id is the shop's own, so that those of two channels do not mix.
pub(super) fn code(order: &Order, web_shop: u32, reference: &str) -> String {
    let guest = order.document().get("customer").and_then(|customer| customer.get("guest")).and_then(Json::as_bool);
    match order.customer_id() {
        Some(customer) if guest != Some(true) => {
            let customer = customer.replace('%', "%25").replace('/', "%2F");
            match order.channel() {
                "" => format!("{web_shop}-C-{customer}"),
                channel => format!("{web_shop}-C-{channel}/{customer}"),
            }
        }
        _ => format!("{web_shop}-G-{reference}"),
    }
}

async fn find(rest: &Rest, code: &str) -> Result<Option<Json>, Failure> {
    let domain = value::list([value::condition("code", "=", value::text(code))]);
    Ok(rest.search(MODEL, domain, FIELDS).await?.into_iter().next())
}

async fn made(rest: &Rest, order: &Order, code: &str, addresses: &[Json]) -> Result<Json, Failure> {
    let party = record(order, code, addresses);
    match rest.create(MODEL, &party, FIELDS).await.map_err(nothing_changed)? {
        Said::Done(party) => Ok(party),
        // Another order of this customer may have been faster.
        Said::Refused(text) => match find(rest, code).await? {
            Some(party) => with_addresses(rest, party, addresses).await,
            None => Err(Failure::Refused(format!("the ERP does not take the customer: {text}"))),
        },
        Said::Missing => Err(Failure::Misconfigured("the ERP has no parties at this address".to_owned())),
    }
}

/// The party with every address; one that it lacks is added.
async fn with_addresses(rest: &Rest, party: Json, addresses: &[Json]) -> Result<Json, Failure> {
    let lacking: Vec<Json> = addresses.iter().filter(|address| has(&party, address).is_none()).cloned().collect();
    let lacking =
        if addresses.is_empty() && all(&party).is_empty() { vec![Json::Object(Vec::new())] } else { distinct(lacking) };
    let Some(id) = value::id(&party, &["id"]).filter(|_| !lacking.is_empty()) else { return Ok(party) };
    let change = value::object([("addresses", value::made(lacking))]);
    match rest.update((MODEL, id), &change, FIELDS).await.map_err(nothing_changed)? {
        Said::Done(party) => Ok(party),
        Said::Refused(text) => Err(Failure::Refused(format!("the ERP does not take the address: {text}"))),
        Said::Missing => Err(Failure::NotDelivered("the ERP's party has just been deleted".to_owned())),
    }
}

/// A party as it is made.
fn record(order: &Order, code: &str, addresses: &[Json]) -> Json {
    let document = order.document();
    let customer = document.get("customer");
    let of_customer =
        |name: &str| customer.and_then(|customer| customer.text(name)).map(str::trim).filter(|text| !text.is_empty());
    let email = of_customer("email").map(|email| contact(if is_plain_email(email) { "email" } else { "other" }, email));
    // Tryton may check telephone numbers of the type "phone", and an order must not fail for one.
    let phone = of_customer("phone").map(|phone| contact("other", phone));
    let business = customer.and_then(|customer| customer.get("business"));
    // Without a type no checksum is enforced, as the contract promises.
    let numbers = ["vatNumber", "taxNumber", "registrationNumber"].into_iter();
    let numbers = numbers.filter_map(|name| business?.text(name)).map(str::trim).filter(|number| !number.is_empty());
    let numbers = numbers.map(|number| value::object([("code", value::text(number))]));
    let addresses = if addresses.is_empty() { vec![Json::Object(Vec::new())] } else { distinct(addresses.to_vec()) };
    value::object([
        ("name", value::text(&party_name(order))),
        ("code", value::text(code)),
        ("addresses", value::made(addresses)),
        ("contact_mechanisms", value::made(email.into_iter().chain(phone))),
        ("identifiers", value::made(numbers)),
    ])
}

/// The two addresses of an order may be one.
fn distinct(addresses: Vec<Json>) -> Vec<Json> {
    let mut different: Vec<Json> = Vec::new();
    for address in addresses {
        if !different.contains(&address) {
            different.push(address);
        }
    }
    different
}

fn contact(kind: &str, text: &str) -> Json {
    value::object([("type", value::text(kind)), ("value", value::text(text))])
}

/// Whether every check of addresses that Tryton may run lets it pass.
fn is_plain_email(text: &str) -> bool {
    let plain = |part: &str| {
        !part.starts_with('.')
            && !part.ends_with('.')
            && !part.contains("..")
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte))
    };
    text.split_once('@')
        .is_some_and(|(local, host)| !local.is_empty() && host.contains('.') && plain(local) && plain(host))
}

/// The firm, else the person, else what else is known.
fn party_name(order: &Order) -> String {
    let document = order.document();
    let customer = document.get("customer");
    let said = |text: Option<&str>| text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    let of_customer = |name: &str| said(customer.and_then(|customer| customer.text(name)));
    let of_address = |name: &str| {
        let address = document.get(name)?;
        said(address.text("company")).or_else(|| person(address))
    };
    let firm = customer.and_then(|customer| customer.get("business"));
    said(firm.and_then(|firm| firm.text("name")))
        .or_else(|| of_customer("name"))
        .or_else(|| customer.and_then(person))
        .or_else(|| of_address("billingAddress"))
        .or_else(|| of_address("shippingAddress"))
        .or_else(|| of_customer("email"))
        .or_else(|| order.customer_id().map(str::to_owned))
        .unwrap_or_else(|| "Guest".to_owned())
}

/// Given name and family name of a person.
fn person(document: &Json) -> Option<String> {
    let names = ["firstName", "lastName"].into_iter().filter_map(|name| document.text(name));
    let names: Vec<&str> = names.map(str::trim).filter(|name| !name.is_empty()).collect();
    (!names.is_empty()).then(|| names.join(" "))
}

/// An address as Tryton keeps it, blanks at the ends cut off as Tryton does. The region, which Tryton knows only from lists of
/// its own, stays a line.
fn wanted(address: &Json, countries: &HashMap<String, i64>) -> Result<Json, Failure> {
    let member = |name: &str| address.text(name).map(str::trim).filter(|text| !text.is_empty());
    let company = member("company").map(str::to_owned);
    let (party_name, attention) = match (company, person(address)) {
        (Some(company), person) => (Some(company), person),
        (None, person) => (person, None),
    };
    let lines = address.get("lines").and_then(Json::as_array).unwrap_or_default().iter().filter_map(Json::as_text);
    let lines = lines.chain(member("region")).map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>();
    let street = (!lines.is_empty()).then(|| lines.join("\n"));
    let country = match member("country") {
        None => Json::Null,
        Some(code) => value::integer(*countries.get(code).ok_or_else(|| {
            Failure::Refused(format!("the ERP does not know the country {code}; import its countries"))
        })?),
    };
    Ok(value::object([
        ("party_name", value::optional(party_name.as_deref())),
        ("attn", value::optional(attention.as_deref())),
        ("street_unstructured", value::optional(street.as_deref())),
        ("postal_code", value::optional(member("postalCode"))),
        ("city", value::optional(member("city"))),
        ("country", country),
    ]))
}

fn all(party: &Json) -> &[Json] {
    party.get("addresses").and_then(Json::as_array).unwrap_or_default()
}

/// The id of the party's address with this content.
fn has(party: &Json, address: &Json) -> Option<i64> {
    let blank = |value: Option<&Json>| value.cloned().filter(|value| value.as_text() != Some("")).unwrap_or(Json::Null);
    let same = |theirs: &&Json| ADDRESS.iter().all(|field| blank(theirs.get(field)) == blank(address.get(field)));
    all(party).iter().find(same).and_then(|found| value::id(found, &["id"]))
}
