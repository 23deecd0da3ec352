//! Reading the body of a request: only plain JSON, only so many bytes, and only so long. The bytes are given on as they
//! came; whether they are JSON is decided elsewhere.

use std::time::Duration;

use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap};
use actix_web::web::{Bytes, BytesMut, Payload};
use actix_web::{HttpMessage, HttpRequest};
use futures_util::StreamExt;
use tokio::time;

use crate::problem::{Code, Problem};

/// What the head of the request says about the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Declared {
    Json,
    /// Nothing, which is allowed where the body turns out to be empty.
    Nothing,
}

/// Reads the whole body, of at most `limit` bytes. `timeout` is one deadline for all of it, so that a client that sends a
/// byte now and then gains nothing. Without a body and without a `Content-Type` the result is empty.
///
/// # Errors
/// In this order: `UnsupportedMediaType` for what is not plain `application/json` in UTF-8; `PayloadTooLarge`, at once
/// where the length is declared, else with the first byte too many; `RequestTimeout` when the deadline passes;
/// `MalformedRequest` when the body breaks off. What is left of the body is not read: the connection ends after the answer.
pub async fn read(request: &HttpRequest, payload: Payload, limit: usize, timeout: Duration) -> Result<Bytes, Problem> {
    let declared = declared_type(request)?;
    let length = declared_length(request.headers());
    if declared == Declared::Nothing && length.is_some_and(|length| length > 0) {
        return Err(without_type());
    }
    if length.is_some_and(|length| length > limit as u64) {
        return Err(too_large(limit));
    }
    let collected = time::timeout(timeout, collect(payload, declared, limit)).await;
    collected.unwrap_or_else(|_| Err(too_slow(timeout)))
}

