//! The deployment, and series with their versions.

use sqlx::Row as _;

use super::{Conn, Row, Store, commit};
use crate::ledger::columns::{
    HASH, from_json, partition_of, read_uuid, small, to_json, unsigned_small,
};
use crate::ledger::{Deployment, LedgerError, SeriesChange, SeriesVersion};
use crate::number::{self, Policy, SeriesDefinition};

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

/// See [`crate::ledger::Ledger::apply_series`].
pub(super) async fn apply_series(
    store: &Store,
    changes: &[SeriesChange],
) -> Result<Vec<SeriesVersion>, LedgerError> {
    let mut tx = store.begin().await?;
    // One change of series at a time: versions count up without a race.
    let partitions: Option<i32> =
        sqlx::query_scalar(for_update!("select partitions from deployment"))
            .fetch_optional(&mut *tx)
            .await?;
    let Some(partitions) = partitions else {
        let why = "deployment: the ledger has none yet; start a service on it first";
        return Err(LedgerError::Refused(why.into()));
    };
    let partitions = unsigned_small(partitions, "partitions")?;
    let mut versions = Vec::with_capacity(changes.len());
    for change in changes {
        versions.push(apply_one(&mut tx, change, partitions).await?);
    }
    // Under the same lock: of two processes that apply series, the second sees the first one's.
    let active = active(&mut tx).await?;
    number::check_rules(active.iter().map(|version| &version.definition))
        .map_err(|error| LedgerError::Refused(error.to_string()))?;
    commit(tx).await?;
    Ok(versions)
}

async fn apply_one(
    conn: &mut Conn,
    change: &SeriesChange,
    partitions: u32,
) -> Result<SeriesVersion, LedgerError> {
    let code = &change.definition.code;
    let partition = home(&change.definition, partitions);
    let active = sqlx::query(
        "select s.series_id, s.partition, v.version, v.definition, v.saved_by, v.reason, \
         v.saved_at_us from series s \
         join series_version v on v.series_id = s.series_id and v.version = s.active_version \
         where s.code = $1",
    )
    .bind(code)
    .fetch_optional(&mut *conn)
    .await?;
    let (series_id, version) = match active.as_ref().map(version_of).transpose()? {
        Some(active) if active.definition == change.definition => return Ok(active),
        Some(active) => {
            if partition != active.partition {
                must_be_unused(conn, &active, "its policy cannot change to or from `gapless`")
                    .await?;
            }
            // The same document would be counted by another counter, from its first value on.
            if change.definition.refers_otherwise_than(&active.definition) {
                must_be_unused(conn, &active, "its counters cannot refer to other tables").await?;
            }
            (active.series_id, activate_next(conn, active.series_id, partition).await?)
        }
        None => {
            let series_id: i64 = sqlx::query_scalar(
                "insert into series (code, partition, active_version) values ($1, $2, 1) \
                 returning series_id",
            )
            .bind(code)
            .bind(small(partition, "partition")?)
            .fetch_one(&mut *conn)
            .await?;
            (series_id, 1)
        }
    };
    sqlx::query(
        "insert into series_version (series_id, version, definition, saved_by, reason, \
         saved_at_us) values ($1, $2, $3, $4, $5, $6)",
    )
    .bind(series_id)
    .bind(version)
    .bind(to_json(&change.definition, "definition")?)
    .bind(&change.saved_by)
    .bind(&change.reason)
    .bind(change.saved_at_us)
    .execute(&mut *conn)
    .await?;
    Ok(SeriesVersion {
        series_id,
        version: unsigned_small(version, "version")?,
        partition,
        definition: change.definition.clone(),
        saved_by: change.saved_by.clone(),
        saved_at_us: change.saved_at_us,
        reason: change.reason.clone(),
        is_new: true,
    })
}

/// Makes the next version of a series its active one, in a partition; its number.
async fn activate_next(
    conn: &mut Conn,
    series_id: i64,
    partition: u32,
) -> Result<i32, LedgerError> {
    let highest: i32 =
        sqlx::query_scalar("select max(version) from series_version where series_id = $1")
            .bind(series_id)
            .fetch_one(&mut *conn)
            .await?;
    sqlx::query("update series set active_version = $2, partition = $3 where series_id = $1")
        .bind(series_id)
        .bind(highest + 1)
        .bind(small(partition, "partition")?)
        .execute(&mut *conn)
        .await?;
    Ok(highest + 1)
}

/// The partition of a series: gapless ones share the last, the others are spread by their code.
fn home(definition: &SeriesDefinition, partitions: u32) -> u32 {
    match definition.policy {
        Policy::Gapless => partitions,
        Policy::Fast | Policy::Durable => partition_of(&definition.code, partitions),
    }
}

/// Refuses a change of a series that has counters: after it, two counters would give the numbers of
/// one (F8).
async fn must_be_unused(
    conn: &mut Conn,
    series: &SeriesVersion,
    change: &str,
) -> Result<(), LedgerError> {
    // Whoever creates its first counter holds this row meanwhile, or waits for this transaction.
    sqlx::query(for_update!("select partition from series where series_id = $1"))
        .bind(series.series_id)
        .fetch_one(&mut *conn)
        .await?;
    let counter: Option<i64> =
        sqlx::query_scalar("select counter_id from counter where series_id = $1 limit 1")
            .bind(series.series_id)
            .fetch_optional(&mut *conn)
            .await?;
    if counter.is_none() {
        return Ok(());
    }
    let code = &series.definition.code;
    Err(LedgerError::Refused(format!(
        "series {code} has issued numbers: {change} any more; apply a new series, of another code, \
         instead"
    )))
}

/// See [`crate::ledger::Ledger::series`].
pub(super) async fn series(store: &Store) -> Result<Vec<SeriesVersion>, LedgerError> {
    let mut conn = store.reader.acquire().await?;
    active(&mut conn).await
}

/// The active version of each series.
async fn active(conn: &mut Conn) -> Result<Vec<SeriesVersion>, LedgerError> {
    let rows = sqlx::query(
        "select s.series_id, s.partition, v.version, v.definition, v.saved_by, v.reason, \
         v.saved_at_us from series s \
         join series_version v on v.series_id = s.series_id and v.version = s.active_version \
         order by s.code",
    )
    .fetch_all(conn)
    .await?;
    rows.iter().map(version_of).collect()
}

/// See [`crate::ledger::Ledger::series_stamp`].
pub(super) async fn series_stamp(store: &Store) -> Result<i64, LedgerError> {
    let stamp: Option<i64> =
        sqlx::query_scalar("select max(series_version_id) from series_version")
            .fetch_one(&store.reader)
            .await?;
    Ok(stamp.unwrap_or(0))
}

pub(super) fn version_of(row: &Row) -> Result<SeriesVersion, LedgerError> {
    let definition: SeriesDefinition =
        from_json(row.try_get("definition")?, "series_version.definition")?;
    Ok(SeriesVersion {
        series_id: row.try_get("series_id")?,
        version: unsigned_small(row.try_get("version")?, "version")?,
        partition: unsigned_small(row.try_get("partition")?, "partition")?,
        definition,
        saved_by: row.try_get("saved_by")?,
        saved_at_us: row.try_get("saved_at_us")?,
        reason: row.try_get("reason")?,
        is_new: false,
    })
}
