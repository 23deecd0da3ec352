//! A conversation with a mail server, step by step, so that it is known how far it got: only what is lost after the whole mail
//! was sent leaves a doubt (RFC 5321, section 4.2.5). It connects only to addresses that were checked.

use std::error::Error as _;
use std::future::Future;
use std::io;
use std::iter::successors;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use lettre::message::Mailbox;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::{ClientId, Extension, MailParameter};
use lettre::transport::smtp::{Error, response::Response};
use lettre::{Address, Message};
use url::Url;

use super::{Letter, words};
use crate::config::Secrets;
use crate::erp::public_address::is_public;
use crate::erp::{Failure, target};
use crate::json::{self, Json};
use crate::outbox::attempt::MAX_DETAIL;
use crate::outbox::connection::Connection;

/// The most time until a connection stands.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long we wait to be seen off. It changes nothing any more.
const FAREWELL: Duration = Duration::from_secs(1);

/// Who mails come from: what `mail set` asks for beside the address of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender<'a> {
    /// The address, with or without a name before it.
    pub from: &'a str,
    /// Under which name we log in; `None` where the server wants no login.
    pub user: Option<&'a str>,
}

impl Sender<'_> {
    /// The options of a connection with this sender: a JSON object.
    #[must_use]
    pub fn options(&self) -> String {
        let member = |name: &str, text: &str| (name.to_owned(), Json::Text(text.to_owned()));
        let user = self.user.map(|user| member("user", user));
        Json::Object([member("from", self.from)].into_iter().chain(user).collect()).to_string()
    }
}

/// The mail server of one tenant.
#[allow(missing_debug_implementations, reason = "it holds a secret")]
pub struct Smtp {
    host: String,
    port: u16,
    encryption: Encryption,
    allow_private: bool,
    login: Option<Credentials>,
    from: Mailbox,
}

/// When a connection becomes encrypted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Encryption {
    /// From the first byte (`smtps`, RFC 8314).
    Always,
    /// By STARTTLS, before anything of ours is said (`smtp`, RFC 3207).
    Upgraded,
}

/// How far a conversation was.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The greeting, encryption, the login and the sender: nothing that a single mail can change.
    Entrance,
    /// The recipient, and the question whether the mail may come.
    Recipient,
    /// The mail itself, to its last dot, and the answer to it.
    Content,
}

impl Smtp {
    pub(super) fn open(connection: &Connection, secrets: &Secrets, allow_private: bool) -> Result<Smtp, Failure> {
        let wrong = |text: &str| Failure::Misconfigured(text.to_owned());
        let url = connection.url.as_deref().and_then(|url| Url::parse(url).ok());
        let url = url.ok_or_else(|| wrong("the mail server's URL has to be like smtp://mail.shop.example:587"))?;
        let (encryption, port) = match url.scheme() {
            "smtps" => (Encryption::Always, 465),
            "smtp" => (Encryption::Upgraded, 587),
            _ => return Err(wrong("the mail server's URL has to begin with smtps:// or smtp://")),
        };
        let host = target::host(&url, allow_private)?;
        if url.query().is_some() || !matches!(url.path(), "" | "/") {
            return Err(wrong("the mail server's URL holds a host and a port only"));
        }
        let options = json::parse(connection.options.as_bytes()).ok();
        let option = |name: &str| options.as_ref().and_then(|options| options.text(name));
        let from = option("from").and_then(|from| from.parse().ok());
        Ok(Smtp {
            host,
            port: url.port().unwrap_or(port),
            encryption,
            allow_private,
            login: login(option("user"), connection.secret_name.as_deref(), secrets)?,
            from: from.ok_or_else(|| wrong("--from has to be an address, such as 'Shop <orders@shop.example>'"))?,
        })
    }

    pub(super) async fn send(&self, letter: &Letter, until: Instant) -> Result<(), Failure> {
        let mail = letter.compose(&self.from)?;
        let mut connection = in_time(until, self.ask(letter, &mail)).await?;
        let taken = tokio::time::timeout_at(until.into(), connection.message(&mail.formatted())).await;
        let taken = match taken {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(self.failure(&error, Stage::Content, Some(letter.recipient()))),
            Err(_) => {
                Err(Failure::Unknown("the mail server did not answer in time after it was sent the mail".to_owned()))
            }
        };
        part(connection).await;
        taken
    }

