//! The ledger that went back: what others remember is written again, and an operator releases the
//! partitions above everything that was seen (F9).
//!
//! Nothing here trusts an id or an epoch of the ledger's own: counters are found by their names,
//! and epochs only rise.

use numerator_runtime::node::NodeId;

use crate::calls::SEARCH;
use crate::columns::{ownership, signed};
use crate::connections::Share;
use crate::counters::table::lock_or_create_at_home;
use crate::dialect::Conn;
use crate::protocol::entries::WriteMode;
use crate::protocol::fitness::must_be_whole;
use crate::protocol::journaling::{self, EntrySource};
use crate::protocol::named_counters::{Definitions, found_by_name};
use crate::protocol::partitions::lock_all;
use crate::protocol::{blame, partitions, quorum_check, seed};
use crate::query::query;
use crate::reservations::lost;
use crate::store::{Store, commit};
use crate::{
    Appended, At, Closing, Counter, Entry, Ledger, LedgerError, Lift, PartitionState, Released,
};

impl Ledger {
    /// Journals what a ledger that went back may have forgotten; like `append`, but finds the
    /// counters by their names (an id may be another counter's now) and creates those that are
    /// missing. Fenced by nothing: what was handed out is always journaled.
    pub async fn journal_again(
        &self,
        node: NodeId,
        entries: &[Entry],
    ) -> Result<Appended, LedgerError> {
        self.call(SEARCH.of(Share::Journal), async |store| {
            // A ledger that is being restored table by table has no keys yet.
            must_be_whole(store).await?;
            let appended = journal_again(store, node, entries).await;
            blame::judged(store, node, entries, appended).await
        })
        .await
    }

    /// Lifts ceilings of a held partition to what others know of its counters, creating those that
    /// the ledger has forgotten; how many were below. Never lowers one.
    ///
    /// # Errors
    /// `Refused` where the partition is not held; where a counter lives in another partition by
    /// now, which counts it again.
    pub async fn lift(
        &self,
        partition: u32,
        node: NodeId,
        lifts: &[Lift],
    ) -> Result<u64, LedgerError> {
        self.search(async |store| lift(store, partition, node, lifts).await).await
    }

    /// Ends `held`: everything before `to.epoch` counts as closed at the ceiling, which is raised
    /// by `margin` numbers for each counter; the partition is open, and has no owner yet.
    pub async fn release(&self, to: At, margin: u64) -> Result<Released, LedgerError> {
        self.search(async |store| {
            let ((id, epoch), now_us) = (ownership(to)?, store.clock.now_us());
            let mut tx = store.begin().await?;
            // Every counter is written to: an operator waits for it.
            tx.allow_long_search().await?;
            let rows = lock_all(&mut *tx).await?;
            let row = rows.iter().find(|row| row.partition == to.partition);
            let Some(row) = row.filter(|row| row.state == PartitionState::Held) else {
                return Ok(Released::NotHeld);
            };
            // One may have been seen since the caller looked.
            if row.epoch.max(row.seen_epoch) >= to.epoch {
                return Ok(Released::Behind);
            }
            // From here on an operator decides.
            quorum_check::end(&mut *tx).await?;
            query("update counter set ceiling = ceiling + $2 * step where partition_id = $1")
                .bind(id)
                .bind(signed(margin, "margin")?)
                .execute(&mut *tx)
                .await?;
            lost::spend(&mut *tx, to.partition, now_us).await?;
            // The epoch before may be unclosed too, where the ledger went back to a recovery.
            let unclosed = row.epoch.saturating_sub(1)..=row.epoch;
            partitions::close_held(&mut *tx, to.partition, unclosed, Closing::Ceiling, now_us)
                .await?;
            query(
                "update partition set epoch = $2, state = 'open', owner = 'none', incarnation =
                 null,
                 last_closing = 'ceiling', last_ceiling_epoch = $2 - 1, lifted_epoch = $2 - 1,
                 seen_epoch = 0,
                 vouched_epoch = 0, actor = null, cause = 'the ledger was restored',
                 changed_at_us = $3 where partition_id = $1",
            )
            .bind(id)
            .bind(epoch)
            .bind(now_us)
            .execute(&mut *tx)
            .await?;
            commit(tx).await?;
            Ok(Released::Released)
        })
        .await
    }
}

async fn journal_again(
    store: &Store,
    node: NodeId,
    entries: &[Entry],
) -> Result<Appended, LedgerError> {
    let now_us = store.clock.now_us();
    let mut tx = store.begin_unfenced().await?;
    let (found, homes) = found_by_name(&mut *tx, node, entries.to_vec(), now_us).await?;
    let found: Vec<&Entry> = found.iter().collect();
    let writing = store.writing(node, now_us);
    let write_mode = (EntrySource::Teller, WriteMode::Judged);
    let appended = journaling::journal(&mut *tx, &writing, &found, write_mode).await?;
    commit(tx).await?;
    Ok(Appended { homes, ..appended })
}

/// See [`crate::Ledger::lift`].
pub(crate) async fn lift(
    store: &Store,
    partition: u32,
    node: NodeId,
    lifts: &[Lift],
) -> Result<u64, LedgerError> {
    let now_us = store.clock.now_us();
    let mut tx = store.begin().await?;
    must_be_held(&partitions::share(&mut *tx, partition).await?.state, partition)?;
    let mut known = Definitions::default();
    let mut order = Vec::with_capacity(lifts.len());
    for Lift { series_id, serial, key, value } in lifts.iter().cloned() {
        order.push((known.spec(&mut *tx, (series_id, serial, key)).await?, value));
    }
    order.sort_by(|(a, _), (b, _)| seed::name(a).cmp(&seed::name(b)));
    let mut lifted = 0;
    for (spec, value) in order {
        let found = lock_or_create_at_home(&mut *tx, partition, node, &spec, now_us).await?;
        let counter = found.counter;
        must_go_on_above(&mut *tx, partition, &counter, value).await?;
        let done = query("update counter set ceiling = $2 where counter_id = $1 and ceiling < $2")
            .bind(counter.counter_id)
            .bind(value)
            .execute(&mut *tx)
            .await?;
        lifted += done.rows_affected();
    }
    commit(tx).await?;
    Ok(lifted)
}

/// Refuses a locked counter that lives in another partition and is counted there again: a ceiling
/// would not keep it from issued numbers. While that partition is held, or the counter has not been
/// touched since, its next touch goes on above its ceiling.
async fn must_go_on_above(
    conn: &mut Conn,
    partition: u32,
    counter: &Counter,
    value: i64,
) -> Result<(), LedgerError> {
    if counter.partition == partition || counter.taken >= value {
        return Ok(());
    }
    let home = partitions::read(conn, counter.partition).await?;
    let is_held = home.state == PartitionState::Held;
    if is_held || partitions::goes_on_above_ceiling(conn, counter, &home).await? {
        return Ok(());
    }
    let Counter { key, partition: home, .. } = counter;
    let why = "which counts it again: hold all partitions first, with \
               `numerator reconcile --ledger-restored --hold --apply`";
    Err(LedgerError::Refused(format!("counter {key} lives in partition {home} by now, {why}")))
}

fn must_be_held(state: &PartitionState, partition: u32) -> Result<(), LedgerError> {
    if *state == PartitionState::Held {
        return Ok(());
    }
    let why = "is not held; nothing is to be released";
    Err(LedgerError::Refused(format!("partition {partition} {why}")))
}
