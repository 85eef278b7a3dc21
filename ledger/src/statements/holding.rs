//! Holding a ledger that went back: all partitions at once, and a new incarnation with it, so that
//! every process is stopped by its next transaction (F9, F25). Also the way in for what is done
//! with it then.

use async_trait::async_trait;
use numerator_base::node::NodeId;
use tokio::time::Instant;

use super::{
    Conn, Opened, Store, commit, counters, incarnation, inquest, metered, nodes, query, reference,
    restored, snowflakes, versions,
};
use crate::columns::{Word as _, signed, small, unsigned, unsigned_small};
use crate::connections::Share;
use crate::incarnation::Incarnation;
use crate::patience::Patience;
use crate::{
    Agreement, Appended, At, Confirmed, Entry, Known, LedgerError, Lift, PartitionState, Released,
    Report, RestoredLedger,
};

#[async_trait]
impl RestoredLedger for Opened {
    async fn hold(&self, seen: At, cause: &str) -> Result<bool, LedgerError> {
        call!(self, store => hold(&store, seen, cause))
    }

    async fn hold_all(&self, seen: &[At], cause: &str) -> Result<u64, LedgerError> {
        call!(self, store of Heartbeat, "other" => hold_all(&store, seen, cause, Asking::Nobody))
    }

    fn fails_over(&self) -> bool {
        self.0.store(Share::Common).pool.fails_over()
    }

    async fn inquire(&self, seen: &[At], cause: &str) -> Result<u64, LedgerError> {
        call!(self, store of Heartbeat, "other" => hold_all(&store, seen, cause, Asking::All))
    }

    async fn report(&self, report: &Report) -> Result<bool, LedgerError> {
        call!(self, store => inquest::report(&store, report))
    }

    async fn agree(&self, node: NodeId, known: &Known) -> Result<Agreement, LedgerError> {
        call!(self, store => inquest::agree(&store, node, known))
    }

    async fn beats(&self, nodes: &[NodeId]) -> Result<Vec<Option<i64>>, LedgerError> {
        call!(self, store => inquest::beats(&store, nodes))
    }

    fn changed_at(&self) -> Option<Instant> {
        self.0.store(Share::Common).witness.changed_at()
    }

    async fn has_catalog(&self) -> Result<bool, LedgerError> {
        call!(self, store => async {
            let shown = store.witness.catalog();
            let now = [versions::stamp(&store).await?, reference::stamp(&store).await?];
            Ok(now.into_iter().zip(shown).all(|(now, shown)| now >= shown))
        })
    }

    fn confirmed(&self, node: NodeId) -> Option<Confirmed> {
        self.0.store(Share::Common).witness.confirmed(node)
    }

    async fn remembers(&self, confirmed: &Confirmed) -> Result<bool, LedgerError> {
        call!(self, store => nodes::remembers(&store, confirmed))
    }

    async fn has_counters(&self, partition: u32) -> Result<bool, LedgerError> {
        call!(self, store => counters::any_of(&store, partition))
    }

    async fn journal_again(
        &self,
        node: NodeId,
        entries: &[Entry],
    ) -> Result<Appended, LedgerError> {
        search!(self, store of Journal, "other" => restored::journal_again(&store, node, entries))
    }

    async fn lift(&self, partition: u32, node: NodeId, lifts: &[Lift]) -> Result<u64, LedgerError> {
        search!(self, store => restored::lift(&store, partition, node, lifts))
    }

    async fn release(&self, to: At, margin: u64) -> Result<Released, LedgerError> {
        search!(self, store => restored::release(&store, to, margin))
    }
}

/// See [`crate::RestoredLedger::hold`].
pub(super) async fn hold(store: &Store, seen: At, cause: &str) -> Result<bool, LedgerError> {
    let mut tx = store.begin_unfenced().await?;
    let shown = incarnation::locked(store, &mut tx).await?;
    let rows = lock_all(&mut *tx).await?;
    if !rows.iter().any(|row| row.is_behind(&[seen])) {
        return Ok(false);
    }
    put_on_hold(&mut *tx, &rows, &[seen], cause, store.clock.now_us()).await?;
    inquest::end(&mut *tx).await?;
    let next = incarnation::renew(store, &mut tx, shown).await?;
    commit(tx).await?;
    store.witness.agree(next);
    Ok(true)
}

/// Who is asked what was confirmed to it, once all is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asking {
    /// Nobody: an operator ends it.
    Nobody,
    /// Every process.
    All,
}

