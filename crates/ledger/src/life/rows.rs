//! What became of numbers, as callers give and read it. Plain data, no SQL. Times are microseconds
//! of UTC.

use std::collections::BTreeMap;

use numbering::DocumentsOf;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{DocumentHas, ValueOf};

/// Most corrections of one number.
pub const CORRECTIONS_MAX: u32 = 100;

/// Most acts of one kind upon the numbers of a journal row that are read with it: as many as one
/// number may have.
pub const ACTS_PER_ROW_MAX: u32 = CORRECTIONS_MAX;

/// Most numbers of a range that one call voids because nothing uses them.
pub const UNUSED_VOIDED_MAX: u32 = 10_000;

/// Most links that a chain of replacements is followed in each direction.
pub const CHAIN_MAX: usize = 32;

/// An act upon a value, beside its journal row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LifeAct {
    /// A reservation was cancelled.
    Cancelled,
    /// A reservation's time passed.
    Expired,
    /// A reservation was spent with a ledger that went back.
    Lost,
    /// A block was handed back.
    HandedBack,
    /// The number is void.
    Voided,
    /// Another number stands in place of a void one.
    Replaced,
    /// Variables that the number does not show were corrected.
    Corrected,
    /// The number was given by hand and registered.
    Registered,
    /// The number, of a range, is a document's.
    Assigned,
}

/// A row of `life`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LifeRow {
    /// Its id, which rises.
    pub life_id: i64,
    /// The act.
    pub act: LifeAct,
    /// When.
    pub at_us: i64,
    /// The counter, and the first value.
    pub of: ValueOf,
    /// The last value.
    pub last: i64,
    /// The allocation, or the reservation.
    pub subject: Uuid,
    /// The allocation of the replacement.
    pub other: Option<Uuid>,
    /// The number.
    pub number: Option<String>,
    /// Its document.
    pub document_id: Option<String>,
    /// Who did it.
    pub user_id: String,
    /// From where.
    pub ip_address: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// The variables that were corrected, by name.
    pub changes: BTreeMap<String, VariableChange>,
    /// The number that stands in place of this one.
    pub replacement: Option<String>,
    /// The values that a number by hand has passed over.
    pub passed_over: Option<PassedOver>,
}

/// Values between a counter's and that of a number by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedOver {
    /// The first.
    pub first: i64,
    /// The last.
    pub last: i64,
    /// How many they are.
    pub count: u64,
    /// Whether they are still to come (`returned`), or never come (`skipped`).
    pub is_returned: bool,
}

impl LifeRow {
    /// Whether the same principal has done it for the same reason: a repeated request, whose first
    /// answer may have been lost.
    #[must_use]
    pub fn is_of(&self, user_id: &str, reason: &str) -> bool {
        self.user_id == user_id && self.reason.as_deref() == Some(reason)
    }
}

/// A variable that was corrected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariableChange {
    /// The value before; `None`: it had none.
    pub old: Option<String>,
    /// The value that it should have had.
    pub new: String,
}

/// The number that an act is about, by whom and why.
#[derive(Clone, Debug)]
pub struct NewAct {
    /// The value.
    pub of: ValueOf,
    /// The first value of its journal row: another one where the number is within a range.
    pub row_first: i64,
    /// The allocation of its journal row.
    pub allocation_id: Uuid,
    /// The number.
    pub number: String,
    /// Who does it.
    pub user_id: String,
    /// From where.
    pub ip_address: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

/// The number that stands in place of a void one.
#[derive(Clone, Debug)]
pub struct Replacement {
    /// Its allocation.
    pub allocation_id: Uuid,
    /// Its text.
    pub number: String,
}

/// What became of a void.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Voided {
    /// Written now.
    Written(LifeRow),
    /// The number was void before: this row says since when.
    Known(LifeRow),
    /// The journal does not have the row any more: it moved to the archive.
    Gone,
}

/// What became of a link to a replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Linked {
    /// Written now, or before for the same replacement.
    Written(LifeRow),
    /// The number has another replacement.
    Other(LifeRow),
    /// The number is not void.
    NotVoided,
}

/// What became of a correction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Corrected {
    /// Written now.
    Written(LifeRow),
    /// The variables have these values already; the newest correction, if there is one.
    Same(Option<LifeRow>),
    /// The number is void.
    Voided(LifeRow),
    /// The number has [`CORRECTIONS_MAX`] corrections.
    TooMany,
    /// The journal does not have the row any more: it moved to the archive.
    Gone,
}

/// A number of a range that a document is to have.
#[derive(Clone, Debug)]
pub struct NewAssignment {
    /// The number, by whom and why.
    pub act: NewAct,
    /// Series of the range.
    pub series_id: i64,
    /// Project of the range, as its row of the journal has it.
    pub project: Option<String>,
    /// Who took the range: the number is visible to whom the range is.
    pub taken_by: String,
    /// The document.
    pub document_id: String,
    /// Whose document it is.
    pub documents: DocumentsOf,
}

/// A number of a range that is a document's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assigned {
    /// The act.
    pub row: LifeRow,
    /// Whether the version of its series that is in force numbers a document once.
    pub is_once: bool,
}

/// What became of an assignment. Only `Written` and `Known` say that the document has the number.
#[derive(Clone, Debug, PartialEq)]
pub enum Assigning {
    /// Assigned now.
    Written(Assigned),
    /// Assigned to this document before.
    Known(Assigned),
    /// Assigned to another document.
    Other(LifeRow),
    /// The number is void.
    Voided(LifeRow),
    /// The number is no number of a range, or its range was taken for a document.
    NotOfARange,
    /// The journal does not have the row any more: it moved to the archive.
    Gone,
    /// The document has another number of the series.
    DocumentHas(DocumentHas),
    /// The series numbers a document once, and Redis owns this partition: the database has to take
    /// it over first.
    InRedis(u32),
    /// The ledger went back, and this partition is not released yet.
    Held(u32),
    /// A process of an earlier version lives, which would give the document a second number.
    BesideOlder,
}

/// The numbers of a range that became void because nothing uses them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusedVoided {
    /// How many became void now.
    pub written: u64,
    /// How many of the range are void by this principal for this reason, whenever that was.
    pub count: u64,
    /// The first [`ACTS_PER_ROW_MAX`] of these, by their values.
    pub rows: Vec<LifeRow>,
    /// How many have neither a document nor a void yet: the same call again goes on with them.
    pub left: u64,
}

/// What became of a call that voids what a range did not use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VoidingUnused {
    /// Done.
    Done(UnusedVoided),
    /// The range was taken for this document: its numbers are used.
    OfDocument(String),
    /// The number is no number of a range.
    NotOfARange,
    /// The journal does not have the row any more: it moved to the archive.
    Gone,
}

/// A row of `life` whose number has neither a row of the journal nor a segment; or an assignment
/// that stands in one of `life` and `assignment` alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StrayAct {
    /// Its id; 0 of a row of `assignment` that has no act.
    pub life_id: i64,
    /// The act.
    pub act: LifeAct,
    /// The counter, and the value.
    #[serde(flatten)]
    pub of: ValueOf,
    /// The number.
    pub number: Option<String>,
}
