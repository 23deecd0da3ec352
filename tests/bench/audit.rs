//! What must be true after a run, whatever happened in it: the journal, the rows and the ERP say the same.

use std::collections::{BTreeMap, HashMap};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::http;
use crate::progress::comes_true;
use crate::shop::journal::{self, Entry};
use crate::shop::{PATIENCE, Shop, recorded};
use crate::stage::Stage;

mod rows;

/// How long the service may take to get well, and to bring everything to the ERP.
const LIMIT: Duration = Duration::from_secs(90);
/// How long one replay may take, on a busy machine, from a service that is well.
const REPLAY_LIMIT: Duration = Duration::from_secs(15);
/// How many ask for their replays at a time.
const ASKERS: usize = 8;

/// What was found.
#[derive(Debug, Default)]
pub struct Findings {
    /// Intents in the journal.
    pub intents: u64,
    /// Answers that were asked for again at the end, and were replays.
    pub replays: u64,
    /// Orders, in the rows or in the ERP, beyond one for each intent.
    pub duplicates: u64,
    /// Intents without an answer, and answers without their effect, in the rows or in the ERP.
    pub lost: u64,
    /// How long the relay still needed, after the last answer to the shop, until the ERP had everything.
    pub caught_up: Duration,
    /// Everything that is wrong, in words.
    pub wrong: Vec<String>,
}

impl Findings {
    fn wrong(&mut self, what: impl Into<String>) {
        self.wrong.push(what.into());
    }

    /// Says that a number is zero.
    fn none(&mut self, what: &str, found: i64) {
        if found != 0 {
            self.wrong(format!("{found} {what}"));
        }
    }
}

/// Audits a run that has ended.
pub fn audit(stage: &mut Stage, shop: &Shop) -> Findings {
    let mut findings = Findings::default();
    the_service_is_well(stage, shop, &mut findings);
    the_erp_has_caught_up(stage, &mut findings);
    let entries = journal::read(shop.journal.path());
    findings.intents = entries.len() as u64;
    let answered = every_intent_has_one_answer(&entries, &mut findings);
    let look = stage.look();
    rows::claims_are_the_intents(&look, &answered, &mut findings);
    rows::orders_are_the_intents(&look, &answered, &mut findings);
    rows::nothing_is_half(&look, &answered, &mut findings);
    the_erp_has_each_order_once(stage, &mut findings);
    answers_are_replayed(stage, shop, &answered, &mut findings);
    rows::no_transaction_is_open(&look, &mut findings);
    findings
}

/// Every process that was not ended by a strike still runs, and is ready.
fn the_service_is_well(stage: &mut Stage, shop: &Shop, findings: &mut Findings) {
    for service in stage.services.iter_mut().chain(&mut stage.relay) {
        if !service.runs() {
            findings.wrong(format!("a process has ended by itself: {}", service.log()));
        }
    }
    for address in stage.addresses() {
        let is_ready = || shop.get(address, "/readyz").is_some_and(|answer| answer.status() == 200);
        if !comes_true(LIMIT, is_ready) {
            findings.wrong(format!("{address} is not ready after {LIMIT:?}"));
        }
    }
}

fn the_erp_has_caught_up(stage: &Stage, findings: &mut Findings) {
    let look = stage.look();
    let begun = Instant::now();
    let under_way = || rows::count(&look, "outbox WHERE state IN ('waiting', 'leased')");
    if !comes_true(LIMIT, || under_way() == 0) {
        findings.wrong(format!("{} messages are still under way after {LIMIT:?}", under_way()));
    }
    findings.caught_up = begun.elapsed();
}

