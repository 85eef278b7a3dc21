//! The accounts of counters, for auditors: all of one moment, so that counters, journal, gaps and
//! records kept aside belong together. Reads in pages, and keeps none of them.

mod by_hand;
mod ends;
mod voids;

use std::collections::HashMap;

use ends::{end, files, part, revised};
use sqlx_macros::FromRow;

use crate::accounting::{Met, Open, Walk, What};
use crate::columns::{Word, read_uuid, unsigned};
use crate::counters::list;
use crate::dialect::Conn;
use crate::query::{QueryBuilder, Row, query, query_as, query_scalar};
use crate::{
    AccountRequest, Accounted, BoundRows, Counter, CounterAccount, CounterFilter, DatedPart,
    EntryKind, EntryRow, GapReason, LedgerError, Register, Run,
};

/// Counters that are listed at once.
const COUNTERS_PAGE: u32 = 1_000;

/// Rows that are read at once.
const ROWS_PAGE: i64 = 10_000;

/// The path of a row that represents many in the archive.
const ARCHIVED: &str = "archived";

/// A page of what accounts for a counter's values, in their order: issued numbers, gaps, records
/// that the journal did not take, collisions, reservations. Each table is read from the place on,
/// so that a page is no longer than its limit.
const PAGE: &str = "select place, id, first_value, last_value, step, word, epoch, at_us,
     allocation_id, said_by, said, batch_id, is_sealed from (
     select place, id, first_value, last_value, step, word, epoch, at_us, allocation_id, said_by,
     said, batch_id, is_sealed from (
       select cast(0 as bigint) as place, cast(0 as bigint) as id, r.first_value, r.last_value,
         r.step, r.path as word, cast(0 as bigint) as epoch, r.issued_at_us as at_us,
         r.allocation_id, cast(null as text) as said_by, cast(null as text) as said, r.batch_id,
         cast(case when b.batch_id is null then 0 when b.proof is null then 1 else 2 end
           as bigint) as is_sealed
       from journal_row r left join journal_batch b on b.batch_id = r.batch_id
       where r.counter_id = $1 and r.first_value >= $2 and (r.first_value > $2 or $3 < 0)
       order by r.first_value limit $5) as journaled
     union all select place, id, first_value, last_value, step, word, epoch, at_us,
     allocation_id, said_by, said, batch_id, is_sealed from (
       select cast(1 as bigint) as place, gap_id as id, first_value, last_value, step,
         reason as word, epoch, noted_at_us as at_us,
         cast(null as bytea) as allocation_id, null as said_by, null as said,
         cast(null as bigint) as batch_id, cast(0 as bigint) as is_sealed
       from gap where counter_id = $1 and first_value >= $2
         and (first_value > $2 or $3 < 1 or ($3 = 1 and gap_id > $4))
       order by first_value, gap_id limit $5) as gaps
     union all select place, id, first_value, last_value, step, word, epoch, at_us,
     allocation_id, said_by, said, batch_id, is_sealed from (
       select cast(2 as bigint) as place, journal_rejected_id as id, first_value, last_value,
         step, reason as word, cast(0 as bigint) as epoch, rejected_at_us as at_us,
         allocation_id, acknowledged_by as said_by, acknowledged_reason as said,
         cast(null as bigint) as batch_id, cast(0 as bigint) as is_sealed
       from journal_rejected where counter_id = $1 and first_value >= $2
         and (first_value > $2 or $3 < 2 or ($3 = 2 and journal_rejected_id > $4))
       order by first_value, journal_rejected_id limit $5) as rejected
     union all select place, id, first_value, last_value, step, word, epoch, at_us,
     allocation_id, said_by, said, batch_id, is_sealed from (
       select cast(3 as bigint) as place, collision_id as id, first_value, last_value, step,
         number as word, cast(0 as bigint) as epoch, noted_at_us as at_us, allocation_id,
         acknowledged_by as said_by, acknowledged_reason as said,
         cast(null as bigint) as batch_id, cast(0 as bigint) as is_sealed
       from collision where counter_id = $1 and first_value >= $2
         and (first_value > $2 or $3 < 3 or ($3 = 3 and collision_id > $4))
       order by first_value, collision_id limit $5) as collided
     union all select place, id, first_value, last_value, step, word, epoch, at_us,
     allocation_id, said_by, said, batch_id, is_sealed from (
       select cast(4 as bigint) as place, cast(0 as bigint) as id, first_value, last_value,
         step, state as word, cast(0 as bigint) as epoch, reserved_at_us as at_us,
         reservation_id as allocation_id, cast(null as text) as said_by,
         cast(null as text) as said, cast(null as bigint) as batch_id,
         cast(0 as bigint) as is_sealed
       from reservation where counter_id = $1 and first_value >= $2
         and (first_value > $2 or $3 < 4)
       order by first_value limit $5) as reserved) as parts
     order by first_value, place, id limit $5";

