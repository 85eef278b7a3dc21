//! Proves, from the ledger alone, that no number was issued twice and none is missing.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::ledger::{Counter, LedgerError, SharedLedger, Span, Totals};

/// Counters read at once.
const PAGE_COUNTERS: u32 = 500;

/// Findings listed per counter and in all; more are counted, not listed.
const FINDINGS_MAX: u32 = 100;

/// What `verify` found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct VerifyReport {
    /// Counters looked at.
    pub counters: u64,
    /// Values of all counters, from their start to their highest.
    pub values: u64,
    /// Sizes of journal, gap register, collisions and rejected rows.
    pub totals: Totals,
    /// Values that are neither in the journal nor in the gap register.
    pub missing: Vec<Finding>,
    /// Values that stand twice.
    pub twice: Vec<Finding>,
}

/// A run of values of one counter.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The counter.
    pub counter_id: i64,
    /// Its series.
    pub series_id: i64,
    /// Its key.
    pub counter_key: String,
    /// The values.
    #[serde(flatten)]
    pub span: Span,
}

impl VerifyReport {
    /// Whether no number was issued twice, every value is accounted for, and no collision was ever
    /// recorded: a unique key alone proves nothing.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.missing.is_empty() && self.twice.is_empty() && self.totals.collisions == 0
    }
}

impl fmt::Display for VerifyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Totals { journal, gaps, collisions, rejected } = self.totals;
        writeln!(f, "counters    {}", self.counters)?;
        writeln!(f, "values      {}", self.values)?;
        writeln!(f, "journal     {journal} rows")?;
        writeln!(f, "gaps        {gaps} entries")?;
        writeln!(f, "rejected    {rejected} rows")?;
        writeln!(f, "collisions  {collisions}")?;
        for (word, findings) in [("missing", &self.missing), ("twice", &self.twice)] {
            for Finding { counter_id, counter_key, span, .. } in findings {
                let Span { first, last } = span;
                writeln!(f, "{word}: counter {counter_id} ({counter_key}): {first} to {last}")?;
            }
        }
        let verdict = if self.is_clean() { "ok: every value once" } else { "NOT CLEAN" };
        write!(f, "{verdict}")
    }
}

/// Looks at every counter. Values that a running service has not journaled yet are looked at again
/// for up to `patience` before they count as missing.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn verify(
    ledger: &SharedLedger,
    patience: Duration,
) -> Result<VerifyReport, LedgerError> {
    let deadline = Instant::now() + patience;
    let mut report = VerifyReport::default();
    let mut after = 0;
    loop {
        let page = ledger.counters(after, PAGE_COUNTERS).await?;
        let Some(last) = page.last() else { break };
        after = last.counter_id;
        for counter in page {
            inspect(ledger, &counter, deadline, &mut report).await?;
        }
    }
    report.totals = ledger.totals().await?;
    Ok(report)
}

async fn inspect(
    ledger: &SharedLedger,
    counter: &Counter,
    deadline: Instant,
    report: &mut VerifyReport,
) -> Result<(), LedgerError> {
    ledger.settle(counter.counter_id).await?;
    let id = counter.counter_id;
    let settled = ledger.counter(counter.series_id, counter.serial, &counter.key).await?;
    let highest = settled.map_or(counter.taken, |row| row.taken);
    let mut wait = Backoff::new(Duration::from_millis(50), Duration::from_millis(500));
    let holes = loop {
        let holes = ledger.holes(id, counter.origin, highest, FINDINGS_MAX).await?;
        if holes.is_empty() || Instant::now() >= deadline {
            break holes;
        }
        wait.wait().await;
    };
    let finding = |span: &Span| Finding {
        counter_id: id,
        series_id: counter.series_id,
        counter_key: counter.key.clone(),
        span: *span,
    };
    let overlaps = ledger.overlaps(id, FINDINGS_MAX).await?;
    let room = |list: &Vec<Finding>| (FINDINGS_MAX as usize).saturating_sub(list.len());
    report.missing.extend(holes.iter().take(room(&report.missing)).map(finding));
    report.twice.extend(overlaps.iter().take(room(&report.twice)).map(finding));
    report.counters += 1;
    report.values += highest.abs_diff(counter.origin) / counter.step;
    Ok(())
}
