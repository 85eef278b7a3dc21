//! The version of a series that issued a number, compiled.

use std::sync::Arc;

use numbering::{ReferenceData, Series};

use crate::ledger::{JournalRow, LedgerError, SharedLedger};

/// The series in the version that issued a number. The tables that it refers to are read once and
/// kept in `reference`.
///
/// # Errors
/// `Refused` where the version is gone or does not compile any more.
pub(crate) async fn compile(
    ledger: &SharedLedger,
    row: &JournalRow,
    reference: &mut Option<Arc<ReferenceData>>,
) -> Result<Series, LedgerError> {
    let record = &row.entry.record;
    let version = ledger.series().version(record.series_id, record.version).await?;
    let named = || format!("series {} version {}", record.series_id, record.version);
    let version = version.ok_or_else(|| LedgerError::Refused(format!("{} is gone", named())))?;
    let series = Series::restore(version.definition)
        .map_err(|error| LedgerError::Refused(format!("{}: {error}", named())))?;
    if !series.refers() {
        return Ok(series);
    }
    let tables = match reference {
        Some(tables) => Arc::clone(tables),
        None => Arc::new(ledger.reference().data().await?),
    };
    *reference = Some(Arc::clone(&tables));
    Ok(series.with_reference(tables))
}
