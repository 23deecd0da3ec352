//! Tryton's REST API: one request, and what its answer says. Whether a failure leaves a doubt depends on what was asked:
//! a question changes nothing, and a sale that was not sent yet cannot be there.
//!
//! Texts of Tryton are in its user's language: they are shown to people and never decide anything.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use reqwest::RequestBuilder;
use url::Url;

use super::value;
use crate::db;
use crate::erp::Failure;
use crate::erp::http::{Answer, Client, retry_after};
use crate::json::{self, Json};
use crate::outbox::attempt::MAX_DETAIL;

/// The most bytes of an answer. A sale of a thousand lines, or a page of them, is far smaller.
const MAX_ANSWER: usize = 1024 * 1024;

/// One Tryton database, as the user of a key sees it.
#[derive(Clone)]
pub(super) struct Rest {
    client: Client,
    base: Url,
    key: String,
    /// Where the key comes from, for messages.
    key_name: String,
    company: Option<i64>,
    /// The time of the attempt: a `Retry-After` may be a date.
    now: Option<db::Instant>,
}

/// What Tryton made of a request that changes something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// It is done; the record.
    Done(Json),
    /// It is not done, in Tryton's words.
    Refused(String),
    /// There is no such record.
    Missing,
}

/// What to give back of records: names of fields, dotted where they lead to another record.
pub(super) type Fields<'a> = &'a [&'a str];

impl Rest {
    /// `url` is `https://HOST/DATABASE`.
    pub(super) fn new(client: &Client, url: Url, (key_name, key): (&str, &str)) -> Result<Rest, Failure> {
        let database = url.path_segments().map_or(0, |segments| segments.filter(|segment| !segment.is_empty()).count());
        if database == 0 {
            return Err(Failure::Misconfigured(
                "the URL has to end with the name of Tryton's database: https://HOST/DATABASE".to_owned(),
            ));
        }
        let (key, key_name) = (key.trim().to_owned(), key_name.to_owned());
        // What a header carries as a token (RFC 6750, section 2.1).
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Failure::Misconfigured(format!(
                "{key_name} holds no key of Tryton's: it is one word of ASCII characters, and not empty"
            )));
        }
        Ok(Rest { client: client.clone(), base: url, key, key_name, company: None, now: None })
    }

    /// The same, in the context of a company: its accounts, its prices.
    pub(super) fn of_company(&self, company: i64) -> Rest {
        Rest { company: Some(company), ..self.clone() }
    }

    /// The same, at the time of an attempt.
    pub(super) fn at(&self, now: db::Instant) -> Rest {
        Rest { now: Some(now), ..self.clone() }
    }

    /// The records that a domain describes.
    pub(super) async fn search(&self, model: &str, domain: Json, fields: Fields<'_>) -> Result<Vec<Json>, Failure> {
        self.page(model, domain, fields, None).await
    }

    /// As [`Rest::search`], the first `limit` by their ids.
    pub(super) async fn page(
        &self,
        model: &str,
        domain: Json,
        fields: Fields<'_>,
        limit: Option<usize>,
    ) -> Result<Vec<Json>, Failure> {
        let mut url = self.url(&[model], fields)?;
        url.query_pairs_mut().append_pair("d", &encoded(&domain));
        if let Some(limit) = limit {
            let by_id = value::list([value::list([value::text("id"), value::text("ASC")])]);
            url.query_pairs_mut().append_pair("s", &limit.to_string()).append_pair("o", &encoded(&by_id));
        }
        match self.ask(self.client.get(url)).await? {
            Said::Done(Json::Array(records)) => Ok(records),
            Said::Done(_) => Err(Failure::NotDelivered(format!("the ERP did not answer with a list of {model}"))),
            Said::Refused(text) => Err(Failure::Misconfigured(format!("the ERP does not show its {model}: {text}"))),
            Said::Missing => Err(Failure::Misconfigured(
                "the ERP does not know this address; check the name of the database in the URL".to_owned(),
            )),
        }
    }

    /// The record of this id; `None` when there is none, or it is not shown to us.
    pub(super) async fn record(&self, model: &str, id: i64, fields: Fields<'_>) -> Result<Option<Json>, Failure> {
        match self.ask(self.client.get(self.url(&[model, &id.to_string()], fields)?)).await? {
            Said::Done(record) => Ok(Some(record)),
            Said::Refused(text) => Err(Failure::Misconfigured(format!("the ERP does not show its {model}: {text}"))),
            Said::Missing => Ok(None),
        }
    }

    /// Makes a record, in one transaction of the ERP's. [`Failure::Unknown`] when nobody knows whether it did.
    pub(super) async fn create(&self, model: &str, values: &Json, fields: Fields<'_>) -> Result<Said, Failure> {
        self.send(self.client.post(self.url(&[model], fields)?), values).await
    }

    /// Changes a record, likewise.
    pub(super) async fn update(
        &self,
        (model, id): (&str, i64),
        values: &Json,
        fields: Fields<'_>,
    ) -> Result<Said, Failure> {
        self.send(self.client.put(self.url(&[model, &id.to_string()], fields)?), values).await
    }

    /// Presses a button of a record, likewise.
    pub(super) async fn press(
        &self,
        (model, id): (&str, i64),
        button: &str,
        fields: Fields<'_>,
    ) -> Result<Said, Failure> {
        let url = self.url(&[model, &id.to_string(), button], fields)?;
        self.send(self.client.post(url), &Json::Object(Vec::new())).await
    }

    /// Asks a model something that belongs to no record.
    pub(super) async fn call(&self, model: &str, question: &str, arguments: &Json) -> Result<Said, Failure> {
        let request = self.client.post(self.url(&[model, question], &[])?);
        self.send(request, arguments).await.map_err(nothing_changed)
    }

    async fn ask(&self, request: RequestBuilder) -> Result<Said, Failure> {
        let answer = self.client.send_up_to(self.signed(request), MAX_ANSWER).await.map_err(nothing_changed)?;
        match answer.status {
            // After a question it is plain that nothing was done.
            503 => Err(Failure::Unavailable { detail: status_of(&answer), retry_after: self.retry_after(&answer) }),
            _ => self.meaning(&answer).map_err(nothing_changed),
        }
    }

    async fn send(&self, request: RequestBuilder, values: &Json) -> Result<Said, Failure> {
        let request = self.signed(request).header("content-type", "application/json").body(values.to_string());
        let answer = self.client.send_up_to(request, MAX_ANSWER).await?;
        self.meaning(&answer)
    }

    fn signed(&self, request: RequestBuilder) -> RequestBuilder {
        let request =
            request.header("authorization", format!("Bearer {}", self.key)).header("accept", "application/json");
        match self.company {
            Some(company) => {
                let context = value::object([("company", value::integer(company))]);
                request.header("x-tryton-context", encoded(&context))
            }
            None => request,
        }
    }

    fn url(&self, path: &[&str], fields: Fields<'_>) -> Result<Url, Failure> {
        let mut url = self.base.clone();
        let no_path = |()| Failure::Misconfigured("the URL of the connection has no path".to_owned());
        url.path_segments_mut().map_err(no_path)?.pop_if_empty().extend(["rest", "model"]).extend(path);
        if !fields.is_empty() {
            url.query_pairs_mut().extend_pairs(fields.iter().map(|field| ("f", field)));
        }
        Ok(url)
    }

    /// What an answer says of a request that could change something. Tryton answers 400 both when it refuses, with JSON, and
    /// when it fails in the middle or its database is away, with a page of markup: then nobody knows.
    fn meaning(&self, answer: &Answer) -> Result<Said, Failure> {
        let said = json::parse(answer.body.as_bytes()).ok();
        let message = said.as_ref().and_then(|said| said.text("message"));
        match answer.status {
            200 => said.map(Said::Done).ok_or_else(|| Failure::Unknown("the ERP's answer is no JSON".to_owned())),
            204 => Ok(Said::Done(Json::Null)),
            404 => Ok(Said::Missing),
            401 => Err(Failure::Misconfigured(format!(
                "the ERP does not accept the key in {}; make one in Tryton and allow it (application 'rest')",
                self.key_name
            ))),
            403 => Err(Failure::Misconfigured("the user of the key may not do this in the ERP".to_owned())),
            300..=399 | 405 => Err(Failure::Misconfigured(status_of(answer))),
            429 => Err(Failure::Unavailable { detail: status_of(answer), retry_after: self.retry_after(answer) }),
            413 => Ok(Said::Refused("the ERP does not take a request of this size".to_owned())),
            400..=499 => match message {
                Some(text) => Ok(Said::Refused(shortened(text))),
                None => Err(Failure::Unknown(status_of(answer))),
            },
            _ => Err(Failure::Unknown(status_of(answer))),
        }
    }

    fn retry_after(&self, answer: &Answer) -> Option<std::time::Duration> {
        retry_after(&answer.headers, self.now?)
    }
}

/// A step before the sale is sent, or a question, has made no sale, whatever became of it.
pub(super) fn nothing_changed(failure: Failure) -> Failure {
    match failure {
        Failure::Unknown(detail) => Failure::NotDelivered(detail),
        known => known,
    }
}

fn status_of(answer: &Answer) -> String {
    format!("the ERP answered {}", answer.status)
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_DETAIL / 2).collect()
}

/// A JSON value as a parameter or a header.
fn encoded(value: &Json) -> String {
    URL_SAFE.encode(value.to_string())
}
