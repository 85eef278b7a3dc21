//! A worker's participation in one epoch that Redis owns: what is in flight, what is parked.

use std::collections::HashMap;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::counter_cache::CounterCache;
use super::headroom::HeadroomWatch;
use super::pending_request::PendingRequest;
use crate::counter::{Flight, Guard, SeedPlace};
use crate::ledger::At;
use crate::node::NodeId;

/// A ceiling that stands in the ledger and is to be sent to Redis.
#[derive(Clone, Debug)]
pub(super) struct RaisePlace {
    /// Name of the counter within the partition.
    pub counter: String,
    /// The ledger's ceiling.
    pub ceiling: i64,
    /// Distance between values.
    pub step: u64,
}

/// A place that a seed in the ledger has prepared.
#[derive(Clone, Debug)]
pub(super) struct ColdPlace {
    /// What goes to Redis.
    pub place: SeedPlace,
    /// Distance between values.
    pub step: u64,
}

/// What a flight carries.
pub(super) enum FlightBatch {
    /// Requests, and the space reserved for their records.
    Requests(Vec<PendingRequest>, OwnedSemaphorePermit),
    /// Counters to seed.
    Seeds(Vec<ColdPlace>),
    /// Ceilings to raise.
    Raises(Vec<RaisePlace>),
}

/// The one call in flight: sent again byte for byte until its outcome is known (F10).
pub(super) struct InFlight {
    /// The encoded call.
    pub flight: Flight,
    /// Its number.
    pub number: u64,
    /// What it carries.
    pub batch: FlightBatch,
    /// Whether a try of it ended without an answer: it may have been executed.
    pub is_unresolved: bool,
}

/// The participation.
pub(super) struct EpochLease {
    /// Partition and epoch.
    pub at: At,
    /// The owner's incarnation, as the ledger names it.
    pub incarnation: String,
    /// The identity that participates.
    pub node: NodeId,
    /// Last flight whose outcome is known; 0: none.
    pub confirmed: u64,
    /// What is known of the counters.
    pub counters: CounterCache,
    /// Requests that wait for a counter to be seeded or raised.
    pub parked: HashMap<String, Vec<PendingRequest>>,
    /// The call in flight.
    pub in_flight: Option<InFlight>,
    /// Seeds ready to send.
    pub seeds: Vec<ColdPlace>,
    /// Raises ready to send.
    pub raises: Vec<RaisePlace>,
    /// When the last call left.
    pub sent_at: Instant,
    /// Last flight trimmed from the outbox.
    pub trimmed: u64,
    /// When the outbox was last trimmed, or the ownership last looked at in doing so.
    pub trimmed_at: Instant,
    /// Whether idempotency records went before their time.
    pub sheds: bool,
    /// Looks for the counter with the least headroom below its ceiling.
    pub headroom: HeadroomWatch,
}

impl EpochLease {
    /// An epoch lease just taken.
    #[must_use]
    pub(super) fn new(at: At, incarnation: String, node: NodeId, counters_max: usize) -> Self {
        EpochLease {
            at,
            incarnation,
            node,
            confirmed: 0,
            counters: CounterCache::new(counters_max),
            parked: HashMap::new(),
            in_flight: None,
            seeds: Vec::new(),
            raises: Vec::new(),
            sent_at: Instant::now(),
            trimmed: 0,
            trimmed_at: Instant::now(),
            sheds: false,
            headroom: HeadroomWatch::new(),
        }
    }

    /// The guard of the next flight.
    #[must_use]
    pub(super) fn guard(&self, flight: u64) -> Guard {
        Guard {
            partition: self.at.partition,
            epoch: self.at.epoch,
            incarnation: self.incarnation.clone(),
            node: self.node,
            flight,
            confirmed: self.confirmed,
        }
    }

    /// Whether a call is in flight or ready to send, apart from waiting requests.
    #[must_use]
    pub(super) fn has_work(&self) -> bool {
        self.in_flight.is_some() || !self.seeds.is_empty() || !self.raises.is_empty()
    }

    /// Ends the participation: gives back every request, in the order in which they came. What
    /// their flight may have taken is discarded: it was never handed out and never will be.
    #[must_use]
    pub(super) fn discard(mut self) -> Vec<PendingRequest> {
        let mut requests = match self.in_flight.take() {
            Some(InFlight { batch: FlightBatch::Requests(requests, _), .. }) => requests,
            _ => Vec::new(),
        };
        requests.extend(self.parked.into_values().flatten());
        requests
    }
}
