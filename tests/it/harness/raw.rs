//! A bare TCP connection to the service, for bytes that no HTTP client would send.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// How long a read waits for the next bytes. Longer than any limit of the service, so that what ends is the service.
const SILENCE: Duration = Duration::from_secs(30);

/// One connection. It blocks the test's thread; the service answers on threads of its own.
pub struct RawConnection(TcpStream);

/// What came back before the service closed the connection, or the whole of one answer.
#[derive(Debug)]
pub struct RawAnswer {
    /// The status of the status line; `None` where the service closed without an answer.
    pub status: Option<u16>,
    /// The head, status line included, as text.
    pub head: String,
    /// The body as sent, a chunked one with its chunk sizes.
    pub body: Vec<u8>,
}

impl RawConnection {
    /// Connects to the service.
    pub fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the service takes connections");
        stream.set_nodelay(true).expect("a TCP stream has this option");
        stream.set_read_timeout(Some(SILENCE)).expect("the limit is not zero");
        stream.set_write_timeout(Some(SILENCE)).expect("the limit is not zero");
        Self(stream)
    }

    /// Sends bytes as they are; `false` when the service has already closed the connection.
    pub fn send(&mut self, bytes: &[u8]) -> bool {
        self.0.write_all(bytes).is_ok()
    }

    /// Says that nothing more will be sent, and keeps listening.
    pub fn finish_sending(&self) {
        // A connection that the other side has closed is finished already.
        let _ = self.0.shutdown(Shutdown::Write);
    }

    /// Reads one answer: its head, and as much body as `Content-Length` says, or until the service closes.
    pub fn answer(&mut self) -> RawAnswer {
        let mut bytes = Vec::new();
        let mut block = [0; 4096];
        while !is_whole(&bytes) {
            match self.0.read(&mut block) {
                Ok(0) => break,
                Ok(count) => bytes.extend_from_slice(&block[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A reset is how a service drops a client that still sends; what came before it counts.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
                Err(error) => {
                    panic!("no answer within {SILENCE:?}, and the connection is open: {error}")
                }
            }
        }
        parse(&bytes)
    }
}

fn parse(bytes: &[u8]) -> RawAnswer {
    let end = head_end(bytes).unwrap_or(bytes.len());
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    RawAnswer { status, head, body: bytes[end..].to_vec() }
}

/// Where the head ends: after its empty line.
fn head_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|start| start + 4)
}

fn is_whole(bytes: &[u8]) -> bool {
    let Some(end) = head_end(bytes) else {
        return false;
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    length.and_then(|length| length.trim().parse::<usize>().ok()).is_some_and(|length| bytes.len() >= end + length)
}
