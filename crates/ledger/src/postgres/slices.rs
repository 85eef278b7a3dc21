//! Rows where they lie in their table, slice by slice: the journal's as seals cover them, by COPY
//! in its binary form, which a million rows leave in about a second; and the entries of archived
//! numbers, which go with their file.

use std::str::from_utf8;

use futures_util::TryStreamExt as _;
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;

use crate::seal::{RowText, path_of};
use crate::{JournalTexts, LedgerError, SealedRow, StandsFor};

/// Pages of a slice: 8 MiB.
pub(super) const SLICE_PAGES: i64 = 1_024;

/// What the binary form of COPY begins with, before its flags and the length of its extension.
const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

/// Days are counted from here by the database.
const EPOCH: jiff::civil::Date = jiff::civil::date(2000, 1, 1);

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
        "delete from archived_number where ctid >= '({from},0)'::tid and ctid < '({until},0)'::tid \
         and archive_file_id = $1"
    );
    let statement = sqlx::query(AssertSqlSafe(statement)).persistent(false);
    statement.bind(archive_file_id).execute(conn).await?;
    Ok(())
}

/// The rows of the slice that begins at a page, as COPY gives them.
pub(super) async fn read(conn: &mut PgConnection, from: i64) -> Result<Vec<u8>, LedgerError> {
    let until = from + SLICE_PAGES;
    let statement = format!(
        "copy (select batch_id, kind_id, user_name_id, address_name_id, counter_id, first_value, \
         last_value, step, allocation_id, number, scope, mask, outline, rest, context, \
         document_id, idempotency_key, document_day, digest, issued_at_us, retry_count, path \
         from journal where ctid >= '({from},0)'::tid and ctid < '({until},0)'::tid) \
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
            22 => rows.push(row_of(&mut reader, texts, &mut dates)?),
            _ => return None,
        }
    }
}

fn row_of(reader: &mut Copied<'_>, texts: &JournalTexts, dates: &mut Dates) -> Option<SealedRow> {
    let batch_id = reader.long()?.unwrap_or_default();
    let kind = reader.small()?.and_then(|id| texts.kinds.get(&id));
    let user = reader.small()?.and_then(|id| texts.names.get(&id));
    let address_id = reader.small()?;
    let address = address_id.and_then(|id| texts.names.get(&id));
    let (counter_id, first) = (reader.long()??, reader.long()??);
    let (last, step) = (reader.long()?, reader.long()?);
    let allocation_id = reader.field()??;
    let (number, scope) = (reader.text()?, reader.text()?);
    let (mask, outline) = (reader.text()?, reader.text()?);
    let (rest, context) = (reader.text()?, reader.text()?);
    let (document_id, idempotency_key) = (reader.text()?, reader.text()?);
    let day = reader.small()?;
    let digest = reader.field()?;
    let issued_at_us = reader.long()??;
    let retry_count = reader.small()?;
    let path = reader.text()?;
    // An address that is not there is none that was left out.
    let whole = kind.zip(user).zip(day).filter(|_| address_id.is_none() || address.is_some());
    let bytes = whole.map(|((kind, user), day)| {
        let row = RowText {
            counter_id,
            first,
            last: last.unwrap_or(first),
            step: step.unwrap_or(1),
            allocation_id,
            number,
            scope,
            mask,
            outline,
            rest,
            context,
            document_id,
            idempotency_key,
            series_id: kind.series_id,
            version: kind.version,
            type_code: &kind.type_code,
            project: kind.project.as_deref(),
            document_date: dates.text(day),
            user_id: user,
            ip_address: address.map(String::as_str),
            digest,
            issued_at_us,
            retry_count: retry_count.unwrap_or(0),
            path: path_of(path, number, context),
        };
        row.bytes()
    });
    let stands_for = StandsFor::of(number, context, last.unwrap_or(first));
    let says_more = stands_for.is_some() && path.is_some();
    Some(SealedRow { batch_id, counter_id, first, bytes, stands_for, says_more })
}

/// The text of the last day: neighbours are mostly of one.
#[derive(Default)]
struct Dates {
    day: Option<i32>,
    text: String,
}

impl Dates {
    fn text(&mut self, day: i32) -> &str {
        if self.day != Some(day) {
            let date = EPOCH.checked_add(jiff::Span::new().days(day));
            self.text = date.map(|date| date.to_string()).unwrap_or_default();
            self.day = Some(day);
        }
        &self.text
    }
}

/// What is left to read. Fields stand behind their length of 4 bytes, -1 for null.
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
