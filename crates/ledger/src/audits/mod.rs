//! The reads of those who check the ledger, page by page. Takes nothing.

pub(crate) mod rows;
pub(crate) mod walk;

use numbering::{Range, TakenRange};
use sqlx_macros::FromRow;
use uuid::Uuid;

use crate::calls::noun;
use crate::columns::{FurtherSerial, from_json, read_uuid, unsigned};
use crate::dialect::Conn;
use crate::query::{QueryBuilder, Row, query, query_as, query_scalar};
use crate::register::gaps::{RunRow, bounded, search, window};
use crate::register::lookup::mask_of;
use crate::store::{Store, commit_alone};
use crate::{
    Acknowledgement, Audited, Event, IssuePath, LedgerError, Nobodys, Span, StandsFor, Totals,
    ValueOf, Written, WrittenText, events,
};

/// Most rows of a page.
const PAGE_MAX: u32 = 10_000;

/// The highest exact count of a table's rows in a look.
const COUNTED_MAX: i64 = 10_000;

noun!(
    /// The reads of a check of the ledger, page by page.
    Audits,
    audits
);

impl Audits<'_> {
    /// Examines the values of a counter in (`after`, `upto`], at about `rows_max` rows of the
    /// ledger: how far it came, and which values are missing or occur twice.
    pub async fn values(
        self,
        counter_id: i64,
        after: i64,
        upto: i64,
        rows_max: u32,
    ) -> Result<Audited, LedgerError> {
        self.search(async |store| audit(store, counter_id, (after, upto), rows_max).await).await
    }

    /// Rows of the journal behind one, up to those of a counter, at most `limit`; on request only
    /// those of several numbers.
    pub async fn written(
        self,
        after: ValueOf,
        upto_counter: i64,
        ranges_only: bool,
        limit: u32,
    ) -> Result<Vec<Written>, LedgerError> {
        self.search(async |store| written(store, after, upto_counter, ranges_only, limit).await)
            .await
    }

    /// Which allocations hold numbers, each in its scope, as the first of theirs.
    pub async fn holders(
        self,
        numbers: &[(String, String)],
    ) -> Result<Vec<(String, String, Uuid)>, LedgerError> {
        self.search(async |store| {
            let mut query = QueryBuilder::new("with asked (number, scope) as (");
            query.push_values(numbers, |mut row, (number, scope)| {
                row.push_bind(number).push_bind(scope);
            });
            query.push(
                ") select j.number, j.scope, j.allocation_id from asked a
                 join journal j on j.number = a.number and j.scope = a.scope",
            );
            let rows: Vec<HolderRow> =
                query.build().once().typed().fetch_all(&store.reader).await?;
            let holder = |row: HolderRow| {
                let id = read_uuid(&row.allocation_id, "journal.allocation_id")?;
                Ok((row.number, row.scope, id))
            };
            rows.into_iter().map(holder).collect()
        })
        .await
    }

    /// The newest number of at most `counters_max` counters of each series, with the code of its
    /// series; those of the greatest keys.
    pub async fn newest_numbers(
        self,
        counters_max: u32,
    ) -> Result<Vec<(String, String)>, LedgerError> {
        self.search(async |store| {
            let all: Vec<(i64, String)> =
                query_as("select series_id, code from series order by code")
                    .fetch_all(&store.reader)
                    .await?;
            let mut numbers = Vec::new();
            for (series_id, code) in all {
                // By the name of the counter: its index gives them in order.
                let newest: Vec<Option<String>> = query_scalar(
                    "select (select j.number from journal j where j.counter_id = c.counter_id
                     and j.number is not null order by j.first_value desc limit 1) from counter c
                     where c.series_id = $1 and c.serial <> 'as-written'
                     order by c.serial desc, c.key desc limit $2",
                )
                .bind(series_id)
                .bind(bounded(counters_max))
                .fetch_all(&store.reader)
                .await?;
                numbers.extend(newest.into_iter().flatten().map(|number| (code.clone(), number)));
            }
            Ok(numbers)
        })
        .await
    }

    /// Rejected records of counters that the ledger does not have, but for those acknowledged,
    /// newest first, at most `limit`.
    pub async fn nobodys(self, limit: u32) -> Result<Vec<Nobodys>, LedgerError> {
        self.search(async |store| {
            let rows: Vec<NobodysRow> = query_as(
                "select allocation_id, first_value, last_value, reason from journal_rejected r
                 where acknowledged_at_us is null and not exists
                 (select 1 from counter c where c.counter_id = r.counter_id)
                 order by journal_rejected_id desc limit $1",
            )
            .bind(bounded(limit))
            .fetch_all(&store.reader)
            .await?;
            let nobodys = |row: NobodysRow| {
                let allocation_id = read_uuid(&row.allocation_id, "allocation_id")?;
                Ok(Nobodys { allocation_id, span: row.run.span()?, reason: row.reason })
            };
            rows.into_iter().map(nobodys).collect()
        })
        .await
    }

    /// Marks an allocation's collisions and rejected records as explained; how many were not yet.
    /// The user and the reason are kept with them and among the events.
    pub async fn acknowledge(self, explained: &Acknowledgement) -> Result<u64, LedgerError> {
        self.write(async |store| {
            let Acknowledgement { allocation_id, user_id, reason } = explained;
            let now_us = store.clock.now_us();
            let mut tx = store.begin().await?;
            let mut count = 0;
            for statement in [
                "update collision set acknowledged_at_us = $2, acknowledged_by = $3,
                 acknowledged_reason = $4 where allocation_id = $1 and acknowledged_at_us is null",
                "update journal_rejected set acknowledged_at_us = $2, acknowledged_by = $3,
                 acknowledged_reason = $4 where allocation_id = $1 and acknowledged_at_us is null",
            ] {
                let done = query(statement)
                    .bind(allocation_id.as_bytes().as_slice())
                    .bind(now_us)
                    .bind(user_id)
                    .bind(reason)
                    .execute(&mut *tx)
                    .await?;
                count += done.rows_affected();
            }
            if count > 0 {
                let event = Event {
                    at_us: now_us,
                    kind: "acknowledged".into(),
                    partition: None,
                    epoch: None,
                    node_id: None,
                    detail: serde_json::json!({
                        "allocation_id": allocation_id, "by": user_id, "reason": reason,
                    }),
                };
                events::insert_event(&mut *tx, &event).await?;
            }
            commit_alone(store, tx).await?;
            Ok(count)
        })
        .await
    }

    /// Sizes of the ledger at the price of a look: exact up to ten thousand rows, beyond that the
    /// engine's estimate for the table.
    pub async fn sizes(self) -> Result<Totals, LedgerError> {
        self.read(async |reader| {
            let mut conn = reader.acquire().await?;
            let (journal, is_journal_estimated) = size(&mut *conn, "journal").await?;
            let (gaps, is_gap_estimated) = size(&mut *conn, "gap").await?;
            let (revisions, is_revision_estimated) = size(&mut *conn, "revision").await?;
            let (collisions, acknowledged, rejected) = events::explained(&mut *conn).await?;
            Ok(Totals {
                journal: unsigned((journal - revisions).max(0), "journal")?,
                revisions: unsigned(revisions, "revision")?,
                gaps: unsigned(gaps, "gaps")?,
                collisions,
                acknowledged,
                rejected,
                estimated: is_journal_estimated || is_gap_estimated || is_revision_estimated,
            })
        })
        .await
    }
}

