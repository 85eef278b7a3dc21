//! The report of a process with each heartbeat, for readers of the ledger.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::HealthReport;

/// The content of a heartbeat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeReport {
    /// The data sets of Redis that it sees.
    pub sight: HealthReport,
    /// Its obstacles.
    pub words: NodeWords,
}

/// The obstacles of a process, in its own words. Fields that a later version adds are not known
/// here, and those of an earlier one are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeWords {
    /// Whether it has no `redis.url`, and will never see Redis.
    pub without_redis: bool,
    /// Where it does not see Redis, and why.
    pub blind: Vec<Blind>,
    /// The failures of the ledger for it.
    pub ledger: Vec<LedgerFailure>,
    /// Records handed out and not journaled yet.
    pub journal_records: u64,
    /// How long the oldest of them has waited, in milliseconds.
    pub journal_ms: u64,
    /// The reference of its clock, and the result, where it is too far off.
    pub clock: Option<String>,
    /// Stored series that it cannot use: requests for them are refused.
    pub series_set_aside: u64,
}

/// Partitions that a process does not see in Redis for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blind {
    /// The partitions.
    pub partitions: BTreeSet<u32>,
    /// Since when, by its clock, in microseconds of UTC.
    pub since_us: i64,
    /// Why.
    pub why: String,
}

/// Calls of one kind that the ledger has not carried out of late.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerFailure {
    /// Their kind: `append`, `take`, `seed`, `raise`.
    pub call: String,
    /// Since when, by the clock of the process, in microseconds of UTC.
    pub since_us: i64,
    /// The reason of the last failure.
    pub why: String,
}

impl NodeWords {
    /// Where and why it does not see a partition in Redis, as far as it reports it.
    #[must_use]
    pub fn blind_to(&self, partition: u32) -> Option<&Blind> {
        self.blind.iter().find(|blind| blind.partitions.contains(&partition))
    }
}
