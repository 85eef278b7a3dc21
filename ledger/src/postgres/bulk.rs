//! Statements over many rows: one round trip each, by `unnest`, whatever the size of the batch.

use std::collections::HashSet;

use async_trait::async_trait;
use numerator_base::node::NodeId;
use sqlx::error::{BoxDynError, DatabaseError};
use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::{Arguments as _, Row as _};

use crate::LedgerError;
use crate::batch::{
    Before, Earlier, Mark, Move, Moves, Neighbour, Table, WantedKey, entry_columns, line_columns,
    nothing_above, open_in_its_epoch,
};
use crate::dialect::Bulk;
use crate::line::{Extent, Head, Line};
use crate::statement::Row;

/// From so many lines on, the statements for a savepoint cost less than it saves.
const SAVEPOINT_LINES: usize = 100;

/// The newest row under a condition, for each key.
macro_rules! newest {
    ($condition:literal) => {
        concat!(
            "select q.place, ",
            entry_columns!(),
            " from unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[]) \
             with ordinality as q (series_id, user_id, value, since_us, place) \
             cross join lateral (select ",
            line_columns!(),
            " from journal where ",
            $condition,
            " and issued_at_us >= q.since_us \
             order by issued_at_us desc, first_value desc limit 1) as j \
             join counter c on c.counter_id = j.counter_id"
        )
    };
}

/// Rows put where their column `place`, an ordinality, says.
fn in_place(rows: Vec<PgRow>, count: usize) -> Result<Vec<Option<PgRow>>, LedgerError> {
    let mut placed: Vec<Option<PgRow>> = (0..count).map(|_| None).collect();
    for row in rows {
        let place: i64 = row.try_get("place")?;
        let slot = usize::try_from(place - 1).ok().and_then(|index| placed.get_mut(index));
        *slot.expect("an ordinality within the batch") = Some(row);
    }
    Ok(placed)
}

/// Inserts the lines of its first 27 parameters.
macro_rules! insert {
    () => {
        concat!(
            "insert into journal (",
            line_columns!(),
            ", node_id, journaled_at_us) select ",
            line_columns!(),
            ", $26::bytea, $27::bigint from unnest($1::bigint[], $2::bigint[], $3::bigint[], \
             $4::bigint[], $5::bytea[], $6::text[], $7::text[], $8::text[], $9::text[], \
             $10::text[], $11::text[], $12::text[], $13::bigint[], $14::integer[], $15::text[], \
             $16::text[], $17::text[], $18::text[], $19::text[], $20::text[], $21::bigint[], \
             $22::integer[], $23::text[], $24::integer[], $25::bigint[]) as line (",
            line_columns!(),
            ")"
        )
    };
}

/// Whether a statement failed because a unique key has such a row.
fn is_kept_out(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(DatabaseError::is_unique_violation)
}

/// The parameters of `insert!`.
fn bind_lines(lines: &[&Line<'_>], node: NodeId, now_us: i64) -> Result<PgArguments, BoxDynError> {
    fn column<'l, T>(lines: &'l [&Line<'_>], of: impl Fn(&'l Line<'_>) -> T) -> Vec<T> {
        lines.iter().map(|line| of(line)).collect()
    }
    fn head<'l, T>(
        lines: &'l [&Line<'_>],
        of: impl Fn(&'l Head<'_>) -> Option<T>,
    ) -> Vec<Option<T>> {
        lines.iter().map(|line| line.head.as_ref().and_then(&of)).collect()
    }
    let mut bound = PgArguments::default();
    bound.add(column(lines, |line| line.extent.counter_id))?;
    bound.add(column(lines, |line| line.extent.first))?;
    bound.add(column(lines, |line| line.extent.last))?;
    bound.add(column(lines, |line| line.step))?;
    bound.add(column(lines, |line| line.allocation_id))?;
    bound.add(head(lines, |head| Some(head.number)))?;
    bound.add(head(lines, |head| Some(head.scope)))?;
    bound.add(head(lines, |head| Some(head.mask)))?;
    bound.add(head(lines, |head| head.rest.as_deref()))?;
    bound.add(head(lines, |head| head.context.as_deref()))?;
    bound.add(head(lines, |head| head.document_id))?;
    bound.add(head(lines, |head| head.idempotency_key))?;
    bound.add(column(lines, |line| line.series_id))?;
    bound.add(column(lines, |line| line.version))?;
    bound.add(column(lines, |line| line.type_code))?;
    bound.add(column(lines, |line| line.project))?;
    bound.add(column(lines, |line| line.document_date))?;
    bound.add(column(lines, |line| line.user_id))?;
    bound.add(column(lines, |line| line.ip_address))?;
    bound.add(column(lines, |line| line.payload_digest))?;
    bound.add(column(lines, |line| line.issued_at_us))?;
    bound.add(column(lines, |line| line.retry_count))?;
    bound.add(column(lines, |line| line.path))?;
    bound.add(column(lines, |line| line.partition_id))?;
    bound.add(column(lines, |line| line.epoch))?;
    bound.add(node.0.as_bytes().as_slice())?;
    bound.add(now_us)?;
    Ok(bound)
}

