//! What workers, journal and reconciler share: the stores, the clock, the bounds, the identity.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::incidents::{IncidentState, Tidings};
use super::membership::Membership;
use super::{
    Clocks, ClusterHealth, CutOff, FALLBACK_AFTER, Incidents, Isolation, LiveReservations, Permits,
    PlannedEnds, ProcessSettings, RedisHealth, UnjournaledPartitions,
};
use crate::clock::SharedClock;
use crate::engine::journal::JournalQueue;
use crate::ledger::{At, Deployment, Entry, Event, LedgerError, Owner, Partition, SharedLedger};
use crate::metrics::Metrics;
use crate::node::NodeId;
use crate::redis::{Guard, Keys, Redis};

/// Most that the clocks of two processes may differ for a retry to find its number all the same,
/// and how much later than its window it may find it; with a shorter window, as much as that.
const CLOCK_MARGIN_MAX: Duration = Duration::from_secs(60 * 60);

/// Failures of locks are over once none has occurred for so long beyond `database.lock_timeout`.
const QUIET: Duration = Duration::from_secs(5);

/// The stores and bounds of one process.
pub struct Context {
    /// The truth.
    pub ledger: SharedLedger,
    /// The fast path, where one is configured.
    pub redis: Option<Redis>,
    /// Builds Redis keys.
    pub keys: Keys,
    /// The clock of this process.
    pub clock: SharedClock,
    /// The clocks of others.
    pub clocks: Arc<Clocks>,
    /// Bounds and waits.
    pub settings: ProcessSettings,
    /// What the ledger was set up with.
    pub deployment: Deployment,
    /// Where handed-out records go.
    pub journal: JournalQueue,
    /// The identity of this process, and the ledger's state of the partitions.
    pub membership: Arc<Membership>,
    /// The gauges and counters.
    pub metrics: Metrics,
    /// How many reservations are live.
    pub reservations: LiveReservations,
    /// Whether workers open their partition before the first request (a service does, a command
    /// not).
    pub eager: bool,
    /// Where the journal may not have all that was handed out.
    pub unjournaled: UnjournaledPartitions,
    /// What this process sees of Redis.
    pub redis_health: RedisHealth,
    /// What the other nodes see of it.
    pub cluster_health: ClusterHealth,
    /// Whether this process alone does not see it.
    pub isolation: Isolation,
    /// Numbers the flights.
    pub flights: FlightNumbers,
    /// Places for work that holds a connection of the ledger while it waits.
    pub permits: Permits,
    /// `database.lock_timeout`: longest wait for one lock.
    pub lock_timeout: Duration,
    /// What was reported of incidents.
    pub incidents: Incidents,
    /// Epochs that this process has end.
    pub planned_ends: PlannedEnds,
    /// Stored series that this process cannot use, for the checks of the ledger.
    pub series_set_aside: AtomicU64,
}

/// Flight numbers: they rise for the life of the process, over all partitions and epochs (F10).
#[derive(Debug, Default)]
pub struct FlightNumbers(AtomicU64);

