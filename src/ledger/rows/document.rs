//! Documents: where a number stands among those of its document.

use super::JournalRow;

/// The place of a number among those of its document, in the order in which they were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// When the request was accepted.
    pub issued_at_us: i64,
    /// The counter of its first serial.
    pub counter_id: i64,
    /// The first value taken from it.
    pub value: i64,
}

impl Position {
    /// The place of a journal row; `None` for one that took nothing, which no journal holds.
    #[must_use]
    pub fn of(row: &JournalRow) -> Option<Self> {
        let first = row.entry.taken.first()?;
        Some(Position {
            issued_at_us: row.entry.record.issued_at_us,
            counter_id: first.counter_id,
            value: i64::try_from(first.range.first).ok()?,
        })
    }
}
