//! Builds the whole from its settings: ledger, Redis, allocator, journal, reconciler; and takes it
//! down again in the right order.

use std::sync::Arc;

use crate::allocator::Allocator;
use crate::clock::SharedClock;
use crate::config::Settings;
use crate::ledger::SharedLedger;

/// A running service, for `serve` and for commands that take numbers.
pub struct Service {
    /// Hands out numbers.
    pub allocator: Allocator,
    /// The ledger.
    pub ledger: SharedLedger,
    /// The clock.
    pub clock: SharedClock,
}

/// Whether numbers can be issued right now, and by which path.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Readiness {
    /// Whether any partition can issue.
    pub ready: bool,
    /// Per partition: its state in words (`redis`, `database`, `recovering`, `held`, `idle`, …).
    pub partitions: Vec<String>,
}

impl Service {
    /// Opens the ledger (migrating it), loads the series, joins as a node.
    ///
    /// # Errors
    /// Settings that do not fit the ledger, an unreachable ledger, a broken Redis URL.
    pub async fn start(_settings: &Settings, _clock: SharedClock) -> anyhow::Result<Arc<Self>> {
        todo!()
    }

    /// Whether numbers can be issued.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        todo!()
    }

    /// Refuses new requests, lets the waiting ones finish, drains the journal, leaves the ledger.
    ///
    /// # Errors
    /// When records could not be journaled in time; they remain in the outbox for adoption.
    pub async fn stop(&self) -> anyhow::Result<()> {
        todo!()
    }
}
