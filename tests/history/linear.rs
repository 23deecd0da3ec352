//! The checker: is there one order of the calls, true to the time at which each began and ended, in which the contract
//! allows everything that was heard? A search in the manner of Wing and Gong, which remembers where it has been (Lowe).

use std::collections::HashSet;

use super::contract::State;
use super::event::Entry;

/// The most calls of one history: they are counted in the bits of a number.
pub const MOST: usize = 128;

/// The state at the end of such an order.
///
/// # Errors
/// There is none; with the calls at which the longest attempt ended.
pub fn check(history: &[Entry]) -> Result<State, String> {
    assert!(history.len() <= MOST, "a history of {} calls is too long to be checked as one", history.len());
    let mut search = Search { history, been: HashSet::new(), longest: 0 };
    search.go_on(0, &State::default()).ok_or_else(|| search.explain())
}

struct Search<'a> {
    history: &'a [Entry],
    /// Which calls were in order, and to what state they led: no use in going there twice.
    been: HashSet<(u128, State)>,
    /// The most calls that were in order.
    longest: u128,
}

impl Search<'_> {
    fn go_on(&mut self, done: u128, state: &State) -> Option<State> {
        let open = |index: &usize| done & (1 << index) == 0;
        let first_end = self.ends().filter(|(index, _)| open(index)).map(|(_, at)| at).min();
        // Every call that was heard has its place; one that was not heard need not have had an effect.
        let Some(first_end) = first_end else { return Some(state.clone()) };
        if !self.been.insert((done, state.clone())) {
            return None;
        }
        if done.count_ones() > self.longest.count_ones() {
            self.longest = done;
        }
        let history = self.history;
        for (index, entry) in history.iter().enumerate() {
            // What began after another had ended comes after it.
            if !open(&index) || entry.begin > first_end {
                continue;
            }
            let Some(next) = state.after(&entry.ask, entry.end.as_ref().map(|(_, heard)| heard)) else { continue };
            if let Some(end) = self.go_on(done | (1 << index), &next) {
                return Some(end);
            }
        }
        None
    }

    fn ends(&self) -> impl Iterator<Item = (usize, u64)> {
        self.history.iter().enumerate().filter_map(|(index, entry)| Some((index, entry.end.as_ref()?.0)))
    }

    /// What could have come next in the longest attempt, and did not fit.
    fn explain(&self) -> String {
        let is_open = |index: usize| self.longest & (1 << index) == 0;
        let first_end = self.ends().filter(|(index, _)| is_open(*index)).map(|(_, at)| at).min();
        let next =
            self.history.iter().enumerate().filter(|(index, entry)| is_open(*index) && Some(entry.begin) <= first_end);
        let next: Vec<String> = next.map(|(_, entry)| format!("  {entry:?}")).collect();
        format!(
            "no order of the {} calls explains what was heard; at best {} of them, and then none of\n{}",
            self.history.len(),
            self.longest.count_ones(),
            next.join("\n")
        )
    }
}
