//! Versions of series as they are read. Each list is one statement, so that no reader sees half of
//! a change.

use std::sync::Arc;

use numbering::{EarlierVersion, Policy, SeriesDefinition};
use sqlx_macros::FromRow;

use crate::calls::CALL;
use crate::columns::{from_json, partition_of, unsigned_small};
use crate::dialect::Conn;
use crate::query::{QueryBuilder, query_as, query_scalar};
use crate::store::Store;
use crate::{
    CounterSpec, LedgerError, RestingSeries, SERIES_MAX, Series, SeriesRefusal, SeriesVersion,
};

/// Most versions of one list.
const VERSIONS_MAX: u32 = 1_000;

/// The beginning of every query for versions.
const COLUMNS: &str = "select s.series_id, s.partition, v.version, v.active, v.definition,
     v.saved_by, v.reason, v.saved_at_us, v.series_version_id from series s
     join series_version v on v.series_id = s.series_id ";

/// The same with the version that follows, if any.
const STRETCHES: &str = "select v.series_id, v.version, v.active, v.definition,
     coalesce(v.saved_with, v.series_version_id) as since,
     coalesce(n.saved_with, n.series_version_id) as until from series s
     join series_version v on v.series_id = s.series_id
     left join series_version n on n.series_id = v.series_id and n.version = v.version + 1 ";

/// A version of a series with the time that it was in force.
pub(crate) struct Stretch {
    pub(crate) series_id: i64,
    pub(crate) version: u32,
    pub(crate) active: bool,
    pub(crate) definition: Arc<SeriesDefinition>,
    /// The stamp of the first version that was saved in the same call,
    pub(crate) from: i64,
    /// and the same of the next version.
    pub(crate) to: Option<i64>,
}

impl Stretch {
    /// Whether it gave numbers in another ledger alone: it came with its counters, and was followed
    /// in the same call.
    pub(crate) fn is_of_elsewhere(&self) -> bool {
        self.to == Some(self.from)
    }
}

/// The rest of the query for those in force. Of a series that was removed none is.
const IN_FORCE: &str = "and v.version = s.active_version and s.removed_at_us is null ";

impl Series<'_> {
    /// The versions in force of all series, active or not, by code.
    pub async fn list(self) -> Result<Vec<SeriesVersion>, LedgerError> {
        self.read(async |reader| {
            let mut conn = reader.acquire().await?;
            all_in_force(&mut *conn).await
        })
        .await
    }

    /// Versions of a series up to `upto`, newest first, at most `limit`; none where there is no
    /// such series.
    pub async fn versions(
        self,
        series_id: i64,
        upto: u32,
        limit: u32,
    ) -> Result<Vec<SeriesVersion>, LedgerError> {
        self.call(CALL, async |store| versions(store, series_id, upto, limit).await).await
    }

    /// One version of a series, active or not: an issued number is explained by the version that
    /// it was made with.
    pub async fn version(
        self,
        series_id: i64,
        version: u32,
    ) -> Result<Option<SeriesVersion>, LedgerError> {
        self.call(CALL, async |store| one(store, series_id, version).await).await
    }

    /// Versions of series under which numbers may have been issued, and which others have followed,
    /// newest first, at most `limit`.
    pub async fn earlier_versions(self, limit: u32) -> Result<Vec<SeriesVersion>, LedgerError> {
        self.read(async |reader| {
            let mut conn = reader.acquire().await?;
            let mut query = QueryBuilder::new(COLUMNS);
            query.push(
                "where v.version >= s.used_since and v.version < s.active_version
                 and s.removed_at_us is null
                 and exists (select 1 from counter c
                 where c.series_id = s.series_id and c.serial <> 'as-written')
                 order by v.series_version_id desc limit ",
            );
            query.push_bind(i64::from(limit));
            fetch(&mut *conn, query).await
        })
        .await
    }

    /// The series that are deactivated or removed and served requests before, by code.
    pub async fn resting(self) -> Result<Vec<RestingSeries>, LedgerError> {
        self.read(async |reader| {
            let mut conn = reader.acquire().await?;
            all_resting(&mut *conn).await
        })
        .await
    }
}

/// See [`crate::Series::versions`].
pub(crate) async fn versions(
    store: &Store,
    series_id: i64,
    upto: u32,
    limit: u32,
) -> Result<Vec<SeriesVersion>, LedgerError> {
    let mut conn = store.reader.acquire().await?;
    let mut query = QueryBuilder::new(COLUMNS);
    query.push("where s.series_id = ").push_bind(series_id);
    query.push(" and v.version <= ").push_bind(i64::from(upto));
    query.push(" order by v.version desc limit ").push_bind(i64::from(limit.min(VERSIONS_MAX)));
    fetch(&mut *conn, query).await
}

