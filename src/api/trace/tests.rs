//! The trace middleware round a small app: what is answered, what is logged and what is counted.

use std::sync::{Mutex, Once};

use actix_web::body::{MessageBody, to_bytes};
use actix_web::dev::{Service, ServiceResponse};
use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, init_service};
use actix_web::{App, Error, HttpRequest, HttpResponse, error, web};
use futures_util::FutureExt;
use serde_json::{Value, json};

use super::{TraceId, middleware, trace_id_of};
use crate::api::access::{ACCESS_LOG, RequestNotes};
use crate::api::answer::ProblemError;
use crate::metrics::{Metrics, Outcome, PoolConnections};
use crate::problem::Problem;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Everything that was logged in this process. Tests find their own lines by the trace id.
static LOGGED: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

struct Recorder;

impl log::Log for Recorder {
    fn enabled(&self, _: &log::Metadata) -> bool {
        true
    }

    fn log(&self, record: &log::Record) {
        LOGGED.lock().unwrap().push((record.target().to_owned(), record.args().to_string()));
    }

    fn flush(&self) {}
}

fn record_the_log() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::set_logger(&Recorder).expect("no other unit test sets a logger");
        log::set_max_level(log::LevelFilter::Info);
    });
}

fn logged(target: &str, trace_id: &str) -> Vec<String> {
    let of_this_trace = |line: &&(String, String)| line.0 == target && line.1.contains(trace_id);
    LOGGED.lock().unwrap().iter().filter(of_this_trace).map(|line| line.1.clone()).collect()
}

/// The line of a request, with its time replaced, after a check that there is exactly one.
fn access_line(trace_id: &str) -> String {
    let lines = logged(ACCESS_LOG, trace_id);
    assert_eq!(lines.len(), 1, "{lines:?}");
    let (before, after) = lines[0].split_once(" ms=").expect("the line tells the milliseconds");
    let (ms, after) = after.split_once(' ').expect("more follows the milliseconds");
    assert!(ms.parse::<f64>().is_ok_and(|ms| ms >= 0.0), "{ms}");
    format!("{before} ms=… {after}")
}

struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    metrics: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }
}

async fn order(request: HttpRequest) -> HttpResponse {
    let notes = RequestNotes::of(&request);
    notes.caller("acme", "web shop\n");
    notes.command("orders.create");
    notes.outcome(Outcome::Executed);
    HttpResponse::Created().body(TraceId::of(&request).as_str().to_owned())
}

async fn fault(request: HttpRequest) -> Result<HttpResponse, ProblemError> {
    RequestNotes::of(&request).command("orders.cancel");
    let error = ProblemError::from(Problem::unavailable("The database is away.", 3));
    Err(ProblemError { idempotency_key: Some("k1".to_owned()), ..error })
}

async fn foreign(_: web::Path<u32>) -> Result<HttpResponse, Error> {
    Err(error::ErrorInternalServerError("select secret from table"))
}

async fn panics(request: HttpRequest) -> HttpResponse {
    RequestNotes::of(&request).command("stock.put");
    panic!("a secret\nof the inside")
}

/// Sends one request through an app with the middleware, the way actix does it in production, errors included.
async fn send(request: TestRequest) -> Answer {
    record_the_log();
    let metrics = web::Data::new(Metrics::new(PoolConnections::default));
    let app = App::new()
        .app_data(metrics.clone())
        .wrap(from_fn(middleware))
        .route("/orders/{id}", web::post().to(order))
        .route("/fault", web::post().to(fault))
        .route("/foreign/{number}", web::post().to(foreign))
        .route("/panic", web::post().to(panics))
        .route("/never", web::post().to(std::future::pending::<HttpResponse>));
    let app = init_service(app).await;
    let response = match app.call(request.to_request()).await {
        Ok(response) => ServiceResponse::into_parts(response).1,
        Err(error) => error.error_response(),
    };
    let status = response.status().as_u16();
    let text = |value: &actix_web::http::header::HeaderValue| value.to_str().unwrap().to_owned();
    let headers = response.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    let body = to_bytes(response.into_body().boxed()).await.unwrap().to_vec();
    Answer { status, headers, body, metrics: metrics.render() }
}

fn post(path: &str) -> TestRequest {
    TestRequest::post().uri(path)
}

/// A traceparent of its own for each test, so that it finds its own lines in the log.
fn traced(request: TestRequest, trace_id: &str) -> TestRequest {
    request.insert_header(("traceparent", format!("00-{trace_id}-00f067aa0ba902b7-01")))
}

