//! Series with their versions. Every save goes through one page: [`save`] and [`set_activity`]
//! write the next version under one lock, and [`settle`] checks what is active afterwards before
//! anything is committed.

use serde_json::json;
use sqlx::{QueryBuilder, Row as _};

use super::{Conn, Db, Row, Store, Transaction, commit};
use crate::ledger::columns::{from_json, partition_of, small, to_json, unsigned_small};
use crate::ledger::{
    ActivityChange, Expected, LedgerError, SeriesChange, SeriesRefusal, SeriesVersion,
};
use crate::number::{self, Policy, Series, SeriesDefinition};

/// Most versions of one list.
const VERSIONS_MAX: u32 = 1_000;

/// The beginning of every query for versions.
const COLUMNS: &str = "select s.series_id, s.partition, v.version, v.active, v.definition, \
     v.saved_by, v.reason, v.saved_at_us from series s \
     join series_version v on v.series_id = s.series_id ";

/// The rest of the query for those in force.
const IN_FORCE: &str = "and v.version = s.active_version ";

/// Whether checked changes are saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Saving {
    /// They are.
    Save,
    /// Everything is only checked.
    DryRun,
}

/// See [`crate::ledger::Ledger::apply_series`] and [`crate::ledger::Ledger::try_series`].
pub(super) async fn save(
    store: &Store,
    changes: &[SeriesChange],
    saving: Saving,
) -> Result<Vec<SeriesVersion>, LedgerError> {
    let mut tx = store.begin().await?;
    let partitions = lock_all(&mut tx).await?;
    let mut versions = Vec::with_capacity(changes.len());
    for change in changes {
        versions.push(save_one(&mut tx, change, partitions).await?);
    }
    settle(tx, &versions, saving).await?;
    Ok(versions)
}

/// See [`crate::ledger::Ledger::set_activity`].
pub(super) async fn set_activity(
    store: &Store,
    change: &ActivityChange,
) -> Result<SeriesVersion, LedgerError> {
    let mut tx = store.begin().await?;
    lock_all(&mut tx).await?;
    let unknown = SeriesRefusal::Unknown { series_id: change.series_id };
    let before = by_id(&mut tx, change.series_id).await?.ok_or(unknown)?;
    if let Some(expected) = change.expected {
        must_stand_at(&before, expected)?;
    }
    if before.active == change.active {
        return Ok(before);
    }
    let after = SeriesVersion {
        version: before.version + 1,
        active: change.active,
        saved_by: change.saved_by.clone(),
        saved_at_us: change.saved_at_us,
        reason: change.reason.clone(),
        is_new: true,
        ..before
    };
    put_in_force(&mut tx, &after).await?;
    settle(tx, std::slice::from_ref(&after), Saving::Save).await?;
    Ok(after)
}

/// Lets one change of series happen at a time, so that versions count up without a race and each
/// change is checked against all before it; the number of partitions.
async fn lock_all(conn: &mut Conn) -> Result<u32, LedgerError> {
    let partitions: Option<i32> =
        sqlx::query_scalar(for_update!("select partitions from deployment"))
            .fetch_optional(conn)
            .await?;
    let Some(partitions) = partitions else {
        let why = "deployment: the ledger has none yet; start a service on it first";
        return Err(LedgerError::Refused(why.into()));
    };
    unsigned_small(partitions, "partitions")
}

/// Ends a save: checks all that would be active, notes what has changed, and commits, or takes a
/// dry run back.
async fn settle(
    mut tx: Transaction,
    versions: &[SeriesVersion],
    saving: Saving,
) -> Result<(), LedgerError> {
    let mut all = all_in_force(&mut tx).await?;
    all.retain(|version| version.active);
    number::check_rules(all.iter().map(|version| &version.definition))
        .map_err(SeriesRefusal::from)?;
    for version in versions.iter().filter(|version| version.is_new) {
        note(&mut tx, version).await?;
    }
    match saving {
        Saving::Save => commit(tx).await,
        Saving::DryRun => Ok(tx.rollback().await?),
    }
}

/// Writes the event of a change (R5.2), which stands if and only if the change does.
async fn note(conn: &mut Conn, changed: &SeriesVersion) -> Result<(), LedgerError> {
    let detail = json!({
        "config_id": changed.series_id,
        "code": changed.definition.code,
        "version": changed.version,
        "active": changed.active,
        "user": changed.saved_by,
        "reason": changed.reason,
    });
    sqlx::query("insert into event (at_us, kind, detail) values ($1, 'series-changed', $2)")
        .bind(changed.saved_at_us)
        .bind(detail.to_string())
        .execute(conn)
        .await?;
    Ok(())
}

