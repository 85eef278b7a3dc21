//! What a sweep of the ledger goes by, and what it came to.

/// How old rows must be that go. In microseconds of UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// Epochs that were closed, and nodes that ended, before this go.
    pub ended_before_us: i64,
    /// What was confirmed to a node after this is never taken for that of one that was swept: as
    /// much later than its end as clocks may differ.
    pub confirmed_before_us: i64,
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
