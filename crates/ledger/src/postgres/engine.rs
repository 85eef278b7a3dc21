//! The ledger on one PostgreSQL database, independent of the state of its connections.
//!
//! A peer that vanishes silently leaves a call waiting for ever: the client library has no own
//! limit, and the kernel's is a quarter of an hour, or none. So a call without an answer within
//! `LedgerSettings::call_limit` is given up, and all connections of its time with it: they are most
//! likely as dead, and none that a call was dropped on is ever used again. New calls get new
//! connections.
//!
//! Heartbeat, watch and journal have a connection each (F31, F47): calls that wait for locks may
//! hold all others, and a process whose heartbeat stops counts as dead. The journal's has its
//! statements planned once: to plan what writes a batch costs as much as to write fifty rows.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use numerator_runtime::clock::SharedClock;
use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};

use super::life::PgConnections;
use super::open::wait_for_commits;
use crate::LedgerSettings;
use crate::call_timeout::CallTimeout;
use crate::connections::Share;
use crate::engine::Engine;
use crate::store::{Lasting, Store};

/// How long a caller waits for a connection of the pool, which retries a refused one all that time.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(2);

/// The limit of one attempt to connect that only checks whether the server answers.
const KNOCK_LIMIT: Duration = Duration::from_secs(1);

/// A connection that was idle for less than this is used as it is: to ask whether its peer is still
/// there costs as much as a statement.
const FRESH_FOR: Duration = Duration::from_secs(1);

/// The fewest connections that calls share: one each for seeds, for questions, for waits for a
/// counter, and for all other calls.
const COMMON_MIN: u32 = 4;

/// Has the statements of a connection planned once, where all of them look for keys. By default the
/// server plans the statements of a batch anew as long as it is smaller than expected.
const PLANNED_ONCE: (&str, &str) = ("plan_cache_mode", "force_generic_plan");

/// How long statements that are planned once keep their plans. A plan from when a table was small
/// reads all of it; the server makes a new one once it has counted the table, and in any case after
/// this. The connection stays: its place at the server could be lost by then (F31).
const PLANS_LAST: Duration = Duration::from_mins(1);

/// The engine.
pub(super) struct PgEngine {
    current: Mutex<Shares>,
    options: PgConnectOptions,
    settings: LedgerSettings,
    clock: SharedClock,
}

impl PgEngine {
    /// An engine that connects when it is first asked.
    pub(super) fn new(
        options: PgConnectOptions,
        settings: LedgerSettings,
        clock: SharedClock,
    ) -> Self {
        let current = Shares::new(
            &options,
            settings,
            &clock,
            &Lasting { mac_key: settings.mac_key, ..Lasting::default() },
        );
        PgEngine { current: Mutex::new(current), options, settings, clock }
    }

    fn current(&self) -> MutexGuard<'_, Shares> {
        self.current.lock().expect("no holder of this lock panics")
    }
}

#[async_trait]
impl Engine for PgEngine {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn store(&self, share: Share) -> Arc<Store> {
        Arc::clone(&self.current().of(share).store)
    }

    async fn is_late(&self, store: &Arc<Store>, call_timeout: CallTimeout) {
        tokio::time::sleep(self.settings.call_limit).await;
        let pool = self.current().pool_of(store);
        if let (Some(beyond), Some(pool)) = (call_timeout.beyond(), pool) {
            // Other calls, which are frequent, notice a dead peer.
            let _ = tokio::time::timeout(beyond, pool.close_event()).await;
        }
    }

    /// Replaces the connections, unless another caller has done so, and closes the old ones as they
    /// come back.
    fn give_up(&self, store: &Arc<Store>, why: &str) {
        let mut current = self.current();
        if current.pool_of(store).is_some() {
            let limit = self.settings.call_limit;
            tracing::error!(?limit, "{why}; giving the connections to the ledger up");
            let lasting = store.lasting();
            // A pool looks after its connections on the runtime that makes it.
            let _runtime = lasting.opener.enter();
            let next = Shares::new(&self.options, self.settings, &self.clock, &lasting);
            std::mem::replace(&mut *current, next).close();
        }
    }

    async fn knock(&self) -> bool {
        let knocking = PgConnection::connect_with(&self.options);
        let Ok(Ok(connection)) = tokio::time::timeout(KNOCK_LIMIT, knocking).await else {
            return false;
        };
        // Its end is not awaited.
        tokio::spawn(connection.close());
        true
    }
}

/// The connections of one time, by share.
struct Shares {
    common: PgShare,
    heartbeat: PgShare,
    watch: PgShare,
    journal: PgShare,
}

/// So many connections.
struct PgShare {
    store: Arc<Store>,
    pool: PgPool,
}

impl Shares {
    /// Connections that are made when they are needed.
    fn new(
        options: &PgConnectOptions,
        settings: LedgerSettings,
        clock: &SharedClock,
        lasting: &Lasting,
    ) -> Self {
        let share = |pool: PgPool| {
            let begins = PgConnections { pool: pool.clone(), lock_timeout: settings.lock_timeout };
            let store = Store::new(Arc::new(begins), Arc::clone(clock), lasting.clone());
            PgShare { store: Arc::new(store), pool }
        };
        let planned_once = options.clone().options([PLANNED_ONCE]);
        let common = pool_options(settings.connections_max.max(COMMON_MIN));
        let journal = planning_once(Plans::new(Instant::now()));
        Shares {
            common: share(common.connect_lazy_with(options.clone())),
            heartbeat: share(pool_options(1).connect_lazy_with(options.clone())),
            watch: share(pool_options(1).connect_lazy_with(options.clone())),
            journal: share(journal.connect_lazy_with(planned_once)),
        }
    }

