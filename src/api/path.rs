//! The parameters of a path, decoded, and nothing made of what cannot be decoded.

use actix_web::HttpRequest;
use percent_encoding::percent_decode_str;

use crate::problem::{Code, Problem};

/// The decoded parameters of the path.
///
/// # Errors
/// 400 `MalformedRequest` for percent-escapes that are not UTF-8, in which the router would see the same replacement
/// character for different bytes, and for U+0000, which no text of the database can hold.
pub fn params(request: &HttpRequest) -> Result<Vec<(String, String)>, Problem> {
    let path = percent_decode_str(request.uri().path())
        .decode_utf8()
        .map_err(|_| malformed("The path holds percent-escapes that are not UTF-8."))?;
    if path.contains('\0') {
        return Err(malformed("The path holds the character U+0000."));
    }
    // The router has decoded all but the escapes of '%', '/' and '+', which would have changed the path.
    let decoded = |value| percent_decode_str(value).decode_utf8_lossy().into_owned();
    Ok(request.match_info().iter().map(|(name, value)| (name.to_owned(), decoded(value))).collect())
}

/// The decoded parameter of a path that has one.
///
/// # Errors
/// As [`params`].
pub fn param(request: &HttpRequest) -> Result<String, Problem> {
    let params = params(request)?;
    params.into_iter().next().map(|(_, value)| value).ok_or_else(|| malformed("The path has no parameter."))
}

fn malformed(detail: &str) -> Problem {
    Problem::new(Code::MalformedRequest, detail)
}

#[cfg(test)]
mod tests {
    use actix_web::test::{TestRequest, init_service, read_body};
    use actix_web::{App, HttpRequest, HttpResponse, web};

    async fn echo(request: HttpRequest) -> HttpResponse {
        match super::param(&request) {
            Ok(value) => HttpResponse::Ok().body(value),
            Err(problem) => HttpResponse::BadRequest().body(problem.code.entry().name),
        }
    }

    async fn answer(path: &str) -> (u16, String) {
        let app = init_service(App::new().route("/stock/{sku}", web::get().to(echo))).await;
        let request = TestRequest::get().uri(path).to_request();
        let response = actix_web::test::call_service(&app, request).await;
        let status = response.status().as_u16();
        (status, String::from_utf8(read_body(response).await.to_vec()).unwrap())
    }

    #[actix_web::test]
    async fn every_character_can_be_in_a_parameter_when_it_is_escaped() {
        for (path, sku) in [
            ("/stock/ABC", "ABC"),
            ("/stock/A%2FB", "A/B"),
            ("/stock/A%252FB", "A%2FB"),
            ("/stock/a+b%2Bc%20d", "a+b+c d"),
            ("/stock/%C4%BE%F0%9F%A7%80", "ľ🧀"),
            ("/stock/%EF%BF%BD", "\u{fffd}"),
        ] {
            assert_eq!(answer(path).await, (200, sku.to_owned()), "{path}");
        }
    }

    #[actix_web::test]
    async fn what_is_not_text_is_malformed_and_never_replaced() {
        for path in ["/stock/%FF", "/stock/%C4", "/stock/a%00b"] {
            assert_eq!(answer(path).await, (400, "MalformedRequest".to_owned()), "{path}");
        }
    }
}
