//! Resolves counters that were not touched since their epoch was closed, and searches what closed
//! epochs left, so that the gap register becomes complete (F17). No request waits for it: long
//! epochs take many slices, each in a separate transaction (F31).

use std::sync::Arc;
use std::time::Duration;

use crate::engine::node::Context;
use crate::ledger::{Counter, LedgerError, Partition, PartitionState, SharedLedger};
use crate::task::{Task, Ticks};

/// Time between two checks whether anything is unsettled.
const PERIOD: Duration = Duration::from_secs(1);

/// Rows of the journal that one slice reads, most
const SLICE_ROWS_MAX: u32 = 1_000;

/// and least, where the ledger is too slow for more.
const SLICE_ROWS_MIN: u32 = 10;

/// Searches what closed epochs left, as long as the process runs.
pub(crate) fn settle_behind(context: Arc<Context>) -> Task {
    Task::start("closed epochs", move |stop| async move {
        let mut ticks = Ticks::every(PERIOD, stop.clone());
        let mut rows = SLICE_ROWS_MAX;
        while ticks.next().await {
            while !stop.is_requested() {
                match context.ledger.settle_slice(rows).await {
                    Ok(true) => rows = rows.saturating_mul(2).min(SLICE_ROWS_MAX),
                    Ok(false) => break,
                    Err(error) => {
                        rows = (rows / 2).max(SLICE_ROWS_MIN);
                        tracing::debug!(%error, rows, "a slice is not settled yet");
                        break;
                    }
                }
            }
        }
    })
}

/// Searches all that closed epochs left.
///
/// # Errors
/// When the ledger does not answer; safe to repeat, and what was searched stays so.
pub async fn settle_slices(ledger: &SharedLedger) -> Result<(), LedgerError> {
    while ledger.settle_slice(SLICE_ROWS_MAX).await? {}
    Ok(())
}

/// Counters read at once.
const PAGE_COUNTERS: u32 = 500;

/// Counts the counters of closed epochs that are not settled yet, and settles them where `apply`.
///
/// # Errors
/// When the ledger does not answer; safe to repeat.
pub async fn settle_counters(
    ledger: &SharedLedger,
    partition: Option<u32>,
    apply: bool,
) -> Result<u64, LedgerError> {
    let (mut after, mut count) = (0, 0);
    loop {
        // Read before the counters: epochs only rise, so what is closed by these rows is closed.
        let rows = ledger.partitions().await?;
        let page = ledger.counters().page(after, PAGE_COUNTERS).await?;
        let Some(last) = page.last() else { return Ok(count) };
        after = last.counter_id;
        for counter in page {
            let is_asked = partition.is_none_or(|one| one == counter.partition);
            if is_asked && !counter.is_settled() && is_closed(&rows, &counter) {
                count += 1;
                if apply {
                    ledger.settle(counter.counter_id).await?;
                }
            }
        }
    }
}

/// Whether the epoch of a counter is closed.
fn is_closed(rows: &[Partition], counter: &Counter) -> bool {
    let Some(row) = rows.iter().find(|row| row.partition == counter.partition) else {
        return false;
    };
    match row.state {
        PartitionState::Open | PartitionState::Opening => counter.epoch < row.epoch,
        // The epoch before is not closed yet.
        PartitionState::Recovering => counter.epoch + 1 < row.epoch,
        // Nothing is certain of a ledger that went back.
        PartitionState::Held => false,
    }
}
