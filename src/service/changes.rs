//! Looks for what others changed: series, reference data, tokens.

use std::sync::Arc;
use std::time::Duration;

use super::Tokens;
use crate::allocator::Allocator;
use crate::ledger::{LedgerError, SharedLedger};
use crate::process::ProcessSettings;
use crate::task::{Stop, Task, Ticks};

/// Longest time between two looks: a change is seen everywhere within a second.
const PERIOD_MAX: Duration = Duration::from_millis(500);

/// What is kept in memory of a ledger that others change too.
struct Kept {
    ledger: SharedLedger,
    allocator: Allocator,
    tokens: Option<Arc<Tokens>>,
}

/// Sees changes of series, reference data and tokens, within a second: one question each time.
pub(super) fn watch_changes(
    ledger: &SharedLedger,
    allocator: &Allocator,
    tokens: Option<&Arc<Tokens>>,
    bounds: &ProcessSettings,
) -> Task {
    let period = bounds.node_heartbeat.min(PERIOD_MAX);
    let (ledger, allocator, tokens) = (Arc::clone(ledger), allocator.clone(), tokens.cloned());
    let kept = Kept { ledger, allocator, tokens };
    Task::start("changes", async move |stop: Stop| {
        let mut ticks = Ticks::every(period, stop);
        while ticks.next().await {
            if let Err(error) = kept.look().await {
                tracing::debug!(%error, "cannot look for changed series, tables or tokens");
            }
        }
    })
}

impl Kept {
    async fn look(&self) -> Result<(), LedgerError> {
        let stamps = self.ledger.stamps().await?;
        // Tokens first: a revocation waits for no series that is compiled.
        let tokens = match &self.tokens {
            Some(tokens) => tokens.refresh(Some(stamps.tokens)).await,
            None => Ok(()),
        };
        self.allocator.refresh_catalog_to(stamps).await?;
        tokens
    }
}
