//! The edge of every command: the checks before the claim, in the order of the contract, then the spine, then the answer.

use std::time::{Duration, Instant, SystemTime};

use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderName, HeaderValue, HttpDate, LOCATION, RETRY_AFTER};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;

use super::access::RequestNotes;
use super::answer::ProblemError;
use super::caller::Caller;
use super::fault::problem_of;
use super::prepared::{Prepared, prepare};
use super::trace::TraceId;
use super::{State, body, prefer};
use crate::command::gate::NoTurn;
use crate::command::key::IdempotencyKey;
use crate::command::reply::operation_path;
use crate::command::{self, Answer, Call, Command, Recorded, claim};
use crate::db;
use crate::metrics::Outcome;
use crate::problem::{Links, Problem};

/// Handles one request of command `C`.
///
/// # Errors
/// Every answer that is a problem and was not recorded.
pub async fn handle<C: Command + Clone>(
    request: HttpRequest,
    payload: web::Payload,
    state: web::Data<State>,
    caller: Caller,
) -> Result<HttpResponse, ProblemError> {
    let notes = RequestNotes::of(&request);
    notes.command(C::SPEC.name);
    caller.require(C::SPEC.scope)?;
    let key = key_of(&request)?;
    let wait = prefer::wait(request.headers()).map(|wait| wait.min(state.config.wait_limit));
    let patience = wait.unwrap_or(state.config.wait_limit);
    let answered = carry_out::<C>(&request, payload, &state, &caller, &key, patience).await;
    if let Some(outcome) = outcome_of(&answered) {
        notes.outcome(outcome);
    }
    answered
        .and_then(|answered| respond(answered, key.as_str()))
        .map(|response| with_preference(response, wait))
        .map_err(|problem| ProblemError { problem, idempotency_key: Some(key.as_str().to_owned()) })
}

/// An answer of the spine, and the operation that it is about.
struct Answered {
    answer: Answer,
    operation_id: String,
}

/// The rest of the checks in the order of the contract, the first that fails answers: after 401, 403 and the key come 415 and
/// 413, the malformed body, and then the claim.
async fn carry_out<C: Command + Clone>(
    request: &HttpRequest,
    payload: web::Payload,
    state: &State,
    caller: &Caller,
    key: &IdempotencyKey,
    patience: Duration,
) -> Result<Answered, Problem> {
    let arrived = Instant::now();
    let deadline = arrived + patience;
    let bytes = body::read(request, payload, state.config.max_body, state.config.body_timeout).await?;
    let Prepared { intent, fingerprint, member_digests, command } =
        prepare::<C>(request, bytes, &state.large_bodies).await?;
    let (tenant_id, client_id) = (&caller.0.tenant_id, &caller.0.client_id);
    let operation_id = claim::operation_id(tenant_id, client_id, C::SPEC.name, key.as_str());
    let turn = match state.gate.enter(&operation_id, deadline).await {
        Ok(turn) => turn,
        Err(NoTurn::AtWork) => return Ok(Answered { answer: Answer::InProgress, operation_id }),
        Err(NoTurn::Unknown) => {
            return Err(Problem::unavailable("A request with the same key waits for the database.", 1));
        }
    };
    let call = Call {
        tenant_id: tenant_id.clone(),
        client_id: client_id.clone(),
        command: C::SPEC.name,
        key: key.clone(),
        operation_id: operation_id.clone(),
        member_digests,
        fingerprint,
        intent,
        trace_id: TraceId::of(request).as_str().to_owned(),
        deadline: arrived + patience.saturating_sub((patience / 10).min(HEAD_START)),
        turn,
        retention: state.retention,
    };
    let answer = state.pools.writes.run(move |db| command::run_patiently(db, &call, &command)).await;
    answer.map(|answer| Answered { answer, operation_id }).map_err(|fault| problem_of(request, &fault))
}

/// The one of the rivals that asks the database hears a moment before the others' patience ends that the key is at work, so
/// that they can be told.
const HEAD_START: Duration = Duration::from_millis(100);

fn key_of(request: &HttpRequest) -> Result<IdempotencyKey, Problem> {
    let values: Vec<&[u8]> = request.headers().get_all("idempotency-key").map(HeaderValue::as_bytes).collect();
    IdempotencyKey::from_headers(&values)
}

/// How the log and the metrics name what became of a command; nothing for requests that never reached the claim.
fn outcome_of(result: &Result<Answered, Problem>) -> Option<Outcome> {
    match result {
        Ok(answered) => Some(match &answered.answer {
            Answer::First { refused: false, .. } => Outcome::Executed,
            Answer::First { refused: true, .. } => Outcome::Refused,
            Answer::Replay { .. } => Outcome::Replayed,
            Answer::Conflict(_) => Outcome::Conflict,
            Answer::Expired(_) => Outcome::Expired,
            Answer::InProgress => Outcome::InProgress,
        }),
        Err(problem) => (problem.status() >= 500).then_some(Outcome::Fault),
    }
}

fn respond(answered: Answered, key: &str) -> Result<HttpResponse, Problem> {
    match answered.answer {
        Answer::First { recorded, expires, .. } => Ok(recorded_response(recorded, key, expires, false)),
        Answer::Replay { recorded, expires } => Ok(recorded_response(recorded, key, expires, true)),
        Answer::Conflict(problem) | Answer::Expired(problem) => Err(*problem),
        Answer::InProgress => Ok(in_progress(&answered.operation_id, key)),
    }
}

/// Tells the client that its `Prefer: wait` was heeded (RFC 7240, section 3).
fn with_preference(mut response: HttpResponse, wait: Option<Duration>) -> HttpResponse {
    if let Some((name, value)) = wait.map(prefer::applied)
        && let Ok(value) = HeaderValue::from_str(&value)
    {
        response.headers_mut().insert(HeaderName::from_static(name), value);
    }
    response
}

fn recorded_response(recorded: Recorded, key: &str, expires: db::Instant, replayed: bool) -> HttpResponse {
    let status = StatusCode::from_u16(recorded.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = HttpResponse::build(status);
    response.content_type(recorded.content_type);
    if let Some(location) = recorded.location {
        response.insert_header((LOCATION, location));
    }
    response.insert_header(("Idempotency-Key", key));
    response.insert_header(("Idempotent-Replayed", if replayed { "true" } else { "false" }));
    response.insert_header(("Idempotency-Expires", HttpDate::from(SystemTime::from(expires.and_utc()))));
    response.body(recorded.body)
}

/// 202: the key is at work, and stayed so past the wait limit.
fn in_progress(operation_id: &str, key: &str) -> HttpResponse {
    let mut response = HttpResponse::Accepted();
    response.insert_header(("Idempotency-Key", key));
    response.insert_header((RETRY_AFTER, RETRY_AFTER_SECONDS)).json(InProgress {
        status: "processing",
        operation_id,
        links: Links::default().with("operation", operation_path(operation_id)),
    })
}

/// A command takes milliseconds; a rival that is still at work after the wait limit is worth a look every second.
const RETRY_AFTER_SECONDS: u64 = 1;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InProgress<'a> {
    status: &'static str,
    operation_id: &'a str,
    links: Links,
}