async fn audit(
    store: &Store,
    counter_id: i64,
    (after, upto): (i64, i64),
    rows_max: u32,
) -> Result<Audited, LedgerError> {
    let mut tx = store.reader.begin().await?;
    tx.allow_long_search().await?;
    let rows_max = rows_max.clamp(1, PAGE_MAX);
    let (_, upto) = window(&mut *tx, counter_id, after, upto, rows_max).await?;
    let holes = search(&mut *tx, counter_id, after, upto, None, rows_max).await?;
    let overlaps = overlaps(&mut *tx, counter_id, (after, upto), rows_max).await?;
    tx.commit().await?;
    let span = |(first, last): (i64, i64)| {
        Ok::<_, LedgerError>(Span {
            first: unsigned(first, "hole")?,
            last: unsigned(last, "hole")?,
        })
    };
    Ok(Audited { upto, holes: holes.into_iter().map(span).collect::<Result<_, _>>()?, overlaps })
}

/// Values in (`after`, `upto`] at which a row begins that overlaps an earlier one.
async fn overlaps(
    conn: &mut Conn,
    counter_id: i64,
    (after, upto): (i64, i64),
    limit: u32,
) -> Result<Vec<Span>, LedgerError> {
    // Of the earlier rows, those that reach into the page count; of journal and gap register only
    // the last one can.
    let rows: Vec<RunRow> = query_as(
        "with span as (
           select first_value, last_value from journal_row where counter_id = $1
             and first_value <= $3 and first_value >= coalesce((select max(first_value)
             from journal where counter_id = $1 and first_value <= $2), $2)
           union all select first_value, last_value from gap where counter_id = $1
             and first_value <= $3 and first_value >= coalesce((select max(first_value)
             from gap where counter_id = $1 and first_value <= $2), $2)
           union all select first_value, last_value from journal_rejected
             where counter_id = $1 and first_value <= $3 and last_value > $2
           union all select first_value, last_value from reservation
             where counter_id = $1 and first_value <= $3 and last_value > $2),
         neighbour as (
           select first_value, last_value, max(last_value) over (order by first_value,
             last_value rows between unbounded preceding and 1 preceding) as before from span)
         select first_value, case when last_value < before then last_value else before end
           as last_value from neighbour where before >= first_value and first_value > $2
         order by 1 limit $4",
    )
    .bind(counter_id)
    .bind(after)
    .bind(upto)
    .bind(i64::from(limit))
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(RunRow::span).collect()
}

