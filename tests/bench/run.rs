//! One run: a stage, a shop that trades on it, a fault, and the audit at the end.

use std::any::Any;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::audit::{self, Findings};
use crate::chance;
use crate::erp::Promise;
use crate::faults::{Fault, Ground, Plot};
use crate::progress::{Counts, Progress, comes_true, pause};
use crate::shop::intent::Intent;
use crate::shop::journal::Journal;
use crate::shop::{End, Shop};
use crate::stage::Stage;
use crate::strikes::strike;

/// Within this time the shop gets on, or the run is stuck.
const LIMIT: Duration = Duration::from_mins(3);

/// How large a run is.
#[derive(Clone, Copy)]
pub struct Scale {
    /// The families of intents that the shop makes.
    pub families: usize,
    /// The part of its full number that a crowd has, in percent.
    pub crowd: usize,
}

/// What a run has shown.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What was counted while the shop traded.
    pub counts: Counts,
    /// How many requests the wires of the shop and of the ERP have broken.
    pub broken: [u64; 2],
    /// How many strikes there were.
    pub strikes: u64,
    /// The longest time from the end of a cause until every process answered.
    pub recovery: Duration,
    /// The shop's journal.
    pub journal: Vec<u8>,
    /// What the audit has found.
    pub findings: Findings,
    /// How long all of it took.
    pub took: Duration,
}

/// Runs a fault once on one ground. What goes wrong is in the outcome.
pub fn run(fault: &Fault, ground: &Ground, seed: u64, scale: Scale) -> Outcome {
    let begun = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(|| on_stage(fault, ground, seed, scale)));
    let mut outcome = result.unwrap_or_else(|panic| {
        let findings = Findings { wrong: vec![words(&*panic)], ..Findings::default() };
        Outcome { findings, ..Outcome::default() }
    });
    outcome.took = begun.elapsed();
    outcome
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without words").to_owned()
}

fn on_stage(fault: &Fault, ground: &Ground, seed: u64, scale: Scale) -> Outcome {
    let mut rng = chance::of(seed, &["run", fault.name]);
    // Each fault meets other intents, of the same seed.
    let seed = rng.u64(..);
    let promise = if rng.bool() { Promise::Lookup } else { Promise::Resend };
    let mut stage = Stage::set(fault, ground, seed, promise);
    let progress = Arc::new(Progress::default());
    let shop = Shop::new(Journal::begin(stage.home()), Arc::clone(&progress), seed, &stage.api_key);
    let mut outcome = Outcome::default();
    let mut heard = Vec::new();
    match fault.plot {
        Plot::Trade(workers) => trade(fault, &mut stage, &shop, (scale.families, workers, &mut rng), &mut outcome),
        Plot::Crowd(crowd) => heard = crowd(&stage, &shop, scale.crowd),
    }
    outcome.counts = progress.counts();
    outcome.findings = audit::audit(&mut stage, &shop);
    outcome.broken = [stage.front.broken(), stage.erp_wire.broken()];
    outcome.findings.wrong.append(&mut heard);
    if !fault.erp_breaks.is_empty() {
        outcome.recovery = outcome.recovery.max(outcome.findings.caught_up);
    }
    outcome.journal = fs::read(shop.journal.path()).expect("the journal can be read");
    the_fault_was_real(fault, &stage, &mut outcome.findings);
    if !outcome.findings.wrong.is_empty() {
        let kept = keep(fault, seed, &stage, &shop);
        outcome.findings.wrong.push(format!("the journal and the logs are in {}", kept.display()));
    }
    outcome
}

/// The shop trades, and the strikes fall evenly over its time, each at a random moment.
fn trade(
    fault: &Fault,
    stage: &mut Stage,
    shop: &Shop,
    (families, workers, rng): (usize, usize, &mut Rng),
    outcome: &mut Outcome,
) {
    let front = stage.front.address();
    // With a look-up alone nobody can tell whether a payment arrived; it would rightly wait for a person.
    let pays = stage.promise == Promise::Resend;
    let strikes = if fault.strikes.is_empty() { 0 } else { fault.most_strikes };
    thread::scope(|scope| {
        scope.spawn(|| shop.trade(front, families, workers, pays));
        for number in 1..=strikes {
            let due = (families * number / (strikes + 1)) as u64;
            let gets_on = shop.progress.wait(LIMIT, |counts| counts.families >= due || counts.over);
            assert!(gets_on, "the shop has come to {:?} within {LIMIT:?}", shop.progress.counts());
            pause(Duration::from_millis(rng.u64(0..60)));
            let gone = strike(fault.strikes[(number - 1) % fault.strikes.len()], stage, &shop.progress, rng);
            everybody_answers(stage, shop, number);
            outcome.recovery = outcome.recovery.max(gone.elapsed());
            outcome.strikes += 1;
        }
    });
    if strikes == 0 {
        outcome.recovery = shop.progress.counts().longest;
    }
}

/// Every process is ready again without a restart, and carries out a new command.
fn everybody_answers(stage: &Stage, shop: &Shop, number: usize) {
    for (index, address) in stage.addresses().into_iter().enumerate() {
        let is_ready = || shop.get(address, "/readyz").is_some_and(|answer| answer.status() == 200);
        assert!(comes_true(LIMIT, is_ready), "{address} is ready again");
        let probe = Intent::smallest(&format!("probe-{number}-{index}"));
        let end = shop.carry_out(&probe, address, "probe");
        assert!(matches!(end, End::Answered(_)), "{address} takes an order again: {end:?}");
    }
}

/// A fault that never happened proves nothing.
fn the_fault_was_real(fault: &Fault, stage: &Stage, findings: &mut Findings) {
    for (breaks, wire, whose) in [(fault.breaks, &stage.front, "shop"), (fault.erp_breaks, &stage.erp_wire, "ERP")] {
        if !breaks.is_empty() && wire.broken() == 0 {
            findings.wrong.push(format!("the wire of the {whose} was never broken"));
        }
    }
}

/// Keeps what is needed to understand a failure.
fn keep(fault: &Fault, seed: u64, stage: &Stage, shop: &Shop) -> PathBuf {
    let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-{}-{seed}", fault.name));
    let kept = fs::create_dir_all(&place)
        .and_then(|()| fs::copy(shop.journal.path(), place.join("journal")).map(drop))
        .and_then(|()| fs::write(place.join("log"), stage.logs()));
    // The failure itself is told in any case.
    drop(kept);
    place
}
