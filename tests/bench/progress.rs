//! How far the shop is: counted by its threads, waited for by who strikes.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What the shop has done so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Requests that were sent, whatever became of them.
    pub sent: u64,
    /// Requests without an answer that ends the intent.
    pub failed: u64,
    /// Those of them that were answered with a fault (5xx).
    pub unavailable: u64,
    /// Answers that were replays.
    pub replays: u64,
    /// Families of intents that have all their answers.
    pub families: u64,
    /// Intents that have their answer.
    pub answered: u64,
    /// Intents that got no answer in all the time that the shop has.
    pub given_up: u64,
    /// The longest time from an intent's first failure to its answer.
    pub longest: Duration,
    /// The shop has stopped.
    pub over: bool,
}

/// The counts, and who waits for them.
#[derive(Default)]
pub struct Progress {
    counts: Mutex<Counts>,
    changed: Condvar,
}

impl Progress {
    /// The counts now.
    pub fn counts(&self) -> Counts {
        *self.lock()
    }

    /// Counts something.
    pub fn add(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits until the condition holds, at most for `limit`; returns whether it holds.
    pub fn wait(&self, limit: Duration, condition: impl Fn(&Counts) -> bool) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), limit, |counts| !condition(counts));
        let (counts, _) = waited.unwrap_or_else(PoisonError::into_inner);
        condition(&counts)
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks until the condition holds, at most for `limit`; returns whether it holds.
pub fn comes_true(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "a poll of a condition under a deadline needs a pause between looks"
        )]
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Lets a time pass: the pause between two tries of a shop, or the random moment before a strike.
pub fn pause(time: Duration) {
    #[expect(clippy::disallowed_methods, reason = "the pause itself is what is wanted; no condition ends it")]
    std::thread::sleep(time);
}
