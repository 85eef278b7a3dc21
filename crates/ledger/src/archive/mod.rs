//! Files that rows of the journal moved to: noting them, looking numbers up among them, and that
//! one is deleted. The rows make room in `archiving`.

pub(crate) mod archiving;
pub(crate) mod names;
pub(crate) mod rows;

use std::collections::BTreeSet;

use sqlx_macros::FromRow;

use crate::calls::noun;
use crate::columns::{from_json, signed, unsigned};
use crate::dialect::Conn;
use crate::protocol::partitions;
use crate::query::{QueryBuilder, Row, query, query_scalar};
use crate::seal::ARCHIVED;
use crate::series::{acceptance, saving};
use crate::store::{Store, commit, commit_alone};
use crate::{ArchiveFile, Event, LedgerError, NewArchiveFile, SegmentNote, events};
use crate::{document_hash, number_hash};

/// Numbers of a statement.
const HASHES_MAX: usize = 500;

noun!(
    /// The files that rows of the journal moved to.
    Archive,
    archive
);

impl Archive<'_> {
    /// Notes a file before the first of its rows makes room.
    ///
    /// # Errors
    /// `Refused` while another one is under way, a partition is held, a process runs that does not
    /// support archives, or a series accepted an ambiguity since its rows were chosen (F43).
    pub async fn begin(self, file: &NewArchiveFile) -> Result<ArchiveFile, LedgerError> {
        self.write(async |store| {
            let now_us = store.clock.now_us();
            let mut tx = store.begin().await?;
            // A transaction that saves a series waits here, and then finds the file.
            saving::lock_all(&mut *tx).await?;
            must_be_fit(&mut *tx).await?;
            acceptance::must_be_known(store, &mut *tx).await?;
            let id = query_scalar(
                "insert into archive_file (name, sha256, row_count, manifest, before_us,
                 last_issued_us, written_by, written_at_us)
                 values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing
                 returning archive_file_id",
            )
            .bind(&file.name)
            .bind(file.sha256.as_slice())
            .bind(signed(file.rows, "rows")?)
            .bind(&file.manifest)
            .bind(file.before_us)
            .bind(file.last_issued_us)
            .bind(&file.written_by)
            .bind(now_us)
            .fetch_optional(&mut *tx)
            .await?;
            let Some(archive_file_id) = id else {
                let why = "another archive is being written at this moment";
                return Err(LedgerError::Refused(why.into()));
            };
            // A ledger that forgets it has the rows.
            commit(tx).await?;
            Ok(ArchiveFile {
                archive_file_id,
                file: file.clone(),
                written_at_us: now_us,
                is_ended: false,
                deleted_at_us: None,
            })
        })
        .await
    }

    /// Notes that all rows of a file have made room, and the user who archived them.
    pub async fn end(self, of: &ArchiveFile) -> Result<(), LedgerError> {
        self.write(async |store| {
            let now_us = store.clock.now_us();
            let mut tx = store.begin().await?;
            let ended = query(
                "update archive_file set ended_at_us = $2
                 where archive_file_id = $1 and ended_at_us is null",
            )
            .bind(of.archive_file_id)
            .bind(now_us)
            .execute(&mut *tx)
            .await?;
            if ended.rows_affected() == 1 {
                let NewArchiveFile { name, rows, before_us, written_by, .. } = &of.file;
                let detail = serde_json::json!({
                    "file": name, "rows": rows, "before_us": before_us, "by": written_by,
                    "sha256": numbering::hexadecimal(&of.file.sha256),
                });
                events::insert_event(&mut *tx, &event_of(now_us, "archived", detail)).await?;
            }
            commit(tx).await
        })
        .await
    }

    /// The files that rows moved to, in the order in which they were written, behind one, at most
    /// `limit`.
    pub async fn files(self, after: i32, limit: u32) -> Result<Vec<ArchiveFile>, LedgerError> {
        self.read(async |reader| {
            let mut query = QueryBuilder::new(FILES);
            query.push("where archive_file_id > ").push_bind(after);
            query.push(" order by archive_file_id limit ").push_bind(i64::from(limit));
            query.build().typed::<FileRow>().fetch_all_into(reader).await
        })
        .await
    }

    /// The file whose rows are making room, if one is.
    pub async fn under_way(self) -> Result<Option<ArchiveFile>, LedgerError> {
        self.read(async |reader| {
            let mut query = QueryBuilder::new(FILES);
            query.push("where ended_at_us is null");
            query.build().typed::<FileRow>().fetch_optional_into(reader).await
        })
        .await
    }

    /// Notes that a file is deleted: its numbers are no longer found, and their documents may be
    /// numbered again; the segments stay, so that no value comes again. False where it was deleted
    /// before: then the rest of its entries is removed, part by part; another call completes an
    /// interrupted deletion. One that is under way is given up: the journal has its rows.
    ///
    /// # Errors
    /// `Refused` where it is under way, and a segment represents rows of it.
    pub async fn delete(
        self,
        of: &ArchiveFile,
        by: &str,
        reason: &str,
    ) -> Result<bool, LedgerError> {
        let noted = self.search(async |store| note_deleted(store, of, by, reason).await);
        let noted = noted.await?;
        let parts = self.read(async |reader| reader.acquire().await?.archived_number_parts().await);
        for part in 0..parts.await? {
            self.search(async |store| {
                let mut tx = store.begin().await?;
                tx.allow_long_search().await?;
                tx.forget_numbers(of.archive_file_id, part).await?;
                commit(tx).await
            })
            .await?;
        }
        Ok(noted)
    }

    /// The files that may hold a number; with a chance of one in 10¹⁹ for each archived number
    /// that it is another one's.
    pub async fn of_number(self, number: &str) -> Result<Vec<String>, LedgerError> {
        self.archived("number_hash", number_hash(number)).await
    }

    /// The files that may hold numbers of a document; likewise.
    pub async fn of_document(self, document: &str) -> Result<Vec<String>, LedgerError> {
        self.archived("document_hash", document_hash(document)).await
    }

    /// The file that holds a value of a counter, if it moved to one.
    pub async fn of_value(
        self,
        counter_id: i64,
        value: u64,
    ) -> Result<Option<SegmentNote>, LedgerError> {
        self.read(async |reader| {
            let Ok(value) = i64::try_from(value) else { return Ok(None) };
            let row = query(
                "select last_value, path, context from journal_row where counter_id = $1
                 and first_value <= $2 order by first_value desc limit 1",
            )
            .bind(counter_id)
            .bind(value)
            .fetch_optional(reader)
            .await?;
            let Some(row) = row else { return Ok(None) };
            let (last, path): (i64, &str) = row.decode()?;
            let is_of_segment = path == ARCHIVED && last >= value;
            if is_of_segment { note_of(&row).map(Some) } else { Ok(None) }
        })
        .await
    }

    /// A file that is deleted may have entries while they go.
    async fn archived(self, column: &'static str, hash: i64) -> Result<Vec<String>, LedgerError> {
        self.read(async |reader| {
            let mut query = QueryBuilder::new(
                "select distinct f.name from archived_number a
                 join archive_file f on f.archive_file_id = a.archive_file_id
                 where f.deleted_at_us is null and a.",
            );
            query.push(column).push(" = ").push_bind(hash).push(" order by f.name limit 100");
            Ok(query.build().scalar().fetch_all(reader).await?)
        })
        .await
    }
}

