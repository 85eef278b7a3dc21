//! The ledger on one PostgreSQL database, whatever becomes of its connections.
//!
//! A peer that vanishes without a word leaves a call waiting for ever: the client library has no
//! limit of its own, and the kernel's is a quarter of an hour, or none. So a call without an answer
//! within `database.call_limit` is given up, and all connections of its time with it: they are most
//! likely as dead, and none that a call was dropped on is ever used again. New calls get new
//! connections.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use super::Store;
use crate::clock::SharedClock;
use crate::ledger::patience::{Patience, SEARCH_TIME};
use crate::ledger::witness::Witness;
use crate::ledger::{LedgerError, LedgerSettings};
use crate::metrics::LedgerMeter;

/// How long a caller waits for a connection of the pool, which tries a refused one all that time.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection that was idle for less than this is used as it is: to ask whether its peer is still
/// there costs as much as a statement.
const FRESH_FOR: Duration = Duration::from_secs(1);

/// The engine.
pub(super) struct Engine {
    current: Mutex<Arc<Store>>,
    options: PgConnectOptions,
    settings: LedgerSettings,
    clock: SharedClock,
}

impl Engine {
    /// An engine that connects when it is first asked.
    pub(super) fn new(
        options: PgConnectOptions,
        settings: LedgerSettings,
        clock: SharedClock,
    ) -> Self {
        let lasting = Lasting::default();
        let current = Mutex::new(Arc::new(connections(&options, settings, &clock, lasting)));
        Engine { current, options, settings, clock }
    }

    /// The connections of now.
    pub(super) fn store(&self) -> Arc<Store> {
        Arc::clone(&self.current.lock().expect("no holder of this lock panics"))
    }

    /// Waits for a call on connections as long as it may take.
    ///
    /// # Errors
    /// Those of the call; `Unreachable` after its time, when it may have written all the same.
    pub(super) async fn within<T>(
        &self,
        store: &Arc<Store>,
        patience: Patience,
        call: impl Future<Output = Result<T, LedgerError>>,
    ) -> Result<T, LedgerError> {
        let mut call = pin!(call);
        let is_late = async {
            tokio::time::sleep(self.settings.call_limit).await;
            if patience == Patience::Search {
                // Others, who ask often, notice a dead peer.
                let given_up = store.writer.close_event();
                let _ = tokio::time::timeout(SEARCH_TIME, given_up).await;
            }
        };
        tokio::select! {
            biased;
            result = &mut call => result,
            () = is_late => {
                // Before the call is dropped: its connection must not go back to a living pool.
                self.give_up(store);
                let cause = "no answer within database.call_limit".to_owned();
                Err(LedgerError::Unreachable { cause, maybe_written: true })
            }
        }
    }

    /// Replaces the connections, unless somebody else has done so, and closes the old ones as they
    /// come back.
    fn give_up(&self, store: &Arc<Store>) {
        let mut current = self.current.lock().expect("no holder of this lock panics");
        if Arc::ptr_eq(&current, store) {
            let limit = self.settings.call_limit;
            tracing::error!(?limit, "the ledger does not answer; giving its connections up");
            let lasting =
                Lasting { witness: Arc::clone(&store.witness), meter: Arc::clone(&store.meter) };
            *current = Arc::new(connections(&self.options, self.settings, &self.clock, lasting));
        }
        let pool = store.writer.clone();
        // The call marks the pool as closed at once; the future waits for connections to come back.
        drop(store.writer.close());
        assert!(pool.is_closed(), "a closed pool takes no connection back");
        tokio::spawn(async move { pool.close().await });
    }
}

/// What outlives connections.
#[derive(Default)]
struct Lasting {
    witness: Arc<Witness>,
    meter: Arc<LedgerMeter>,
}

/// Connections that are made when they are needed.
fn connections(
    options: &PgConnectOptions,
    settings: LedgerSettings,
    clock: &SharedClock,
    Lasting { witness, meter }: Lasting,
) -> Store {
    let pool = PgPoolOptions::new()
        .max_connections(settings.connections_max.max(2))
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .test_before_acquire(false)
        .before_acquire(|conn, idle| {
            Box::pin(async move {
                if idle.idle_for >= FRESH_FOR {
                    conn.ping().await?;
                }
                Ok(true)
            })
        })
        .connect_lazy_with(options.clone());
    Store {
        writer: pool.clone(),
        reader: pool,
        clock: Arc::clone(clock),
        witness,
        lock_timeout: settings.lock_timeout,
        meter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::ledger::witness::Marks;
    use crate::node::NodeId;

    #[tokio::test]
    async fn what_the_ledger_confirmed_is_remembered_over_new_connections() {
        let clock: SharedClock = Arc::new(ManualClock::at(0));
        let engine = Engine::new(PgConnectOptions::new(), LedgerSettings::default(), clock);
        let (before, node) = (engine.store(), NodeId::random());
        let confirmed = Marks { beat: 7, batches: 3 };
        before.witness.confirm(node, confirmed);
        engine.give_up(&before);
        let after = engine.store();
        assert!(!Arc::ptr_eq(&before, &after));
        assert_eq!(after.witness.of(node), Some(confirmed));
    }
}
