//! The outermost middleware: each request gets a trace id (W3C Trace Context), one line in the log, and an answer even when
//! its handler panics.

use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::error::InternalError;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, HttpRequest, HttpResponse};
use futures_util::FutureExt;
use uuid::Uuid;

use crate::api::access::{AccessLine, RequestNotes};
use crate::api::answer::{self, ProblemError};
use crate::problem::{Code, Problem};

/// The header that tells the trace id of the present request, on every answer.
pub const X_TRACE_ID: HeaderName = HeaderName::from_static("x-trace-id");

/// The id of a trace: 32 lower-case hexadecimal digits, not all zero (W3C Trace Context, section 3.2.2.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceId(String);

impl TraceId {
    /// What stands where there is no trace: the id that the specification calls invalid.
    pub(super) const NONE: &str = "00000000000000000000000000000000";

    /// The trace id of this request, as the middleware put it there.
    #[must_use]
    pub fn of(request: &HttpRequest) -> TraceId {
        request.extensions().get::<TraceId>().cloned().unwrap_or_else(|| TraceId(TraceId::NONE.to_owned()))
    }

    /// A new id, for a request that came without one.
    #[must_use]
    pub fn random() -> TraceId {
        TraceId(Uuid::new_v4().simple().to_string())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id of a valid `traceparent`; a header that is absent, repeated or not valid starts a new trace (section 4.3).
    fn from_headers(headers: &HeaderMap) -> TraceId {
        let mut values = headers.get_all("traceparent");
        let given = match (values.next(), values.next()) {
            (Some(value), None) => trace_id_of(value.as_bytes()),
            _ => None,
        };
        given.unwrap_or_else(TraceId::random)
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `version "-" trace-id "-" parent-id "-" flags`, in lower-case hexadecimal. Version `ff` is forbidden; a version above
/// `00` may go on after another dash (section 3.2.4).
fn trace_id_of(traceparent: &[u8]) -> Option<TraceId> {
    let (known, rest) = traceparent.split_at_checked(55)?;
    let text = str::from_utf8(known).ok()?;
    let mut fields = text.split('-');
    let mut field = |length| fields.next().filter(|field| field.len() == length && is_lower_hex(field));
    let (version, trace_id, parent_id, _flags) = (field(2)?, field(32)?, field(16)?, field(2)?);
    let rest_allowed = rest.is_empty() || (version != "00" && rest.starts_with(b"-"));
    let zero = |field: &str| field.bytes().all(|byte| byte == b'0');
    let valid = version != "ff" && !zero(trace_id) && !zero(parent_id) && rest_allowed;
    valid.then(|| TraceId(trace_id.to_owned()))
}

fn is_lower_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The middleware. It puts the [`TraceId`] and the [`RequestNotes`] into the extensions of the request, gives errors their
/// final form, and logs and counts the request. The metrics are those in the app's data, where there are any.
///
/// # Errors
/// A panic, or an error of another middleware, as an error that holds the finished answer: by then the request is gone,
/// and an answer without its request is an error to actix.
pub async fn middleware(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let trace_id = TraceId::from_headers(request.headers());
    let notes = RequestNotes::default();
    let line = AccessLine::begin(&request, trace_id.clone(), notes.clone());
    request.extensions_mut().insert(trace_id.clone());
    request.extensions_mut().insert(notes);
    let ended = AssertUnwindSafe(async { next.call(request).await }).catch_unwind().await;
    let error = match ended {
        Ok(Ok(response)) => {
            let mut response = answer::finish_error(response, &trace_id);
            mark(response.headers_mut(), &trace_id);
            line.finish(response.status().as_u16(), response.request().match_pattern().as_deref());
            return Ok(response);
        }
        Ok(Err(error)) => error,
        Err(panic) => panicked(&*panic, &trace_id),
    };
    let mut response = answer::error_response(&error, &trace_id);
    mark(response.headers_mut(), &trace_id);
    line.finish(response.status().as_u16(), None);
    Err(without_request(error, response))
}

fn mark(headers: &mut HeaderMap, trace_id: &TraceId) {
    headers
        .insert(X_TRACE_ID, HeaderValue::from_str(trace_id.as_str()).expect("hexadecimal digits are a header value"));
}

fn without_request(error: Error, response: HttpResponse) -> Error {
    InternalError::from_response(error, response).into()
}

/// Logs a panic where its trace is still known; the client learns only that it was ours.
fn panicked(panic: &(dyn Any + Send), trace_id: &TraceId) -> Error {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text");
    log::error!(target: "order_service::fault", "trace_id={trace_id} panic={text:?}");
    let problem = Problem::new(Code::InternalError, "The service failed in a way that it did not expect.");
    ProblemError::from(problem).into()
}

#[cfg(test)]
mod tests;
