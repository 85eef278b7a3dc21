//! What a sweep of the ledger goes by, and what it came to.

/// How old rows must be that go, by the ledger's word of the time (F37). In microseconds of UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// Epochs that were closed, and nodes that ended, before this go.
    pub ended_before_us: i64,
    /// Rows of each table at most.
    pub rows_max: u32,
}

/// Rows that went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Participations in closed epochs.
    pub participants: u64,
    /// Nodes.
    pub nodes: u64,
}
