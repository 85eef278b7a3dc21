//! The gap register, and the searches for values that nothing accounts for.

use sqlx_macros::FromRow;

use crate::columns::{Word, signed, unsigned, unsigned_small};
use crate::dialect::Conn;
use crate::new_row::ValueRange;
use crate::query::{QueryBuilder, query, query_as};
use crate::register::new_gaps::{NewGap, register_all};
use crate::{At, Audits, Gap, GapFilter, GapReason, LedgerError, Register, Span, progression};

/// Where a value of a counter may stand.
const PLACES: [&str; 5] = ["journal_row", "gap", "journal_rejected", "reservation", "collision"];

/// Holes registered per statement when an epoch is closed.
const HOLES_PER_SEARCH: u32 = 1_000;
/// Most rows of a list.
const LIST_MAX: u32 = 10_000;
/// Rows of a list where the caller names no limit.
const LIST_DEFAULT: u32 = 100;

/// The columns of [`GapRow`].
macro_rules! gap_columns {
    () => {
        "g.counter_id, c.series_id, c.serial, c.key, c.partition_id, g.epoch, g.first_value,
         g.last_value, g.step, g.reason, g.noted_at_us"
    };
}
pub(crate) const COLUMNS: &str = gap_columns!();

/// The beginning of a query for gaps `g` with their counters `c`.
pub(crate) const SELECT: &str =
    concat!("select ", gap_columns!(), " from gap g join counter c on c.counter_id = g.counter_id");

/// The bound that a caller's limit means.
pub(crate) fn bounded(limit: u32) -> i64 {
    i64::from(if limit == 0 { LIST_DEFAULT } else { limit.min(LIST_MAX) })
}

impl Audits<'_> {
    /// Runs of values in (`after`, `upto`] of a counter that are neither in the journal nor in the
    /// gap register, nor reserved, at most `limit` of them.
    pub async fn holes(
        self,
        counter_id: i64,
        after: i64,
        upto: i64,
        limit: u32,
    ) -> Result<Vec<Span>, LedgerError> {
        self.search(async |store| {
            let mut tx = store.reader.begin().await?;
            tx.allow_long_search().await?;
            let found =
                search(&mut *tx, counter_id, after, upto, None, limit.min(LIST_MAX)).await?;
            tx.commit().await?;
            found
                .into_iter()
                .map(|(first, last)| {
                    Ok(Span { first: unsigned(first, "hole")?, last: unsigned(last, "hole")? })
                })
                .collect()
        })
        .await
    }

    /// Values of a counter that are in the journal more than once, or in more than one of the
    /// journal, the gap register and the reservations, at most `limit`.
    pub async fn overlaps(self, counter_id: i64, limit: u32) -> Result<Vec<Span>, LedgerError> {
        self.search(async |store| {
            let mut tx = store.reader.begin().await?;
            tx.allow_long_search().await?;
            let rows: Vec<RunRow> = query_as(
                "with span as (
                   select first_value, last_value from journal_row where counter_id = $1
                   union all select first_value, last_value from journal_rejected where
                   counter_id = $1
                   union all select first_value, last_value from reservation where
                   counter_id = $1
                   union all select first_value, last_value from gap where counter_id = $1),
                 neighbour as (
                   select first_value, last_value, max(last_value) over (order by first_value,
                     last_value rows between unbounded preceding and 1 preceding) as before from
                     span)
                 select first_value, case when last_value < before then last_value else before end
                   as last_value from neighbour where before >= first_value order by 1 limit $2",
            )
            .bind(counter_id)
            .bind(i64::from(limit.min(LIST_MAX)))
            .fetch_all(&mut *tx)
            .await?;
            tx.commit().await?;
            rows.into_iter().map(RunRow::span).collect()
        })
        .await
    }
}

impl Register<'_> {
    /// Gaps, newest first.
    pub async fn gaps(self, filter: &GapFilter) -> Result<Vec<Gap>, LedgerError> {
        self.read(async |reader| {
            let mut query = QueryBuilder::new(SELECT);
            query.push(" where 1 = 1");
            if let Some(counter_id) = filter.counter_id {
                query.push(" and g.counter_id = ").push_bind(counter_id);
            }
            if let Some(series_id) = filter.series_id {
                query.push(" and c.series_id = ").push_bind(series_id);
            }
            if let Some(reason) = filter.reason {
                query.push(" and g.reason = ").push_bind(reason.word());
            }
            query.push(" order by g.gap_id desc limit ").push_bind(bounded(filter.limit));
            query.build().typed::<GapRow>().fetch_all_into(reader).await
        })
        .await
    }
}

