//! Partitions: reading them, and becoming a participant of an epoch. A joining node locks the
//! partition's row, so that a leader that bumps the epoch misses no participant (F5).

use numerator_runtime::node::NodeId;
use sqlx_macros::FromRow;

use crate::calls::CALL;
use crate::columns::{
    Word, bytes, ownership, read_node, read_owner, signed, small, unsigned, unsigned_small,
};
use crate::connections::Share;
use crate::dialect::Conn;
use crate::fetch::On;
use crate::nodes::marks;
use crate::query::{query, query_as, query_scalar};
use crate::store::commit;
use crate::{At, Closing, Counter, Ledger, LedgerError, Partition, PartitionState, Wanted};

impl Ledger {
    /// All partitions.
    pub async fn partitions(&self) -> Result<Vec<Partition>, LedgerError> {
        self.read(async |reader| list(reader).await).await
    }

    /// All partitions, in the incarnation in which a node registered, over a connection that waits
    /// for nothing else.
    ///
    /// # Errors
    /// `WentBack` in any other one.
    pub async fn partitions_as(&self, node: NodeId) -> Result<Vec<Partition>, LedgerError> {
        self.call(CALL.of(Share::Watch), async |store| {
            let mut tx = store.begin_reading_as(node).await?;
            let rows = list(&mut *tx).await?;
            tx.commit().await?;
            Ok(rows)
        })
        .await
    }

    /// Makes the node a participant of the epoch: compare-and-set under the partition's row lock,
    /// true only while the ledger shows that epoch `open` (F5).
    pub async fn participate(&self, at: At, node: NodeId) -> Result<bool, LedgerError> {
        self.write(async |store| {
            let (partition, epoch) = ownership(at)?;
            let mut tx = store.begin_as(node).await?;
            let open: Option<i32> = query_scalar(
                "select partition_id from partition
                 where partition_id = $1 and epoch = $2 and state = 'open'",
            )
            .for_update()
            .bind(partition)
            .bind(epoch)
            .fetch_optional(&mut *tx)
            .await?;
            if open.is_none() {
                return Ok(false);
            }
            marks::must_be_remembered(store, &mut *tx, node).await?;
            let alive: Option<i64> = query_scalar(
                "select beat from node
                 where node_id = $1 and left_at_us is null and adopted_at_us is null",
            )
            .for_share()
            .bind(bytes(&node))
            .fetch_optional(&mut *tx)
            .await?;
            if alive.is_none() {
                return Err(LedgerError::NodeGone(node));
            }
            query(
                "insert into participant (partition_id, epoch, node_id, state, changed_at_us)
                 values ($1, $2, $3, 'joined', $4) on conflict do nothing",
            )
            .bind(partition)
            .bind(epoch)
            .bind(bytes(&node))
            .bind(store.clock.now_us())
            .execute(&mut *tx)
            .await?;
            // Adopted or left for this epoch: it may not come back into it.
            let state: String = query_scalar(
                "select state from participant
                 where partition_id = $1 and epoch = $2 and node_id = $3",
            )
            .bind(partition)
            .bind(epoch)
            .bind(bytes(&node))
            .fetch_one(&mut *tx)
            .await?;
            commit(tx).await?;
            Ok(matches!(&*state, "joined" | "acknowledged"))
        })
        .await
    }
}

/// All partitions.
async fn list(on: impl Into<On<'_>>) -> Result<Vec<Partition>, LedgerError> {
    query_as::<PartitionRow>(
        "select partition_id, epoch, state, owner, incarnation, last_closing,
         last_ceiling_epoch, lifted_epoch, actor, cause, wanted, lent_to,
         lender, tall_epoch, seen_epoch, vouched_epoch, changed_at_us
         from partition order by partition_id",
    )
    .fetch_all_into(on)
    .await
}

/// Reads a partition's row without locking it. Good for what only rises (its epoch, what was
/// lifted); never a fence.
pub(crate) async fn read(conn: &mut Conn, partition: u32) -> Result<Partition, LedgerError> {
    let row = query_as(
        "select partition_id, epoch, state, owner, incarnation, last_closing,
         last_ceiling_epoch, lifted_epoch, actor, cause, wanted, lent_to,
         lender, tall_epoch, seen_epoch, vouched_epoch, changed_at_us
         from partition where partition_id = $1",
    )
    .bind(small(partition, "partition")?)
    .fetch_optional(conn)
    .await?;
    found(row, partition)
}

/// Reads a partition's row and keeps it as it is until the transaction ends.
pub(crate) async fn share(conn: &mut Conn, partition: u32) -> Result<Partition, LedgerError> {
    let row = query_as(
        "select partition_id, epoch, state, owner, incarnation, last_closing,
         last_ceiling_epoch, lifted_epoch, actor, cause, wanted, lent_to,
         lender, tall_epoch, seen_epoch, vouched_epoch, changed_at_us
         from partition where partition_id = $1",
    )
    .for_share()
    .bind(small(partition, "partition")?)
    .fetch_optional(conn)
    .await?;
    found(row, partition)
}

/// A partition's row while it is locked.
pub(crate) struct LockedRow {
    pub(crate) partition: u32,
    pub(crate) epoch: u64,
    pub(crate) state: PartitionState,
    pub(crate) seen_epoch: u64,
}

impl LockedRow {
    /// Whether a higher epoch of it was seen.
    pub(crate) fn is_behind(&self, seen: &[At]) -> bool {
        seen.iter().any(|at| at.partition == self.partition && at.epoch > self.epoch)
    }
}

