//! Plays a sequence against the running service, tells the model what was answered, and ends with a look at all rows.

use std::collections::BTreeMap;
use std::fmt::Write;

use order_service::api_key;
use order_service::db::Db;

use super::ask::Asked;
use super::contract::{Model, TENANT_OF, Verdict, unrecorded};
use super::rows::{self, Names};
use super::spelling::Spelling;
use super::step::{Rights, Step, Try};
use super::wish;
use crate::harness::database::Database;
use crate::harness::erp::FakeErp;
use crate::harness::http::{Answer, Caller, send};
use crate::harness::relay::HandRelay;

/// The clients. Two of one tenant, and one of another that has the name of the first.
pub const CLIENTS: [&str; 3] = ["shop", "connector", "shop"];

/// The scopes that read.
pub(super) const READ: [&str; 3] = ["orders:read", "payments:read", "stock:read"];
/// The scopes that command.
pub(super) const WRITE: [&str; 3] = ["orders:write", "payments:write", "stock:write"];
/// What all sequences of a test share.
pub struct Ground<'a> {
    /// The database that the service runs on.
    pub database: &'a Database,
    /// A connection of its own, for keys and for the cleaner.
    pub db: &'a mut Db,
    /// What the relay brings hand-overs to.
    pub erp: FakeErp,
    /// The relay, which moves when a step says so.
    pub relay: HandRelay,
    /// Anybody who calls the service.
    pub caller: Caller,
    /// How often each command came to each end.
    pub ends: BTreeMap<String, u32>,
}

/// One sequence.
pub struct Play<'a, 'b> {
    pub(super) ground: &'a mut Ground<'b>,
    pub(super) names: Names,
    pub(super) api_keys: Vec<[ApiKey; 2]>,
    pub(super) model: Model,
    tried: Vec<Asked>,
    /// What was sent and answered, for people.
    pub(super) log: String,
}

/// An API key of a client, and what it may do now.
#[derive(Clone)]
pub(super) struct ApiKey {
    pub(super) caller: Caller,
    pub(super) rights: Rights,
}

/// A try, ready to be sent.
struct Attempt {
    asked: Asked,
    slot: usize,
    spelling: Spelling,
}

/// Plays the steps as two tenants that nobody else uses.
///
/// # Errors
/// Where the service and the model part, behind all that was sent and answered before.
pub async fn play(ground: &mut Ground<'_>, number: usize, steps: &[Step]) -> Verdict {
    let tenants = [format!("t{number}a"), format!("t{number}b")];
    let mut play = Play::begin(ground, Names { tenants, clients: CLIENTS });
    let mut verdict = Ok(());
    for step in steps {
        verdict = play.step(step).await;
        if verdict.is_err() {
            break;
        }
    }
    let verdict = verdict.and_then(|()| rows::compare(&play.model, &play.names, play.ground.database));
    play.end();
    verdict.map_err(|difference| format!("{}\n{difference}", play.log))
}

impl<'a, 'b> Play<'a, 'b> {
    fn begin(ground: &'a mut Ground<'b>, names: Names) -> Self {
        let api_keys = (0..CLIENTS.len())
            .map(|client| {
                [0, 1].map(|_| {
                    let tenant = &names.tenants[TENANT_OF[client]];
                    let key = api_key::issue(ground.db, tenant, CLIENTS[client], &[READ, WRITE].concat());
                    let key = key.unwrap_or_else(|error| panic!("a key can be issued: {error}"));
                    ApiKey { caller: ground.caller.with_api_key(Some(key)), rights: Rights::All }
                })
            })
            .collect();
        Play { ground, names, api_keys, model: Model::default(), tried: Vec::new(), log: String::new() }
    }

    /// The cleaner asks every tenant, so those that are done with are taken from its way.
    fn end(&self) {
        let [one, other] = &self.names.tenants;
        let deletes = ["api_keys", "clients", "tenants"]
            .map(|table| format!("DELETE FROM {table} WHERE tenant_id IN ('{one}', '{other}')"));
        self.ground.database.execute(&deletes.join("; "));
    }

    async fn step(&mut self, step: &Step) -> Verdict {
        match step {
            Step::Try(one) => match self.attempt(one) {
                Some(attempt) => self.one(attempt).await,
                None => Ok(()),
            },
            Step::Rivals(one, other) => match (self.attempt(one), self.attempt(other)) {
                (Some(one), Some(other)) => self.rivals(one, other).await,
                _ => Ok(()),
            },
            Step::Broken { client, broken } => self.broken(*client, *broken).await,
            Step::Rights { client, slot, rights } => {
                self.set_rights(*client, *slot, *rights);
                Ok(())
            }
            Step::Age { nth, age } => {
                self.age(*nth, *age);
                Ok(())
            }
            Step::Clean { batch } => {
                self.clean(*batch);
                Ok(())
            }
            Step::Expire { tenant, nth } => {
                self.expire(*tenant, *nth);
                Ok(())
            }
            Step::Erp { tenant, nth, status } => {
                self.erp_answers(*tenant, *nth, status).await;
                Ok(())
            }
            Step::Read { client, slot, read } => self.read(*client, *slot, *read).await,
        }
    }

