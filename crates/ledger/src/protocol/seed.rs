//! The first touch of a counter in an epoch: where it goes on. Losses of the closed epoch are found
//! in the background, unless a few rows show them: a start never waits for the length of an epoch.

use numerator_runtime::node::NodeId;

use crate::calls::SEARCH;
use crate::columns::{self, bytes, ownership, read_node, signed};
use crate::counters::table::{self, Resolved, lock_all, lock_or_create};
use crate::dialect::Conn;
use crate::nodes::marks;
use crate::protocol::partitions;
use crate::protocol::unsettled::{self, START_ROWS_MAX};
use crate::query::query;
use crate::register::gaps::Loss;
use crate::store::{Store, commit};
use crate::{
    At, Counter, CounterSpec, GapReason, Ledger, LedgerError, Owner, Partition, PartitionState,
    SeedOutcome, progression,
};

impl Ledger {
    /// Resolves counters at their first touch in an epoch, all in one transaction: computes each
    /// start by the closing rule ([`Partition::is_above_ceiling`]: above the ceiling, else after
    /// `taken`), and writes start, `taken` and ceiling under this epoch. Gaps of the closed one are
    /// registered as far as a few rows show them; the rest is left to
    /// [`crate::Ledger::settle_slice`]. Waits briefly for each lock: a `LockTimeout` names the
    /// counter that another transaction holds.
    pub async fn seed(
        &self,
        at: At,
        node: NodeId,
        specs: &[CounterSpec],
    ) -> Result<Vec<SeedOutcome>, LedgerError> {
        self.call(SEARCH.named("seed"), async |store| seed(store, at, node, specs).await).await
    }

    /// Settles a counter whose epoch is closed as its next first touch would, so that `verify` and
    /// `gaps` see untouched counters too (F17). Does nothing to a counter of the current epoch, to
    /// one that nothing was taken from, nor to one whose partition is held.
    pub async fn settle(&self, counter_id: i64) -> Result<(), LedgerError> {
        self.search(async |store| {
            let mut tx = store.begin().await?;
            // Before the counter, as all callers do. A lift of a held ledger would be undone.
            let home = table::partition_of(&mut *tx, counter_id).await?;
            let partition = partitions::share(&mut *tx, home).await?;
            if partition.state == PartitionState::Held {
                return Ok(());
            }
            let locked = lock_all(&mut *tx, &[counter_id]).await?;
            let Some(counter) = locked.first().filter(|counter| counter.partition == home) else {
                return Err(LedgerError::Conflict(format!("counter {counter_id} has moved")));
            };
            if counter.is_settled() {
                return Ok(());
            }
            if partitions::closing(&mut *tx, home, counter.epoch).await?.is_none() {
                return Ok(());
            }
            settle_locked(&mut *tx, counter, &partition, store.clock.now_us()).await?;
            commit(tx).await
        })
        .await
    }
}

/// See [`crate::Ledger::seed`].
pub(crate) async fn seed(
    store: &Store,
    at: At,
    node: NodeId,
    specs: &[CounterSpec],
) -> Result<Vec<SeedOutcome>, LedgerError> {
    let now_us = store.clock.now_us();
    let mut order: Vec<usize> = (0..specs.len()).collect();
    order.sort_by_key(|index| name(&specs[*index]));
    let mut outcomes = vec![None; specs.len()];
    let mut toucher = Toucher::new(at, node, now_us, None);
    let mut tx = store.begin_brief(Some(node)).await?;
    marks::must_be_remembered(store, &mut *tx, node).await?;
    for index in order {
        let spec = &specs[index];
        let resolved = lock_or_create(&mut *tx, at, node, spec, now_us)
            .await
            .map_err(|error| error.at_counter(spec.name()))?;
        outcomes[index] = Some(if resolved.counter.epoch == at.epoch {
            already(&resolved)?
        } else {
            let touched = toucher.touch(&mut *tx, &resolved.counter, spec).await?;
            SeedOutcome::Seeded {
                counter_id: touched.counter_id,
                value: touched.taken,
                ceiling: touched.ceiling,
            }
        });
    }
    // Also for a batch of counters that were all there: the answer must be of the current epoch.
    must_be_open(&partitions::read(&mut *tx, at.partition).await?, at)?;
    commit(tx).await?;
    Ok(outcomes.into_iter().flatten().collect())
}

/// What orders counters for locking, the same for every caller.
pub(crate) fn name(spec: &CounterSpec) -> (i64, &str, &str) {
    (spec.series_id, &spec.serial, &spec.key)
}

fn already(resolved: &Resolved) -> Result<SeedOutcome, LedgerError> {
    let counter = &resolved.counter;
    Ok(SeedOutcome::Already {
        counter_id: counter.counter_id,
        seeder: read_node(&resolved.seeded_by, "counter.seeded_by")?,
        value: counter.start,
        ceiling: counter.ceiling,
    })
}

