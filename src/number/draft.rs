//! What a caller asks for, and what the series makes of it before a value is taken.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{CounterKey, Mask};

/// The part of a request that the numbering language reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inputs {
    /// Document type.
    pub type_code: String,
    /// Project, where the caller names one.
    pub project: Option<String>,
    /// Document date as the caller wrote it: `2025-12-02` or a date-time with offset; now without one.
    pub date: Option<String>,
    /// Values of declared variables.
    pub context: BTreeMap<String, String>,
}

/// A checked request: which counters to take from, and the number but for its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// One counter key per serial, in the order of `Series::serials`.
    pub keys: Vec<CounterKey>,
    /// The number without its values.
    pub mask: Mask,
    /// The uniqueness scope as text: empty for the whole ledger, else like a counter key.
    pub scope: String,
    /// The document's civil date in the series' time zone, `yyyy-mm-dd`.
    pub document_date: String,
}