    pub(super) async fn ping(&self, patience: Duration) -> Result<String, Failure> {
        let entered = tokio::time::timeout(patience, self.enter()).await;
        let connection =
            entered.map_err(|_| Failure::NotDelivered("the mail server did not answer in time".to_owned()))??;
        let encrypted = if connection.is_encrypted() { "encrypted" } else { "not encrypted" };
        part(connection).await;
        Ok(format!("the mail server lets us in; the connection is {encrypted}"))
    }

    /// All that comes before the mail itself. Whatever goes wrong here, the mail was not sent.
    async fn ask(&self, letter: &Letter, mail: &Message) -> Result<AsyncSmtpConnection, Failure> {
        let mut connection = self.enter().await?;
        let asked = self.ask_on(&mut connection, letter, mail).await;
        match asked {
            Ok(()) => Ok(connection),
            Err(failure) => {
                part(connection).await;
                Err(failure)
            }
        }
    }

    async fn ask_on(&self, server: &mut AsyncSmtpConnection, letter: &Letter, mail: &Message) -> Result<(), Failure> {
        let recipient = letter.recipient();
        let envelope = mail.envelope();
        let ascii = envelope.from().into_iter().chain(envelope.to()).all(|address| address.to_string().is_ascii());
        let mut parameters = Vec::new();
        if !ascii {
            if !server.server_info().supports_feature(Extension::SmtpUtfEight) {
                let detail = "the mail server takes no address with other letters than ASCII (SMTPUTF8)";
                return Err(Failure::Refused(detail.to_owned()));
            }
            parameters.push(MailParameter::SmtpUtfEight);
        }
        let said = |stage, answer: Result<Response, Error>| match answer {
            Ok(_) => Ok(()),
            Err(error) => Err(self.failure(&error, stage, Some(recipient))),
        };
        said(Stage::Entrance, server.command(Mail::new(envelope.from().cloned(), parameters)).await)?;
        for address in envelope.to() {
            said(Stage::Recipient, server.command(Rcpt::new(address.clone(), Vec::new())).await)?;
        }
        let answer = server.command(Data).await;
        // Only 354 asks for the mail (RFC 5321, section 4.1.1.4). After any other the server would take its lines for commands.
        if let Ok(answer) = &answer
            && !answer.has_code(354)
        {
            let detail = format!("the mail server answered {} to DATA, where 354 asks for the mail", answer.code());
            return Err(Failure::NotDelivered(detail));
        }
        said(Stage::Recipient, answer)
    }

    /// A connection that is encrypted where it has to be, and logged in.
    async fn enter(&self) -> Result<AsyncSmtpConnection, Failure> {
        let addresses = self.resolve().await?;
        let fail = |error: Error| self.failure(&error, Stage::Entrance, None);
        let hello = ClientId::Domain(self.from.email.domain().to_owned());
        // It reads the certificates that the system trusts, so it is made only where it is used.
        let tls = || TlsParameters::new_rustls(self.host.clone()).map_err(fail);
        let wrapped = if self.encryption == Encryption::Always { Some(tls()?) } else { None };
        let connecting =
            AsyncSmtpConnection::connect_tokio1(&addresses[..], Some(CONNECT_TIMEOUT), &hello, wrapped, None);
        let mut connection = connecting.await.map_err(fail)?;
        if connection.can_starttls() {
            connection.starttls(tls()?, &hello).await.map_err(fail)?;
        } else if self.encryption == Encryption::Upgraded && !self.allow_private {
            let detail = "the mail server offers no encryption (STARTTLS); \
                          without it mails are sent only with ORDERS_ERP_ALLOW_PRIVATE=on";
            return Err(Failure::Misconfigured(detail.to_owned()));
        }
        if let Some(login) = &self.login {
            let mechanisms = [Mechanism::Plain, Mechanism::Login];
            connection.auth(&mechanisms, login).await.map_err(|error| {
                // Nothing was answered where the server knows none of the mechanisms.
                let none_fits = error.is_client();
                if none_fits {
                    return Failure::Misconfigured("the mail server takes no login by name and password".to_owned());
                }
                fail(error)
            })?;
        }
        Ok(connection)
    }

