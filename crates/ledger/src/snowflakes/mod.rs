//! Leases of node numbers (F23). The lease's own row is the fence: its end rises in the transaction
//! that gives it to another node, and a holder moves it only while the row is its own. The result
//! of a call is committed; after an unknown outcome the ledger may show a later end than the holder
//! knows, never an earlier one.

pub(crate) mod lease;

use std::time::Duration;

use numerator_runtime::node::NodeId;
use sqlx_macros::FromRow;

use crate::calls::{CALL, noun};
use crate::columns::{bytes, read_node, unreadable};
use crate::dialect::Conn;
use crate::query::{query, query_as, query_scalar};
use crate::store::{Store, commit};
use crate::{HeldNumber, LedgerError, SNOWFLAKE_LEASE_MAX, SnowflakeLease};

noun!(
    /// Leases of the numbers that distinguish processes in snowflakes.
    Snowflakes,
    snowflakes
);

impl Snowflakes<'_> {
    /// The node numbers that nodes hold now, by number: those whose node has neither left nor was
    /// adopted.
    pub async fn held(self) -> Result<Vec<HeldNumber>, LedgerError> {
        self.call(CALL.uncounted(), async |store| held(store).await).await
    }

    /// Gives a node the free number that was used the longest time ago, from where its last holder
    /// ended (or `now_ms`, where that is later) and for so long; `None` while all are held. Not
    /// safe to repeat: after an unknown outcome a number stays held until the node has left.
    pub async fn lease(
        self,
        node: NodeId,
        now_ms: i64,
        lease: Duration,
    ) -> Result<Option<SnowflakeLease>, LedgerError> {
        self.call(CALL, async |store| take(store, node, now_ms, lease).await).await
    }

    /// Moves the end of a lease to `until_ms`, never back; the lease as it is then, or `None` where
    /// the holder no longer has it. Safe to repeat.
    pub async fn extend(
        self,
        lease: &SnowflakeLease,
        until_ms: i64,
    ) -> Result<Option<SnowflakeLease>, LedgerError> {
        self.write(async |store| {
            let mut tx = store.begin().await?;
            // An earlier end than the one that was committed: the ledger went back, and the number
            // may have been given away before it did.
            let extended = query_scalar(
                "update snowflake_lease set until_ms = case when until_ms < $4 then $4 else
                 until_ms end
                 where node_number = $1 and holder = $2 and until_ms >= $3 returning until_ms",
            )
            .bind(i32::from(lease.node_number))
            .bind(bytes(&lease.holder))
            .bind(lease.until_ms)
            .bind(until_ms)
            .fetch_optional(&mut *tx)
            .await?;
            commit(tx).await?;
            Ok(extended.map(|until_ms| SnowflakeLease { until_ms, ..*lease }))
        })
        .await
    }

    /// Ends a lease at `until_ms`, the first millisecond that was not used: the next holder need
    /// not wait for unused time. Does nothing where the holder no longer has it.
    pub async fn give_back(self, lease: &SnowflakeLease, until_ms: i64) -> Result<(), LedgerError> {
        self.write(async |store| {
            let mut tx = store.begin().await?;
            query(
                "update snowflake_lease set until_ms = $3
                 where node_number = $1 and holder = $2 and until_ms > $3",
            )
            .bind(i32::from(lease.node_number))
            .bind(bytes(&lease.holder))
            .bind(until_ms)
            .execute(&mut *tx)
            .await?;
            commit(tx).await
        })
        .await
    }
}

/// See [`crate::Snowflakes::held`].
async fn held(store: &Store) -> Result<Vec<HeldNumber>, LedgerError> {
    let rows: Vec<HeldRow> = query_as(
        "select l.node_number, l.holder, l.until_ms from snowflake_lease l
         join node n on n.node_id = l.holder
         where n.left_at_us is null and n.adopted_at_us is null order by l.node_number",
    )
    .fetch_all(&store.reader)
    .await?;
    let held = |row: HeldRow| {
        Ok(HeldNumber {
            node_number: number_of(row.node_number)?,
            holder: read_node(&row.holder, "snowflake_lease.holder")?,
            until_ms: row.until_ms,
        })
    };
    rows.into_iter().map(held).collect()
}

/// The columns of a lease.
#[derive(FromRow)]
struct HeldRow {
    node_number: i32,
    holder: Vec<u8>,
    until_ms: i64,
}

fn number_of(number: i32) -> Result<u16, LedgerError> {
    u16::try_from(number)
        .map_err(|_| unreadable("snowflake_lease.node_number", &number.to_string()))
}

/// See [`crate::Snowflakes::lease`].
async fn take(
    store: &Store,
    node: NodeId,
    now_ms: i64,
    lease: Duration,
) -> Result<Option<SnowflakeLease>, LedgerError> {
    let mut tx = store.begin().await?;
    // One taker after the other: each one sees the result of the one before.
    query("select 1 from snowflake_lease where node_number = 0")
        .for_update()
        .execute(&mut *tx)
        .await?;
    // Locked: its last holder may be awake, and move its end.
    let free: Option<(i32, i64)> = query_as(
        "select l.node_number, l.until_ms from snowflake_lease l
         where not exists (select 1 from node n where n.node_id = l.holder
         and n.left_at_us is null and n.adopted_at_us is null)
         order by l.until_ms, l.node_number limit 1",
    )
    .for_update()
    .fetch_optional(&mut *tx)
    .await?;
    let Some((node_number, until_ms)) = free else { return Ok(None) };
    let node_number = number_of(node_number)?;
    let from_ms = now_ms.max(until_ms);
    let until_ms = from_ms.saturating_add(millis(lease));
    query("update snowflake_lease set holder = $2, until_ms = $3 where node_number = $1")
        .bind(i32::from(node_number))
        .bind(bytes(&node))
        .bind(until_ms)
        .execute(&mut *tx)
        .await?;
    commit(tx).await?;
    Ok(Some(SnowflakeLease { node_number, holder: node, from_ms, until_ms }))
}

/// Moves every lease that is taken from now on beyond the times that a lease may have that the
/// ledger has forgotten.
pub(crate) async fn forget_none(conn: &mut Conn, now_us: i64) -> Result<(), LedgerError> {
    let until_ms = (now_us / 1_000).saturating_add(millis(SNOWFLAKE_LEASE_MAX));
    query("update snowflake_lease set until_ms = $1 where until_ms < $1")
        .bind(until_ms)
        .execute(conn)
        .await?;
    Ok(())
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
