//! What an account shows beside its values: its first and last number, the part that was asked for,
//! files of the archive, how many numbers have a revision.

use numbering::PartialNumber;
use serde::Deserialize;

use super::super::lookup::mask_of;
use super::super::{Conn, Row, counter_list, query, query_scalar};
use super::ARCHIVED;
use crate::columns::unsigned;
use crate::{AccountEnd, AccountPart, Counter, DatedPart, LedgerError};

/// Files of the archive that an account names.
const FILES_MAX: usize = 20;

/// The number of a value, from the row that begins at another one.
pub(super) async fn end(
    conn: &mut Conn,
    counter_id: i64,
    of: Option<(i64, i64)>,
) -> Result<Option<AccountEnd>, LedgerError> {
    let Some((first, value)) = of else { return Ok(None) };
    let row = query(
        "select number, mask, outline, path, context, issued_at_us from journal_row \
         where counter_id = $1 and first_value = $2",
    )
    .bind(counter_id)
    .bind(first)
    .fetch_one(conn)
    .await?;
    let text: Option<String> = row.try_get("number")?;
    let number = match text {
        Some(number) if value != first => filled(&row, &number, value),
        number => number,
    };
    let path: &str = row.try_get("path")?;
    let context: Option<&str> = row.try_get("context")?;
    let file = context.filter(|_| path == ARCHIVED).map(file_of);
    Ok(Some(AccountEnd { value, number, issued_at_us: row.try_get("issued_at_us")?, file }))
}

/// The part of a counter's numbers that was asked for; none where all of them were.
pub(super) async fn part(
    conn: &mut Conn,
    counter: &Counter,
    asked: Option<&DatedPart>,
) -> Result<Option<AccountPart>, LedgerError> {
    let is_asked =
        |asked: &&DatedPart| counter_list::holds(&asked.of, counter.series_id, &counter.key);
    let Some(DatedPart { days: [from, upto], .. }) = asked.filter(is_asked) else {
        return Ok(None);
    };
    let of = |text: &'static str| query(text).bind(counter.counter_id).bind(ARCHIVED).bind(from);
    let sums = of(
        "select cast(coalesce(sum((last_value - first_value) / step + 1), 0) as bigint) as count, \
         min(first_value) as first_value from journal_row where counter_id = $1 and path <> $2 \
         and document_date >= $3 and document_date <= $4",
    )
    .bind(upto)
    .fetch_one(&mut *conn)
    .await?;
    let last =
        of("select first_value, last_value from journal_row where counter_id = $1 and path <> $2 \
         and document_date >= $3 and document_date <= $4 order by first_value desc limit 1")
        .bind(upto)
        .fetch_optional(&mut *conn)
        .await?;
    // Such a row shows the latest date of those it stands for.
    let archived: i64 =
        of("select cast(coalesce(sum((last_value - first_value) / step + 1), 0) as bigint) \
         from journal_row where counter_id = $1 and path = $2 and document_date >= $3")
        .scalar()
        .fetch_one(&mut *conn)
        .await?;
    let first = sums.try_get::<Option<i64>>("first_value")?.map(|first| (first, first));
    let read = |row: Row| -> Result<(i64, i64), LedgerError> {
        Ok((row.try_get("first_value")?, row.try_get("last_value")?))
    };
    let last = last.map(read).transpose()?;
    Ok(Some(AccountPart {
        values: unsigned(sums.try_get("count")?, "count")?,
        first: end(conn, counter.counter_id, first).await?,
        last: end(conn, counter.counter_id, last).await?,
        archived: unsigned(archived, "count")?,
    }))
}

/// The number of a later value of a row; none where its other serials would have to be known.
fn filled(row: &Row, number: &str, value: i64) -> Option<String> {
    let mask = mask_of(row, number).ok()?;
    let partial = PartialNumber::parse(&mask).ok()?;
    partial.fill(&[u64::try_from(value).ok()?]).ok()
}

/// What a row that stands for many says of its file.
#[derive(Deserialize)]
struct Segment {
    file: String,
}

/// The file that a row names, or what it says instead.
fn file_of(context: &str) -> String {
    serde_json::from_str(context).map_or_else(|_| context.to_owned(), |Segment { file }| file)
}

/// Files of a counter's rows in the archive, and how many more there are.
pub(super) async fn files(
    conn: &mut Conn,
    counter_id: i64,
    archived: u64,
) -> Result<(Vec<String>, u64), LedgerError> {
    if archived == 0 {
        return Ok((Vec::new(), 0));
    }
    let rows = query(
        "select distinct context from journal_row where counter_id = $1 and path = $2 \
         and context is not null order by context",
    )
    .bind(counter_id)
    .bind(ARCHIVED)
    .fetch_all(conn)
    .await?;
    let mut names = Vec::new();
    for row in &rows {
        let name = file_of(row.try_get("context")?);
        if names.last() != Some(&name) {
            names.push(name);
        }
    }
    let further = names.len().saturating_sub(FILES_MAX) as u64;
    names.truncate(FILES_MAX);
    Ok((names, further))
}

pub(super) async fn revised(conn: &mut Conn, counter_id: i64) -> Result<u64, LedgerError> {
    let count: i64 =
        query_scalar("select count(distinct value) from revision where counter_id = $1")
            .bind(counter_id)
            .fetch_one(conn)
            .await?;
    unsigned(count, "revision")
}
