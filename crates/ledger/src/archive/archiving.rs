//! Rows of the journal make room for segments. A row is removed only in the transaction that writes
//! the segment for its values, after it was compared with the file.
//!
//! A segment is a row of the journal: totals, searches for holes and the refusal of a second value
//! treat it like the rows that it replaces. It names no number and no document, which are found in
//! `archived_number`.

use std::collections::BTreeSet;

use numerator_runtime::node::NodeId;

use crate::RunEnd;
use crate::archive::{self, names};
use crate::columns::{read_uuid, to_json};
use crate::counters::table::lock_all;
use crate::dialect::Conn;
use crate::journal_columns::entry_columns;
use crate::life::acts_upon_numbers;
use crate::new_row::{NewRow, ValueRange};
use crate::query::{QueryBuilder, Row, query, query_scalar};
use crate::seal::{ARCHIVED, Writing};
use crate::series::acceptance::kept;
use crate::store::{Store, commit};
use crate::{Archive, ArchiveFile, ArchivedRow, ArchivedRun, IssuePath, LedgerError, SegmentNote};

/// Most rows of one read.
const PAGE_MAX: u32 = 10_000;

/// The beginning of a query for counters whose rows may move. Each save of a series reads the
/// numbers as written: these stay.
const COUNTERS: &str = r#"select c.counter_id from counter c where c.counter_id <> 0
    and c.serial <> 'as-written'
    and not exists (select 1 from unsettled u where u.counter_id = c.counter_id)
    and not exists (select 1 from chronology_search h where h.series_id = c.series_id)
    and c.series_id not in (select v.series_id from series_version v
    where v.definition like '%"source":"%') and "#;

/// When its oldest number was issued.
const OLDEST: &str = "(select j.issued_at_us from journal j where j.counter_id = c.counter_id
    and (j.number is not null or j.context is null) order by j.first_value limit 1)";

/// The beginning of a query for rows as an archive keeps them.
const ROWS: &str = concat!(
    "select ",
    entry_columns!(),
    ", coalesce(s.code, '') as code
     from journal_row j join counter c on c.counter_id = j.counter_id
     left join series s on s.series_id = j.series_id where "
);

/// Values whose numbers stay in the journal: they have revisions, are void or were corrected. How
/// an earlier reservation of the value ended does not matter.
const KEPT_VALUES: &str = concat!(
    "select value from revision where counter_id = $1 and value >= $2
     and value <= $3 union select first_value from life where counter_id = $1
     and first_value >= $2 and first_value <= $3 and act in ",
    acts_upon_numbers!()
);

impl Archive<'_> {
    /// Counters after one, of whose rows the oldest was issued before a time, by id, at most
    /// `limit`. Left out are those that are being settled, and those of series that ask, or have
    /// asked, a source: a value that a source gives twice is found only by the texts of rows; and
    /// so are the numbers of series that an accepted ambiguity concerns (F43).
    pub async fn archivable_counters(
        self,
        after: i64,
        before_us: i64,
        limit: u32,
    ) -> Result<Vec<i64>, LedgerError> {
        self.search(async |store| {
            let kept = kept(store).await?;
            store.kept.choose(kept.stamp, after <= 0);
            let mut tx = store.reader.begin().await?;
            tx.allow_long_search().await?;
            let mut ids = QueryBuilder::new(COUNTERS);
            ids.push("c.counter_id > ").push_bind(after).push(" and not c.series_id");
            ids.push_among(kept.ids).push(" and ").push(OLDEST).push(" < ").push_bind(before_us);
            ids.push(" order by c.counter_id limit ").push_bind(i64::from(limit));
            let ids = ids.build().scalar().fetch_all(&mut *tx).await?;
            tx.commit().await?;
            Ok(ids)
        })
        .await
    }

    /// The next rows of a counter above a value that may move to a file, in their order, and the
    /// value after which to continue; none after a row that was issued or written after
    /// `before_us`. Segments are skipped, and so are numbers that have revisions, are void or were
    /// corrected.
    pub async fn archivable(
        self,
        counter_id: i64,
        after: i64,
        before_us: i64,
        limit: u32,
    ) -> Result<(Vec<ArchivedRow>, Option<i64>), LedgerError> {
        self.search(async |store| {
            let limit = limit.clamp(1, PAGE_MAX);
            let mut query = QueryBuilder::new(ROWS);
            query.push("j.counter_id = ").push_bind(counter_id);
            query.push(" and j.first_value > ").push_bind(after);
            query.push(" order by j.first_value limit ").push_bind(i64::from(limit));
            let rows = query.build().fetch_all(&store.reader).await?;
            let mut all = Vec::with_capacity(rows.len());
            let mut next = None;
            for row in &rows {
                let is_new = |column: &str| -> Result<bool, sqlx::Error> {
                    Ok(row.try_get::<i64>(column)? >= before_us)
                };
                let is_segment = row.try_get::<&str>("path")? == ARCHIVED;
                // A segment was written when its rows were old already.
                if !is_segment && (is_new("issued_at_us")? || is_new("journaled_at_us")?) {
                    next = None;
                    break;
                }
                next = Some(row.try_get("first_value")?);
                if !is_segment {
                    all.push(archived_row_of(row)?);
                }
            }
            let next = next.filter(|_| rows.len() == limit as usize);
            let kept = must_stay(store, &all).await?;
            let mut kept = kept.into_iter();
            all.retain(|_| kept.next() != Some(true));
            Ok((all, next))
        })
        .await
    }

    /// Replaces the rows of runs by segments, in one transaction; how many rows. Runs that already
    /// have segments are skipped: safe to repeat.
    ///
    /// # Errors
    /// `Conflict` where the journal's rows are not those of the file, a counter is being settled or
    /// a partition held, `Refused` where the file was given up: nothing was changed. `LockTimeout`
    /// where a counter is held: worth a retry.
    pub async fn make_room(
        self,
        of: &ArchiveFile,
        node: NodeId,
        by: &str,
        runs: &[ArchivedRun],
    ) -> Result<u64, LedgerError> {
        self.search(async |store| make_room(store, of, node, by, runs).await).await
    }
}