/// Whether the file was not deleted before.
async fn note_deleted(
    store: &Store,
    of: &ArchiveFile,
    by: &str,
    reason: &str,
) -> Result<bool, LedgerError> {
    let now_us = store.clock.now_us();
    let mut tx = store.begin().await?;
    let is_under_way = lock_under_way(&mut *tx, of).await?;
    if is_under_way {
        must_stand_for_nothing(&mut *tx, of).await?;
    }
    let done = query(
        "update archive_file set deleted_at_us = $2, deleted_by = $3, deleted_reason = $4,
         ended_at_us = coalesce(ended_at_us, $2)
         where archive_file_id = $1 and deleted_at_us is null",
    )
    .bind(of.archive_file_id)
    .bind(now_us)
    .bind(by)
    .bind(reason)
    .execute(&mut *tx)
    .await?;
    if done.rows_affected() == 0 {
        return Ok(false);
    }
    let detail = serde_json::json!({
        "file": of.file.name, "rows": of.file.rows, "by": by, "reason": reason,
        "given_up": is_under_way,
    });
    events::insert_event(&mut *tx, &event_of(now_us, "archive-deleted", detail)).await?;
    commit_alone(store, tx).await?;
    Ok(true)
}

/// Keeps a file from being given up until the transaction ends, and refuses one that was, and all
/// while a partition is held.
pub(crate) async fn must_go_on(conn: &mut Conn, of: &ArchiveFile) -> Result<(), LedgerError> {
    if partitions::is_any_held(&mut *conn).await? {
        return Err(LedgerError::Conflict("a partition is held; archive again later".into()));
    }
    if lock_under_way(conn, of).await? {
        return Ok(());
    }
    Err(LedgerError::Refused(format!("{} was given up", of.file.name)))
}

