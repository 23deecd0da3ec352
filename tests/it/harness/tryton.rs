//! Enough of Tryton's REST API to try the gateway on: a web shop, three products, and sales whose `web_id` is unique. What it
//! does is scripted; that it does what Tryton does is shown beside a real one.

use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use rust_decimal::Decimal;
use serde_json::{Value, json};
use url::Url;

use super::erp::{Request, answer, read};

/// The settings of a connection to it.
pub const OPTIONS: &str = r#"{"webShop":1}"#;

/// What it does with one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Say {
    /// As Tryton does.
    Truth,
    /// Does it, and cuts the connection.
    TruthThenCut,
    /// Does nothing, and cuts the connection.
    Cut,
    /// Does nothing, and answers what a refusal of Tryton's looks like.
    Refusal,
    /// Does nothing, and answers this with a page of markup.
    Page(u16),
    /// Does nothing, and answers 200 with a page of markup.
    Rubbish,
    /// Finds nothing: what was made is not committed yet.
    Nothing,
}

/// The ERP. It ends with this value.
pub struct FakeTryton {
    address: SocketAddr,
    state: Arc<State>,
    listening: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    closed: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// By method and what the path ends with.
    scripts: BTreeMap<String, VecDeque<Say>>,
    requests: Vec<String>,
    sales: Vec<Value>,
    parties: Vec<Value>,
    notes: Vec<Value>,
    may_not_create: bool,
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FakeTryton {
    /// An ERP on a free port.
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let state = Arc::new(State::default());
        let served = Arc::clone(&state);
        let listening = thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if served.closed.load(Ordering::SeqCst) {
                    return;
                }
                let state = Arc::clone(&served);
                thread::spawn(move || serve(&state, stream));
            }
        });
        Self { address, state, listening: Some(listening) }
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://{}/erp", self.address)
    }

    /// What it does with the next requests of this method whose path ends so, such as `POST sale.sale`.
    pub fn script(&self, request: &str, steps: &[Say]) {
        self.state.lock().scripts.entry(request.to_owned()).or_default().extend(steps);
    }

    /// The sales that it has made.
    pub fn sales(&self) -> Vec<Value> {
        self.state.lock().sales.clone()
    }

    /// The parties that it has made.
    pub fn parties(&self) -> Vec<Value> {
        self.state.lock().parties.clone()
    }

    /// The notes that it has made.
    pub fn notes(&self) -> Vec<Value> {
        self.state.lock().notes.clone()
    }

    /// How many requests there were of this method whose path ends so.
    pub fn requests(&self, request: &str) -> usize {
        self.state.lock().requests.iter().filter(|seen| *seen == request).count()
    }

    /// The user of the key may make nothing from now on, though it may look.
    pub fn forbid(&self) {
        self.state.lock().may_not_create = true;
    }

    /// Changes a sale, as a person may in the ERP.
    pub fn change(&self, sale: usize, member: &str, value: Value) {
        self.state.lock().sales[sale][member] = value;
    }
}

impl Drop for FakeTryton {
    fn drop(&mut self) {
        self.state.closed.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        let ended = self.listening.take().map(JoinHandle::join);
        assert!(matches!(ended, Some(Ok(()))) || thread::panicking(), "the thread that listens does not panic");
    }
}

