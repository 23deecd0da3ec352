//! The shops of a mixed run. Each group of them shares a few keys and a few orders, misuses the keys, loses answers and
//! looks at what became of them; at the end it asks for everything again until it is answered.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use super::event::{Answer, Ask, Entry, Heard, Scope};
use crate::harness::http::Caller;
use crate::harness::wait::eventually;

/// The tenants. Their clients have the same name, and use the same keys.
pub const TENANTS: [&str; 2] = ["acme", "other"];

/// How many shops of a group are at work at a time, and how many calls each makes.
const SHOPS: usize = 4;
const CALLS: usize = 6;

/// How long a restart of the service may take, on a busy machine; and how often a call is made that is not answered.
const RESTART: Duration = Duration::from_mins(1);
const TRIES: usize = 40;

/// How long a patient client waits; an impatient one leaves within [`IMPATIENCE`] milliseconds.
const PATIENCE: Duration = Duration::from_secs(25);
const IMPATIENCE: u64 = 25;

/// The service under test, as its clients know it.
pub struct Ground {
    /// One client of each tenant.
    pub callers: [Caller; 2],
    /// Where the processes listen now.
    pub addresses: Mutex<Vec<SocketAddr>>,
    /// When the run began.
    pub begin: Instant,
    /// How many calls were made so far.
    pub calls: AtomicUsize,
    /// How often a process was killed while they were at work.
    pub kills: AtomicUsize,
}

/// Numbers that look random, and are the same for the same seed (`SplitMix64`).
#[derive(Clone)]
pub struct Draw(pub u64);

impl Draw {
    /// A number below `limit`, which is small.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        let index = self.below(choices.len() as u64);
        choices[usize::try_from(index).expect("it is below a length")]
    }
}

/// Runs one group to its end, and returns its history.
///
/// # Errors
/// A call that is never answered.
pub async fn group(ground: &Ground, number: usize, mut draw: Draw) -> Result<Vec<Entry>, String> {
    let shops = (0..SHOPS).map(|shop| {
        let draw = Draw(draw.below(u64::MAX));
        shop_about(ground, number, shop, draw)
    });
    let mut history: Vec<Entry> = join_all(shops).await.concat();
    let asked: BTreeSet<(Scope, u8)> = history.iter().filter_map(Entry::intent).collect();
    let mut rest: Vec<Ask> = asked.iter().map(|(scope, body)| create(number, scope.clone(), *body)).collect();
    let scopes: BTreeSet<Scope> = asked.into_iter().map(|(scope, _)| scope).collect();
    rest.extend(scopes.into_iter().map(|scope| Ask::Look { scope }));
    for tenant in TENANTS {
        rest.extend(
            [0, 1].into_iter().filter_map(|body| identity(number, body)).map(|identity| Ask::List { tenant, identity }),
        );
    }
    for ask in rest {
        settle(ground, &ask, &mut draw, &mut history).await?;
    }
    Ok(history)
}

async fn shop_about(ground: &Ground, group: usize, shop: usize, mut draw: Draw) -> Vec<Entry> {
    let mut history = Vec::new();
    for call in 0..CALLS {
        // They all begin as rivals of one key.
        let is_first = call == 0;
        let tenant = if is_first { "acme" } else { draw.of(&["acme", "acme", "acme", "other"]) };
        let name = if is_first { "a" } else { draw.of(&["a", "b"]) };
        let scope = Scope { tenant, key: format!("{group}-{name}") };
        // The first key is mostly used as it should be; the second also for the order of the first.
        let body = if name == "a" { draw.of(&[0, 0, 0, 0, 1, 2]) } else { draw.of(&[0, 2, 2, 1]) };
        let ask = match draw.below(10) {
            kind if is_first || kind < 7 => create(group, scope, body),
            7 | 8 => Ask::List { tenant, identity: format!("{group}-{}", draw.of(&["x", "y"])) },
            _ => Ask::Look { scope },
        };
        let leaves = draw.below(4) == 0;
        let patience = if leaves { Duration::from_millis(draw.below(IMPATIENCE)) } else { PATIENCE };
        history.extend(ground.call(shop, &ask, patience, &mut draw).await);
    }
    history
}

/// Asks until it is answered: what a client does that wants to know.
async fn settle(ground: &Ground, ask: &Ask, draw: &mut Draw, history: &mut Vec<Entry>) -> Result<(), String> {
    for _ in 0..TRIES {
        let entry = ground.call(SHOPS, ask, PATIENCE, draw).await;
        let is_over = entry.as_ref().is_some_and(|entry| !matches!(entry.end, None | Some((_, Heard::AtWork))));
        history.extend(entry);
        if is_over {
            return Ok(());
        }
    }
    Err(format!("{ask:?} is not answered, {TRIES} times"))
}