/// See [`crate::Series::version`].
pub(crate) async fn one(
    store: &Store,
    series_id: i64,
    version: u32,
) -> Result<Option<SeriesVersion>, LedgerError> {
    let mut conn = store.reader.acquire().await?;
    let mut query = QueryBuilder::new(COLUMNS);
    query.push("where s.series_id = ").push_bind(series_id);
    query.push(" and v.version = ").push_bind(i64::from(version));
    Ok(fetch(&mut *conn, query).await?.pop())
}

/// The version in force of each series, by code.
pub(crate) async fn all_in_force(conn: &mut Conn) -> Result<Vec<SeriesVersion>, LedgerError> {
    let mut query = QueryBuilder::new(COLUMNS);
    query.push(IN_FORCE).push("order by s.code");
    fetch(conn, query).await
}

/// The last version of each series, by code, removed ones included.
pub(crate) async fn last_of_all(conn: &mut Conn) -> Result<Vec<SeriesVersion>, LedgerError> {
    let mut query = QueryBuilder::new(COLUMNS);
    query.push("and v.version = s.active_version order by s.code");
    fetch(conn, query).await
}

pub(crate) async fn by_id(
    conn: &mut Conn,
    series_id: i64,
) -> Result<Option<SeriesVersion>, LedgerError> {
    let mut query = QueryBuilder::new(COLUMNS);
    query.push(IN_FORCE).push("where s.series_id = ").push_bind(series_id);
    Ok(fetch(conn, query).await?.pop())
}

pub(crate) async fn by_code(
    conn: &mut Conn,
    code: &str,
) -> Result<Option<SeriesVersion>, LedgerError> {
    let mut query = QueryBuilder::new(COLUMNS);
    query.push(IN_FORCE).push("where s.code = ").push_bind(code.to_owned());
    Ok(fetch(conn, query).await?.pop())
}

/// The first value that a serial of a series gives by the version in force, where it has it.
pub(crate) async fn start_in_force(
    conn: &mut Conn,
    CounterSpec { series_id, serial, .. }: &CounterSpec,
) -> Result<Option<u64>, LedgerError> {
    let Some(version) = by_id(conn, *series_id).await? else { return Ok(None) };
    let serials = version.definition.taken_serials();
    Ok(serials.iter().find(|one| one.name == *serial).map(|one| one.start))
}

/// The partition of a series: gapless ones share the last, the others are spread by their code.
pub(crate) fn home(definition: &SeriesDefinition, partitions: u32) -> u32 {
    match definition.policy {
        Policy::Gapless => partitions,
        Policy::Fast | Policy::Durable => partition_of(&definition.code, partitions),
    }
}

/// Refuses one series more than a ledger has, removed ones included: what these took from others is
/// remembered for ever.
pub(crate) async fn must_have_room(conn: &mut Conn) -> Result<(), LedgerError> {
    let series: i64 = query_scalar("select count(*) from series").fetch_one(conn).await?;
    if series >= i64::from(SERIES_MAX) {
        return Err(SeriesRefusal::TooMany.into());
    }
    Ok(())
}

/// Versions of a series under which numbers may have been issued, newest first. All of them,
/// however many: the one left out would be the one that collides.
pub(crate) async fn of_used(
    conn: &mut Conn,
    series_id: i64,
) -> Result<Vec<SeriesVersion>, LedgerError> {
    let mut query = QueryBuilder::new(COLUMNS);
    query.push("where s.series_id = ").push_bind(series_id);
    query.push(" and v.version >= s.used_since order by v.version desc");
    fetch(conn, query).await
}

/// Versions of all series under which numbers may have been issued, or may be at this moment: a
/// node that does not know a change goes on by the version in force before.
pub(crate) async fn that_may_have_issued(conn: &mut Conn) -> Result<Vec<Stretch>, LedgerError> {
    let mut query = QueryBuilder::new(STRETCHES);
    query.push(
        "where v.version >= s.used_since and ((v.version = s.active_version and v.active = 1)
         or exists (select 1 from counter c
         where c.series_id = s.series_id and c.serial <> 'as-written'))
         order by s.code, v.version desc",
    );
    stretches(conn, query).await
}

