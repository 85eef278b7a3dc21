//! Rows in storage order, slice by slice: the journal's as seals cover them, and the entries of
//! archived numbers, which are removed with their file.

use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Row as _};

use crate::journal_columns::{SHARED, SharedIds, Stored, own_columns, read_columns};
use crate::{JournalTexts, LedgerError, SealedRow};

/// Rows of a slice, at most: as they were inserted.
pub(super) const SLICE_ROWS: i64 = 20_000;

/// In how many slices the rows of a table lie.
pub(super) async fn count(
    conn: &mut SqliteConnection,
    table: &'static str,
) -> Result<i64, LedgerError> {
    let last = AssertSqlSafe(format!("select coalesce(max(rowid), 0) from {table}"));
    let last: i64 = sqlx::query_scalar(last).fetch_one(conn).await?;
    Ok((last + SLICE_ROWS) / SLICE_ROWS)
}

/// Removes the entries of a file's numbers from a slice.
pub(super) async fn forget(
    conn: &mut SqliteConnection,
    archive_file_id: i32,
    slice: i64,
) -> Result<(), LedgerError> {
    sqlx::query(
        "delete from archived_number where rowid >= $1 and rowid < $2 and archive_file_id = $3",
    )
    .bind(slice * SLICE_ROWS)
    .bind((slice + 1) * SLICE_ROWS)
    .bind(archive_file_id)
    .execute(conn)
    .await?;
    Ok(())
}

/// The lowest and the highest id of the journal's rows.
pub(super) async fn value_range(
    conn: &mut SqliteConnection,
) -> Result<Option<(i64, i64)>, LedgerError> {
    let ends = sqlx::query("select min(rowid), max(rowid) from journal").fetch_one(conn).await?;
    let (first, last): (Option<i64>, Option<i64>) = (ends.try_get(0)?, ends.try_get(1)?);
    Ok(first.zip(last))
}

/// The first id from one on that a row of the journal has.
pub(super) async fn place_from(
    conn: &mut SqliteConnection,
    from: i64,
) -> Result<Option<i64>, LedgerError> {
    let place = sqlx::query_scalar("select min(rowid) from journal where rowid >= $1");
    Ok(place.bind(from).fetch_one(conn).await?)
}

/// The rows of the slice that begins at an id.
pub(super) async fn read(
    conn: &mut SqliteConnection,
    from: i64,
) -> Result<Vec<SqliteRow>, LedgerError> {
    let columns = read_columns();
    let text = format!("select {columns} from journal where rowid between $1 and $2");
    let rows = sqlx::query(AssertSqlSafe(text));
    let until = from.saturating_add(SLICE_ROWS - 1);
    Ok(rows.bind(from).bind(until).fetch_all(conn).await?)
}

macro_rules! read_columns_of_row {
    ($($name:ident $bound_as:literal $cast:literal ($read_as:ty) $said:expr;)*) => {
        /// Reads the own columns of a row by their places: that is half of the time.
        fn own(row: &SqliteRow) -> Result<Stored<'_, &str>, sqlx::Error> {
            let mut places = SHARED.len()..;
            let mut place = || places.next().unwrap_or_default();
            Ok(Stored { $($name: row.try_get(place())?),* })
        }
    };
}
own_columns!(read_columns_of_row);

pub(crate) fn row_of(row: &SqliteRow, texts: &JournalTexts) -> Result<SealedRow, sqlx::Error> {
    let ids = SharedIds {
        batch_id: row.try_get(0)?,
        kind_id: row.try_get(1)?,
        user_name_id: row.try_get(2)?,
        address_name_id: row.try_get(3)?,
    };
    let own = own(row)?;
    Ok(own.sealed(&ids, texts, Some(own.document_day)))
}
