//! What lanes, journal and reconciler share: the stores, the clock, the bounds, the identity.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::AllocatorSettings;
use super::membership::Membership;
use crate::clock::SharedClock;
use crate::counter::{Guard, Keys, Redis};
use crate::journal::JournalQueue;
use crate::ledger::{At, Deployment, Event, SharedLedger};
use crate::metrics::Metrics;
use crate::node::NodeId;

/// The stores and bounds of one process.
pub struct Context {
    /// The truth.
    pub ledger: SharedLedger,
    /// The fast path, where one is configured.
    pub redis: Option<Redis>,
    /// Builds Redis keys.
    pub keys: Keys,
    /// Tells the time.
    pub clock: SharedClock,
    /// Bounds and waits.
    pub settings: AllocatorSettings,
    /// What the ledger was set up with.
    pub deployment: Deployment,
    /// Where handed-out records go.
    pub journal: JournalQueue,
    /// Who this process is, and what the ledger says of the partitions.
    pub membership: Arc<Membership>,
    /// The gauges and counters.
    pub metrics: Metrics,
    /// Whether lanes open their partition before the first request (a service does, a command not).
    pub eager: bool,
    flights: AtomicU64,
}

/// The parts of a context that are decided before it is built.
pub struct ContextParts {
    /// See [`Context`].
    pub ledger: SharedLedger,
    /// See [`Context`].
    pub redis: Option<Redis>,
    /// See [`Context`].
    pub clock: SharedClock,
    /// See [`Context`].
    pub settings: AllocatorSettings,
    /// See [`Context`].
    pub deployment: Deployment,
    /// See [`Context`].
    pub journal: JournalQueue,
    /// See [`Context`].
    pub membership: Arc<Membership>,
    /// See [`Context`].
    pub metrics: Metrics,
    /// See [`Context`].
    pub eager: bool,
}

impl Context {
    /// Puts the parts together.
    #[must_use]
    pub fn new(parts: ContextParts) -> Self {
        Context {
            keys: Keys::new(&parts.deployment.prefix),
            ledger: parts.ledger,
            redis: parts.redis,
            clock: parts.clock,
            settings: parts.settings,
            deployment: parts.deployment,
            journal: parts.journal,
            membership: parts.membership,
            metrics: parts.metrics,
            eager: parts.eager,
            flights: AtomicU64::new(0),
        }
    }

    /// The next flight number: rises for the life of the process, over all partitions and epochs
    /// (F10).
    #[must_use]
    pub fn next_flight(&self) -> u64 {
        self.flights.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The guard of a call that carries no flight number of its own (`trim`, `bar`, …).
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

    /// Writes an event; a ledger that cannot take it leaves it in the log (R5.2).
    pub async fn event(&self, kind: &str, at: At, node: NodeId, detail: serde_json::Value) {
        tracing::info!(kind, partition = at.partition, epoch = at.epoch, %detail, "event");
        let event = Event {
            at_us: self.clock.now_us(),
            kind: kind.to_owned(),
            partition: Some(at.partition),
            epoch: Some(at.epoch),
            node_id: Some(node),
            detail,
        };
        if let Err(error) = self.ledger.record_event(&event).await {
            tracing::warn!(%error, kind, "event not recorded in the ledger");
        }
    }
}