async fn collect(mut payload: Payload, declared: Declared, limit: usize) -> Result<Bytes, Problem> {
    let mut body = BytesMut::new();
    while let Some(chunk) = payload.next().await {
        let chunk = chunk.map_err(|_| Problem::new(Code::MalformedRequest, "The body broke off before its end."))?;
        if declared == Declared::Nothing && !chunk.is_empty() {
            return Err(without_type());
        }
        if chunk.len() > limit - body.len() {
            return Err(too_large(limit));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

fn declared_type(request: &HttpRequest) -> Result<Declared, Problem> {
    let plain = |value: &[u8]| value.eq_ignore_ascii_case(b"identity");
    if !request.headers().get_all(CONTENT_ENCODING).all(|value| plain(value.as_bytes())) {
        return Err(unsupported("The body has a Content-Encoding."));
    }
    if request.headers().get_all(CONTENT_TYPE).count() > 1 {
        return Err(unsupported("The Content-Type header is repeated."));
    }
    let Ok(media_type) = request.mime_type() else {
        return Err(unsupported("The Content-Type header cannot be understood."));
    };
    let Some(media_type) = media_type else { return Ok(Declared::Nothing) };
    if media_type.essence_str() != "application/json" {
        return Err(unsupported("The Content-Type is not application/json."));
    }
    // JSON is UTF-8 (RFC 8259, section 8.1); a body that claims another charset would be read wrongly.
    match media_type.get_param("charset") {
        Some(charset) if charset != "utf-8" => Err(unsupported("The charset of the Content-Type is not utf-8.")),
        _ => Ok(Declared::Json),
    }
}

fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn unsupported(detail: &str) -> Problem {
    Problem::new(Code::UnsupportedMediaType, detail)
}

fn without_type() -> Problem {
    unsupported("The request has a body and no Content-Type.")
}

fn too_large(limit: usize) -> Problem {
    Problem::new(Code::PayloadTooLarge, format!("The body has more than {limit} bytes."))
}

fn too_slow(timeout: Duration) -> Problem {
    let detail = format!("The body did not arrive within {}.", humantime::format_duration(timeout));
    Problem { after_seconds: Some(1), ..Problem::new(Code::RequestTimeout, detail) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use actix_web::FromRequest;
    use actix_web::dev::Payload;
    use actix_web::error::PayloadError;
    use actix_web::test::TestRequest;
    use actix_web::web::{self, Bytes};
    use futures_util::{Stream, StreamExt, stream};

    use super::read;
    use crate::problem::{Code, Problem};

    type Chunk = Result<Bytes, PayloadError>;

    fn of(chunks: &[&'static str]) -> impl Stream<Item = Chunk> + 'static {
        let chunks: Vec<Chunk> = chunks.iter().map(|chunk| Ok(Bytes::from_static(chunk.as_bytes()))).collect();
        stream::iter(chunks)
    }

    /// A body of which any read is a failure of the test.
    fn untouched() -> impl Stream<Item = Chunk> + 'static {
        stream::poll_fn(|_| panic!("the body was read"))
    }

    /// Reads with a limit of 10 bytes and 50 ms.
    async fn read_body(
        headers: &[(&str, &str)],
        chunks: impl Stream<Item = Chunk> + 'static,
    ) -> Result<Bytes, Problem> {
        let mut request = TestRequest::post();
        for header in headers {
            request = request.append_header(*header);
        }
        let request = request.to_http_request();
        let stream: std::pin::Pin<Box<dyn Stream<Item = Chunk>>> = Box::pin(chunks);
        let payload = web::Payload::from_request(&request, &mut Payload::from(stream)).await.expect("never fails");
        read(&request, payload, 10, Duration::from_millis(50)).await
    }

    async fn refusal(headers: &[(&str, &str)], chunks: impl Stream<Item = Chunk> + 'static) -> Code {
        read_body(headers, chunks).await.expect_err("this body is refused").code
    }

    const JSON: (&str, &str) = ("content-type", "application/json");

    #[actix_web::test]
    async fn a_json_body_is_given_on_as_it_came() {
        for media_type in [
            "application/json",
            "APPLICATION/JSON",
            "application/json; charset=utf-8",
            "application/json;charset=\"UTF-8\"",
            "application/json; profile=x",
        ] {
            let body = read_body(&[("content-type", media_type)], of(&["{\"a\":", "", " 1}"])).await;
            assert_eq!(body.expect(media_type), "{\"a\": 1}");
        }
        let plain = [JSON, ("content-encoding", "Identity")];
        assert_eq!(read_body(&plain, of(&["{}"])).await.expect("identity is none"), "{}");
    }

    #[actix_web::test]
    async fn an_empty_body_needs_no_type() {
        assert_eq!(read_body(&[], of(&[])).await.expect("an empty body"), "");
        assert_eq!(read_body(&[("content-length", "0")], of(&[""])).await.expect("an empty body"), "");
        assert_eq!(read_body(&[JSON], of(&[])).await.expect("an empty body"), "");
    }

    #[actix_web::test]
    async fn another_media_type_is_refused_before_the_body_is_read() {
        for media_type in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "application/jsonp",
            "application/vnd.api+json",
            "application/json; charset=utf-16",
            "application/json; charset=iso-8859-1",
            "json",
            "",
            "*/*",
        ] {
            let code = refusal(&[("content-type", media_type)], untouched()).await;
            assert_eq!(code, Code::UnsupportedMediaType, "{media_type}");
        }
        assert_eq!(refusal(&[JSON, JSON], untouched()).await, Code::UnsupportedMediaType);
        for encoding in ["gzip", "br", "gzip, identity", ""] {
            let headers = [JSON, ("content-encoding", encoding)];
            assert_eq!(refusal(&headers, untouched()).await, Code::UnsupportedMediaType, "{encoding}");
        }
    }

    #[actix_web::test]
    async fn a_body_without_a_type_is_refused_at_once_or_with_its_first_byte() {
        assert_eq!(refusal(&[("content-length", "2")], untouched()).await, Code::UnsupportedMediaType);
        let chunked = of(&["", "x"]).chain(untouched());
        assert_eq!(refusal(&[("transfer-encoding", "chunked")], chunked).await, Code::UnsupportedMediaType);
    }

    #[actix_web::test]
    async fn a_body_that_is_declared_too_large_is_refused_before_it_is_read() {
        assert_eq!(refusal(&[JSON, ("content-length", "11")], untouched()).await, Code::PayloadTooLarge);
        let huge = ("content-length", "18446744073709551615");
        assert_eq!(refusal(&[JSON, huge], untouched()).await, Code::PayloadTooLarge);
    }

    #[actix_web::test]
    async fn a_chunked_body_is_refused_with_the_first_byte_too_many() {
        assert_eq!(read_body(&[JSON], of(&["12345", "67890"])).await.expect("the limit is allowed"), "1234567890");
        let too_large = of(&["12345", "67890", "1"]).chain(untouched());
        assert_eq!(refusal(&[JSON], too_large).await, Code::PayloadTooLarge);
        assert_eq!(refusal(&[JSON], of(&["12345678901"])).await, Code::PayloadTooLarge);
    }

    #[actix_web::test]
    async fn the_media_type_is_looked_at_before_the_length() {
        let headers = [("content-type", "text/plain"), ("content-length", "11")];
        assert_eq!(refusal(&headers, untouched()).await, Code::UnsupportedMediaType);
    }

    #[actix_web::test]
    async fn a_body_that_stalls_is_given_up_at_the_deadline() {
        let stalled = of(&["{"]).chain(stream::pending());
        assert_eq!(refusal(&[JSON], stalled).await, Code::RequestTimeout);
    }

    #[actix_web::test]
    async fn bytes_now_and_then_do_not_move_the_deadline() {
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        let dripping = stream::poll_fn(move |cx| ticks.poll_tick(cx).map(|_| Some(Ok(Bytes::new()))));
        assert_eq!(refusal(&[JSON], dripping).await, Code::RequestTimeout);
    }

    #[actix_web::test]
    async fn a_body_that_breaks_off_is_malformed() {
        let broken = of(&["{"]).chain(stream::iter([Err(PayloadError::Incomplete(None))]));
        assert_eq!(refusal(&[JSON], broken).await, Code::MalformedRequest);
    }
}
