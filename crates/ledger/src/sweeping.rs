//! The input of a sweep of the ledger, and its result.

/// How old rows must be that go, by the ledger's word of the time (F37). In microseconds of UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// Epochs that were closed, and nodes that ended, before this go.
    pub ended_before_us: i64,
    /// Rows of each table at most.
    pub rows_max: u32,
}

/// Rows that were removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Participations in closed epochs.
    pub participants: u64,
    /// Nodes.
    pub nodes: u64,
}
