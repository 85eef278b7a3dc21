//! What a deployment decides of its ledger: connections and waits. The URL is not among it.

use std::time::Duration;

/// Bounds of a ledger's connections and waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerSettings {
    /// `database.connections_max`: connections held at once.
    pub connections_max: u32,
    /// `database.lock_timeout`: longest wait for one lock (R6.2).
    pub lock_timeout: Duration,
    /// `database.call_limit`: a call without an answer for so long is given up, and with it the
    /// connections of its time. PostgreSQL only: there is no network before a file.
    pub call_limit: Duration,
}

impl Default for LedgerSettings {
    fn default() -> Self {
        LedgerSettings {
            connections_max: 8,
            lock_timeout: Duration::from_secs(10),
            call_limit: Duration::from_secs(15),
        }
    }
}