#[actix_web::test]
async fn a_valid_traceparent_is_taken_over_and_told_to_the_handler_the_client_and_the_log() {
    let trace_id = "00000000000000000000000000000a01";
    let answer = send(traced(post("/orders/secret-id?token=x"), trace_id).insert_header(("x-key", "s3cret"))).await;
    assert_eq!(answer.status, 201);
    assert_eq!(answer.header("x-trace-id"), Some(trace_id));
    assert_eq!(answer.body, trace_id.as_bytes());
    insta::assert_snapshot!(access_line(trace_id), @r#"trace_id=00000000000000000000000000000a01 tenant=acme client="web shop\n" command=orders.create outcome=executed status=201 ms=… method=POST route=/orders/{id}"#);
    assert!(answer.metrics.contains(r#"orders_commands_total{command="orders.create",outcome="executed"} 1"#));
    assert!(
        answer.metrics.contains(r#"orders_http_requests_total{method="POST",route="/orders/{id}",status="201"} 1"#)
    );
}

#[actix_web::test]
async fn without_a_traceparent_each_request_has_a_trace_of_its_own() {
    let (one, two) = (send(post("/orders/1")).await, send(post("/orders/1")).await);
    let one_id = one.header("x-trace-id").unwrap();
    assert!(one_id.len() == 32 && super::is_lower_hex(one_id) && one.body == one_id.as_bytes());
    assert_ne!(one.header("x-trace-id"), two.header("x-trace-id"));
}

#[actix_web::test]
async fn a_repeated_traceparent_starts_a_new_trace() {
    let repeated = post("/orders/1").append_header(("traceparent", TRACEPARENT));
    let answer = send(repeated.append_header(("traceparent", TRACEPARENT))).await;
    assert_ne!(answer.header("x-trace-id"), Some(TRACE));
}

#[actix_web::test]
async fn an_unknown_path_is_not_logged() {
    let trace_id = "00000000000000000000000000000a02";
    let answer =
        send(traced(TestRequest::with_uri("/x%0Astatus=200?a=b").method("BREW".parse().unwrap()), trace_id)).await;
    assert_eq!(answer.status, 404);
    insta::assert_snapshot!(access_line(trace_id), @"trace_id=00000000000000000000000000000a02 tenant=- client=- command=- outcome=- status=404 ms=… method=other route=none");
}

#[actix_web::test]
async fn a_problem_of_a_handler_bears_the_trace_and_counts_as_a_fault() {
    let trace_id = "00000000000000000000000000000a03";
    let answer = send(traced(post("/fault"), trace_id)).await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    assert_eq!(answer.header("retry-after"), Some("3"));
    let body = answer.json();
    assert_eq!((&body["traceId"], &body["idempotencyKey"]), (&json!(trace_id), &json!("k1")));
    assert!(access_line(trace_id).contains("command=orders.cancel outcome=fault status=503"));
    assert!(answer.metrics.contains(r#"orders_commands_total{command="orders.cancel",outcome="fault"} 1"#));
}

#[actix_web::test]
async fn an_error_of_the_inside_is_logged_and_not_shown() {
    let trace_id = "00000000000000000000000000000a04";
    let answer = send(traced(post("/foreign/1"), trace_id)).await;
    assert_eq!((answer.status, &answer.json()["error"]), (500, &json!("InternalError")));
    assert!(!String::from_utf8(answer.body).unwrap().contains("secret"));
    assert_eq!(logged("order_service::fault", trace_id).len(), 1);
}

#[actix_web::test]
async fn an_error_of_an_extractor_is_problem_json() {
    let answer = send(post("/foreign/one")).await;
    assert_eq!((answer.status, &answer.json()["error"]), (404, &json!("RouteNotFound")));
    assert_eq!(answer.json()["traceId"], json!(answer.header("x-trace-id").unwrap()));
}

#[actix_web::test]
async fn a_panic_becomes_a_500_with_the_trace_and_its_text_goes_to_the_log_on_one_line() {
    let trace_id = "00000000000000000000000000000a05";
    let answer = send(traced(post("/panic"), trace_id)).await;
    assert_eq!((answer.status, answer.header("x-trace-id")), (500, Some(trace_id)));
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    let body = answer.json();
    assert_eq!((&body["error"], &body["traceId"]), (&json!("InternalError"), &json!(trace_id)));
    assert!(!String::from_utf8(answer.body).unwrap().contains("secret"));
    let faults = logged("order_service::fault", trace_id);
    assert_eq!(faults, [format!(r#"trace_id={trace_id} panic="a secret\nof the inside""#)]);
    assert!(access_line(trace_id).contains("command=stock.put outcome=fault status=500"));
}

#[actix_web::test]
async fn a_request_that_is_dropped_before_its_answer_is_logged_as_abandoned() {
    let trace_id = "00000000000000000000000000000a06";
    // Polled once and dropped, as actix does with the request of a client that has left.
    let answer = send(traced(post("/never"), trace_id)).now_or_never();
    assert!(answer.is_none(), "the handler never answers");
    assert!(access_line(trace_id).contains("status=499"));
}

#[test]
fn only_a_valid_traceparent_names_a_trace() {
    let given = |text: &str| trace_id_of(text.as_bytes()).map(|id| id.as_str().to_owned());
    assert_eq!(given(TRACEPARENT).as_deref(), Some(TRACE));
    let future = format!("cc{}-what-the-future-holds", &TRACEPARENT[2..]);
    assert_eq!(given(&future).as_deref(), Some(TRACE));
    for bad in [
        "",
        "00",
        TRACE,
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-011",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
        "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",
        "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01",
        "00-4bf92f3577b34da6a3ce929d0e0e473\u{e9}-00f067aa0ba902b7-01",
    ] {
        assert_eq!(given(bad), None, "{bad}");
    }
}
