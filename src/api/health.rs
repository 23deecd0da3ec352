//! `/healthz`: the process is alive. `/readyz`: it can do its work.

use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::json;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};

use super::State;
use super::answer::ProblemError;
use super::document::schemas::{Schemas, one_of};
use super::fault::problem_of;
use super::read::{Access, Read};
use crate::db::{self, Fault};
use crate::problem::{Code, Problem};

/// `GET /healthz`.
pub static ALIVE: Read = Read {
    path: "/healthz",
    route: || web::route().to(alive),
    name: "healthAlive",
    tag: "service",
    access: Access::Open,
    summary: "Is the process alive?",
    description: "Asks nothing of the database, so that a database that is away gets nobody restarted.",
    query: &[],
    headers: &[],
    answer: |schemas| state(schemas, "Alive", "ok"),
    example: || r#"{"status":"ok"}"#.to_owned(),
    answer_headers: &[],
    problems: &[],
};

/// `GET /readyz`.
pub static READY: Read = Read {
    path: "/readyz",
    route: || web::route().to(ready),
    name: "healthReady",
    tag: "service",
    access: Access::Open,
    summary: "Can the process do its work?",
    description: "The database can be reached, and has every migration that this program knows.",
    query: &[],
    headers: &[],
    answer: |schemas| state(schemas, "Ready", "ready"),
    example: || r#"{"status":"ready"}"#.to_owned(),
    answer_headers: &[],
    problems: &[Code::ServiceUnavailable],
};

fn state(schemas: &mut Schemas, name: &str, word: &str) -> RefOr<Schema> {
    let status = one_of(&[word], "The one word of a good answer.");
    let make = |_: &mut Schemas| {
        ObjectBuilder::new().schema_type(Type::Object).property("status", status).required("status").build().into()
    };
    schemas.named(name, make).into()
}

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
