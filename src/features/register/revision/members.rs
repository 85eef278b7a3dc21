//! Numbers within ranges of a document: none of them has revisions.

use std::collections::HashMap;
use std::sync::Arc;

use numbering::{ReferenceData, Series};

use super::{NUMBERS_MAX, ReviseError, RevisionRequest};
use crate::features::lifecycle::issuer;
use crate::ledger::{JournalRow, LedgerError, Position, SharedLedger};

/// Pages of a document's numbers that are searched, the oldest first.
const PAGES_MAX: usize = 10;

/// Refuses a number that is within a range of the document and is not the first number of any
/// journal row. Only ranges that the caller sees count.
pub(super) async fn must_be_no_member(
    ledger: &SharedLedger,
    request: &RevisionRequest,
) -> Result<(), ReviseError> {
    let Some(number) = &request.number else { return Ok(()) };
    let (shown, mut after) = (request.identity.row_visibility(), None);
    let mut issuers = Issuers::default();
    for _ in 0..PAGES_MAX {
        let page = ledger
            .register()
            .numbers_shown_of(&request.document_id, after, NUMBERS_MAX, &shown)
            .await?;
        for row in &page {
            if issuers.is_member(ledger, row, number).await? {
                let (number, first) = (number.clone(), row.entry.number.clone());
                return Err(ReviseError::Member { number, first });
            }
        }
        after = page.last().filter(|_| page.len() == NUMBERS_MAX as usize).and_then(Position::of);
        if after.is_none() {
            break;
        }
    }
    Ok(())
}

/// The versions that issued numbers, each compiled once; the tables that they refer to are read
/// once.
#[derive(Default)]
pub(super) struct Issuers {
    /// By series and version; `None` if it does not compile any more.
    compiled: HashMap<(i64, u32), Option<Series>>,
    reference: Option<Arc<ReferenceData>>,
}

impl Issuers {
    /// Whether a number belongs to the range that a row represents.
    async fn is_member(
        &mut self,
        ledger: &SharedLedger,
        row: &JournalRow,
        number: &str,
    ) -> Result<bool, LedgerError> {
        let range = row.entry.taken.first().map(|taken| taken.range);
        let Some(range) = range.filter(|range| range.first != range.last) else { return Ok(false) };
        let version = (row.entry.record.series_id, row.entry.record.version);
        if !self.compiled.contains_key(&version) {
            let series = match self.compile(ledger, row).await {
                // It reads nothing any more.
                Err(LedgerError::Refused(_)) => None,
                series => Some(series?),
            };
            self.compiled.insert(version, series);
        }
        let series = self.compiled.get(&version).and_then(Option::as_ref);
        let Some(parsed) = series.and_then(|series| series.parse(number).ok()) else {
            return Ok(false);
        };
        let is_in = |value: &u64| (range.first..=range.last).contains(value);
        let value = parsed.serials.first().map(|serial| serial.value).filter(is_in);
        Ok(value.is_some_and(|value| row.entry.shows(value, number)))
    }

    /// The series in the version that issued a number.
    pub(super) async fn compile(
        &mut self,
        ledger: &SharedLedger,
        row: &JournalRow,
    ) -> Result<Series, LedgerError> {
        issuer::compile(ledger, row, &mut self.reference).await
    }
}
