//! Versions of series as they are read. Each list is one statement, so that nobody sees half of a
//! change.

use sqlx::{QueryBuilder, Row as _};

use super::{Conn, Db, Row, Store};
use crate::ledger::columns::{from_json, unsigned_small};
use crate::ledger::{LedgerError, SeriesVersion};
use crate::number::SeriesDefinition;

/// Most versions of one list.
const VERSIONS_MAX: u32 = 1_000;

/// The beginning of every query for versions.
const COLUMNS: &str = "select s.series_id, s.partition, v.version, v.active, v.definition, \
     v.saved_by, v.reason, v.saved_at_us from series s \
     join series_version v on v.series_id = s.series_id ";

/// The rest of the query for those in force.
const IN_FORCE: &str = "and v.version = s.active_version ";

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

/// See [`crate::ledger::Documents::series_version`].
pub(super) async fn one(
    store: &Store,
    series_id: i64,
    version: u32,
) -> Result<Option<SeriesVersion>, LedgerError> {
    let mut conn = store.reader.acquire().await?;
    let mut query = QueryBuilder::<Db>::new(COLUMNS);
    query.push("where s.series_id = ").push_bind(series_id);
    query.push(" and v.version = ").push_bind(i64::from(version));
    Ok(fetch(&mut conn, query).await?.pop())
}

/// See [`crate::ledger::Ledger::series_stamp`].
pub(super) async fn stamp(store: &Store) -> Result<i64, LedgerError> {
    let stamp: Option<i64> =
        sqlx::query_scalar("select max(series_version_id) from series_version")
            .fetch_one(&store.reader)
            .await?;
    Ok(stamp.unwrap_or(0))
}

/// The version in force of each series, by code.
pub(super) async fn all_in_force(conn: &mut Conn) -> Result<Vec<SeriesVersion>, LedgerError> {
    let mut query = QueryBuilder::<Db>::new(COLUMNS);
    query.push(IN_FORCE).push("order by s.code");
    fetch(conn, query).await
}

pub(super) async fn by_id(
    conn: &mut Conn,
    series_id: i64,
) -> Result<Option<SeriesVersion>, LedgerError> {
    let mut query = QueryBuilder::<Db>::new(COLUMNS);
    query.push(IN_FORCE).push("where s.series_id = ").push_bind(series_id);
    Ok(fetch(conn, query).await?.pop())
}

pub(super) async fn by_code(
    conn: &mut Conn,
    code: &str,
) -> Result<Option<SeriesVersion>, LedgerError> {
    let mut query = QueryBuilder::<Db>::new(COLUMNS);
    query.push(IN_FORCE).push("where s.code = ").push_bind(code.to_owned());
    Ok(fetch(conn, query).await?.pop())
}

/// Versions of a series under which numbers may have been issued, newest first. All of them,
/// however many: the one left out would be the one that collides.
pub(super) async fn of_used(
    conn: &mut Conn,
    series_id: i64,
) -> Result<Vec<SeriesVersion>, LedgerError> {
    let mut query = QueryBuilder::<Db>::new(COLUMNS);
    query.push("where s.series_id = ").push_bind(series_id);
    query.push(" and v.version >= s.used_since order by v.version desc");
    fetch(conn, query).await
}

/// The same of all other series, but for what is active: numbers that these may have issued, and
/// that no active series shows any more.
pub(super) async fn of_used_others(
    conn: &mut Conn,
    series_id: i64,
) -> Result<Vec<SeriesVersion>, LedgerError> {
    let mut query = QueryBuilder::<Db>::new(COLUMNS);
    query.push("where s.series_id <> ").push_bind(series_id);
    query.push(
        " and v.version >= s.used_since and not (v.version = s.active_version and v.active = 1) \
         and exists (select 1 from counter c where c.series_id = s.series_id) \
         order by s.code, v.version desc",
    );
    fetch(conn, query).await
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
