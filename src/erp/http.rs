//! The HTTP client of the gateways: one request is one request. It follows no redirect, uses no proxy, keeps no connection,
//! and tries nothing twice; it connects only to addresses that were checked, so that a name cannot lead elsewhere later.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Request, RequestBuilder, redirect, retry};
use url::Url;

use super::public_address::is_public;
use super::{Failure, target};
use crate::db;

/// The most time until a connection stands, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The most bytes of an answer that are read. An ERP's answer is a name and perhaps a sentence.
const MAX_ANSWER: usize = 64 * 1024;

/// The client, shared by all gateways that speak HTTP.
#[derive(Clone)]
pub(super) struct Client {
    http: reqwest::Client,
    allow_private: bool,
}

/// An answer, read to its end.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

impl Client {
    pub(super) fn new(timeout: Duration, allow_private: bool) -> Client {
        // Another part of the process may have chosen a provider already; that one serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .dns_resolver(Arc::new(CheckedResolver { allow_private }))
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .no_proxy()
            .http1_only()
            .pool_max_idle_per_host(0)
            // A connection that does not come about must be known for that, before the whole time is over.
            .connect_timeout(CONNECT_TIMEOUT.min(timeout / 2))
            .timeout(timeout)
            .user_agent(concat!("order-service/", env!("CARGO_PKG_VERSION")))
            .build()
            .expect("the settings are constants and the provider is installed");
        Client { http, allow_private }
    }

    /// Checks the address of a connection.
    pub(super) fn check(&self, url: &str) -> Result<Url, Failure> {
        let misconfigured = |text: &str| Failure::Misconfigured(text.to_owned());
        let url = Url::parse(url).map_err(|_| misconfigured("the URL of the connection cannot be read"))?;
        let allowed = url.scheme() == "https" || (self.allow_private && url.scheme() == "http");
        if !allowed {
            return Err(misconfigured(
                "the URL has to begin with https://; http:// is for ORDERS_ERP_ALLOW_PRIVATE=on",
            ));
        }
        target::host(&url, self.allow_private)?;
        Ok(url)
    }

    pub(super) fn get(&self, url: Url) -> RequestBuilder {
        self.http.get(url)
    }

    pub(super) fn post(&self, url: Url) -> RequestBuilder {
        self.http.post(url)
    }

    pub(super) fn put(&self, url: Url) -> RequestBuilder {
        self.http.put(url)
    }

    /// Sends a request and reads the answer. A failure says whether the ERP may have got it.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Answer, Failure> {
        self.send_up_to(request, MAX_ANSWER).await
    }

    /// As [`Client::send`], for answers of up to `most` bytes.
    pub(super) async fn send_up_to(&self, request: RequestBuilder, most: usize) -> Result<Answer, Failure> {
        let request: Request = request.build().map_err(|error| Failure::Misconfigured(plain(&error)))?;
        let mut response = self.http.execute(request).await.map_err(|error| failure_of(&error))?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) => {
                    let room = most - body.len();
                    body.extend_from_slice(&chunk[..chunk.len().min(room)]);
                    if body.len() == most {
                        break;
                    }
                }
                Ok(None) => break,
                Err(error) => return Err(failure_of(&error)),
            }
        }
        Ok(Answer { status, headers, body: String::from_utf8_lossy(&body).into_owned() })
    }
}

/// What an error says about the request: surely not sent, or perhaps done.
fn failure_of(error: &reqwest::Error) -> Failure {
    if let Some(address) = cause::<AddressError>(error) {
        return Failure::Misconfigured(address.to_string());
    }
    if error.is_connect() {
        // A handshake that is only cut off has no such cause: that may pass by itself.
        if let Some(reason) = cause::<rustls::Error>(error) {
            return Failure::Misconfigured(format!("the certificate or the TLS of the ERP is not accepted: {reason}"));
        }
        return Failure::NotDelivered("no connection to the ERP could be made".to_owned());
    }
    if error.is_timeout() {
        return Failure::Unknown("the ERP did not answer in time".to_owned());
    }
    Failure::Unknown("the connection ended before the ERP's answer was complete".to_owned())
}

