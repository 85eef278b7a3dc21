//! Voids a number: it stays in the journal, its value never returns, and its revisions are void
//! with it.
//!
//! A repeated request of the same principal with the same reason is answered as before: its first
//! answer may have been lost. Any other second void is refused, and says when, by whom and why the
//! number was voided.

use std::sync::Arc;

use super::error::LifecycleError;
use super::naming::{By, FoundNumber, NumberName, find};
use crate::engine::allocator::Catalog;
use crate::ledger::{LifeRow, SharedLedger, Voided};
use crate::web::journal_wait::TryOf;
use crate::web::problem::Problem;
use crate::web::reason::check_reason;

/// Shortest reason of a void or a correction, in characters.
const REASON_CHARS_MIN: usize = 10;

/// A number to be voided.
#[derive(Clone, Debug)]
pub(crate) struct VoidOrder {
    /// Which.
    pub(crate) name: NumberName,
    /// Why.
    pub(crate) reason: String,
    /// Who.
    pub(crate) by: By,
}

/// A void number.
#[derive(Clone, Debug)]
pub(crate) struct VoidNumber {
    /// The number.
    pub(crate) found: FoundNumber,
    /// Its void.
    pub(crate) row: LifeRow,
    /// Whether an earlier call voided it.
    pub(crate) replayed: bool,
}

/// Checks the reason of a void or a correction: an auditor will read it.
pub(crate) fn check_long_reason(reason: &str) -> Result<String, Problem> {
    let reason = check_reason(reason)?;
    let chars = reason.chars().count();
    if chars < REASON_CHARS_MIN {
        let why = format!("must say why, in {REASON_CHARS_MIN} characters at least, not {chars}");
        return Err(Problem::field("reason", why));
    }
    Ok(reason)
}

/// Voids the number, once the journal has it.
///
/// # Errors
/// See [`LifecycleError`].
pub(crate) async fn void(
    ledger: &SharedLedger,
    catalog: &Arc<Catalog>,
    order: &VoidOrder,
    try_of: TryOf,
) -> Result<VoidNumber, LifecycleError> {
    let VoidOrder { name, reason, by } = order;
    let found = find(ledger, catalog, (name, by), try_of).await?;
    found.must_be_within(by)?;
    let number = found.number.clone();
    match ledger.life().void(&found.act(by, Some(reason))).await? {
        Voided::Written(row) => Ok(VoidNumber { found, row, replayed: false }),
        Voided::Known(row) if row.is_of(&by.user_id, reason) => {
            Ok(VoidNumber { found, row, replayed: true })
        }
        Voided::Known(row) => Err(LifecycleError::Void { number, row: Box::new(row) }),
        Voided::Gone => Err(LifecycleError::Archived { number, file: None }),
    }
}

/// The same number as this request voided it before; nothing where it did not.
///
/// # Errors
/// See [`LifecycleError`].
pub(crate) async fn voided_before(
    ledger: &SharedLedger,
    catalog: &Arc<Catalog>,
    order: &VoidOrder,
) -> Result<Option<VoidNumber>, LifecycleError> {
    let VoidOrder { name, reason, by } = order;
    let found = match find(ledger, catalog, (name, by), TryOf::First).await {
        Ok(found) => found,
        Err(error @ LifecycleError::Ledger(_)) => return Err(error),
        Err(_) => return Ok(None),
    };
    let row = ledger.life().standing_of(found.of).await?.voided;
    let row = row.filter(|row| row.is_of(&by.user_id, reason));
    Ok(row.map(|row| VoidNumber { found, row, replayed: true }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_ten_characters_and_blanks_are_none() {
        assert_eq!(check_long_reason("  ผู้รับผิดคน ").ok().as_deref(), Some("ผู้รับผิดคน"));
        for short in ["", "          ", "too short", "a\u{0}bcdefghijk"] {
            assert!(check_long_reason(short).is_err(), "{short:?}");
        }
    }
}
