//! Ceilings far above their counters, which a close at the ceiling would turn into large gaps.
//!
//! None of them is lowered while its epoch lasts: what Redis may give out by it is out of reach. An
//! epoch that was closed exact goes on from `taken`, and a counter that is settled has no ceiling
//! of its own any more.

use numerator_runtime::node::NodeId;

use crate::columns::{bytes, ownership, signed, small};
use crate::counters::table::COLUMNS;
use crate::query::{QueryBuilder, query, query_scalar};
use crate::store::{Store, commit};
use crate::{At, Counter, CounterRow, Ledger, LedgerError};

/// How many numbers below a ceiling make it a tall one, at least.
pub const TALL_ROOM_MIN: u64 = 1_000;

/// Counters that one look shows, at most.
const LOOK_MAX: i64 = 1_000;

impl Ledger {
    /// Counters of a partition with so much room below their ceilings, at most a thousand, of any
    /// epoch. Looks at all counters: for a caller that knows that there may be some.
    pub async fn tall_counters(
        &self,
        partition: u32,
        room_min: u64,
    ) -> Result<Vec<Counter>, LedgerError> {
        self.search(async |store| {
            let mut tx = store.reader.begin().await?;
            tx.allow_long_search().await?;
            let mut query = QueryBuilder::new(COLUMNS);
            query.push("where partition_id = ").push_bind(small(partition, "partition")?);
            query.push(" and (ceiling - taken) / step >= ");
            query.push_bind(signed(room_min, "room")?);
            query.push(" limit ").push_bind(LOOK_MAX);
            let rows: Vec<CounterRow> = query.build().typed().fetch_all(&mut *tx).await?;
            tx.commit().await?;
            rows.into_iter().map(Counter::try_from).collect()
        })
        .await
    }

    /// Notes that none is left of a closed epoch and those before it, unless another one was raised
    /// since.
    pub async fn forget_tall(&self, of: At) -> Result<(), LedgerError> {
        self.write(async |store| {
            let (partition, epoch) = ownership(of)?;
            let mut tx = store.begin_brief(None).await?;
            query(
                "update partition set tall_epoch = 0
                 where partition_id = $1 and tall_epoch = $2 and epoch > $2",
            )
            .bind(partition)
            .bind(epoch)
            .execute(&mut *tx)
            .await?;
            commit(tx).await
        })
        .await
    }

    /// Whether only this node may send flights in an epoch: all others have left it.
    pub async fn takes_alone(&self, at: At, node: NodeId) -> Result<bool, LedgerError> {
        self.read(async |reader| {
            let (partition, epoch) = ownership(at)?;
            let others: i64 = query_scalar(
                "select count(*) from participant where partition_id = $1 and epoch = $2
                 and state = 'joined' and node_id <> $3",
            )
            .bind(partition)
            .bind(epoch)
            .bind(bytes(&node))
            .fetch_one(reader)
            .await?;
            Ok(others == 0)
        })
        .await
    }
}

/// Notes that an epoch has such a ceiling; nothing depends on it but the look for them. Apart from
/// the raise, which holds locks of counters: others lock the partition first.
pub(crate) async fn note(store: &Store, at: At) -> Result<(), LedgerError> {
    let (partition, epoch) = ownership(at)?;
    let noted: Option<i64> =
        query_scalar("select tall_epoch from partition where partition_id = $1")
            .bind(partition)
            .fetch_optional(&store.reader)
            .await?;
    if noted == Some(epoch) {
        return Ok(());
    }
    let mut tx = store.begin_brief(None).await?;
    query(
        "update partition set tall_epoch = $2
         where partition_id = $1 and epoch = $2 and tall_epoch <> $2",
    )
    .bind(partition)
    .bind(epoch)
    .execute(&mut *tx)
    .await?;
    commit(tx).await
}
