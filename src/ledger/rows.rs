//! What goes into the ledger and comes out of it. Plain data, no SQL. Times are microseconds of UTC.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::node::NodeId;
use crate::number::{SeriesDefinition, TakenRange};

/// A partition in one epoch: where a fenced write belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// The partition.
    pub partition: u32,
    /// The epoch.
    pub epoch: u64,
}

/// What is written once per ledger (F8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployment {
    /// Random id of this ledger and everything that belongs to it.
    pub deployment_id: Uuid,
    /// Number of partitions.
    pub partitions: u32,
    /// Prefix of all Redis keys.
    pub prefix: String,
}

/// A new version of a series.
#[derive(Clone, Debug)]
pub struct SeriesChange {
    /// The definition, already compiled once without an error.
    pub definition: SeriesDefinition,
    /// Who saves it.
    pub saved_by: String,
    /// Why.
    pub reason: String,
    /// When.
    pub saved_at_us: i64,
}

/// One version of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesVersion {
    /// The series; `config_id` on the API.
    pub series_id: i64,
    /// Version, from 1.
    pub version: u32,
    /// Its partition: a hash of the code modulo the number of partitions.
    pub partition: u32,
    /// The definition.
    pub definition: SeriesDefinition,
    /// Who saved it.
    pub saved_by: String,
    /// When.
    pub saved_at_us: i64,
    /// Why.
    pub reason: String,
    /// Whether `apply_series` wrote this version just now.
    pub is_new: bool,
}

/// A node that joins.
#[derive(Clone, Debug)]
pub struct NewNode {
    /// Its identity.
    pub node_id: NodeId,
    /// For operators: host and process id.
    pub label: String,
    /// Version of the binary.
    pub version: String,
    /// When.
    pub started_at_us: i64,
}

/// A registered node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its identity.
    pub node_id: NodeId,
    /// For operators.
    pub label: String,
    /// Version of the binary.
    pub version: String,
    /// Heartbeat counter: silent is who does not raise it (F18).
    pub beat: i64,
    /// When it registered.
    pub started_at_us: i64,
    /// Partitions in which it ever was a participant: where it may have left an outbox.
    pub partitions: Vec<u32>,
}

/// Who takes the numbers of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Nobody yet (epoch 0).
    None,
    /// One incarnation of Redis.
    Redis {
        /// Its `master_replid`.
        incarnation: String,
    },
    /// The ledger itself.
    Database,
}

/// State of a partition's epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionState {
    /// Numbers may be taken.
    Open,
    /// The epoch before is being closed.
    Recovering,
    /// Closed; one node is opening the new owner.
    Opening,
    /// The ledger went back: nothing is issued until an operator acts (F9).
    Held,
}

/// How an epoch was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// Everything handed out is in the journal: counters go on from `taken`.
    Exact,
    /// Somebody may hold unjournaled numbers: counters go on above their ceiling.
    Ceiling,
}

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its number, from 0.
    pub partition: u32,
    /// The epoch.
    pub epoch: u64,
    /// Its state.
    pub state: PartitionState,
    /// The owner of the epoch (of the one being closed, while `recovering`).
    pub owner: Owner,
    /// How the epoch before was closed.
    pub last_closing: Option<Closing>,
    /// The last epoch closed at the ceiling; 0: none.
    pub last_ceiling_epoch: u64,
    /// Who bumped or claimed, while not `open`.
    pub actor: Option<NodeId>,
    /// Why the epoch began.
    pub cause: String,
    /// When the state last changed.
    pub changed_at_us: i64,
}

/// A counter to resolve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed {
    /// Series of the counter.
    pub series_id: i64,
    /// Index of the serial within the series.
    pub serial: u16,
    /// The counter key's text.
    pub key: String,
    /// First value of a new counter.
    pub start: u64,
    /// Distance between values.
    pub step: u64,
    /// Largest value of the serial: no ceiling goes past it.
    pub max: u64,
    /// How many values the first ceiling leaves room for.
    pub room: u64,
}