/// See [`crate::RestoredLedger::hold_all`].
pub(super) async fn hold_all(
    store: &Store,
    seen: &[At],
    cause: &str,
    asking: Asking,
) -> Result<u64, LedgerError> {
    let now_us = store.clock.now_us();
    let mut tx = store.begin_unfenced().await?;
    let shown = incarnation::locked(store, &mut tx).await?;
    let mut rows = lock_all(&mut *tx).await?;
    let is_open = |row: &&LockedRow| row.state != PartitionState::Held;
    let knows_less = rows.iter().filter(is_open).any(|row| row.is_behind(seen));
    // Somebody has held it since this process looked, and it may be released by now: whoever comes
    // late only adds what it has seen.
    let mine = store.witness.agreed();
    let is_later = |found: &Incarnation| mine.is_some_and(|mine| found.number > mine.number);
    let later = shown.filter(|shown| shown.is_present).map(|shown| shown.incarnation);
    if let Some(later) = later.filter(is_later).filter(|_| !knows_less) {
        rows.retain(|row| row.state == PartitionState::Held);
        put_on_hold(&mut *tx, &rows, seen, cause, now_us).await?;
        commit(tx).await?;
        store.witness.agree(later);
        return Ok(0);
    }
    // A hold without an inquest is an operator's to end, whoever comes upon it. So is an older
    // server that lives on beside a newer one: others may have gone on there without it.
    let is_held = rows.iter().any(|row| row.state == PartitionState::Held);
    let is_strange = shown.is_some_and(|shown| shown.is_present && Some(shown.incarnation) != mine);
    let is_operators = (is_held || is_strange) && !inquest::is_under_way(&mut *tx).await?;
    let held = put_on_hold(&mut *tx, &rows, seen, cause, now_us).await?;
    // Every other process must stop, and report what it remembers, before it writes here again.
    let next = incarnation::renew(store, &mut tx, shown).await?;
    if asking == Asking::All && !is_operators {
        inquest::begin(&mut tx, next, now_us).await?;
    } else {
        inquest::end(&mut *tx).await?;
    }
    commit(tx).await?;
    store.witness.agree(next);
    Ok(held)
}

/// A partition's row while it is locked.
pub(super) struct LockedRow {
    pub(super) partition: u32,
    pub(super) epoch: u64,
    pub(super) state: PartitionState,
    pub(super) seen_epoch: u64,
}

impl LockedRow {
    /// Whether a higher epoch of it was seen.
    fn is_behind(&self, seen: &[At]) -> bool {
        seen.iter().any(|at| at.partition == self.partition && at.epoch > self.epoch)
    }
}

/// Locks all partitions in their order: who holds one holds all, and two may do so at once.
pub(super) async fn lock_all(conn: &mut Conn) -> Result<Vec<LockedRow>, LedgerError> {
    let rows =
        query("select partition_id, epoch, state, seen_epoch from partition order by partition_id")
            .for_update()
            .fetch_all(conn)
            .await?;
    rows.iter()
        .map(|row| {
            Ok(LockedRow {
                partition: unsigned_small(row.try_get("partition_id")?, "partition_id")?,
                epoch: unsigned(row.try_get("epoch")?, "partition.epoch")?,
                state: PartitionState::read(row.try_get("state")?)?,
                seen_epoch: unsigned(row.try_get("seen_epoch")?, "partition.seen_epoch")?,
            })
        })
        .collect()
}

/// Holds every partition and notes what was seen of each; how many were not held before.
async fn put_on_hold(
    conn: &mut Conn,
    rows: &[LockedRow],
    seen: &[At],
    cause: &str,
    now_us: i64,
) -> Result<u64, LedgerError> {
    let mut held = 0;
    for row in rows {
        let seen = seen.iter().filter(|at| at.partition == row.partition);
        let seen_epoch = seen.map(|at| at.epoch).fold(row.seen_epoch, u64::max);
        let is_new = row.state != PartitionState::Held;
        if !is_new && seen_epoch == row.seen_epoch {
            continue;
        }
        held += u64::from(is_new);
        // The first cause stays: those who come later only add what they have seen.
        query(
            "update partition set seen_epoch = $2, \
             cause = case when state = 'held' then cause else $3 end, \
             changed_at_us = case when state = 'held' then changed_at_us else $4 end, \
             vouched_epoch = case when state = 'held' then vouched_epoch else 0 end, \
             state = 'held', actor = null where partition_id = $1",
        )
        .bind(small(row.partition, "partition")?)
        .bind(signed(seen_epoch, "epoch")?)
        .bind(cause)
        .bind(now_us)
        .execute(&mut *conn)
        .await?;
    }
    if held > 0 {
        snowflakes::forget_none(conn, now_us).await?;
    }
    Ok(held)
}