/// See [`crate::Archive::make_room`].
async fn make_room(
    store: &Store,
    of: &ArchiveFile,
    node: NodeId,
    by: &str,
    runs: &[ArchivedRun],
) -> Result<u64, LedgerError> {
    let writing = store.writing(node, store.clock.now_us());
    let mut tx = store.begin().await?;
    archive::must_go_on(&mut *tx, of).await?;
    let mut ids: Vec<i64> = runs.iter().map(|run| run.counter_id).collect();
    ids.sort_unstable();
    ids.dedup();
    // A transaction that journals a row of the counter waits here.
    lock_all(&mut *tx, &ids).await?;
    must_be_settled(&mut *tx, &ids).await?;
    let (mut gone, mut left) = (0, Vec::with_capacity(runs.len()));
    for run in runs {
        // A number that got a revision, or was voided, meanwhile stays in the journal as well as
        // in the file.
        if has_segment(&mut *tx, of, run).await? || must_keep(&mut *tx, run).await? {
            continue;
        }
        let rows = rows_of(&mut *tx, run).await?;
        if ArchivedRun::of(&rows).as_ref() != Some(run) {
            let ArchivedRun { counter_id, first, last, .. } = run;
            return Err(LedgerError::Conflict(format!(
                "counter_id {counter_id}: the journal's rows from {first} to {last} are not those \
                 of {}",
                of.file.name
            )));
        }
        let value_range =
            ValueRange { counter_id: run.counter_id, first: run.first, last: run.last };
        let count = tx.make_room(value_range).await?;
        if count != run.rows {
            let why = format!("{count} rows were removed where {} should be", run.rows);
            return Err(LedgerError::Conflict(why));
        }
        gone += count;
        left.push(run);
    }
    for run in &left {
        // A transaction that gave one a revision meanwhile was waited for as its row was removed.
        if must_keep(&mut *tx, run).await? {
            return Err(LedgerError::Conflict(
                "a number got a revision, or was voided, meanwhile".into(),
            ));
        }
    }
    if !left.is_empty() {
        write_segments(&mut *tx, &writing, of, by, &left).await?;
        names::write(&mut *tx, of, &left).await?;
    }
    // A ledger that forgets it has the rows again, and the file still holds them.
    commit(tx).await?;
    Ok(gone)
}

/// Rows of values that are being looked for must not change their places.
async fn must_be_settled(conn: &mut Conn, ids: &[i64]) -> Result<(), LedgerError> {
    let mut query = QueryBuilder::new(
        "select c.counter_id from counter c where (exists (select 1 from unsettled u
         where u.counter_id = c.counter_id) or exists (select 1 from chronology_search h
         where h.series_id = c.series_id)) and c.counter_id",
    );
    query.push_among(ids.to_vec()).push(" limit 1");
    match query.build().scalar::<i64>().fetch_optional(conn).await? {
        None => Ok(()),
        Some(counter_id) => Err(LedgerError::Conflict(format!(
            "counter_id {counter_id}: is being settled; archive again in a moment"
        ))),
    }
}

