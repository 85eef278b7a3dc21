//! One epoch ends and the next begins: bump, barrier, claim, open, hold. Each change is
//! compare-and-set on epoch and state in the transaction that locks the partition's row (F4, F6).

use numerator_runtime::node::NodeId;

use crate::columns::{
    Word, bytes, owner_columns, ownership, read_node, read_owner, small, unsigned,
};
use crate::dialect::Conn;
use crate::nodes::marks;
use crate::query::{query, query_as, query_scalar};
use crate::store::{commit, commit_alone};
use crate::{
    Acknowledged, At, Claim, ClosedEpoch, Closing, Ledger, LedgerError, Owner, PartitionState,
    Wanted,
};

impl Ledger {
    /// Begins the next epoch: `open` (or an `opening` that its author or the time-out of openings
    /// gave up) becomes `recovering` at `at.epoch + 1`. Compare-and-set on the epoch and state
    /// under the row lock; `None` when the partition is elsewhere by now. An epoch is not bumped
    /// again before the previous one was closed, so a `recovering` partition is never bumped.
    pub async fn bump(
        &self,
        at: At,
        from: PartitionState,
        node: NodeId,
        cause: &str,
    ) -> Result<Option<u64>, LedgerError> {
        self.write(async |store| {
            // The epoch before must be closed first (F6), and only an operator ends `held` (F9).
            if !matches!(from, PartitionState::Open | PartitionState::Opening) {
                return Ok(None);
            }
            let (partition, epoch) = ownership(at)?;
            let mut tx = store.begin_as(node).await?;
            let next: Option<i64> = query_scalar(
                "update partition set epoch = epoch + 1, state = 'recovering', actor = $4, cause
                 = $5,
                 changed_at_us = $6 where partition_id = $1 and epoch = $2 and state = $3
                 returning epoch",
            )
            .bind(partition)
            .bind(epoch)
            .bind(from.word())
            .bind(bytes(&node))
            .bind(cause)
            .bind(store.clock.now_us())
            .fetch_optional(&mut *tx)
            .await?;
            commit(tx).await?;
            next.map(|epoch| unsigned(epoch, "partition.epoch")).transpose()
        })
        .await
    }

    /// States that nodes have stopped using the epoch before `at.epoch`, and that all they handed
    /// out in it is in the journal: compare-and-set under the partition's row lock, done only while
    /// the ledger shows `at.epoch` `recovering`. Counts for that one epoch (F5). Safe to repeat.
    pub async fn acknowledge(
        &self,
        at: At,
        acknowledging: &[NodeId],
    ) -> Result<Acknowledged, LedgerError> {
        self.write(async |store| {
            let (partition, epoch) = ownership(at)?;
            let mut tx = match acknowledging.first() {
                Some(node) => store.begin_as(*node).await?,
                None => store.begin().await?,
            };
            if lock_recovering(&mut *tx, at).await?.is_none() {
                return Ok(Acknowledged::TooLate);
            }
            for node in acknowledging {
                // What was committed and forgotten is not in the journal: no node may state that it
                // is.
                match marks::must_be_remembered(store, &mut *tx, *node).await {
                    Err(LedgerError::WentBack(_)) => return Ok(Acknowledged::Forgotten),
                    remembered => remembered?,
                }
                let known = query(
                    "update participant set
                     state = case when state = 'joined' then 'acknowledged' else state end,
                     changed_at_us = $4 where partition_id = $1 and epoch = $2 and node_id = $3",
                )
                .bind(partition)
                .bind(epoch - 1)
                .bind(bytes(node))
                .bind(store.clock.now_us())
                .execute(&mut *tx)
                .await?;
                if known.rows_affected() == 0 {
                    return Ok(Acknowledged::Forgotten);
                }
            }
            commit(tx).await?;
            Ok(Acknowledged::Taken)
        })
        .await
    }

