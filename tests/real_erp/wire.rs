//! A wire to an HTTP server that loses the answer to one request, or holds one request up, when a test says so.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::harness::wait::eventually;

/// How long a request may be on its way, and the server busy with it.
const LIMIT: Duration = Duration::from_mins(1);

/// A wire, from a port of its own to the server. It carries nothing more once this value is gone.
pub struct Wire {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    server: SocketAddr,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    closed: bool,
    /// The first lines of the requests so far.
    requests: Vec<String>,
    /// The next `POST` whose first line holds this loses its answer.
    loses: Option<String>,
    /// Every `POST` whose first line holds this waits.
    holds: Option<String>,
    held: usize,
    /// Requests that the server has not answered yet, whether or not somebody still waits for the answer.
    under_way: usize,
    /// How many answers were lost.
    lost: usize,
}

impl Wire {
    /// Lays a wire to the server.
    pub fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let address = listener.local_addr().expect("a bound listener has an address");
        let shared = Arc::new(Shared { server, state: Mutex::default(), changed: Condvar::new() });
        let accepting = Arc::clone(&shared);
        // It ends with the process: its listener takes no harm from standing open.
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&accepting);
                thread::spawn(move || shared.carry(client));
            }
        });
        Self { address, shared }
    }

    /// Where it takes requests.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next `POST` whose first line holds `mark` reaches the server, and its answer is lost.
    pub fn lose_the_answer_to(&self, mark: &str) {
        self.shared.lock().loses = Some(mark.to_owned());
    }

    /// How many answers were lost.
    pub fn lost(&self) -> usize {
        self.shared.lock().lost
    }

    /// Every `POST` whose first line holds `mark` waits here until [`Wire::let_go`].
    pub fn hold(&self, mark: &str) {
        self.shared.lock().holds = Some(mark.to_owned());
    }

    /// Waits until a request is held. The other futures of the test go on.
    pub async fn until_held(&self) {
        eventually(LIMIT, "a request that is held", async || (self.shared.lock().held > 0).then_some(())).await;
    }

    /// Lets what is held go on.
    pub fn let_go(&self) {
        self.shared.lock().holds = None;
        self.shared.changed.notify_all();
    }

    /// Waits until the server has ended everything that was asked of it, also what nobody waits for any more.
    pub async fn until_idle(&self) {
        eventually(LIMIT, "the end of all requests", async || (self.shared.lock().under_way == 0).then_some(())).await;
    }

    /// How many `POST` requests there were whose first line holds `mark`.
    pub fn posts(&self, mark: &str) -> usize {
        self.shared.lock().requests.iter().filter(|line| is_post(line, mark)).count()
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.let_go();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries one request and its answer. Tryton closes a connection after each.
    fn carry(&self, mut client: TcpStream) {
        self.lock().under_way += 1;
        let answer = self.ask(&client);
        self.lock().under_way -= 1;
        if let Some(answer) = answer {
            // Whoever asked may have hung up long ago, which is what some tests want.
            let _ = client.write_all(&answer);
        }
        let _ = client.shutdown(Shutdown::Both);
    }

    /// The answer of the server, where one is to be passed on.
    fn ask(&self, client: &TcpStream) -> Option<Vec<u8>> {
        let (line, request) = read(client)?;
        let mut state = self.lock();
        state.requests.push(line.clone());
        state.held += usize::from(state.holds_up(&line));
        let state = self.changed.wait_while(state, |state| state.holds_up(&line));
        let closed = state.unwrap_or_else(PoisonError::into_inner).closed;
        if closed {
            return None;
        }
        let mut server = TcpStream::connect(self.server).ok()?;
        server.write_all(&request).ok()?;
        let mut answer = Vec::new();
        server.read_to_end(&mut answer).ok()?;
        let mut state = self.lock();
        if state.loses.take_if(|mark| is_post(&line, mark)).is_some() {
            state.lost += 1;
            return None;
        }
        Some(answer)
    }
}

impl State {
    fn holds_up(&self, line: &str) -> bool {
        self.holds.as_ref().is_some_and(|mark| is_post(line, mark))
    }
}

fn is_post(line: &str, mark: &str) -> bool {
    line.starts_with("POST ") && line.contains(mark)
}

/// The first line of a request, and the whole of it.
fn read(client: &TcpStream) -> Option<(String, Vec<u8>)> {
    let mut reader = BufReader::new(client);
    let mut request = Vec::new();
    let mut length = 0;
    let mut first = None;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        request.extend_from_slice(line.as_bytes());
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = text.trim().parse().ok()?;
        }
        first.get_or_insert_with(|| line.to_owned());
    }
    let head = request.len();
    request.resize(head + length, 0);
    reader.read_exact(&mut request[head..]).ok()?;
    Some((first?, request))
}
