//! How many connections to a ledger are open, how many are in use, and of which share.

/// The share of connections that a call uses, where an engine has more than one that writes (F31):
/// a heartbeat, without which the process would count as dead, and issued numbers never wait for
/// connections behind calls that wait for something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    /// Those of all other calls: `database.connections_max`.
    Common,
    /// The one of the heartbeat: it goes on regardless of other locks (F47).
    Heartbeat,
    /// The one of the reads next to it: the other nodes, the partitions; and of holding these.
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
    /// Open, and idle.
    pub idle: u32,
    /// How many may be open at the same time.
    pub max: u32,
}

impl Connections {
    /// Those of a pool with this many, of which this many are idle.
    pub(super) fn of_pool(open: u32, idle: usize, max: u32) -> Self {
        let idle = u32::try_from(idle).unwrap_or(u32::MAX).min(open);
        Connections { used: open - idle, idle, max }
    }
}
