//! The bench that breaks the service: the real program over real sockets, a shop that keeps its intents, and every fault that
//! an order can meet on its way. It counts rows and documents of the ERP at the end; a good status proves nothing.
//!
//! `cargo test --test bench -- --short` runs the short mix, `make bench-faults MINUTES=30` all of it. It prints its seed, and
//! the seed repeats what was done to each intent.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};

mod audit;
mod chance;
mod crowds;
mod erp;
mod faults;
mod guard;
mod harness;
mod http;
mod nginx;
mod postgres;
mod progress;
mod proof;
mod report;
mod run;
mod shop;
mod stage;
mod strikes;
mod volume;
mod wire;

use erp::Promise;
use faults::{FAULTS, Fault};
use report::{Circumstances, Report};
use run::Scale;

#[derive(Parser)]
#[command(about = "Breaks the order service, and counts what is left.")]
struct Arguments {
    #[command(subcommand)]
    task: Option<Task>,
    /// Begin no new round after so many minutes; without it there is one round.
    #[arg(long, default_value_t = 0)]
    minutes: u64,
    /// The seed of the first round; each further round has the next one.
    #[arg(long)]
    seed: Option<u64>,
    /// The short mix, small.
    #[arg(long)]
    short: bool,
    /// This fault alone.
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(FAULTS.iter().map(|fault| fault.name)))]
    only: Option<String>,
    /// This is the process that is waited for.
    #[arg(long, hide = true)]
    guarded: bool,
    /// A directory in which to keep the journal of every run: its history, one JSON object a line.
    #[arg(long)]
    journals: Option<PathBuf>,
    /// Where to write the report.
    #[arg(long)]
    report: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Task {
    /// The ERP's process; the bench starts it by itself.
    #[command(hide = true)]
    Erp {
        /// The port.
        port: u16,
        /// Its documents.
        file: PathBuf,
        /// What it promises.
        promise: String,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(Task::Erp { port, file, promise }) = arguments.task {
        let promise = if promise == Promise::Resend.word() { Promise::Resend } else { Promise::Lookup };
        return if erp::serve(port, &file, promise).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if !arguments.guarded {
        return guard::run_guarded();
    }
    guard::listen_for_the_end();
    let seed = arguments.seed.unwrap_or_else(|| fastrand::u64(0..1_000_000_000));
    let begun = Instant::now();
    println!("seed {seed}");
    if arguments.only.is_none() {
        proof::the_audit_sees_what_is_wrong(seed);
        println!("the audit sees what is wrong");
    }
    let mut report = Report::default();
    let mut rounds = 0;
    loop {
        let in_time = || arguments.minutes == 0 || rounds == 0 || begun.elapsed() < minutes(arguments.minutes);
        if !round(&arguments, seed.wrapping_add(rounds), &mut report, in_time) {
            break;
        }
        rounds += 1;
        if begun.elapsed() >= minutes(arguments.minutes) {
            break;
        }
    }
    let circumstances = Circumstances { seed, rounds: rounds.max(1), took: begun.elapsed(), day: today() };
    let page = report.page(&circumstances);
    if let Some(file) = &arguments.report {
        fs::write(file, &page).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
    let verdict = if report.is_good() { "every intent has one effect" } else { "NOT good" };
    println!("{} intents in {:.0?}, seed {seed}: {verdict}", report.intents(), begun.elapsed());
    if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn minutes(count: u64) -> Duration {
    Duration::from_secs(count * 60)
}

/// Runs every wanted fault once on each of its grounds; returns whether there was time for all.
fn round(arguments: &Arguments, seed: u64, report: &mut Report, in_time: impl Fn() -> bool) -> bool {
    let scale = if arguments.short { Scale { families: 60, crowd: 10 } } else { Scale { families: 160, crowd: 100 } };
    for fault in FAULTS.iter().filter(|fault| is_wanted(arguments, fault)) {
        for ground in fault.grounds {
            if !in_time() {
                return false;
            }
            let name = ground.name();
            if let Some(why) = ground.lacking() {
                println!("{} on {name}: left out, {why}", fault.name);
                report.leave_out(fault, name, why);
                continue;
            }
            let outcome = run::run(fault, ground, seed, scale);
            if let Some(directory) = &arguments.journals {
                let file = directory.join(format!("{}-{name}-{}-{seed}.jsonl", fault.name, ground.processes));
                fs::write(&file, &outcome.journal).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            }
            let (counts, findings) = (&outcome.counts, &outcome.findings);
            println!(
                "{} on {name}, seed {seed}: {} strikes, {:?} broken, {} intents, {} sent, {} failed ({} by a 5xx), recovery {:.1?}, took {:.1?}: {}",
                fault.name,
                outcome.strikes,
                outcome.broken,
                findings.intents,
                counts.sent,
                counts.failed,
                counts.unavailable,
                outcome.recovery,
                outcome.took,
                if findings.wrong.is_empty() {
                    "good".to_owned()
                } else {
                    format!("WRONG\n  {}", findings.wrong.join("\n  "))
                },
            );
            report.add(fault, name, seed, &outcome);
        }
    }
    true
}

fn is_wanted(arguments: &Arguments, fault: &Fault) -> bool {
    match &arguments.only {
        Some(name) => fault.name == name,
        None => fault.short || !arguments.short,
    }
}

#[expect(clippy::disallowed_methods, reason = "the report bears the day on which it was made")]
fn today() -> String {
    chrono::Utc::now().format("%Y-%m-%d").to_string()
}
