//! Problems on their way out: from a [`Problem`] to the bytes of an HTTP answer (RFC 9457).

use std::fmt;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::ServiceResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use actix_web::{Error, HttpRequest, HttpResponse, ResponseError};

use crate::api::trace::TraceId;
use crate::problem::{Code, Problem};

/// The media type of every problem.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// The answer to `request` that says `problem`; `idempotency_key` is the valid key that the request came with, if any.
#[must_use]
pub fn problem_response(request: &HttpRequest, problem: &Problem, idempotency_key: Option<&str>) -> HttpResponse {
    write(problem, TraceId::of(request).as_str(), idempotency_key)
}

/// A problem as an error of actix, so that handlers and extractors can use `?`. The trace middleware fills in the trace id,
/// which is known to the request and not to the error.
#[derive(Debug)]
pub struct ProblemError {
    /// What is said.
    pub problem: Problem,
    /// The valid key that the request came with, if any.
    pub idempotency_key: Option<String>,
}

impl From<Problem> for ProblemError {
    fn from(problem: Problem) -> ProblemError {
        ProblemError { problem, idempotency_key: None }
    }
}

impl fmt::Display for ProblemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.problem.code.entry().name, self.problem.detail)
    }
}

impl ResponseError for ProblemError {
    fn status_code(&self) -> StatusCode {
        status(&self.problem)
    }

    fn error_response(&self) -> HttpResponse {
        write(&self.problem, TraceId::NONE, self.idempotency_key.as_deref())
    }
}

/// The answer to a request that ended with `error`. An error that is not ours is one of actix or of a crate beside it: of
/// its text only that about the client's own input is shown, the rest is logged.
pub(super) fn error_response(error: &Error, trace_id: &TraceId) -> HttpResponse {
    if let Some(ours) = error.as_error::<ProblemError>() {
        return write(&ours.problem, trace_id.as_str(), ours.idempotency_key.as_deref());
    }
    let status = error.as_response_error().status_code();
    let problem = match status.as_u16() {
        404 => Problem::new(Code::RouteNotFound, "No resource of this service has this path."),
        408 => Problem::new(Code::RequestTimeout, "The request did not arrive in time."),
        413 => Problem::new(Code::PayloadTooLarge, "The body is larger than this path allows."),
        415 => Problem::new(Code::UnsupportedMediaType, "The media type is not one that this path reads."),
        400..500 => Problem::new(Code::MalformedRequest, error.to_string()),
        _ => {
            log::error!(target: "order_service::fault", "trace_id={trace_id} error={:?}", error.to_string());
            Problem::new(Code::InternalError, "The service failed in a way that it did not expect.")
        }
    };
    write(&problem, trace_id.as_str(), None)
}

/// Gives an answer that was made from an error its final form, with the trace id. Other headers that it bears, such as
/// those of CORS, stay.
pub(super) fn finish_error<B: MessageBody + 'static>(
    response: ServiceResponse<B>,
    trace_id: &TraceId,
) -> ServiceResponse<BoxBody> {
    let Some(error) = response.response().error() else { return response.map_into_boxed_body() };
    let finished = error_response(error, trace_id);
    response.map_body(|head, _| {
        head.status = finished.status();
        for (name, value) in finished.headers() {
            head.headers_mut().insert(name.clone(), value.clone());
        }
        finished.into_body()
    })
}

fn write(problem: &Problem, trace_id: &str, idempotency_key: Option<&str>) -> HttpResponse {
    let mut response = HttpResponse::build(status(problem));
    response.insert_header((CONTENT_TYPE, PROBLEM_JSON));
    if let Some(seconds) = problem.after_seconds {
        response.insert_header((RETRY_AFTER, seconds.to_string()));
    }
    if problem.code == Code::Unauthenticated {
        response.insert_header((WWW_AUTHENTICATE, r#"Bearer realm="orders""#));
    }
    response.body(problem.body(trace_id, idempotency_key))
}

fn status(problem: &Problem) -> StatusCode {
    StatusCode::from_u16(problem.status()).expect("the catalogue holds HTTP status codes")
}

#[cfg(test)]
mod tests {
    use actix_web::body::to_bytes;
    use actix_web::test::TestRequest;
    use actix_web::{HttpMessage, HttpResponse};
    use serde_json::{Value, json};

    use super::problem_response;
    use crate::api::trace::TraceId;
    use crate::problem::{CATALOGUE, Code, Problem};

    async fn body(response: HttpResponse) -> Value {
        serde_json::from_slice(&to_bytes(response.into_body()).await.unwrap()).unwrap()
    }

    fn header<'a>(response: &'a HttpResponse, name: &str) -> Option<&'a str> {
        response.headers().get(name).map(|value| value.to_str().unwrap())
    }

    #[actix_web::test]
    async fn a_problem_becomes_problem_json_with_the_trace_and_the_key() {
        let request = TestRequest::default().to_http_request();
        let trace_id = TraceId::random();
        request.extensions_mut().insert(trace_id.clone());
        let response = problem_response(&request, &Problem::unavailable("The database is away.", 7), Some("k1"));
        assert_eq!(response.status(), 503);
        assert_eq!(header(&response, "content-type"), Some("application/problem+json"));
        assert_eq!(header(&response, "retry-after"), Some("7"));
        let body = body(response).await;
        assert_eq!(body["error"], json!("ServiceUnavailable"));
        assert_eq!(body["traceId"], json!(trace_id.as_str()));
        assert_eq!(body["idempotencyKey"], json!("k1"));
        assert_eq!(body["retry"], json!({"advised": true, "sameKey": true, "afterSeconds": 7}));
    }

    #[actix_web::test]
    async fn only_a_401_asks_for_credentials() {
        let request = TestRequest::default().to_http_request();
        for entry in CATALOGUE {
            let response = problem_response(&request, &Problem::new(entry.code, "x"), None);
            assert_eq!(response.status().as_u16(), entry.status);
            let asks = header(&response, "www-authenticate");
            assert_eq!(asks, (entry.code == Code::Unauthenticated).then_some(r#"Bearer realm="orders""#));
        }
    }
}