    /// Nothing, where a try means an earlier one and there is none.
    fn attempt(&mut self, what: &Try) -> Option<Attempt> {
        let count = self.tried.len();
        let earlier = |nth: usize| (count > 0).then(|| self.tried[nth % count].clone());
        let attempt = match what {
            Try::New { client, slot, key, wish, spelling } => {
                let ask = wish::ask(&self.model, *client, wish);
                let asked = Asked { client: *client, key: format!("k\"{key}"), ask };
                Attempt { asked, slot: *slot, spelling: spelling.clone() }
            }
            Try::Again { nth, client, slot, spelling } => {
                let mut asked = earlier(*nth)?;
                asked.client = client.unwrap_or(asked.client);
                Attempt { asked, slot: *slot, spelling: spelling.clone() }
            }
            Try::Otherwise { nth, slot, number, spelling } => {
                let mut asked = earlier(*nth)?;
                asked.ask = asked.ask.changed(*number);
                Attempt { asked, slot: *slot, spelling: spelling.clone() }
            }
        };
        self.tried.push(attempt.asked.clone());
        Some(attempt)
    }

    async fn one(&mut self, attempt: Attempt) -> Verdict {
        let answer = send(self.request(&attempt)).await;
        self.note(&attempt, &answer);
        self.judge_in(&mut self.model.clone(), &attempt, &answer).map(|model| self.model = model)
    }

    /// Two at the same time come to what they come to one after the other, whichever is first. Where the answers fit both
    /// orders, the rows say which it was.
    async fn rivals(&mut self, one: Attempt, other: Attempt) -> Verdict {
        let (first, second) = tokio::join!(send(self.request(&one)), send(self.request(&other)));
        self.log.push_str("both at once:\n");
        self.note(&one, &first);
        self.note(&other, &second);
        let orders = [[(&one, &first), (&other, &second)], [(&other, &second), (&one, &first)]];
        let mut differences = String::new();
        for [(one, first), (other, second)] in orders {
            let fits = self
                .judge_in(&mut self.model.clone(), one, first)
                .and_then(|mut model| self.judge_in(&mut model, other, second))
                .and_then(|model| rows::compare(&model, &self.names, self.ground.database).map(|()| model));
            match fits {
                Ok(model) => {
                    self.model = model;
                    return Ok(());
                }
                Err(difference) => writeln!(differences, "in one order: {difference}").expect("text takes text"),
            }
        }
        Err(differences)
    }

    /// The model after this try; the rights of the API key are looked at before anything else.
    fn judge_in(&self, model: &mut Model, attempt: &Attempt, answer: &Answer) -> Result<Model, String> {
        match self.api_keys[attempt.asked.client][attempt.slot].rights {
            Rights::Revoked => unrecorded(answer, 401, "Unauthenticated")?,
            Rights::ReadOnly => unrecorded(answer, 403, "Forbidden")?,
            Rights::All | Rights::WriteOnly => model.judge(&attempt.asked, answer)?,
        }
        Ok(model.clone())
    }

    fn request(&self, attempt: &Attempt) -> reqwest::RequestBuilder {
        let Attempt { asked, slot, spelling } = attempt;
        let ask = &asked.ask;
        let caller = &self.api_keys[asked.client][*slot].caller;
        let path = ask.kind.path(&spelling.segment(&ask.target));
        let mut request = caller.request(ask.kind.method(), &path);
        request = request.header("Idempotency-Key", spelling.key(&asked.key));
        if let Some(tags) = &ask.if_match {
            request = request.header("If-Match", tags);
        }
        if let Some(tags) = &ask.if_none_match {
            request = request.header("If-None-Match", tags);
        }
        match spelling.body(&ask.body, ask.kind.optional_members(), ask.kind.is_order()) {
            Some(body) => request.header("Content-Type", "application/json").body(body),
            None => request,
        }
    }

    fn note(&mut self, attempt: &Attempt, answer: &Answer) {
        let Asked { client, key, ask } = &attempt.asked;
        let Attempt { slot, spelling, .. } = attempt;
        let replayed = answer.header("idempotent-replayed").unwrap_or("-");
        let code = answer.json()["error"].as_str().unwrap_or("done").to_owned();
        let end = if replayed == "true" { "replayed" } else { &code };
        *self.ground.ends.entry(format!("{} {end}", ask.kind.name())).or_default() += 1;
        writeln!(
            self.log,
            "client {client}, API key {slot}, {} {} key={key} {} {spelling:?}\n  -> {} replayed={replayed} {}",
            ask.kind.name(),
            ask.target,
            ask.body,
            answer.status.as_u16(),
            answer.text(),
        )
        .expect("text takes text");
    }
}
