//! What the ledger remembers of exchange serials beside their numbers (R8.2 to R8.4).

use async_trait::async_trait;

use super::{
    BeginStep, Begun, ChainQuery, Checked, EndStep, Ended, InterfaceCheck, LedgerError, Link,
};

/// Checks and steps of exchange serials. Each method is one transaction; the serial's own row is
/// the fence, so that of many callers, in many processes, one goes on.
#[async_trait]
pub trait ExchangeSerialLedger: Send + Sync + 'static {
    /// Notes the sight of an interface serial, unless it was seen within the window: then the
    /// repetition is counted. Safe to repeat under a key.
    async fn check_interface(&self, check: &InterfaceCheck) -> Result<Checked, LedgerError>;

    /// Begins a step that is unknown or has failed. Time alone never ends an attempt. Safe to
    /// repeat under a key.
    async fn begin_step(&self, begin: &BeginStep) -> Result<Begun, LedgerError>;

    /// Ends an attempt: compare-and-set on the attempt while it is in progress. Safe to repeat.
    async fn end_step(&self, end: &EndStep) -> Result<Ended, LedgerError>;

    /// The links of a unified serial's chain, oldest first. Sorts the whole chain for each page.
    async fn chain(&self, query: &ChainQuery) -> Result<Vec<Link>, LedgerError>;
}
