//! The deployment: what is written once per ledger.

use sqlx::Row as _;

use super::{Store, commit};
use crate::ledger::columns::{HASH, read_uuid, small, unsigned_small};
use crate::ledger::{Deployment, LedgerError};

/// See [`crate::ledger::Ledger::deployment`].
pub(super) async fn deployment(
    store: &Store,
    wanted: &Deployment,
) -> Result<Deployment, LedgerError> {
    let mut tx = store.begin().await?;
    // Of several processes that start on an empty ledger the first one's row stays.
    let new = sqlx::query(
        "insert into deployment (deployment_id, partitions, prefix, hash) \
         values ($1, $2, $3, $4) on conflict do nothing",
    )
    .bind(wanted.deployment_id.as_bytes().as_slice())
    .bind(small(wanted.partitions, "partitions")?)
    .bind(&wanted.prefix)
    .bind(HASH)
    .execute(&mut *tx)
    .await?;
    if new.rows_affected() == 1 {
        for partition in 0..wanted.partitions_total() {
            sqlx::query("insert into partition (partition_id, changed_at_us) values ($1, $2)")
                .bind(small(partition, "partition")?)
                .bind(store.clock.now_us())
                .execute(&mut *tx)
                .await?;
        }
    }
    let row = sqlx::query("select deployment_id, partitions, prefix, hash from deployment")
        .fetch_one(&mut *tx)
        .await?;
    let there = Deployment {
        deployment_id: read_uuid(row.try_get("deployment_id")?, "deployment_id")?,
        partitions: unsigned_small(row.try_get("partitions")?, "partitions")?,
        prefix: row.try_get("prefix")?,
    };
    let differ = |setting, here: String, there: String| {
        if here == there {
            Ok(())
        } else {
            Err(LedgerError::SettingsDiffer { setting, here, there })
        }
    };
    differ("partitions", wanted.partitions.to_string(), there.partitions.to_string())?;
    differ("redis.prefix", wanted.prefix.clone(), there.prefix.clone())?;
    differ("hash", HASH.to_owned(), row.try_get("hash")?)?;
    commit(tx).await?;
    Ok(there)
}
