//! A wire between two who speak HTTP, which breaks at chosen places: it reads whole messages, so it knows where it is.
//!
//! What it does with the n-th try of a key is decided by the seed, the key and n alone. A key is let through after a bounded
//! number of breaks, so that every intent can end.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fastrand::Rng;

use crate::chance;
use crate::http::{self, Message};

/// Where the wire breaks, or what it does to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// It is cut before the request is whole.
    BeforeWhole,
    /// It is cut when the request is whole, before any answer.
    AfterWhole,
    /// The answer, and so the commit, has come; not a byte of it goes on.
    AnswerLost,
    /// It is cut in the middle of the answer.
    AnswerCut,
    /// The answer is held until the one who asked has hung up.
    AnswerLate,
    /// The request is sent twice, at the same time or one after the other; the second answer goes on.
    Doubled,
}

/// Breaks for everybody who may send twice.
pub const ALL: &[Break] =
    &[Break::BeforeWhole, Break::AfterWhole, Break::AnswerLost, Break::AnswerCut, Break::AnswerLate, Break::Doubled];

/// How many of a hundred requests break.
const PERCENT: u32 = 40;
/// The most breaks of one key.
const MOST_BREAKS: u32 = 5;
/// Longer than anybody's patience; a limit for what hangs.
const LIMIT: Duration = Duration::from_secs(20);

/// A wire, from a port of its own. It is taken down with this value.
pub struct Wire {
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: Option<JoinHandle<()>>,
}

struct Shared {
    seed: u64,
    name: &'static str,
    targets: Vec<SocketAddr>,
    breaks: &'static [Break],
    tries: Mutex<HashMap<String, u32>>,
    turn: AtomicUsize,
    broken: AtomicU64,
    closed: AtomicBool,
}

impl Wire {
    /// Lays a wire to these targets, which take turns. `name` tells the chance of two wires of one seed apart.
    pub fn lay(seed: u64, name: &'static str, targets: Vec<SocketAddr>, breaks: &'static [Break]) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let address = listener.local_addr().expect("a bound listener has an address");
        let shared = Arc::new(Shared {
            seed,
            name,
            targets,
            breaks,
            tries: Mutex::default(),
            turn: AtomicUsize::new(0),
            broken: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        let listening = thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if accepting.closed.load(Ordering::SeqCst) {
                    return;
                }
                let shared = Arc::clone(&accepting);
                thread::spawn(move || shared.carry(client));
            }
        });
        Self { address, shared, listening: Some(listening) }
    }

    /// Where it begins.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many requests it has broken.
    pub fn broken(&self) -> u64 {
        self.shared.broken.load(Ordering::SeqCst)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        // Wakes the thread that listens.
        drop(TcpStream::connect(self.address));
        if let Some(listening) = self.listening.take() {
            let ended = listening.join();
            assert!(ended.is_ok() || thread::panicking(), "the thread that listens does not panic");
        }
    }
}

impl Shared {
    fn carry(&self, mut client: TcpStream) {
        let Some(request) = http::read(&mut client, LIMIT) else { return };
        let target = self.targets[self.turn.fetch_add(1, Ordering::Relaxed) % self.targets.len()];
        let (wanted, mut rng) = self.fate(&request);
        if wanted.is_some() {
            self.broken.fetch_add(1, Ordering::SeqCst);
        }
        let answer = match wanted {
            None => http::ask(target, &request.bytes, LIMIT).map(|answer| answer.bytes),
            Some(broken) => suffer(broken, target, &request, &mut client, &mut rng),
        };
        if let Some(answer) = answer {
            // Who asked may have gone.
            drop(client.write_all(&answer));
        }
        drop(client.shutdown(Shutdown::Both));
    }

    /// What shall happen to this try of its key.
    fn fate(&self, request: &Message) -> (Option<Break>, Rng) {
        let key = request.header("idempotency-key").unwrap_or_else(|| request.word(1));
        let number = {
            let mut tries = self.tries.lock().unwrap_or_else(PoisonError::into_inner);
            let tries = tries.entry(key.clone()).or_insert(0);
            *tries += 1;
            *tries
        };
        let mut rng = chance::of(self.seed, &[self.name, &key, &number.to_string()]);
        let breaks = !self.breaks.is_empty() && number <= MOST_BREAKS && rng.u32(0..100) < PERCENT;
        (breaks.then(|| self.breaks[rng.usize(0..self.breaks.len())]), rng)
    }
}

/// Breaks a request at its place; returns the bytes that still reach the client.
fn suffer(
    broken: Break,
    target: SocketAddr,
    request: &Message,
    client: &mut TcpStream,
    rng: &mut Rng,
) -> Option<Vec<u8>> {
    let bytes = &request.bytes;
    match broken {
        Break::BeforeWhole => {
            let mut server = http::connect(target)?;
            drop(server.write_all(&bytes[..rng.usize(0..bytes.len())]));
            None
        }
        Break::AfterWhole => {
            let mut server = http::connect(target)?;
            drop(server.write_all(bytes));
            None
        }
        Break::AnswerLost => {
            http::ask(target, bytes, LIMIT);
            None
        }
        Break::AnswerCut => {
            let answer = http::ask(target, bytes, LIMIT)?.bytes;
            Some(answer[..rng.usize(1..answer.len())].to_vec())
        }
        Break::AnswerLate => {
            let answer = http::ask(target, bytes, LIMIT)?;
            wait_for_the_end(client);
            Some(answer.bytes)
        }
        Break::Doubled => doubled(target, bytes, rng.bool()),
    }
}

fn doubled(target: SocketAddr, bytes: &[u8], together: bool) -> Option<Vec<u8>> {
    let second = if together {
        thread::scope(|scope| {
            let first = scope.spawn(|| http::ask(target, bytes, LIMIT));
            let second = http::ask(target, bytes, LIMIT);
            drop(first.join());
            second
        })
    } else {
        http::ask(target, bytes, LIMIT);
        http::ask(target, bytes, LIMIT)
    };
    second.map(|answer| answer.bytes)
}

/// Returns when the one who asked has hung up.
fn wait_for_the_end(client: &mut TcpStream) {
    if client.set_read_timeout(Some(LIMIT)).is_ok() {
        // Nothing more is said on this connection: what comes is its end.
        drop(client.read(&mut [0; 1]));
    }
}