    fn of(&self, share: Share) -> &PgShare {
        match share {
            Share::Common => &self.common,
            Share::Heartbeat => &self.heartbeat,
            Share::Watch => &self.watch,
            Share::Journal => &self.journal,
        }
    }

    fn all(&self) -> [&PgShare; 4] {
        [&self.common, &self.heartbeat, &self.watch, &self.journal]
    }

    /// The connections of a store; `None` where they were given up.
    fn pool_of(&self, store: &Arc<Store>) -> Option<PgPool> {
        let own = self.all().into_iter().find(|own| Arc::ptr_eq(&own.store, store));
        own.map(|own| own.pool.clone())
    }

    /// Closes all of them as they come back.
    fn close(self) {
        for PgShare { pool, .. } in [self.common, self.heartbeat, self.watch, self.journal] {
            // The call marks the pool as closed immediately; the future waits for connections.
            drop(pool.close());
            assert!(pool.is_closed(), "a closed pool takes no connection back");
            tokio::spawn(async move { pool.close().await });
        }
    }
}

/// So many connections.
fn pool_options(connections_max: u32) -> PgPoolOptions {
    PgPoolOptions::new()
        .max_connections(connections_max)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .test_before_acquire(false)
        .after_connect(|conn, _| Box::pin(wait_for_commits(conn)))
        .before_acquire(|conn, idle| Box::pin(freshen(conn, idle.idle_for)))
}

/// Checks whether the peer of a connection is still there, where that may have changed.
async fn freshen(conn: &mut PgConnection, idle_for: Duration) -> sqlx::Result<bool> {
    if idle_for >= FRESH_FOR {
        conn.ping().await?;
    }
    Ok(true)
}

/// One connection, whose plans are dropped now and then.
fn planning_once(plans: Plans) -> PgPoolOptions {
    pool_options(1).before_acquire(move |conn, idle| {
        let are_over = plans.are_over(Instant::now());
        Box::pin(async move {
            if are_over {
                sqlx::raw_sql("discard plans").execute(&mut *conn).await?;
            }
            freshen(conn, idle.idle_for).await
        })
    })
}

/// Since when a connection has plans, or may have them.
struct Plans(Mutex<Instant>);

impl Plans {
    fn new(now: Instant) -> Self {
        Plans(Mutex::new(now))
    }

    /// Whether they have lasted; then new ones begin.
    fn are_over(&self, now: Instant) -> bool {
        let mut since = self.0.lock().expect("no holder of this lock panics");
        let are_over = now.saturating_duration_since(*since) >= PLANS_LAST;
        if are_over {
            *since = now;
        }
        are_over
    }
}

#[cfg(test)]
mod tests {
    use numerator_runtime::clock::ManualClock;
    use numerator_runtime::node::NodeId;

    use super::*;
    use crate::incarnation::Incarnation;
    use crate::last_seen::Marks;

    #[tokio::test]
    async fn only_the_journals_statements_are_planned_once() {
        let clock: SharedClock = Arc::new(ManualClock::at(0));
        let engine = PgEngine::new(PgConnectOptions::new(), LedgerSettings::default(), clock);
        let current = engine.current();
        let shares = [Share::Common, Share::Heartbeat, Share::Watch, Share::Journal];
        let planned_once = shares.map(|share| {
            let pool = &current.of(share).pool;
            let options = pool.connect_options();
            let options = options.get_options().unwrap_or_default();
            options.contains("plan_cache_mode=force_generic_plan")
        });
        assert_eq!(planned_once, [false, false, false, true]);
    }

    #[test]
    fn plans_go_once_they_have_lasted_and_the_next_ones_last_as_long() {
        let begun = Instant::now();
        let plans = Plans::new(begun);
        let at = |share: u32| plans.are_over(begun + PLANS_LAST * share / 4);
        assert_eq!(
            [0, 3, 4, 5, 7, 8, 20, 23].map(at),
            [false, false, true, false, false, true, true, false]
        );
    }

    #[tokio::test]
    async fn what_the_ledger_confirmed_is_remembered_over_new_connections() {
        let clock: SharedClock = Arc::new(ManualClock::at(0));
        let engine = PgEngine::new(PgConnectOptions::new(), LedgerSettings::default(), clock);
        let (before, node) = (engine.store(Share::Common), NodeId::random());
        let confirmed = Marks { beat: 7, batches: 3 };
        before.last_seen.register(node, Incarnation::first(), 0);
        before.last_seen.confirm(node, confirmed, 1);
        let journal = engine.current().journal.pool.clone();
        engine.give_up(&before, "a test");
        assert!(journal.is_closed(), "all connections of a time go together");
        for share in [Share::Common, Share::Heartbeat, Share::Watch, Share::Journal] {
            let after = engine.store(share);
            assert!(!engine.current().of(share).pool.is_closed());
            assert_eq!(after.last_seen.of(node), Some(confirmed), "{share:?}");
        }
    }
}
