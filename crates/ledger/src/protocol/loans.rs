//! Partitions that are lent to the database while counters are changed in them, and the end of a
//! loan whose lender has ended.

use numerator_runtime::node::NodeId;
use uuid::Uuid;

use crate::columns::{bytes, small, unsigned_small};
use crate::query::{query, query_scalar};
use crate::store::commit;
use crate::{Ledger, LedgerError};

impl Ledger {
    /// Lends a partition to the database, or takes it back: compare-and-set of the loan from one
    /// value to the other (`None`: not lent). False where it has another value.
    pub async fn lend(
        &self,
        partition: u32,
        change: [Option<Uuid>; 2],
    ) -> Result<bool, LedgerError> {
        self.lend_by(None, partition, change).await
    }

    /// The same by a node, without which the loan does not last ([`Ledger::take_back_loans`]).
    pub async fn lend_by(
        &self,
        lender: Option<NodeId>,
        partition: u32,
        [from, to]: [Option<Uuid>; 2],
    ) -> Result<bool, LedgerError> {
        self.write(async |store| {
            let id = |id: Option<Uuid>| id.map(|id| id.as_bytes().to_vec());
            let mut tx = store.begin().await?;
            let changed = query(
                "update partition set lent_to = $3, lender = $4
                 where partition_id = $1 and lent_to is not distinct from $2",
            )
            .bind(small(partition, "partition")?)
            .bind(id(from))
            .bind(id(to))
            .bind(lender.filter(|_| to.is_some()).map(|lender| bytes(&lender).to_vec()))
            .execute(&mut *tx)
            .await?;
            commit(tx).await?;
            Ok(changed.rows_affected() == 1)
        })
        .await
    }

    /// Takes back what was lent by nodes that have left or were adopted: they died, or lost the
    /// ledger, before they could. Returns the partitions. A process that works on with such a loan
    /// is stopped by the rows that it changes (F4): an import refuses what Redis owns.
    pub async fn take_back_loans(&self) -> Result<Vec<u32>, LedgerError> {
        self.write(async |store| {
            let mut tx = store.begin().await?;
            let taken: Vec<i32> = query_scalar(
                "update partition set lent_to = null, lender = null
                 where lender is not null and exists (select 1 from node
                 where node.node_id = partition.lender
                 and (node.left_at_us is not null or node.adopted_at_us is not null))
                 returning partition_id",
            )
            .fetch_all(&mut *tx)
            .await?;
            commit(tx).await?;
            taken.into_iter().map(|id| unsigned_small(id, "partition_id")).collect()
        })
        .await
    }
}
