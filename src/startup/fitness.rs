//! Whether the database has what records need: tables, keys, rights (F45). Checked before the first
//! number, and again once a call has failed for a fault of the database. Only reads: records wait
//! and continue automatically.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, ensure};

use crate::ledger::{Lack, LedgerError, SharedLedger, all_lacks};
use crate::task::Task;

/// Least time between two polls, and how long something is missing before the next poll.
const POLL_PERIOD: Duration = Duration::from_secs(1);

/// Refuses to write numbers to a database in which something is missing.
pub(crate) async fn must_be_fit(ledger: &SharedLedger) -> anyhow::Result<()> {
    let lacks = ledger.lacks().await.context("looking at the tables of the ledger")?;
    let lacks = all_lacks(&lacks);
    ensure!(lacks.is_empty(), "the ledger (database.url) lacks what numbers need: {lacks}");
    Ok(())
}

/// What is missing, as of the last poll.
#[derive(Debug, Default)]
pub struct Fitness(Mutex<Vec<Lack>>);

impl Fitness {
    /// Each in a sentence, with what ends it.
    #[must_use]
    pub fn lacks(&self) -> Vec<String> {
        self.0.lock().expect("no holder of this lock panics").iter().map(Lack::to_string).collect()
    }

    /// Starts the watch.
    pub(crate) fn watch(this: &Arc<Self>, ledger: &SharedLedger) -> Task {
        let (this, ledger) = (Arc::clone(this), Arc::clone(ledger));
        Task::start("fitness", move |mut stop| async move {
            while !stop.is_requested() {
                tokio::select! {
                    () = ledger.faulted() => {}
                    () = tokio::time::sleep(POLL_PERIOD), if !this.lacks().is_empty() => {}
                    () = stop.requested() => return,
                }
                this.take_in(ledger.lacks().await);
                tokio::select! {
                    () = tokio::time::sleep(POLL_PERIOD) => {}
                    () = stop.requested() => return,
                }
            }
        })
    }

    /// Takes over the result of a check; the log shows it once.
    fn take_in(&self, shown: Result<Vec<Lack>, LedgerError>) {
        let shown = match shown {
            Ok(shown) => shown,
            // It is away: what was missing is not there by that.
            Err(error) => return tracing::debug!(%error, "the ledger's tables are not known"),
        };
        let mut lacks = self.0.lock().expect("no holder of this lock panics");
        if *lacks == shown {
            return;
        }
        match &shown[..] {
            [] => tracing::info!("the ledger has all that records need again"),
            missing => {
                let missing = all_lacks(missing);
                tracing::error!(missing, "the ledger lacks what records need; they wait for it");
            }
        }
        *lacks = shown;
    }
}