async fn save_one(
    conn: &mut Conn,
    change: &SeriesChange,
    partitions: u32,
) -> Result<SeriesVersion, LedgerError> {
    let definition = &change.definition;
    let before = match change.expected {
        Expected::Version { series_id, .. } => {
            let unknown = SeriesRefusal::Unknown { series_id };
            Some(by_id(conn, series_id).await?.ok_or(unknown)?)
        }
        Expected::Anything | Expected::Nothing => by_code(conn, &definition.code).await?,
    };
    if let Some(before) = &before {
        must_be_expected(before, change)?;
        if before.definition == *definition {
            return Ok(before.clone());
        }
    }
    let mut after = SeriesVersion {
        series_id: 0,
        version: 1,
        active: true,
        partition: home(definition, partitions),
        definition: definition.clone(),
        saved_by: change.saved_by.clone(),
        saved_at_us: change.saved_at_us,
        reason: change.reason.clone(),
        is_new: true,
    };
    match before {
        None => create(conn, &mut after).await?,
        Some(before) => {
            after.series_id = before.series_id;
            after.version = before.version + 1;
            after.active = before.active;
            let used_since = lock(conn, before.series_id).await?;
            if has_counters(conn, before.series_id).await? {
                must_repeat_nothing(conn, &before, &after, used_since).await?;
            } else {
                start_anew(conn, &after).await?;
            }
            put_in_force(conn, &after).await?;
        }
    }
    Ok(after)
}

/// Refuses a change that builds on something else than what is there (R4.4).
fn must_be_expected(before: &SeriesVersion, change: &SeriesChange) -> Result<(), SeriesRefusal> {
    let code = before.definition.code.clone();
    match change.expected {
        Expected::Anything => Ok(()),
        Expected::Nothing => Err(SeriesRefusal::CodeTaken { code }),
        Expected::Version { version, .. } => {
            must_stand_at(before, version)?;
            let wanted = change.definition.code.clone();
            if wanted == code { Ok(()) } else { Err(SeriesRefusal::CodeChanged { code, wanted }) }
        }
    }
}

fn must_stand_at(before: &SeriesVersion, expected: u32) -> Result<(), SeriesRefusal> {
    let found = before.version;
    if found == expected {
        return Ok(());
    }
    let code = before.definition.code.clone();
    Err(SeriesRefusal::VersionConflict { code, expected, found })
}

/// The partition of a series: gapless ones share the last, the others are spread by their code.
fn home(definition: &SeriesDefinition, partitions: u32) -> u32 {
    match definition.policy {
        Policy::Gapless => partitions,
        Policy::Fast | Policy::Durable => partition_of(&definition.code, partitions),
    }
}

/// Locks the row of a series; since which version it may have counters. Whoever creates its first
/// counter holds this row meanwhile, or waits for this transaction.
async fn lock(conn: &mut Conn, series_id: i64) -> Result<u32, LedgerError> {
    let used_since: i32 =
        sqlx::query_scalar(for_update!("select used_since from series where series_id = $1"))
            .bind(series_id)
            .fetch_one(conn)
            .await?;
    unsigned_small(used_since, "series.used_since")
}

async fn has_counters(conn: &mut Conn, series_id: i64) -> Result<bool, LedgerError> {
    let counter: Option<i64> =
        sqlx::query_scalar("select counter_id from counter where series_id = $1 limit 1")
            .bind(series_id)
            .fetch_optional(conn)
            .await?;
    Ok(counter.is_some())
}

/// Refuses to move a series that has counters, since two partitions would count one of them (F8),
/// and to change it so that it could render again what it has issued in any version.
async fn must_repeat_nothing(
    conn: &mut Conn,
    before: &SeriesVersion,
    after: &SeriesVersion,
    used_since: u32,
) -> Result<(), LedgerError> {
    let code = || after.definition.code.clone();
    if before.partition != after.partition {
        return Err(SeriesRefusal::Policy { code: code() }.into());
    }
    let compile = |version: &SeriesVersion| {
        Series::compile(version.definition.clone()).map_err(|error| {
            let (code, version) = (&version.definition.code, version.version);
            LedgerError::Refused(format!("series {code} version {version}: {error}"))
        })
    };
    let next = compile(after)?;
    // All of them, however many: the one left out would be the one that collides.
    let mut query = QueryBuilder::<Db>::new(COLUMNS);
    query.push("where s.series_id = ").push_bind(after.series_id);
    query.push(" and v.version >= ").push_bind(small(used_since, "used_since")?);
    query.push(" order by v.version desc");
    for earlier in fetch(conn, query).await? {
        number::check_change(&compile(&earlier)?, &next).map_err(|why| SeriesRefusal::Repeats {
            code: code(),
            version: earlier.version,
            why,
        })?;
    }
    Ok(())
}

/// A series without a counter begins with this version: nobody creates one for an earlier version
/// any more.
async fn start_anew(conn: &mut Conn, after: &SeriesVersion) -> Result<(), LedgerError> {
    sqlx::query("update series set used_since = $2, partition = $3 where series_id = $1")
        .bind(after.series_id)
        .bind(small(after.version, "version")?)
        .bind(small(after.partition, "partition")?)
        .execute(conn)
        .await?;
    Ok(())
}

