//! The pool of a counter: its returned values, which are gaps until they are taken again, the
//! lowest first.

use std::collections::BTreeSet;
use std::iter;

use sqlx_macros::FromRow;

use crate::columns::{self, Word as _, signed};
use crate::dialect::Conn;
use crate::new_row::ValueRange;
use crate::query::{QueryBuilder, query, query_as, query_scalar};
use crate::register::gaps;
use crate::{
    Counter, CounterSpec, Counters, GapReason, LedgerError, ReservationFinding, progression,
};

/// Returned values of a locked counter, each with its step, the lowest first.
#[derive(Debug, Default)]
pub(crate) struct ReturnedValues(BTreeSet<(i64, i64)>);

/// Which returned values a request may take: on its step, and neither below its start nor above its
/// end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fit {
    step: i64,
    start: i64,
    max: i64,
}

impl Fit {
    fn of(spec: &CounterSpec) -> Result<Self, LedgerError> {
        let (step, start) = (columns::step(spec.step)?, signed(spec.start, "start")?);
        Ok(Fit { step, start, max: i64::try_from(spec.max).unwrap_or(i64::MAX) })
    }

    fn has(self, (value, step): (i64, i64)) -> bool {
        step == self.step && (self.start..=self.max).contains(&value)
    }
}

/// A run of returned values, from its lowest one that fits.
#[derive(FromRow)]
struct ReturnedRun {
    lowest: i64,
    last_value: i64,
}

impl ReturnedValues {
    /// Returned values of a locked counter that orders with these specs may take, each one of them.
    /// No statement where there are none; one for all specs of one version, which is the rule.
    pub(crate) async fn of(
        conn: &mut Conn,
        counter: &Counter,
        specs: &[&CounterSpec],
    ) -> Result<Self, LedgerError> {
        let mut values = BTreeSet::new();
        if counter.returned > counter.reissued {
            let fits =
                specs.iter().map(|spec| Fit::of(spec)).collect::<Result<BTreeSet<_>, _>>()?;
            for fit in fits {
                // Others may take all of these but one.
                let found = fitting(conn, counter.counter_id, fit, specs.len()).await?;
                values.extend(found.into_iter().map(|value| (value, fit.step)));
            }
        }
        Ok(ReturnedValues(values))
    }

    /// The lowest value that a spec may take.
    pub(crate) fn lowest(&self, spec: &CounterSpec) -> Result<Option<i64>, LedgerError> {
        let fit = Fit::of(spec)?;
        Ok(self.0.iter().find(|held| fit.has(**held)).map(|(value, _)| *value))
    }

    /// Takes a value out that an order takes.
    pub(crate) fn take(&mut self, value: i64) {
        self.0.retain(|(held, _)| *held != value);
    }
}

/// The lowest returned values of a counter that fit, at most so many.
async fn fitting(
    conn: &mut Conn,
    counter_id: i64,
    fit: Fit,
    count_max: usize,
) -> Result<Vec<i64>, LedgerError> {
    let runs: Vec<ReturnedRun> = query_as(
        "select lowest, last_value from (
           select first_value, last_value, case when first_value >= $3 then first_value
             else first_value + ($3 - first_value + step - 1) / step * step end as lowest
           from gap where counter_id = $1 and reason = 'returned' and step = $2
           and last_value >= $3 and first_value <= $4) as run
         where lowest <= last_value and lowest <= $4 order by first_value limit $5",
    )
    .bind(counter_id)
    .bind(fit.step)
    .bind(fit.start)
    .bind(fit.max)
    .bind(i64::try_from(count_max).unwrap_or(i64::MAX))
    .fetch_all(conn)
    .await?;
    let mut values = Vec::with_capacity(runs.len());
    for ReturnedRun { lowest, last_value } in runs {
        let next = |value: &i64| value.checked_add(fit.step);
        let run = iter::successors(Some(lowest), next);
        let run = run.take_while(|value| *value <= last_value.min(fit.max));
        let left = count_max - values.len();
        values.extend(run.take(left));
    }
    Ok(values)
}

impl Counters<'_> {
    /// The lowest returned value that a request for one number would take of a counter, if there is
    /// one; another request may take it first.
    pub async fn lowest_returned(self, spec: &CounterSpec) -> Result<Option<i64>, LedgerError> {
        self.read(async |reader| {
            let mut conn = reader.acquire().await?;
            let counter_id: Option<i64> = query_scalar(
                "select counter_id from counter where series_id = $1 and serial = $2 and key = $3
                 and returned > reissued",
            )
            .bind(spec.series_id)
            .bind(&spec.serial)
            .bind(&spec.key)
            .fetch_optional(&mut *conn)
            .await?;
            let Some(counter_id) = counter_id else { return Ok(None) };
            let lowest = fitting(&mut *conn, counter_id, Fit::of(spec)?, 1).await?;
            Ok(lowest.first().copied())
        })
        .await
    }
}

