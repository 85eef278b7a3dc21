//! Statements over many rows: one round trip each, by `unnest`, whatever the size of the batch.

use std::collections::HashSet;

use async_trait::async_trait;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{FromRow as _, Row as _};

use super::new_rows::Lines;
use super::{definitions, slices};
use crate::batch::{
    Before, Earlier, Mark, Moves, Neighbour, Newest, Table, WantedKey, archived_file, is_any_aside,
    is_any_reserved,
};
use crate::columns::unsigned;
use crate::dialect::Bulk;
use crate::journal_columns::{bare_entry_columns, entry_columns};
use crate::new_row::{NewRow, ValueRange};
use crate::query::Row;
use crate::seal::Writing;
use crate::{LedgerError, RawRows};

/// The newest row under a condition, for each key; next to it, or alone, the file that may have
/// one. Columns of shared rows are compared within `coalesce`: otherwise, while a ledger has no
/// statistics, the planner would begin with all rows of a user.
macro_rules! newest {
    ($condition:literal, $archived:expr) => {
        concat!(
            "select q.place, a.file as archived, aside.is_any as is_any_aside, ",
            entry_columns!(),
            " from unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[],
             $6::text[], $7::bigint[]) with ordinality as q (series_id, user_id, value, since_us,
             document_hash, project, project_hash, place)
             left join lateral (select ",
            bare_entry_columns!(),
            " from journal_row where ",
            $condition,
            " and issued_at_us >= q.since_us
             order by issued_at_us desc, first_value desc limit 1) as j on true
             left join counter c on c.counter_id = j.counter_id
             left join lateral (select ",
            $archived,
            " as file) as a on true cross join (select ",
            is_any_aside!(),
            " as is_any) as aside
             where j.counter_id is not null or a.file is not null or aside.is_any <> 0"
        )
    };
}

/// Rows in the order of their column `place`, an ordinality.
fn in_place(rows: Vec<PgRow>, count: usize) -> Result<Vec<Option<PgRow>>, LedgerError> {
    let mut placed: Vec<Option<PgRow>> = (0..count).map(|_| None).collect();
    for row in rows {
        let place: i64 = row.try_get("place")?;
        let slot = usize::try_from(place - 1).ok().and_then(|index| placed.get_mut(index));
        *slot.expect("an ordinality within the batch") = Some(row);
    }
    Ok(placed)
}

#[async_trait]
impl Bulk for PgConnection {
    async fn neighbours(
        &mut self,
        table: Table,
        value_ranges: &[ValueRange],
    ) -> Result<Vec<Option<Neighbour>>, LedgerError> {
        let statement = match table {
            Table::Journal => {
                "select e.place, n.first_value, n.last_value, n.allocation_id
                 from unnest($1::bigint[], $2::bigint[])
                 with ordinality as e (counter_id, last, place)
                 cross join lateral (select first_value, last_value, allocation_id
                 from journal_row j where j.counter_id = e.counter_id and j.first_value <= e.last
                 order by first_value desc limit 1) as n"
            }
            Table::Gap => {
                "select e.place, n.first_value, n.last_value, null::bytea as allocation_id
                 from unnest($1::bigint[], $2::bigint[])
                 with ordinality as e (counter_id, last, place)
                 cross join lateral (select first_value, last_value from gap g
                 where g.counter_id = e.counter_id and g.first_value <= e.last
                 order by first_value desc limit 1) as n"
            }
        };
        let counters: Vec<i64> =
            value_ranges.iter().map(|value_range| value_range.counter_id).collect();
        let lasts: Vec<i64> = value_ranges.iter().map(|value_range| value_range.last).collect();
        let rows = sqlx::query(statement).bind(counters).bind(lasts).fetch_all(&mut *self).await?;
        let neighbour = |row: Option<PgRow>| row.as_ref().map(Neighbour::from_row).transpose();
        let placed = in_place(rows, value_ranges.len())?;
        Ok(placed.into_iter().map(neighbour).collect::<Result<_, _>>()?)
    }

