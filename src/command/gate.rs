//! A queue before the pool: rivals of one key inside this process wait here, without a connection and without a thread, and
//! only one of them at a time asks the database. It saves the pool; correctness never depends on it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::OwnedMutexGuard;

/// The keys that are at work in this process.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    rooms: Arc<Mutex<HashMap<String, Arc<Room>>>>,
}

/// Where the rivals of one key wait for their turn.
#[derive(Debug, Default)]
struct Room {
    turn: Arc<tokio::sync::Mutex<()>>,
    known: Mutex<Known>,
}

/// What is known of the key in this process.
#[derive(Clone, Copy, Debug, Default)]
enum Known {
    #[default]
    Nothing,
    /// The database has given it to the call that has the turn.
    Claimed,
    /// A rival in another process was found to hold it, at this moment.
    HeldElsewhere(Instant),
}

/// How long it stays known that a rival in another process holds a key.
const FRESH: Duration = Duration::from_secs(1);

impl Room {
    fn know(&self, known: Known) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }

    fn known(&self) -> Known {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_at_work(&self) -> bool {
        match self.known() {
            Known::Nothing => false,
            Known::Claimed => true,
            Known::HeldElsewhere(since) => since.elapsed() < FRESH,
        }
    }
}

/// The turn of one call. While it lives, no rival in this process asks the database; it lives as long as the transaction,
/// whether or not the client still listens.
#[derive(Debug)]
pub struct Turn {
    _lock: OwnedMutexGuard<()>,
    // Declared last, so that the turn is given on before the room may be closed.
    stay: Stay,
}

impl Turn {
    /// Says that the database has given the key to this call: from now on, and until the turn ends, a rival that has waited
    /// long enough may be told that the key is at work.
    pub fn claimed(&self) {
        self.stay.room.know(Known::Claimed);
    }

    /// Says that a rival in another process was found to hold the key just now. That stays known for a moment after the turn.
    pub fn held_elsewhere(&self) {
        self.stay.room.know(Known::HeldElsewhere(Instant::now()));
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if matches!(self.stay.room.known(), Known::Claimed) {
            self.stay.room.know(Known::Nothing);
        }
    }
}

/// Why a call got no turn before its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoTurn {
    /// A rival is known to hold the claim of the key.
    AtWork,
    /// A rival has the turn, but it is not known whether it has reached the key.
    Unknown,
}

impl Gate {
    /// Waits until `deadline` for the turn of `operation_id`, which names the scope of a key. A call without rivals gets it
    /// at once, whatever the deadline.
    ///
    /// # Errors
    /// [`NoTurn`] when the rivals took too long.
    pub async fn enter(&self, operation_id: &str, deadline: Instant) -> Result<Turn, NoTurn> {
        let stay = self.stay(operation_id);
        let lock = Arc::clone(&stay.room.turn);
        let turn = match Arc::clone(&lock).try_lock_owned() {
            Ok(turn) => turn,
            Err(_) => match tokio::time::timeout_at(deadline.into(), lock.lock_owned()).await {
                Ok(turn) => turn,
                Err(_) if stay.room.is_at_work() => return Err(NoTurn::AtWork),
                Err(_) => return Err(NoTurn::Unknown),
            },
        };
        Ok(Turn { _lock: turn, stay })
    }

    fn stay(&self, operation_id: &str) -> Stay {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        let room = Arc::clone(rooms.entry(operation_id.to_owned()).or_default());
        Stay { gate: self.clone(), operation_id: operation_id.to_owned(), room }
    }
}

/// A call's presence in a room; the last to leave closes it.
#[derive(Debug)]
struct Stay {
    gate: Gate,
    operation_id: String,
    room: Arc<Room>,
}

impl Drop for Stay {
    fn drop(&mut self) {
        let mut rooms = self.gate.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        // The map holds one reference and this stay another; new ones are made under the same lock.
        if Arc::strong_count(&self.room) == 2 {
            rooms.remove(&self.operation_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(20)
    }

    #[tokio::test]
    async fn a_rival_is_told_that_the_key_is_at_work_only_once_it_is_claimed() {
        let gate = Gate::default();
        let turn = gate.enter("op_1", soon()).await.unwrap();
        assert_eq!(gate.enter("op_1", soon()).await.unwrap_err(), NoTurn::Unknown);
        turn.claimed();
        assert_eq!(gate.enter("op_1", soon()).await.unwrap_err(), NoTurn::AtWork);
    }

    #[tokio::test]
    async fn the_next_rival_gets_the_turn_and_has_not_claimed_yet() {
        let gate = Gate::default();
        let first = gate.enter("op_1", soon()).await.unwrap();
        first.claimed();
        drop(first);
        let _second = gate.enter("op_1", soon()).await.unwrap();
        assert_eq!(gate.enter("op_1", soon()).await.unwrap_err(), NoTurn::Unknown);
    }

    #[tokio::test]
    async fn a_holder_in_another_process_stays_known_after_the_turn_that_found_it() {
        let gate = Gate::default();
        let first = gate.enter("op_1", soon()).await.unwrap();
        let waiting = tokio::spawn({
            let gate = gate.clone();
            async move { gate.enter("op_1", Instant::now() + Duration::from_secs(5)).await }
        });
        tokio::task::yield_now().await;
        first.held_elsewhere();
        drop(first);
        let _second = waiting.await.unwrap().unwrap();
        assert_eq!(gate.enter("op_1", soon()).await.unwrap_err(), NoTurn::AtWork);
    }

    #[tokio::test]
    async fn a_key_without_rivals_waits_for_nobody_even_without_patience() {
        let gate = Gate::default();
        let _other = gate.enter("op_1", soon()).await.unwrap();
        assert!(gate.enter("op_2", Instant::now()).await.is_ok());
    }

    #[tokio::test]
    async fn an_empty_room_is_closed() {
        let gate = Gate::default();
        let turn = gate.enter("op_1", soon()).await.unwrap();
        assert!(gate.enter("op_1", soon()).await.is_err());
        drop(turn);
        assert!(gate.rooms.lock().unwrap().is_empty());
    }
}
