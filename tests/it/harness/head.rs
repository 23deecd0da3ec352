//! A request as the bytes of HTTP/1.1, for what no HTTP client would send: a head in parts, each of which a test can leave
//! out, repeat or break.

use super::http::Caller;

/// The lines of a head, in the order in which they are added.
#[derive(Clone)]
pub struct Head(Vec<Vec<u8>>);

impl Head {
    /// A request that asks to end the connection with the answer, so that a test can read to the end.
    pub fn new(method: &str, path: &str) -> Self {
        let line = format!("{method} {path} HTTP/1.1");
        Self(vec![line.into_bytes(), b"Host: localhost".to_vec(), b"Connection: close".to_vec()])
    }

    /// A command of this caller with everything but the key and the body.
    pub fn command(caller: &Caller, path: &str) -> Self {
        let api_key = caller.api_key().expect("a client has an API key");
        Self::new("POST", path).line(format!("Authorization: Bearer {api_key}")).line("Content-Type: application/json")
    }

    /// One line more, without its end.
    pub fn line(mut self, line: impl Into<Vec<u8>>) -> Self {
        self.0.push(line.into());
        self
    }

    /// The head, with its empty line.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.0.join(&b"\r\n"[..]);
        bytes.extend_from_slice(b"\r\n\r\n");
        bytes
    }

    /// The head and a body of a declared length.
    pub fn with_body(self, body: &[u8]) -> Vec<u8> {
        let mut bytes = self.line(format!("Content-Length: {}", body.len())).bytes();
        bytes.extend_from_slice(body);
        bytes
    }
}
