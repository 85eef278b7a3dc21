//! A share of the ledger's connections with what its statements need: the clock, the witness, the
//! meter; and the ways to begin a transaction.

use std::sync::Arc;
use std::time::Duration;

use numerator_runtime::clock::SharedClock;
use numerator_runtime::metrics::LedgerMeter;
use numerator_runtime::node::NodeId;
use tokio::sync::Notify;

use crate::LedgerError;
use crate::call_failures::{CallFailures, SlowCalls};
use crate::dialect::{Begin, Pool, Reader, Transaction};
use crate::incarnation::OneIncarnation;
use crate::last_seen::LastSeen;
use crate::opening::{Opened, Opener};
use crate::reservations::sweep::SweepCourse;
use crate::seal::{MacKey, Writing};
use crate::series::kept::KeptLooks;

/// The parts that outlive connections.
#[derive(Clone, Default)]
pub(crate) struct Lasting {
    /// The confirmations.
    pub(crate) last_seen: Arc<LastSeen>,
    /// Calls and waits.
    pub(crate) meter: Arc<LedgerMeter>,
    /// The calls that failed.
    pub(crate) call_failures: Arc<CallFailures>,
    /// The calls that take long.
    pub(crate) slow: Arc<SlowCalls>,
    /// `audit.key`: proves that a batch is this process's own.
    pub(crate) mac_key: Option<MacKey>,
    /// Series whose rows stay in the journal, as of the last look.
    pub(crate) kept: Arc<KeptLooks>,
    /// How far reservations are swept.
    pub(crate) sweeps: Arc<SweepCourse>,
    /// Notified of each call that failed for a fault of the database.
    pub(crate) faults: Arc<Notify>,
    /// Where connections are opened.
    pub(crate) opener: Opener,
}

/// One share of the connections of one time.
pub(crate) struct Store {
    pub(crate) reader: Reader,
    pub(crate) clock: SharedClock,
    pub(crate) last_seen: Arc<LastSeen>,
    pub(crate) meter: Arc<LedgerMeter>,
    pub(crate) call_failures: Arc<CallFailures>,
    pub(crate) slow: Arc<SlowCalls>,
    pub(crate) kept: Arc<KeptLooks>,
    pub(crate) sweeps: Arc<SweepCourse>,
    mac_key: Option<MacKey>,
    faults: Arc<Notify>,
    opener: Opener,
}

impl Store {
    /// The share that these connections are.
    pub(crate) fn new(pool: Arc<dyn Pool>, clock: SharedClock, lasting: Lasting) -> Self {
        let Lasting {
            last_seen,
            meter,
            call_failures,
            slow,
            mac_key,
            kept,
            sweeps,
            faults,
            opener,
        } = lasting;
        let reader = Reader(Arc::new(Opened { opener: opener.clone(), pool }));
        Store {
            reader,
            clock,
            last_seen,
            meter,
            call_failures,
            slow,
            kept,
            sweeps,
            faults,
            mac_key,
            opener,
        }
    }

    /// The connections.
    pub(crate) fn pool(&self) -> &dyn Pool {
        &*self.reader.0
    }

    /// The parts that other connections take over.
    pub(crate) fn lasting(&self) -> Lasting {
        Lasting {
            last_seen: Arc::clone(&self.last_seen),
            meter: Arc::clone(&self.meter),
            call_failures: Arc::clone(&self.call_failures),
            slow: Arc::clone(&self.slow),
            mac_key: self.mac_key,
            kept: Arc::clone(&self.kept),
            sweeps: Arc::clone(&self.sweeps),
            faults: self.faults(),
            opener: self.opener.clone(),
        }
    }

    /// Notified of each call that failed for a fault of the database.
    pub(crate) fn faults(&self) -> Arc<Notify> {
        Arc::clone(&self.faults)
    }

    /// The key of proofs.
    pub(crate) fn mac_key(&self) -> Option<MacKey> {
        self.mac_key
    }

    /// How a node writes lines now.
    pub(crate) fn writing(&self, node: NodeId, now_us: i64) -> Writing {
        Writing { node, now_us, mac_key: self.mac_key }
    }

