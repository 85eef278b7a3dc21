//! What the ledger does for reference data (R4.6): tables of ids and codes, and memberships.

use async_trait::async_trait;
use numbering::ReferenceData;

use super::{LedgerError, ReferenceChange, ReferencePlan};

/// Reference data. Nothing of it is ever erased, and a code belongs to its row for ever.
#[async_trait]
pub trait ReferenceLedger: Send + Sync + 'static {
    /// Saves rows and memberships of reference data, all or none; what each of them changed. One
    /// that changes nothing is not an error.
    ///
    /// # Errors
    /// `Refused` with the mistakes that [`super::plan_reference`] finds.
    async fn apply_reference(&self, change: &ReferenceChange)
    -> Result<ReferencePlan, LedgerError>;

    /// All reference data.
    async fn reference_data(&self) -> Result<ReferenceData, LedgerError>;

    /// Rises whenever any reference data change.
    async fn reference_stamp(&self) -> Result<i64, LedgerError>;
}