#[async_trait]
impl Bulk for PgConnection {
    async fn neighbours(
        &mut self,
        table: Table,
        extents: &[Extent],
    ) -> Result<Vec<Option<Neighbour>>, LedgerError> {
        let statement = match table {
            Table::Journal => {
                "select e.place, n.first_value, n.last_value, n.allocation_id \
                 from unnest($1::bigint[], $2::bigint[]) \
                 with ordinality as e (counter_id, last, place) \
                 cross join lateral (select first_value, last_value, allocation_id from journal j \
                 where j.counter_id = e.counter_id and j.first_value <= e.last \
                 order by first_value desc limit 1) as n"
            }
            Table::Gap => {
                "select e.place, n.first_value, n.last_value, null::bytea as allocation_id \
                 from unnest($1::bigint[], $2::bigint[]) \
                 with ordinality as e (counter_id, last, place) \
                 cross join lateral (select first_value, last_value from gap g \
                 where g.counter_id = e.counter_id and g.first_value <= e.last \
                 order by first_value desc limit 1) as n"
            }
        };
        let counters: Vec<i64> = extents.iter().map(|extent| extent.counter_id).collect();
        let lasts: Vec<i64> = extents.iter().map(|extent| extent.last).collect();
        let rows = sqlx::query(statement).bind(counters).bind(lasts).fetch_all(&mut *self).await?;
        let neighbour = |row: PgRow| {
            Ok(Neighbour {
                first: row.try_get("first_value")?,
                last: row.try_get("last_value")?,
                allocation_id: row.try_get("allocation_id")?,
            })
        };
        let placed = in_place(rows, extents.len())?;
        placed.into_iter().map(|row| row.map(neighbour).transpose()).collect()
    }

