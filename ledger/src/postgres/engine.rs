//! The ledger on one PostgreSQL database, whatever becomes of its connections.
//!
//! A peer that vanishes without a word leaves a call waiting for ever: the client library has no
//! limit of its own, and the kernel's is a quarter of an hour, or none. So a call without an answer
//! within `database.call_limit` is given up, and all connections of its time with it: they are most
//! likely as dead, and none that a call was dropped on is ever used again. New calls get new
//! connections.
//!
//! Heartbeat and journal have a connection each (F31): calls that wait for locks may hold all
//! others, and a process whose heartbeat stands still is taken for dead.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use numerator_base::clock::SharedClock;
use numerator_base::metrics::LedgerMeter;
use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use super::Store;
use crate::connections::Share;
use crate::patience::{Patience, SEARCH_TIME};
use crate::witness::Witness;
use crate::{LedgerError, LedgerSettings};

/// How long a caller waits for a connection of the pool, which tries a refused one all that time.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection that was idle for less than this is used as it is: to ask whether its peer is still
/// there costs as much as a statement.
const FRESH_FOR: Duration = Duration::from_secs(1);

/// The fewest connections that calls share: one each for seeds, for questions, for who waits for a
/// counter, and for everybody else.
const COMMON_MIN: u32 = 4;

/// The engine.
pub(super) struct Engine {
    current: Mutex<Shares>,
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
        let current = Shares::new(&options, settings, &clock, &Lasting::default());
        Engine { current: Mutex::new(current), options, settings, clock }
    }

    /// A share of the connections of now.
    pub(super) fn store(&self, share: Share) -> Arc<Store> {
        let current = self.current.lock().expect("no holder of this lock panics");
        Arc::clone(current.of(share))
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
            result = &mut call => {
                if result.as_ref().is_err_and(LedgerError::is_of_outgrown_statement) {
                    self.give_up(store, "the schema has changed");
                }
                result
            }
            () = is_late => {
                // Before the call is dropped: its connection must not go back to a living pool.
                self.give_up(store, "the ledger does not answer");
                let cause = "no answer within database.call_limit".to_owned();
                Err(LedgerError::Unreachable { cause, maybe_written: true })
            }
        }
    }

    /// Replaces the connections, unless somebody else has done so, and closes the old ones as they
    /// come back.
    fn give_up(&self, store: &Arc<Store>, why: &str) {
        let mut current = self.current.lock().expect("no holder of this lock panics");
        if current.has(store) {
            let limit = self.settings.call_limit;
            tracing::error!(?limit, "{why}; giving the connections to the ledger up");
            let lasting =
                Lasting { witness: Arc::clone(&store.witness), meter: Arc::clone(&store.meter) };
            let next = Shares::new(&self.options, self.settings, &self.clock, &lasting);
            std::mem::replace(&mut *current, next).close();
        }
        assert!(store.writer.is_closed(), "a closed pool takes no connection back");
    }
}

/// The connections of one time, by whose they are.
struct Shares {
    common: Arc<Store>,
    heartbeat: Arc<Store>,
    journal: Arc<Store>,
}

impl Shares {
    /// Connections that are made when they are needed.
    fn new(
        options: &PgConnectOptions,
        settings: LedgerSettings,
        clock: &SharedClock,
        lasting: &Lasting,
    ) -> Self {
        let store = |connections_max| {
            Arc::new(connections(options, connections_max, settings, clock, lasting))
        };
        let common = store(settings.connections_max.max(COMMON_MIN));
        Shares { common, heartbeat: store(1), journal: store(1) }
    }

    fn of(&self, share: Share) -> &Arc<Store> {
        match share {
            Share::Common => &self.common,
            Share::Heartbeat => &self.heartbeat,
            Share::Journal => &self.journal,
        }
    }

    fn all(&self) -> [&Arc<Store>; 3] {
        [&self.common, &self.heartbeat, &self.journal]
    }

    fn has(&self, store: &Arc<Store>) -> bool {
        self.all().into_iter().any(|own| Arc::ptr_eq(own, store))
    }

    /// Closes all of them as they come back.
    fn close(&self) {
        for store in self.all() {
            let pool = store.writer.clone();
            // The call marks the pool as closed at once; the future waits for connections.
            drop(store.writer.close());
            tokio::spawn(async move { pool.close().await });
        }
    }
}

/// What outlives connections.
#[derive(Default)]
struct Lasting {
    witness: Arc<Witness>,
    meter: Arc<LedgerMeter>,
}

/// So many connections.
fn connections(
    options: &PgConnectOptions,
    connections_max: u32,
    settings: LedgerSettings,
    clock: &SharedClock,
    Lasting { witness, meter }: &Lasting,
) -> Store {
    let pool = PgPoolOptions::new()
        .max_connections(connections_max)
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
        witness: Arc::clone(witness),
        lock_timeout: settings.lock_timeout,
        meter: Arc::clone(meter),
    }
}

#[cfg(test)]
mod tests {
    use numerator_base::clock::ManualClock;
    use numerator_base::node::NodeId;

    use super::*;
    use crate::incarnation::Incarnation;
    use crate::witness::Marks;

    #[tokio::test]
    async fn what_the_ledger_confirmed_is_remembered_over_new_connections() {
        let clock: SharedClock = Arc::new(ManualClock::at(0));
        let engine = Engine::new(PgConnectOptions::new(), LedgerSettings::default(), clock);
        let (before, node) = (engine.store(Share::Common), NodeId::random());
        let confirmed = Marks { beat: 7, batches: 3 };
        before.witness.register(node, Incarnation::first());
        before.witness.confirm(node, confirmed);
        let journal = engine.store(Share::Journal);
        engine.give_up(&before, "a test");
        assert!(journal.writer.is_closed(), "all connections of a time go together");
        for share in [Share::Common, Share::Heartbeat, Share::Journal] {
            let after = engine.store(share);
            assert!(!after.writer.is_closed());
            assert_eq!(after.witness.of(node), Some(confirmed), "{share:?}");
        }
    }
}
