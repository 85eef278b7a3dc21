//! Counter rows: reading, locking, moving. A counter's own row is the fence (F4).

use std::collections::HashMap;

use numerator_runtime::node::NodeId;
use sqlx_macros::FromRow;

use crate::batch::Move;
use crate::calls::CALL;
use crate::columns::{self, bytes, ownership, signed, small, unsigned, unsigned_small};
use crate::dialect::Conn;
use crate::query::{QueryBuilder, query, query_as, query_scalar};
use crate::series::versions;
use crate::store::Store;
use crate::{At, COUNTERS_COUNTED_MAX, Counter, CounterRow, CounterSpec, Counters, LedgerError};

/// Most counters of a page.
const PAGE_MAX: u32 = 10_000;

/// The beginning of every query for whole rows.
pub(crate) const COLUMNS: &str = "select counter_id, series_id, serial, key, partition_id,
     epoch, origin, start_value, taken, ceiling, step, journaled, returned, reissued, seeded_by
     from counter ";

/// A counter's row, and the node that resolved it in its epoch.
pub(crate) struct Resolved {
    /// The row.
    pub(crate) counter: Counter,
    /// Its seeder's sixteen bytes.
    pub(crate) seeded_by: Vec<u8>,
}

impl Counters<'_> {
    /// The counter's row, for previews and listings.
    pub async fn get(
        self,
        series_id: i64,
        serial: &str,
        key: &str,
    ) -> Result<Option<Counter>, LedgerError> {
        self.call(CALL, async |store| by_name(store, series_id, serial, key).await).await
    }

    /// The rows of counters under these ids, in the order of `ids`; `None` where there is none.
    /// Read in the ledger's current incarnation and without a lock: what Redis shows of them is
    /// compared with it (F33).
    pub async fn among(self, ids: &[i64]) -> Result<Vec<Option<Counter>>, LedgerError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        self.write(async |store| {
            let mut query = QueryBuilder::new(COLUMNS);
            query.push("where counter_id").push_among(ids.to_vec());
            let mut tx = store.begin_reading().await?;
            let rows: Vec<CounterRow> = query.build().typed().fetch_all(&mut *tx).await?;
            tx.commit().await?;
            let mut found = HashMap::with_capacity(rows.len());
            for row in rows {
                let counter = Counter::try_from(row)?;
                found.insert(counter.counter_id, counter);
            }
            Ok(ids.iter().map(|id| found.get(id).cloned()).collect())
        })
        .await
    }

    /// Counters after `after` by id, at most `limit`: for `verify` and `status`.
    pub async fn page(self, after: i64, limit: u32) -> Result<Vec<Counter>, LedgerError> {
        self.read(async |reader| {
            let mut query = QueryBuilder::new(COLUMNS);
            query.push("where counter_id > ").push_bind(after).push(" order by counter_id limit ");
            query.push_bind(i64::from(limit.min(PAGE_MAX)));
            query.build().typed::<CounterRow>().fetch_all_into(reader).await
        })
        .await
    }

    /// How many counters a series has, as far as [`COUNTERS_COUNTED_MAX`].
    pub async fn count_of(self, series_id: i64) -> Result<u64, LedgerError> {
        self.read(async |reader| {
            let count: i64 = query_scalar(
                "select count(*) from (select counter_id from counter where series_id = $1
                 limit $2) as counted",
            )
            .bind(series_id)
            .bind(signed(COUNTERS_COUNTED_MAX, "counters")?)
            .fetch_one(reader)
            .await?;
            unsigned(count, "counters")
        })
        .await
    }

    /// Whether the ledger knows any counter of a partition.
    pub async fn exist_in(self, partition: u32) -> Result<bool, LedgerError> {
        self.read(async |reader| {
            let first: Option<i64> =
                query_scalar("select counter_id from counter where partition_id = $1 limit 1")
                    .bind(small(partition, "partition")?)
                    .fetch_optional(reader)
                    .await?;
            Ok(first.is_some())
        })
        .await
    }

    /// Counters whose ceiling leaves the least headroom, among those of the epochs that Redis owns
    /// now, at most `limit`: how long issuing could go on without the ledger.
    pub async fn tightest(self, limit: u32) -> Result<Vec<Counter>, LedgerError> {
        self.read(async |reader| {
            let mut tx = reader.begin().await?;
            // Every counter is looked at: this is for a person who waits for it.
            tx.allow_long_search().await?;
            let mut query = QueryBuilder::new(COLUMNS);
            query.push(
                "where exists (select 1 from partition p where p.partition_id =
                 counter.partition_id
                 and p.epoch = counter.epoch and p.state = 'open' and p.owner = 'redis')
                 order by (ceiling - taken) / step, counter_id limit ",
            );
            query.push_bind(i64::from(limit.min(PAGE_MAX)));
            let rows: Vec<CounterRow> = query.build().typed().fetch_all(&mut *tx).await?;
            tx.commit().await?;
            rows.into_iter().map(Counter::try_from).collect()
        })
        .await
    }
}

