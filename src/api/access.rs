//! The line that is logged for each request, and the metrics that are counted with it: one line, whatever happens to the
//! request, and in it nothing that a client could use to forge another line.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::time::Instant;

use actix_web::dev::ServiceRequest;
use actix_web::http::Method;
use actix_web::{HttpMessage, HttpRequest, web};

use crate::api::trace::TraceId;
use crate::metrics::{Metrics, Outcome};

/// The target of the access log, for `RUST_LOG`.
pub const ACCESS_LOG: &str = "order_service::access";

/// The status in the log of a request that the client left before it was answered, or that a stop cut off. The number
/// is the one of nginx; it is never sent.
const ABANDONED: u16 = 499;

/// The route of what no route matches; the path itself is the client's and is not logged.
const NO_ROUTE: &str = "none";

/// What the handlers know about a request and the log line needs. It lives in the extensions of the request.
#[derive(Clone, Debug, Default)]
pub struct RequestNotes(Rc<RefCell<Notes>>);

#[derive(Clone, Debug, Default)]
struct Notes {
    tenant: Option<String>,
    client: Option<String>,
    command: Option<&'static str>,
    outcome: Option<Outcome>,
}

impl RequestNotes {
    /// The notes of this request. Without the trace middleware they are kept nowhere.
    #[must_use]
    pub fn of(request: &HttpRequest) -> RequestNotes {
        request.extensions().get::<RequestNotes>().cloned().unwrap_or_default()
    }

    /// Who asks: the names or ids of the tenant and of its client.
    pub fn caller(&self, tenant: &str, client: &str) {
        let mut notes = self.0.borrow_mut();
        notes.tenant = Some(tenant.to_owned());
        notes.client = Some(client.to_owned());
    }

    /// Which command it is, such as `orders.create`.
    pub fn command(&self, command: &'static str) {
        self.0.borrow_mut().command = Some(command);
    }

    /// How the command ended. A command that was named and ended with a 5xx without an outcome is a fault.
    pub fn outcome(&self, outcome: Outcome) {
        self.0.borrow_mut().outcome = Some(outcome);
    }
}

/// The line of one request, begun with its head. When it is dropped before [`AccessLine::finish`] it is logged as that of
/// an abandoned request.
pub(super) struct AccessLine {
    started: Instant,
    trace_id: TraceId,
    method: &'static str,
    notes: RequestNotes,
    metrics: Option<web::Data<Metrics>>,
    finished: bool,
}

impl AccessLine {
    pub(super) fn begin(request: &ServiceRequest, trace_id: TraceId, notes: RequestNotes) -> AccessLine {
        let metrics = request.app_data::<web::Data<Metrics>>().cloned();
        let method = known_method(request.method());
        AccessLine { started: Instant::now(), trace_id, method, notes, metrics, finished: false }
    }

    /// Logs and counts the request; `route` is its template, `None` where no route matched.
    pub(super) fn finish(mut self, status: u16, route: Option<&str>) {
        self.write(status, route.unwrap_or(NO_ROUTE));
    }

    fn write(&mut self, status: u16, route: &str) {
        self.finished = true;
        let took = self.started.elapsed();
        let notes = self.notes.0.borrow();
        let fault = (notes.command.is_some() && (500..600).contains(&status)).then_some(Outcome::Fault);
        let outcome = notes.outcome.or(fault);
        if let Some(metrics) = &self.metrics {
            metrics.count_request(self.method, route, status, took);
            if let (Some(command), Some(outcome)) = (notes.command, outcome) {
                metrics.count_command(command, outcome);
            }
        }
        log::info!(
            target: ACCESS_LOG,
            "trace_id={} tenant={} client={} command={} outcome={} status={status} ms={:.1} method={} route={}",
            self.trace_id,
            Escaped(notes.tenant.as_deref()),
            Escaped(notes.client.as_deref()),
            notes.command.unwrap_or("-"),
            outcome.map_or("-", Outcome::as_str),
            took.as_secs_f64() * 1000.0,
            self.method,
            Escaped(Some(route)),
        );
    }
}

impl Drop for AccessLine {
    fn drop(&mut self) {
        if !self.finished {
            self.write(ABANDONED, NO_ROUTE);
        }
    }
}

/// A client may invent methods without end, so that those that HTTP does not know share one name.
fn known_method(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}

/// A value of the log line: `-` where there is none, and quoted and escaped where a reader could take it for more than
/// one value or one line.
struct Escaped<'a>(Option<&'a str>);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0.map_or(Cow::Borrowed("-"), Cow::Borrowed);
        let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'=' | b'\\');
        if !value.is_empty() && value.bytes().all(plain) { f.write_str(&value) } else { write!(f, "{value:?}") }
    }
}

#[cfg(test)]
mod tests {
    use super::Escaped;

    #[test]
    fn a_value_cannot_pretend_to_be_another_value_or_another_line() {
        for (value, shown) in [
            ("shop", "shop"),
            ("/v1/orders/{orderId}", "/v1/orders/{orderId}"),
            ("", r#""""#),
            ("a b", r#""a b""#),
            ("x status=200", r#""x status=200""#),
            ("x\nstatus=200", r#""x\nstatus=200""#),
            ("\u{1b}[31m", r#""\u{1b}[31m""#),
            ("\u{2028}\u{202e}", r#""\u{2028}\u{202e}""#),
            ("a\"b", r#""a\"b""#),
        ] {
            assert_eq!(Escaped(Some(value)).to_string(), shown);
        }
        assert_eq!(Escaped(None).to_string(), "-");
    }
}
