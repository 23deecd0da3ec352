//! HTTP/1.1 as whole messages of bytes, one exchange a connection: what the shop, the wire and the ERP need, and no more.
//!
//! A client library would retry, pool and hide; here every byte that was sent and every answer that was lost is known.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// How long a connection to this machine may take to be made.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);

/// A message, read to its end.
#[derive(Clone, Debug)]
pub struct Message {
    /// Its bytes as they came.
    pub bytes: Vec<u8>,
    body_begins: usize,
}

impl Message {
    /// The head, first line included, as text.
    pub fn head(&self) -> String {
        String::from_utf8_lossy(&self.bytes[..self.body_begins]).into_owned()
    }

    /// The body as text.
    pub fn body(&self) -> String {
        String::from_utf8_lossy(&self.bytes[self.body_begins..]).into_owned()
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<String> {
        header(&self.head(), name)
    }

    /// The status of an answer; 0 where the first line has none.
    pub fn status(&self) -> u16 {
        self.word(1).parse().unwrap_or(0)
    }

    /// A word of the first line: of a request the method and the path.
    pub fn word(&self, index: usize) -> String {
        let head = self.head();
        let line = head.lines().next().unwrap_or_default();
        line.split(' ').nth(index).unwrap_or_default().to_owned()
    }
}

fn header(head: &str, name: &str) -> Option<String> {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned()).next()
}

/// The bytes of a request that asks to end the connection with its answer.
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    for (name, value) in headers {
        text.extend([name, ": ", value, "\r\n"]);
    }
    if method != "GET" {
        let length = body.len().to_string();
        text.extend(["Content-Type: application/json\r\nContent-Length: ", &length, "\r\n"]);
    }
    text += "\r\n";
    text += body;
    text.into_bytes()
}

/// Reads one message to the end that its `Content-Length` names. `None` where the connection ended before.
pub fn read(stream: &mut TcpStream, patience: Duration) -> Option<Message> {
    let deadline = Instant::now() + patience;
    let (mut bytes, mut block) = (Vec::new(), [0; 16 * 1024]);
    loop {
        if let Some(message) = whole(&bytes) {
            return Some(message);
        }
        let left = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
        stream.set_read_timeout(Some(left)).ok()?;
        match stream.read(&mut block) {
            Ok(count) if count > 0 => bytes.extend_from_slice(&block[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            _ => return None,
        }
    }
}

fn whole(bytes: &[u8]) -> Option<Message> {
    let body_begins = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..body_begins]).into_owned();
    let length: usize = header(&head, "content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let end = body_begins + length;
    (bytes.len() >= end).then(|| Message { bytes: bytes[..end].to_vec(), body_begins })
}

/// Opens a connection.
pub fn connect(address: SocketAddr) -> Option<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, CONNECT_LIMIT).ok()?;
    stream.set_nodelay(true).ok()?;
    stream.set_write_timeout(Some(CONNECT_LIMIT)).ok()?;
    Some(stream)
}

/// Sends a request and reads its answer. `None`: no whole answer came within `patience`, and what became of it is not known.
pub fn ask(address: SocketAddr, request: &[u8], patience: Duration) -> Option<Message> {
    let mut stream = connect(address)?;
    stream.write_all(request).ok()?;
    read(&mut stream, patience)
}
