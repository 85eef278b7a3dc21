//! The numbers that another system has issued, on their way into the ledger.

use numbering::SeriesDefinition;

use crate::Entry;

/// A counter that another system has counted so far.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ImportedCounter {
    /// Its series.
    pub series_id: i64,
    /// Name of its serial.
    pub serial: String,
    /// The counter key's text.
    pub key: String,
    /// Version of the series by which the name was made.
    pub version: u32,
    /// First value of the serial.
    pub start: u64,
    /// Distance between values.
    pub step: u64,
    /// The highest value that was issued, on the serial's step: the counter continues above it,
    /// unless it is already higher.
    pub highest: u64,
    /// Where numbers of it are imported and the series keeps chronology: the counters that share
    /// its last date.
    pub family: Option<String>,
}

/// A version of a series in the ledger that its counters come from: numbers of it may be out, and
/// none of them may come again.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedVersion {
    /// The series here.
    pub series_id: i64,
    /// The definition.
    pub definition: SeriesDefinition,
    /// The user who imports it.
    pub saved_by: String,
    /// The reason: which version it was, who saved it, and the reason given then.
    pub reason: String,
}

/// Entries of an import, chunk by chunk, so that no more than one chunk is held in memory. Their
/// counter ids and their places in the ledger are ignored: both are made by the import. An error
/// undoes the import; it is a sentence for the operator.
pub type ImportedEntries<'a> = dyn Iterator<Item = Result<Vec<Entry>, String>> + Send + 'a;

/// The result of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Counters made.
    pub counters: u64,
    /// Counters in use that were lifted.
    pub lifted: u64,
    /// Numbers journaled.
    pub numbers: u64,
}
