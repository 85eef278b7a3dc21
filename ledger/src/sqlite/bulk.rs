//! Statements over many rows: one for as many as a statement takes. Each is a way to another thread
//! and back, which costs more than most of them do there.

use std::collections::{HashMap, HashSet};

use numerator_base::node::NodeId;
use sqlx::error::BoxDynError;
use sqlx::sqlite::SqliteArguments;
use sqlx::{Arguments as _, AssertSqlSafe, Encode, QueryBuilder, Row as _, Type};

use super::{Conn, Db, Row, Store};
use crate::LedgerError;
use crate::batch::{
    Before, Earlier, Mark, Moves, Neighbour, Table, WantedKey, entry_columns, line_columns,
    nothing_above, open_in_its_epoch,
};
use crate::line::{Extent, Line};

/// Most rows of a statement, a power of two.
const ROWS_MAX: usize = 128;

/// `values` for so many rows, rounded up to a power of two: few texts, so that each stays prepared.
/// Rows beyond those that are bound hold nothing but null; conditions on the first column leave
/// them out.
fn values(columns: usize, rows: usize) -> String {
    let row = format!("({})", vec!["?"; columns].join(","));
    format!("values {}", vec![row; rows.next_power_of_two()].join(","))
}

/// No counter is held by itself: there is one lock for all.
pub(super) async fn held_counters(_store: &Store, _ids: &[i64]) -> Result<Vec<i64>, LedgerError> {
    Ok(Vec::new())
}

/// Whether a statement with [`push_among`] has one text, worth to be kept prepared: here each
/// number of values makes another.
pub(super) const ONE_TEXT: bool = false;

/// Ends a condition on a column: its value is among these.
pub(super) fn push_among<T>(query: &mut QueryBuilder<Db>, values: Vec<T>)
where
    T: for<'q> Encode<'q, Db> + Type<Db> + Send + 'static,
{
    query.push(" in (");
    let mut list = query.separated(", ");
    for value in values {
        list.push_bind(value);
    }
    query.push(")");
}

/// Where a row belongs, by its column `place`.
fn slot<'f, T>(found: &'f mut [T], row: &Row) -> Result<&'f mut T, LedgerError> {
    let place: i64 = row.try_get("place")?;
    let slot = usize::try_from(place).ok().and_then(|place| found.get_mut(place));
    Ok(slot.expect("a place of those that were asked for"))
}

/// For each extent the last row of its counter that begins at or before its end. Rows of one
/// counter do not overlap, so an extent overlaps a row exactly when it overlaps this one.
pub(super) async fn neighbours(
    conn: &mut Conn,
    table: Table,
    extents: &[Extent],
) -> Result<Vec<Option<Neighbour>>, LedgerError> {
    let (table, allocation_id) = match table {
        Table::Journal => ("journal", "t.allocation_id"),
        Table::Gap => ("gap", "null"),
    };
    let mut found: Vec<Option<Neighbour>> = vec![None; extents.len()];
    for (found, part) in found.chunks_mut(ROWS_MAX).zip(extents.chunks(ROWS_MAX)) {
        let asked = values(3, part.len());
        let statement = format!(
            "with asked (place, counter_id, last) as ({asked}) \
             select a.place, t.first_value, t.last_value, {allocation_id} as allocation_id \
             from asked a cross join {table} t on t.rowid = (select n.rowid from {table} n \
             where n.counter_id = a.counter_id and n.first_value <= a.last \
             order by n.first_value desc limit 1)"
        );
        let mut query = sqlx::query(AssertSqlSafe(statement));
        for (place, extent) in (0_i64..).zip(part) {
            query = query.bind(place).bind(extent.counter_id).bind(extent.last);
        }
        for row in query.fetch_all(&mut *conn).await? {
            *slot(found, &row)? = Some(Neighbour {
                first: row.try_get("first_value")?,
                last: row.try_get("last_value")?,
                allocation_id: row.try_get("allocation_id")?,
            });
        }
    }
    Ok(found)
}

