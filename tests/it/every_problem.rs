//! Every problem that the document declares for an operation comes on that operation, just as it is declared; and nothing
//! is declared that cannot come. The list is the document's own, so that a new command or code is held to it.

mod declared;
mod ledger;
mod means;
mod paths;
mod recipes;

use std::collections::BTreeSet;

use actix_web::rt;
use futures_util::future::join_all;
use order_service::problem::{Code, Kept};

use crate::every_command::recipes::{Call, RECIPES};
use crate::every_command::{Names, client, is_replay_of, request, take_steps, with_bad_body};
use crate::harness::database::Dialect;
use crate::harness::http::{Answer, Caller, send};
use crate::harness::rival::{Rival, until_waiting};
use crate::harness::world::{CLIENT, World, on_both_databases};
use crate::retention::{SPENT, age_where};
use declared::Operation;
use ledger::Ledger;
use means::{Contradiction, KEY, MAX_BODY, OF_THE_REQUEST, Working};
use recipes::{READS, REFUSALS, get};

/// One connection, so that one who waits holds up all; and limits that a test can reach.
const NARROW: &[(&str, &str)] = &[
    ("ORDERS_POOL_SIZE", "1"),
    ("ORDERS_POOL_TIMEOUT", "1s"),
    ("ORDERS_MAX_BODY", MAX_BODY),
    ("ORDERS_BODY_TIMEOUT", "200ms"),
];

/// So many requests of one client, one after the other, are not all a second apart.
const CROWD: usize = 30;

on_both_databases! {
    async fn every_declared_problem_comes_and_nothing_else_is_declared(world: World) {
        world.restart(NARROW).await;
        let document = world.stranger().get("/openapi.json").await.expect(200).json();
        let mut walk = Walk { client: client(&world), ledger: Ledger::of(&document), world };
        let mut all = Vec::new();
        for operation in Operation::all(&document) {
            all.push(walk.prepare(operation).await);
        }
        for working in &all {
            walk.ask_wrongly(working).await;
            if working.is_command() {
                walk.use_the_key(working).await;
            } else {
                walk.contradict_the_rows(working).await;
            }
        }
        walk.be_refused(&all).await;
        walk.lack_a_migration(&all).await;
        walk.fill_the_pool(&all).await;
        walk.ask_too_often(&all).await;

        let operations: Vec<Operation> = all.into_iter().map(|working| working.operation).collect();
        let dialect = walk.world.dialect();
        walk.ledger.is_complete(&operations, |operation, code| {
            // Who only reads a SQLite file waits for nobody, so that there nobody can fill the pool of the readers.
            code == Code::ServiceUnavailable && operation.command.is_none() && dialect == Dialect::Sqlite
        });
        let declared: BTreeSet<Code> = operations.iter().flat_map(Operation::codes).collect();
        let idle: Vec<&Code> = OF_THE_REQUEST.iter().filter(|code| !declared.contains(code)).collect();
        assert!(idle.is_empty(), "there are means for {idle:?}, which no operation declares");
    }
}

/// The walk over the operations: who walks, where, and what came so far.
struct Walk {
    world: World,
    client: Caller,
    ledger: Ledger,
}

impl Walk {
    /// Finds the call that works, and makes what it needs.
    async fn prepare(&self, operation: Operation) -> Working {
        let (before, call, needs) = if let Some(command) = &operation.command {
            let recipe = RECIPES.iter().find(|recipe| recipe.command == command);
            let recipe = recipe
                .unwrap_or_else(|| panic!("{command} has no recipe: add one to tests/it/every_command/recipes.rs"));
            (recipe.before, recipe.call, None)
        } else {
            let recipe = READS.iter().find(|recipe| recipe.operation == operation.name);
            let recipe = recipe.unwrap_or_else(|| {
                panic!("{} has no recipe: add one to tests/it/every_problem/recipes.rs", operation.name)
            });
            (recipe.before, get(recipe.path), recipe.needs)
        };
        let names = take_steps(&operation.name, before, &self.client, self.world.database()).await;
        let powerless = means::powerless(&self.world, &operation, CLIENT);
        Working { operation, call, names, needs, powerless }
    }