/// Runs of values in (`after`, `upto`] that are recorded nowhere. A run lies between two neighbours
/// whose distance is more than the step of the second; the end of the search is a neighbour on the
/// step that is given, or else the counter's own.
pub(crate) async fn search(
    conn: &mut Conn,
    counter_id: i64,
    after: i64,
    upto: i64,
    step: Option<i64>,
    limit: u32,
) -> Result<Vec<(i64, i64)>, LedgerError> {
    // The journal is read from the row that reaches into the search on, not from its beginning.
    Ok(query_as(
        "with span as (
           select first_value, last_value, step from journal_row
             where counter_id = $1 and first_value <= $3 and last_value > $2
             and first_value >= coalesce((select first_value from journal
               where counter_id = $1 and first_value <= $2
               order by first_value desc limit 1), $2)
           union all select first_value, last_value, step from gap
             where counter_id = $1 and first_value <= $3 and last_value > $2
             and first_value >= coalesce((select first_value from gap
               where counter_id = $1 and first_value <= $2
               order by first_value desc limit 1), $2)
           union all select first_value, last_value, step from journal_rejected
             where counter_id = $1 and first_value <= $3 and last_value > $2
           union all select first_value, last_value, step from reservation
             where counter_id = $1 and first_value <= $3 and last_value > $2
           union all select first_value, last_value, step from collision
             where counter_id = $1 and first_value <= $3 and last_value > $2
           union all select $3 + 1, $3 + 1, coalesce($5, step) from counter
             where counter_id = $1),
         neighbour as (
           select first_value, step, coalesce(max(last_value) over (order by first_value,
             last_value rows between unbounded preceding and 1 preceding), $2) as before
             from span)
         select before + step as first_missing,
           before + ((first_value - 1 - before) / step) * step as last_missing
         from neighbour where first_value > before + step order by first_missing limit $4",
    )
    .bind(counter_id)
    .bind(after)
    .bind(upto)
    .bind(i64::from(limit))
    .bind(step)
    .fetch_all(conn)
    .await?)
}

/// A search for values that nothing accounts for, and what to record of them.
pub(crate) struct Loss {
    pub(crate) counter_id: i64,
    /// The search begins after this value
    pub(crate) after: i64,
    /// and ends with this one.
    pub(crate) upto: i64,
    pub(crate) step: i64,
    pub(crate) reason: GapReason,
    pub(crate) epoch: u64,
}

/// The part of (`after`, `upto`] that begins it and in which at most `rows_max` rows of the ledger
/// begin: how many do, and its last value. Ends with a row, or with the whole.
pub(crate) async fn window(
    conn: &mut Conn,
    counter_id: i64,
    after: i64,
    upto: i64,
    rows_max: u32,
) -> Result<(u32, i64), LedgerError> {
    let mut query = QueryBuilder::new(
        "select count(*) as rows, max(last_value) as last from (
         select first_value, last_value from (",
    );
    for (index, table) in PLACES.iter().enumerate() {
        query.push(if index == 0 { "" } else { " union all " });
        query.push(
            "select first_value, last_value from (
             select first_value, last_value from ",
        );
        query.push(table);
        query.push(" where counter_id = ").push_bind(counter_id);
        query.push(" and first_value > ").push_bind(after);
        query.push(" and first_value <= ").push_bind(upto);
        query.push(" order by first_value limit ").push_bind(i64::from(rows_max));
        query.push(") as part");
    }
    query.push(") as spans order by first_value limit ").push_bind(i64::from(rows_max));
    query.push(") as spans_of_window");
    let (rows, last): (i64, Option<i64>) = query.build().typed().fetch_one(conn).await?;
    let rows = u32::try_from(rows).unwrap_or(u32::MAX);
    let end = last.filter(|_| rows == rows_max).map_or(upto, |last| last.min(upto));
    Ok((rows, end))
}

/// Registers every hole of a search, however many.
pub(crate) async fn register_holes(
    conn: &mut Conn,
    loss: Loss,
    now_us: i64,
) -> Result<(), LedgerError> {
    let mut after = loss.after;
    loop {
        let Loss { counter_id, upto, .. } = loss;
        let found = search(conn, counter_id, after, upto, None, HOLES_PER_SEARCH).await?;
        register(conn, &loss, &found, now_us).await?;
        match found.last() {
            Some((_, last)) if found.len() >= HOLES_PER_SEARCH as usize => after = *last,
            _ => return Ok(()),
        }
    }
}

/// Registers runs that a search found.
pub(crate) async fn register(
    conn: &mut Conn,
    loss: &Loss,
    runs: &[(i64, i64)],
    now_us: i64,
) -> Result<(), LedgerError> {
    let Loss { counter_id, step, reason, .. } = *loss;
    let epoch = signed(loss.epoch, "epoch")?;
    let gap = |&(first, last)| NewGap { counter_id, first, last, step, reason, epoch };
    let gaps: Vec<NewGap> = runs.iter().map(gap).collect();
    register_all(conn, &gaps, now_us).await
}

/// The run of a gap.
#[derive(FromRow)]
struct GapRun {
    gap_id: i64,
    first_value: i64,
    last_value: i64,
    step: i64,
    reason: String,
}

/// Removes from the register a run that turned up after all, or is taken again; what is left of a
/// gap keeps its reason, its epoch and its time. A returned value that leaves is counted with its
/// counter, whose row is locked.
pub(crate) async fn shrink(conn: &mut Conn, value_range: ValueRange) -> Result<(), LedgerError> {
    let rows: Vec<GapRun> = query_as(
        "select gap_id, first_value, last_value, step, reason from gap
         where counter_id = $1 and first_value <= $3 and last_value >= $2",
    )
    .bind(value_range.counter_id)
    .bind(value_range.first)
    .bind(value_range.last)
    .fetch_all(&mut *conn)
    .await?;
    for GapRun { gap_id, first_value, last_value, step, reason } in rows {
        let run = (first_value, last_value, step);
        let left = progression::without(run, (value_range.first, value_range.last));
        if GapReason::read(&reason)? == GapReason::Returned {
            let count = |(first, last): (i64, i64)| (last - first) / step + 1;
            let gone =
                count((first_value, last_value)) - left.iter().copied().map(count).sum::<i64>();
            count_reissued(conn, value_range.counter_id, gone).await?;
        }
        match left.split_first() {
            Some((rest, above)) => shorten(conn, gap_id, *rest, above).await?,
            None => {
                query("delete from gap where gap_id = $1").bind(gap_id).execute(&mut *conn).await?;
            }
        }
    }
    Ok(())
}

/// Leaves of a gap its lowest part, and those above as gaps of their own; each keeps its reason,
/// its epoch and its time.
pub(crate) async fn shorten(
    conn: &mut Conn,
    gap_id: i64,
    (first, last): (i64, i64),
    above: &[(i64, i64)],
) -> Result<(), LedgerError> {
    // Those above first: the row's own first value may move only to where none of them begins.
    for (first, last) in above {
        query(
            "insert into gap (counter_id, first_value, last_value, step, reason, epoch,
             noted_at_us) select counter_id, $2, $3, step, reason, epoch, noted_at_us
             from gap where gap_id = $1",
        )
        .bind(gap_id)
        .bind(first)
        .bind(last)
        .execute(&mut *conn)
        .await?;
    }
    query("update gap set first_value = $2, last_value = $3 where gap_id = $1")
        .bind(gap_id)
        .bind(first)
        .bind(last)
        .execute(conn)
        .await?;
    Ok(())
}

