//! What can go wrong in the ledger, and what it means for a number.

use thiserror::Error;

/// Why a ledger call failed.
#[derive(Debug, Error)]
pub enum LedgerError {
    /// The connection, the pool or a time-out: nothing is known to have been written unless
    /// `maybe_written`. Worth a retry.
    #[error("ledger unreachable: {cause}")]
    Unreachable {
        /// What the driver said.
        cause: String,
        /// Whether the transaction may have committed all the same.
        maybe_written: bool,
    },
    /// A lock wait ended, a deadlock or a serialisation failure: rolled back. Worth a retry.
    #[error("ledger busy: {0}")]
    Busy(String),
    /// The ledger refuses a value for good. Not worth a retry.
    #[error("ledger refused: {0}")]
    Refused(String),
    /// The epoch of the call is no longer the partition's. Nothing written.
    #[error("partition {partition} has left epoch {epoch}")]
    Fenced {
        /// The partition.
        partition: u32,
        /// The caller's epoch.
        epoch: u64,
    },
    /// The node's row is missing or has left.
    #[error("node {0} is not registered (any more)")]
    NodeGone(crate::node::NodeId),
    /// The ledger was set up with other settings.
    #[error("{setting} is {here} here but {there} in the ledger; use the ledger's value")]
    SettingsDiffer {
        /// Name of the setting.
        setting: &'static str,
        /// The value in the settings.
        here: String,
        /// The value in the ledger.
        there: String,
    },
    /// The schema is newer than this binary, or a migration failed.
    #[error("migration: {0}")]
    Migration(String),
}

impl LedgerError {
    /// Whether the same call may succeed later.
    #[must_use]
    pub fn retry_useful(&self) -> bool {
        matches!(self, LedgerError::Unreachable { .. } | LedgerError::Busy(_))
    }
}
