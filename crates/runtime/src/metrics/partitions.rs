//! Gauges by partition: one set for each partition, that of gapless series last.

use metrics::Gauge;

use super::definitions::{
    ASKING_SECONDS, CEILING_ROOM, CEILING_ROOM_SECONDS, CEILING_USED, OUTBOX_ENTRIES,
    PARTITION_EPOCH, PARTITION_OWNER, PARTITION_SERVING, PARTITION_STATE, QUEUE_LENGTH,
    REDIS_COUNTERS, REDIS_UP,
};
use super::families::{ByPartition, Family};

/// Words for owners.
const OWNERS: [&str; 3] = ["redis", "database", "none"];
/// Words for states.
const STATES: [&str; 4] = ["open", "recovering", "opening", "held"];

/// The gauges of one partition.
#[derive(Debug)]
pub struct PartitionGauges {
    /// Requests that wait or are in flight.
    pub queue_length: Gauge,
    /// Largest share of a grant that a counter in use has taken.
    pub ceiling_used: Gauge,
    /// Numbers left below that counter's ceiling.
    pub ceiling_room: Gauge,
    /// Time until the first of the counters uses up its room.
    pub ceiling_room_seconds: Gauge,
    /// Entries in all outboxes.
    pub outbox_entries: Gauge,
    /// For how long keys that Redis does not know are looked up in the journal.
    pub asking: Gauge,
    /// The epoch.
    pub epoch: Gauge,
    /// Whether this node can issue.
    pub serving: Gauge,
    owner: Family<Gauge>,
    state: Family<Gauge>,
}

impl PartitionGauges {
    fn new(partition: &str) -> Self {
        PartitionGauges {
            queue_length: QUEUE_LENGTH.gauge(&[partition]),
            ceiling_used: CEILING_USED.gauge(&[partition]),
            ceiling_room: CEILING_ROOM.gauge(&[partition]),
            ceiling_room_seconds: CEILING_ROOM_SECONDS.gauge(&[partition]),
            outbox_entries: OUTBOX_ENTRIES.gauge(&[partition]),
            asking: ASKING_SECONDS.gauge(&[partition]),
            epoch: PARTITION_EPOCH.gauge(&[partition]),
            serving: PARTITION_SERVING.gauge(&[partition]),
            owner: Family::new(OWNERS, |owner| PARTITION_OWNER.gauge(&[partition, owner])),
            state: Family::new(STATES, |state| PARTITION_STATE.gauge(&[partition, state])),
        }
    }

    /// Shows the state of the partition in the ledger.
    pub fn show(&self, epoch: u64, owner: &str, state: &str) {
        self.epoch.set(epoch as f64);
        self.owner.each(|word, gauge| gauge.set(f64::from(u8::from(word == owner))));
        self.state.each(|word, gauge| gauge.set(f64::from(u8::from(word == state))));
    }
}

/// Whether Redis accepts scripts that write, for each of the partitions that it may own.
#[must_use]
pub fn redis_gauges(partitions: u32) -> ByPartition<Gauge> {
    ByPartition::new(partitions, |partition| REDIS_UP.gauge(&[partition]))
}

/// How many counters of the present epoch Redis has, for each of the partitions that it may own.
#[must_use]
pub fn counter_gauges(partitions: u32) -> ByPartition<Gauge> {
    ByPartition::new(partitions, |partition| REDIS_COUNTERS.gauge(&[partition]))
}

/// Gauges of all partitions, that of gapless series included.
#[must_use]
pub fn partition_gauges(partitions: u32) -> ByPartition<PartitionGauges> {
    ByPartition::new(partitions, PartitionGauges::new)
}