    /// The counters among these that another transaction holds now. Waits for none.
    pub(crate) async fn held_counters(&self, ids: &[i64]) -> Result<Vec<i64>, LedgerError> {
        self.pool().held_counters(self.last_seen.required(None)?, ids).await
    }

    /// Begins a transaction in the incarnation that was last agreed on.
    pub(crate) async fn begin(&self) -> Result<Transaction, LedgerError> {
        self.pool().begin(Some(self.last_seen.required(None)?), Begin::Writing).await
    }

    /// Begins a transaction in the incarnation that all calls of one work name.
    pub(crate) async fn begin_in(
        &self,
        OneIncarnation(incarnation): OneIncarnation,
    ) -> Result<Transaction, LedgerError> {
        self.pool().begin(Some(incarnation), Begin::Writing).await
    }

    /// Begins a transaction that reads: in one incarnation, or in any life of the ledger.
    pub(crate) async fn begin_reading_in(
        &self,
        within: Option<OneIncarnation>,
    ) -> Result<Transaction, LedgerError> {
        self.pool().begin(within.map(|OneIncarnation(it)| it), Begin::Reading).await
    }

    /// Begins a transaction of a node, in the incarnation that it registered in.
    pub(crate) async fn begin_as(&self, node: NodeId) -> Result<Transaction, LedgerError> {
        self.pool().begin(Some(self.last_seen.required(Some(node))?), Begin::Writing).await
    }

    /// The same, of a node or of none, for one that waits briefly for each lock.
    pub(crate) async fn begin_brief(
        &self,
        node: Option<NodeId>,
    ) -> Result<Transaction, LedgerError> {
        self.pool().begin(Some(self.last_seen.required(node)?), Begin::Brief).await
    }

    /// The same for one that waits shorter for each lock than the session would.
    pub(crate) async fn begin_with_lock_limit(
        &self,
        node: NodeId,
        lock_wait: Duration,
    ) -> Result<Transaction, LedgerError> {
        let required = self.last_seen.required(Some(node))?;
        self.pool().begin(Some(required), Begin::LockLimited(lock_wait)).await
    }

    /// Begins a transaction that reads, in the incarnation that was last agreed on.
    pub(crate) async fn begin_reading(&self) -> Result<Transaction, LedgerError> {
        self.pool().begin(Some(self.last_seen.required(None)?), Begin::Reading).await
    }

    /// The same in the incarnation in which a node registered.
    pub(crate) async fn begin_reading_as(&self, node: NodeId) -> Result<Transaction, LedgerError> {
        self.pool().begin(Some(self.last_seen.required(Some(node))?), Begin::Reading).await
    }

    /// The same for one that waits briefly for each name.
    pub(crate) async fn begin_asking(&self) -> Result<Transaction, LedgerError> {
        self.pool().begin(Some(self.last_seen.required(None)?), Begin::Asking).await
    }

    /// Begins a transaction in any life of the ledger: for writes that must happen in any case, and
    /// for agreeing on an incarnation.
    pub(crate) async fn begin_unfenced(&self) -> Result<Transaction, LedgerError> {
        self.pool().begin(None, Begin::Writing).await
    }
}

/// Commits; only here may the outcome of a transaction be unknown.
pub(crate) async fn commit(transaction: Transaction) -> Result<(), LedgerError> {
    transaction.commit().await.map_err(LedgerError::at_commit)
}

/// Commits a change that no process reports again to a ledger that forgets it (F25).
pub(crate) async fn commit_alone(
    store: &Store,
    transaction: Transaction,
) -> Result<(), LedgerError> {
    commit(transaction).await?;
    store.last_seen.note_change();
    Ok(())
}

/// Whether checked changes are saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Saving {
    /// They are.
    Save,
    /// Everything is only checked.
    DryRun,
}

/// Ends a checked change: commits it like [`commit_alone`], or takes a dry run back.
pub(crate) async fn end(
    store: &Store,
    transaction: Transaction,
    saving: Saving,
) -> Result<(), LedgerError> {
    match saving {
        Saving::Save => commit_alone(store, transaction).await,
        Saving::DryRun => Ok(transaction.rollback().await?),
    }
}