/// Counts values of a locked counter that came back, or are still to come.
pub(crate) async fn count_returned(
    conn: &mut Conn,
    counter_id: i64,
    count: i64,
) -> Result<(), LedgerError> {
    query("update counter set returned = returned + $2 where counter_id = $1")
        .bind(counter_id)
        .bind(count)
        .execute(conn)
        .await?;
    Ok(())
}

/// Counts returned values of a locked counter that left the register.
pub(crate) async fn count_reissued(
    conn: &mut Conn,
    counter_id: i64,
    count: i64,
) -> Result<(), LedgerError> {
    query("update counter set reissued = reissued + $2 where counter_id = $1")
        .bind(counter_id)
        .bind(count)
        .execute(conn)
        .await?;
    Ok(())
}

/// A gap with what names its counter.
#[derive(FromRow)]
pub(crate) struct GapRow {
    counter_id: i64,
    series_id: i64,
    serial: String,
    key: String,
    partition_id: i32,
    epoch: i64,
    #[sqlx(flatten)]
    run: RunRow,
    step: i64,
    reason: String,
    noted_at_us: i64,
}

impl TryFrom<GapRow> for Gap {
    type Error = LedgerError;

    fn try_from(row: GapRow) -> Result<Self, LedgerError> {
        Ok(Gap {
            counter_id: row.counter_id,
            series_id: row.series_id,
            serial: row.serial,
            key: row.key,
            at: At {
                partition: unsigned_small(row.partition_id, "counter.partition_id")?,
                epoch: unsigned(row.epoch, "gap.epoch")?,
            },
            span: row.run.span()?,
            step: unsigned(row.step, "gap.step")?,
            reason: GapReason::read(&row.reason)?,
            noted_at_us: row.noted_at_us,
        })
    }
}

/// The first and the last value of a row.
#[derive(Clone, Copy, FromRow)]
pub(crate) struct RunRow {
    pub(crate) first_value: i64,
    pub(crate) last_value: i64,
}

impl RunRow {
    /// The run of a row.
    pub(crate) fn span(self) -> Result<Span, LedgerError> {
        Ok(Span {
            first: unsigned(self.first_value, "first_value")?,
            last: unsigned(self.last_value, "last_value")?,
        })
    }
}