impl Register<'_> {
    /// Accounts for counters, all as they were at one moment.
    ///
    /// # Errors
    /// A ledger that does not answer, rows that no version wrote.
    pub async fn accounts(self, order: &AccountRequest) -> Result<Accounted, LedgerError> {
        self.accounts_with_part(order, None).await
    }

    /// The same, with the part of some counters' numbers that is dated so.
    ///
    /// # Errors
    /// As [`crate::Register::accounts`].
    pub async fn accounts_with_part(
        self,
        order: &AccountRequest,
        part: Option<&DatedPart>,
    ) -> Result<Accounted, LedgerError> {
        self.search(async |store| {
            let mut tx = store.reader.begin_snapshot().await?;
            tx.allow_long_search().await?;
            let accounted = account_for_all(&mut *tx, order, part).await?;
            tx.commit().await?;
            Ok(accounted)
        })
        .await
    }
}

async fn account_for_all(
    conn: &mut Conn,
    order: &AccountRequest,
    dated: Option<&DatedPart>,
) -> Result<Accounted, LedgerError> {
    let mut counters: Vec<Counter> = Vec::new();
    loop {
        let after = counters.last().map(|last| last.counter_id);
        let filter = CounterFilter { after, limit: COUNTERS_PAGE, ..order.filter.clone() };
        let page = list::page(conn, &filter).await?.unwrap_or_default();
        let is_last = page.len() < COUNTERS_PAGE as usize;
        counters.extend(page.into_iter().map(|listed| listed.counter));
        if counters.len() > order.counters_max as usize {
            return Ok(Accounted::TooManyCounters);
        }
        if is_last {
            break;
        }
    }
    let owners = owners(conn).await?;
    let before_key = before_key(conn).await?;
    let mut left = Left { rows: order.rows_max, entries: order.entries_max };
    let mut accounts = Vec::with_capacity(counters.len());
    for counters in counters.chunks(COUNTERS_PAGE as usize) {
        let mut unsettled = unsettled(conn, counters).await?;
        for counter in counters {
            let open = unsettled.remove(&counter.counter_id).unwrap_or_default();
            let owner = owners.get(&counter.partition).copied();
            let Some(account) =
                account_for(conn, counter, (owner, open), (order, before_key), &mut left).await?
            else {
                return Ok(Accounted::TooManyRows);
            };
            let part = part(conn, counter, dated).await?;
            accounts.push(CounterAccount { part, ..account });
        }
    }
    Ok(Accounted::Whole(accounts))
}

/// The highest id of a batch at the time of the first checkpoint, which states it where it does not
/// bind all of them: a batch without a proof up to there may be older than the key. Without such a
/// checkpoint nothing shows that there is a key.
async fn before_key(conn: &mut Conn) -> Result<i64, LedgerError> {
    let first = query_scalar::<String>("select body from checkpoint where checkpoint_no = 1");
    let Some(body) = first.fetch_optional(conn).await? else { return Ok(i64::MAX) };
    let body: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
    let said = body["before_key"].as_i64();
    Ok(said.or_else(|| body["batches"]["upto"].as_i64()).unwrap_or(0))
}

/// What may still be read and listed.
struct Left {
    rows: u64,
    entries: usize,
}

/// The epoch of a partition, and whether it is one of Redis.
type Ownership = (u64, bool);