/// The same, and the versions in force that are turned off: an import may bring numbers of one, and
/// one that is turned on may issue them.
pub(crate) async fn that_may_render(conn: &mut Conn) -> Result<Vec<Stretch>, LedgerError> {
    let mut query = QueryBuilder::new(STRETCHES);
    query.push(
        "where v.version >= s.used_since
         and ((v.version = s.active_version and s.removed_at_us is null)
         or exists (select 1 from counter c
         where c.series_id = s.series_id and c.serial <> 'as-written'))
         order by s.code, v.version desc",
    );
    stretches(conn, query).await
}

/// All versions of a series, oldest first.
pub(crate) async fn history(conn: &mut Conn, series_id: i64) -> Result<Vec<Stretch>, LedgerError> {
    let mut query = QueryBuilder::new(STRETCHES);
    query.push("where s.series_id = ").push_bind(series_id).push(" order by v.version");
    stretches(conn, query).await
}

pub(crate) async fn all_resting(conn: &mut Conn) -> Result<Vec<RestingSeries>, LedgerError> {
    let rows: Vec<RestingRow> = query_as(
        "select s.series_id, s.partition, v.version, v.active, v.definition, v.saved_by,
         v.reason, v.saved_at_us, v.series_version_id, n.series_version_id as next_id
         from series s
         join series_version f on f.series_id = s.series_id and f.version = s.active_version
         join series_version v on v.series_id = s.series_id and v.version =
         (select max(a.version) from series_version a
         where a.series_id = s.series_id and a.active = 1)
         join series_version n on n.series_id = s.series_id and n.version = v.version + 1
         where f.active = 0 order by s.code",
    )
    .fetch_all(conn)
    .await?;
    let resting =
        |row: RestingRow| Ok(RestingSeries { last: row.last.try_into()?, since: row.next_id });
    rows.into_iter().map(resting).collect()
}

async fn stretches(conn: &mut Conn, query: QueryBuilder<'_>) -> Result<Vec<Stretch>, LedgerError> {
    query.build().typed::<StretchRow>().fetch_all_into(conn).await
}

async fn fetch(
    conn: &mut Conn,
    query: QueryBuilder<'_>,
) -> Result<Vec<SeriesVersion>, LedgerError> {
    query.build().typed::<VersionRow>().fetch_all_into(conn).await
}

/// The columns of a version, as [`COLUMNS`] names them.
#[derive(FromRow)]
struct VersionRow {
    series_id: i64,
    partition: i32,
    version: i32,
    active: i32,
    definition: String,
    saved_by: String,
    reason: String,
    saved_at_us: i64,
    series_version_id: i64,
}

/// The last active version of a series at rest, and the id of the version that follows.
#[derive(FromRow)]
struct RestingRow {
    #[sqlx(flatten)]
    last: VersionRow,
    next_id: i64,
}

/// The columns of a version with its time, as [`STRETCHES`] names them.
#[derive(FromRow)]
struct StretchRow {
    series_id: i64,
    version: i32,
    active: i32,
    definition: String,
    since: i64,
    until: Option<i64>,
}

impl TryFrom<VersionRow> for SeriesVersion {
    type Error = LedgerError;

    fn try_from(row: VersionRow) -> Result<Self, LedgerError> {
        Ok(SeriesVersion {
            series_id: row.series_id,
            version: unsigned_small(row.version, "version")?,
            active: row.active == 1,
            partition: unsigned_small(row.partition, "partition")?,
            definition: definition_of(&row.definition)?,
            saved_by: row.saved_by,
            saved_at_us: row.saved_at_us,
            reason: row.reason,
            is_new: false,
            stamp: row.series_version_id,
        })
    }
}

impl TryFrom<StretchRow> for Stretch {
    type Error = LedgerError;

    fn try_from(row: StretchRow) -> Result<Self, LedgerError> {
        Ok(Stretch {
            series_id: row.series_id,
            version: unsigned_small(row.version, "version")?,
            active: row.active == 1,
            definition: Arc::new(definition_of(&row.definition)?),
            from: row.since,
            to: row.until,
        })
    }
}

fn definition_of(text: &str) -> Result<SeriesDefinition, LedgerError> {
    from_json(text, "series_version.definition")
}

/// The versions before one under which numbers may have been issued.
pub(crate) async fn before(
    conn: &mut Conn,
    after: &SeriesVersion,
) -> Result<Vec<EarlierVersion>, LedgerError> {
    // The first has none before it.
    if after.version == 1 {
        return Ok(Vec::new());
    }
    let mut before = of_used(conn, after.series_id).await?;
    before.retain(|before| before.version < after.version);
    let earlier =
        |SeriesVersion { version, definition, .. }| EarlierVersion { version, definition };
    Ok(before.into_iter().map(earlier).collect())
}
