//! The numbers that another system, or a person, has issued, on their way into the ledger.

use numbering::SeriesDefinition;

use crate::{DocumentHas, Entry, LifeRow, Reservation, TakeRequest};

/// Most values that a number by hand passes over. What lies further up is more often a typing error
/// than a number, and two people answer for it.
pub const PASSED_OVER_MAX: u64 = 10_000;

/// Most numbers that a ledger keeps as written: each save of a series is compared with all of them.
pub const AS_WRITTEN_MAX: u32 = 1_000;

/// Most numbers that one registrar keeps as written who is narrowed to series or projects: the
/// others are for all.
pub const NARROWED_AS_WRITTEN_MAX: u32 = 100;

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

/// A number that was given by hand, to be registered.
#[derive(Clone, Debug)]
pub struct NumberByHand {
    /// The request that would take the number: one number of one serial.
    pub order: TakeRequest,
    /// The number.
    pub number: String,
    /// The value of its serial. Not used of one that is kept as written: that takes the next place
    /// of its counter.
    pub value: u64,
    /// Whether no series could render it and it is kept as written: then its counter has the serial
    /// [`crate::AS_WRITTEN_SERIAL`], and its record a mask that shows no value.
    pub is_as_written: bool,
    /// Whether its registrar is narrowed to series or projects: see [`NARROWED_AS_WRITTEN_MAX`].
    pub is_narrowed: bool,
    /// Whether the values that it passes over are still to come, where requests take them.
    pub returns: bool,
    /// Why it was given by hand.
    pub reason: String,
}

/// A number that is registered.
#[derive(Clone, Debug, PartialEq)]
pub struct RegisteredNumber {
    /// The journal's entry.
    pub entry: Entry,
    /// Who registered it, when, why, and what it passed over.
    pub row: LifeRow,
}

/// What became of a number that was given by hand. Nothing is written but by the first of these.
#[derive(Clone, Debug, PartialEq)]
pub enum Registering {
    /// Registered now.
    Written(Box<RegisteredNumber>),
    /// Registered before, by the same principal for the same.
    Known(Box<RegisteredNumber>),
    /// The number, or its value, has a record.
    Taken,
    /// A document holds it: this reservation.
    Reserved(Box<Reservation>),
    /// Its value was spent, because another document has the text.
    Collided,
    /// Its value lies in what an ended epoch may have lost, and was not looked at yet: worth a
    /// retry.
    Unsettled,
    /// The document has another number.
    DocumentHas(DocumentHas),
    /// Where dates are kept in order: a number has this later date.
    BeforeLast(String),
    /// It lies below the first value of its counter.
    BelowFirst {
        /// That value.
        first: i64,
    },
    /// The counter has not come to the first value of the series' present version: what lies
    /// between is passed over by two people, and by no number.
    BelowStart {
        /// The counter.
        counter_id: i64,
        /// Its next value.
        next: i64,
        /// The first value of the version.
        start: i64,
        /// Distance between two values.
        step: i64,
    },
    /// It is to be kept as written, and a version of a series could render it.
    Readable {
        /// Code of the series.
        code: String,
        /// The version.
        version: u32,
    },
    /// The ledger has as many numbers as written as it may have.
    TooManyAsWritten {
        /// Whether only the share of its registrar is used up.
        is_share: bool,
    },
    /// The counter never comes to its value.
    Beside {
        /// The next value.
        next: i64,
        /// Distance between two values.
        step: i64,
    },
    /// It would pass over more than [`PASSED_OVER_MAX`] values.
    TooFar {
        /// The counter.
        counter_id: i64,
        /// Its next value.
        next: i64,
    },
    /// Redis counts the counter, or the numbers of its documents: the database has to take this
    /// partition over first.
    InRedis(u32),
    /// The ledger went back, and this partition is not released yet.
    Held(u32),
    /// A process of an earlier version lives, which cannot read such a record.
    BesideOlder,
}