async fn owners(conn: &mut Conn) -> Result<HashMap<u32, Ownership>, LedgerError> {
    let rows: Vec<(i32, i64, String)> =
        query_as("select partition_id, epoch, owner from partition").fetch_all(conn).await?;
    let owned = |(partition, epoch, owner): (i32, i64, String)| {
        let epoch = unsigned(epoch, "partition.epoch")?;
        Ok((partition.unsigned_abs(), (epoch, owner == "redis")))
    };
    rows.into_iter().map(owned).collect()
}

/// What is not settled of a counter: what was not looked at, and how much is gone.
#[derive(Default)]
struct Unlooked {
    stretches: Vec<(i64, i64)>,
    gone: u64,
}

/// Values of a closed epoch.
#[derive(FromRow)]
struct UnlookedRow {
    counter_id: i64,
    after_value: i64,
    upto_value: i64,
    journaled: i64,
    found: i64,
}

async fn unsettled(
    conn: &mut Conn,
    counters: &[Counter],
) -> Result<HashMap<i64, Unlooked>, LedgerError> {
    let mut query = QueryBuilder::new(
        "select counter_id, after_value, upto_value, journaled, found from unsettled where
         counter_id",
    );
    query.push_among(counters.iter().map(|counter| counter.counter_id).collect::<Vec<i64>>());
    query.push(" order by counter_id, after_value");
    let mut found: HashMap<i64, Unlooked> = HashMap::new();
    let rows: Vec<UnlookedRow> = query.build().typed().fetch_all(conn).await?;
    for row in rows {
        let unlooked = found.entry(row.counter_id).or_default();
        if row.after_value < row.upto_value {
            unlooked.stretches.push((row.after_value, row.upto_value));
        } else {
            unlooked.gone += row.journaled.abs_diff(row.found);
        }
    }
    Ok(found)
}

/// The account of a counter; none where it has more rows than are left.
async fn account_for(
    conn: &mut Conn,
    counter: &Counter,
    (owner, unlooked): (Option<Ownership>, Unlooked),
    (order, before_key): (&AccountRequest, i64),
    left: &mut Left,
) -> Result<Option<CounterAccount>, LedgerError> {
    let is_of_now = owner.is_some_and(|(epoch, _)| epoch == counter.epoch);
    let is_unsettled = !is_of_now && !counter.is_settled();
    // Of an epoch of the database no record is on its way.
    let kind = match owner {
        _ if is_unsettled => Some(EntryKind::Unexamined),
        Some((_, true)) if is_of_now => Some(EntryKind::Pending),
        _ => None,
    };
    let above = kind.map(|kind| (counter.start, kind));
    let open = Open { above, unexamined: unlooked.stretches };
    let mut walk = Walk::from(counter.origin, open, left.entries);
    let mut seen = Seen { start: counter.start, before_key, ..Seen::default() };
    let mut after = (i64::MIN, -1, -1);
    loop {
        let rows = page(conn, counter.counter_id, after).await?;
        let Some(last) = rows.last() else { break };
        let last: PageRow<'_> = last.decode()?;
        after = (last.run.first, last.place, last.id);
        let count = rows.len() as u64;
        let Some(rest) = left.rows.checked_sub(count) else { return Ok(None) };
        left.rows = rest;
        for row in &rows {
            walk.meet(seen.meet(&row.decode()?, order)?);
        }
        if count < ROWS_PAGE.unsigned_abs() {
            break;
        }
    }
    let step = i64::try_from(counter.step).unwrap_or(i64::MAX);
    let is_exceeded = walk.end(counter.taken, step);
    left.entries -= walk.entries.len();
    let voids = voids::voids(conn, counter.counter_id, left.entries).await?;
    left.entries -= voids.listed.len();
    let by_hand = by_hand::listed(conn, counter.counter_id, left.entries).await?;
    left.entries -= by_hand.len();
    let (files, further_files) = files(conn, counter.counter_id, seen.archived).await?;
    let (first, last) = (seen.first, seen.last);
    Ok(Some(CounterAccount {
        first: end(conn, counter.counter_id, first.map(|run| (run.first, run.first))).await?,
        last: end(conn, counter.counter_id, last.map(|run| (run.first, run.last))).await?,
        part: None,
        counter: counter.clone(),
        stretches: walk.stretches,
        further_stretches: walk.further_stretches,
        tally: walk.tally,
        entries: walk.entries,
        further_entries: walk.further_entries,
        revised: revised(conn, counter.counter_id).await?,
        voids,
        further_by_hand: (walk.tally.registered + walk.tally.as_written)
            .saturating_sub(by_hand.len() as u64),
        by_hand,
        files,
        further_files,
        rows: seen.rows,
        is_unsettled,
        // The counter has counted what its own epoch journaled: what is missing there and was
        // counted is not on its way.
        gone: unlooked.gone + counter.journaled.saturating_sub(seen.of_epoch),
        is_exceeded,
        unexplained: seen.unexplained,
    }))
}

