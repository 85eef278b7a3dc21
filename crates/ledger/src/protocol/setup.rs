//! The deployment: what is written once per ledger.

use numerator_runtime::node::NodeId;
use sqlx_macros::FromRow;

use crate::columns::{HASH, bytes, read_uuid, signed, small, unsigned, unsigned_small};
use crate::dialect::Conn;
use crate::query::{query, query_as, query_scalar};
use crate::store::commit_alone;
use crate::{Deployment, Ledger, LedgerError, Series};

impl Ledger {
    /// Has a registered node agree with all others on its idempotency window (F29). The first one
    /// writes it; one that differs is refused, unless it is to `change` it and no other is there.
    pub async fn agree_window(
        &self,
        node: NodeId,
        window_ms: u64,
        may_change: bool,
    ) -> Result<(), LedgerError> {
        self.write(async |store| {
            let mut tx = store.begin().await?;
            // A later node sees this one, which is registered: of two that differ one is refused.
            let there: Option<i64> = query_scalar("select idempotency_window_ms from deployment")
                .for_update()
                .fetch_one(&mut *tx)
                .await?;
            if there == Some(signed(window_ms, "window")?) {
                return Ok(());
            }
            if let Some(there) = there {
                let others: i64 = query_scalar(
                    "select count(*) from node
                     where left_at_us is null and adopted_at_us is null and node_id <> $1",
                )
                .bind(bytes(&node))
                .fetch_one(&mut *tx)
                .await?;
                if others > 0 || !may_change {
                    let [here, there] =
                        [window_ms, unsigned(there, "deployment.idempotency_window_ms")?]
                            .map(spelled);
                    let setting = "idempotency.window";
                    return Err(LedgerError::SettingsDiffer { setting, here, there });
                }
            }
            query("update deployment set idempotency_window_ms = $1")
                .bind(signed(window_ms, "window")?)
                .execute(&mut *tx)
                .await?;
            commit_alone(store, tx).await
        })
        .await
    }

    /// What the ledger was set up with; none where it was not yet. Writes nothing.
    pub async fn stored_deployment(&self) -> Result<Option<Deployment>, LedgerError> {
        self.read(async |reader| {
            query_as::<DeploymentRow>(DEPLOYMENT).fetch_optional_into(reader).await
        })
        .await
    }

    /// Reads the deployment, writing `wanted` first where the ledger has none (with a row for each
    /// partition, that of gapless series included: epoch 0, state `open`, owner `none`).
    ///
    /// # Errors
    /// `SettingsDiffer` when the ledger has another number of partitions, hash or prefix (F8).
    pub async fn deployment(&self, wanted: &Deployment) -> Result<Deployment, LedgerError> {
        self.write(async |store| {
            let mut tx = store.begin().await?;
            // A caller that may only read a ledger finds it set up.
            let there: Option<i32> =
                query_scalar("select partitions from deployment").fetch_optional(&mut *tx).await?;
            if there.is_none() {
                write(&mut *tx, wanted, store.clock.now_us()).await?;
            }
            let row: DeploymentRow = query_as(DEPLOYMENT).fetch_one(&mut *tx).await?;
            let hash = row.hash.clone();
            let there = Deployment::try_from(row)?;
            let differ = |setting, here: String, there: String| {
                if here == there {
                    Ok(())
                } else {
                    Err(LedgerError::SettingsDiffer { setting, here, there })
                }
            };
            differ("partitions", wanted.partitions.to_string(), there.partitions.to_string())?;
            differ("redis.prefix", wanted.prefix.clone(), there.prefix.clone())?;
            differ("hash", HASH.to_owned(), hash)?;
            commit_alone(store, tx).await?;
            Ok(there)
        })
        .await
    }
}

impl Series<'_> {
    /// Notes that users have brought series of their own, whatever becomes of these: from then on
    /// the ledger is given no others.
    pub async fn note_own(self) -> Result<(), LedgerError> {
        self.write(async |store| {
            let now_us = store.clock.now_us();
            let mut tx = store.begin().await?;
            let noted =
                query("update deployment set own_series_at_us = $1 where own_series_at_us is null")
                    .bind(now_us)
                    .execute(&mut *tx)
                    .await?;
            if noted.rows_affected() == 0 {
                return Ok(());
            }
            commit_alone(store, tx).await
        })
        .await
    }

    /// Whether users have brought series of their own.
    pub async fn has_own(self) -> Result<bool, LedgerError> {
        self.read(async |reader| {
            let noted: Option<Option<i64>> =
                query_scalar("select own_series_at_us from deployment")
                    .fetch_optional(reader)
                    .await?;
            Ok(noted.flatten().is_some())
        })
        .await
    }
}

const DEPLOYMENT: &str = "select deployment_id, partitions, prefix, hash from deployment";

/// The columns of [`DEPLOYMENT`].
#[derive(FromRow)]
struct DeploymentRow {
    deployment_id: Vec<u8>,
    partitions: i32,
    prefix: String,
    hash: String,
}

impl TryFrom<DeploymentRow> for Deployment {
    type Error = LedgerError;

    fn try_from(row: DeploymentRow) -> Result<Self, LedgerError> {
        Ok(Deployment {
            deployment_id: read_uuid(&row.deployment_id, "deployment_id")?,
            partitions: unsigned_small(row.partitions, "partitions")?,
            prefix: row.prefix,
        })
    }
}

/// A duration as settings spell it.
fn spelled(ms: u64) -> String {
    const UNITS: [(&str, u64); 4] =
        [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)];
    let whole = UNITS.iter().find(|(_, unit_ms)| ms >= *unit_ms && ms.is_multiple_of(*unit_ms));
    whole.map_or_else(|| format!("{ms}ms"), |(unit, unit_ms)| format!("{}{unit}", ms / unit_ms))
}

/// Writes the deployment and its partitions, unless another process was quicker: of several that
/// start on an empty ledger the first one's row stays.
async fn write(conn: &mut Conn, wanted: &Deployment, now_us: i64) -> Result<(), LedgerError> {
    let new = query(
        "insert into deployment (deployment_id, partitions, prefix, hash)
         values ($1, $2, $3, $4) on conflict do nothing",
    )
    .bind(wanted.deployment_id.as_bytes().as_slice())
    .bind(small(wanted.partitions, "partitions")?)
    .bind(&wanted.prefix)
    .bind(HASH)
    .execute(&mut *conn)
    .await?;
    if new.rows_affected() == 1 {
        for partition in 0..wanted.partitions_total() {
            query("insert into partition (partition_id, changed_at_us) values ($1, $2)")
                .bind(small(partition, "partition")?)
                .bind(now_us)
                .execute(&mut *conn)
                .await?;
        }
    }
    Ok(())
}
