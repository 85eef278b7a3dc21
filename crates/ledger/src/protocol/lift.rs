//! Counters in use that are moved up by something else than a take: an import, and a change that
//! two people approve.
//!
//! Never lifts a counter that Redis counts: a counter is changed otherwise only while nothing can
//! be taken from it (F20). That is so while its row is locked, if its own epoch is closed or the
//! database owns it: each take then needs this very row first (F4).

use crate::counters::table::lock_all;
use crate::dialect::Conn;
use crate::protocol::partitions;
use crate::protocol::seed::settle_locked;
use crate::query::query;
use crate::reservations::pool;
use crate::{Counter, GapReason, LedgerError, Owner, Partition, PartitionState};

/// A counter whose row is locked.
pub(crate) enum Stand {
    /// Nothing can be taken until the transaction ends, and what its own epoch lost is settled.
    AtRest {
        /// As it was.
        counter: Counter,
        /// After this value nothing was taken.
        base: i64,
    },
    /// Redis counts it.
    InRedis(Counter),
    /// Its partition is held.
    Held(u32),
}

/// Locks a counter and, where it is at rest, settles what its own epoch lost.
pub(crate) async fn lock(
    conn: &mut Conn,
    counter_id: i64,
    now_us: i64,
) -> Result<Stand, LedgerError> {
    let locked = lock_all(conn, &[counter_id]).await?;
    let gone = || LedgerError::Conflict("a counter was there and went; try again".into());
    let counter = locked.into_iter().next().ok_or_else(gone)?;
    // With the row's lock held, what is read here of the counter's own epoch stays true: only its
    // first touch in a newer one could change it.
    // Closings first: what closes an epoch writes both at once, and the partition says how.
    let is_closed = partitions::closing(conn, counter.partition, counter.epoch).await?.is_some();
    let partition = partitions::read(conn, counter.partition).await?;
    // A lift of the held ledger would be undone here, and one that comes later waits for the
    // counter's row.
    if partition.state == PartitionState::Held {
        return Ok(Stand::Held(counter.partition));
    }
    if counter.epoch > 0 && !is_closed && !is_of_database(&counter, &partition) {
        return Ok(Stand::InRedis(counter));
    }
    let base = settle_locked(conn, &counter, &partition, now_us).await?;
    Ok(Stand::AtRest { counter, base })
}

/// Why nothing is changed in a partition of a ledger that went back.
pub(crate) fn held(partition: u32) -> String {
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

/// Lifts a counter that [`lock`] has found at rest, so that it goes on by `step` after `highest`.
/// All that is below is accounted for by then, or is about to be, so the count of its epoch begins
/// anew there. Values that came back from reservations are left behind, and so are those of live
/// ones that end later: the next number is the one after `highest`, and none below (L16).
pub(crate) async fn lift(
    conn: &mut Conn,
    counter_id: i64,
    (highest, step): (i64, i64),
    now_us: i64,
) -> Result<(), LedgerError> {
    raise(conn, counter_id, highest, step).await?;
    query("update counter set left_behind = $2 where counter_id = $1")
        .bind(counter_id)
        .bind(highest)
        .execute(&mut *conn)
        .await?;
    pool::spend(conn, counter_id, GapReason::Skipped, now_us).await
}

/// The same, with the values below still to be issued that came back, or that live reservations
/// give back later: for a number that was given by hand, and passes over none of them.
pub(crate) async fn raise(
    conn: &mut Conn,
    counter_id: i64,
    highest: i64,
    step: i64,
) -> Result<(), LedgerError> {
    query(
        "update counter set start_value = $2, taken = $2, ceiling = $2, step = $3, journaled = 0
         where counter_id = $1",
    )
    .bind(counter_id)
    .bind(highest)
    .bind(step)
    .execute(conn)
    .await?;
    Ok(())
}
