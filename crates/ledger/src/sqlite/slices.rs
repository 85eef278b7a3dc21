//! Rows where they lie in their table, slice by slice: the journal's as seals cover them, and the
//! entries of archived numbers, which go with their file.

use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Row as _};

use crate::seal::{RowText, path_of};
use crate::{JournalTexts, LedgerError, SealedRow, StandsFor};

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
pub(super) async fn extent(conn: &mut SqliteConnection) -> Result<Option<(i64, i64)>, LedgerError> {
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
    let rows = sqlx::query(
        "select batch_id, kind_id, user_name_id, address_name_id, counter_id, first_value, \
         last_value, step, allocation_id, number, scope, mask, outline, rest, context, \
         document_id, idempotency_key, document_day, digest, issued_at_us, retry_count, path \
         from journal where rowid between $1 and $2",
    );
    let until = from.saturating_add(SLICE_ROWS - 1);
    Ok(rows.bind(from).bind(until).fetch_all(conn).await?)
}

/// Columns are read by their places: that is half of the time.
pub(crate) fn row_of(row: &SqliteRow, texts: &JournalTexts) -> Result<SealedRow, sqlx::Error> {
    let kind = texts.kinds.get(&row.try_get(1)?);
    let user = texts.names.get(&row.try_get(2)?);
    let address_id: Option<i32> = row.try_get(3)?;
    let address = address_id.and_then(|id| texts.names.get(&id));
    let (counter_id, first): (i64, i64) = (row.try_get(4)?, row.try_get(5)?);
    let last = row.try_get::<Option<i64>, _>(6)?.unwrap_or(first);
    let (number, context) = (row.try_get(9)?, row.try_get(14)?);
    let whole = kind.zip(user).filter(|_| address_id.is_none() || address.is_some());
    let bytes = match whole {
        None => None,
        Some((kind, user)) => {
            let text = RowText {
                counter_id,
                first,
                last,
                step: row.try_get::<Option<i64>, _>(7)?.unwrap_or(1),
                allocation_id: row.try_get(8)?,
                number,
                scope: row.try_get(10)?,
                mask: row.try_get(11)?,
                outline: row.try_get(12)?,
                rest: row.try_get(13)?,
                context,
                document_id: row.try_get(15)?,
                idempotency_key: row.try_get(16)?,
                series_id: kind.series_id,
                version: kind.version,
                type_code: &kind.type_code,
                project: kind.project.as_deref(),
                document_date: row.try_get(17)?,
                user_id: user,
                ip_address: address.map(String::as_str),
                digest: row.try_get(18)?,
                issued_at_us: row.try_get(19)?,
                retry_count: row.try_get::<Option<i32>, _>(20)?.unwrap_or(0),
                path: path_of(row.try_get(21)?, number, context),
            };
            Some(text.bytes())
        }
    };
    let stands_for = StandsFor::of(number, context, last);
    let batch_id = row.try_get::<Option<i64>, _>(0)?.unwrap_or_default();
    let says_more = stands_for.is_some() && row.try_get::<Option<&str>, _>(21)?.is_some();
    Ok(SealedRow { batch_id, counter_id, first, bytes, stands_for, says_more })
}