/// The partition of a counter, as long as it is not moved.
pub(crate) async fn partition_of(conn: &mut Conn, counter_id: i64) -> Result<u32, LedgerError> {
    let home = query_scalar("select partition_id from counter where counter_id = $1")
        .bind(counter_id)
        .fetch_optional(conn)
        .await?;
    let unknown = || {
        let why = "unknown; list the counters again";
        LedgerError::Refused(format!("counter {counter_id}: {why}"))
    };
    unsigned_small(home.ok_or_else(unknown)?, "counter.partition_id")
}

/// See [`crate::Counters::get`].
pub(crate) async fn by_name(
    store: &Store,
    series_id: i64,
    serial: &str,
    key: &str,
) -> Result<Option<Counter>, LedgerError> {
    let mut query = QueryBuilder::new(COLUMNS);
    push_name(&mut query, series_id, serial, key);
    query.build().typed::<CounterRow>().fetch_optional_into(&store.reader).await
}

/// Locks counters by id, in the order of their names; unknown ids are left out. Every caller locks
/// several counters in this one order, or two transactions would wait for each other.
pub(crate) async fn lock_all(conn: &mut Conn, ids: &[i64]) -> Result<Vec<Counter>, LedgerError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut query = QueryBuilder::new(COLUMNS);
    query.push("where counter_id");
    query.push_among(ids.to_vec());
    query.push(" order by series_id, serial, key");
    query.build().for_update().typed::<CounterRow>().fetch_all_into(conn).await
}

/// Locks the counter that a spec names, creating it where there is none. Refuses one that is not of
/// this partition, or whose series has left it.
pub(crate) async fn lock_or_create(
    conn: &mut Conn,
    at: At,
    node: NodeId,
    spec: &CounterSpec,
    now_us: i64,
) -> Result<Resolved, LedgerError> {
    // Refused for an existing counter as well: its next values would be computed with it.
    columns::step(spec.step)?;
    let resolved = match lock(conn, spec).await? {
        Some(resolved) => resolved,
        None => {
            must_be_current(conn, at.partition, spec).await?;
            create(conn, at.partition, node, spec, now_us).await?
        }
    };
    of_partition(resolved, at.partition)
}

/// The same for a counter of which numbers are issued already, wherever they were taken: it is the
/// one of its name, or is created where its series lives now. A ledger that went back may show the
/// series in another partition (F9); the counter goes on there.
pub(crate) async fn lock_or_create_at_home(
    conn: &mut Conn,
    partition: u32,
    node: NodeId,
    spec: &CounterSpec,
    now_us: i64,
) -> Result<Resolved, LedgerError> {
    if let Some(resolved) = lock(conn, spec).await? {
        return Ok(resolved);
    }
    let home = home(conn, spec.series_id).await?;
    let partition = home.map_or(partition, |home| home.partition);
    create(conn, partition, node, spec, now_us).await
}

/// Creates the counter that a spec names in epoch 0 with nothing taken: older than any epoch, so
/// that its first touch resolves it like any other. It is locked.
async fn create(
    conn: &mut Conn,
    partition: u32,
    node: NodeId,
    spec: &CounterSpec,
    now_us: i64,
) -> Result<Resolved, LedgerError> {
    let step = columns::step(spec.step)?;
    let origin = signed(spec.start, "start")? - step;
    // Another transaction may be creating it: the insert waits for that one, then does nothing.
    query(
        "insert into counter (series_id, serial, key, partition_id, epoch, origin, start_value,
         taken, ceiling, step, seeded_by, seeded_at_us)
         values ($1, $2, $3, $4, 0, $5, $5, $5, $5, $6, $7, $8) on conflict do nothing",
    )
    .bind(spec.series_id)
    .bind(&spec.serial)
    .bind(&spec.key)
    .bind(small(partition, "partition")?)
    .bind(origin)
    .bind(step)
    .bind(bytes(&node))
    .bind(now_us)
    .execute(&mut *conn)
    .await?;
    let gone = || LedgerError::Conflict("counter: created and gone".into());
    lock(conn, spec).await?.ok_or_else(gone)
}

