//! Statements over many rows: one for as many as a statement takes. Each goes to another thread and
//! back, which costs more than most of them do there.

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, FromRow as _, Row as _};

use super::{definitions, new_rows, slices};
use crate::batch::{
    Before, Earlier, Mark, Moves, Neighbour, Newest, Table, WantedKey, archived_file, is_any_aside,
    is_any_reserved, nothing_above, open_in_its_epoch,
};
use crate::dialect::{Bulk, Runs as _};
use crate::journal_columns::entry_columns;
use crate::new_row::{NewRow, ValueRange};
use crate::query::{QueryBuilder, Row};
use crate::seal::Writing;
use crate::{LedgerError, RawRows};

/// Most rows of a statement, a power of two.
pub(super) const ROWS_MAX: usize = 128;

/// `values` for so many rows, rounded up to a power of two: few texts, so that each stays prepared.
/// Rows beyond those that are bound hold nothing but null; conditions on the first column leave
/// them out.
pub(super) fn values(columns: usize, rows: usize) -> String {
    let row = format!("({})", vec!["?"; columns].join(","));
    format!("values {}", vec![row; rows.next_power_of_two()].join(","))
}

/// The slot of a row, by its column `place`.
fn slot<'f, T>(found: &'f mut [T], row: &SqliteRow) -> Result<&'f mut T, LedgerError> {
    let place: i64 = row.try_get("place")?;
    let slot = usize::try_from(place).ok().and_then(|place| found.get_mut(place));
    Ok(slot.expect("a place of those that were asked for"))
}

/// The newest rows under keys. By inner joins: the right side of an outer one is a view of joins,
/// which SQLite would make whole, with all of the journal, before it looks for a row.
fn newest_rows(wanted: WantedKey, keys: usize) -> String {
    let asked = asked_keys(keys);
    let key = match wanted {
        WantedKey::CallerKey => "n.idempotency_key = q.value and n.user_id = q.user_id",
        // A document is numbered once, for all callers.
        WantedKey::Document => {
            "n.document_id = q.value \
             and (q.project is null or coalesce(n.project, '') = q.project)"
        }
    };
    format!(
        "{asked} select q.place, null as archived, {} from asked q \
         cross join journal_row j on j.row_id = (select n.row_id from journal_row n \
         where {key} and n.series_id = q.series_id and n.issued_at_us >= q.since_us \
         order by n.issued_at_us desc, n.first_value desc limit 1) \
         cross join counter c on c.counter_id = j.counter_id",
        entry_columns!()
    )
}

/// Files that have numbers of documents.
fn archived_names(keys: usize) -> String {
    let (asked, file) = (asked_keys(keys), archived_file!());
    format!(
        "{asked}, named as (select q.place, {file} as archived from asked q) \
         select place, archived, null as counter_id from named where archived is not null"
    )
}

/// The requested keys, as both read them.
fn asked_keys(keys: usize) -> String {
    let asked = values(8, keys);
    format!(
        "with asked (place, series_id, user_id, value, since_us, document_hash, project, \
         project_hash) as ({asked})"
    )
}

