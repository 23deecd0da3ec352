//! An ERP, or what stands before one, that takes messages by HTTP: a signed POST to a URL of the tenant's (Standard
//! Webhooks), the same bytes in every attempt. What follows an unknown outcome is the tenant's word.

use std::time::Duration;

use reqwest::RequestBuilder;
use url::Url;

use super::http::{Answer, Client, retry_after};
use super::signature::SigningKey;
use super::{Cancelled, Delivery, Failure, Gateway, Pending, Taken, Verification};
use crate::config::Secrets;
use crate::db;
use crate::json;
use crate::outbox::Kind;
use crate::outbox::attempt::MAX_DETAIL;
use crate::outbox::connection::Connection;

/// The name of this kind of connection.
pub const KIND: &str = "webhook";

/// What a receiver may mean that does not let us in.
const WHAT_401_MAY_MEAN: &str =
    "that both sides hold the same secret, and that the clocks agree: the signature covers the time";

/// The reference that a check asks for. Hardly an order has it, and to be told of one is as good an answer.
const PING: &str = "ping";

/// The `webhook-id` of a check.
const PING_ID: &str = "msg_check";

/// How long a person waits for the answer to a check.
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// What follows when nobody knows whether a message arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownOutcome {
    /// `GET <url>/<reference>` is asked: 200 it is there, 404 it is not, which counts only after the settle window.
    #[default]
    Lookup,
    /// The message is sent again: the receiver promises to do nothing twice for one `Idempotency-Key`.
    Resend,
    /// A person has to look.
    Hold,
}

impl UnknownOutcome {
    /// The setting of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<UnknownOutcome> {
        match name {
            "lookup" => Some(UnknownOutcome::Lookup),
            "resend" => Some(UnknownOutcome::Resend),
            "hold" => Some(UnknownOutcome::Hold),
            _ => None,
        }
    }

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            UnknownOutcome::Lookup => "lookup",
            UnknownOutcome::Resend => "resend",
            UnknownOutcome::Hold => "hold",
        }
    }

    /// The options of a connection with this setting: a JSON object.
    #[must_use]
    pub fn options(self) -> String {
        format!(r#"{{"unknownOutcome":"{}"}}"#, self.as_str())
    }
}

/// The webhook of one tenant.
#[allow(missing_debug_implementations, reason = "it holds a secret")]
pub struct Webhook {
    client: Client,
    url: Url,
    key: SigningKey,
    unknown_outcome: UnknownOutcome,
}

impl Webhook {
    pub(super) fn open(connection: &Connection, client: &Client, secrets: &Secrets) -> Result<Webhook, Failure> {
        let wrong = |text: String| Failure::Misconfigured(text);
        let url = connection.url.as_deref().ok_or_else(|| wrong("a webhook needs a URL".to_owned()))?;
        let name = connection.secret_name.as_deref();
        let name = name.ok_or_else(|| wrong("a webhook needs a secret to sign with".to_owned()))?;
        let secret = secrets.get(name).ok_or_else(|| wrong(format!("the variable {name} is not set")))?;
        let key = SigningKey::read(secret).ok_or_else(|| {
            wrong(format!("{name} is not the Base64 of 24 to 64 bytes, with or without whsec_ before it"))
        })?;
        let options = json::parse(connection.options.as_bytes()).ok();
        let unknown_outcome = options.as_ref().and_then(|options| options.text("unknownOutcome"));
        let unknown_outcome = match unknown_outcome {
            None => UnknownOutcome::default(),
            Some(text) => {
                UnknownOutcome::named(text).ok_or_else(|| wrong(format!("unknownOutcome '{text}' is not known")))?
            }
        };
        Ok(Webhook { client: client.clone(), url: client.check(url)?, key, unknown_outcome })
    }

    /// `<url>/<reference>`; the reference is one segment, whatever it holds.
    fn look_up_url(&self, reference: &str) -> Result<Url, Failure> {
        let mut url = self.url.clone();
        let no_path = || Failure::Misconfigured("the URL of the connection has no path".to_owned());
        url.path_segments_mut().map_err(|()| no_path())?.pop_if_empty().push(reference);
        Ok(url)
    }

    async fn post(&self, delivery: &Delivery) -> Result<Answer, Failure> {
        let (id, timestamp) = (delivery.message_id.as_str(), delivery.now.and_utc().timestamp());
        let request = self
            .client
            .post(self.url.clone())
            .header("content-type", "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", timestamp)
            .header("webhook-signature", self.key.sign(id, timestamp, &delivery.payload))
            .header("idempotency-key", id)
            .header("traceparent", traceparent(&delivery.trace_id))
            .body(delivery.payload.clone());
        self.client.send(request).await
    }

    /// Asks for what has this reference, under a name of the question's own. The body that is signed is empty.
    fn question(&self, reference: &str, id: &str, now: db::Instant) -> Result<RequestBuilder, Failure> {
        let timestamp = now.and_utc().timestamp();
        let request = self.client.get(self.look_up_url(reference)?);
        Ok(request
            .header("webhook-id", id)
            .header("webhook-timestamp", timestamp)
            .header("webhook-signature", self.key.sign(id, timestamp, "")))
    }

