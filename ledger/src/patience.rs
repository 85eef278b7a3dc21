//! How long a call to the ledger may take before its connection counts as lost.

use std::time::Duration;

/// How long a search may take beyond an ordinary call: longer than its statements may.
pub(super) const SEARCH_TIME: Duration = Duration::from_secs(660);

/// Kinds of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// A few statements.
    Call,
    /// Statements that may search through all values of a counter, and a change of series, which is
    /// proved between its statements.
    Search,
}
