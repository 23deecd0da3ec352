//! An ERP that takes webhooks, over real HTTP, and does what a test asks of it: accept, refuse, hang, cut, lie.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use sha2::Sha256;

use super::tls::Identity;
use super::wait::until;

/// A test waits so long for a request; far longer than any relay of the tests rests.
const SOON: Duration = Duration::from_secs(30);

/// What the ERP does with one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Takes it and answers 200 with its own name of the order.
    Accept,
    /// Takes it, and cuts the connection instead of an answer.
    AcceptThenCut,
    /// Takes it, and says nothing until [`FakeErp::release`].
    AcceptThenHang,
    /// Cuts the connection and takes nothing.
    Cut,
    /// Says nothing until [`FakeErp::release`], and takes nothing.
    Hang,
    /// Says nothing until [`FakeErp::release`], and takes it then.
    HangThenAccept,
    /// Takes nothing and answers this, with a `message` for people.
    Status(u16),
    /// Takes nothing and answers 503 with this `Retry-After`.
    Busy(&'static str),
    /// Takes it and answers what is no HTTP.
    AcceptThenRubbish,
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Request {
    /// `POST` or `GET`.
    pub method: String,
    /// The path.
    pub path: String,
    /// The header lines.
    pub headers: Vec<String>,
    /// The body.
    pub body: String,
}

impl Request {
    /// The value of a header; the test fails where it is absent.
    pub fn header(&self, name: &str) -> &str {
        let prefix = format!("{name}: ");
        let found = self.headers.iter().find_map(|line| line.strip_prefix(&prefix));
        found.unwrap_or_else(|| panic!("{name} is not among {:?}", self.headers))
    }

    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).expect("a webhook is JSON")
    }
}

/// The ERP. It hangs up and ends with this value.
pub struct FakeErp {
    scheme: &'static str,
    address: SocketAddr,
    state: Arc<State>,
    listening: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    closed: AtomicBool,
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    posts: VecDeque<Step>,
    gets: VecDeque<Step>,
    always: Option<(String, Step)>,
    requests: Vec<Request>,
    /// The references of the orders that it has made, each as often as it was made.
    orders: Vec<String>,
    cancelled: Vec<String>,
    payments: Vec<String>,
    /// Each key, and the reference that it came with.
    keys: Vec<(String, String)>,
    ignores_keys: bool,
    /// What it signs with, where it answers nobody who does not.
    secret: Option<Vec<u8>>,
    released: u64,
    under_way: usize,
    most_under_way: usize,
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for_release(&self) {
        let inner = self.lock();
        let before = inner.released;
        let waited = self.changed.wait_while(inner, |inner| inner.released == before);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

impl FakeErp {
    /// An ERP on a free port that accepts everything.
    pub fn start() -> Self {
        Self::listen("http", None)
    }

    /// As [`FakeErp::start`], behind TLS.
    pub fn start_with_tls(identity: &Identity) -> Self {
        Self::listen("https", Some(identity.server()))
    }

    fn listen(scheme: &'static str, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let state = Arc::new(State::default());
        let served = Arc::clone(&state);
        let listening = thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if served.closed.load(Ordering::SeqCst) {
                    return;
                }
                let (state, tls) = (Arc::clone(&served), tls.clone());
                thread::spawn(move || talk(&state, stream, tls));
            }
        });
        Self { scheme, address, state, listening: Some(listening) }
    }

    /// Where it takes webhooks.
    pub fn url(&self) -> String {
        format!("{}://{}/hooks/orders", self.scheme, self.address)
    }

    /// What it does with the next messages; afterwards it accepts.
    pub fn script(&self, steps: &[Step]) {
        self.state.lock().posts.extend(steps);
    }

    /// What it does with the next look-ups; afterwards it says what it has.
    pub fn script_look_ups(&self, steps: &[Step]) {
        self.state.lock().gets.extend(steps);
    }

    /// What it does with every message whose body holds `mark`.
    pub fn always(&self, mark: &str, step: Step) {
        self.state.lock().always = Some((mark.to_owned(), step));
    }

    /// It makes an order of every message that it takes, whatever the key says.
    pub fn ignore_keys(&self) {
        self.state.lock().ignores_keys = true;
    }

    /// It answers 401 to every request that this secret has not signed, look-ups included.
    pub fn verify(&self, secret: &str) {
        let secret = STANDARD.decode(secret.trim_start_matches("whsec_")).expect("the secret of a test is Base64");
        self.state.lock().secret = Some(secret);
    }

    /// Lets go on who hangs now.
    pub fn release(&self) {
        self.state.lock().released += 1;
        self.state.changed.notify_all();
    }

    /// The requests so far, of this method.
    pub fn requests(&self, method: &str) -> Vec<Request> {
        self.state.lock().requests.iter().filter(|request| request.method == method).cloned().collect()
    }

    /// Waits until it has got so many messages.
    pub fn wait_for_posts(&self, count: usize) {
        until(SOON, "the ERP has got the message", || self.requests("POST").len() >= count);
    }

    /// The references of the orders that it has made, each as often as it was made.
    pub fn orders(&self) -> Vec<String> {
        self.state.lock().orders.iter().filter(|order| !order.is_empty()).cloned().collect()
    }

    /// Loses an order, and all that it was told of it, as a backup does that is put back. The names of the others stay.
    pub fn lose(&self, reference: &str) {
        let mut inner = self.state.lock();
        inner.orders.iter_mut().filter(|order| *order == reference).for_each(String::clear);
        inner.keys.retain(|(_, of)| of != reference);
    }

    /// The references of the orders that it has cancelled.
    pub fn cancelled(&self) -> Vec<String> {
        self.state.lock().cancelled.clone()
    }

    /// The references of the orders that it was told a payment of.
    pub fn payments(&self) -> Vec<String> {
        self.state.lock().payments.clone()
    }

    /// The most requests that were under way at one time.
    pub fn most_under_way(&self) -> usize {
        self.state.lock().most_under_way
    }
}

