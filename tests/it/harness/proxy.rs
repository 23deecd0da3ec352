//! A wire to PostgreSQL that a test can cut, at the worst moment too: while a COMMIT is on its way.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// What the wire does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It carries everything.
    Whole,
    /// It is cut: what was connected is not any more, and who connects is cut off at once.
    Cut,
    /// It breaks when the next COMMIT comes, before the server hears of it.
    BreakBeforeCommit,
    /// It breaks when the next COMMIT is answered, before the client hears of it.
    BreakAfterCommit,
}

/// A wire, from a port of its own to the server. It is cut with this value.
pub struct Proxy(Arc<Shared>);

struct Shared {
    server: SocketAddr,
    state: Mutex<State>,
}

struct State {
    mode: Mode,
    /// Both ends of every connection, to be shut from outside.
    ends: Vec<TcpStream>,
}

impl Proxy {
    /// Lays a wire to the server of this URL, and returns it with the URL that goes through it.
    pub fn to(database_url: &str) -> (Self, String) {
        let place =
            database_url.rsplit('@').next().expect("a URL of the harness").split('/').next().expect("it has a host");
        let server = place.parse().expect("the host is an address and a port");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let address = listener.local_addr().expect("a bound listener has an address");
        let shared = Arc::new(Shared { server, state: Mutex::new(State { mode: Mode::Whole, ends: Vec::new() }) });
        let accepting = Arc::clone(&shared);
        // It ends with the process: its listener takes no harm from standing open.
        thread::spawn(move || accepting.accept(&listener));
        (Self(shared), database_url.replace(place, &address.to_string()))
    }

    /// Makes the wire behave otherwise from now on.
    pub fn set(&self, mode: Mode) {
        self.0.set(mode);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.0.set(Mode::Cut);
    }
}

impl Shared {
    fn set(&self, mode: Mode) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.mode = mode;
        if mode == Mode::Cut {
            state.ends.drain(..).for_each(|end| shut(&end));
        }
    }

    fn accept(self: Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming().flatten() {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if state.mode == Mode::Cut {
                continue;
            }
            let server = TcpStream::connect(self.server).expect("the server of the tests runs");
            state.ends.extend([copy_of(&client), copy_of(&server)]);
            drop(state);
            let breaks = Arc::new(Mutex::new(false));
            let (shared, other) = (Arc::clone(&self), Arc::clone(&breaks));
            let (from, to) = (copy_of(&client), copy_of(&server));
            thread::spawn(move || shared.carry_requests(from, to, &other));
            thread::spawn(move || carry_answers(server, client, &breaks));
        }
    }

    /// Carries what the client says, and looks for its COMMIT.
    fn carry_requests(&self, mut client: TcpStream, mut server: TcpStream, breaks: &Mutex<bool>) {
        carry(&mut client, &mut server, |bytes| {
            // The statement and its end; BEGIN speaks of READ COMMITTED.
            if !bytes.windows(7).any(|seven| seven == b"COMMIT\0") {
                return true;
            }
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let mode = std::mem::replace(&mut state.mode, Mode::Whole);
            *breaks.lock().unwrap_or_else(PoisonError::into_inner) = mode == Mode::BreakAfterCommit;
            mode != Mode::BreakBeforeCommit
        });
    }
}

fn carry_answers(mut server: TcpStream, mut client: TcpStream, breaks: &Mutex<bool>) {
    carry(&mut server, &mut client, |_| !*breaks.lock().unwrap_or_else(PoisonError::into_inner));
}

/// Carries bytes until one side ends, or until `goes_on` says no; then both are shut.
fn carry(from: &mut TcpStream, to: &mut TcpStream, mut goes_on: impl FnMut(&[u8]) -> bool) {
    let mut block = [0; 16 * 1024];
    while let Ok(count) = from.read(&mut block) {
        if count == 0 || !goes_on(&block[..count]) || to.write_all(&block[..count]).is_err() {
            break;
        }
    }
    shut(from);
    shut(to);
}

fn shut(end: &TcpStream) {
    // An end that the other side has shut already is what is wanted.
    let _ = end.shutdown(Shutdown::Both);
}

fn copy_of(end: &TcpStream) -> TcpStream {
    end.try_clone().expect("a socket can be doubled")
}
