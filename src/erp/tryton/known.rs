//! What Tryton knows and an order speaks of: products, units, taxes, countries, currencies. It is asked once for an order and
//! remembered for minutes; what was not found is asked for anew, because somebody may just have made it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rust_decimal::Decimal;

use super::options::Options;
use super::rest::{Fields, Rest};
use super::{Shop, value};
use crate::db;
use crate::erp::Failure;
use crate::json::Json;
use crate::money::exact;
use crate::order::{Line, Order};

/// How long an answer is remembered. A price or a tax that was changed in Tryton counts after this time at the latest.
const REMEMBERED: Duration = Duration::from_mins(5);

/// The most answers that are remembered of one connection.
const MOST: usize = 20_000;

/// The most bytes of codes in one question, which is a URL: gunicorn takes no line of 4,094 bytes, and Base64 adds a third. A
/// single code is shorter.
const CODES_AT_ONCE: usize = 1_500;

/// The units whose symbol in Tryton is known. Pieces are not among them: they are counted in the unit of the product.
const SYMBOLS: &[(&str, &str)] = &[
    ("KGM", "kg"),
    ("GRM", "g"),
    ("LBR", "lb"),
    ("ONZ", "oz"),
    ("SEC", "s"),
    ("MIN", "min"),
    ("HUR", "h"),
    ("DAY", "d"),
    ("MTR", "m"),
    ("KMT", "km"),
    ("CMT", "cm"),
    ("MMT", "mm"),
    ("FOT", "ft"),
    ("YRD", "yd"),
    ("INH", "in"),
    ("LTR", "l"),
    ("MTQ", "m³"),
    ("CMQ", "cm³"),
    ("MTK", "m²"),
    ("CMK", "cm²"),
    ("HAR", "ha"),
    ("JOU", "J"),
    ("KWH", "kW⋅h"),
    ("MWH", "MW⋅h"),
];

/// The codes for pieces.
const PIECES: [&str; 3] = ["C62", "H87", "EA"];

/// What a process remembers of every Tryton that it knows.
#[derive(Clone, Default)]
pub(in crate::erp) struct Memory(Arc<Mutex<HashMap<String, Arc<Shelf>>>>);

/// Answers by model and key, each with its time.
#[derive(Default)]
pub(super) struct Shelf(Mutex<Answers>);
type Answers = HashMap<(&'static str, String), (db::Instant, Json)>;

impl Memory {
    /// What is remembered of a connection. Another address or other settings are another connection.
    pub(super) fn of(&self, connection: &str) -> Arc<Shelf> {
        let mut shelves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(shelves.entry(connection.to_owned()).or_default())
    }
}

impl Shelf {
    pub(super) fn get(&self, model: &'static str, key: &str, now: Option<db::Instant>) -> Option<Json> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, answer) = answers.get(&(model, key.to_owned()))?;
        // A clock that was set back makes nothing last longer.
        let age = (now? - *since).to_std().ok()?;
        (age < REMEMBERED).then(|| answer.clone())
    }

    pub(super) fn put(&self, model: &'static str, key: &str, answer: &Json, now: Option<db::Instant>) {
        let Some(now) = now else { return };
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= MOST {
            answers.clear();
        }
        answers.insert((model, key.to_owned()), (now, answer.clone()));
    }
}

/// A unit of measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) id: i64,
    /// The decimals that a quantity in it may have.
    pub(super) digits: u32,
}

/// A product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Product {
    pub(super) id: i64,
    /// The unit that it is sold in.
    pub(super) unit: Unit,
    /// Its price in that unit, without tax, in the currency of the company.
    pub(super) price: Option<Decimal>,
    /// Its own taxes; `None` where Tryton does not show them to us.
    pub(super) taxes: Option<Vec<i64>>,
}

/// What Tryton knows of that which one order speaks of.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// By their code; a code is not unique in Tryton.
    pub(super) products: HashMap<String, Vec<Product>>,
    /// By their UN/ECE code, without pieces.
    pub(super) units: HashMap<String, Vec<Unit>>,
    /// By their rate in percent.
    pub(super) taxes: HashMap<Decimal, Vec<i64>>,
    /// By their ISO 3166 code.
    pub(super) countries: HashMap<String, i64>,
    /// The currency of the order.
    pub(super) currency: Option<i64>,
}