impl Drop for FakeErp {
    fn drop(&mut self) {
        self.state.closed.store(true, Ordering::SeqCst);
        self.release();
        // Wakes the thread that listens; when it has ended, the port is closed.
        let _ = TcpStream::connect(self.address);
        let ended = self.listening.take().map(JoinHandle::join);
        assert!(matches!(ended, Some(Ok(()))) || thread::panicking(), "the thread that listens does not panic");
    }
}

fn talk(state: &State, mut stream: TcpStream, tls: Option<Arc<ServerConfig>>) {
    let connection = stream.try_clone().expect("a socket can be named twice");
    match tls {
        None => serve(state, &mut stream),
        Some(tls) => {
            let session = ServerConnection::new(tls).expect("the certificate is good");
            serve(state, &mut StreamOwned::new(session, stream));
        }
    }
    // Who was given no answer is cut off here. It may have hung up long ago, which is what some tests want.
    let _ = connection.shutdown(Shutdown::Both);
}

fn serve(state: &State, stream: &mut (impl Read + Write)) {
    let Some(request) = read(stream) else { return };
    let step = {
        let mut inner = state.lock();
        inner.requests.push(request.clone());
        inner.under_way += 1;
        inner.most_under_way = inner.most_under_way.max(inner.under_way);
        let marked = inner.always.clone().filter(|(mark, _)| request.method == "POST" && request.body.contains(mark));
        let queue = if request.method == "POST" { &mut inner.posts } else { &mut inner.gets };
        marked.map(|(_, step)| step).or_else(|| queue.pop_front())
    };
    let stranger = state.lock().secret.as_ref().is_some_and(|secret| !is_signed(&request, secret));
    let step = if stranger { Step::Status(401) } else { step.unwrap_or(Step::Accept) };
    let answer = act(state, &request, step);
    state.lock().under_way -= 1;
    if let Some(answer) = answer {
        let _ = stream.write_all(answer.as_bytes()).and_then(|()| stream.flush());
    }
}

/// Whether the request bears the signature of Standard Webhooks.
fn is_signed(request: &Request, secret: &[u8]) -> bool {
    let value = |name: &str| request.headers.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let named = (value("webhook-id"), value("webhook-timestamp"), value("webhook-signature"));
    let (Some(id), Some(timestamp), Some(signature)) = named else { return false };
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes a key of any length");
    mac.update(format!("{id}.{timestamp}.{}", request.body).as_bytes());
    signature == format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

fn act(state: &State, request: &Request, step: Step) -> Option<String> {
    match step {
        Step::Accept => Some(take(state, request)),
        Step::AcceptThenCut => {
            take(state, request);
            None
        }
        Step::AcceptThenHang => {
            take(state, request);
            state.wait_for_release();
            None
        }
        Step::Cut => None,
        Step::Hang => {
            state.wait_for_release();
            None
        }
        Step::HangThenAccept => {
            state.wait_for_release();
            Some(take(state, request))
        }
        Step::Status(status) => Some(answer(status, "", r#"{"message":"the ERP's own words"}"#)),
        Step::Busy(retry_after) => Some(answer(503, &format!("retry-after: {retry_after}\r\n"), "")),
        Step::AcceptThenRubbish => {
            take(state, request);
            Some("\u{1}\u{2}this is no HTTP\r\n\r\n".to_owned())
        }
    }
}

fn take(state: &State, request: &Request) -> String {
    let mut inner = state.lock();
    if request.method == "GET" {
        let wanted = request.path.rsplit('/').next().unwrap_or_default();
        let found = inner.orders.iter().position(|order| order.replace('/', "%2F").replace(' ', "%20") == wanted);
        return found.map_or_else(|| answer(404, "", ""), |index| answer(200, "", &name(index)));
    }
    let (message, key) = (request.json(), request.header("idempotency-key").to_owned());
    let reference = message["reference"].as_str().expect("every message has a reference").to_owned();
    if inner.keys.iter().any(|(known, _)| *known == key) && !inner.ignores_keys {
        return answer(409, "", "");
    }
    inner.keys.push((key, reference.clone()));
    match message["type"].as_str() {
        Some("order.cancelled") => inner.cancelled.push(reference),
        Some("payment.received") => inner.payments.push(reference),
        _ => {
            inner.orders.push(reference);
            return answer(200, "", &name(inner.orders.len() - 1));
        }
    }
    // Receivers name what they make of a payment or of a cancel, too.
    answer(200, "", r#"{"erpReference":"DOC-1"}"#)
}

fn name(index: usize) -> String {
    format!(r#"{{"erpReference":"SO-{}"}}"#, index + 1)
}

/// A whole answer.
pub fn answer(status: u16, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

/// Reads a request; `None` where the peer hung up.
pub fn read(stream: &mut impl Read) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let first = lines.remove(0);
    let mut parts = first.split(' ').map(str::to_owned);
    let (method, path) = (parts.next()?, parts.next()?);
    let length = lines.iter().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, path, headers: lines, body: String::from_utf8(body).ok()? })
}