/// What became of a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeedOutcome {
    /// Resolved now, by this call.
    Seeded {
        /// The counter.
        counter_id: i64,
        /// The value before the first one of this epoch: the highest that is spoken for.
        value: i64,
        /// The ceiling.
        ceiling: i64,
    },
    /// It was seeded in this very epoch before, by `seeder`.
    Already {
        /// The counter.
        counter_id: i64,
        /// Who seeded it.
        seeder: NodeId,
        /// The value it was seeded with.
        value: i64,
        /// The ceiling in force.
        ceiling: i64,
    },
}

/// A ceiling to raise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raise {
    /// The counter.
    pub counter_id: i64,
    /// The ceiling wanted.
    pub ceiling: i64,
}

/// A counter's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its id.
    pub counter_id: i64,
    /// Its series.
    pub series_id: i64,
    /// Index of the serial within the series.
    pub serial: u16,
    /// The counter key's text.
    pub key: String,
    /// Its partition.
    pub partition: u32,
    /// The epoch that last touched it.
    pub epoch: u64,
    /// The value before its very first one, `start - step`: negative where a counter starts below
    /// its step.
    pub origin: i64,
    /// The value that its epoch started above.
    pub start: i64,
    /// Highest value known to be taken.
    pub taken: i64,
    /// Bound of the epoch: nobody takes past it.
    pub ceiling: i64,
    /// Distance between values.
    pub step: u64,
    /// How many values of this epoch the journal holds.
    pub journaled: u64,
}

/// Everything that the journal needs to know of an allocation but its values. Made before the
/// values are taken; travels as JSON through the outbox and the idempotency records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Chosen before the flight (F10).
    pub allocation_id: Uuid,
    /// The series.
    pub series_id: i64,
    /// Its version.
    pub version: u32,
    /// Document type asked for.
    pub type_code: String,
    /// Project asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Uniqueness scope as text.
    pub scope: String,
    /// The number but for its values.
    pub mask: String,
    /// The document, where the caller named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_id: Option<String>,
    /// Civil date of the document.
    pub document_date: String,
    /// The variables of the request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context: BTreeMap<String, String>,
    /// Counter keys, one per serial.
    pub counter_keys: Vec<String>,
    /// Who asked.
    pub user_id: String,
    /// From where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<String>,
    /// The caller's `Idempotency-Key` (with `#i` for the item of a batch).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Hash of the payload, hex.
    pub payload_digest: String,
    /// When the request was accepted.
    pub issued_at_us: i64,
}

/// Which path took a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IssuePath {
    /// A flight to Redis.
    Redis,
    /// A transaction of the ledger.
    Database,
}

/// One allocation with its values, ready for the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What was asked.
    pub record: Arc<Record>,
    /// What was taken, one per serial.
    pub taken: Vec<TakenRange>,
    /// Text of the first number.
    pub number: String,
    /// Partition and epoch that took it.
    pub at: At,
    /// How often the request was flown or tried again before it was answered.
    pub retry_count: u32,
    /// Which path took it.
    pub path: IssuePath,
}

/// What became of a batch of entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Appended {
    /// Rows written now.
    pub written: u64,
    /// Entries that were there already.
    pub known: u64,
    /// Entries that collided with another allocation: duplicates. Must stay empty.
    pub collisions: Vec<Uuid>,
}

/// A request on the database path.
#[derive(Clone, Debug)]
pub struct TakeOrder {
    /// What is asked.
    pub record: Arc<Record>,
    /// How many numbers.
    pub count: u64,
    /// The serials, `Seed::room` unused.
    pub serials: Vec<Seed>,
    /// Earlier numbers to look for.
    pub question: Question,
    /// Attempts so far.
    pub retry_count: u32,
}

/// What the database path answers, one outcome per order in its order.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// Outcomes.
    pub outcomes: Vec<TakeOutcome>,
}

