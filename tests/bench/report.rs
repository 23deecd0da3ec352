//! What the runs have shown, as the table of the report.

use std::fmt::Write;
use std::time::Duration;

use crate::faults::Fault;
use crate::run::Outcome;
use crate::strikes::cores;

/// The sum of the runs of one fault on one database.
#[derive(Default)]
struct Line {
    fault: &'static str,
    about: &'static str,
    database: &'static str,
    runs: u64,
    strikes: u64,
    intents: u64,
    sent: u64,
    replays: u64,
    duplicates: u64,
    lost: u64,
    recovery: Duration,
}

/// All that was run.
#[derive(Default)]
pub struct Report {
    lines: Vec<Line>,
    wrong: Vec<String>,
    left_out: Vec<String>,
}

/// When and how the bench was run.
pub struct Circumstances {
    /// The seed of the first round.
    pub seed: u64,
    /// How many rounds were begun.
    pub rounds: u64,
    /// How long it took.
    pub took: Duration,
    /// The day, as a text.
    pub day: String,
}

impl Report {
    /// Adds a run.
    pub fn add(&mut self, fault: &'static Fault, database: &'static str, seed: u64, outcome: &Outcome) {
        let found = self.lines.iter_mut().position(|line| line.fault == fault.name && line.database == database);
        let index = found.unwrap_or_else(|| {
            self.lines.push(Line { fault: fault.name, about: fault.about, database, ..Line::default() });
            self.lines.len() - 1
        });
        let line = &mut self.lines[index];
        let (counts, findings) = (&outcome.counts, &outcome.findings);
        line.runs += 1;
        line.strikes += outcome.strikes;
        line.intents += findings.intents;
        line.sent += counts.sent;
        line.replays += counts.replays + findings.replays;
        line.duplicates += findings.duplicates;
        line.lost += findings.lost;
        line.recovery = line.recovery.max(outcome.recovery);
        self.wrong
            .extend(findings.wrong.iter().map(|what| format!("{} on {database}, seed {seed}: {what}", fault.name)));
    }

    /// Notes what could not be run here, and why.
    pub fn leave_out(&mut self, fault: &Fault, database: &str, why: &str) {
        let note = format!("{} on {database}: {why}", fault.name);
        if !self.left_out.contains(&note) {
            self.left_out.push(note);
        }
    }

    /// Whether everything was as it must be.
    pub fn is_good(&self) -> bool {
        self.wrong.is_empty()
    }

    /// The sum of all intents.
    pub fn intents(&self) -> u64 {
        self.lines.iter().map(|line| line.intents).sum()
    }

    /// The page.
    pub fn page(&self, circumstances: &Circumstances) -> String {
        let Circumstances { seed, rounds, took, day } = circumstances;
        let mut page = String::from("# Fault report\n\n");
        let minutes = took.as_secs() / 60;
        write!(
            page,
            "One run of `make bench-faults` on {day}: {minutes} minutes, {rounds} rounds, seeds {seed} and up, a debug build on \
             {} cores that ran the service, both databases, the ERP and the shop. What each fault does is in \
             `tests/bench/faults.rs`; `cargo test --test bench -- --only FAULT --seed SEED` repeats a run.\n\n",
            cores()
        )
        .expect("a text takes all that is written");
        page += "| fault | database | runs | strikes | intents | requests sent | replays | duplicates | lost | longest time to recover |\n";
        page += "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n";
        let sum = self.lines.iter().fold(Line::default(), |sum, line| Line {
            runs: sum.runs + line.runs,
            strikes: sum.strikes + line.strikes,
            intents: sum.intents + line.intents,
            sent: sum.sent + line.sent,
            replays: sum.replays + line.replays,
            duplicates: sum.duplicates + line.duplicates,
            lost: sum.lost + line.lost,
            recovery: sum.recovery.max(line.recovery),
            ..sum
        });
        for line in &self.lines {
            row(&mut page, &format!("{} (`{}`)", line.about, line.fault), line);
        }
        row(&mut page, "**sum**", &sum);
        page += NOTES;
        list(&mut page, "Left out", &self.left_out);
        list(&mut page, "What was wrong", &self.wrong);
        page
    }
}

const NOTES: &str = "
Read it so:

- *intents*: what the shop wrote into its journal before the first request. After each run every intent has exactly one order, or
  one recorded refusal; every order has an intent; claims, results, orders, lines and messages fit together; the ERP has each order
  once; no transaction is open; every process is ready. Of two bodies under one key (`rivals`) both are counted: one is carried out,
  the other hears of a conflict.
- *requests sent*: by the shop, each a connection of its own. A doubled request counts once.
- *replays*: answers with `Idempotent-Replayed: true`, among them every recorded answer, asked for again at the end of its run and
  compared byte for byte.
- *duplicates*, *lost*: orders beyond one for each intent, and answers or orders that are missing, in the rows or in the ERP.
- *strikes*: how often a process, the database or the clock was struck while the shop traded. A wire breaks two requests of five
  instead, and a crowd is a fault by itself.
- *longest time to recover*: with strikes, from the moment the cause was gone (the database takes connections again, the lock is
  released, a killed process begins to start) until every process had carried out a new command; without, from the first failure
  of an intent to its answer, the shop's own time-out of 1.5 s and its pauses included. Where the ERP's answers are lost it is also
  the time from the last answer to the shop until the ERP had everything; what may have arrived is looked for after 6 s.
";

fn row(page: &mut String, name: &str, line: &Line) {
    writeln!(
        page,
        "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {:.1} s |",
        line.database,
        line.runs,
        line.strikes,
        line.intents,
        line.sent,
        line.replays,
        line.duplicates,
        line.lost,
        line.recovery.as_secs_f64()
    )
    .expect("a text takes all that is written");
}

fn list(page: &mut String, title: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    page.extend(["\n", title, ":\n\n"]);
    for item in items {
        page.extend(["- ", item, "\n"]);
    }
}
