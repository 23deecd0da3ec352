//! The means that provoke a problem of any operation: a call that works, asked for in a wrong way, or asked of a service
//! that is in trouble.

use std::collections::BTreeSet;

use order_service::api_key::SCOPES;
use order_service::problem::Code;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::declared::Operation;
use crate::every_command::recipes::Call;
use crate::every_command::{Names, ask, filled, request};
use crate::harness::database::Database;
use crate::harness::head::Head;
use crate::harness::http::{Answer, Caller, send};
use crate::harness::raw::{RawAnswer, RawConnection};
use crate::harness::world::{TENANT, World};

/// The key of the call that works. Whatever is asked before in a wrong way leaves it free.
pub const KEY: &str = "walk";

/// The largest body that the service of this test takes, in bytes; as a setting it is text.
pub const MAX_BODY: &str = "1024";

/// The problems that a wrong way of asking provokes, before the claim.
pub const OF_THE_REQUEST: [Code; 11] = [
    Code::Unauthenticated,
    Code::Forbidden,
    Code::NotAcceptable,
    Code::IdempotencyKeyMissing,
    Code::IdempotencyKeyInvalid,
    Code::UnsupportedMediaType,
    Code::PayloadTooLarge,
    Code::RequestTimeout,
    Code::MalformedRequest,
    Code::InvalidParameter,
    Code::PreconditionRequired,
];

/// An operation and a call of it that works.
pub struct Working {
    /// The operation.
    pub operation: Operation,
    /// The call.
    pub call: Call,
    /// What its braces stand for.
    pub names: Names,
    /// The table and the column without which a read cannot answer.
    pub needs: Option<(&'static str, &'static str)>,
    /// A caller that may not do it.
    pub powerless: Caller,
}

/// A caller with a new key of this client that has a scope, but not the one that is needed.
pub fn powerless(world: &World, operation: &Operation, client: &str) -> Caller {
    let other = SCOPES.iter().map(|(scope, _)| *scope).find(|scope| operation.scope.as_deref() != Some(scope));
    world.caller(TENANT, client, &[other.expect("there are several scopes")])
}

impl Working {
    /// Whether it is a command; else it is a read.
    pub fn is_command(&self) -> bool {
        self.operation.command.is_some()
    }

    /// Asks as it works; a command under this key.
    pub async fn ask(&self, caller: &Caller, key: &str) -> Answer {
        ask(caller, &self.call, &self.names, self.is_command().then_some(key)).await
    }

    /// Asks with another call in the place of the one that works.
    pub async fn ask_for(&self, caller: &Caller, call: &Call) -> Answer {
        ask(caller, call, &self.names, self.is_command().then_some(KEY)).await
    }

    /// The answer to the wrong way of asking that provokes `code`, one of [`OF_THE_REQUEST`].
    pub async fn asked_wrongly(&self, world: &World, caller: &Caller, code: Code) -> Answer {
        let usual = || request(caller, &self.call, &self.names, self.is_command().then_some(KEY));
        match code {
            Code::Unauthenticated => self.ask(&world.stranger(), KEY).await,
            Code::Forbidden => self.ask(&self.powerless, KEY).await,
            Code::NotAcceptable => send(usual().header("Accept", "text/html")).await,
            Code::IdempotencyKeyMissing => ask(caller, &self.call, &self.names, None).await,
            Code::IdempotencyKeyInvalid => ask(caller, &self.call, &self.names, Some("not a key")).await,
            Code::UnsupportedMediaType => send(usual().header("Content-Encoding", "gzip")).await,
            Code::PayloadTooLarge => self.unfinished(world, caller, MAX_BODY.parse::<usize>().expect("a number") + 1),
            Code::RequestTimeout => self.unfinished(world, caller, 2),
            Code::MalformedRequest if self.is_command() => self.ask_for(caller, &Call { body: "{", ..self.call }).await,
            Code::MalformedRequest => caller.get(&with_rubbish(&self.operation.path)).await,
            Code::InvalidParameter => caller.get(&format!("{}?limit=0", filled(self.call.path, &self.names))).await,
            Code::PreconditionRequired => self.ask_for(caller, &Call { headers: &[], ..self.call }).await,
            other => panic!("{other:?} is not provoked by asking wrongly"),
        }
    }

    /// Says that a body of `declared` bytes comes, and sends one byte of it.
    fn unfinished(&self, world: &World, caller: &Caller, declared: usize) -> Answer {
        let head = Head::new(self.call.method, &filled(self.call.path, &self.names))
            .line(format!("Authorization: Bearer {}", caller.api_key().expect("a client has an API key")))
            .line("Content-Type: application/json")
            .line(format!("Idempotency-Key: {KEY}"))
            .line(format!("Content-Length: {declared}"));
        let head = self.call.headers.iter().fold(head, |head, (name, value)| head.line(format!("{name}: {value}")));
        let mut connection = RawConnection::open(world.address());
        connection.send(&[head.bytes(), b"{".to_vec()].concat());
        read(&connection.answer())
    }
}

/// The path with bytes in the place of its parameters that are no text.
fn with_rubbish(path: &str) -> String {
    path.split('/').map(|part| if part.starts_with('{') { "%FF" } else { part }).collect::<Vec<_>>().join("/")
}

/// An answer that came over a bare connection.
fn read(raw: &RawAnswer) -> Answer {
    let mut headers = HeaderMap::new();
    for (name, value) in raw.head.lines().filter_map(|line| line.split_once(": ")) {
        let name: HeaderName = name.parse().expect("a header's name");
        headers.append(name, HeaderValue::from_str(value).expect("a header's value"));
    }
    let status = raw.status.and_then(|status| StatusCode::from_u16(status).ok()).expect("an answer has a status");
    Answer { status, headers, body: raw.body.clone() }
}

/// A table whose rows all lack a value that no row can lack, as long as this lives.
pub struct Contradiction<'a> {
    database: &'a Database,
    table: &'static str,
}

impl<'a> Contradiction<'a> {
    /// Puts a view in the place of the table. The table needs a row.
    pub fn begin(database: &'a Database, table: &'static str, column: &str) -> Self {
        let rows = database.rows(&format!("SELECT * FROM {table} LIMIT 1"));
        let names: BTreeSet<&String> = rows[0].as_object().expect("a row is an object").keys().collect();
        let columns = names.into_iter().map(|name| match name.as_str() {
            // NULL of the column's own kind.
            name if name == column => format!("NULLIF({name}, {name}) AS {name}"),
            name => name.to_owned(),
        });
        let columns = columns.collect::<Vec<_>>().join(", ");
        database.execute(&format!(
            "ALTER TABLE {table} RENAME TO whole_{table}; CREATE VIEW {table} AS SELECT {columns} FROM whole_{table}"
        ));
        Self { database, table }
    }

    /// Puts the table back.
    pub fn end(self) {
        let table = self.table;
        self.database.execute(&format!("DROP VIEW {table}; ALTER TABLE whole_{table} RENAME TO {table}"));
    }
}