    async fn resolve(&self) -> Result<Vec<SocketAddr>, Failure> {
        let found = tokio::net::lookup_host((self.host.as_str(), self.port)).await;
        let addresses: Vec<SocketAddr> = found.map(Iterator::collect).unwrap_or_default();
        if addresses.is_empty() {
            return Err(Failure::Misconfigured(format!("the host name '{}' cannot be resolved", self.host)));
        }
        // One bad address condemns the name: which of several is connected to is not for us to say.
        if !self.allow_private && addresses.iter().any(|address| !is_public(address.ip())) {
            return Err(Failure::Misconfigured(target::in_a_private_network(&self.host)));
        }
        Ok(addresses)
    }

    /// What an error says about the mail: surely not taken, or perhaps taken.
    fn failure(&self, error: &Error, stage: Stage, recipient: Option<&Address>) -> Failure {
        let Some(code) = error.status() else {
            return self.silence(error, stage);
        };
        let words = error.source().map(ToString::to_string).unwrap_or_default();
        let words = recipient.map_or_else(|| words.clone(), |recipient| words::without(&words, recipient));
        let words: String = words.chars().take(MAX_DETAIL / 2).collect();
        let detail = format!("the mail server answered {code}: {words}");
        // 530 and 535: it wants a login, or another one, from whoever asks (RFC 4954, section 6).
        let wants_login = ["530", "535"].contains(&code.to_string().as_str());
        match stage {
            _ if error.is_transient() => Failure::Unavailable { detail, retry_after: None },
            Stage::Entrance => Failure::Misconfigured(detail),
            Stage::Recipient | Stage::Content if wants_login => Failure::Misconfigured(detail),
            Stage::Recipient | Stage::Content => Failure::Refused(detail),
        }
    }

    /// What an error means that is no answer.
    fn silence(&self, error: &Error, stage: Stage) -> Failure {
        if stage == Stage::Content {
            return Failure::Unknown("the connection ended before the mail server's answer to the mail".to_owned());
        }
        // rustls reports what it does not accept as invalid data.
        let mut causes = successors(error.source(), |cause: &&(dyn std::error::Error + 'static)| (*cause).source());
        let invalid = |cause: &io::Error| cause.kind() == io::ErrorKind::InvalidData;
        if error.is_tls() || causes.any(|cause| cause.downcast_ref().is_some_and(invalid)) {
            return Failure::Misconfigured("the certificate or the TLS of the mail server is not accepted".to_owned());
        }
        Failure::NotDelivered(format!("the connection to '{}' failed before the mail was sent", self.host))
    }
}

fn login(user: Option<&str>, secret_name: Option<&str>, secrets: &Secrets) -> Result<Option<Credentials>, Failure> {
    let wrong = |text: String| Failure::Misconfigured(text);
    match (user, secret_name) {
        (None, None) => Ok(None),
        (Some(user), Some(_)) if user.is_empty() || user.contains(char::is_control) => {
            Err(wrong("--user is the name to log in with: one line, and not empty".to_owned()))
        }
        (Some(user), Some(name)) => match secrets.get(name) {
            None => Err(wrong(format!("the variable {name} is not set"))),
            Some("") => Err(wrong(format!("the variable {name} is empty"))),
            Some(secret) => Ok(Some(Credentials::new(user.to_owned(), secret.to_owned()))),
        },
        _ => Err(wrong("a login needs both --user and --secret-env".to_owned())),
    }
}

/// What comes before the mail, bounded by the time that there is for all of it.
async fn in_time<T>(until: Instant, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let answered = tokio::time::timeout_at(until.into(), work).await;
    let late = |_| Failure::NotDelivered("the mail server did not answer in time, before the mail was sent".to_owned());
    answered.map_err(late)?
}

/// Says goodbye, as one should (RFC 5321, section 4.1.1.10), and does not mind the answer.
async fn part(mut connection: AsyncSmtpConnection) {
    let _ = tokio::time::timeout(FAREWELL, connection.quit()).await;
}