/// The columns of [`PAGE`].
#[derive(FromRow)]
struct PageRow<'r> {
    place: i64,
    id: i64,
    #[sqlx(flatten)]
    run: Run,
    word: &'r str,
    epoch: i64,
    at_us: i64,
    allocation_id: Option<&'r [u8]>,
    said_by: Option<&'r str>,
    said: Option<&'r str>,
    batch_id: Option<i64>,
    is_sealed: i64,
}

async fn page(
    conn: &mut Conn,
    counter_id: i64,
    (first, place, id): (i64, i64, i64),
) -> Result<Vec<Row>, LedgerError> {
    let page = query(PAGE).bind(counter_id).bind(first).bind(place).bind(id).bind(ROWS_PAGE);
    Ok(page.fetch_all(conn).await?)
}

/// What was noticed of a counter's rows besides their values.
#[derive(Default)]
struct Seen {
    /// The value that the counter's epoch began above.
    start: i64,
    /// See [`before_key`].
    before_key: i64,
    /// Values of that epoch that have a record.
    of_epoch: u64,
    first: Option<Run>,
    last: Option<Run>,
    rows: BoundRows,
    archived: u64,
    unexplained: u64,
}

impl Seen {
    fn meet(&mut self, row: &PageRow<'_>, order: &AccountRequest) -> Result<Met, LedgerError> {
        let PageRow { run, place, word, .. } = *row;
        if matches!(place, 0 | 2) && run.first > self.start {
            self.of_epoch += run.count();
        }
        let what = match place {
            0 => {
                self.first.get_or_insert(run);
                self.last = Some(run);
                self.bind(row, order);
                match word {
                    ARCHIVED => {
                        self.archived += 1;
                        What::Archived
                    }
                    "imported" => What::Imported,
                    "registered" => What::Registered,
                    "as-written" => What::AsWritten,
                    _ => What::Issued,
                }
            }
            1 => What::Entry(EntryKind::Gap(GapReason::read(word)?), entry_row(row)?),
            4 => What::Entry(EntryKind::Reserved, entry_row(row)?),
            _ => {
                let row = entry_row(row)?;
                self.unexplained += u64::from(row.explained.is_none());
                let kind = if place == 2 { EntryKind::Rejected } else { EntryKind::Collision };
                What::Entry(kind, row)
            }
        };
        Ok(Met { run, what })
    }

    /// Counts how a row of the journal is bound.
    fn bind(&mut self, row: &PageRow<'_>, order: &AccountRequest) {
        let batch_id = row.batch_id.unwrap_or_default();
        // 0: of a batch that is not there, 1: without a proof, 2: with one.
        let sealed = row.is_sealed;
        let place = match &order.seen {
            _ if sealed == 0 => &mut self.rows.keyless,
            Some(_) if sealed == 1 && batch_id > self.before_key => &mut self.rows.keyless,
            Some(seen) if seen.holds(batch_id) => &mut self.rows.bound,
            _ if batch_id < 1 => &mut self.rows.keyless,
            _ => &mut self.rows.later,
        };
        *place += 1;
    }
}

fn entry_row(row: &PageRow<'_>) -> Result<EntryRow, LedgerError> {
    let said = row.said.unwrap_or_default();
    Ok(EntryRow {
        id: row.id,
        noted_at_us: row.at_us,
        epoch: unsigned(row.epoch, "gap.epoch")?,
        allocation_id: row.allocation_id.map(|id| read_uuid(id, "allocation_id")).transpose()?,
        explained: row.said_by.map(|by| (by.to_owned(), said.to_owned())),
    })
}