/// For each key its newest journal row, with the key of the row's counter.
pub(super) async fn newest(
    conn: &mut Conn,
    wanted: WantedKey,
    keys: &[Earlier<'_>],
) -> Result<Vec<Option<Row>>, LedgerError> {
    let key = match wanted {
        WantedKey::CallerKey => "n.idempotency_key = a.value and n.user_id = a.user_id",
        // A document is numbered once, whoever asks.
        WantedKey::Document => "n.document_id = a.value",
    };
    let mut found: Vec<Option<Row>> = (0..keys.len()).map(|_| None).collect();
    for (found, part) in found.chunks_mut(ROWS_MAX).zip(keys.chunks(ROWS_MAX)) {
        let asked = values(5, part.len());
        let statement = format!(
            "with asked (place, series_id, user_id, value, since_us) as ({asked}) \
             select a.place, {} from asked a \
             cross join journal j on j.rowid = (select n.rowid from journal n \
             where {key} and n.series_id = a.series_id and n.issued_at_us >= a.since_us \
             order by n.issued_at_us desc, n.first_value desc limit 1) \
             cross join counter c on c.counter_id = j.counter_id",
            entry_columns!()
        );
        let mut query = sqlx::query(AssertSqlSafe(statement));
        for (place, key) in (0_i64..).zip(part) {
            let Earlier { series_id, user_id, value, since_us } = *key;
            query = query.bind(place).bind(series_id).bind(user_id).bind(value).bind(since_us);
        }
        for row in query.fetch_all(&mut *conn).await? {
            let slot = slot(found, &row)?;
            *slot = Some(row);
        }
    }
    Ok(found)
}

/// Columns of a line that are the line's own.
const LINE_COLUMNS: usize = 25;

/// Inserts lines; returns the (counter, first value) of those that no unique key kept out.
pub(super) async fn insert_lines(
    conn: &mut Conn,
    lines: &[&Line<'_>],
    node: NodeId,
    now_us: i64,
) -> Result<HashSet<(i64, i64)>, LedgerError> {
    let mut inserted = HashSet::with_capacity(lines.len());
    for part in lines.chunks(ROWS_MAX) {
        let is_whole = insert(conn, part, node, now_us).await? == part.len() as u64;
        for line in part {
            let Extent { counter_id, first, .. } = line.extent;
            if is_whole || stands(conn, line).await? {
                inserted.insert((counter_id, first));
            }
        }
    }
    Ok(inserted)
}

/// Whether a line stands in the journal.
async fn stands(conn: &mut Conn, line: &Line<'_>) -> Result<bool, LedgerError> {
    let row = sqlx::query(
        "select 1 from journal where counter_id = $1 and first_value = $2 and allocation_id = $3",
    )
    .bind(line.extent.counter_id)
    .bind(line.extent.first)
    .bind(line.allocation_id)
    .fetch_optional(conn)
    .await?;
    Ok(row.is_some())
}

/// Inserts no more lines than a statement takes; how many no unique key kept out.
async fn insert(
    conn: &mut Conn,
    lines: &[&Line<'_>],
    node: NodeId,
    now_us: i64,
) -> Result<u64, LedgerError> {
    let rows = values(LINE_COLUMNS, lines.len());
    // The names that SQLite gives to the columns of values.
    let own = (1..=LINE_COLUMNS).map(|column| format!("line.column{column}")).collect::<Vec<_>>();
    let own = own.join(", ");
    let statement = format!(
        "insert into journal ({}, node_id, journaled_at_us) \
         select {own}, ?, ? from ({rows}) as line where line.column1 is not null \
         on conflict do nothing",
        line_columns!()
    );
    let mut bound = SqliteArguments::default();
    bound.reserve(2 + lines.len() * LINE_COLUMNS, 0);
    bind_lines(&mut bound, lines, node, now_us).map_err(sqlx::Error::Encode)?;
    Ok(sqlx::query_with(AssertSqlSafe(statement), bound).execute(conn).await?.rows_affected())
}

fn bind_lines(
    bound: &mut SqliteArguments,
    lines: &[&Line<'_>],
    node: NodeId,
    now_us: i64,
) -> Result<(), BoxDynError> {
    bound.add(node.0.as_bytes().as_slice())?;
    bound.add(now_us)?;
    lines.iter().try_for_each(|line| bind_line(bound, line))
}

/// Binds the columns that are a line's own.
fn bind_line(bound: &mut SqliteArguments, line: &Line<'_>) -> Result<(), BoxDynError> {
    let head = line.head.as_ref();
    bound.add(line.extent.counter_id)?;
    bound.add(line.extent.first)?;
    bound.add(line.extent.last)?;
    bound.add(line.step)?;
    bound.add(line.allocation_id)?;
    bound.add(head.map(|head| head.number))?;
    bound.add(head.map(|head| head.scope))?;
    bound.add(head.map(|head| head.mask))?;
    bound.add(head.and_then(|head| head.rest.as_deref()))?;
    bound.add(head.and_then(|head| head.context.as_deref()))?;
    bound.add(head.and_then(|head| head.document_id))?;
    bound.add(head.and_then(|head| head.idempotency_key))?;
    bound.add(line.series_id)?;
    bound.add(line.version)?;
    bound.add(line.type_code)?;
    bound.add(line.project)?;
    bound.add(line.document_date)?;
    bound.add(line.user_id)?;
    bound.add(line.ip_address)?;
    bound.add(line.payload_digest)?;
    bound.add(line.issued_at_us)?;
    bound.add(line.retry_count)?;
    bound.add(line.path)?;
    bound.add(line.partition_id)?;
    bound.add(line.epoch)
}

/// Inserts lines. False where a unique key kept one out: then nothing of this may be committed.
pub(super) async fn insert_all(
    conn: &mut Conn,
    lines: &[&Line<'_>],
    node: NodeId,
    now_us: i64,
) -> Result<bool, LedgerError> {
    for part in lines.chunks(ROWS_MAX) {
        if insert(conn, part, node, now_us).await? != part.len() as u64 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Moves counters and inserts the lines that this accounts for. False where a counter must not
/// move, the ledger forgot the node, or a unique key kept a line out: then nothing of this may be
/// committed.
pub(super) async fn move_and_insert(
    conn: &mut Conn,
    moves: &Moves,
    lines: &[&Line<'_>],
    node: NodeId,
    now_us: i64,
) -> Result<bool, LedgerError> {
    for part in moves.counters.chunks(ROWS_MAX) {
        let rows = values(3, part.len());
        let statement = format!(
            "update counter as c set taken = m.column2, ceiling = m.column2, \
             journaled = journaled + m.column3 from ({rows}) as m \
             where c.counter_id = m.column1 and partition_id = ? and epoch = ? and (? is null \
             or exists (select 1 from node where node_id = ? and beat >= ? and batches >= ?)) \
             and {} and {}",
            open_in_its_epoch!(),
            nothing_above!()
        );
        let mut query = sqlx::query(AssertSqlSafe(statement));
        for counter in part {
            query = query.bind(counter.counter_id).bind(counter.value).bind(counter.journaled);
        }
        // What follows the rows stands behind those that stay empty.
        for _ in part.len()..part.len().next_power_of_two() {
            query = query.bind(None::<i64>).bind(None::<i64>).bind(None::<i64>);
        }
        let beat = moves.confirmed.map(|marks| marks.beat);
        let batches = moves.confirmed.map(|marks| marks.batches);
        let query = query.bind(moves.partition_id).bind(moves.epoch);
        let query = query.bind(beat).bind(node.0.as_bytes().as_slice()).bind(beat).bind(batches);
        if query.execute(&mut *conn).await?.rows_affected() != part.len() as u64 {
            return Ok(false);
        }
    }
    insert_all(conn, lines, node, now_us).await
}

/// About how many rows a table has: its rows are numbered as they come, and seldom go.
pub(super) async fn rows_about(conn: &mut Conn, table: &'static str) -> Result<i64, LedgerError> {
    let mut query = QueryBuilder::<Db>::new("select coalesce(max(rowid), 0) from ");
    query.push(table);
    Ok(query.build_query_scalar().fetch_one(conn).await?)
}

/// What an insert with ids of its own says before its values: nothing.
pub(super) const OWN_IDS: &str = "";

/// Ids for so many counters, which nobody else gets: the transaction is the only writer.
pub(super) async fn reserve_counters(
    conn: &mut Conn,
    count: usize,
) -> Result<Vec<i64>, LedgerError> {
    let highest: i64 = sqlx::query_scalar("select coalesce(max(counter_id), 0) from counter")
        .fetch_one(conn)
        .await?;
    Ok((highest + 1..).take(count).collect())
}

/// Moves counters on by their marks; returns how they stood before. Unknown ones are left out.
pub(super) async fn advance(conn: &mut Conn, marks: &[Mark]) -> Result<Vec<Before>, LedgerError> {
    let mut query = QueryBuilder::<Db>::new(
        "select counter_id, partition_id, epoch, start_value, taken, ceiling, step from counter \
         where counter_id",
    );
    push_among(&mut query, marks.iter().map(|mark| mark.counter_id).collect::<Vec<i64>>());
    let rows = query.build().persistent(ONE_TEXT).fetch_all(&mut *conn).await?;
    let mut found = HashMap::with_capacity(rows.len());
    for row in rows {
        let before = Before {
            counter_id: row.try_get("counter_id")?,
            partition_id: row.try_get("partition_id")?,
            epoch: row.try_get("epoch")?,
            start: row.try_get("start_value")?,
            taken: row.try_get("taken")?,
            ceiling: row.try_get("ceiling")?,
            step: row.try_get("step")?,
        };
        found.insert(before.counter_id, before);
    }
    for mark in marks {
        let Some(before) = found.get(&mark.counter_id) else { continue };
        sqlx::query(
            "update counter set taken = max(taken, $2), ceiling = max(ceiling, $2), \
             journaled = journaled + $3 where counter_id = $1",
        )
        .bind(mark.counter_id)
        .bind(mark.last)
        .bind(mark.counted(before))
        .execute(&mut *conn)
        .await?;
    }
    Ok(found.into_values().collect())
}