/// A run of the pool in the register.
#[derive(FromRow)]
struct PoolRun {
    gap_id: i64,
    first_value: i64,
    last_value: i64,
    step: i64,
}

/// Takes values out of the pool that are taken again; their counters are locked. What is not in the
/// pool is left as it is. Statements for each run that becomes shorter, not for each value.
pub(crate) async fn take_out(conn: &mut Conn, values: &[ValueRange]) -> Result<(), LedgerError> {
    let mut values = values.to_vec();
    values.sort_unstable();
    for of_counter in values.chunk_by(|one, next| one.counter_id == next.counter_id) {
        take_out_of(conn, of_counter).await?;
    }
    Ok(())
}

/// The same for sorted values of one counter.
async fn take_out_of(conn: &mut Conn, values: &[ValueRange]) -> Result<(), LedgerError> {
    let (Some(lowest), Some(highest)) = (values.first(), values.last()) else { return Ok(()) };
    let runs: Vec<PoolRun> = query_as(
        "select gap_id, first_value, last_value, step from gap where counter_id = $1
         and reason = 'returned' and first_value <= $3 and last_value >= $2",
    )
    .bind(lowest.counter_id)
    .bind(lowest.first)
    .bind(highest.last)
    .fetch_all(&mut *conn)
    .await?;
    let mut gone: i64 = 0;
    let mut emptied: Vec<i64> = Vec::new();
    for run in runs {
        let left = left_of(&run, values);
        let count = |(first, last): (i64, i64)| (last - first) / run.step + 1;
        let before = count((run.first_value, run.last_value));
        let taken = before - left.iter().copied().map(count).sum::<i64>();
        gone += taken;
        match left.split_first() {
            _ if taken == 0 => {}
            None => emptied.push(run.gap_id),
            Some((rest, above)) => gaps::shorten(conn, run.gap_id, *rest, above).await?,
        }
    }
    if !emptied.is_empty() {
        let mut query = QueryBuilder::new("delete from gap where gap_id");
        query.push_among(emptied);
        query.build().execute(&mut *conn).await?;
    }
    if gone > 0 {
        gaps::count_reissued(conn, lowest.counter_id, gone).await?;
    }
    Ok(())
}

/// The parts of a run, the lowest first, that remain without some values.
fn left_of(run: &PoolRun, values: &[ValueRange]) -> Vec<(i64, i64)> {
    let mut left = vec![(run.first_value, run.last_value)];
    for value in values {
        let without = |(first, last): (i64, i64)| {
            progression::without((first, last, run.step), (value.first, value.last))
        };
        left = left.into_iter().flat_map(without).collect();
    }
    left
}

/// Leaves the pool of a locked counter behind, for a reason that is a gap for good.
pub(crate) async fn spend(
    conn: &mut Conn,
    counter_id: i64,
    reason: GapReason,
    now_us: i64,
) -> Result<(), LedgerError> {
    query(
        "update gap set reason = $2, noted_at_us = $3
         where counter_id = $1 and reason = 'returned'",
    )
    .bind(counter_id)
    .bind(reason.word())
    .bind(now_us)
    .execute(&mut *conn)
    .await?;
    query("update counter set reissued = returned where counter_id = $1")
        .bind(counter_id)
        .execute(conn)
        .await?;
    Ok(())
}

/// Counters whose register has another number of returned values than their rows count, at most
/// `limit`.
pub(super) async fn deviations(
    conn: &mut Conn,
    limit: u32,
) -> Result<Vec<ReservationFinding>, LedgerError> {
    let mut query = QueryBuilder::new(
        "select c.counter_id, c.returned - c.reissued as counted, cast(coalesce(g.registered, 0)
         as bigint) as registered from counter c left join (select counter_id,
         sum((last_value - first_value) / step + 1) as registered from gap
         where reason = 'returned' group by counter_id) as g on g.counter_id = c.counter_id
         where c.returned - c.reissued <> coalesce(g.registered, 0) order by c.counter_id limit ",
    );
    query.push_bind(gaps::bounded(limit));
    let rows: Vec<(i64, i64, i64)> = query.build().typed().fetch_all(conn).await?;
    let finding = |(counter_id, counted, registered)| ReservationFinding::Pool {
        counter_id,
        counted,
        registered,
    };
    Ok(rows.into_iter().map(finding).collect())
}