    async fn newest(
        &mut self,
        wanted: WantedKey,
        keys: &[Earlier<'_>],
    ) -> Result<Vec<Option<Row>>, LedgerError> {
        let statement = match wanted {
            WantedKey::CallerKey => {
                newest!(
                    "idempotency_key = q.value and user_id = q.user_id and series_id = q.series_id"
                )
            }
            // A document is numbered once, whoever asks.
            WantedKey::Document => newest!("document_id = q.value and series_id = q.series_id"),
        };
        let rows = sqlx::query(statement)
            .bind(keys.iter().map(|key| key.series_id).collect::<Vec<_>>())
            .bind(keys.iter().map(|key| key.user_id).collect::<Vec<_>>())
            .bind(keys.iter().map(|key| key.value).collect::<Vec<_>>())
            .bind(keys.iter().map(|key| key.since_us).collect::<Vec<_>>())
            .fetch_all(&mut *self)
            .await?;
        let placed = in_place(rows, keys.len())?;
        Ok(placed.into_iter().map(|row| row.map(Row::Postgres)).collect())
    }

    async fn insert_lines(
        &mut self,
        lines: &[&Line<'_>],
        node: NodeId,
        now_us: i64,
    ) -> Result<HashSet<(i64, i64)>, LedgerError> {
        // To ask each unique key first costs a sixth of the work, and next to never keeps a line
        // out: that is done only once a line was.
        if lines.len() >= SAVEPOINT_LINES {
            sqlx::raw_sql("savepoint lines").execute(&mut *self).await?;
            if self.insert_all(lines, node, now_us).await? {
                sqlx::raw_sql("release savepoint lines").execute(&mut *self).await?;
                let key = |line: &&Line<'_>| (line.extent.counter_id, line.extent.first);
                return Ok(lines.iter().map(key).collect());
            }
            sqlx::raw_sql("rollback to savepoint lines").execute(&mut *self).await?;
        }
        let bound = bind_lines(lines, node, now_us).map_err(sqlx::Error::Encode)?;
        let insert =
            concat!(insert!(), " on conflict do nothing returning counter_id, first_value");
        let rows = sqlx::query_with(insert, bound).fetch_all(&mut *self).await?;
        rows.iter()
            .map(|row| Ok((row.try_get("counter_id")?, row.try_get("first_value")?)))
            .collect()
    }

    async fn insert_all(
        &mut self,
        lines: &[&Line<'_>],
        node: NodeId,
        now_us: i64,
    ) -> Result<bool, LedgerError> {
        let bound = bind_lines(lines, node, now_us).map_err(sqlx::Error::Encode)?;
        match sqlx::query_with(insert!(), bound).execute(&mut *self).await {
            Ok(_) => Ok(true),
            Err(error) if is_kept_out(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn move_and_insert(
        &mut self,
        moves: &Moves,
        lines: &[&Line<'_>],
        node: NodeId,
        now_us: i64,
    ) -> Result<bool, LedgerError> {
        let column = |of: fn(&Move) -> i64| -> Vec<i64> { moves.counters.iter().map(of).collect() };
        let bound = bind_lines(lines, node, now_us).map_err(sqlx::Error::Encode)?;
        // All parts of a statement see what was there before it.
        let moved: Result<i64, _> = sqlx::query_scalar_with(
            concat!(
                "with inserted as (",
                insert!(),
                "), moved as (\
                 update counter c set taken = m.value, ceiling = m.value, \
                 journaled = c.journaled + m.journaled \
                 from unnest($28::bigint[], $29::bigint[], $30::bigint[]) \
                 as m (counter_id, value, journaled) \
                 where c.counter_id = m.counter_id and partition_id = $31 and epoch = $32 \
                 and ($33::bigint is null or exists (select from node \
                 where node_id = $26 and beat >= $33 and batches >= $34)) and ",
                open_in_its_epoch!(),
                " and ",
                nothing_above!(),
                " returning 1) select count(*) from moved"
            ),
            bound,
        )
        .bind(column(|counter| counter.counter_id))
        .bind(column(|counter| counter.value))
        .bind(column(|counter| counter.journaled))
        .bind(moves.partition_id)
        .bind(moves.epoch)
        .bind(moves.confirmed.map(|marks| marks.beat))
        .bind(moves.confirmed.map(|marks| marks.batches))
        .fetch_one(&mut *self)
        .await;
        match moved {
            Ok(moved) => Ok(usize::try_from(moved) == Ok(moves.counters.len())),
            Err(error) if is_kept_out(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn advance(&mut self, marks: &[Mark]) -> Result<Vec<Before>, LedgerError> {
        let column = |of: fn(&Mark) -> i64| -> Vec<i64> { marks.iter().map(of).collect() };
        // Values are set from the row itself: it is its newest version by then, whoever held it.
        let rows = sqlx::query(
            "with held as materialized ( \
               select c.counter_id, c.partition_id, c.epoch, c.start_value, c.taken, c.ceiling, \
                 c.step, m.last, \
                 case when m.epoch = c.epoch and m.step = c.step and m.first > c.start_value \
                   then m.count else 0 end as count \
               from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], \
                 $6::bigint[]) as m (counter_id, last, first, epoch, step, count) \
               join counter c on c.counter_id = m.counter_id \
               order by c.series_id, c.serial, c.key for update of c) \
             update counter c set taken = greatest(c.taken, h.last), \
               ceiling = greatest(c.ceiling, h.last), journaled = c.journaled + h.count \
             from held h where c.counter_id = h.counter_id \
             returning h.counter_id, h.partition_id, h.epoch, h.start_value, h.taken, h.ceiling, \
               h.step",
        )
        .bind(column(|mark| mark.counter_id))
        .bind(column(|mark| mark.last))
        .bind(column(|mark| mark.first))
        .bind(column(|mark| mark.epoch))
        .bind(column(|mark| mark.step))
        .bind(column(|mark| mark.count))
        .fetch_all(&mut *self)
        .await?;
        rows.into_iter().map(|row| Ok(Before::of(&Row::Postgres(row))?)).collect()
    }

    async fn rows_about(&mut self, table: &'static str) -> Result<i64, LedgerError> {
        // What the server last counted of it, and estimated since.
        let about = "select cast(greatest(reltuples, 0) as bigint) from pg_class \
             where oid = to_regclass($1)";
        Ok(sqlx::query_scalar(about).bind(table).fetch_one(&mut *self).await?)
    }

    async fn reserve_counters(&mut self, count: usize) -> Result<Vec<i64>, LedgerError> {
        let ids = sqlx::query_scalar(
            "select nextval(pg_get_serial_sequence('counter', 'counter_id')) \
             from generate_series(1, $1)",
        )
        .bind(i64::try_from(count).unwrap_or(i64::MAX))
        .fetch_all(&mut *self)
        .await?;
        Ok(ids)
    }

    fn own_ids(&self) -> &'static str {
        "overriding system value "
    }
}