    async fn look(&self, delivery: &Delivery) -> Result<Option<Taken>, Failure> {
        let request = self.question(&delivery.reference, &delivery.message_id, delivery.now)?;
        let answer = self.client.send(request.header("traceparent", traceparent(&delivery.trace_id))).await?;
        match answer.status {
            200 => Ok(Some(Taken { erp_reference: erp_reference(&answer), before: true })),
            404 => Ok(None),
            _ => Err(failure_of(&answer, delivery.now)),
        }
    }

    async fn tell(&self, delivery: &Delivery) -> Result<Taken, Failure> {
        let answer = self.post(delivery).await?;
        match answer.status {
            200..=299 => Ok(Taken { erp_reference: erp_reference(&answer), before: false }),
            409 => Ok(Taken { erp_reference: erp_reference(&answer), before: true }),
            _ => Err(failure_of(&answer, delivery.now)),
        }
    }
}

fn answers(status: u16) -> String {
    format!("the ERP answers (status {status} for an order that is not there)")
}

/// The member `erpReference` of an answer, where there is one.
fn erp_reference(answer: &Answer) -> Option<String> {
    let body = json::parse(answer.body.as_bytes()).ok()?;
    body.text("erpReference").filter(|text| (1..=255).contains(&text.chars().count())).map(str::to_owned)
}

/// What an answer says that is neither "taken" nor "already there".
fn failure_of(answer: &Answer, now: db::Instant) -> Failure {
    let detail = format!("the ERP answered {}{}", answer.status, said(answer));
    match answer.status {
        408 | 425 | 429 | 503 => Failure::Unavailable { detail, retry_after: retry_after(&answer.headers, now) },
        // The secret is wrong, for every message. No order is to blame, and none must be lost to it.
        401 => Failure::Misconfigured(format!("{detail}; check {WHAT_401_MAY_MEAN}")),
        300..=499 => Failure::Refused(detail),
        _ => Failure::Unknown(detail),
    }
}

/// What the ERP said for people: the member `message` or `detail` of a JSON answer. Anything else may be a page of markup.
fn said(answer: &Answer) -> String {
    let Ok(body) = json::parse(answer.body.as_bytes()) else { return String::new() };
    let text = body.text("message").or_else(|| body.text("detail")).unwrap_or_default();
    let short: String = text.chars().take(MAX_DETAIL / 2).collect();
    if short.is_empty() { short } else { format!(": {short}") }
}

/// The header of W3C Trace Context: the trace of the request that began it all, and a span of this attempt's own.
fn traceparent(trace_id: &str) -> String {
    let span = uuid::Uuid::new_v4().simple().to_string();
    format!("00-{trace_id}-{}-01", &span[..16])
}

impl Gateway for Webhook {
    fn verification(&self, kind: Kind) -> Verification {
        match (self.unknown_outcome, kind) {
            // To cancel twice is to cancel once, whatever the receiver promises.
            (_, Kind::OrderCancelled) | (UnknownOutcome::Resend, _) => Verification::SendAgain,
            (UnknownOutcome::Lookup, Kind::OrderCreated | Kind::OrderReplaced) => Verification::LookAndWait,
            // The look-up tells of orders. Whether a payment arrived it does not say.
            (UnknownOutcome::Lookup, Kind::PaymentReceived | Kind::MessageRequested) | (UnknownOutcome::Hold, _) => {
                Verification::AskAPerson
            }
        }
    }

    fn ping(&self, now: db::Instant) -> Pending<'_, String> {
        Box::pin(async move {
            let request = self.question(PING, PING_ID, now)?.timeout(PING_TIMEOUT);
            let status = self.client.send(request).await?.status;
            let looks_up = self.unknown_outcome == UnknownOutcome::Lookup;
            let wrong = |text: &str| Err(Failure::Misconfigured(format!("the ERP answered {status}: {text}")));
            match status {
                401 | 403 => wrong(&format!("the secret is not accepted; check {WHAT_401_MAY_MEAN}")),
                300..=399 => wrong("it is a redirect; set the address it leads to"),
                500..=599 => wrong("it fails itself; look into its log"),
                200 | 404 | 408 | 425 | 429 => Ok(answers(status)),
                _ if looks_up => {
                    wrong("a look-up is answered by 200 or 404; or set --unknown-outcome to resend or hold")
                }
                _ => Ok(answers(status)),
            }
        })
    }

    fn find<'a>(&'a self, delivery: &'a Delivery) -> Pending<'a, Option<Taken>> {
        Box::pin(self.look(delivery))
    }

    fn create<'a>(&'a self, delivery: &'a Delivery) -> Pending<'a, Taken> {
        Box::pin(self.tell(delivery))
    }

    fn cancel<'a>(&'a self, delivery: &'a Delivery) -> Pending<'a, Cancelled> {
        Box::pin(async {
            match self.tell(delivery).await {
                Ok(Taken { before: true, .. }) => Ok(Cancelled::Before),
                Ok(Taken { before: false, .. }) => Ok(Cancelled::Now),
                Err(Failure::Refused(detail)) => Ok(Cancelled::TooLate(detail)),
                Err(failure) => Err(failure),
            }
        })
    }

    fn receive_payment<'a>(&'a self, delivery: &'a Delivery) -> Pending<'a, Taken> {
        Box::pin(self.tell(delivery))
    }
}
