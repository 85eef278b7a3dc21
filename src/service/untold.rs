//! Tokens that somebody wrote into the ledger past the program: told once each, and counted. They
//! are let in all the same: who may write the ledger can write the event, too.

use crate::ledger::{LedgerError, ToldTokens, UntoldToken};
use crate::process::Context;

/// What was told of tokens.
#[derive(Debug, Default)]
pub(super) struct UntoldTokens {
    /// Where the ledger's tokens stood when they were looked at.
    looked_at: Option<i64>,
    told: Vec<UntoldToken>,
}

impl UntoldTokens {
    /// Looks at the tokens where they have changed since.
    ///
    /// # Errors
    /// A ledger that does not answer: they are looked at the next time.
    pub(super) async fn look(&mut self, context: &Context, stamp: i64) -> Result<(), LedgerError> {
        if self.looked_at == Some(stamp) {
            return Ok(());
        }
        let ToldTokens { untold, .. } = context.ledger.untold_tokens().await?;
        for token @ UntoldToken { name, why } in &untold {
            if !self.told.contains(token) {
                tracing::error!(
                    token = &**name,
                    %why,
                    "A TOKEN THAT NO EVENT TELLS OF: somebody wrote it into the ledger; see \
                     docs/runbook.md"
                );
            }
        }
        context
            .metrics
            .tokens_untold
            .set(f64::from(u32::try_from(untold.len()).unwrap_or(u32::MAX)));
        (self.looked_at, self.told) = (Some(stamp), untold);
        Ok(())
    }
}
