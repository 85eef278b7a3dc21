//! Looks for what others changed: series, reference data, tokens.

use std::sync::Arc;
use std::time::Duration;

use super::Tokens;
use super::untold::UntoldTokens;
use crate::allocator::Allocator;
use crate::ledger::{LedgerError, Stamps};
use crate::node::NodeId;
use crate::process::Context;
use crate::task::{Stop, Task, Ticks};

/// Longest time between two looks: a change is seen everywhere within a second.
const PERIOD_MAX: Duration = Duration::from_millis(500);

/// What is kept in memory of a ledger that others change too.
struct Kept {
    context: Arc<Context>,
    allocator: Allocator,
    tokens: Option<Arc<Tokens>>,
    /// What the ledger was told that this process knows, and under which identity.
    told: Option<(NodeId, Stamps)>,
    untold: UntoldTokens,
}

/// Sees changes of series, reference data and tokens, within a second: one question each time.
pub(super) fn watch_changes(
    context: &Arc<Context>,
    allocator: &Allocator,
    tokens: Option<&Arc<Tokens>>,
) -> Task {
    let period = context.settings.node_heartbeat.min(PERIOD_MAX);
    let (context, allocator, tokens) = (Arc::clone(context), allocator.clone(), tokens.cloned());
    context.metrics.tokens_untold.set(f64::NAN);
    let untold = UntoldTokens::default();
    let mut kept = Kept { context, allocator, tokens, told: None, untold };
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
    async fn look(&mut self) -> Result<(), LedgerError> {
        let ledger = &self.context.ledger;
        let stamps = ledger.stamps().await?;
        // Tokens first: a revocation waits for no series that is compiled.
        let tokens = match &self.tokens {
            Some(tokens) => tokens.refresh(Some(stamps.tokens)).await,
            None => Ok(()),
        };
        self.allocator.refresh_catalog_to(stamps).await?;
        tokens?;
        self.untold.look(&self.context, stamps.tokens).await?;
        let known = (self.context.membership.node(), stamps);
        if self.told != Some(known) {
            ledger.note_known(known.0, &known.1).await?;
            self.told = Some(known);
        }
        Ok(())
    }
}
