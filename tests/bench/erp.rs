//! An ERP in a process of its own, so that it can be killed: it writes every document that it makes to a file, and makes one
//! of every message that it takes, unless it has promised to look at the keys.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::ports::free_port;
use crate::http::{self, Message};
use crate::progress::comes_true;

const LIMIT: Duration = Duration::from_secs(20);

/// What the ERP promises, and so what follows an answer that was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// It tells what it has. It looks at no key: a message that comes twice makes two documents.
    Lookup,
    /// It does nothing twice for one key.
    Resend,
}

impl Promise {
    /// The word for it on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Promise::Lookup => "lookup",
            Promise::Resend => "resend",
        }
    }
}

/// The ERP, seen by the bench. Its process is killed and reaped with this value.
pub struct Erp {
    address: SocketAddr,
    file: PathBuf,
    promise: Promise,
    process: Child,
}

impl Erp {
    /// Starts an ERP that keeps its documents in `home`.
    pub fn start(home: &Path, promise: Promise) -> Self {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let file = home.join("erp");
        let process = spawn(address, &file, promise);
        Self { address, file, promise, process }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The file of its documents.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Kills it at once (SIGKILL).
    pub fn kill(&mut self) {
        self.process.kill().expect("the process is ours");
        self.process.wait().expect("the process is ours");
    }

    /// Starts it again, with what it has in its file.
    pub fn start_again(&mut self) {
        self.process = spawn(self.address, &self.file, self.promise);
    }

    /// How often it has made an order of each reference.
    pub fn orders(&self) -> BTreeMap<String, u32> {
        let mut orders = BTreeMap::new();
        for (kind, reference, _) in documents(&self.file) {
            if kind.starts_with("order.") && kind != "order.cancelled" {
                *orders.entry(reference).or_insert(0) += 1;
            }
        }
        orders
    }
}

impl Drop for Erp {
    fn drop(&mut self) {
        // Both fail only where it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn spawn(address: SocketAddr, file: &Path, promise: Promise) -> Child {
    let own = std::env::current_exe().expect("a program has a file");
    let child = Command::new(own)
        .arg("erp")
        .arg(address.port().to_string())
        .arg(file)
        .arg(promise.word())
        .stdin(Stdio::null())
        .spawn()
        .expect("the bench can start itself");
    assert!(comes_true(LIMIT, || TcpStream::connect(address).is_ok()), "the ERP listens");
    child
}

fn documents(file: &Path) -> Vec<(String, String, String)> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let parse = |line: &str| {
        let mut parts = line.split('\t').map(str::to_owned);
        Some((parts.next()?, parts.next()?, parts.next()?))
    };
    text.lines().map(|line| parse(line).unwrap_or_else(|| panic!("{line:?} is no document"))).collect()
}

/// What the process has: its file, and an index of it.
struct Books {
    file: File,
    orders: HashSet<String>,
    keys: HashSet<String>,
    promise: Promise,
}

/// The process itself. It ends only by a signal.
pub fn serve(port: u16, path: &Path, promise: Promise) -> std::io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    let mut books = Books { file, orders: HashSet::new(), keys: HashSet::new(), promise };
    for (kind, reference, key) in documents(path) {
        if kind != "order.cancelled" {
            books.orders.insert(reference);
        }
        books.keys.insert(key);
    }
    let books = Arc::new(Mutex::new(books));
    for mut client in listener.incoming().flatten() {
        let books = Arc::clone(&books);
        thread::spawn(move || {
            let Some(request) = http::read(&mut client, LIMIT) else { return };
            let (status, body) = act(&books, &request);
            // Who asked may have gone.
            drop(client.write_all(answer(status, &body.to_string()).as_bytes()));
        });
    }
    Ok(())
}

fn act(books: &Mutex<Books>, request: &Message) -> (u16, Value) {
    let mut books = books.lock().unwrap_or_else(PoisonError::into_inner);
    if request.word(0) == "GET" {
        let wanted = request.word(1).rsplit('/').next().map(decoded).unwrap_or_default();
        return if books.orders.contains(&wanted) { (200, name(&wanted)) } else { (404, json!({})) };
    }
    let Ok(message) = serde_json::from_str::<Value>(&request.body()) else { return (400, json!({})) };
    let (kind, reference) = (message["type"].as_str(), message["reference"].as_str());
    let (Some(kind), Some(reference), Some(key)) = (kind, reference, request.header("idempotency-key")) else {
        return (400, json!({}));
    };
    if books.promise == Promise::Resend && books.keys.contains(&key) {
        return (409, json!({}));
    }
    // One write of one line: a kill leaves all of it or nothing.
    if books.file.write_all(format!("{kind}\t{reference}\t{key}\n").as_bytes()).is_err() {
        return (500, json!({}));
    }
    books.keys.insert(key);
    if kind.starts_with("order.") && kind != "order.cancelled" {
        books.orders.insert(reference.to_owned());
    }
    (200, name(reference))
}

fn name(reference: &str) -> Value {
    json!({"erpReference": format!("ERP of {reference}").chars().take(60).collect::<String>()})
}

fn decoded(segment: &str) -> String {
    percent_encoding::percent_decode_str(segment).decode_utf8_lossy().into_owned()
}

fn answer(status: u16, body: &str) -> String {
    format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}
