//! What a Redis server holds of the partition. Never decides what may be written.

use crate::state::{COUNTERS, Epoch, Incarnation, Record, Value};

/// A node's last flight in this epoch, and how many entries its outbox must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Guard {
    /// The flight's number.
    pub flight: u8,
    /// What was sent.
    pub digest: u8,
    /// Entries of its outbox.
    pub count: u8,
}

/// Which node may take numbers, and what is known of the nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OwnerRecord {
    /// The epoch.
    pub epoch: Epoch,
    /// The incarnation that it was opened on.
    pub incarnation: Incarnation,
    /// A missing idempotency record means a new key.
    pub complete: bool,
    /// How many idempotency records there must be.
    pub records: u8,
    /// Each node's last flight.
    pub guards: Vec<Option<Guard>>,
    /// Nodes that are barred.
    pub barred: Vec<bool>,
}

/// The counter's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Counter {
    /// The epoch that it was seeded in.
    pub epoch: Epoch,
    /// The highest value taken.
    pub value: Value,
    /// The same once more.
    pub check: Value,
    /// Nothing is taken above this.
    pub ceiling: Value,
}

/// One place of an outbox entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// Which request of the flight.
    pub place: u8,
    /// Whether an earlier allocation answered.
    pub replayed: bool,
    /// The number.
    pub record: Record,
}

/// An outbox entry: a flight and what it took or replayed.
pub type Entry = (u8, Vec<Line>);

/// What a server holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Data {
    /// The owner record.
    pub owner: Option<OwnerRecord>,
    /// The counters.
    pub counters: [Option<Counter>; COUNTERS],
    /// Idempotency records, in order.
    pub records: Vec<Record>,
    /// Outboxes by node.
    pub outboxes: Vec<Vec<Entry>>,
}

impl Data {
    /// Nothing at all.
    #[must_use]
    pub fn empty(nodes: usize) -> Self {
        Self {
            owner: None,
            counters: [None; COUNTERS],
            records: Vec::new(),
            outboxes: vec![Vec::new(); nodes],
        }
    }
}

impl OwnerRecord {
    pub(crate) fn new(
        epoch: Epoch,
        incarnation: Incarnation,
        complete: bool,
        records: u8,
        nodes: usize,
    ) -> Self {
        let (guards, barred) = (vec![None; nodes], vec![false; nodes]);
        Self { epoch, incarnation, complete, records, guards, barred }
    }
}
