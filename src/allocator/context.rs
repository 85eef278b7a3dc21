//! What lanes, journal and reconciler share: the stores, the clock, the bounds, the identity.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::membership::Membership;
use super::{AllocatorSettings, Doubts};
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
    /// Whether lanes open their partition before the first request (a service does, a command
    /// not).
    pub eager: bool,
    /// Where the journal may not have all that was handed out.
    pub doubts: Doubts,
    /// Numbers the flights.
    pub flights: FlightNumbers,
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
    /// The Redis that may own a partition: none owns that of gapless series.
    #[must_use]
    pub fn redis_of(&self, partition: u32) -> Option<&Redis> {
        self.redis.as_ref().filter(|_| partition != self.deployment.gapless_partition())
    }

    /// Where the idempotency window begins, in microseconds of UTC.
    #[must_use]
    pub fn window_start_us(&self) -> i64 {
        let window_us = i64::try_from(self.settings.idempotency_window.as_micros());
        self.clock.now_us().saturating_sub(window_us.unwrap_or(i64::MAX))
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
