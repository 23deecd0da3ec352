//! How many requests a client may make: a limit for each client of each tenant, in this process. A request that is over it
//! never reaches the claim, so that its key is as it was.

use std::num::NonZeroU32;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::api_key::Principal;
use crate::problem::{Code, Problem};

/// The tenant and the client that a request counts for.
type Who = (String, String);

/// The limits of all clients (the generic cell rate algorithm: a burst of one second's worth, then a steady rate).
#[derive(Debug)]
pub struct Limit {
    limiter: Option<DefaultKeyedRateLimiter<Who>>,
    clock: DefaultClock,
}

impl Limit {
    /// At most `per_second` requests a second for each client; 0 is no limit.
    #[must_use]
    pub fn per_second(per_second: u32) -> Limit {
        let quota = NonZeroU32::new(per_second).map(Quota::per_second);
        Limit { limiter: quota.map(RateLimiter::keyed), clock: DefaultClock::default() }
    }

    /// Counts one request of `principal`.
    ///
    /// # Errors
    /// 429 `RateLimited` with the seconds to wait, when it is one too many.
    pub fn count(&self, principal: &Principal) -> Result<(), Problem> {
        let Some(limiter) = &self.limiter else { return Ok(()) };
        let who = (principal.tenant_id.clone(), principal.client_id.clone());
        let Err(too_early) = limiter.check_key(&who) else { return Ok(()) };
        let wait = too_early.wait_time_from(self.clock.now());
        // Retry-After has whole seconds, and a fraction of one rounded down would be too early again.
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        let detail = "This client makes more requests a second than it may.";
        Err(Problem { after_seconds: Some(seconds.max(1)), ..Problem::new(Code::RateLimited, detail) })
    }

    /// Forgets clients that have made no request for so long that they have their whole burst again.
    pub fn forget_idle(&self) {
        if let Some(limiter) = &self.limiter {
            limiter.retain_recent();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_a_limit_of_its_own() {
        let limit = Limit::per_second(2);
        let (one, two) = (Principal::for_test("t", "one"), Principal::for_test("t", "two"));
        assert!(limit.count(&one).is_ok());
        assert!(limit.count(&one).is_ok());
        let problem = limit.count(&one).unwrap_err();
        assert_eq!((problem.code, problem.after_seconds), (Code::RateLimited, Some(1)));
        assert!(limit.count(&two).is_ok());
    }

    #[test]
    fn zero_is_no_limit() {
        let limit = Limit::per_second(0);
        let principal = Principal::for_test("t", "c");
        assert!((0..1000).all(|_| limit.count(&principal).is_ok()));
    }
}