fn serve(state: &State, mut stream: TcpStream) {
    let Some(request) = read(&mut stream) else { return };
    let url = Url::parse(&format!("http://erp{}", request.path)).expect("a path");
    let path: Vec<&str> = url.path().trim_start_matches("/erp/rest/model/").split('/').collect();
    let name = format!("{} {}", request.method, path.last().copied().unwrap_or_default());
    let mut inner = state.lock();
    inner.requests.push(name.clone());
    let step = inner.scripts.get_mut(&name).and_then(VecDeque::pop_front).unwrap_or(Say::Truth);
    let truth = |inner: &mut Inner| match inner.answer(&request, &path, &url) {
        Ok(value) => answer(200, "content-type: application/json\r\n", &value.to_string()),
        Err(0) => {
            answer(400, "content-type: application/json\r\n", r#"{"status":400,"message":"Nein.","description":""}"#)
        }
        Err(status) => answer(status, "", "<title>No</title>"),
    };
    let said = match step {
        Say::Truth => Some(truth(&mut inner)),
        Say::TruthThenCut => {
            truth(&mut inner);
            None
        }
        Say::Cut => None,
        Say::Refusal => Some(answer(400, "", r#"{"status":400,"message":"Nein.","description":""}"#)),
        Say::Page(status) => Some(answer(status, "", "<title>Unable to get RPC method</title>")),
        Say::Nothing => Some(answer(200, "", "[]")),
        Say::Rubbish => Some(answer(200, "", "<title>not JSON</title>")),
    };
    drop(inner);
    if let Some(said) = said {
        let _ = stream.write_all(said.as_bytes());
    }
}

fn amount(value: Decimal) -> Value {
    json!({"__class__": "Decimal", "decimal": value.to_string()})
}

fn decimal(value: &Value) -> Decimal {
    value["decimal"].as_str().and_then(|text| text.parse().ok()).expect("a decimal")
}

impl Inner {
    /// `Err(0)` is a refusal in JSON, any other a page of this status.
    fn answer(&mut self, request: &Request, path: &[&str], url: &Url) -> Result<Value, u16> {
        if request.header("authorization") != format!("Bearer {}", super::relay::SECRET.1) {
            return Err(401);
        }
        let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
        let domain = url.query_pairs().find(|(name, _)| name == "d").map_or(json!([]), |(_, text)| {
            serde_json::from_slice(&URL_SAFE.decode(text.as_bytes()).expect("base64")).expect("JSON")
        });
        match (request.method.as_str(), path) {
            ("GET", ["web.shop", "1"]) => Ok(json!({"id": 1, "name": "Shop", "company":
                {"id": 1, "party": {"id": 9, "name": "Acme"}, "currency": {"id": 1, "code": "EUR"}}})),
            ("POST", ["ir.model.access", "get_access"]) => {
                let all = json!({"read": true, "create": u8::from(!self.may_not_create), "write": true, "delete": 0});
                let models = body["models"].as_array().ok_or(500_u16)?.iter();
                Ok(models.map(|model| (model.as_str().unwrap_or_default().to_owned(), all.clone())).collect())
            }
            ("GET", [model]) => Ok(self.search(model, &domain)),
            ("POST", ["party.party"]) => self.make_party(body),
            ("PUT", ["party.party", id]) => self.add_addresses(id, &body),
            ("POST", ["sale.sale"]) if self.may_not_create => Err(0),
            ("POST", ["sale.sale"]) => self.make_sale(body),
            ("POST", ["ir.note"]) => {
                self.notes.push(body.clone());
                Ok(body)
            }
            ("POST", ["sale.sale", id, button]) => self.press(id, button),
            _ => Err(404),
        }
    }

    fn search(&self, model: &str, domain: &Value) -> Value {
        let catalogue = match model {
            "product.product" => {
                json!([product(1, "ABC"), product(2, "TEE"), product(3, "TWICE"), product(4, "TWICE")])
            }
            "product.uom" => json!([{"id": 2, "symbol": "kg", "digits": 3}]),
            "account.tax" => json!([tax(1, "0.19"), tax(2, "0.07"), tax(3, "0.07")]),
            "country.country" => json!([{"id": 1, "code": "DE"}, {"id": 2, "code": "SK"}]),
            "currency.currency" => json!([{"id": 1, "code": "EUR"}]),
            "web.shop" => json!([{"id": 1, "name": "Shop"}]),
            "party.party" => json!(self.parties),
            "sale.sale" => json!(self.sales),
            "ir.note" => json!(self.notes),
            _ => json!([]),
        };
        let rows = catalogue.as_array().cloned().unwrap_or_default();
        rows.into_iter()
            .filter(|row| domain.as_array().is_none_or(|all| all.iter().all(|one| holds(row, one))))
            .collect()
    }

    fn make_party(&mut self, mut party: Value) -> Result<Value, u16> {
        if self.parties.iter().any(|known| known["code"] == party["code"]) {
            return Err(0);
        }
        let id = self.parties.len() + 1;
        party["id"] = json!(id);
        party["addresses"] = numbered(id * 100, party["addresses"][0][1].as_array());
        self.parties.push(party.clone());
        Ok(party)
    }

    fn add_addresses(&mut self, id: &str, change: &Value) -> Result<Value, u16> {
        let party = self.parties.iter_mut().find(|party| has_id(party, id)).ok_or(404_u16)?;
        let mut addresses = party["addresses"].as_array().cloned().unwrap_or_default();
        let first = party["id"].as_u64().and_then(|id| usize::try_from(id).ok()).unwrap_or_default() * 100;
        let new = numbered(first + addresses.len(), change["addresses"][0][1].as_array());
        addresses.extend(new.as_array().cloned().unwrap_or_default());
        party["addresses"] = json!(addresses);
        Ok(party.clone())
    }

    fn make_sale(&mut self, mut sale: Value) -> Result<Value, u16> {
        if self.sales.iter().any(|known| known["web_id"] == sale["web_id"]) {
            return Err(0);
        }
        let (mut net, mut tax) = (Decimal::ZERO, Decimal::ZERO);
        for line in sale["lines"][0][1].as_array().ok_or(0_u16)? {
            let qty: Decimal = line["quantity"].to_string().parse().map_err(|_| 0_u16)?;
            let amount = (qty * decimal(&line["unit_price"])).round_dp(2);
            net += amount;
            if line["taxes"][0][1] == json!([1]) {
                tax += amount * Decimal::new(19, 2);
            }
        }
        let lines = sale["lines"][0][1].as_array().map_or(0, Vec::len);
        sale["sent_lines"] = sale["lines"][0][1].clone();
        sale["lines"] = (1..=lines).map(|id| json!(id)).collect();
        sale["id"] = json!(self.sales.len() + 1);
        sale["state"] = json!("draft");
        sale["currency"] = json!({"id": 1, "code": "EUR"});
        sale["untaxed_amount"] = amount(net);
        sale["total_amount"] = amount(net + tax.round_dp(2));
        self.sales.push(sale.clone());
        Ok(sale)
    }

    fn press(&mut self, id: &str, button: &str) -> Result<Value, u16> {
        let sale = self.sales.iter_mut().find(|sale| has_id(sale, id)).ok_or(404_u16)?;
        let next = match (sale["state"].as_str(), button) {
            (Some("draft"), "quote") => "quotation",
            (Some("quotation"), "confirm") => "processing",
            (Some("draft" | "quotation"), "cancel") => "cancelled",
            _ => return Err(0),
        };
        sale["state"] = json!(next);
        if next == "quotation" {
            sale["number"] = json!(format!("S{id}"));
        }
        Ok(sale.clone())
    }
}

fn has_id(record: &Value, id: &str) -> bool {
    record["id"].as_u64() == id.parse().ok()
}

fn product(id: u32, code: &str) -> Value {
    json!({"id": id, "code": code, "sale_uom": {"id": 1, "digits": 0}, "sale_price_uom": amount(Decimal::new(950, 2)),
        "template": {"id": id, "account_category": {"id": 1, "customer_taxes_used": [1]}}})
}

fn tax(id: u32, rate: &str) -> Value {
    json!({"id": id, "company": 1, "type": "percentage", "parent": null, "rate": {"__class__": "Decimal", "decimal": rate}})
}

fn numbered(after: usize, records: Option<&Vec<Value>>) -> Value {
    let records = (after + 1..).zip(records.into_iter().flatten());
    records
        .map(|(id, record)| {
            let mut record = record.clone();
            record["id"] = json!(id);
            record
        })
        .collect()
}

/// Whether a record fulfils a condition. What it does not know holds, as the fake has one company and one web shop.
fn holds(row: &Value, condition: &Value) -> bool {
    let (field, wanted) = (condition[0].as_str().unwrap_or_default(), &condition[2]);
    match (field, condition[1].as_str()) {
        ("create_date" | "OR", _) => true,
        (_, Some("=")) => &row[field] == wanted,
        (_, Some("in")) => wanted.as_array().is_some_and(|all| all.contains(&row[field])),
        (_, Some(">")) => row[field].as_u64() > wanted.as_u64(),
        (_, Some("like")) => {
            let part = wanted.as_str().unwrap_or_default().trim_matches('%');
            row[field].as_str().is_some_and(|text| text.contains(part))
        }
        _ => false,
    }
}
