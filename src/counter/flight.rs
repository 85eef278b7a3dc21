//! Guarded calls: encoded once, flown again byte for byte (F10).

use crate::node::NodeId;
use crate::number::TakenRange;

/// Under which ownership, by whom and as which flight a call is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The partition.
    pub partition: u32,
    /// The epoch that the node participates in.
    pub epoch: u64,
    /// The incarnation that the ledger names as owner.
    pub incarnation: String,
    /// The caller.
    pub node: NodeId,
    /// Flight number: rises for the life of the process over all partitions and epochs.
    pub flight: u64,
    /// The caller's last flight of this epoch whose outcome it knows; 0: none.
    pub confirmed: u64,
}

/// One serial's share of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Take {
    /// Name of the counter within its partition: `<series id>:<serial>:<counter key>`.
    pub counter: String,
    /// How many values.
    pub count: u64,
    /// Distance between values.
    pub step: u64,
    /// Largest value that may be taken.
    pub max: u64,
    /// Highest value that the caller has seen in this epoch (second net of F3).
    pub seen: Option<i64>,
}

/// One request of a flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueRequest {
    /// What to take, all or nothing.
    pub takes: Vec<Take>,
    /// Name of the caller's idempotency record: `k:<series id>:<user>:<key>`.
    pub caller_key: Option<String>,
    /// Name of the document's idempotency record: `d:<series id>:<document>`.
    pub document_key: Option<String>,
    /// Hash of the payload.
    pub digest: String,
    /// Whether a document that has a number already gets another one.
    pub again: bool,
    /// Whether the journal was asked for these keys in this epoch (F1).
    pub asked: bool,
    /// The allocation's record, opaque to the script.
    pub record: String,
}

/// What became of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IssueOutcome {
    /// Taken now, one range per take.
    Taken(Vec<TakenRange>),
    /// An earlier allocation under the same key and payload; it stands in this flight's outbox
    /// entry too (F2).
    Replayed {
        /// Its values.
        taken: Vec<TakenRange>,
        /// Its record.
        record: String,
    },
    /// The document has a number for another payload. Nothing taken.
    DocumentNumbered {
        /// Its values.
        taken: Vec<TakenRange>,
        /// Its record.
        record: String,
    },
    /// The caller's key was used for another payload. Nothing taken.
    KeyReused,
    /// The keys must be looked up in the journal first. Nothing taken.
    Ask,
    /// A counter is not in Redis in this epoch. Nothing taken.
    Cold {
        /// Index of the first such take.
        take: usize,
    },
    /// A counter's ceiling leaves no room. Nothing taken.
    Ceiling {
        /// Index of the first such take.
        take: usize,
        /// Its value.
        value: i64,
        /// Its ceiling.
        ceiling: i64,
    },
    /// A counter is past its last value. Nothing taken.
    Exhausted {
        /// Index of the first such take.
        take: usize,
    },
    /// Somebody wrote to a counter (F3). Nothing taken; the epoch must end.
    Regressed {
        /// Index of the first such take.
        take: usize,
    },
    /// The flight had been executed before and this request took nothing then: ask again in another flight.
    Nothing,
}

/// What became of a guarded call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Landing<T> {
    /// It was executed, now or when it was first flown.
    Landed(T),
    /// The owner record is missing or names another epoch or incarnation, the server is not a
    /// master, or it has forgotten a confirmed flight. Nothing done.
    Fenced {
        /// The epoch of the owner record, where there is one.
        epoch: Option<u64>,
        /// What did not match.
        reason: String,
    },
    /// The node was barred from this partition (F7). Nothing done.
    Barred,
    /// A later flight of this node was executed already: this one is a ghost. Nothing done.
    Late,
    /// The flight number was flown with other bytes: two processes share an identity (F10).
    Mismatch,
    /// The outbox does not hold as many entries as its count (F7). Nothing done.
    Miscounted,
}

/// Where a counter is to be seeded, and with what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedPlace {
    /// Name of the counter within its partition.
    pub counter: String,
    /// Its id in the ledger.
    pub counter_id: i64,
    /// The value to start above.
    pub value: i64,
    /// The ceiling.
    pub ceiling: i64,
}

/// What a seed met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeedState {
    /// Written now.
    Seeded,
    /// The counter was warm in this epoch already; left as it is.
    Warm,
}

/// What a raise met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raised {
    /// The ceiling in force now.
    Ceiling(i64),
    /// The counter is not in Redis in this epoch.
    Cold,
    /// Somebody wrote to the counter (F3).
    Regressed,
}

/// A guarded call, encoded.
#[derive(Clone, Debug)]
pub struct Flight {}

impl Flight {
    /// A flight of requests. `now_ms` and `window_ms` judge idempotency records.
    #[must_use]
    pub fn issue(
        _keys: &super::Keys,
        _guard: &Guard,
        _requests: &[IssueRequest],
        _now_ms: i64,
        _window_ms: u64,
    ) -> Self {
        todo!()
    }

    /// A flight that seeds counters.
    #[must_use]
    pub fn seed(_keys: &super::Keys, _guard: &Guard, _places: &[SeedPlace]) -> Self {
        todo!()
    }

    /// A flight that raises ceilings: `(counter name, ceiling)`.
    #[must_use]
    pub fn raise(_keys: &super::Keys, _guard: &Guard, _raises: &[(String, i64)]) -> Self {
        todo!()
    }
}