async fn written(
    store: &Store,
    after: ValueOf,
    upto_counter: i64,
    ranges_only: bool,
    limit: u32,
) -> Result<Vec<Written>, LedgerError> {
    let mut tx = store.reader.begin().await?;
    tx.allow_long_search().await?;
    let mut query = QueryBuilder::new(
        "select counter_id, first_value, last_value, step, allocation_id, number, scope, mask,
         outline, rest, context, series_id, version, type_code, project, path
         from journal_row where (counter_id, first_value) > (",
    );
    query.push_bind(after.counter_id).push(", ").push_bind(after.value);
    query.push(") and counter_id <= ").push_bind(upto_counter);
    if ranges_only {
        query.push(" and last_value > first_value and number is not null");
    }
    query.push(" order by counter_id, first_value limit ");
    query.push_bind(i64::from(limit.min(PAGE_MAX)));
    let rows = query.build().fetch_all(&mut *tx).await?;
    tx.commit().await?;
    rows.iter().map(written_of).collect()
}

/// The columns of a row of the journal.
#[derive(FromRow)]
struct WrittenRow {
    counter_id: i64,
    first_value: i64,
    last_value: i64,
    allocation_id: Vec<u8>,
    number: Option<String>,
    context: Option<String>,
}

/// The further columns of a number. Series, version and type are missing where the row points to a
/// missing kind.
#[derive(FromRow)]
struct TextRow {
    step: i64,
    scope: String,
    rest: Option<String>,
    series_id: Option<i64>,
    version: Option<i32>,
    type_code: Option<String>,
    project: Option<String>,
    path: String,
}

fn written_of(row: &Row) -> Result<Written, LedgerError> {
    let written: WrittenRow = row.decode()?;
    let WrittenRow { number, context, last_value, .. } = written;
    let of = ValueOf { counter_id: written.counter_id, value: written.first_value };
    let stands_for = StandsFor::of(number.as_deref(), context.as_deref(), last_value);
    let text = match number {
        None => None,
        Some(number) => {
            let text: TextRow = row.decode()?;
            let version = text.version.and_then(|version| u32::try_from(version).ok());
            Some(WrittenText {
                made_by: text.series_id.zip(version),
                taken: taken_of(&text, of, last_value),
                type_code: text.type_code.unwrap_or_default(),
                project: text.project,
                context,
                scope: text.scope,
                // This reads rows that others changed: an outline that is not the number's is no
                // mask.
                mask: mask_of(row, &number).unwrap_or_default(),
                is_as_written: text.path == IssuePath::AsWritten.name(),
                number,
            })
        }
    };
    let allocation_id = read_uuid(&written.allocation_id, "journal.allocation_id")?;
    Ok(Written { of, allocation_id, text, stands_for })
}

/// The values of a number's serials, where they are valid: this reads rows that others changed.
fn taken_of(text: &TextRow, of: ValueOf, last: i64) -> Option<Vec<TakenRange>> {
    let column = |value: i64| u64::try_from(value).ok();
    let range = Range { first: column(of.value)?, last: column(last)?, step: column(text.step)? };
    let mut taken = vec![TakenRange { counter_id: of.counter_id, range }];
    if let Some(rest) = &text.rest {
        let rest: Vec<FurtherSerial> = from_json(rest, "journal.rest").ok()?;
        taken.extend(rest.into_iter().map(|further| further.taken));
    }
    let is_sound = |taken: &TakenRange| {
        let Range { first, last, step } = taken.range;
        step >= 1 && first <= last && (last - first).is_multiple_of(step)
    };
    taken.iter().all(is_sound).then_some(taken)
}

/// The holder of a number.
#[derive(FromRow)]
struct HolderRow {
    number: String,
    scope: String,
    allocation_id: Vec<u8>,
}

/// A rejected record of no counter.
#[derive(FromRow)]
struct NobodysRow {
    allocation_id: Vec<u8>,
    #[sqlx(flatten)]
    run: RunRow,
    reason: String,
}

/// How many rows a table has, and whether that is only about.
async fn size(conn: &mut Conn, table: &'static str) -> Result<(i64, bool), LedgerError> {
    let mut query = QueryBuilder::new("select count(*) from (select 1 from ");
    query.push(table).push(" limit ").push_bind(COUNTED_MAX + 1).push(") as some_rows");
    let counted: i64 = query.build().scalar().fetch_one(&mut *conn).await?;
    if counted <= COUNTED_MAX {
        return Ok((counted, false));
    }
    Ok((conn.rows_about(table).await?.max(counted), true))
}
