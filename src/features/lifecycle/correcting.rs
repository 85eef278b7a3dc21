//! Corrects variables that a number does not show: the journal's row stays, and a row beside it
//! says what they should have been.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::error::LifecycleError;
use super::issuer::compile;
use super::naming::{By, FoundNumber, NumberName, find};
use crate::engine::allocator::Catalog;
use crate::ledger::{Corrected, IssuePath, LifeRow, SharedLedger};
use crate::web::journal_wait::TryOf;

/// Variables to be corrected.
#[derive(Clone, Debug)]
pub(crate) struct CorrectionOrder {
    /// Of which number.
    pub(crate) name: NumberName,
    /// What they should have been.
    pub(crate) context: BTreeMap<String, String>,
    /// Why.
    pub(crate) reason: String,
    /// Who.
    pub(crate) by: By,
}

/// A number that was corrected.
#[derive(Clone, Debug)]
pub(crate) struct CorrectedNumber {
    /// The number.
    pub(crate) found: FoundNumber,
    /// The correction; none where the number was issued with these values.
    pub(crate) row: Option<LifeRow>,
    /// Whether the variables had these values before.
    pub(crate) replayed: bool,
}

/// Corrects the variables, once the journal has the number.
///
/// # Errors
/// See [`LifecycleError`].
pub(crate) async fn correct(
    ledger: &SharedLedger,
    catalog: &Arc<Catalog>,
    order: &CorrectionOrder,
    try_of: TryOf,
) -> Result<CorrectedNumber, LifecycleError> {
    let CorrectionOrder { name, context, reason, by } = order;
    if context.is_empty() {
        return Err(LifecycleError::NothingToCorrect);
    }
    let found = find(ledger, catalog, (name, by), try_of).await?;
    found.must_be_within(by)?;
    let within = by.identity.scope.projects_within();
    let issuer = compile(ledger, &found.row, &mut None).await?;
    let values = if found.row.entry.path == IssuePath::AsWritten {
        issuer.correct_as_written(context, within)
    } else {
        issuer.correct(context, within)
    };
    let values = values?;
    let number = found.number.clone();
    match ledger.life().correct(&found.act(by, Some(reason)), &values).await? {
        Corrected::Written(row) => Ok(CorrectedNumber { found, row: Some(row), replayed: false }),
        Corrected::Same(row) => Ok(CorrectedNumber { found, row, replayed: true }),
        Corrected::Voided(row) => Err(LifecycleError::Void { number, row: Box::new(row) }),
        Corrected::TooMany => Err(LifecycleError::TooMany { number }),
        Corrected::Gone => Err(LifecycleError::Archived { number, file: None }),
    }
}