/// One outcome of the database path.
#[derive(Clone, Debug, PartialEq)]
pub enum TakeOutcome {
    /// Taken and journaled; final once the call returned.
    Taken(Entry),
    /// An earlier number was found under the order's keys.
    Found(Found),
    /// A serial is past its last value.
    Exhausted {
        /// Index of the serial.
        serial: u16,
    },
    /// Another allocation has that number already: the value is spent, registered as a gap, never handed out.
    Collided {
        /// The number.
        number: String,
    },
}

/// Keys under which an earlier number may stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Series of the keys.
    pub series_id: i64,
    /// The caller whose key it is.
    pub user_id: String,
    /// The caller's key.
    pub idempotency_key: Option<String>,
    /// The document; `None` also where the caller asked for `again`.
    pub document_id: Option<String>,
    /// Only rows issued since then (the idempotency window).
    pub since_us: i64,
}

/// The journal's answer to a question. The newest row of each kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Under the caller's key.
    pub by_key: Option<Entry>,
    /// Under the document.
    pub by_document: Option<Entry>,
}

/// What to look for in the journal; all given fields must match.
#[derive(Clone, Debug, Default)]
pub struct JournalFilter {
    /// The number (exact).
    pub number: Option<String>,
    /// The document.
    pub document_id: Option<String>,
    /// The user.
    pub user_id: Option<String>,
    /// Issued at or after.
    pub from_us: Option<i64>,
    /// Issued before.
    pub until_us: Option<i64>,
    /// At most so many rows (default 100, at most 1,000).
    pub limit: u32,
}

/// A journal row as auditors see it (R5.1).
#[derive(Clone, Debug, PartialEq)]
pub struct JournalRow {
    /// The allocation.
    pub entry: Entry,
    /// `template_used`.
    pub template: String,
    /// The node that journaled it.
    pub node_id: NodeId,
    /// When the row was written.
    pub journaled_at_us: i64,
}

/// A run of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    /// First value.
    pub first: u64,
    /// Last value.
    pub last: u64,
}

/// Why numbers will not be issued any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GapReason {
    /// Taken by a flight whose result was never handed out.
    Discarded,
    /// Below a ceiling at which an epoch closed: one of them may have been handed out and its record lost.
    Unaccounted,
    /// Refused by the ledger's unique key before it was handed out.
    Collided,
}

/// An entry of the gap register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The counter.
    pub counter_id: i64,
    /// The values.
    pub span: Span,
    /// Why.
    pub reason: GapReason,
    /// The epoch in which they were lost.
    pub epoch: u64,
    /// When it was noted.
    pub noted_at_us: i64,
}

/// Which gaps to list.
#[derive(Clone, Debug, Default)]
pub struct GapFilter {
    /// Of one counter.
    pub counter_id: Option<i64>,
    /// At most so many (default 100).
    pub limit: u32,
}

/// A duplicate that the ledger noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collision {
    /// The allocation that came second.
    pub allocation_id: Uuid,
    /// The one that was there.
    pub other_allocation_id: Option<Uuid>,
    /// The number of the second.
    pub number: String,
    /// Its counter and values.
    pub counter_id: i64,
    /// Its values.
    pub span: Span,
    /// When it was noted.
    pub noted_at_us: i64,
}

/// Sizes of the ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Journal rows.
    pub journal: u64,
    /// Gap register entries.
    pub gaps: u64,
    /// Collisions.
    pub collisions: u64,
    /// Rejected rows.
    pub rejected: u64,
}

/// What became of an adoption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Adopted {
    /// Rows written.
    pub written: u64,
    /// Entries known already.
    pub known: u64,
    /// Entries of an epoch closed exact, never handed out.
    pub discarded: u64,
}

/// Something an operator or auditor should know of (R5.2).
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When.
    pub at_us: i64,
    /// What: `recovery`, `adoption`, `collision`, …
    pub kind: String,
    /// Where.
    pub partition: Option<u32>,
    /// In which epoch.
    pub epoch: Option<u64>,
    /// Seen by whom.
    pub node_id: Option<NodeId>,
    /// The rest, a JSON object.
    pub detail: serde_json::Value,
}
