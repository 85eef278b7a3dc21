//! Documents: the place of a number among those of its document, and its revisions.

use serde::Serialize;
use sqlx_macros::FromRow;
use uuid::Uuid;

use crate::{Gap, JournalRow, LifeRow};

/// Most revisions of one number.
pub const REVISIONS_MAX: u32 = 100;

/// The counter of the journal rows that keep the texts of revisions. No counter has this id.
pub(crate) const REVISION_TEXTS: i64 = 0;

/// The place of a number among those of its document, in the order in which they were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// When the request was accepted.
    pub issued_at_us: i64,
    /// What was taken first.
    pub of: ValueOf,
}

impl Position {
    /// The place of a journal row; `None` for one that took nothing, which no journal holds.
    #[must_use]
    pub fn of(row: &JournalRow) -> Option<Self> {
        let issued_at_us = row.entry.record.issued_at_us;
        Some(Position { issued_at_us, of: ValueOf::number(row)? })
    }
}

/// What names a number in the journal: the first value that its first serial took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, FromRow)]
pub struct ValueOf {
    /// The counter.
    pub counter_id: i64,
    /// The value.
    pub value: i64,
}

impl ValueOf {
    /// The name of a journal row; `None` for one that took nothing, which no journal holds.
    #[must_use]
    pub fn number(row: &JournalRow) -> Option<Self> {
        let first = row.entry.taken.first()?;
        let value = i64::try_from(first.range.first).ok()?;
        Some(ValueOf { counter_id: first.counter_id, value })
    }
}

/// A revision as a row of a list, with the number that it is one of.
#[derive(Clone, Debug, PartialEq)]
pub struct RevisedRow {
    /// Its id.
    pub revision_id: i64,
    /// The label, and the text with it.
    pub revision: Revision,
    /// Where that text is unique.
    pub scope: String,
    /// The number as it was issued.
    pub row: JournalRow,
}

impl RevisedRow {
    /// The place of the revision in a list: that of the journal row which keeps its text.
    #[must_use]
    pub fn position(&self) -> Position {
        let of = ValueOf { counter_id: REVISION_TEXTS, value: self.revision_id };
        Position { issued_at_us: self.revision.revised_at_us, of }
    }
}

/// Gaps next to numbers of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GapsBeside {
    /// Each with the number that it is next to.
    pub gaps: Vec<(ValueOf, Gap)>,
    /// Of how many of the numbers, in their order.
    pub numbers: usize,
}

/// A revision to write.
#[derive(Clone, Debug)]
pub struct NewRevision {
    /// The number in the journal.
    pub of: ValueOf,
    /// Its allocation.
    pub allocation_id: Uuid,
    /// The label, in normal form.
    pub rev: String,
    /// The number with that label.
    pub number: String,
    /// Who asks.
    pub user_id: String,
    /// From where.
    pub ip_address: Option<String>,
    /// Why, where the caller says so.
    pub reason: Option<String>,
    /// When.
    pub revised_at_us: i64,
}

/// A revision in the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Revision {
    /// The number in the journal.
    #[serde(flatten)]
    pub of: ValueOf,
    /// Its allocation.
    pub allocation_id: Uuid,
    /// The label.
    pub rev: String,
    /// The number with that label.
    pub number: String,
    /// The document.
    pub document_id: String,
    /// Who asked.
    pub user_id: String,
    /// From where.
    pub ip_address: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// When.
    pub revised_at_us: i64,
}

/// What became of a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revised {
    /// Written now.
    Written(Revision),
    /// The number has this label already.
    Known(Revision),
    /// Another number or revision of the scope has this text.
    Collided,
    /// The number has [`REVISIONS_MAX`] revisions.
    TooMany,
    /// The number is void, and its revisions with it: this row says since when.
    Voided(LifeRow),
}
