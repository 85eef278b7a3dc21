//! What the statements over many rows take and give, the same for every engine.

/// A table of runs, indexed by counter and first value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Table {
    Journal,
    Gap,
}

/// A run that stands in a table already.
#[derive(Clone, Debug)]
pub(super) struct Neighbour {
    pub(super) first: i64,
    pub(super) last: i64,
    /// Whose it is; `None` in the gap register.
    pub(super) allocation_id: Option<Vec<u8>>,
}

/// New values of a counter's row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Advance {
    pub(super) counter_id: i64,
    pub(super) taken: i64,
    pub(super) ceiling: i64,
    pub(super) journaled: i64,
}
