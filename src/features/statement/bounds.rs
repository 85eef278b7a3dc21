//! How much a paper may be, and why there is none.

use thiserror::Error;

use crate::ledger::LedgerError;

/// How much a paper may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Counters.
    pub(crate) counters_max: u32,
    /// Rows of the ledger that are read for it.
    pub(crate) rows_max: u64,
    /// Runs of values that are listed in addition to issued numbers.
    pub(crate) entries_max: usize,
}

/// Why there is no paper.
#[derive(Debug, Error)]
pub(crate) enum Undrawn {
    /// Counters.
    #[error("has more than {0} counters: ask for a part of the period, or for one project")]
    TooManyCounters(u32),
    /// Rows.
    #[error(
        "has more than {0} records: ask for a part of the period, or for one project (a run of \
         numbers that goes on beyond the period is read whole); the command `numerator statement` \
         takes more than a request"
    )]
    TooManyRows(u64),
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}
