//! How many connections to a ledger are open, and how many of them work.

/// Connections to a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// In use.
    pub used: u32,
    /// Open, and used by nobody.
    pub idle: u32,
    /// How many may be open at once.
    pub max: u32,
}

impl Connections {
    /// Those of a pool that has so many, so many of them idle.
    pub(super) fn of_pool(open: u32, idle: usize, max: u32) -> Self {
        let idle = u32::try_from(idle).unwrap_or(u32::MAX).min(open);
        Connections { used: open - idle, idle, max }
    }
}