    /// What the checks before the claim say: nothing of it leaves a row, and the key is as free as it was.
    async fn ask_wrongly(&mut self, working: &Working) {
        let before = self.world.database().everything();
        for code in OF_THE_REQUEST.into_iter().filter(|code| working.operation.declares(*code)) {
            let answer = working.asked_wrongly(&self.world, &self.client, code).await;
            self.ledger.note(&working.operation, code, &answer);
        }
        let after = self.world.database().everything();
        assert_eq!(after, before, "{}: asking wrongly left something", working.operation.name);
        let done = working.ask(&self.client, KEY).await;
        assert!(done.status.is_success(), "{}: {}", working.operation.name, done.text());
        let replayed = working.is_command().then_some("false");
        assert_eq!(done.header("idempotent-replayed"), replayed, "{}: the key was taken", working.operation.name);
    }

    /// What is said of a key that is taken: of all this it stays what it was, until it is spent.
    async fn use_the_key(&mut self, working: &Working) {
        let (database, operation) = (self.world.database(), &working.operation);
        let first = working.ask(&self.client, KEY).await;
        let before = database.everything();
        let other = working.ask_for(&self.client, &with_bad_body(&working.call)).await;
        self.ledger.note(operation, Code::IdempotencyKeyConflict, &other);
        assert_eq!(other.json()["idempotencyKey"], KEY, "{}", operation.name);

        let command = operation.command.as_deref().expect("only commands take keys");
        let the_claim = format!("idempotency_key = '{KEY}' AND command = '{command}'");
        let mark =
            |value: &str| database.execute(&format!("UPDATE claims SET fingerprint = {value} WHERE {the_claim}"));
        mark("'v9:' || fingerprint");
        let unreadable = working.ask(&self.client, KEY).await;
        self.ledger.note(operation, Code::InternalError, &unreadable);
        mark("substr(fingerprint, 4)");
        assert_eq!(database.everything(), before, "{}: the key is not what it was", operation.name);
        let replay = working.ask(&self.client, KEY).await;
        assert_eq!((replay.status, &replay.body), (first.status, &first.body), "{}", operation.name);

        // What waits for somebody else has no end yet: here it has had one.
        let end = "status = 'succeeded', completed_at = created_at, replay_until = created_at, remember_until = '2100-01-01 00:00:00'";
        database.execute(&format!("UPDATE operations SET {end} WHERE {the_claim} AND completed_at IS NULL"));
        age_where(database, SPENT, &the_claim);
        let spent = working.ask(&self.client, KEY).await;
        self.ledger.note(operation, Code::IdempotencyKeyExpired, &spent);
        let links = &spent.json()["links"];
        assert!(links["self"].is_string() && links["operation"].is_string(), "{}: {links}", operation.name);
    }

    /// A read that meets rows which contradict themselves says so, and is well again with them.
    async fn contradict_the_rows(&mut self, working: &Working) {
        let Some((table, column)) = working.needs else { return };
        let contradiction = Contradiction::begin(self.world.database(), table, column);
        let failed = working.ask(&self.client, KEY).await;
        contradiction.end();
        self.ledger.note(&working.operation, Code::InternalError, &failed);
        working.ask(&self.client, KEY).await.expect(200);
    }

    /// The refusals: those of an invalid body, and the operation's own.
    async fn be_refused(&mut self, all: &[Working]) {
        for working in all.iter().filter(|working| working.is_command()) {
            let call = with_bad_body(&working.call);
            self.refuse(&working.operation, Code::InvalidRequest, &call, &working.names).await;
        }
        for refusal in REFUSALS {
            let (name, code) = (refusal.operation, refusal.code);
            let working = all.iter().find(|working| working.operation.name == name);
            let Working { operation, .. } = working.unwrap_or_else(|| panic!("{name} is refused, and no operation"));
            assert!(operation.declares(code), "there is a recipe for {name} {code:?}, which is not declared");
            let purpose = format!("{name}-{code:?}");
            let names = take_steps(&purpose, refusal.before, &self.client, self.world.database()).await;
            self.refuse(operation, code, &refusal.call, &names).await;
        }
    }