/// Refuses a counter of another partition: its series moved before it had any (F8). Its epoch says
/// nothing of this partition's, so the caller is not fenced, and no epoch has to end for it.
fn of_partition(resolved: Resolved, partition: u32) -> Result<Resolved, LedgerError> {
    if resolved.counter.partition == partition {
        Ok(resolved)
    } else {
        Err(LedgerError::SeriesChanged)
    }
}

/// Refuses a first counter in a partition that its series has left meanwhile (F8), for a version
/// older than the first use of the series, and below the start in force; keeps the series from
/// changing until the transaction ends.
async fn must_be_current(
    conn: &mut Conn,
    partition: u32,
    spec: &CounterSpec,
) -> Result<(), LedgerError> {
    let Some(home) = home(conn, spec.series_id).await? else { return Ok(()) };
    let is_below = spec.version < home.active_version
        && versions::start_in_force(conn, spec).await?.is_some_and(|start| spec.start < start);
    if home.partition != partition || spec.version < home.used_since || is_below {
        return Err(LedgerError::SeriesChanged);
    }
    Ok(())
}

/// Where a series lives.
struct Home {
    partition: u32,
    /// Its first version that may have issued numbers,
    used_since: u32,
    /// and the one in force.
    active_version: u32,
}

/// The columns of a series that say so.
#[derive(FromRow)]
struct HomeRow {
    partition: i32,
    used_since: i32,
    active_version: i32,
}

/// Where a series lives until the transaction ends; `None`: the ledger does not know it.
async fn home(conn: &mut Conn, series_id: i64) -> Result<Option<Home>, LedgerError> {
    let series: Option<HomeRow> =
        query_as("select partition, used_since, active_version from series where series_id = $1")
            .for_share()
            .bind(series_id)
            .fetch_optional(conn)
            .await?;
    let Some(series) = series else { return Ok(None) };
    Ok(Some(Home {
        partition: unsigned_small(series.partition, "partition")?,
        used_since: unsigned_small(series.used_since, "used_since")?,
        active_version: unsigned_small(series.active_version, "active_version")?,
    }))
}

/// The counter of a name, where there is one.
pub(crate) async fn id_of(
    conn: &mut Conn,
    series_id: i64,
    serial: &str,
    key: &str,
) -> Result<Option<i64>, LedgerError> {
    let mut query = QueryBuilder::new("select counter_id from counter ");
    push_name(&mut query, series_id, serial, key);
    Ok(query.build().scalar().fetch_optional(conn).await?)
}

async fn lock(conn: &mut Conn, spec: &CounterSpec) -> Result<Option<Resolved>, LedgerError> {
    let mut query = QueryBuilder::new(COLUMNS);
    push_name(&mut query, spec.series_id, &spec.serial, &spec.key);
    query.build().for_update().typed::<ResolvedRow>().fetch_optional_into(conn).await
}

fn push_name(query: &mut QueryBuilder<'_>, series_id: i64, serial: &str, key: &str) {
    query.push("where series_id = ").push_bind(series_id);
    query.push(" and serial = ").push_bind(serial.to_owned());
    query.push(" and key = ").push_bind(key.to_owned());
}

/// The columns of a counter, as [`COLUMNS`] names them.
#[derive(FromRow)]
struct ResolvedRow {
    #[sqlx(flatten)]
    counter: CounterRow,
    seeded_by: Vec<u8>,
}

impl TryFrom<ResolvedRow> for Resolved {
    type Error = LedgerError;

    fn try_from(row: ResolvedRow) -> Result<Self, LedgerError> {
        Ok(Resolved { counter: row.counter.try_into()?, seeded_by: row.seeded_by })
    }
}

/// Moves counters of the database path, one by one: fenced by the epoch in their own rows.
pub(crate) async fn advance(conn: &mut Conn, at: At, moves: &[Move]) -> Result<(), LedgerError> {
    let (partition, epoch) = ownership(at)?;
    for to in moves {
        let moved = query(
            "update counter set taken = $4, ceiling = $4, journaled = journaled + $5
             where counter_id = $1 and partition_id = $2 and epoch = $3",
        )
        .bind(to.counter_id)
        .bind(partition)
        .bind(epoch)
        .bind(to.value)
        .bind(to.journaled)
        .execute(&mut *conn)
        .await?;
        if moved.rows_affected() == 0 {
            return Err(LedgerError::fenced(at));
        }
    }
    Ok(())
}
