//! The contract document (OpenAPI 3.1), generated from the code, and Swagger UI on top of it.

use actix_web::http::header::LOCATION;
use actix_web::{HttpResponse, web};
use utoipa::openapi::{InfoBuilder, OpenApi, OpenApiBuilder};
use utoipa_swagger_ui::{Config, SwaggerUi};

/// The document as it is served, and as it stands in `openapi/openapi.json`.
///
/// # Panics
/// Never: the document holds only JSON.
#[must_use]
pub fn text() -> String {
    let mut text = document().to_pretty_json().expect("the document holds only JSON");
    text.push('\n');
    text
}

/// Answers `GET /openapi.json`.
pub async fn serve() -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(text())
}

/// Adds Swagger UI at `/docs/`, and the way from `/docs` to it.
pub fn configure_swagger_ui(service: &mut web::ServiceConfig) {
    service.route(
        "/docs",
        web::get().to(|| async { HttpResponse::PermanentRedirect().insert_header((LOCATION, "/docs/")).finish() }),
    );
    service.service(SwaggerUi::new("/docs/{_:.*}").config(Config::from("/openapi.json")));
}

fn document() -> OpenApi {
    OpenApiBuilder::new().info(InfoBuilder::new().title("Order service").version(env!("CARGO_PKG_VERSION"))).build()
}