/// Whether a file is under way, and it stays so until the transaction ends.
async fn lock_under_way(conn: &mut Conn, of: &ArchiveFile) -> Result<bool, LedgerError> {
    let id: Option<i32> = query_scalar(
        "select archive_file_id from archive_file
         where archive_file_id = $1 and ended_at_us is null",
    )
    .for_update()
    .bind(of.archive_file_id)
    .fetch_optional(conn)
    .await?;
    Ok(id.is_some())
}

/// Refuses to give a file up that has the only copy of a row. Looks through the journal: no index
/// leads to segments.
async fn must_stand_for_nothing(conn: &mut Conn, of: &ArchiveFile) -> Result<(), LedgerError> {
    conn.allow_long_search().await?;
    let segment = query(
        "select 1 from journal where number is null and context is not null
         and allocation_id = $1 limit 1",
    )
    .bind(segment_id(of))
    .fetch_optional(conn)
    .await?;
    if segment.is_none() {
        return Ok(());
    }
    Err(LedgerError::Refused(format!(
        "{}: rows of it made room already, and it has them alone; put it back, and archive again \
         to its folder",
        of.file.name
    )))
}

/// The note of a segment about its rows.
pub(crate) fn note_of(row: &Row) -> Result<SegmentNote, LedgerError> {
    let context: String = row.try_get("context")?;
    from_json(&context, "journal.context")
}

/// The allocation id in the segments of a file.
pub(crate) fn segment_id(of: &ArchiveFile) -> &[u8] {
    of.file.sha256.get(..16).unwrap_or_default()
}

/// The beginning of a query for files.
const FILES: &str = "select archive_file_id, name, sha256, row_count, manifest, before_us,
    last_issued_us, written_by, written_at_us, ended_at_us, deleted_at_us from archive_file ";

/// The columns of a file, as [`FILES`] names them.
#[derive(FromRow)]
struct FileRow {
    archive_file_id: i32,
    name: String,
    sha256: Vec<u8>,
    row_count: i64,
    manifest: String,
    before_us: i64,
    last_issued_us: i64,
    written_by: String,
    written_at_us: i64,
    ended_at_us: Option<i64>,
    deleted_at_us: Option<i64>,
}

impl TryFrom<FileRow> for ArchiveFile {
    type Error = LedgerError;

    fn try_from(row: FileRow) -> Result<Self, LedgerError> {
        Ok(ArchiveFile {
            archive_file_id: row.archive_file_id,
            file: NewArchiveFile {
                name: row.name,
                sha256: row.sha256,
                rows: unsigned(row.row_count, "archive_file.row_count")?,
                manifest: row.manifest,
                before_us: row.before_us,
                last_issued_us: row.last_issued_us,
                written_by: row.written_by,
            },
            written_at_us: row.written_at_us,
            is_ended: row.ended_at_us.is_some(),
            deleted_at_us: row.deleted_at_us,
        })
    }
}

fn event_of(at_us: i64, kind: &str, detail: serde_json::Value) -> Event {
    Event { at_us, kind: kind.into(), partition: None, epoch: None, node_id: None, detail }
}

/// Which of the numbers moved to an archive, as they are looked for there.
pub(crate) async fn archived(
    store: &Store,
    numbers: &[(String, String)],
) -> Result<BTreeSet<i64>, LedgerError> {
    let mut found = BTreeSet::new();
    for numbers in numbers.chunks(HASHES_MAX) {
        let hashes: Vec<i64> = numbers.iter().map(|(number, _)| number_hash(number)).collect();
        let mut query =
            QueryBuilder::new("select number_hash from archived_number where number_hash");
        query.push_among(hashes);
        found.extend(query.build().scalar::<i64>().fetch_all(&store.reader).await?);
    }
    Ok(found)
}

async fn must_be_fit(conn: &mut Conn) -> Result<(), LedgerError> {
    if partitions::is_any_held(&mut *conn).await? {
        let why = "archive: a partition is held; see `numerator reconcile --ledger-restored`";
        return Err(LedgerError::Refused(why.into()));
    }
    Ok(())
}
