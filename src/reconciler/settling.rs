//! Settles counters that nobody has touched since their epoch was closed, so that the gap register
//! is complete (F17).

use crate::ledger::{Counter, LedgerError, Partition, PartitionState, SharedLedger};

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
        let page = ledger.counters(after, PAGE_COUNTERS).await?;
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
