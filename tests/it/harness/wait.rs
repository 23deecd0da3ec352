//! Waiting for a condition, with a deadline: the only place of the tests that lets time pass.

use std::time::{Duration, Instant};

/// How often a condition is looked at. Short against what is waited for, long against the look itself.
const INTERVAL: Duration = Duration::from_millis(20);

/// Looks until the condition holds, and fails the test after `limit`.
///
/// `what` completes the sentence "waited in vain until …". It blocks the thread: inside an asynchronous test the
/// service's own worker threads go on, but other futures of the same test do not.
pub fn until(limit: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !condition() {
        assert!(Instant::now() < deadline, "waited {limit:?} in vain until {what}");
        #[expect(
            clippy::disallowed_methods,
            reason = "a poll of a condition under a deadline needs a pause between looks"
        )]
        std::thread::sleep(INTERVAL);
    }
}

/// Asks until there is an answer, and fails the test after `limit`; `what` completes the sentence "waited in vain for …".
///
/// The asynchronous form of [`until`]: between the questions the other futures of the test go on.
pub async fn eventually<T>(limit: Duration, what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited {limit:?} in vain for {what}");
        tokio::time::sleep(INTERVAL).await;
    }
}
