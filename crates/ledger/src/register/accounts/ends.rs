//! What an account shows besides its values: its first and last number, the part that was asked
//! for, files of the archive, how many numbers have a revision.

use numbering::PartialNumber;
use serde::Deserialize;
use sqlx_macros::FromRow;

use super::ARCHIVED;
use crate::columns::{read_raw, unsigned};
use crate::counters::list;
use crate::dialect::Conn;
use crate::query::{Row, query, query_as, query_scalar};
use crate::register::lookup::mask_of;
use crate::{AccountEnd, AccountPart, Counter, DatedPart, LedgerError, Run};

/// Files of the archive that an account names.
const FILES_MAX: usize = 20;

/// Records outside the journal that are read at once.
const BESIDE_PAGE: i64 = 1_000;

/// A page of a counter's records that the journal did not take.
const REJECTED: &str = "select journal_rejected_id as id, first_value, last_value, step, raw
     from journal_rejected where counter_id = $1 and journal_rejected_id > $2
     order by journal_rejected_id limit $3";

/// The same of those whose text another number has, but for values that the journal has.
const COLLIDED: &str = "select c.collision_id as id, c.first_value, c.last_value, c.step, c.raw
     from collision c where c.counter_id = $1 and c.collision_id > $2
     and coalesce((select j.last_value from journal j where j.counter_id = c.counter_id
     and j.first_value <= c.first_value order by j.first_value desc limit 1),
     c.first_value - 1) < c.first_value order by c.collision_id limit $3";

/// A row of the journal at an end of an account.
#[derive(FromRow)]
struct EndRow<'r> {
    number: Option<String>,
    path: &'r str,
    context: Option<&'r str>,
    issued_at_us: i64,
}

/// The number of a value, from the row that begins at another one.
pub(super) async fn end(
    conn: &mut Conn,
    counter_id: i64,
    of: Option<(i64, i64)>,
) -> Result<Option<AccountEnd>, LedgerError> {
    let Some((first, value)) = of else { return Ok(None) };
    let row = query(
        "select number, mask, outline, path, context, issued_at_us from journal_row
         where counter_id = $1 and first_value = $2",
    )
    .bind(counter_id)
    .bind(first)
    .fetch_one(conn)
    .await?;
    let EndRow { number, path, context, issued_at_us } = row.decode()?;
    let number = match number {
        Some(number) if value != first => filled(&row, &number, value),
        number => number,
    };
    let file = context.filter(|_| path == ARCHIVED).map(file_of);
    Ok(Some(AccountEnd { value, number, issued_at_us, file }))
}

/// The part of a counter's numbers that was asked for; none where all of them were.
pub(super) async fn part(
    conn: &mut Conn,
    counter: &Counter,
    asked: Option<&DatedPart>,
) -> Result<Option<AccountPart>, LedgerError> {
    let is_asked = |asked: &&DatedPart| list::holds(&asked.of, counter.series_id, &counter.key);
    let Some(DatedPart { days, .. }) = asked.filter(is_asked) else { return Ok(None) };
    let [from, upto] = days;
    let of = |text: &'static str| query(text).bind(counter.counter_id).bind(ARCHIVED).bind(from);
    let sums = of(
        "select cast(coalesce(sum((last_value - first_value) / step + 1), 0) as bigint) as count,
         min(first_value) as first_value from journal_row where counter_id = $1 and path <> $2
         and document_date >= $3 and document_date <= $4",
    )
    .bind(upto)
    .typed()
    .fetch_one(&mut *conn)
    .await?;
    let (count, first): (i64, Option<i64>) = sums;
    let last =
        of("select first_value, last_value from journal_row where counter_id = $1 and path <> $2
         and document_date >= $3 and document_date <= $4 order by first_value desc limit 1")
        .bind(upto)
        .typed()
        .fetch_optional(&mut *conn)
        .await?;
    // Such a row shows the latest date of those it represents.
    let archived: i64 =
        of("select cast(coalesce(sum((last_value - first_value) / step + 1), 0) as bigint)
         from journal_row where counter_id = $1 and path = $2 and document_date >= $3")
        .scalar()
        .fetch_one(&mut *conn)
        .await?;
    let first = first.map(|first| (first, first));
    Ok(Some(AccountPart {
        values: unsigned(count, "count")?,
        first: end(conn, counter.counter_id, first).await?,
        last: end(conn, counter.counter_id, last).await?,
        kept_aside: beside(conn, counter.counter_id, days).await?,
        archived: unsigned(archived, "count")?,
    }))
}

/// A record outside the journal.
#[derive(FromRow)]
struct BesideRow {
    id: i64,
    #[sqlx(flatten)]
    run: Run,
    raw: String,
}

/// How many values, dated so, have their records outside the journal. A record that cannot be read
/// may be dated so.
async fn beside(
    conn: &mut Conn,
    counter_id: i64,
    [from, upto]: &[String; 2],
) -> Result<u64, LedgerError> {
    let mut count = 0;
    for page in [REJECTED, COLLIDED] {
        let mut after = 0_i64;
        loop {
            let page = query_as(page).bind(counter_id).bind(after).bind(BESIDE_PAGE);
            let rows: Vec<BesideRow> = page.fetch_all(&mut *conn).await?;
            for row in &rows {
                after = row.id;
                let entry = read_raw(&row.raw);
                let is_dated = |date: &String| from <= date && date <= upto;
                if entry.is_ok_and(|entry| !is_dated(&entry.record.document_date)) {
                    continue;
                }
                count += row.run.count();
            }
            if rows.len() as u64 != BESIDE_PAGE.unsigned_abs() {
                break;
            }
        }
    }
    Ok(count)
}

/// The number of a later value of a row; none where its other serials would have to be known.
fn filled(row: &Row, number: &str, value: i64) -> Option<String> {
    let mask = mask_of(row, number).ok()?;
    let partial = PartialNumber::parse(&mask).ok()?;
    partial.fill(&[u64::try_from(value).ok()?]).ok()
}

/// What a row that represents many says of its file.
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
    let contexts: Vec<String> = query_scalar(
        "select distinct context from journal_row where counter_id = $1 and path = $2
         and context is not null order by context",
    )
    .bind(counter_id)
    .bind(ARCHIVED)
    .fetch_all(conn)
    .await?;
    let mut names = Vec::new();
    for context in &contexts {
        let name = file_of(context);
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
