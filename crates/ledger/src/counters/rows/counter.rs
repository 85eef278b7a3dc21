//! Counters, their ceilings, and the values that will not be issued any more.

use numerator_runtime::node::NodeId;
use serde::Serialize;
use sqlx_macros::FromRow;

use crate::columns::{unsigned, unsigned_small};
use crate::{At, LedgerError};

/// The serial of the counters of numbers as written: no series has a serial of such a name. Their
/// values are places in a list, and no number shows one.
pub const AS_WRITTEN_SERIAL: &str = "as-written";

/// A counter as a request names it: its identity, and what creates it where there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterSpec {
    /// Series of the counter.
    pub series_id: i64,
    /// The version of the series that the request is for. No counter is created for a version older
    /// than the first use of the series, or for one that starts below the version in force.
    pub version: u32,
    /// Name of its serial.
    pub serial: String,
    /// The counter key's text.
    pub key: String,
    /// First value of a new counter.
    pub start: u64,
    /// Distance between values.
    pub step: u64,
    /// Largest value of the serial: no ceiling goes past it.
    pub max: u64,
    /// How many values the first ceiling leaves above the last one taken.
    pub headroom: u64,
}

impl CounterSpec {
    /// Name of the counter within its partition: its identity as one text.
    #[must_use]
    pub fn name(&self) -> String {
        name(self.series_id, &self.serial, &self.key)
    }
}

fn name(series_id: i64, serial: &str, key: &str) -> String {
    format!("{series_id}:{serial}:{key}")
}

/// What became of a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeedOutcome {
    /// Resolved now, by this call.
    Seeded {
        /// The counter.
        counter_id: i64,
        /// The value before the first one of this epoch: the highest one already reserved.
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

/// A counter that may not go on below a value that others know of (F9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lift {
    /// Its series.
    pub series_id: i64,
    /// Name of its serial.
    pub serial: String,
    /// The counter key's text.
    pub key: String,
    /// The value.
    pub value: i64,
}

/// A counter's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its id.
    pub counter_id: i64,
    /// Its series.
    pub series_id: i64,
    /// Name of its serial.
    pub serial: String,
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
    /// Bound of the epoch: no value past it is taken.
    pub ceiling: i64,
    /// Distance between values.
    pub step: u64,
    /// How many values of this epoch the journal holds.
    pub journaled: u64,
    /// How many of its values ever came back from reservations. Only rises.
    pub returned: u64,
    /// How many of those left the register again. Only rises; the others are the next to be taken.
    pub reissued: u64,
}

/// The columns of a counter but for its seeder.
#[derive(FromRow)]
pub(crate) struct CounterRow {
    counter_id: i64,
    series_id: i64,
    serial: String,
    key: String,
    partition_id: i32,
    epoch: i64,
    origin: i64,
    start_value: i64,
    taken: i64,
    ceiling: i64,
    step: i64,
    journaled: i64,
    returned: i64,
    reissued: i64,
}

impl TryFrom<CounterRow> for Counter {
    type Error = LedgerError;

    fn try_from(row: CounterRow) -> Result<Self, LedgerError> {
        Ok(Counter {
            counter_id: row.counter_id,
            series_id: row.series_id,
            serial: row.serial,
            key: row.key,
            partition: unsigned_small(row.partition_id, "counter.partition_id")?,
            epoch: unsigned(row.epoch, "counter.epoch")?,
            origin: row.origin,
            start: row.start_value,
            taken: row.taken,
            ceiling: row.ceiling,
            step: unsigned(row.step, "counter.step")?,
            journaled: unsigned(row.journaled, "counter.journaled")?,
            returned: unsigned(row.returned, "counter.returned")?,
            reissued: unsigned(row.reissued, "counter.reissued")?,
        })
    }
}

impl Counter {
    /// Its name within its partition.
    #[must_use]
    pub fn name(&self) -> String {
        name(self.series_id, &self.serial, &self.key)
    }

    /// Whether it counts numbers as written, and none that its series renders.
    #[must_use]
    pub fn is_as_written(&self) -> bool {
        self.serial == AS_WRITTEN_SERIAL
    }

    /// How many values it may still take in its epoch, as far as the ledger knows.
    #[must_use]
    pub fn headroom(&self) -> u64 {
        self.ceiling.abs_diff(self.taken) / self.step
    }

    /// Whether nothing of its epoch is left to be settled once that epoch is closed.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.start == self.taken && self.taken == self.ceiling
    }
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
    /// Below a ceiling at which an epoch closed: one of them may have been handed out and its
    /// record lost.
    Unaccounted,
    /// Refused by the ledger's unique key before it was handed out.
    Collided,
    /// Below the highest value that was imported, and not among what was: another system's to
    /// explain.
    #[serde(rename = "before-import")]
    BeforeImport,
    /// Jumped over at a change of the counter that two people approve, or by a number that was
    /// given by hand; or given back before, and left below by one of these or by an import.
    Skipped,
    /// Reserved, and given back before it was used; or passed over by a number that was given by
    /// hand: the next to be taken.
    Returned,
    /// Reserved and cancelled, where a series keeps its order of dates.
    Cancelled,
    /// Reserved and never confirmed, where a series keeps its order of dates.
    Expired,
}

/// An entry of the gap register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The counter.
    pub counter_id: i64,
    /// Its series.
    pub series_id: i64,
    /// Name of its serial.
    pub serial: String,
    /// The counter key's text.
    pub key: String,
    /// The partition and epoch in which the values were lost.
    pub at: At,
    /// The values.
    pub span: Span,
    /// Distance between values.
    pub step: u64,
    /// Why.
    pub reason: GapReason,
    /// When it was noted.
    pub noted_at_us: i64,
}

/// Most counters of a series that are counted, where only a person wants to know how many it has.
pub const COUNTERS_COUNTED_MAX: u64 = 10_000;

/// Which gaps to list.
#[derive(Clone, Debug, Default)]
pub struct GapFilter {
    /// Of one counter.
    pub counter_id: Option<i64>,
    /// Of one series.
    pub series_id: Option<i64>,
    /// Of one reason.
    pub reason: Option<GapReason>,
    /// At most so many (default 100).
    pub limit: u32,
}

/// Sizes of the ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Journal rows.
    pub journal: u64,
    /// Revisions of numbers.
    pub revisions: u64,
    /// Gap register entries.
    pub gaps: u64,
    /// Collisions without an acknowledgement.
    pub collisions: u64,
    /// Collisions with an explanation.
    pub acknowledged: u64,
    /// Rejected rows without an acknowledgement.
    pub rejected: u64,
    /// Whether journal and gap register are too long to be counted for a look: then their sizes are
    /// the engine's estimates of the tables.
    pub estimated: bool,
}
