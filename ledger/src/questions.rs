//! What the ledger answers a request that may have its number already.
//!
//! Part of the ledger's interface, apart from the journal's because nothing here writes: but who
//! asks for a request that may get a number next never overtakes one who is giving it its own.

use async_trait::async_trait;

use super::{Found, LedgerError, Question};

/// What every engine can answer.
#[async_trait]
pub trait Questions: Send + Sync + 'static {
    /// What the journal knows under these keys since `since_us`; per question what was found (F1).
    /// A transaction that is about to take under them may commit the moment after.
    async fn replays(&self, questions: &[Question]) -> Result<Vec<Found>, LedgerError>;

    /// The same for requests of a partition that get a number where nothing is found: waits for
    /// every transaction that takes under their keys, and one that comes later finds its epoch over
    /// where this one is asked in a later one (F27). Waits briefly.
    ///
    /// # Errors
    /// `LockTimeout` where somebody takes under one of the keys for longer: worth a retry.
    async fn ask(&self, partition: u32, questions: &[Question]) -> Result<Vec<Found>, LedgerError>;
}
