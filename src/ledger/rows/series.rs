//! What is written once per ledger, and series with their versions.

use uuid::Uuid;

use crate::number::SeriesDefinition;

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
    /// Over how many partitions series are spread by their code. One more, of its own, serves all
    /// gapless series.
    pub partitions: u32,
    /// Prefix of all Redis keys.
    pub prefix: String,
}

impl Deployment {
    /// The partition of gapless series, the last one: the database always owns it.
    #[must_use]
    pub fn gapless_partition(&self) -> u32 {
        self.partitions
    }

    /// How many partitions there are, that of gapless series included; they count from 0.
    #[must_use]
    pub fn partitions_total(&self) -> u32 {
        self.partitions + 1
    }
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
    /// Its partition: the one of gapless series, or a hash of the code modulo the number of the
    /// others.
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
