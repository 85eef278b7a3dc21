//! The journal's seals, and the checkpoints that bind them.

use std::collections::HashMap;
use std::sync::Arc;

use sqlx_macros::FromRow;

use crate::{LedgerError, RawRows};

/// A statement of what the ledger held, signed. Never changed nor removed.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct SignedCheckpoint {
    /// 1 for the first, then rising by one.
    #[sqlx(rename = "checkpoint_no")]
    pub number: i64,
    /// What is signed: JSON, byte for byte.
    pub body: String,
    /// The Ed25519 public key (RFC 8032) that it names.
    pub public_key: Vec<u8>,
    /// The signature over the body.
    pub signature: Vec<u8>,
}

/// A table whose rows checkpoints bind. Each has ids that rise, and rows that never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bindable {
    /// Journal batches, by their seals.
    Batches,
    /// The ledger's notes in addition to the numbers, including administrative acts.
    Events,
    /// Versions of series.
    Versions,
    /// Counters: what each counts for, not its value.
    Counters,
    /// Series: their codes.
    Series,
    /// What became of numbers.
    Life,
}

/// The standing of a row that a checkpoint binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MacCheck {
    /// A batch whose writer had the key.
    Proven,
    /// A batch whose writer did not claim the key.
    Unproven,
    /// A batch with a proof; the key is not available here.
    Unknown,
    /// A batch with a proof that was not made with the key.
    Forged,
    /// A row of another table.
    Plain,
}

/// A row as a checkpoint binds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Its id.
    pub id: i64,
    /// Its standing.
    pub standing: MacCheck,
    /// SHA-256 of its content.
    pub digest: [u8; 32],
}

/// A journal batch, as far as its rows are compared with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedBatch {
    /// Its id.
    pub batch_id: i64,
    /// How many rows it was written with.
    pub line_count: i32,
    /// Its seal; empty where the database was changed to hold none.
    pub seal: Vec<u8>,
    pub(crate) node: Vec<u8>,
    pub(crate) partition_id: i32,
    pub(crate) epoch: i64,
    pub(crate) journaled_at_us: i64,
}

/// A row of the journal on its way to the seal of its batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedRow {
    /// Its batch; 0, which no batch has, where it names none.
    pub batch_id: i64,
    /// Its counter.
    pub counter_id: i64,
    /// Its first value.
    pub first: i64,
    /// Its content, in the form of seals; `None` where a row that it points to is missing.
    pub bytes: Option<Vec<u8>>,
    /// Of a segment: the rows that it represents.
    pub stands_for: Option<StandsFor>,
    /// Whether it has content that seals do not cover: it is a segment, and has the path of a
    /// number.
    pub says_more: bool,
}

/// The rows that a segment represents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandsFor {
    /// The last value of its rows.
    pub last: i64,
    /// Its note about the file that has them; `None` where that cannot be read.
    pub note: Option<crate::SegmentNote>,
}

impl StandsFor {
    /// Of a row with these columns, if it is a segment.
    pub(crate) fn of(number: Option<&str>, context: Option<&str>, last: i64) -> Option<StandsFor> {
        let note = context.filter(|_| number.is_none())?;
        Some(StandsFor { last, note: serde_json::from_str(note).ok() })
    }
}

/// Rows of the journal in storage order, with what they point to.
#[derive(Debug)]
pub struct JournalSlice {
    /// How far it is on its way.
    pub done: i64,
    /// Out of how much.
    pub of: i64,
    pub(crate) rows: RawRows,
    pub(crate) texts: Arc<JournalTexts>,
}

impl JournalSlice {
    /// Its rows, in no order.
    ///
    /// # Errors
    /// What no version wrote.
    pub fn rows(&self) -> Result<Vec<SealedRow>, LedgerError> {
        self.rows.read(&self.texts)
    }
}

/// What rows of the journal point to.
#[derive(Clone, Debug, Default)]
pub struct JournalTexts {
    pub(crate) names: HashMap<i32, String>,
    pub(crate) kinds: HashMap<i32, KindText>,
}

/// What rows of one type and project have in common.
#[derive(Clone, Debug, FromRow)]
pub(crate) struct KindText {
    pub(crate) series_id: i64,
    pub(crate) version: i32,
    pub(crate) type_code: String,
    pub(crate) project: Option<String>,
}
