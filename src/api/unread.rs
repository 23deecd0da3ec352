//! What is left of a request's body when it was answered before its end: 401, 413, 408 and the like. actix ends the
//! connection when the length was declared, but it reads on without limit after a chunked body, so that a client that
//! stalls would keep its connection for ever. As long as somebody holds the body actix does not read on, and ends the
//! connection with the answer: after its `client_disconnect_timeout`, which must not be shorter than a second, because
//! actix counts it from a clock that may be half a second old and waits for ever once the time is past.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::error::{InternalError, PayloadError};
use actix_web::middleware::Next;
use actix_web::web::Bytes;
use actix_web::{Error, HttpMessage};
use futures_util::Stream;

/// The middleware: it holds the body of an HTTP/1 request until the answer is written. It belongs outside all others that
/// may answer.
///
/// # Errors
/// Those of the service inside, with the answer that they make.
pub async fn middleware(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let payload = match request.take_payload() {
        payload @ Payload::H1 { .. } => payload,
        // Without a body there is nothing to hold, and HTTP/2 ends one stream and not the connection.
        other => {
            request.set_payload(other);
            return Ok(next.call(request).await?.map_into_boxed_body());
        }
    };
    let shared = SharedBody(Rc::new(RefCell::new(payload)));
    request.set_payload(Payload::Stream { payload: Box::pin(shared.clone()) });
    match next.call(request).await {
        Ok(response) => Ok(response.map_body(|_, body| shared.held_by(body.boxed()))),
        Err(error) => {
            let response = error.error_response().map_body(|_, body| shared.held_by(body));
            Err(InternalError::from_response(error, response).into())
        }
    }
}

/// The body of the request, for the handler that reads it and for the answer that holds it.
#[derive(Clone)]
struct SharedBody(Rc<RefCell<Payload>>);

impl SharedBody {
    fn held_by(self, answer: BoxBody) -> BoxBody {
        BoxBody::new(HoldingBody { answer, _request: self })
    }
}

impl Stream for SharedBody {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_next(cx)
    }
}

/// The body of an answer that keeps the body of its request.
struct HoldingBody {
    answer: BoxBody,
    _request: SharedBody,
}

impl MessageBody for HoldingBody {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.answer.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.answer).poll_next(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::time::Duration;

    use actix_web::dev::ServerHandle;
    use actix_web::middleware::from_fn;
    use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
    use futures_util::future::join_all;

    use crate::api::answer::ProblemError;
    use crate::api::{body, trace};

    async fn length(request: HttpRequest, payload: web::Payload) -> Result<HttpResponse, ProblemError> {
        let body = body::read(&request, payload, 10, Duration::from_millis(100)).await?;
        Ok(HttpResponse::Ok().body(body.len().to_string()))
    }

    async fn refuses() -> HttpResponse {
        HttpResponse::Unauthorized().finish()
    }

    async fn panics(_: web::Payload) -> HttpResponse {
        panic!("while a body is on its way")
    }

    fn serve() -> (SocketAddr, ServerHandle) {
        let app = || {
            App::new()
                .wrap(from_fn(trace::middleware))
                .wrap(from_fn(super::middleware))
                .route("/length", web::post().to(length))
                .route("/refuses", web::post().to(refuses))
                .route("/panics", web::post().to(panics))
        };
        let server = HttpServer::new(app).workers(1).client_disconnect_timeout(Duration::from_secs(1));
        let server = server.bind(("127.0.0.1", 0)).expect("a port is free");
        let address = server.addrs()[0];
        let server = server.run();
        let handle = server.handle();
        actix_web::rt::spawn(server);
        (address, handle)
    }

    /// Sends `text` and gives back all that the server sends until it ends the connection.
    fn talk(address: SocketAddr, text: &str) -> String {
        let mut stream = TcpStream::connect(address).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a time-out can be set");
        stream.write_all(text.as_bytes()).expect("the server reads the head");
        let mut answer = Vec::new();
        let mut piece = [0; 4096];
        loop {
            match stream.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => answer.extend_from_slice(&piece[..read]),
                // A connection that ends with unread bytes may end with a reset.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
                Err(error) => panic!("the connection stayed open: {error}, {}", String::from_utf8_lossy(&answer)),
            }
        }
        String::from_utf8(answer).expect("the answers are text")
    }

    /// The answers to requests with these paths, headers and bodies, all sent at once.
    async fn answers_to<const N: usize>(requests: [(&str, &str, &str); N]) -> Vec<String> {
        let (address, server) = serve();
        let conversations = requests.map(|(path, headers, body)| {
            let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n{headers}\r\n");
            let text = head + body;
            web::block(move || talk(address, &text))
        });
        let answers = join_all(conversations).await;
        server.stop(false).await;
        answers.into_iter().map(|answer| answer.expect("the conversation ends")).collect()
    }

    #[actix_web::test]
    async fn a_body_that_stalls_ends_the_connection_with_its_answer() {
        let chunked = "transfer-encoding: chunked\r\n";
        let answers = answers_to([
            ("/length", chunked, "5\r\n{\"a\":\r\n"),
            ("/length", chunked, "20\r\n{\"a\":\"01234567890123456789012345"),
            ("/refuses", chunked, "5\r\n{\"a\":\r\n"),
            ("/panics", chunked, "5\r\n{\"a\":\r\n"),
            ("/length", "content-length: 8\r\n", "{"),
            ("/length", "content-length: 11\r\n", "{"),
        ]);
        for (answer, status) in answers.await.iter().zip(["408", "413", "401", "500", "408", "413"]) {
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {answer}");
            assert!(answer.contains("connection: close\r\n"), "{status}: {answer}");
        }
    }

    #[actix_web::test]
    async fn a_connection_whose_body_was_read_stays_open_for_the_next_request() {
        let next = "POST /length HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        let body = format!("5\r\n[1,2]\r\n0\r\n\r\n{next}");
        let answers = answers_to([("/length", "transfer-encoding: chunked\r\n", &body)]).await;
        assert_eq!(answers[0].matches("HTTP/1.1 200 OK\r\n").count(), 2, "{}", answers[0]);
        assert!(answers[0].contains("\r\n\r\n5HTTP/1.1") && answers[0].ends_with("\r\n\r\n0"), "{}", answers[0]);
    }
}
