//! Who may know whom: the rooms of the service from the top to the bottom, and the crates each of them may use.

use super::source::{Mention, Source};
use super::{Fault, Rule, Scope};

/// Every room and its height. A room uses rooms below it and itself; rooms of one height do not know each other.
const HEIGHTS: &[(&str, u8)] = &[
    ("main", 11),
    ("cli", 10),
    ("app", 9),
    ("api", 8),
    ("relay", 8),
    ("reconcile", 8),
    ("retention", 8),
    ("policy", 7),
    ("command", 6),
    ("erp", 6),
    ("outbox", 5),
    ("stock", 5),
    ("payment", 5),
    ("api_key", 4),
    ("db", 3),
    ("config", 2),
    ("metrics", 2),
    // The values: parsed, compared and written, without any outside.
    ("json", VALUE),
    ("money", VALUE),
    ("order", VALUE),
    ("problem", VALUE),
    ("schema", VALUE),
];
/// Values may use each other.
const VALUE: u8 = 1;

const EDGE: &[&str] = &["main", "cli", "app", "api"];
/// There is no layer of repositories: a read of the API is a query where it is answered.
const STORAGE: &[&str] =
    &["db", "api_key", "outbox", "stock", "payment", "command", "api", "relay", "reconcile", "retention"];

/// Crates by the beginning of their name, and the rooms they stay in.
const CRATES: &[(&str, &[&str])] = &[
    ("actix", EDGE),
    ("utoipa", EDGE),
    ("reqwest", &["erp"]),
    ("diesel", STORAGE),
    ("r2d2", STORAGE),
    ("dotenvy", &["main", "config"]),
];

/// Where a request or a tick of the relay or of the cleaner begins. Below it, time is a parameter; `command` asks
/// once more, how much of its request's patience is left, and `relay/deliver.rs`, how much of its lease.
const CLOCKS: &[&str] = &[
    "src/api/access.rs",
    "src/api/commands.rs",
    "src/command.rs",
    "src/command/gate.rs",
    "src/relay.rs",
    "src/relay/deliver.rs",
    "src/retention.rs",
];

pub const RULES: &[Rule] = &[
    Rule {
        name: "dependencies run one way",
        scope: Scope::Service,
        check: upward_uses,
        bad: &[
            ("src/db.rs", "use crate::command::claim;"),
            ("src/json.rs", "use crate::db;"),
            ("src/relay.rs", "use crate::{db::Db, api::body};"),
            ("src/order/line.rs", "fn f() { super::super::outbox::append(); }"),
            ("src/outbox.rs", "stamp!(db, { crate::command::run() });"),
            ("src/somewhere.rs", "fn f() {}"),
            ("src/api.rs", "use crate::Db;"),
        ],
        good: &[
            ("src/command/claim.rs", "use crate::db::Db; use super::key; use crate::{json, outbox};"),
            ("src/order.rs", "use crate::money::Amount; mod line { use super::super::json; }"),
            ("src/main.rs", "use order_service::app::App;"),
        ],
    },
    Rule {
        name: "a crate stays in its rooms",
        scope: Scope::Service,
        check: crates_out_of_place,
        bad: &[
            ("src/command/order.rs", "use actix_web::web;"),
            ("src/order.rs", "#[derive(utoipa::ToSchema)] struct A;"),
            ("src/order.rs", "use diesel::prelude::*;"),
            ("src/relay.rs", "fn f() { reqwest::Client::new(); }"),
        ],
        good: &[
            ("src/api/orders.rs", "use actix_web::web;"),
            ("src/db/pool.rs", "use {diesel::Connection, r2d2::Pool};"),
        ],
    },
    Rule {
        name: "the environment is read in config alone",
        scope: Scope::Service,
        check: |file| {
            let found = |mention: &Mention| mention.has(&["std", "env"]) || mention.has(&["env", "var"]);
            unless_in(file, &["main", "config"], found, "take it from Config")
        },
        bad: &[
            ("src/db.rs", "fn f() { std::env::var(\"A\"); }"),
            ("src/app.rs", "use std::{env, fs};"),
            ("src/app.rs", "fn f() { env::var(\"A\"); }"),
        ],
        good: &[
            ("src/config.rs", "fn f() { std::env::var(\"A\"); }"),
            ("src/app.rs", "const A: &str = env!(\"CARGO_PKG_VERSION\");"),
        ],
    },
    Rule {
        name: "the clock is read where a request or a tick begins",
        scope: Scope::Service,
        check: clocks_out_of_place,
        bad: &[
            ("src/command/claim.rs", "fn f() { chrono::Utc::now(); }"),
            ("src/db.rs", "fn f() { let t = Instant::now(); }"),
            ("src/order.rs", "stamp!(SystemTime::now());"),
        ],
        good: &[
            ("src/relay.rs", "fn f() { Utc::now(); }"),
            ("src/db.rs", "fn f(now: DateTime<Utc>) {} #[cfg(test)] mod tests { fn f() { Utc::now(); } }"),
        ],
    },
    Rule {
        name: "no binary floats, which change numbers",
        scope: Scope::Service,
        check: |file| {
            let found =
                |mention: &Mention| mention.names.iter().any(|name| ["f32", "f64", "as_f64"].contains(&name.as_str()));
            unless_in(file, &["metrics"], found, "use rust_decimal::Decimal, or an integer of a smaller unit")
        },
        bad: &[("src/money.rs", "fn f(a: f64) {}"), ("src/json.rs", "fn f(v: V) { v.as_f64(); }")],
        good: &[("src/metrics.rs", "fn f(seconds: f64) {}")],
    },
];

