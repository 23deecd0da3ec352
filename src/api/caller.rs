//! Who asks: the bearer key of a request, checked against the database on every call, replays included.

use std::future::Future;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::http::header::AUTHORIZATION;
use actix_web::{FromRequest, HttpRequest, web};

use super::access::RequestNotes;
use super::answer::ProblemError;
use super::fault::problem_of;
use super::{State, accept};
use crate::api_key::{self, Principal};
use crate::problem::{Code, Problem};

/// The authenticated caller. A handler that names it in its signature cannot be reached without a valid key (401), nor by
/// more requests than the client may make (429), nor by a client that reads no JSON (406).
#[derive(Clone, Debug)]
pub struct Caller(pub Principal);

impl Caller {
    /// Checks that the key may do what `scope` covers.
    ///
    /// # Errors
    /// 403 `Forbidden` when it may not.
    pub fn require(&self, scope: &str) -> Result<(), Problem> {
        if self.0.has_scope(scope) {
            return Ok(());
        }
        Err(Problem::new(Code::Forbidden, format!("This needs the scope '{scope}', which the API key does not have.")))
    }
}

impl FromRequest for Caller {
    type Error = ProblemError;
    type Future = Pin<Box<dyn Future<Output = Result<Caller, ProblemError>>>>;

    fn from_request(request: &HttpRequest, _payload: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let principal = authenticate(&request).await?;
            RequestNotes::of(&request).caller(&principal.tenant_id, &principal.client_id);
            state(&request).limit.count(&principal)?;
            accept::check(&request)?;
            Ok(Caller(principal))
        })
    }
}

fn state(request: &HttpRequest) -> &State {
    request.app_data::<web::Data<State>>().expect("the app is built with its state")
}

async fn authenticate(request: &HttpRequest) -> Result<Principal, Problem> {
    let key = bearer_key(request)?.to_owned();
    let principal = state(request).pools.reads.run(move |db| api_key::authenticate(db, &key)).await;
    principal
        .map_err(|fault| problem_of(request, &fault))?
        .ok_or_else(|| Problem::new(Code::Unauthenticated, "The API key is not known, or it was revoked."))
}

/// The credentials of `Authorization: Bearer <key>` (RFC 6750, section 2.1). The scheme is compared without case.
fn bearer_key(request: &HttpRequest) -> Result<&str, Problem> {
    let refuse = |detail: &str| Problem::new(Code::Unauthenticated, detail);
    let mut values = request.headers().get_all(AUTHORIZATION);
    let value = values.next().ok_or_else(|| refuse("The request has no Authorization header."))?;
    if values.next().is_some() {
        return Err(refuse("The request has more than one Authorization header."));
    }
    value
        .to_str()
        .ok()
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, key)| scheme.eq_ignore_ascii_case("bearer") && !key.trim().is_empty())
        .map(|(_, key)| key.trim())
        .ok_or_else(|| refuse("The Authorization header is not 'Bearer <api key>'."))
}
