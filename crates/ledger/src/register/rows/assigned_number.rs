//! A number of a range that is a document's, as look-ups by the document find it. Plain data.

/// A number of a range that is a document's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignedNumber {
    /// Its counter: that of the first serial.
    pub counter_id: i64,
    /// Its value there.
    pub value: i64,
    /// The first value of the range's row of the journal.
    pub row_first: i64,
    /// Series of the range.
    pub series_id: i64,
    /// Project of the range.
    pub project: Option<String>,
    /// Who took the range: the number is visible to whom the range is.
    pub taken_by: String,
    /// The number.
    pub number: String,
    /// The document.
    pub document_id: String,
}