/// The columns of [`LockedRow`].
#[derive(FromRow)]
struct LockedColumns {
    partition_id: i32,
    epoch: i64,
    state: String,
    seen_epoch: i64,
}

impl TryFrom<LockedColumns> for LockedRow {
    type Error = LedgerError;

    fn try_from(row: LockedColumns) -> Result<Self, LedgerError> {
        Ok(LockedRow {
            partition: unsigned_small(row.partition_id, "partition_id")?,
            epoch: unsigned(row.epoch, "partition.epoch")?,
            state: PartitionState::read(&row.state)?,
            seen_epoch: unsigned(row.seen_epoch, "partition.seen_epoch")?,
        })
    }
}

/// Locks all partitions in order: a hold of one is a hold of all, and two may run at once.
pub(crate) async fn lock_all(conn: &mut Conn) -> Result<Vec<LockedRow>, LedgerError> {
    query_as::<LockedColumns>(
        "select partition_id, epoch, state, seen_epoch from partition order by partition_id",
    )
    .for_update()
    .fetch_all_into(conn)
    .await
}

fn found(row: Option<PartitionRow>, partition: u32) -> Result<Partition, LedgerError> {
    row.ok_or_else(|| no_such(partition))?.try_into()
}

fn no_such(partition: u32) -> LedgerError {
    let why = "the ledger has no such partition; use the ledger's own number of partitions";
    LedgerError::Refused(format!("partition {partition}: {why}"))
}

/// Whether a partition is held: then everything is evidence.
pub(crate) async fn is_any_held(conn: &mut Conn) -> Result<bool, LedgerError> {
    let held: Option<i32> =
        query_scalar("select partition_id from partition where state = 'held' limit 1")
            .fetch_optional(conn)
            .await?;
    Ok(held.is_some())
}

/// How an epoch was closed; `None` while it is not.
pub(crate) async fn closing(
    conn: &mut Conn,
    partition: u32,
    epoch: u64,
) -> Result<Option<Closing>, LedgerError> {
    let word: Option<String> =
        query_scalar("select closing from closed_epoch where partition_id = $1 and epoch = $2")
            .bind(small(partition, "partition")?)
            .bind(signed(epoch, "epoch")?)
            .fetch_optional(conn)
            .await?;
    word.as_deref().map(Closing::read).transpose()
}

/// Whether a counter of an epoch that is over goes on above its ceiling.
pub(crate) async fn goes_on_above_ceiling(
    conn: &mut Conn,
    counter: &Counter,
    home: &Partition,
) -> Result<bool, LedgerError> {
    Ok(match home.is_above_ceiling(counter.epoch) {
        Some(known) => known,
        None => closing(conn, home.partition, counter.epoch).await? != Some(Closing::Exact),
    })
}

/// Notes how epochs of a held partition are closed, but for those that were closed before.
pub(crate) async fn close_held(
    conn: &mut Conn,
    partition: u32,
    epochs: std::ops::RangeInclusive<u64>,
    closing: Closing,
    now_us: i64,
) -> Result<(), LedgerError> {
    for epoch in epochs {
        query(
            "insert into closed_epoch (partition_id, epoch, closing, closed_at_us)
             values ($1, $2, $3, $4) on conflict do nothing",
        )
        .bind(small(partition, "partition")?)
        .bind(signed(epoch, "epoch")?)
        .bind(closing.word())
        .bind(now_us)
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
}

/// The columns of a partition.
#[derive(FromRow)]
struct PartitionRow {
    partition_id: i32,
    epoch: i64,
    state: String,
    owner: String,
    incarnation: Option<String>,
    last_closing: Option<String>,
    last_ceiling_epoch: i64,
    lifted_epoch: i64,
    actor: Option<Vec<u8>>,
    cause: String,
    wanted: String,
    lent_to: Option<Vec<u8>>,
    lender: Option<Vec<u8>>,
    tall_epoch: i64,
    seen_epoch: i64,
    vouched_epoch: i64,
    changed_at_us: i64,
}

impl TryFrom<PartitionRow> for Partition {
    type Error = LedgerError;

    fn try_from(row: PartitionRow) -> Result<Self, LedgerError> {
        let state = PartitionState::read(&row.state)?;
        let node = |id: Option<Vec<u8>>, column| id.map(|id| read_node(&id, column)).transpose();
        Ok(Partition {
            partition: unsigned_small(row.partition_id, "partition_id")?,
            epoch: unsigned(row.epoch, "partition.epoch")?,
            state,
            owner: read_owner(&row.owner, row.incarnation)?,
            last_closing: row.last_closing.as_deref().map(Closing::read).transpose()?,
            last_ceiling_epoch: unsigned(row.last_ceiling_epoch, "last_ceiling_epoch")?,
            lifted_epoch: unsigned(row.lifted_epoch, "lifted_epoch")?,
            actor: node(row.actor, "partition.actor")?.filter(|_| state != PartitionState::Open),
            cause: row.cause,
            wanted: Wanted::read(&row.wanted)?,
            is_lent: row.lent_to.is_some(),
            lender: node(row.lender, "partition.lender")?,
            tall_epoch: unsigned(row.tall_epoch, "partition.tall_epoch")?,
            seen_epoch: unsigned(row.seen_epoch, "partition.seen_epoch")?,
            vouched_epoch: unsigned(row.vouched_epoch, "partition.vouched_epoch")?,
            changed_at_us: row.changed_at_us,
        })
    }
}
