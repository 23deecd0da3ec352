//! The cleaner: it drops recorded bodies past the replay window and forgets keys past the key memory, so that the database
//! does not grow for ever. It decides nothing. Whether a key is spent or forgotten is a matter of its time and of the
//! database's clock ([`crate::command::claim`]); a client cannot tell whether the cleaner has been.
//!
//! It has a connection, a timer and transactions of its own, so that nothing else waits when it is slow.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::db::{Fault, Pool};
use crate::metrics::Metrics;

mod sweep;

pub use sweep::{Batch, Due, Step, Sweep, due};

/// Cleans with the one connection of a pool.
#[allow(missing_debug_implementations, reason = "the pool has no Debug")]
pub struct Cleaner {
    connection: Pool,
    batch: u32,
}

/// After each batch the cleaner rests for this many times as long as the batch took, its wait for a turn included: it uses
/// at most a quarter of the time, and less when the database is busy.
const REST: u32 = 3;

impl Cleaner {
    /// A cleaner on a connection of its own; `batch` is the most rows of one transaction, 1 to 10,000.
    #[must_use]
    pub fn new(connection: Pool, batch: u32) -> Cleaner {
        Cleaner { connection, batch }
    }

    /// Sweeps, and again `interval` after each sweep has ended, until the future is dropped. A batch that has begun then
    /// still comes to its end.
    ///
    /// A sweep that fails is logged and counted; the next one begins where it stopped.
    pub async fn run(self, interval: Duration, metrics: Arc<Metrics>) {
        loop {
            tokio::time::sleep(interval).await;
            let swept = self.run_once(|batch| metrics.count_cleaned(batch.step.as_str(), batch.rows)).await;
            metrics.count_sweep(swept.is_ok());
            if let Err(fault) = swept {
                log::warn!("the cleaner could not finish its sweep, the next one goes on: {fault}");
            }
        }
    }

    /// Cleans all that is due now, batch by batch, and tells `seen` of each batch that did something.
    ///
    /// # Errors
    /// A [`Fault`] ends the sweep; the batches before it are done.
    pub async fn run_once(&self, mut seen: impl FnMut(&Batch)) -> Result<(), Fault> {
        let limit = self.batch;
        let mut sweep = self.connection.run(move |db| Sweep::begin(db, limit)).await?;
        loop {
            let began = Instant::now();
            let (rest, batch) = self
                .connection
                .run(move |db| {
                    let batch = sweep.clean_batch(db)?;
                    Ok((sweep, batch))
                })
                .await?;
            sweep = rest;
            let Some(batch) = batch else { return Ok(()) };
            if batch.rows > 0 {
                seen(&batch);
            }
            tokio::time::sleep(began.elapsed() * REST).await;
        }
    }
}