fn height(room: &str) -> Option<u8> {
    HEIGHTS.iter().find(|(name, _)| *name == room).map(|(_, height)| *height)
}

fn upward_uses(file: &Source) -> Vec<Fault> {
    let room = file.room();
    if room == "lib" {
        return Vec::new();
    }
    let Some(own) = height(room) else {
        return vec![Fault { line: 1, advice: format!("give the room `{room}` a height in tests/it/tidy/layers.rs") }];
    };
    let mut faults = Vec::new();
    for mention in file.mentions.iter().filter(|mention| mention.names[0] == "crate" && mention.names.len() > 1) {
        let other = mention.names[1].as_str();
        let advice = match height(other) {
            _ if other == room => continue,
            Some(theirs) if theirs < own || (theirs == VALUE && own == VALUE) => continue,
            Some(_) => format!("`{room}` must not know `{other}`"),
            // Macros are of the whole crate; a type is of a room.
            None if other.starts_with(char::is_uppercase) => format!("name the room that `{other}` is in"),
            None => continue,
        };
        faults.push(Fault { line: mention.line, advice });
    }
    faults
}

fn crates_out_of_place(file: &Source) -> Vec<Fault> {
    let place = |(prefix, rooms): &(&str, &[&str])| {
        let found = |mention: &Mention| mention.names.len() > 1 && mention.names[0].starts_with(prefix);
        unless_in(file, rooms, found, &format!("only {} may use it", rooms.join(", ")))
    };
    CRATES.iter().flat_map(place).collect()
}

fn clocks_out_of_place(file: &Source) -> Vec<Fault> {
    if CLOCKS.contains(&file.path.as_str()) {
        return Vec::new();
    }
    let clocks = ["Utc", "Local", "SystemTime", "Instant"];
    let found = |mention: &Mention| clocks.iter().any(|clock| mention.has(&[clock, "now"]));
    unless_in(file, &[], found, "take the time as a parameter, or add the file to CLOCKS in tests/it/tidy/layers.rs")
}

/// A fault for every mention found, unless the file is in one of the rooms.
fn unless_in(file: &Source, rooms: &[&str], found: impl Fn(&Mention) -> bool, advice: &str) -> Vec<Fault> {
    if rooms.contains(&file.room()) {
        return Vec::new();
    }
    let faults = file.mentions.iter().filter(|mention| found(mention));
    faults.map(|mention| Fault { line: mention.line, advice: format!("`{}`: {advice}", mention.text()) }).collect()
}
