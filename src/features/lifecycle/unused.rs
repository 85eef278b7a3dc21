//! Voids what a range did not use: the numbers of it that have neither a document nor a void.
//!
//! A call voids at most ten thousand of them, in one transaction; the same call again goes on with
//! what is left. Where nothing is left, it is answered as before.

use std::sync::Arc;

use super::error::LifecycleError;
use super::naming::{FoundNumber, find};
use super::voiding::VoidOrder;
use crate::engine::allocator::Catalog;
use crate::ledger::{Run, SharedLedger, UnusedVoided, ValueOf, VoidingUnused};
use crate::web::journal_wait::TryOf;

/// The numbers of a range that are void because nothing uses them.
#[derive(Clone, Debug)]
pub(crate) struct UnusedNumbers {
    /// The number that named the range.
    pub(crate) found: FoundNumber,
    /// What became void.
    pub(crate) done: UnusedVoided,
}

impl UnusedNumbers {
    /// Whether an earlier call did all of it: not where nothing was left to be voided at all.
    pub(crate) fn is_replayed(&self) -> bool {
        self.done.written == 0 && self.done.count > 0
    }
}

/// Voids them, once the journal has the range. The order names any number of it.
///
/// # Errors
/// See [`LifecycleError`].
pub(crate) async fn void_unused(
    ledger: &SharedLedger,
    catalog: &Arc<Catalog>,
    order: &VoidOrder,
    try_of: TryOf,
) -> Result<UnusedNumbers, LifecycleError> {
    let VoidOrder { name, reason, by } = order;
    let found = find(ledger, catalog, (name, by), try_of).await?;
    found.must_be_within(by)?;
    let number = found.number.clone();
    let act = found.act(by, Some(reason));
    match ledger.life().void_unused(&act, &found.row.entry).await? {
        VoidingUnused::Done(done) => Ok(UnusedNumbers { found, done }),
        VoidingUnused::OfDocument(document_id) => {
            Err(LifecycleError::OfDocument { number, document_id })
        }
        VoidingUnused::NotOfARange => Err(LifecycleError::NotOfARange { number }),
        VoidingUnused::Gone => Err(LifecycleError::Archived { number, file: None }),
    }
}

/// The same numbers as this request voided them before; nothing where it did not, or not all.
///
/// # Errors
/// See [`LifecycleError`].
pub(crate) async fn unused_voided_before(
    ledger: &SharedLedger,
    catalog: &Arc<Catalog>,
    order: &VoidOrder,
) -> Result<Option<UnusedNumbers>, LifecycleError> {
    let VoidOrder { name, reason, by } = order;
    let found = match find(ledger, catalog, (name, by), TryOf::First).await {
        Ok(found) => found,
        Err(error @ LifecycleError::Ledger(_)) => return Err(error),
        Err(_) => return Ok(None),
    };
    let Some(run) = run_of(&found) else { return Ok(None) };
    let done = ledger.life().unused_voided(&found.act(by, Some(reason)), run).await?;
    let is_whole = done.count > 0 && done.left == 0;
    Ok(is_whole.then_some(UnusedNumbers { found, done }))
}

/// The values of the range's first serial; none of a number that is alone, or has its document.
fn run_of(found: &FoundNumber) -> Option<Run> {
    let entry = &found.row.entry;
    let (first, taken) = (ValueOf::number(&found.row)?.value, entry.taken.first()?);
    let value = |value: u64| i64::try_from(value).ok();
    let run = Run { first, last: value(taken.range.last)?, step: value(taken.range.step)? };
    (run.first < run.last && entry.record.document_id.is_none()).then_some(run)
}