    async fn newest(
        &mut self,
        wanted: WantedKey,
        keys: &[Earlier<'_>],
    ) -> Result<Newest, LedgerError> {
        let statement = match wanted {
            WantedKey::CallerKey => {
                newest!(
                    "idempotency_key = q.value and coalesce(user_id, '') = q.user_id \
                     and coalesce(series_id, 0) = q.series_id",
                    "cast(null as text)"
                )
            }
            // A document is numbered once, for all callers.
            WantedKey::Document => {
                newest!(
                    "document_id = q.value and coalesce(series_id, 0) = q.series_id \
                     and (q.project is null or coalesce(project, '') = q.project)",
                    archived_file!()
                )
            }
        };
        let rows = sqlx::query(statement)
            .bind(keys.iter().map(|key| key.series_id).collect::<Vec<_>>())
            .bind(keys.iter().map(|key| key.user_id).collect::<Vec<_>>())
            .bind(keys.iter().map(|key| key.value).collect::<Vec<_>>())
            .bind(keys.iter().map(|key| key.since_us).collect::<Vec<_>>())
            .bind(keys.iter().map(|key| key.document_hash).collect::<Vec<_>>())
            .bind(keys.iter().map(|key| key.project).collect::<Vec<_>>())
            .bind(keys.iter().map(|key| key.project_hash).collect::<Vec<_>>())
            .fetch_all(&mut *self)
            .await?;
        // If any exist, each key has a row that shows it.
        let first = rows.first().map(|row| row.try_get::<i64, _>("is_any_aside")).transpose()?;
        let placed = in_place(rows, keys.len())?;
        let rows = placed.into_iter().map(|row| row.map(Row::Postgres)).collect();
        Ok(Newest { rows, is_any_aside: first.is_some_and(|is| is != 0) })
    }

    async fn insert_new_rows(
        &mut self,
        new_rows: &[&NewRow<'_>],
        writing: &Writing,
    ) -> Result<HashSet<(i64, i64)>, LedgerError> {
        Lines::insert_free(self, new_rows, writing).await
    }

    async fn insert_all(
        &mut self,
        new_rows: &[&NewRow<'_>],
        writing: &Writing,
    ) -> Result<bool, LedgerError> {
        Lines::new(new_rows, writing).insert_all(self).await
    }

    async fn move_and_insert(
        &mut self,
        moves: &Moves,
        new_rows: &[&NewRow<'_>],
        writing: &Writing,
    ) -> Result<bool, LedgerError> {
        Lines::new(new_rows, writing).move_and_insert(self, moves).await
    }

    async fn advance(&mut self, marks: &[Mark]) -> Result<Vec<Before>, LedgerError> {
        let column = |of: fn(&Mark) -> i64| -> Vec<i64> { marks.iter().map(of).collect() };
        // Values are set from the row itself: by then its newest version, after any former holder.
        Ok(sqlx::query_as(concat!(
            "with held as materialized (
               select c.counter_id, c.partition_id, c.epoch, c.start_value, c.taken, c.ceiling,
                 c.step, m.last,
                 case when m.epoch = c.epoch and m.step = c.step and m.first > c.start_value
                   then m.count else 0 end as count
               from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[],
                 $6::bigint[]) as m (counter_id, last, first, epoch, step, count)
               join counter c on c.counter_id = m.counter_id
               order by c.series_id, c.serial, c.key for update of c)
             update counter c set taken = greatest(c.taken, h.last),
               ceiling = greatest(c.ceiling, h.last), journaled = c.journaled + h.count
             from held h where c.counter_id = h.counter_id
             returning h.counter_id, h.partition_id, h.epoch, h.start_value, h.taken, h.ceiling,
               h.step, ",
            is_any_aside!(),
            " as any_aside, ",
            is_any_reserved!(),
            " as any_reserved",
        ))
        .bind(column(|mark| mark.counter_id))
        .bind(column(|mark| mark.last))
        .bind(column(|mark| mark.first))
        .bind(column(|mark| mark.epoch))
        .bind(column(|mark| mark.step))
        .bind(column(|mark| mark.count))
        .fetch_all(&mut *self)
        .await?)
    }

    async fn make_room(&mut self, run: ValueRange) -> Result<u64, LedgerError> {
        let gone: i64 = sqlx::query_scalar("select make_room($1, $2, $3)")
            .bind(run.counter_id)
            .bind(run.first)
            .bind(run.last)
            .fetch_one(&mut *self)
            .await?;
        unsigned(gone, "make_room")
    }

    async fn journal_range(&mut self) -> Result<Option<(i64, i64)>, LedgerError> {
        let pages = slices::pages(self, "journal").await?;
        Ok((pages > 0).then_some((0, pages - 1)))
    }

    fn journal_slice_places(&self) -> i64 {
        slices::SLICE_PAGES
    }

    async fn journal_slice(&mut self, from: i64) -> Result<RawRows, LedgerError> {
        Ok(RawRows::Copied(slices::read(self, from).await?))
    }

    async fn journal_place_from(&mut self, from: i64) -> Result<Option<i64>, LedgerError> {
        Ok(Some(from))
    }

    async fn definitions(&mut self) -> Result<Vec<(String, String)>, LedgerError> {
        definitions::read(self).await
    }

    async fn archived_number_parts(&mut self) -> Result<i64, LedgerError> {
        slices::count(self, "archived_number").await
    }

    async fn forget_numbers(&mut self, archive_file_id: i32, part: i64) -> Result<(), LedgerError> {
        slices::forget(self, archive_file_id, part).await
    }

    async fn rows_about(&mut self, table: &'static str) -> Result<i64, LedgerError> {
        // The server's last count of it, with later estimates.
        let about = "select cast(greatest(reltuples, 0) as bigint) from pg_class
             where oid = to_regclass($1)";
        Ok(sqlx::query_scalar(about).bind(table).fetch_one(&mut *self).await?)
    }

    async fn reserve_counters(&mut self, count: usize) -> Result<Vec<i64>, LedgerError> {
        let ids = sqlx::query_scalar(
            "select nextval(pg_get_serial_sequence('counter', 'counter_id'))
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

    fn clock(&self) -> Option<&'static str> {
        Some("cast(extract(epoch from clock_timestamp()) * 1000000 as bigint)")
    }
}
