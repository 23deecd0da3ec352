//! `/healthz`: the process is alive. `/readyz`: it can do its work.

use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::json;

use super::State;
use super::answer::ProblemError;
use super::fault::problem_of;
use crate::db::{self, Fault};
use crate::problem::Problem;

/// Answers `GET /healthz`; asks nothing of the database, so that a database that is away gets nobody restarted.
pub async fn alive() -> HttpResponse {
    HttpResponse::Ok().json(json!({ "status": "ok" }))
}

/// Answers `GET /readyz`: the database can be reached and has every migration that this program knows.
///
/// # Errors
/// 503 when it does not.
pub async fn ready(request: HttpRequest, state: web::Data<State>) -> Result<HttpResponse, ProblemError> {
    Ok(is_ready(&request, &state).await?)
}

async fn is_ready(request: &HttpRequest, state: &State) -> Result<HttpResponse, Problem> {
    let pending =
        state.pools.reads.run(|db| db::migrations_pending(db).map_err(|error| Fault::Bug(error.to_string()))).await;
    match pending {
        Ok(false) => Ok(HttpResponse::Ok().json(json!({ "status": "ready" }))),
        Ok(true) => Err(Problem::unavailable("The database lacks migrations; run 'order-service migrate'.", 5)),
        Err(Fault::Bug(message)) => {
            log::error!("readiness: {message}");
            Err(Problem::unavailable("The database cannot be used right now.", 5))
        }
        Err(fault) => Err(problem_of(request, &fault)),
    }
}