    /// Closes the epoch before `at.epoch` and claims the opening of `at.epoch`: `recovering` →
    /// `opening` for an owner in Redis, straight to `open` for the database (F6). Closes exact
    /// where every participant has acknowledged, left or was adopted, or where the ledger was the
    /// owner; else at the ceiling where the caller says that it has waited long enough. Only the
    /// caller that got `Closed` may send `open`, once. Not safe to repeat: after an unknown outcome
    /// a repeat gets `Elsewhere`, and the epoch is given up like any `opening` not reported done.
    pub async fn claim_open(
        &self,
        at: At,
        node: NodeId,
        at_ceiling: bool,
        owner: &Owner,
    ) -> Result<Claim, LedgerError> {
        self.write(async |store| {
            let (word, incarnation) = owner_columns(owner);
            let state = match owner {
                Owner::Redis { .. } => PartitionState::Opening,
                Owner::Database => PartitionState::Open,
                Owner::None => {
                    let why = "owner: an epoch is opened for Redis or for the database";
                    return Err(LedgerError::Refused(why.into()));
                }
            };
            let (partition, epoch) = ownership(at)?;
            let now_us = store.clock.now_us();
            let mut tx = store.begin_as(node).await?;
            marks::must_be_remembered(store, &mut *tx, node).await?;
            let Some(before) = lock_recovering(&mut *tx, at).await? else {
                return Ok(Claim::Elsewhere);
            };
            // What the ledger owned was journaled in the transaction that took it (F4).
            let unaccounted = match before {
                Owner::None | Owner::Database => Vec::new(),
                Owner::Redis { .. } => joined(&mut *tx, at).await?,
            };
            let closing = match (unaccounted.is_empty(), at_ceiling) {
                (true, _) => Closing::Exact,
                (false, true) => Closing::Ceiling,
                (false, false) => return Ok(Claim::Waiting(unaccounted)),
            };
            query(
                "update partition set state = $3, owner = $4, incarnation = $5, last_closing = $6,
                 last_ceiling_epoch = case when $6 = 'ceiling' then epoch - 1 else
                 last_ceiling_epoch end,
                 actor = $7, changed_at_us = $8 where partition_id = $1 and epoch = $2",
            )
            .bind(partition)
            .bind(epoch)
            .bind(state.word())
            .bind(word)
            .bind(incarnation)
            .bind(closing.word())
            .bind(bytes(&node))
            .bind(now_us)
            .execute(&mut *tx)
            .await?;
            query(
                "insert into closed_epoch (partition_id, epoch, closing, closed_at_us)
                 values ($1, $2, $3, $4)",
            )
            .bind(partition)
            .bind(epoch - 1)
            .bind(closing.word())
            .bind(now_us)
            .execute(&mut *tx)
            .await?;
            commit(tx).await?;
            Ok(Claim::Closed(closing))
        })
        .await
    }

    /// `opening` → `open` by the node that claimed it.
    pub async fn opened(&self, at: At, node: NodeId) -> Result<bool, LedgerError> {
        self.write(async |store| {
            let (partition, epoch) = ownership(at)?;
            let mut tx = store.begin_as(node).await?;
            // The author stays in the row, so that a repeat after a lost answer gets the same
            // answer.
            let done = query(
                "update partition set state = 'open', changed_at_us = $4
                 where partition_id = $1 and epoch = $2 and actor = $3 and owner = 'redis'
                 and state in ('opening', 'open')",
            )
            .bind(partition)
            .bind(epoch)
            .bind(bytes(&node))
            .bind(store.clock.now_us())
            .execute(&mut *tx)
            .await?;
            commit(tx).await?;
            Ok(done.rows_affected() == 1)
        })
        .await
    }

    /// Sets the wanted owner of a partition (or of all) from its next epoch on. Returns how many
    /// rows changed. The nodes see it with their next heartbeat. `Auto` also ends what was lent.
    pub async fn want(&self, partition: Option<u32>, wanted: Wanted) -> Result<u64, LedgerError> {
        self.write(async |store| {
            let one = partition.map(|partition| small(partition, "partition")).transpose()?;
            let mut tx = store.begin().await?;
            let changed = query(
                "update partition
                 set wanted = $2, lent_to = case when $2 = 'auto' then null else lent_to end,
                 lender = case when $2 = 'auto' then null else lender end
                 where (wanted <> $2 or $2 = 'auto' and lent_to is not null)
                 and (cast($1 as integer) is null or partition_id = $1)",
            )
            .bind(one)
            .bind(wanted.word())
            .execute(&mut *tx)
            .await?;
            commit_alone(store, tx).await?;
            Ok(changed.rows_affected())
        })
        .await
    }

