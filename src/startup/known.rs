//! Waits until the processes that serve know what was just saved, so that the next call may go to
//! any of them.

use std::time::Duration;

use tokio::time::Instant;

use crate::ledger::{LedgerError, SharedLedger};
use crate::node::NodeId;

/// Longest wait: a process reads the stamps twice a second, and one that reports nothing for longer
/// does not reach the ledger, or died a moment ago.
const KNOWN_WAIT_MAX: Duration = Duration::from_secs(3);

/// How often it is read.
const POLL_PERIOD: Duration = Duration::from_millis(25);

/// Waits, for 3 s at most, until every process but one knows of all series, tables and tokens that
/// the ledger has now; how many do not. What is saved is saved, whatever comes of it.
pub async fn until_known(ledger: &SharedLedger, but_for: Option<NodeId>) -> u64 {
    match wait(ledger, but_for).await {
        Ok(unaware) => unaware,
        Err(error) => {
            tracing::debug!(%error, "whether every process knows of a change is not known");
            0
        }
    }
}

async fn wait(ledger: &SharedLedger, but_for: Option<NodeId>) -> Result<u64, LedgerError> {
    let deadline = Instant::now() + KNOWN_WAIT_MAX;
    let saved = ledger.stamps().await?;
    loop {
        let unaware = ledger.unaware(&saved, but_for).await?;
        if unaware == 0 || Instant::now() >= deadline {
            return Ok(unaware);
        }
        tokio::time::sleep(POLL_PERIOD).await;
    }
}