impl FlightNumbers {
    /// The next number.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl Context {
    /// Keeps records that leave this process with an answer, in case that the ledger forgets them
    /// (F9): those that were written for it, and those that were found.
    ///
    /// # Errors
    /// As [`Membership::must_hand_out`]: the processes may have agreed on a ledger without them
    /// (F25).
    pub(crate) fn hand_out<'a>(
        &self,
        node: NodeId,
        written: Vec<Entry>,
        found: impl IntoIterator<Item = &'a Entry>,
    ) -> Result<(), LedgerError> {
        let _right = self.membership.must_hand_out(node)?;
        self.journal.keep(node, written);
        self.journal.keep_found(node, found);
        Ok(())
    }

    /// Whether a partition's Redis is unavailable: no script has succeeded for
    /// [`FALLBACK_AFTER`], and no other live node reports that one does there (F22).
    #[must_use]
    pub fn redis_is_gone(&self, partition: u32) -> bool {
        self.redis_is_away(partition, 1) && !self.cluster_health.may_see(partition)
    }

    /// Whether only this node has lost a partition's Redis. The others report what they see with
    /// their heartbeats: the answer counts once they had time to notice a loss themselves.
    #[must_use]
    pub fn is_cut_off(&self, partition: u32) -> bool {
        self.redis_is_away(partition, 2) && self.cluster_health.may_see(partition)
    }

    /// Why this process should get no requests because it alone does not reach Redis; `None` where
    /// it reaches it, or no other node can serve what it cannot.
    #[must_use]
    pub fn cut_off(&self) -> Option<CutOff> {
        self.isolation.cut_off(self)
    }

    /// For how long from now on new documents of a partition are looked up in the journal, because
    /// Redis does not have all records of the window; as of the last probe (F1).
    #[must_use]
    pub fn asks_for(&self, partition: u32) -> Duration {
        if self.redis_of(partition).is_none() {
            return Duration::ZERO;
        }
        let window = self.settings.idempotency_window;
        self.redis_health.asks_for(partition, self.clock.now_us(), window)
    }

    /// Whether a flight of a partition that Redis owns would be fenced, as of the last probe: the
    /// server has lost the owner record, or holds another data set. Then an epoch ends, which takes
    /// the ledger.
    #[must_use]
    pub fn redis_is_another(&self, partition: u32) -> bool {
        let Some((shown, has_record)) = self.redis_health.shown(partition) else { return false };
        let news = self.membership.news();
        let rows = news.borrow();
        let row = rows.iter().find(|row| row.partition == partition);
        let is_named = |row: &Partition| match &row.owner {
            Owner::Redis { incarnation } => *incarnation == shown,
            Owner::None | Owner::Database => true,
        };
        !has_record || !row.is_none_or(is_named)
    }

    /// Whether no script has succeeded here for so many times [`FALLBACK_AFTER`].
    fn redis_is_away(&self, partition: u32, times: u32) -> bool {
        let away = self.redis_health.away_for(partition);
        away.is_some_and(|away| away >= FALLBACK_AFTER * times)
    }

    /// The Redis that may own a partition: none owns that of gapless series.
    #[must_use]
    pub fn redis_of(&self, partition: u32) -> Option<&Redis> {
        self.redis.as_ref().filter(|_| partition != self.deployment.gapless_partition())
    }

    /// Puts a partition on `held` because the ledger shows less than was seen (F9); false where it
    /// shows that by now.
    ///
    /// # Errors
    /// When the ledger cannot take it.
    pub async fn hold(&self, seen: At, cause: &str) -> Result<bool, LedgerError> {
        let held = self.ledger.hold(seen, cause).await?;
        if held {
            tracing::error!(partition = seen.partition, cause, "partition held");
        }
        Ok(held)
    }

    /// Since when the journal is asked for earlier numbers: so many idempotency windows ago, and as
    /// much longer as the clock of their issuer may have been behind (F29), by the ledger's time
    /// where this process's is ahead of it (F37). In microseconds of UTC.
    #[must_use]
    pub fn windows_ago_us(&self, windows: u32) -> i64 {
        let windows = self.windows_asked(windows);
        let now_us = self.clocks.asking_us();
        now_us.saturating_sub(i64::try_from(windows.as_micros()).unwrap_or(i64::MAX))
    }

    /// How far back the journal is asked: so many idempotency windows and what the clocks of two
    /// processes may differ by.
    #[must_use]
    pub fn windows_asked(&self, windows: u32) -> Duration {
        let window = self.settings.idempotency_window;
        window.saturating_mul(windows).saturating_add(window.min(CLOCK_MARGIN_MAX))
    }

    /// The guard of a call that carries no flight number (`trim`, `bar`, …).
    #[must_use]
    pub fn guard(&self, at: At, incarnation: &str, node: NodeId) -> Guard {
        Guard {
            partition: at.partition,
            epoch: at.epoch,
            incarnation: incarnation.to_owned(),
            node,
            flight: 0,
            confirmed: 0,
        }
    }

    /// Records failures of ledger calls caused by locks or a conflict, as such a phase begins, as
    /// it spreads and as it is over; other failures are no incidents, and the ledger could not
    /// store them.
    pub(crate) fn note_failure(self: &Arc<Self>, at: At, error: &LedgerError, waiting: usize) {
        let (kind, counter) = match error {
            LedgerError::LockTimeout { counter, .. } => ("lock-timeout", counter.as_deref()),
            LedgerError::Conflict(_) => ("version-conflict", None),
            _ => return,
        };
        let cause = error.to_string();
        match self.incidents.meet(kind, at, &cause, counter) {
            Tidings::None => {}
            Tidings::Changed(mut detail) => {
                detail["state"] = "changed".into();
                self.event_behind(kind, at, detail);
            }
            Tidings::Begun(mut detail) => {
                let partition = at.partition;
                tracing::warn!(
                    kind,
                    partition,
                    counter,
                    cause,
                    waiting,
                    "the ledger is in trouble"
                );
                detail["state"] = "begun".into();
                detail["counter"] = counter.into();
                detail["waiting"] = waiting.into();
                self.event_behind(kind, at, detail);
                self.watch_incident(kind);
            }
        }
    }

    /// Records when such a phase is over. A caller that waits for a lock fails once in
    /// `database.lock_timeout`, at the longest.
    fn watch_incident(self: &Arc<Self>, kind: &'static str) {
        let (context, quiet) = (Arc::clone(self), self.lock_timeout + QUIET);
        tokio::spawn(async move {
            loop {
                match context.incidents.poll(kind, quiet) {
                    IncidentState::GoesOn(left) => tokio::time::sleep(left).await,
                    IncidentState::Unknown => return,
                    IncidentState::Over(at, mut detail) => {
                        detail["state"] = "over".into();
                        return context.event(kind, at, context.membership.node(), detail).await;
                    }
                }
            }
        });
    }

    /// Writes an event that may come in storms: one a second per kind and partition, with the
    /// number of those not written since. Does not wait for it.
    pub(crate) fn incident(self: &Arc<Self>, kind: &'static str, at: At, mut detail: Value) {
        let Some(untold) = self.incidents.admit(kind, at.partition) else { return };
        detail["untold"] = untold.into();
        self.event_behind(kind, at, detail);
    }

    /// Writes an event. Does not wait for it.
    fn event_behind(self: &Arc<Self>, kind: &'static str, at: At, detail: Value) {
        let (context, node) = (Arc::clone(self), self.membership.node());
        tokio::spawn(async move { context.event(kind, at, node, detail).await });
    }

    /// Writes an event; a ledger that cannot take it leaves it in the log.
    pub async fn event(&self, kind: &str, at: At, node: NodeId, detail: Value) {
        tracing::info!(kind, partition = at.partition, epoch = at.epoch, %detail, "event");
        let event = Event {
            at_us: self.clock.now_us(),
            kind: kind.to_owned(),
            partition: Some(at.partition),
            epoch: Some(at.epoch),
            node_id: Some(node),
            detail,
        };
        if let Err(error) = self.ledger.events().record(&event).await {
            tracing::warn!(%error, kind, "event not recorded in the ledger");
        }
    }
}
