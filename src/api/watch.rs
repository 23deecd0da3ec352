//! Clients that wait for an operation to change hold no connection and no thread: one task for the whole process asks the
//! database for all of them at once. So a change by another process is seen, too.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use diesel::prelude::*;
use tokio::sync::watch;

use crate::db::tables::operations;
use crate::db::{self, Db, Fault, Pool};
use crate::on_db;

/// How often the database is asked while anybody waits: the longest that a change stays unseen.
const INTERVAL: Duration = Duration::from_millis(250);

/// The most operations that one query asks for.
const BATCH: usize = 500;

/// An operation: its tenant and its id.
type Name = (String, String);

/// The operations that somebody waits for, each with the moment of its last known change.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    watched: Arc<Mutex<HashMap<Name, watch::Sender<Option<db::Instant>>>>>,
}

impl Watch {
    /// Returns when the operation is seen to have changed after `seen`. Bound it with a time-out.
    pub async fn changed(&self, tenant_id: &str, operation_id: &str, seen: db::Instant) {
        let mut updates = self.subscribe(tenant_id, operation_id);
        // The sender lives as long as this receiver is subscribed; an error could only mean that nobody watches any more.
        let _ = updates.wait_for(|updated_at| updated_at.is_some_and(|updated_at| updated_at != seen)).await;
    }

    fn subscribe(&self, tenant_id: &str, operation_id: &str) -> watch::Receiver<Option<db::Instant>> {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let name = (tenant_id.to_owned(), operation_id.to_owned());
        watched.entry(name).or_insert_with(|| watch::Sender::new(None)).subscribe()
    }

    /// Asks the database from time to time for what is watched. Runs until it is dropped.
    pub async fn run(self, pool: Pool) {
        let mut ticks = tokio::time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.look_once(&pool).await;
        }
    }

    /// Tells every waiting client what the database says now.
    async fn look_once(&self, pool: &Pool) {
        for (tenant_id, operation_ids) in self.still_watched() {
            for batch in operation_ids.chunks(BATCH) {
                let (tenant, batch) = (tenant_id.clone(), batch.to_vec());
                match pool.run(move |db| last_changes(db, &tenant, &batch)).await {
                    Ok(changes) => self.tell(&tenant_id, changes),
                    // The clients wait on; whoever reads the operation itself hears of the fault.
                    Err(fault) => log::warn!("watching operations: {fault}"),
                }
            }
        }
    }

    /// Forgets what nobody waits for any more, and lists the rest by tenant.
    fn still_watched(&self) -> HashMap<String, Vec<String>> {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.retain(|_, sender| sender.receiver_count() > 0);
        let mut by_tenant: HashMap<String, Vec<String>> = HashMap::new();
        for (tenant_id, operation_id) in watched.keys() {
            by_tenant.entry(tenant_id.clone()).or_default().push(operation_id.clone());
        }
        by_tenant
    }

    fn tell(&self, tenant_id: &str, changes: Vec<(String, db::Instant)>) {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        for (operation_id, updated_at) in changes {
            if let Some(sender) = watched.get(&(tenant_id.to_owned(), operation_id)) {
                sender.send_if_modified(|known| known.replace(updated_at) != Some(updated_at));
            }
        }
    }
}

fn last_changes(db: &mut Db, tenant_id: &str, operation_ids: &[String]) -> Result<Vec<(String, db::Instant)>, Fault> {
    let changes = on_db!(db, conn => operations::table
        .filter(operations::tenant_id.eq(tenant_id))
        .filter(operations::operation_id.eq_any(operation_ids))
        .select((operations::operation_id, operations::updated_at))
        .load(conn));
    Ok(changes?)
}