/// Every intent has an answer, and every answer of it is the same; where two bodies had one key, one of them has it.
fn every_intent_has_one_answer<'a>(entries: &'a [Entry], findings: &mut Findings) -> Vec<&'a Entry> {
    let mut by_key: BTreeMap<(&str, &str), Vec<&Entry>> = BTreeMap::new();
    for entry in entries {
        by_key.entry((&entry.command, &entry.key)).or_default().push(entry);
        for unexpected in &entry.unexpected {
            findings.wrong(format!("{}: {unexpected}", entry.key));
        }
        if entry.answers.iter().any(|answer| *answer != entry.answers[0]) {
            findings.wrong(format!("{}: its answers differ: {:?}", entry.key, entry.answers));
        }
    }
    let mut answered = Vec::new();
    for ((_, key), entries) in by_key {
        let with_answer: Vec<&Entry> = entries.into_iter().filter(|entry| !entry.answers.is_empty()).collect();
        match with_answer.as_slice() {
            [one] if one.conflicts == 0 => answered.push(*one),
            [] => {
                findings.lost += 1;
                findings.wrong(format!("{key}: no answer"));
            }
            _ => findings.wrong(format!("{key}: more than one body has an answer, or an answer and a conflict")),
        }
    }
    answered
}

/// Asks once more for every answer: it is the same, byte for byte, from whichever process.
fn answers_are_replayed(stage: &Stage, shop: &Shop, answered: &[&Entry], findings: &mut Findings) {
    let addresses = stage.addresses();
    let ask = |(number, entry): (usize, &&Entry)| {
        let request = shop.request_again(entry);
        let mut last = None;
        // A process that has just come back may have a broken connection in its pool, and says 503 once.
        let found = comes_true(REPLAY_LIMIT, || {
            last = http::ask(addresses[number % addresses.len()], &request, PATIENCE);
            last.as_ref().is_some_and(|answer| answer.header("idempotent-replayed").is_some())
        });
        let answer = last.filter(|_| found).ok_or_else(|| format!("{}: no replay", entry.key))?;
        let replayed = answer.header("idempotent-replayed");
        if replayed.as_deref() == Some("true") && recorded(&answer) == entry.answers[0] {
            return Ok(());
        }
        Err(format!("{}: not replayed as it was: {}{}", entry.key, answer.head(), answer.body()))
    };
    let answered: Vec<(usize, &&Entry)> = answered.iter().enumerate().collect();
    let share = answered.len().div_ceil(ASKERS).max(1);
    let results: Vec<Result<(), String>> = thread::scope(|scope| {
        let askers: Vec<_> = answered
            .chunks(share)
            .map(|chunk| scope.spawn(move || chunk.iter().map(|one| ask(*one)).collect::<Vec<_>>()))
            .collect();
        askers.into_iter().flat_map(|asker| asker.join().expect("an asker does not panic")).collect()
    });
    for result in results {
        match result {
            Ok(()) => findings.replays += 1,
            Err(what) => findings.wrong(what),
        }
    }
}

/// The ERP has made each order at most once, and in the end exactly once, unless it was withdrawn before.
fn the_erp_has_each_order_once(stage: &Stage, findings: &mut Findings) {
    let mut made = stage.erp.orders();
    let orders = stage.look().rows(
        "SELECT o.reference AS reference, o.status AS status, m.state AS state FROM orders o \
         JOIN outbox m ON m.tenant_id = o.tenant_id AND m.order_id = o.order_id AND m.kind = 'order.created'",
    );
    for order in orders {
        let reference = text(&order, "reference");
        let documents = made.remove(reference).unwrap_or(0);
        let wanted = match (text(&order, "state"), text(&order, "status")) {
            ("delivered", "confirmed" | "cancelled") => 1,
            ("withdrawn", "cancelled") => 0,
            (hand_over, status) => {
                findings.wrong(format!("{reference}: the order is {status}, its hand-over {hand_over}"));
                continue;
            }
        };
        if documents != wanted {
            findings.duplicates += u64::from(documents.saturating_sub(wanted));
            findings.lost += u64::from(wanted.saturating_sub(documents));
            findings.wrong(format!("{reference}: the ERP has {documents} of it, not {wanted}"));
        }
    }
    for reference in made.keys() {
        findings.duplicates += 1;
        findings.wrong(format!("{reference}: the ERP has it, and the service has not"));
    }
}

fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap_or_default()
}

/// Rows by the value of one column.
fn by<'a>(rows: &'a [Value], name: &str) -> HashMap<&'a str, Vec<&'a Value>> {
    let mut sorted: HashMap<&str, Vec<&Value>> = HashMap::new();
    for row in rows {
        sorted.entry(text(row, name)).or_default().push(row);
    }
    sorted
}
