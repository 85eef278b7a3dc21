//! Counters in use that an import goes above (R9.5).
//!
//! Never lifts a counter that Redis counts: whoever else changes a counter does so while nobody can
//! take from it (F20). That is so while its row is locked, if its own epoch is closed or the
//! database owns it: to take a value, everybody then needs this very row first (F4).

use crate::columns::{self, signed};
use crate::{Counter, ImportedCounter, LedgerError, Owner, Partition, PartitionState};

use super::super::counters::lock_all;
use super::super::seed::settle_locked;
use super::super::{Conn, partitions, query};

/// Locks a counter and settles what its own epoch lost; the value after which nothing was taken.
///
/// # Errors
/// `Refused` where Redis counts it, or its partition is held.
pub(super) async fn lock(
    conn: &mut Conn,
    counter_id: i64,
    now_us: i64,
) -> Result<i64, LedgerError> {
    let locked = lock_all(conn, &[counter_id]).await?;
    let gone = || LedgerError::Conflict("a counter was there and went; import again".into());
    let counter = locked.first().ok_or_else(gone)?;
    // With the row's lock held, what is read here of the counter's own epoch stays true: only its
    // first touch in a newer one could change it.
    // Closings first: what closes an epoch writes both at once, and the partition says how.
    let is_closed = partitions::closing(conn, counter.partition, counter.epoch).await?.is_some();
    let partition = partitions::read(conn, counter.partition).await?;
    // It was held since the import began: a lift of the held ledger would be undone here, and one
    // that comes later waits for the counter's row.
    if partition.state == PartitionState::Held {
        return Err(LedgerError::Refused(held(counter.partition)));
    }
    if counter.epoch > 0 && !is_closed && !is_of_database(counter, &partition) {
        let Counter { key, partition, .. } = counter;
        let why = "import again, so that the database takes the partition over first";
        let text = format!("counter {key} of partition {partition} is counted by redis: {why}");
        return Err(LedgerError::Refused(text));
    }
    settle_locked(conn, counter, &partition, now_us).await
}

/// Why nothing is imported into a partition of a ledger that went back.
pub(super) fn held(partition: u32) -> String {
    let why = "is held; release it first, see `numerator reconcile --ledger-restored`";
    format!("partition {partition} {why}")
}

/// Whether the counter's epoch has not ended and the database owns it.
fn is_of_database(counter: &Counter, partition: &Partition) -> bool {
    // The owner's column is the next one's only once the epoch before is closed.
    let epoch = match partition.state {
        PartitionState::Open => partition.epoch,
        PartitionState::Recovering => partition.epoch.saturating_sub(1),
        PartitionState::Opening | PartitionState::Held => return false,
    };
    partition.owner == Owner::Database && counter.epoch == epoch
}

/// Lifts a counter that [`lock`] has locked to the import's highest value. All that is below is
/// accounted for by then, or is about to be, so the count of its epoch begins anew there.
pub(super) async fn lift(
    conn: &mut Conn,
    counter_id: i64,
    counter: &ImportedCounter,
) -> Result<(), LedgerError> {
    query(
        "update counter set start_value = $2, taken = $2, ceiling = $2, step = $3, journaled = 0 \
         where counter_id = $1",
    )
    .bind(counter_id)
    .bind(signed(counter.highest, "highest")?)
    .bind(columns::step(counter.step)?)
    .execute(conn)
    .await?;
    Ok(())
}
