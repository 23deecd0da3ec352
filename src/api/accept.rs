//! What the client can read: every answer is JSON, and a client that refuses JSON is told so before anything happens.

use actix_web::HttpRequest;
use actix_web::http::header::{ACCEPT, Accept, Header, Quality};

use crate::problem::{Code, Problem};

/// Checks that the client accepts JSON (RFC 9110, section 12.5.1). A header that cannot be read is ignored, and
/// `application/problem+json` counts as JSON: who reads the one can read the other.
///
/// # Errors
/// 406 `NotAcceptable`.
pub fn check(request: &HttpRequest) -> Result<(), Problem> {
    if !request.headers().contains_key(ACCEPT) {
        return Ok(());
    }
    let Ok(accept) = Accept::parse(request) else { return Ok(()) };
    let accepted = accept.is_empty()
        || accept.iter().filter(|range| range.quality > Quality::ZERO).any(|range| {
            matches!(
                range.item.essence_str(),
                "*/*" | "application/*" | "application/json" | "application/problem+json"
            )
        });
    if accepted {
        return Ok(());
    }
    Err(Problem::new(Code::NotAcceptable, "The Accept header excludes application/json."))
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn is_accepted(accept: &str) -> bool {
        check(&TestRequest::default().insert_header((ACCEPT, accept)).to_http_request()).is_ok()
    }

    #[test]
    fn json_is_accepted_under_each_of_its_names() {
        assert!(check(&TestRequest::default().to_http_request()).is_ok());
        for accept in [
            "*/*",
            "application/json",
            "text/html, */*;q=0.1",
            "application/*",
            "application/json; q=0.5",
            "rubbish",
            "",
        ] {
            assert!(is_accepted(accept), "{accept}");
        }
    }

    #[test]
    fn a_client_that_reads_no_json_is_refused() {
        for accept in ["text/html", "application/xml", "application/json;q=0", "image/*"] {
            assert!(!is_accepted(accept), "{accept}");
        }
    }
}