/// Writes version 1 of a new series, and gives it its id.
async fn create(conn: &mut Conn, version: &mut SeriesVersion) -> Result<(), LedgerError> {
    version.series_id = sqlx::query_scalar(
        "insert into series (code, partition, active_version) values ($1, $2, 1) \
         returning series_id",
    )
    .bind(&version.definition.code)
    .bind(small(version.partition, "partition")?)
    .fetch_one(&mut *conn)
    .await?;
    write(conn, version).await
}

/// Writes the next version of a series, which is the one in force from now on.
async fn put_in_force(conn: &mut Conn, version: &SeriesVersion) -> Result<(), LedgerError> {
    sqlx::query("update series set active_version = $2 where series_id = $1")
        .bind(version.series_id)
        .bind(small(version.version, "version")?)
        .execute(&mut *conn)
        .await?;
    write(conn, version).await
}

async fn write(conn: &mut Conn, version: &SeriesVersion) -> Result<(), LedgerError> {
    sqlx::query(
        "insert into series_version (series_id, version, active, definition, saved_by, reason, \
         saved_at_us) values ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(version.series_id)
    .bind(small(version.version, "version")?)
    .bind(i32::from(version.active))
    .bind(to_json(&version.definition, "definition")?)
    .bind(&version.saved_by)
    .bind(&version.reason)
    .bind(version.saved_at_us)
    .execute(conn)
    .await?;
    Ok(())
}

/// See [`crate::ledger::Ledger::series`].
pub(super) async fn in_force(store: &Store) -> Result<Vec<SeriesVersion>, LedgerError> {
    let mut conn = store.reader.acquire().await?;
    all_in_force(&mut conn).await
}

/// See [`crate::ledger::Ledger::series_versions`].
pub(super) async fn versions(
    store: &Store,
    series_id: i64,
    upto: u32,
    limit: u32,
) -> Result<Vec<SeriesVersion>, LedgerError> {
    let mut conn = store.reader.acquire().await?;
    let mut query = QueryBuilder::<Db>::new(COLUMNS);
    query.push("where s.series_id = ").push_bind(series_id);
    query.push(" and v.version <= ").push_bind(i64::from(upto));
    query.push(" order by v.version desc limit ").push_bind(i64::from(limit.min(VERSIONS_MAX)));
    fetch(&mut conn, query).await
}

/// See [`crate::ledger::Ledger::series_stamp`].
pub(super) async fn stamp(store: &Store) -> Result<i64, LedgerError> {
    let stamp: Option<i64> =
        sqlx::query_scalar("select max(series_version_id) from series_version")
            .fetch_one(&store.reader)
            .await?;
    Ok(stamp.unwrap_or(0))
}

/// One statement, so that nobody sees half of a change.
async fn all_in_force(conn: &mut Conn) -> Result<Vec<SeriesVersion>, LedgerError> {
    let mut query = QueryBuilder::<Db>::new(COLUMNS);
    query.push(IN_FORCE).push("order by s.code");
    fetch(conn, query).await
}

async fn by_id(conn: &mut Conn, series_id: i64) -> Result<Option<SeriesVersion>, LedgerError> {
    let mut query = QueryBuilder::<Db>::new(COLUMNS);
    query.push(IN_FORCE).push("where s.series_id = ").push_bind(series_id);
    Ok(fetch(conn, query).await?.pop())
}

async fn by_code(conn: &mut Conn, code: &str) -> Result<Option<SeriesVersion>, LedgerError> {
    let mut query = QueryBuilder::<Db>::new(COLUMNS);
    query.push(IN_FORCE).push("where s.code = ").push_bind(code.to_owned());
    Ok(fetch(conn, query).await?.pop())
}

async fn fetch(
    conn: &mut Conn,
    mut query: QueryBuilder<Db>,
) -> Result<Vec<SeriesVersion>, LedgerError> {
    let rows = query.build().fetch_all(conn).await?;
    rows.iter().map(version_of).collect()
}

fn version_of(row: &Row) -> Result<SeriesVersion, LedgerError> {
    let definition: SeriesDefinition =
        from_json(row.try_get("definition")?, "series_version.definition")?;
    Ok(SeriesVersion {
        series_id: row.try_get("series_id")?,
        version: unsigned_small(row.try_get("version")?, "version")?,
        active: row.try_get::<i32, _>("active")? == 1,
        partition: unsigned_small(row.try_get("partition")?, "partition")?,
        definition,
        saved_by: row.try_get("saved_by")?,
        saved_at_us: row.try_get("saved_at_us")?,
        reason: row.try_get("reason")?,
        is_new: false,
    })
}
