//! Rows in storage order, slice by slice: the journal's as seals cover them, by COPY in its binary
//! form, which yields a million rows in about a second; and the entries of archived numbers, which
//! are removed with their file.

use std::str::from_utf8;

use futures_util::TryStreamExt as _;
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;

use crate::journal_columns::{OWN, SHARED, SharedIds, Stored, own_columns, read_columns};
use crate::{JournalTexts, LedgerError, SealedRow};

/// Pages of a slice: 8 MiB.
pub(super) const SLICE_PAGES: i64 = 1_024;

/// The beginning of COPY's binary form, before its flags and the length of its extension.
const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

/// Days are counted from here by the database.
const EPOCH: jiff::civil::Date = jiff::civil::date(2000, 1, 1);

/// Columns of a row as it is read.
const COLUMNS: usize = SHARED.len() + OWN.len();

/// How many pages a table has.
pub(super) async fn pages(conn: &mut PgConnection, table: &str) -> Result<i64, LedgerError> {
    let pages = sqlx::query_scalar(
        "select pg_relation_size($1::regclass) / current_setting('block_size')::bigint",
    );
    Ok(pages.bind(table).fetch_one(conn).await?)
}

/// In how many slices the rows of a table lie.
pub(super) async fn count(conn: &mut PgConnection, table: &str) -> Result<i64, LedgerError> {
    Ok((pages(conn, table).await? + SLICE_PAGES - 1) / SLICE_PAGES)
}

/// Removes the entries of a file's numbers from a slice.
pub(super) async fn forget(
    conn: &mut PgConnection,
    archive_file_id: i32,
    slice: i64,
) -> Result<(), LedgerError> {
    let (from, until) = (slice * SLICE_PAGES, (slice + 1) * SLICE_PAGES);
    let statement = format!(
        "delete from archived_number where ctid >= '({from},0)'::tid and ctid < '({until},0)'::tid
         and archive_file_id = $1"
    );
    let statement = sqlx::query(AssertSqlSafe(statement)).persistent(false);
    statement.bind(archive_file_id).execute(conn).await?;
    Ok(())
}

/// The rows of the slice that begins at a page, as COPY gives them.
pub(super) async fn read(conn: &mut PgConnection, from: i64) -> Result<Vec<u8>, LedgerError> {
    let until = from + SLICE_PAGES;
    let columns = read_columns();
    let statement = format!(
        "copy (select {columns} from journal
         where ctid >= '({from},0)'::tid and ctid < '({until},0)'::tid)
         to stdout (format binary)"
    );
    let mut copied = conn.copy_out_raw(&statement).await?;
    let mut bytes = Vec::new();
    while let Some(part) = copied.try_next().await? {
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

/// Reads the binary form; `None` where it is another.
pub(crate) fn rows_of(bytes: &[u8], texts: &JournalTexts) -> Option<Vec<SealedRow>> {
    let mut reader = Copied(bytes);
    if reader.take(SIGNATURE.len())? != SIGNATURE {
        return None;
    }
    let _flags = reader.int()?;
    let extension = usize::try_from(reader.int()?).ok()?;
    reader.take(extension)?;
    let (mut rows, mut dates) = (Vec::new(), Dates::default());
    loop {
        match i16::from_be_bytes(reader.take(2)?.try_into().ok()?) {
            -1 => return Some(rows),
            count if usize::try_from(count) == Ok(COLUMNS) => {
                rows.push(row_of(&mut reader, texts, &mut dates)?);
            }
            _ => return None,
        }
    }
}

macro_rules! read_columns_of_copy {
    ($($name:ident $bound_as:literal $cast:literal ($read_as:ty) $said:expr;)*) => {
        /// Reads the own columns of a row.
        fn own<'b>(from: &mut Copied<'b>) -> Option<Stored<'b, Option<i32>>> {
            Some(Stored { $($name: Field::read(from)?),* })
        }
    };
}
own_columns!(read_columns_of_copy);

fn row_of(reader: &mut Copied<'_>, texts: &JournalTexts, dates: &mut Dates) -> Option<SealedRow> {
    let ids = SharedIds {
        batch_id: reader.long()?,
        kind_id: reader.small()?,
        user_name_id: reader.small()?,
        address_name_id: reader.small()?,
    };
    let row = own(reader)?;
    Some(row.sealed(&ids, texts, dates.text(row.document_day)))
}

/// What a field is read as.
trait Field<'b>: Sized {
    fn read(from: &mut Copied<'b>) -> Option<Self>;
}

impl Field<'_> for i64 {
    fn read(from: &mut Copied<'_>) -> Option<Self> {
        from.long()?
    }
}

impl Field<'_> for Option<i64> {
    fn read(from: &mut Copied<'_>) -> Option<Self> {
        from.long()
    }
}

impl Field<'_> for Option<i32> {
    fn read(from: &mut Copied<'_>) -> Option<Self> {
        from.small()
    }
}

impl<'b> Field<'b> for &'b [u8] {
    fn read(from: &mut Copied<'b>) -> Option<Self> {
        from.field()?
    }
}

impl<'b> Field<'b> for Option<&'b [u8]> {
    fn read(from: &mut Copied<'b>) -> Option<Self> {
        from.field()
    }
}

impl<'b> Field<'b> for Option<&'b str> {
    fn read(from: &mut Copied<'b>) -> Option<Self> {
        from.text()
    }
}

/// The text of the last day: neighbours are mostly of one.
#[derive(Default)]
struct Dates {
    day: Option<i32>,
    text: String,
}

impl Dates {
    fn text(&mut self, day: Option<i32>) -> Option<&str> {
        let days = day?;
        if self.day != day {
            let date = EPOCH.checked_add(jiff::Span::new().days(days));
            self.text = date.map(|date| date.to_string()).unwrap_or_default();
            self.day = day;
        }
        Some(&self.text)
    }
}

/// The bytes that are still to be read. A field follows its length of 4 bytes, -1 for null.
struct Copied<'b>(&'b [u8]);

impl<'b> Copied<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn int(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn field(&mut self) -> Option<Option<&'b [u8]>> {
        match self.int()? {
            -1 => Some(None),
            length => Some(Some(self.take(usize::try_from(length).ok()?)?)),
        }
    }

    fn text(&mut self) -> Option<Option<&'b str>> {
        match self.field()? {
            None => Some(None),
            Some(bytes) => Some(Some(from_utf8(bytes).ok()?)),
        }
    }

    fn long(&mut self) -> Option<Option<i64>> {
        match self.field()? {
            None => Some(None),
            Some(bytes) => Some(Some(i64::from_be_bytes(bytes.try_into().ok()?))),
        }
    }

    fn small(&mut self) -> Option<Option<i32>> {
        match self.field()? {
            None => Some(None),
            Some(bytes) => Some(Some(i32::from_be_bytes(bytes.try_into().ok()?))),
        }
    }
}
