//! The whole contract against a small model: random sequences of commands, retries, conflicts and everything that can
//! happen in between. Each answer, and all rows at the end of each sequence, are those of the model.
//!
//! `PROPTEST_CASES` makes it long. A failure shrinks to the few steps that make it and shows what was sent and answered.

use std::cell::{Cell, RefCell};

use order_service::db::Db;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

use crate::harness::settings::config;
use crate::harness::world::{World, on_both_databases};

mod ask;
mod body;
mod contract;
mod play;
mod read;
mod rows;
mod rules;
mod scene;
mod spelling;
mod step;
mod wish;

use play::{Ground, play};
use step::any_steps;

/// Sequences of one run, on each database: a few seconds in a debug build.
const SEQUENCES: u32 = 60;
/// Steps of a sequence, at most.
const STEPS: usize = 25;
/// Sequences that are played to make a failing one shorter.
const SHRINKING: u32 = 400;

/// How many sequences to play.
#[expect(clippy::disallowed_methods, reason = "how long the test is to search is for its runner to say")]
fn sequences() -> u32 {
    match std::env::var("PROPTEST_CASES") {
        Ok(cases) => cases.parse().expect("PROPTEST_CASES is a number"),
        Err(_) => SEQUENCES,
    }
}

/// Searches on a thread of its own, because the search is not asynchronous and the service is.
fn search(world: &World) {
    let (database, caller) = (world.database(), world.stranger());
    let searched = std::thread::scope(|scope| {
        scope
            .spawn(|| {
                let runtime =
                    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
                let mut db = Db::open(&config(database.url(), &[]).database).expect("the database takes connections");
                let ground = RefCell::new(Ground { database, db: &mut db, caller });
                let number = Cell::new(0);
                let mut runner = TestRunner::new(Config {
                    cases: sequences(),
                    max_shrink_iters: SHRINKING,
                    // A failure is kept as a test with its steps: a seed means something else after the next change of a step.
                    failure_persistence: None,
                    ..Config::default()
                });
                runner.run(&any_steps(STEPS), |steps| {
                    number.set(number.get() + 1);
                    let played = runtime.block_on(play(&mut ground.borrow_mut(), number.get(), &steps));
                    played.map_err(TestCaseError::fail)
                })
            })
            .join()
    });
    match searched {
        Ok(Ok(())) => {}
        Ok(Err(TestError::Fail(difference, steps))) => {
            let steps: Vec<String> = steps.iter().map(|step| format!("{step:?},\n")).collect();
            panic!("{difference}\n\nthe steps:\n{}", steps.concat())
        }
        Ok(Err(TestError::Abort(reason))) => panic!("the search was given up: {reason}"),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

on_both_databases! {
    async fn any_sequence_of_steps_is_answered_as_the_model_says(world: World) {
        search(&world);
    }
}
