//! How many connections to a ledger are open, how many of them work, and whose they are.

/// Whose connections a call uses, where an engine has more than one that writes (F31): what others
/// would take for a dead process, and what was handed out, never waits for connections behind calls
/// that wait for something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    /// Those of all other calls: `database.connections_max`.
    Common,
    /// The one of the heartbeat: whatever else is locked, it goes on (F47).
    Heartbeat,
    /// The one of what is learnt beside it: the other nodes, the partitions; and of holding these.
    Watch,
    /// The one of the journal.
    Journal,
}

/// Connections to a ledger that calls share: those of heartbeat, watch and journal are not among
/// them.
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
