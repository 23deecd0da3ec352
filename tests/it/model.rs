//! The whole contract against a small model: random sequences of commands, retries, conflicts and everything that can
//! happen in between. Each answer, and all rows at the end of each sequence, are those of the model.
//!
//! `PROPTEST_CASES` makes it long. A failure shrinks to the few steps that make it and shows what was sent and answered.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use order_service::db::Db;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use tokio::runtime::Runtime;

use crate::harness::erp::FakeErp;
use crate::harness::relay::HandRelay;
use crate::harness::settings::config;
use crate::harness::world::{World, on_both_databases};

mod ask;
mod body;
mod contract;
mod found;
mod play;
mod read;
mod rows;
mod rules;
mod scene;
mod spelling;
mod step;
mod wish;

use play::{Ground, play};
use step::{Step, any_steps};

/// Sequences of one run, on each database: a few seconds in a debug build.
const SEQUENCES: u32 = 60;
/// Steps of a sequence, at most.
const STEPS: usize = 25;
/// Sequences that are played to make a failing one shorter.
const SHRINKING: u32 = 400;
/// How often a sequence is played while a failing one is made shorter: rivals do not always meet in the same way.
const REPEATS: u32 = 3;

on_both_databases! {
    async fn any_sequence_of_steps_is_answered_as_the_model_says(world: World) {
        let ends = on_ground(&world, |runtime, ground| search(&runtime, ground));
        assert_variety(&ends);
    }
}

/// Searches for a sequence that parts the service from the model, and tells how often each command came to each end.
fn search(runtime: &Runtime, ground: Ground<'_>) -> BTreeMap<String, u32> {
    let ground = RefCell::new(ground);
    let (number, has_failed) = (Cell::new(0), Cell::new(false));
    let mut runner = runner();
    let searched = runner.run(&any_steps(STEPS), |steps| {
        let repeats = if has_failed.get() { REPEATS } else { 1 };
        let played = (0..repeats).try_for_each(|_| {
            number.set(number.get() + 1);
            runtime.block_on(play(&mut ground.borrow_mut(), number.get(), &steps))
        });
        has_failed.set(has_failed.get() || played.is_err());
        played.map_err(TestCaseError::fail)
    });
    match searched {
        Ok(()) => ground.into_inner().ends,
        Err(TestError::Fail(difference, steps)) => {
            let steps: Vec<String> = steps.iter().map(|step| format!("{step:?},\n")).collect();
            panic!("{difference}\n\nthe steps:\n{}", steps.concat())
        }
        Err(TestError::Abort(reason)) => panic!("the search was given up: {reason}"),
    }
}

/// Without `PROPTEST_CASES` every run plays the same sequences, so that the suite says the same twice; with it each run
/// searches anew.
fn runner() -> TestRunner {
    let config = Config {
        cases: wished_sequences().unwrap_or(SEQUENCES),
        max_shrink_iters: SHRINKING,
        // A failure is kept as a test with its steps: a seed means something else after the next change of a step.
        failure_persistence: None,
        ..Config::default()
    };
    match wished_sequences() {
        Some(_) => TestRunner::new(config),
        None => TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha)),
    }
}

/// Plays one sequence.
#[track_caller]
fn prove(world: &World, steps: &[Step]) {
    let played = on_ground(world, |runtime, mut ground| runtime.block_on(play(&mut ground, 1, steps)));
    played.unwrap_or_else(|difference| panic!("{difference}"));
}

/// Does something on a thread of its own, with a runtime of its own: the search of proptest is not asynchronous, and the
/// test that waits for it is.
fn on_ground<T: Send>(world: &World, work: impl FnOnce(Runtime, Ground<'_>) -> T + Send) -> T {
    let (database, caller) = (world.database(), world.stranger());
    let work = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        let mut db = Db::open(&config(database.url(), &[]).database).expect("the database takes connections");
        let (erp, relay) = (FakeErp::start(), HandRelay::on(database, &[]));
        work(runtime, Ground { database, db: &mut db, erp, relay, caller, ends: BTreeMap::new() })
    };
    let done = std::thread::scope(|scope| scope.spawn(work).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// How many sequences the one who runs the test wants.
#[expect(clippy::disallowed_methods, reason = "how long the test is to search is for its runner to say")]
fn wished_sequences() -> Option<u32> {
    std::env::var("PROPTEST_CASES").ok().map(|cases| cases.parse().expect("PROPTEST_CASES is a number"))
}

/// A search that never came to what matters would pass for the wrong reason.
fn assert_variety(ends: &BTreeMap<String, u32>) {
    println!("{ends:#?}");
    for end in ["done", "replayed", "InvalidRequest", "IdempotencyKeyConflict", "IdempotencyKeyExpired"] {
        assert!(ends.keys().any(|name| name.ends_with(&format!(" {end}"))), "no command came to {end}: {ends:?}");
    }
}