/// Whether a unit counts pieces, which every product does in its own unit.
pub(super) fn counts_pieces(code: &str) -> bool {
    PIECES.contains(&code)
}

/// The code of Tryton's product for a line: of goods their SKU, of anything else the configured one.
pub(super) fn product_code<'a>(line: Line<'a>, options: &'a Options) -> Option<&'a str> {
    if line.kind() == "product" { line.sku() } else { options.skus.get(line.kind()).map(String::as_str) }
}

/// The taxes that a line tells.
pub(super) fn taxes(line: Line<'_>) -> &[Json] {
    line.document().get("taxes").and_then(Json::as_array).unwrap_or_default()
}

/// The rates of a line's taxes in percent, as they are written in the settings, too.
fn rates(line: Line<'_>) -> impl Iterator<Item = Decimal> + '_ {
    taxes(line).iter().filter_map(|tax| tax.text("rate").and_then(exact)).map(|rate| rate.normalize())
}

/// Asks for all that an order speaks of. Changes nothing.
pub(super) async fn gather(asking: &Asking<'_>, order: &Order) -> Result<Known, Failure> {
    let options = asking.options;
    let codes = order.lines().filter_map(|line| product_code(line, options)).map(str::to_owned).collect();
    let mut known = Known { products: asking.products(codes).await?, ..Known::default() };
    for code in order.lines().map(Line::unit).collect::<BTreeSet<_>>() {
        known.units.insert(code.to_owned(), asking.units(code).await?);
    }
    for rate in order.lines().flat_map(rates).collect::<BTreeSet<_>>() {
        known.taxes.insert(rate, asking.taxes(rate).await?);
    }
    let addresses = ["billingAddress", "shippingAddress"].map(|name| order.document().get(name));
    let countries = addresses.into_iter().flatten().filter_map(|address| address.text("country"));
    let countries = countries.map(str::to_owned).collect::<BTreeSet<_>>();
    let found = asking.by_text(("country.country", "code"), countries, &["code"]).await?;
    known.countries =
        found.into_iter().filter_map(|(code, rows)| Some((code, value::id(rows.first()?, &["id"])?))).collect();
    let currency = BTreeSet::from([order.currency().code().to_owned()]);
    let found = asking.by_text(("currency.currency", "code"), currency, &["code"]).await?;
    known.currency = found.values().flatten().find_map(|row| value::id(row, &["id"]));
    Ok(known)
}

/// Questions to one Tryton at one moment.
pub(super) struct Asking<'a> {
    pub(super) rest: &'a Rest,
    pub(super) options: &'a Options,
    pub(super) shop: &'a Shop,
    pub(super) shelf: &'a Shelf,
    pub(super) now: Option<db::Instant>,
}

