//! What another system has issued, on its way into the ledger (R9.5).

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
    /// The highest value that was issued, on the serial's step: the counter goes on above it, if it
    /// does not stand higher already.
    pub highest: u64,
    /// Where numbers of it come along and the series keeps chronology: the counters that share its
    /// last date.
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
    /// Who brings it.
    pub saved_by: String,
    /// Why: which version it was, who saved it, and that one's reason.
    pub reason: String,
}

/// Entries of an import, chunk by chunk, so that no more than one chunk is held at once. Their
/// counter ids and their places in the ledger are not looked at: both are made by the import. An
/// error undoes the import; it is a sentence for the operator.
pub type ImportedEntries<'a> = dyn Iterator<Item = Result<Vec<Entry>, String>> + Send + 'a;

/// What an import has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Counters made.
    pub counters: u64,
    /// Counters in use that were lifted.
    pub lifted: u64,
    /// Numbers journaled.
    pub numbers: u64,
}