    /// The first closed epoch from `at.epoch` on, or the first that was closed in a certain way.
    pub async fn closed_epoch(
        &self,
        at: At,
        closing: Option<Closing>,
    ) -> Result<Option<ClosedEpoch>, LedgerError> {
        self.read(async |reader| {
            let (partition, epoch) = ownership(at)?;
            let row: Option<(i64, String, i64)> = query_as(
                "select epoch, closing, closed_at_us from closed_epoch
                 where partition_id = $1 and epoch >= $2
                 and (cast($3 as text) is null or closing = $3) order by epoch limit 1",
            )
            .bind(partition)
            .bind(epoch)
            .bind(closing.map(Word::word))
            .fetch_optional(reader)
            .await?;
            let Some((epoch, closing, closed_at_us)) = row else { return Ok(None) };
            let missing: Vec<(Vec<u8>, String)> = query_as(
                "select p.node_id, coalesce(n.label, '') as label from participant p
                 left join node n on n.node_id = p.node_id
                 where p.partition_id = $1 and p.epoch = $2 and p.state = 'joined' order by
                 p.node_id",
            )
            .bind(partition)
            .bind(epoch)
            .fetch_all(reader)
            .await?;
            let named = |(node, label): (Vec<u8>, String)| -> Result<_, LedgerError> {
                Ok((read_node(&node, "participant.node_id")?, label))
            };
            Ok(Some(ClosedEpoch {
                at: At { epoch: unsigned(epoch, "closed_epoch.epoch")?, ..at },
                closing: Closing::read(&closing)?,
                closed_at_us,
                missing: missing.into_iter().map(named).collect::<Result<_, _>>()?,
            }))
        })
        .await
    }

    /// How many epochs of a partition were closed since then, counted up to 100.
    pub async fn closings(&self, partition: u32, since_us: i64) -> Result<u64, LedgerError> {
        self.read(async |reader| {
            let count: i64 = query_scalar(
                "select count(*) from closed_epoch where partition_id = $1 and closed_at_us >= $2
                 and epoch > 0 and epoch >= (select epoch - 100 from partition where partition_id
                 = $1)",
            )
            .bind(small(partition, "partition")?)
            .bind(since_us)
            .fetch_one(reader)
            .await?;
            unsigned(count, "closings")
        })
        .await
    }

    /// How many numbers an epoch closed at the ceiling leaves unaccounted at most, over all
    /// counters that were touched in it.
    pub async fn lost_at_most(&self, closed: At) -> Result<u64, LedgerError> {
        self.search(async |store| {
            let (partition, epoch) = ownership(closed)?;
            let mut tx = store.reader.begin().await?;
            tx.allow_long_search().await?;
            // Counters that were touched since have left the epoch; their loss is in the gap
            // register.
            let numbers: i64 = query_scalar(
                "select cast(coalesce(sum(numbers), 0) as bigint) from (
                   select (ceiling - taken) / step as numbers from counter
                     where partition_id = $1 and epoch = $2
                   union all select (g.last_value - g.first_value) / g.step + 1 from gap g
                     join counter c on c.counter_id = g.counter_id
                     where c.partition_id = $1 and g.epoch = $2 and c.epoch > $2
                     and g.reason = 'unaccounted') as lost",
            )
            .bind(partition)
            .bind(epoch)
            .fetch_one(&mut *tx)
            .await?;
            tx.commit().await?;
            unsigned(numbers, "lost_at_most")
        })
        .await
    }
}

/// Locks the partition's row while it shows this epoch `recovering`; the owner of the epoch before.
async fn lock_recovering(conn: &mut Conn, at: At) -> Result<Option<Owner>, LedgerError> {
    let (partition, epoch) = ownership(at)?;
    let row: Option<(String, Option<String>)> = query_as(
        "select owner, incarnation from partition
         where partition_id = $1 and epoch = $2 and state = 'recovering'",
    )
    .for_update()
    .bind(partition)
    .bind(epoch)
    .fetch_optional(conn)
    .await?;
    row.map(|(owner, incarnation)| read_owner(&owner, incarnation)).transpose()
}

/// Participants of the epoch before that may still hold what the journal does not have.
async fn joined(conn: &mut Conn, at: At) -> Result<Vec<NodeId>, LedgerError> {
    let (partition, epoch) = ownership(at)?;
    let rows: Vec<Vec<u8>> = query_scalar(
        "select node_id from participant
         where partition_id = $1 and epoch = $2 and state = 'joined' order by node_id",
    )
    .bind(partition)
    .bind(epoch - 1)
    .fetch_all(conn)
    .await?;
    rows.iter().map(|node| read_node(node, "participant.node_id")).collect()
}