impl Asking<'_> {
    async fn products(&self, codes: BTreeSet<String>) -> Result<HashMap<String, Vec<Product>>, Failure> {
        let fields = ["code", "sale_price_uom", "sale_uom.digits", "template.account_category.customer_taxes_used"];
        let found = self.by_text(("product.product", "code"), codes, &fields).await?;
        let product = |row: &Json| {
            let taxes = match value::at(row, &["template", "account_category"]) {
                // A product without a category has no taxes, and one whose category is hidden has unknown ones.
                None => value::at(row, &["template"])
                    .and_then(|template| template.get("account_category"))
                    .map(|_| Vec::new()),
                Some(category) => value::ids(category, &["customer_taxes_used"]),
            };
            Some(Product {
                id: value::id(row, &["id"])?,
                unit: unit(value::at(row, &["sale_uom"])?)?,
                price: value::decimal(row, &["sale_price_uom"]),
                taxes,
            })
        };
        Ok(found.into_iter().map(|(code, rows)| (code, rows.iter().filter_map(product).collect())).collect())
    }

    /// The units that a UN/ECE code may mean. Pieces have none of their own unless the settings say so.
    async fn units(&self, code: &str) -> Result<Vec<Unit>, Failure> {
        const MODEL: &str = "product.uom";
        let domain = match self.options.units.get(code) {
            Some(id) => value::condition("id", "=", value::integer(i64::from(*id))),
            None => match SYMBOLS.iter().find(|(known, _)| *known == code) {
                Some((_, symbol)) => value::condition("symbol", "=", value::text(symbol)),
                None => return Ok(Vec::new()),
            },
        };
        let rows = self.remembered(MODEL, code, domain, &["digits"]).await?;
        Ok(rows.iter().filter_map(unit).collect())
    }

    /// The taxes on sales of this rate, unless the settings name one.
    async fn taxes(&self, rate: Decimal) -> Result<Vec<i64>, Failure> {
        let named = self.options.taxes.iter().find(|(known, _)| exact(known) == Some(rate));
        if let Some((_, id)) = named {
            return Ok(vec![i64::from(*id)]);
        }
        let of_sales = value::list([
            value::text("OR"),
            value::condition("group", "=", Json::Null),
            value::condition("group.kind", "in", value::list([value::text("sale"), value::text("both")])),
        ]);
        let domain = value::list([
            value::condition("company", "=", value::integer(self.shop.company)),
            value::condition("type", "=", value::text("percentage")),
            value::condition("parent", "=", Json::Null),
            value::condition("rate", "=", value::amount((rate / Decimal::ONE_HUNDRED).normalize())),
            of_sales,
        ]);
        let rows = self.remembered("account.tax", &rate.to_string(), domain, &["name"]).await?;
        Ok(rows.iter().filter_map(|row| value::id(row, &["id"])).collect())
    }

    /// The records whose field has one of these texts, by that text.
    async fn by_text(
        &self,
        (model, field): (&'static str, &str),
        texts: BTreeSet<String>,
        fields: Fields<'_>,
    ) -> Result<BTreeMap<String, Vec<Json>>, Failure> {
        let mut found = BTreeMap::<String, Vec<Json>>::new();
        let mut unknown = Vec::new();
        for text in texts {
            match self.shelf.get(model, &text, self.now) {
                Some(Json::Array(rows)) => drop(found.insert(text, rows)),
                _ => unknown.push(text),
            }
        }
        for texts in portions(unknown) {
            let domain =
                value::list([value::condition(field, "in", value::list(texts.iter().map(|text| value::text(text))))]);
            let mut answers = BTreeMap::<String, Vec<Json>>::new();
            for row in self.rest.search(model, domain, fields).await? {
                if let Some(text) = row.text(field) {
                    answers.entry(text.to_owned()).or_default().push(row);
                }
            }
            for (text, rows) in answers {
                self.shelf.put(model, &text, &Json::Array(rows.clone()), self.now);
                found.insert(text, rows);
            }
        }
        Ok(found)
    }

    async fn remembered(
        &self,
        model: &'static str,
        key: &str,
        domain: Json,
        fields: Fields<'_>,
    ) -> Result<Vec<Json>, Failure> {
        if let Some(Json::Array(rows)) = self.shelf.get(model, key, self.now) {
            return Ok(rows);
        }
        let rows = self.rest.search(model, domain, fields).await?;
        if !rows.is_empty() {
            self.shelf.put(model, key, &Json::Array(rows.clone()), self.now);
        }
        Ok(rows)
    }
}

/// Codes in as many questions as they need.
fn portions(texts: Vec<String>) -> Vec<Vec<String>> {
    let (mut portions, mut room) = (Vec::<Vec<String>>::new(), 0);
    for text in texts {
        // Two quotes and a comma.
        let size = text.len() + 3;
        match portions.last_mut() {
            Some(portion) if size <= room => {
                room -= size;
                portion.push(text);
            }
            _ => {
                room = CODES_AT_ONCE.saturating_sub(size);
                portions.push(vec![text]);
            }
        }
    }
    portions
}

fn unit(row: &Json) -> Option<Unit> {
    let digits = u32::try_from(value::id(row, &["digits"])?).ok()?;
    Some(Unit { id: value::id(row, &["id"])?, digits })
}

#[cfg(test)]
mod tests {
    use super::portions;

    #[test]
    fn no_question_is_longer_than_a_url_may_be_and_no_code_is_left_out() {
        let codes: Vec<String> = (0..1_000).map(|number| format!("SKU-{number:04}")).collect();
        let asked = portions(codes.clone());
        assert!(asked.iter().all(|portion| portion.iter().map(|code| code.len() + 3).sum::<usize>() <= 1_500));
        assert_eq!(asked.concat(), codes);
        let longest = vec!["Ж".repeat(255), "😀".repeat(255), "A".to_owned()];
        assert_eq!(portions(longest.clone()), [vec![longest[0].clone()], longest[1..].to_vec()]);
    }
}
