//! The mail server as we see it: it takes a mail, refuses it, or leaves us in doubt. SMTP has no look-up, so that a doubt is a
//! matter for a person, and nothing here ever sends twice.
//!
//! What must be right is the failure that is reported: until the last dot of a mail was sent, it surely was not taken.

use std::time::{Duration, Instant};

use crate::config::Secrets;
use crate::erp::Failure;
use crate::outbox::connection::Connection;

mod letter;
mod smtp;
mod words;

pub use letter::Letter;
pub use smtp::Sender;

use smtp::Smtp;

/// Takes every mail and sends none: for the first run and for demonstrations.
pub const SANDBOX: &str = "sandbox";

/// Hands mails to a mail server (RFC 5321).
pub const SMTP: &str = "smtp";

/// The ways to send mails.
pub const KINDS: &[&str] = &[SANDBOX, SMTP];

/// What all mailers of a process share.
#[derive(Clone, Debug)]
pub struct Mailers {
    secrets: Secrets,
    allow_private: bool,
}

impl Mailers {
    /// Prepares the mailers. Private addresses are reached, and mails sent without encryption, only where `allow_private`
    /// says so.
    #[must_use]
    pub fn new(secrets: Secrets, allow_private: bool) -> Mailers {
        Mailers { secrets, allow_private }
    }

    /// The mailer of a connection.
    ///
    /// # Errors
    /// [`Failure::Misconfigured`], in words that say what to change.
    pub fn open(&self, connection: &Connection) -> Result<Mailer, Failure> {
        match connection.kind.as_str() {
            SANDBOX => Ok(Mailer::Sandbox),
            SMTP => Ok(Mailer::Smtp(Box::new(Smtp::open(connection, &self.secrets, self.allow_private)?))),
            other => Err(Failure::Misconfigured(format!(
                "there is no way '{other}' to send mails; known are {}",
                KINDS.join(", ")
            ))),
        }
    }
}

/// The way of one tenant to send mails.
#[allow(missing_debug_implementations, reason = "it holds a secret")]
pub enum Mailer {
    /// See [`SANDBOX`].
    Sandbox,
    /// See [`SMTP`].
    Smtp(Box<Smtp>),
}

impl Mailer {
    /// Hands a mail over, once; by `until` it has ended, one way or the other.
    ///
    /// # Errors
    /// A [`Failure`]; only [`Failure::Unknown`] leaves it open whether the mail was taken.
    pub async fn send(&self, letter: &Letter, until: Instant) -> Result<(), Failure> {
        match self {
            Mailer::Sandbox => Ok(()),
            Mailer::Smtp(smtp) => smtp.send(letter, until).await,
        }
    }

    /// Asks whether the mail server is there and lets us in. Sends nothing. Says in words what it found.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub async fn ping(&self, patience: Duration) -> Result<String, Failure> {
        match self {
            Mailer::Sandbox => Ok("the sandbox is part of this program; it takes every mail and sends none".to_owned()),
            Mailer::Smtp(smtp) => smtp.ping(patience).await,
        }
    }
}