    /// A refusal of a command is recorded under its key and leaves nothing else; that of a read leaves nothing.
    async fn refuse(&mut self, operation: &Operation, code: Code, call: &Call, names: &Names) {
        let place = format!("{} {code:?}", operation.name);
        let before = self.world.database().everything();
        let is_recorded = operation.command.is_some() && code.entry().kept == Kept::Recorded;
        let key = format!("walk-{}-{code:?}", operation.name);
        let ask = || async {
            let asked = request(&self.client, call, names, is_recorded.then_some(key.as_str()));
            send(asked.header("Prefer", "wait=5")).await
        };
        let first: Answer = ask().await;
        let after = self.world.database().everything();
        for (table, rows) in &after {
            let more = usize::from(is_recorded && ["claims", "operations"].contains(&table.as_str()));
            assert_eq!(rows.len(), before[table].len() + more, "{place}: {table}");
            assert!(more == 1 || rows == &before[table], "{place}: {table}");
        }
        if is_recorded {
            is_replay_of(&ask().await, &first, &place);
            assert_eq!(self.world.database().everything(), after, "{place}: a replay changed something");
        }
        self.ledger.note(operation, code, &first);
    }

    /// A database that lacks a migration is not ready, and is when it has it.
    async fn lack_a_migration(&mut self, all: &[Working]) {
        let ready = all.iter().find(|working| working.operation.path == "/readyz").expect("it is an operation");
        let rename = |version: &str| format!("UPDATE __diesel_schema_migrations SET version = {version}");
        self.world.database().execute(&rename("'x' || version"));
        let lacking = ready.ask(&self.client, KEY).await;
        self.world.database().execute(&rename("substr(version, 2)"));
        self.ledger.note(&ready.operation, Code::ServiceUnavailable, &lacking);
        ready.ask(&self.client, KEY).await.expect(200);
    }

    /// One request has the one connection, and waits on it for somebody outside; all others wait for it in vain.
    async fn fill_the_pool(&mut self, all: &[Working]) {
        let (database, dialect) = (self.world.database(), self.world.dialect());
        let before = database.everything();
        // On SQLite somebody else writes to the file, and only who wants to write too is held up.
        let hold = match dialect {
            Dialect::Postgres => "LOCK TABLE operations IN ACCESS EXCLUSIVE MODE",
            Dialect::Sqlite => "SELECT 1",
        };
        let outside = Rival::begin(database, hold);
        let first = all.iter().find(|working| working.is_command()).expect("there are commands");
        // A key that is spent: whatever becomes of this request, it changes nothing.
        let waiting = request(&self.client, &first.call, &first.names, Some(KEY));
        let waiting = rt::spawn(async move { send(waiting).await });
        if dialect == Dialect::Postgres {
            until_waiting(database, 1).await;
        }
        let held_up = |working: &&Working| dialect == Dialect::Postgres || working.is_command();
        let held_up: Vec<&Working> =
            all.iter().filter(|working| working.operation.declares(Code::ServiceUnavailable)).filter(held_up).collect();
        let answers = join_all(held_up.iter().map(|working| working.ask(&self.client, "walk-held-up"))).await;
        outside.roll_back();
        waiting.await.expect("the request ends");
        for (working, answer) in held_up.iter().zip(&answers) {
            self.ledger.note(&working.operation, Code::ServiceUnavailable, answer);
        }
        assert_eq!(self.world.database().everything(), before, "what was unavailable left something");
    }

    /// A client that asks too often hears it before anything else but who it is, and nothing comes of it.
    async fn ask_too_often(&mut self, all: &[Working]) {
        self.world.restart(&[("ORDERS_RATE_LIMIT", "1")]).await;
        let limited = all.iter().filter(|working| working.operation.declares(Code::RateLimited));
        // Each operation with a client of its own; one that may not do it, so that the requests that are not too many
        // leave nothing either.
        let limited: Vec<(&Working, Caller)> = (1..)
            .zip(limited)
            .map(|(number, working)| {
                (working, means::powerless(&self.world, &working.operation, &format!("walker-{number}")))
            })
            .collect();
        let before = self.world.database().everything();
        for (working, caller) in &limited {
            let mut tries = 0;
            let one_too_many = loop {
                let answer = working.ask(caller, "walk-too-often").await;
                if answer.status == 429 {
                    break answer;
                }
                tries += 1;
                assert!(tries < CROWD, "{} is not limited", working.operation.name);
            };
            self.ledger.note(&working.operation, Code::RateLimited, &one_too_many);
        }
        assert_eq!(self.world.database().everything(), before, "what was too often left something");
    }
}
