//! What a request asks for, read and checked before anybody asks the database. All of it is computation; a large body is
//! computed on a blocking thread, a few at a time, so that it holds up neither the other requests nor the memory.

use std::sync::Arc;

use actix_web::http::header::{HeaderName, IF_MATCH, IF_NONE_MATCH};
use actix_web::{HttpRequest, web};
use tokio::sync::Semaphore;

use super::path;
use crate::command::fingerprint::{Fingerprint, Intent};
use crate::command::{Command, difference};
use crate::json::{self, Json};
use crate::problem::{Code, Kept, Problem};

/// Bytes of a body up to which it is read where it arrived: a usual order takes some ten microseconds.
const SMALL: usize = 32 * 1024;

/// A command that was understood, or that is refused because its body is not valid.
#[derive(Debug)]
pub struct Prepared<C> {
    /// What is asked for.
    pub intent: Intent,
    /// Its fingerprint.
    pub fingerprint: Fingerprint,
    /// The keyed digests of the body's members, for a later conflict.
    pub member_digests: String,
    /// The command, or the refusal that is recorded in its place.
    pub command: Result<C, Problem>,
}

/// How many large bodies may be computed at a time.
#[derive(Clone, Debug)]
pub struct LargeBodies(Arc<Semaphore>);

impl LargeBodies {
    /// As many as there are workers.
    #[must_use]
    pub fn at_most(workers: usize) -> LargeBodies {
        LargeBodies(Arc::new(Semaphore::new(workers)))
    }
}

/// Reads `bytes` as the body of a command `C`.
///
/// # Errors
/// A problem that is never recorded: malformed JSON, a path that is not text, a precondition that is missing.
pub async fn prepare<C: Command>(
    request: &HttpRequest,
    bytes: web::Bytes,
    large: &LargeBodies,
) -> Result<Prepared<C>, Problem> {
    let parameters = path::params(request)?;
    let [if_match, if_none_match] = [IF_MATCH, IF_NONE_MATCH].map(|name| header_text(request, name));
    let is_small = bytes.len() <= SMALL;
    let compute = move || {
        let body = parse_body::<C>(&bytes)?;
        let (method, route, table) = (C::SPEC.method.as_str(), C::SPEC.route, C::SPEC.body);
        understand(Intent { method, route, parameters, if_match, if_none_match, table, body })
    };
    if is_small {
        return compute();
    }
    let _turn = large.0.acquire().await.expect("the semaphore is never closed");
    // A panic goes on where the trace of the request is known.
    web::block(compute).await.expect("the computation of a body does not panic")
}

fn understand<C: Command>(intent: Intent) -> Result<Prepared<C>, Problem> {
    let command = C::parse(&intent);
    if let Err(problem) = &command
        && problem.code.entry().kept == Kept::NotRecorded
    {
        return Err(problem.clone());
    }
    let fingerprint = Fingerprint::of(&intent);
    let member_digests = difference::member_digests(&intent, &fingerprint);
    Ok(Prepared { intent, fingerprint, member_digests, command })
}

fn parse_body<C: Command>(bytes: &[u8]) -> Result<Json, Problem> {
    if C::SPEC.body_may_be_empty && bytes.is_empty() {
        return Ok(Json::Object(Vec::new()));
    }
    json::parse(bytes).map_err(|malformed| Problem::new(Code::MalformedRequest, malformed.to_string()))
}

/// A header as it was sent, several lines of it joined (RFC 9110, section 5.3).
fn header_text(request: &HttpRequest, name: HeaderName) -> Option<String> {
    let lines: Vec<_> =
        request.headers().get_all(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
    (!lines.is_empty()).then(|| lines.join(", "))
}
