//! Tokens that were written into the ledger without the program: logged once each, and counted.
//! They are accepted all the same: a user who may write the ledger can write the event, too.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::engine::node::Context;
use crate::ledger::{LedgerError, TokenPrint, UnrecordedToken};
use crate::startup::changes::tell_failure;
use crate::task::{Stop, Task, Ticks};

/// The tokens that were logged.
#[derive(Debug, Default)]
struct UnrecordedTokens {
    /// The stamp of the ledger's tokens when they were checked.
    looked_at: Option<i64>,
    as_recorded: HashSet<TokenPrint>,
    told: Vec<UnrecordedToken>,
}

/// Checks the tokens once they have changed, in its own loop: a first check reads many events, and
/// no revocation waits for that.
pub(crate) fn watch_unrecorded(
    context: &Arc<Context>,
    stamp: watch::Receiver<Option<i64>>,
    period: Duration,
) -> Task {
    let context = Arc::clone(context);
    context.metrics.tokens_untold.set(f64::NAN);
    Task::start("untold tokens", async move |stop: Stop| {
        let (mut ticks, mut untold) = (Ticks::every(period, stop), UnrecordedTokens::default());
        let mut failure = None;
        while ticks.next().await {
            let stamp = *stamp.borrow();
            let Some(stamp) = stamp.filter(|_| untold.looked_at != stamp) else { continue };
            let looked = untold.poll(&context, stamp).await;
            if looked.is_err() {
                context.metrics.tokens_untold.set(f64::NAN);
            }
            tell_failure(&mut failure, looked.err(), "cannot compare the tokens with their events");
        }
    })
}

impl UnrecordedTokens {
    async fn poll(&mut self, context: &Context, stamp: i64) -> Result<(), LedgerError> {
        // Earlier findings are as old as the stamp of that time.
        self.looked_at = None;
        let looked = context.ledger.tokens().untold_but(&self.as_recorded).await?;
        for token @ UnrecordedToken { name, why } in &looked.untold {
            if !self.told.contains(token) {
                context.metrics.tokens_untold_total.increment(1);
                tracing::error!(
                    token = &**name,
                    %why,
                    "A TOKEN THAT NO EVENT TELLS OF: somebody wrote it into the ledger; see \
                     docs/runbook.md"
                );
            }
        }
        let count = u32::try_from(looked.untold.len()).unwrap_or(u32::MAX);
        context.metrics.tokens_untold.set(f64::from(count));
        (self.looked_at, self.as_recorded, self.told) =
            (Some(stamp), looked.as_recorded, looked.untold);
        Ok(())
    }
}
