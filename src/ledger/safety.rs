//! What a ledger says of its own safety: which commits it may lose, and, where it has lost some,
//! what is known of them.

use async_trait::async_trait;

use super::{At, LedgerError};

/// Answers about commits that are gone, or may go.
#[async_trait]
pub trait SafetyLedger: Send + Sync + 'static {
    /// Notes the epochs of Redis after which none followed, by the word of a node that took part
    /// in them; only while the partitions are held, and until they are held anew or released. Safe
    /// to repeat.
    async fn vouch(&self, epochs: &[At]) -> Result<(), LedgerError>;

    /// When the newest number that was journaled by `upto_us` was issued; `None`: there is none.
    async fn last_issued_us(&self, upto_us: i64) -> Result<Option<i64>, LedgerError>;
}
