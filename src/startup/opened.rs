//! The ledgers that this process has opened. All of them are closed as it ends, however it ends, so
//! that a SQLite file alone holds what was confirmed (F38).

use std::sync::Mutex as Held;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::clock::SharedClock;
use crate::engine::node::operator;
use crate::ledger::{self, Event, LedgerError, LedgerSettings, Migrated, SharedLedger};

/// Longest time that a process which ends gives what still works on its ledgers.
pub(crate) const CLOSE_MAX: Duration = Duration::from_secs(5);

/// Those that are open.
static OPENED: Held<Vec<SharedLedger>> = Held::new(Vec::new());

/// Held while they are closed: the process does not end meanwhile.
static CLOSING: Mutex<()> = Mutex::const_new(());

/// Opens a ledger that [`close_ledgers`] closes.
///
/// # Errors
/// Those of [`ledger::open`].
pub(crate) async fn open(
    url: &str,
    settings: LedgerSettings,
    clock: SharedClock,
) -> Result<SharedLedger, LedgerError> {
    let at_us = clock.now_us();
    let ledger = ledger::open(url, settings, clock).await?;
    if let Some(migrated) = ledger.migrated().filter(|migrated| migrated.from > 0) {
        note_migration(&ledger, migrated, at_us).await;
    }
    OPENED.lock().expect("no holder of this lock panics").push(ledger.clone());
    Ok(ledger)
}

/// An event in the ledger; without it the migration is still done.
async fn note_migration(ledger: &SharedLedger, Migrated { from, to }: Migrated, at_us: i64) {
    let event = Event {
        at_us,
        kind: "migrated".into(),
        partition: None,
        epoch: None,
        node_id: None,
        detail: serde_json::json!({ "from": from, "to": to, "user": operator() }),
    };
    if let Err(error) = ledger.events().record(&event).await {
        tracing::warn!(%error, from, to, "that the ledger was migrated is not on record");
    }
}

/// Closes every ledger that was opened; safe to repeat.
pub(crate) async fn close_ledgers() {
    let _closing = CLOSING.lock().await;
    let opened = std::mem::take(&mut *OPENED.lock().expect("no holder of this lock panics"));
    for ledger in opened {
        if timeout(CLOSE_MAX, ledger.close()).await.is_err() {
            tracing::warn!(
                "the ledger is still in use: what lies beside its file belongs to it (`-wal`)"
            );
        }
    }
}
