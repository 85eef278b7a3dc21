//! Reads what others changed: series, reference data, tokens.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::auth::tokens::Tokens;
use crate::engine::allocator::Allocator;
use crate::engine::node::Context;
use crate::ledger::{LedgerError, Stamps};
use crate::node::NodeId;
use crate::startup::unrecorded::watch_unrecorded;
use crate::task::{Stop, Task, Ticks};

/// Longest time between two polls: a change is seen everywhere within a second.
const PERIOD_MAX: Duration = Duration::from_millis(500);

/// What is kept in memory of a ledger that others change too.
struct Kept {
    context: Arc<Context>,
    allocator: Allocator,
    tokens: Option<Arc<Tokens>>,
    /// The stamps that this process has reported to the ledger as known, and under which identity.
    told: Option<(NodeId, Stamps)>,
    /// The stamp of the ledger's tokens.
    tokens_at: watch::Sender<Option<i64>>,
}

/// Sees changes of series, reference data and tokens, within a second: one question each time.
pub(crate) fn watch_changes(
    context: &Arc<Context>,
    allocator: &Allocator,
    tokens: Option<&Arc<Tokens>>,
) -> [Task; 2] {
    let period = context.settings.node_heartbeat().min(PERIOD_MAX);
    let (tokens_at, stamp) = watch::channel(None);
    let untold = watch_unrecorded(context, stamp, period);
    let (context, allocator, tokens) = (Arc::clone(context), allocator.clone(), tokens.cloned());
    let mut kept = Kept { context, allocator, tokens, told: None, tokens_at };
    let changes = Task::start("changes", async move |stop: Stop| {
        let (mut ticks, mut failure) = (Ticks::every(period, stop), None);
        while ticks.next().await {
            let looked = kept.poll().await;
            let what = "cannot look for changed series, tables or tokens";
            tell_failure(&mut failure, looked.err(), what);
        }
    });
    [changes, untold]
}

/// Logs a failure that an operator must mend once, until it is over or another one occurs. A ledger
/// that is away or busy has alarms of its own.
pub(crate) fn tell_failure(told: &mut Option<String>, error: Option<LedgerError>, what: &str) {
    use LedgerError::{Conflict, LockTimeout, Unreachable};
    let Some(error) = error else {
        *told = None;
        return;
    };
    let text = error.to_string();
    let passes = matches!(error, Unreachable { .. } | LockTimeout { .. } | Conflict(_));
    if passes || told.as_ref() == Some(&text) {
        tracing::debug!(%error, "{what}");
    } else {
        tracing::warn!(%error, "{what}");
        *told = Some(text);
    }
}

impl Kept {
    /// Each of the three continues where another cannot be read.
    async fn poll(&mut self) -> Result<(), LedgerError> {
        let ledger = &self.context.ledger;
        let stamps = ledger.stamps().await?;
        // Tokens first: a revocation waits for no series that is compiled.
        let tokens = match &self.tokens {
            Some(tokens) => tokens.refresh(Some(stamps.tokens)).await,
            None => Ok(()),
        };
        self.tokens_at.send_replace(Some(stamps.tokens));
        let catalog = self.allocator.refresh_catalog_to(stamps).await;
        let before = self.told.map(|(_, known)| known);
        let known = known(stamps, before, tokens.is_ok(), catalog.is_ok());
        let known = known.map(|known| (self.context.membership.node(), known));
        if let Some(known) = known.filter(|known| self.told != Some(*known)) {
            ledger.note_known(known.0, &known.1).await?;
            self.told = Some(known);
        }
        tokens.and(catalog)
    }
}

/// What this process knows, where not all could be read: of the rest what it knew before.
fn known(stamps: Stamps, before: Option<Stamps>, tokens: bool, catalog: bool) -> Option<Stamps> {
    match (tokens, catalog) {
        (true, true) => Some(stamps),
        (true, false) => before.map(|before| Stamps { tokens: stamps.tokens, ..before }),
        (false, true) => before.map(|before| Stamps { tokens: before.tokens, ..stamps }),
        (false, false) => None,
    }
}