/// Refuses a caller in whose epoch the partition is not open.
pub(crate) fn must_be_open(partition: &Partition, at: At) -> Result<(), LedgerError> {
    let open = partition.epoch == at.epoch && partition.state == PartitionState::Open;
    if open { Ok(()) } else { Err(LedgerError::fenced(at)) }
}

/// The node that touches counters of older epochs, and the epoch for which it does.
#[derive(Clone)]
pub(crate) struct Toucher {
    pub(crate) at: At,
    pub(crate) node: NodeId,
    pub(crate) now_us: i64,
    /// The owner that the epoch must have, where the caller depends on it.
    pub(crate) owner: Option<Owner>,
    /// Rows of closed epochs that its transaction may still look at.
    rows_left: u32,
}

impl Toucher {
    /// Touches counters in one transaction; `owner` is the one that the epoch must have, where the
    /// caller depends on it.
    pub(crate) fn new(at: At, node: NodeId, now_us: i64, owner: Option<Owner>) -> Self {
        Toucher { at, node, now_us, owner, rows_left: START_ROWS_MAX }
    }

    /// Moves a locked counter of an older epoch into this one; what its own epoch lost is looked
    /// for, or noted as unsettled. Its ceiling leaves `spec.headroom` values.
    ///
    /// # Errors
    /// `Fenced` when the partition does not show this epoch open, or the counter is of a newer one.
    pub(crate) async fn touch(
        &mut self,
        conn: &mut Conn,
        counter: &Counter,
        spec: &CounterSpec,
    ) -> Result<Counter, LedgerError> {
        let (partition_id, epoch) = ownership(self.at)?;
        // The row's lock is held: what the partition says from now on about epochs older than
        // this one cannot change any more.
        let partition = partitions::read(conn, self.at.partition).await?;
        must_be_open(&partition, self.at)?;
        if self.owner.as_ref().is_some_and(|owner| *owner != partition.owner) {
            return Err(LedgerError::fenced(self.at));
        }
        let base = close(conn, counter, &partition, &mut self.rows_left, self.now_us).await?;
        let step = columns::step(spec.step)?;
        let ceiling = progression::ceiling(base, step, spec.headroom, spec.max);
        let moved = query(
            "update counter set epoch = $3, start_value = $4, taken = $4, ceiling = $5, step = $6,
             journaled = 0, seeded_by = $7, seeded_at_us = $8
             where counter_id = $1 and partition_id = $2 and epoch < $3",
        )
        .bind(counter.counter_id)
        .bind(partition_id)
        .bind(epoch)
        .bind(base)
        .bind(ceiling)
        .bind(step)
        .bind(bytes(&self.node))
        .bind(self.now_us)
        .execute(&mut *conn)
        .await?;
        if moved.rows_affected() == 0 {
            return Err(LedgerError::fenced(self.at));
        }
        Ok(Counter {
            epoch: self.at.epoch,
            start: base,
            taken: base,
            ceiling,
            step: spec.step,
            journaled: 0,
            ..counter.clone()
        })
    }
}

/// Begins to look for every value of the counter's own, closed epoch that nothing accounts for;
/// returns the value after which the counter goes on.
async fn close(
    conn: &mut Conn,
    counter: &Counter,
    partition: &Partition,
    rows_left: &mut u32,
    now_us: i64,
) -> Result<i64, LedgerError> {
    let is_lost = partitions::goes_on_above_ceiling(conn, counter, partition).await?;
    let (base, reason) = if is_lost {
        (counter.ceiling, GapReason::Unaccounted)
    } else {
        (counter.taken, GapReason::Discarded)
    };
    let step = signed(counter.step, "counter.step")?;
    let journaled = signed(counter.journaled, "counter.journaled")?;
    // Where the count says that nothing is missing up to `taken`, only what lies above is looked
    // at: the epoch may have been long.
    let whole = step.checked_mul(journaled) == Some(counter.taken - counter.start);
    let (after, journaled) = if whole { (counter.taken, 0) } else { (counter.start, journaled) };
    if after < base {
        let (counter_id, epoch) = (counter.counter_id, counter.epoch);
        let loss = Loss { counter_id, after, upto: base, step, reason, epoch };
        unsettled::begin(conn, loss, journaled, rows_left, now_us).await?;
    }
    Ok(base)
}

/// Begins to look for what a locked counter's own, closed epoch lost, and moves it on to where it
/// goes on. Returns that value.
pub(crate) async fn settle_locked(
    conn: &mut Conn,
    counter: &Counter,
    partition: &Partition,
    now_us: i64,
) -> Result<i64, LedgerError> {
    let mut rows_left = START_ROWS_MAX;
    let base = close(conn, counter, partition, &mut rows_left, now_us).await?;
    // The epoch stays the closed one: the next first touch must still be one.
    query(
        "update counter set start_value = $2, taken = $2, ceiling = $2, journaled = 0
         where counter_id = $1",
    )
    .bind(counter.counter_id)
    .bind(base)
    .execute(conn)
    .await?;
    Ok(base)
}
