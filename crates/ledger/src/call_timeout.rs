//! How long a call to the ledger may take before its connection counts as lost.

use std::time::Duration;

/// How long a search may take beyond an ordinary call: longer than its statements may.
pub(super) const SEARCH_TIME: Duration = Duration::from_secs(660);

/// How long the whole journal may take beyond an ordinary call: some hundred thousand rows a second
/// and more.
pub(super) const WALK_TIME: Duration = Duration::from_hours(24);

/// Kinds of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallTimeout {
    /// A few statements.
    Call,
    /// Statements that may search through all values of a counter, and a change of series, which is
    /// proved between its statements.
    Search,
    /// All rows of the journal, at the pace of their reader.
    Walk,
}

impl CallTimeout {
    /// How much longer than an ordinary call it may take.
    pub(super) fn beyond(self) -> Option<Duration> {
        match self {
            CallTimeout::Call => None,
            CallTimeout::Search => Some(SEARCH_TIME),
            CallTimeout::Walk => Some(WALK_TIME),
        }
    }
}