/// Puts the result of a statement under keys into slots that are empty.
async fn ask(
    conn: &mut SqliteConnection,
    found: &mut [Option<Row>],
    keys: &[Earlier<'_>],
    statement: String,
) -> Result<(), LedgerError> {
    let mut query = sqlx::query(AssertSqlSafe(statement));
    for (place, key) in (0_i64..).zip(keys) {
        let Earlier { series_id, user_id, value, since_us, .. } = *key;
        query = query.bind(place).bind(series_id).bind(user_id).bind(value).bind(since_us);
        query = query.bind(key.document_hash).bind(key.project).bind(key.project_hash);
    }
    for row in query.fetch_all(conn).await? {
        let slot = slot(found, &row)?;
        slot.get_or_insert(Row::Sqlite(row));
    }
    Ok(())
}

#[async_trait]
impl Bulk for SqliteConnection {
    async fn neighbours(
        &mut self,
        table: Table,
        value_ranges: &[ValueRange],
    ) -> Result<Vec<Option<Neighbour>>, LedgerError> {
        let (table, allocation_id) = match table {
            Table::Journal => ("journal", "t.allocation_id"),
            Table::Gap => ("gap", "null"),
        };
        // The journal leaves out the last value of a single number.
        let mut found: Vec<Option<Neighbour>> = vec![None; value_ranges.len()];
        for (found, part) in found.chunks_mut(ROWS_MAX).zip(value_ranges.chunks(ROWS_MAX)) {
            let asked = values(3, part.len());
            let statement = format!(
                "with asked (place, counter_id, last) as ({asked})
                 select a.place, t.first_value,
                 coalesce(t.last_value, t.first_value) as last_value,
                 {allocation_id} as allocation_id
                 from asked a cross join {table} t on t.rowid = (select n.rowid from {table} n
                 where n.counter_id = a.counter_id and n.first_value <= a.last
                 order by n.first_value desc limit 1)"
            );
            let mut query = sqlx::query(AssertSqlSafe(statement));
            for (place, value_range) in (0_i64..).zip(part) {
                query = query.bind(place).bind(value_range.counter_id).bind(value_range.last);
            }
            for row in query.fetch_all(&mut *self).await? {
                *slot(found, &row)? = Some(Neighbour::from_row(&row)?);
            }
        }
        Ok(found)
    }

    async fn newest(
        &mut self,
        wanted: WantedKey,
        keys: &[Earlier<'_>],
    ) -> Result<Newest, LedgerError> {
        let mut found: Vec<Option<Row>> = (0..keys.len()).map(|_| None).collect();
        let of_documents = matches!(wanted, WantedKey::Document);
        for (found, part) in found.chunks_mut(ROWS_MAX).zip(keys.chunks(ROWS_MAX)) {
            ask(self, found, part, newest_rows(wanted, part.len())).await?;
            let may_be_archived = part.iter().any(|key| key.document_hash.is_some());
            if of_documents && may_be_archived && found.iter().any(Option::is_none) {
                ask(self, found, part, archived_names(part.len())).await?;
            }
        }
        let is_any: i64 =
            sqlx::query_scalar(concat!("select ", is_any_aside!())).fetch_one(&mut *self).await?;
        Ok(Newest { rows: found, is_any_aside: is_any != 0 })
    }

    async fn insert_new_rows(
        &mut self,
        new_rows: &[&NewRow<'_>],
        writing: &Writing,
    ) -> Result<HashSet<(i64, i64)>, LedgerError> {
        let mut inserted = HashSet::with_capacity(new_rows.len());
        for part in new_rows.chunks(ROWS_MAX) {
            for new_row in new_rows::insert(&mut *self, part, writing).await? {
                inserted.insert((new_row.value_range.counter_id, new_row.value_range.first));
            }
        }
        Ok(inserted)
    }

    async fn insert_all(
        &mut self,
        new_rows: &[&NewRow<'_>],
        writing: &Writing,
    ) -> Result<bool, LedgerError> {
        for part in new_rows.chunks(ROWS_MAX) {
            if new_rows::insert(&mut *self, part, writing).await?.len() != part.len() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn move_and_insert(
        &mut self,
        moves: &Moves,
        new_rows: &[&NewRow<'_>],
        writing: &Writing,
    ) -> Result<bool, LedgerError> {
        for part in moves.counters.chunks(ROWS_MAX) {
            let rows = values(3, part.len());
            let statement = format!(
                "update counter as c set taken = m.column2, ceiling = m.column2,
                 journaled = journaled + m.column3 from ({rows}) as m
                 where c.counter_id = m.column1 and partition_id = ? and epoch = ? and (? is null
                 or exists (select 1 from node where node_id = ? and beat >= ? and batches >= ?))
                 and {} and {} and {} = 0",
                open_in_its_epoch!(),
                nothing_above!(),
                is_any_aside!()
            );
            let mut query = sqlx::query(AssertSqlSafe(statement));
            for counter in part {
                query = query.bind(counter.counter_id).bind(counter.value).bind(counter.journaled);
            }
            // The values after the rows come after the empty ones.
            for _ in part.len()..part.len().next_power_of_two() {
                query = query.bind(None::<i64>).bind(None::<i64>).bind(None::<i64>);
            }
            let beat = moves.confirmed.map(|marks| marks.beat);
            let batches = moves.confirmed.map(|marks| marks.batches);
            let query = query.bind(moves.partition_id).bind(moves.epoch);
            let query = query
                .bind(beat)
                .bind(writing.node.0.as_bytes().as_slice())
                .bind(beat)
                .bind(batches);
            if query.execute(&mut *self).await?.rows_affected() != part.len() as u64 {
                return Ok(false);
            }
        }
        self.insert_all(new_rows, writing).await
    }

    async fn advance(&mut self, marks: &[Mark]) -> Result<Vec<Before>, LedgerError> {
        let mut query = QueryBuilder::new(concat!(
            "select counter_id, partition_id, epoch, start_value, taken, ceiling, step, ",
            is_any_aside!(),
            " as any_aside, ",
            is_any_reserved!(),
            " as any_reserved from counter where counter_id",
        ));
        query.push_among(marks.iter().map(|mark| mark.counter_id).collect::<Vec<i64>>());
        let rows = self.all(query.build()).await?;
        let mut found = HashMap::with_capacity(rows.len());
        for row in rows {
            let before: Before = row.decode()?;
            found.insert(before.counter_id, before);
        }
        for mark in marks {
            let Some(before) = found.get(&mark.counter_id) else { continue };
            sqlx::query(
                "update counter set taken = max(taken, $2), ceiling = max(ceiling, $2),
                 journaled = journaled + $3 where counter_id = $1",
            )
            .bind(mark.counter_id)
            .bind(mark.last)
            .bind(mark.counted(before))
            .execute(&mut *self)
            .await?;
        }
        Ok(found.into_values().collect())
    }

    async fn make_room(&mut self, run: ValueRange) -> Result<u64, LedgerError> {
        let mut gone = 0;
        for statement in [
            "insert into making_room (counter_id, first_value, last_value) values ($1, $2, $3)",
            "delete from journal where counter_id = $1 and first_value between $2 and $3",
            "delete from making_room where counter_id = $1 and first_value = $2
             and last_value = $3",
        ] {
            let done = sqlx::query(statement)
                .bind(run.counter_id)
                .bind(run.first)
                .bind(run.last)
                .execute(&mut *self)
                .await?;
            if statement.starts_with("delete from journal") {
                gone = done.rows_affected();
            }
        }
        Ok(gone)
    }

    async fn journal_range(&mut self) -> Result<Option<(i64, i64)>, LedgerError> {
        slices::value_range(self).await
    }

    fn journal_slice_places(&self) -> i64 {
        slices::SLICE_ROWS
    }

    async fn journal_slice(&mut self, from: i64) -> Result<RawRows, LedgerError> {
        Ok(RawRows::Fetched(slices::read(self, from).await?))
    }

    async fn journal_place_from(&mut self, from: i64) -> Result<Option<i64>, LedgerError> {
        slices::place_from(self, from).await
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
        // Its rows are numbered as they come, and seldom go.
        let highest = format!("select coalesce(max(rowid), 0) from {table}");
        Ok(sqlx::query_scalar(AssertSqlSafe(highest)).fetch_one(&mut *self).await?)
    }

    async fn reserve_counters(&mut self, count: usize) -> Result<Vec<i64>, LedgerError> {
        // The transaction is the only writer.
        let highest: i64 = sqlx::query_scalar("select coalesce(max(counter_id), 0) from counter")
            .fetch_one(&mut *self)
            .await?;
        Ok((highest + 1..).take(count).collect())
    }

    fn own_ids(&self) -> &'static str {
        ""
    }

    fn clock(&self) -> Option<&'static str> {
        None
    }
}

#[cfg(test)]
mod tests {
    use sqlx::Connection as _;

    use super::super::open::MIGRATIONS;
    use super::*;
    use crate::reservations::ending::Which;
    use crate::reservations::sweep::due_counters_query;

    /// Every process looks twice a second: were all reservations read for it, that would cost more
    /// the more of them are live.
    #[tokio::test]
    async fn a_sweep_finds_what_is_due_by_an_index() {
        let mut conn = SqliteConnection::connect(":memory:").await.expect("a database");
        MIGRATIONS.run(&mut conn).await.expect("a ledger");
        let due = due_counters_query(&conn, 1, &Which::AllBut(Vec::new()), (0, 1_000));
        let plan = conn.all(due.behind("explain query plan ")).await.expect("a plan");
        let steps = plan.iter().map(|step| step.try_get("detail").expect("a step"));
        let steps: Vec<String> = steps.collect();
        let is_read = |step: &&String| step.starts_with("SCAN ") && !step.ends_with("CONSTANT ROW");
        assert_eq!(steps.iter().find(is_read), None, "{steps:#?}");
        let searched = "reservation_due (state=? AND expires_at_us<?)";
        assert!(steps.iter().any(|step| step.ends_with(searched)), "{steps:#?}");
    }

    /// A take asks for its document and its key: were the journal read for it, each number would
    /// cost more than the one before.
    #[tokio::test]
    async fn no_question_for_a_key_reads_the_journal() {
        let mut conn = SqliteConnection::connect(":memory:").await.expect("a database");
        MIGRATIONS.run(&mut conn).await.expect("a ledger");
        for statement in [
            newest_rows(WantedKey::CallerKey, 2),
            newest_rows(WantedKey::Document, 2),
            archived_names(2),
        ] {
            let explained = AssertSqlSafe(format!("explain query plan {statement}"));
            let plan = sqlx::query(explained).fetch_all(&mut conn).await.expect("a plan");
            let steps: Vec<String> = plan.iter().map(|step| step.get("detail")).collect();
            let is_read = |step: &&String| {
                let of_asked = ["SCAN q", "SCAN named", "SCAN asked"];
                step.starts_with("MATERIALIZE")
                    || (step.starts_with("SCAN ")
                        && !step.ends_with("CONSTANT ROW")
                        && !step.ends_with("CONSTANT ROWS")
                        && !of_asked.contains(&step.as_str()))
            };
            assert_eq!(steps.iter().find(is_read), None, "{steps:#?}\n{statement}");
        }
    }
}