/// The first error of this type among the causes.
fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        // An I/O error that wraps another hides it from `source`.
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = inner.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source());
    }
    None
}

fn plain(error: &reqwest::Error) -> String {
    if error.is_builder() { "the request cannot be made of these settings".to_owned() } else { "no request".to_owned() }
}

/// What `Retry-After` asks for (RFC 9110, section 10.2.3): seconds, or a date. What is neither is as good as absent; a date
/// that is past means now.
pub(super) fn retry_after(headers: &HeaderMap, now: db::Instant) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More seconds than fit are very many.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::from(u32::MAX))));
    }
    let date = chrono::DateTime::parse_from_rfc2822(text).ok()?;
    Some((date.naive_utc() - now).to_std().unwrap_or_default())
}

/// Resolves names, and gives only addresses that may be connected to.
struct CheckedResolver {
    allow_private: bool,
}

#[derive(Debug, thiserror::Error)]
enum AddressError {
    #[error("the host name '{0}' cannot be resolved")]
    Unknown(String),
    #[error("{}", target::in_a_private_network(_0))]
    Private(String),
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_private = self.allow_private;
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found = tokio::net::lookup_host((host.as_str(), 0)).await.map(Iterator::collect::<Vec<SocketAddr>>);
            let Ok(addresses) = found else { return Err(AddressError::Unknown(host).into()) };
            // One bad address condemns the name: which of several is connected to is not for us to say.
            if !allow_private && addresses.iter().any(|address| !is_public(address.ip())) {
                return Err(AddressError::Private(host).into());
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use reqwest::header::{HeaderMap, HeaderValue, RETRY_AFTER};

    use super::{Client, retry_after};
    use crate::erp::Failure;

    fn read(value: &'static str) -> Option<u64> {
        let now = chrono::NaiveDate::from_ymd_opt(2026, 3, 2).and_then(|day| day.and_hms_opt(8, 0, 0)).expect("a date");
        let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(value))]);
        retry_after(&headers, now).map(|wait| wait.as_secs())
    }

    #[test]
    fn retry_after_is_read_in_all_its_forms_and_rubbish_is_not() {
        assert_eq!(read("0"), Some(0));
        assert_eq!(read(" 120 "), Some(120));
        assert_eq!(read("99999999999999999999999"), Some(u64::from(u32::MAX)));
        assert_eq!(read("Mon, 02 Mar 2026 08:01:30 GMT"), Some(90));
        assert_eq!(read("Mon, 02 Mar 2026 07:00:00 GMT"), Some(0));
        for rubbish in ["", "soon", "-5", "1.5", "Mon, 99 Mar 2026 08:01:30 GMT"] {
            assert_eq!(read(rubbish), None, "{rubbish}");
        }
    }

    #[actix_web::test]
    async fn a_private_target_is_refused_by_address_and_by_name() {
        let client = Client::new(Duration::from_secs(5), false);
        for url in
            ["https://127.0.0.1/x", "https://[::1]/x", "https://169.254.169.254/", "http://example.com/", "ftp://a.b/"]
        {
            assert!(matches!(client.check(url), Err(Failure::Misconfigured(_))), "{url}");
        }
        // The name passes the first check and is refused when it is resolved, before a connection is made.
        let url = client.check("https://localhost/x").expect("a name is checked later");
        let Err(Failure::Misconfigured(text)) = client.send(client.get(url)).await else {
            panic!("it was connected to")
        };
        assert!(text.contains("'localhost' is in a private network"), "{text}");
        let url = client.check("https://no-such-host.invalid/").expect("a name is checked later");
        let Err(Failure::Misconfigured(text)) = client.send(client.get(url)).await else {
            panic!("it was connected to")
        };
        assert!(text.contains("cannot be resolved"), "{text}");
    }
}
