//! Series whose rows stay in the journal. Owns no statement.

/// Series whose rows stay in the journal, as of a version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptSeries {
    /// No version was saved later.
    pub(crate) stamp: i64,
    /// Their ids.
    pub(crate) ids: Vec<i64>,
}