/// Whether the segment of a run exists.
async fn has_segment(
    conn: &mut Conn,
    of: &ArchiveFile,
    run: &ArchivedRun,
) -> Result<bool, LedgerError> {
    let row = query(
        "select last_value, path, context from journal_row
         where counter_id = $1 and first_value = $2",
    )
    .bind(run.counter_id)
    .bind(run.first)
    .fetch_optional(conn)
    .await?;
    let Some(row) =
        row.filter(|row| row.try_get::<&str>("path").is_ok_and(|path| path == ARCHIVED))
    else {
        return Ok(false);
    };
    let is_same = row.try_get::<i64>("last_value")? == run.last;
    Ok(is_same && archive::note_of(&row)? == note(of, run))
}

/// Whether a number of a run has got a revision, or was voided or corrected.
async fn must_keep(conn: &mut Conn, run: &ArchivedRun) -> Result<bool, LedgerError> {
    let found: Option<i64> = query_scalar(KEPT_VALUES)
        .bind(run.counter_id)
        .bind(run.first)
        .bind(run.last)
        .fetch_optional(conn)
        .await?;
    Ok(found.is_some())
}

fn note(of: &ArchiveFile, run: &ArchivedRun) -> SegmentNote {
    SegmentNote {
        file: of.file.name.clone(),
        sha256: numbering::hexadecimal(&of.file.sha256),
        rows: run.rows,
        digest: numbering::hexadecimal(&run.digest),
    }
}

/// The rows of a run as they are now.
async fn rows_of(conn: &mut Conn, run: &ArchivedRun) -> Result<Vec<ArchivedRow>, LedgerError> {
    let mut query = QueryBuilder::new(ROWS);
    query.push("j.counter_id = ").push_bind(run.counter_id);
    query.push(" and j.first_value >= ").push_bind(run.first);
    query.push(" and j.first_value <= ").push_bind(run.last);
    query.push(" order by j.first_value");
    let rows = query.build().fetch_all(conn).await?;
    rows.iter().map(archived_row_of).collect()
}

/// Which of the rows stay in the journal: those of numbers that have revisions, are void or were
/// corrected.
async fn must_stay(store: &Store, rows: &[ArchivedRow]) -> Result<Vec<bool>, LedgerError> {
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(Vec::new()) };
    let kept: BTreeSet<i64> = query_scalar(KEPT_VALUES)
        .bind(first.counter_id)
        .bind(first.first_value)
        .bind(last.last_value)
        .fetch_all(&store.reader)
        .await?
        .into_iter()
        .collect();
    let is_kept = |row: &ArchivedRow| kept.range(row.first_value..=row.last_value).next().is_some();
    Ok(rows.iter().map(is_kept).collect())
}

async fn write_segments(
    conn: &mut Conn,
    writing: &Writing,
    of: &ArchiveFile,
    by: &str,
    runs: &[&ArchivedRun],
) -> Result<(), LedgerError> {
    let notes: Vec<String> =
        runs.iter().map(|run| to_json(&note(of, run), "context")).collect::<Result<_, _>>()?;
    let new_rows: Vec<NewRow<'_>> =
        runs.iter().zip(&notes).map(|(run, note)| segment_of(of, by, run, note)).collect();
    let new_rows: Vec<&NewRow<'_>> = new_rows.iter().collect();
    if !conn.insert_all(&new_rows, writing).await? {
        return Err(LedgerError::Conflict("somebody writes where a segment is to stand".into()));
    }
    Ok(())
}

fn segment_of<'a>(
    of: &'a ArchiveFile,
    by: &'a str,
    run: &'a ArchivedRun,
    note: &'a str,
) -> NewRow<'a> {
    let RunEnd { series_id, version, type_code, project, issued_at_us, document_date } =
        &run.newest;
    NewRow {
        entry: 0,
        value_range: ValueRange { counter_id: run.counter_id, first: run.first, last: run.last },
        is_above: false,
        step: run.step,
        count: (run.last - run.first) / run.step + 1,
        // The id of the file, repeated.
        allocation_id: archive::segment_id(of),
        head: None,
        segment: Some(note),
        series_id: *series_id,
        version: *version,
        type_code,
        project: project.as_deref(),
        document_date,
        user_id: by,
        ip_address: None,
        digest: Some(run.digest[..16].to_vec()),
        issued_at_us: *issued_at_us,
        retry_count: 0,
        path: IssuePath::Redis,
        partition_id: run.partition_id,
        epoch: run.epoch,
    }
}

fn archived_row_of(row: &Row) -> Result<ArchivedRow, LedgerError> {
    // Nothing is archived that could not be read back.
    read_uuid(row.try_get("allocation_id")?, "journal.allocation_id")?;
    ArchivedRow::read(row, row.try_get("code")?)
}
