//! A client application of the tests: an API key, and the service's answers as plain data.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName};
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::Value;

/// A call that takes longer fails its test. Far above every limit of the service.
const PATIENCE: Duration = Duration::from_secs(30);

/// Who calls the service: one API key, or none. A clone shares the connections.
#[derive(Clone)]
pub struct Caller {
    http: Client,
    base: String,
    api_key: Option<String>,
}

/// An answer, read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// All headers, the transport's (`date`) included.
    pub headers: HeaderMap,
    /// The body's bytes.
    pub body: Vec<u8>,
}

impl Caller {
    /// A caller of the service at this address. No redirect is followed: an answer is what the service said.
    pub fn new(address: SocketAddr, api_key: Option<String>) -> Self {
        // The client of the ERP gateways shares this crate's features, and wants a provider of cryptography; one is enough.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = Client::builder()
            .timeout(PATIENCE)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()
            .expect("a client needs nothing more");
        Self { http, base: format!("http://{address}"), api_key }
    }

    /// The same client application with another API key, or with none.
    pub fn with_api_key(&self, api_key: Option<String>) -> Self {
        Self { api_key, ..self.clone() }
    }

    /// The same client application at another server, for two processes on one database.
    pub fn at(&self, address: SocketAddr) -> Self {
        Self { base: format!("http://{address}"), ..self.clone() }
    }

    /// The API key it calls with.
    pub fn api_key(&self) -> Option<&str> {
        self.api_key.as_deref()
    }

    /// A request with the API key and nothing else, for a test to add to. `path` begins with a slash.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.api_key {
            Some(api_key) => request.bearer_auth(api_key),
            None => request,
        }
    }

    /// A command with an idempotency key and a JSON body, for a test to add headers to.
    pub fn command(&self, method: Method, path: &str, idempotency_key: &str, body: &Value) -> RequestBuilder {
        self.request(method, path).header("Idempotency-Key", idempotency_key).json(body)
    }

    /// Sends a command: `POST` with an idempotency key and a JSON body.
    pub async fn post(&self, path: &str, idempotency_key: &str, body: &Value) -> Answer {
        send(self.command(Method::POST, path, idempotency_key, body)).await
    }

    /// Sends a command whose body is these bytes, said to be JSON.
    pub async fn post_bytes(&self, path: &str, idempotency_key: &str, body: impl Into<Vec<u8>>) -> Answer {
        let request = self.request(Method::POST, path).header("Idempotency-Key", idempotency_key);
        send(request.header("Content-Type", "application/json").body(body.into())).await
    }

    /// Reads.
    pub async fn get(&self, path: &str) -> Answer {
        send(self.request(Method::GET, path)).await
    }
}

/// Sends a request and reads the answer to its end. Only a connection that breaks fails the test; a status never does.
pub async fn send(request: RequestBuilder) -> Answer {
    let response = request.send().await.unwrap_or_else(|error| panic!("the service answers: {error:?}"));
    let status = response.status();
    let headers = response.headers().clone();
    let body = response.bytes().await.unwrap_or_else(|error| panic!("the body arrives whole: {error:?}")).to_vec();
    Answer { status, headers, body }
}

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// A header's value as text; `None` where it is absent. A header that is there twice fails the test.
    pub fn header(&self, name: &str) -> Option<&str> {
        let name: HeaderName = name.parse().expect("the test names a header");
        let mut values = self.headers.get_all(&name).iter();
        let value = values.next()?;
        assert!(values.next().is_none(), "{name} is there more than once");
        Some(value.to_str().expect("our headers are ASCII"))
    }

    /// The answer itself, when it has this status; else the test fails and shows it.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        self
    }

    /// The stable code of a problem, in `error`; the test fails where the answer is none.
    #[track_caller]
    pub fn error(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{}", self.text());
        self.json()["error"].as_str().expect("a problem has a code").to_owned()
    }
}
