//! Rows that answer no question any more: participations in epochs that were closed long ago, and
//! nodes that ended. Deletes a page at a time; a concurrent sweep finds less.
//!
//! The identity of a node stays when its row goes: it alone excuses that the row is missing (F37).
//! A node whose identity is missing has been forgotten, regardless of the reported times of sweeps.
//!
//! Kept at any age: a node that was never accounted for (it explains gaps, F17); the two newest
//! epochs with participants, for Redis may still name their nodes (F25, W1); and a node that a
//! participation or a lease names.

use crate::columns::{ownership, signed, unsigned};
use crate::dialect::Conn;
use crate::protocol::partitions;
use crate::query::{QueryBuilder, query, query_scalar};
use crate::store::commit;
use crate::{At, Ledger, LedgerError, Sweep, Swept};

/// Identities of a statement.
const NODES_MAX: usize = 100;

impl Ledger {
    /// Deletes a page of what ended long ago. Nothing while a partition is held: then everything is
    /// evidence. Safe to repeat.
    pub async fn sweep(&self, sweep: &Sweep) -> Result<Swept, LedgerError> {
        self.write(async |store| {
            let mut tx = store.begin().await?;
            if partitions::is_any_held(&mut *tx).await? {
                return Ok(Swept::default());
            }
            let swept = Swept {
                participants: participants(&mut *tx, sweep).await?,
                nodes: nodes(&mut *tx, sweep).await?,
            };
            if swept != Swept::default() {
                commit(tx).await?;
            }
            Ok(swept)
        })
        .await
    }

    /// The newest epoch of a partition that was closed before a moment; 0: none was. Counters that
    /// bear it, or an older one, in Redis have been cold since then.
    pub async fn closed_before(&self, partition: u32, before_us: i64) -> Result<u64, LedgerError> {
        self.write(async |store| {
            let (partition, _) = ownership(At { partition, epoch: 0 })?;
            let mut tx = store.begin_reading().await?;
            let epoch: Option<i64> = query_scalar(
                "select max(c.epoch) from closed_epoch c
                 join partition p on p.partition_id = c.partition_id
                 where c.partition_id = $1 and c.closed_at_us < $2 and p.state = 'open'",
            )
            .bind(partition)
            .bind(before_us)
            .fetch_one(&mut *tx)
            .await?;
            tx.commit().await?;
            unsigned(epoch.unwrap_or(0), "closed_epoch.epoch")
        })
        .await
    }
}

async fn participants(conn: &mut Conn, sweep: &Sweep) -> Result<u64, LedgerError> {
    let done = query(
        "delete from participant where (partition_id, epoch, node_id) in (
           select p.partition_id, p.epoch, p.node_id from participant p
           join closed_epoch c on c.partition_id = p.partition_id and c.epoch = p.epoch
           where c.closed_at_us < $1
           and p.state <> 'joined'
           and p.epoch < (select max(q.epoch) from participant q
             where q.partition_id = p.partition_id and q.epoch < (select max(r.epoch)
               from participant r where r.partition_id = p.partition_id))
           order by p.partition_id, p.epoch limit $2)",
    )
    .bind(sweep.ended_before_us)
    .bind(signed(u64::from(sweep.rows_max), "rows_max")?)
    .execute(conn)
    .await?;
    Ok(done.rows_affected())
}

async fn nodes(conn: &mut Conn, sweep: &Sweep) -> Result<u64, LedgerError> {
    let gone = query_scalar::<Vec<u8>>(
        "delete from node where node_id in (
           select n.node_id from node n
           where (n.left_at_us is not null or n.adopted_at_us is not null)
           and coalesce(n.left_at_us, 0) < $1
           and coalesce(n.adopted_at_us, 0) < $1
           and not exists (select 1 from participant p where p.node_id = n.node_id)
           and not exists (select 1 from snowflake_lease l where l.holder = n.node_id)
           limit $2) returning node_id",
    )
    .bind(sweep.ended_before_us)
    .bind(signed(u64::from(sweep.rows_max), "rows_max")?)
    .fetch_all(&mut *conn)
    .await?;
    for page in gone.chunks(NODES_MAX) {
        let mut kept = QueryBuilder::new("insert into swept_node (node_id) ");
        kept.push_values(page, |mut row, node| {
            row.push_bind(node.as_slice());
        });
        kept.push(" on conflict do nothing");
        kept.build().execute(&mut *conn).await?;
    }
    Ok(gone.len() as u64)
}