fn create(group: usize, scope: Scope, body: u8) -> Ask {
    Ask::Create { scope, body, identity: identity(group, body) }
}

/// The order's own identity; the third body has none.
fn identity(group: usize, body: u8) -> Option<String> {
    ["x", "y"].get(usize::from(body)).map(|name| format!("{group}-{name}"))
}

impl Entry {
    fn intent(&self) -> Option<(Scope, u8)> {
        match &self.ask {
            Ask::Create { scope, body, .. } => Some((scope.clone(), *body)),
            Ask::List { .. } | Ask::Look { .. } => None,
        }
    }
}

impl Ground {
    /// Makes one call to one of the processes. `None`: it surely had no effect, or it only read and was not answered.
    async fn call(&self, client: usize, ask: &Ask, patience: Duration, draw: &mut Draw) -> Option<Entry> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let addresses = self.addresses.lock().expect("no test panics with it").clone();
        let address = draw.of(&addresses);
        let request = self.request(address, ask);
        let begin = self.now();
        let end = match tokio::time::timeout(patience, request.send()).await {
            Ok(Err(error)) if error.is_connect() => {
                self.wait_for_a_process().await;
                return None;
            }
            Err(_) | Ok(Err(_)) => None,
            Ok(Ok(response)) => heard(ask, response).await.map(|heard| (self.now(), heard)),
        };
        let matters = end.is_some() || matches!(ask, Ask::Create { .. });
        matters.then(|| Entry { client, ask: ask.clone(), begin, end })
    }

    fn request(&self, address: SocketAddr, ask: &Ask) -> RequestBuilder {
        let caller = |tenant: &str| self.callers[usize::from(tenant != TENANTS[0])].at(address);
        match ask {
            Ask::Create { scope, body, identity } => {
                let order = order(*body, identity.as_deref());
                caller(scope.tenant).command(Method::POST, "/v1/orders", &scope.key, &order)
            }
            Ask::List { tenant, identity } => {
                caller(tenant).request(Method::GET, &format!("/v1/orders?channel=web&externalOrderId={identity}"))
            }
            Ask::Look { scope } => {
                let path = format!("/v1/operations?command=orders.create&idempotencyKey={}", scope.key);
                caller(scope.tenant).request(Method::GET, &path)
            }
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_nanos()).expect("a run takes no centuries")
    }

    async fn wait_for_a_process(&self) {
        eventually(RESTART, "a process that listens", async || {
            let addresses = self.addresses.lock().expect("no test panics with it").clone();
            addresses.iter().any(|address| TcpStream::connect(address).is_ok()).then_some(())
        })
        .await;
    }
}

fn order(body: u8, identity: Option<&str>) -> Value {
    let mut order = json!({
        "customerId": "cus_123", "currency": "EUR", "items": [{"sku": "ABC", "qty": u32::from(body) + 1}]
    });
    if let Some(identity) = identity {
        order["channel"] = json!("web");
        order["externalOrderId"] = json!(identity);
    }
    order
}

/// What the answer says; `None` when it is cut off, or says that nobody knows.
async fn heard(ask: &Ask, response: Response) -> Option<Heard> {
    let status = response.status().as_u16();
    let header =
        |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("").to_owned();
    let (replayed, kind, location) =
        (header("idempotent-replayed") == "true", header("content-type"), header("location"));
    let text = response.text().await.ok()?;
    let document: Value = serde_json::from_str(&text).unwrap_or_default();
    let answer = || Answer {
        order: document["orderId"].as_str().unwrap_or("").to_owned(),
        text: format!("{status} {kind} {location} {text}"),
        replayed,
    };
    let ids = |list: &str| -> Vec<String> {
        let entries = document[list].as_array().into_iter().flatten();
        entries.map(|entry| entry["orderId"].as_str().unwrap_or("").to_owned()).collect()
    };
    Some(match (ask, status, document["error"].as_str().unwrap_or("")) {
        (_, 503, "ServiceUnavailable") => return None,
        (Ask::Create { .. }, 201, _) => Heard::Made(answer()),
        (Ask::Create { .. }, 202, _) => Heard::AtWork,
        (Ask::Create { .. }, 409, "DuplicateOrder") => Heard::Duplicate(answer()),
        (Ask::Create { .. }, 409, "IdempotencyKeyConflict") => Heard::Conflict,
        (Ask::List { .. }, 200, _) => Heard::Orders(ids("orders")),
        (Ask::Look { .. }, 200, _) => Heard::Known(!ids("operations").is_empty()),
        _ => Heard::Other(format!("{status} {text}")),
    })
}
