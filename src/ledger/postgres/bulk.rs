//! Statements over many rows: one round trip each, by `unnest`, whatever the size of the batch.

use std::collections::HashSet;

use sqlx::{Encode, QueryBuilder, Row as _, Type};

use super::{Conn, Db, Row};
use crate::ledger::LedgerError;
use crate::ledger::batch::{Before, Earlier, Mark, Neighbour, Table, Wanted};
use crate::ledger::line::{Extent, Head, Line};
use crate::node::NodeId;

/// Takes the transaction's locks on names, in rising order, so that two nodes cannot number one
/// document at the same time. Waits as long as the session does: whoever holds a name is at work.
pub(super) async fn lock_names(conn: &mut Conn, sorted: &[i64]) -> Result<(), LedgerError> {
    if sorted.is_empty() {
        return Ok(());
    }
    // One message of the simple protocol, so that both statements take one round trip.
    let names: Vec<String> = sorted.iter().map(i64::to_string).collect();
    let statements = format!(
        "set local lock_timeout to default; select pg_advisory_xact_lock(name) \
         from (select name from unnest('{{{}}}'::bigint[]) as n (name) order by name) as sorted",
        names.join(",")
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(statements)).execute(conn).await?;
    Ok(())
}

/// Whether a statement with [`push_among`] has one text, worth to be kept prepared.
pub(super) const ONE_TEXT: bool = true;

/// Ends a condition on a column: its value is among these. One text however many there are, so that
/// the statement is planned once.
pub(super) fn push_among<T>(query: &mut QueryBuilder<Db>, values: Vec<T>)
where
    Vec<T>: for<'q> Encode<'q, Db> + Type<Db> + Send + 'static,
{
    query.push(" = any (").push_bind(values).push(")");
}

/// For each extent the last row of its counter that begins at or before its end. Rows of one
/// counter do not overlap, so an extent overlaps a row exactly when it overlaps this one.
pub(super) async fn neighbours(
    conn: &mut Conn,
    table: Table,
    extents: &[Extent],
) -> Result<Vec<Option<Neighbour>>, LedgerError> {
    let statement = match table {
        Table::Journal => {
            "select e.place, n.first_value, n.last_value, n.allocation_id \
             from unnest($1::bigint[], $2::bigint[]) \
             with ordinality as e (counter_id, last, place) \
             cross join lateral (select first_value, last_value, allocation_id from journal j \
             where j.counter_id = e.counter_id and j.first_value <= e.last \
             order by first_value desc limit 1) as n"
        }
        Table::Gap => {
            "select e.place, n.first_value, n.last_value, null::bytea as allocation_id \
             from unnest($1::bigint[], $2::bigint[]) \
             with ordinality as e (counter_id, last, place) \
             cross join lateral (select first_value, last_value from gap g \
             where g.counter_id = e.counter_id and g.first_value <= e.last \
             order by first_value desc limit 1) as n"
        }
    };
    let counters: Vec<i64> = extents.iter().map(|extent| extent.counter_id).collect();
    let lasts: Vec<i64> = extents.iter().map(|extent| extent.last).collect();
    let rows = sqlx::query(statement).bind(counters).bind(lasts).fetch_all(conn).await?;
    let neighbour = |row: Row| {
        Ok(Neighbour {
            first: row.try_get("first_value")?,
            last: row.try_get("last_value")?,
            allocation_id: row.try_get("allocation_id")?,
        })
    };
    let placed = in_place(rows, extents.len())?;
    placed.into_iter().map(|row| row.map(neighbour).transpose()).collect()
}

/// For each key its newest journal row, with the key of the row's counter.
pub(super) async fn newest(
    conn: &mut Conn,
    wanted: Wanted,
    keys: &[Earlier<'_>],
) -> Result<Vec<Option<Row>>, LedgerError> {
    let statement = match wanted {
        Wanted::CallerKey => {
            "select q.place, j.*, c.serial, c.key \
             from unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[]) \
             with ordinality as q (series_id, user_id, value, since_us, place) \
             cross join lateral (select * from journal where idempotency_key = q.value \
             and user_id = q.user_id and series_id = q.series_id and issued_at_us >= q.since_us \
             order by issued_at_us desc, first_value desc limit 1) as j \
             join counter c on c.counter_id = j.counter_id"
        }
        // A document is numbered once, whoever asks.
        Wanted::Document => {
            "select q.place, j.*, c.serial, c.key \
             from unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[]) \
             with ordinality as q (series_id, user_id, value, since_us, place) \
             cross join lateral (select * from journal where document_id = q.value \
             and series_id = q.series_id and issued_at_us >= q.since_us \
             order by issued_at_us desc, first_value desc limit 1) as j \
             join counter c on c.counter_id = j.counter_id"
        }
    };
    let rows = sqlx::query(statement)
        .bind(keys.iter().map(|key| key.series_id).collect::<Vec<_>>())
        .bind(keys.iter().map(|key| key.user_id).collect::<Vec<_>>())
        .bind(keys.iter().map(|key| key.value).collect::<Vec<_>>())
        .bind(keys.iter().map(|key| key.since_us).collect::<Vec<_>>())
        .fetch_all(conn)
        .await?;
    in_place(rows, keys.len())
}

/// Rows put where their column `place`, an ordinality, says.
fn in_place(rows: Vec<Row>, count: usize) -> Result<Vec<Option<Row>>, LedgerError> {
    let mut placed: Vec<Option<Row>> = (0..count).map(|_| None).collect();
    for row in rows {
        let place: i64 = row.try_get("place")?;
        let slot = usize::try_from(place - 1).ok().and_then(|index| placed.get_mut(index));
        *slot.expect("an ordinality within the batch") = Some(row);
    }
    Ok(placed)
}

/// Inserts lines; returns the (counter, first value) of those that no unique key kept out.
pub(super) async fn insert_lines(
    conn: &mut Conn,
    lines: &[&Line<'_>],
    node: NodeId,
    now_us: i64,
) -> Result<HashSet<(i64, i64)>, LedgerError> {
    fn column<'l, T>(lines: &'l [&Line<'_>], of: impl Fn(&'l Line<'_>) -> T) -> Vec<T> {
        lines.iter().map(|line| of(line)).collect()
    }
    fn head<'l, T>(lines: &'l [&Line<'_>], of: impl Fn(&'l Head<'_>) -> T) -> Vec<Option<T>> {
        lines.iter().map(|line| line.head.as_ref().map(&of)).collect()
    }
    let flat = |of: fn(&Head<'_>) -> Option<String>| -> Vec<Option<String>> {
        lines.iter().map(|line| line.head.as_ref().and_then(of)).collect()
    };
    let rows = sqlx::query(
        "insert into journal (counter_id, first_value, last_value, step, allocation_id, number, \
         scope, mask, rest, context, document_id, idempotency_key, series_id, version, type_code, \
         project, document_date, user_id, ip_address, payload_digest, issued_at_us, retry_count, \
         path, partition_id, epoch, node_id, journaled_at_us) \
         select *, $26::bytea, $27::bigint from unnest($1::bigint[], $2::bigint[], $3::bigint[], \
         $4::bigint[], $5::bytea[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], \
         $11::text[], $12::text[], $13::bigint[], $14::integer[], $15::text[], $16::text[], \
         $17::text[], $18::text[], $19::text[], $20::text[], $21::bigint[], $22::integer[], \
         $23::text[], $24::integer[], $25::bigint[]) \
         on conflict do nothing returning counter_id, first_value",
    )
    .bind(column(lines, |line| line.extent.counter_id))
    .bind(column(lines, |line| line.extent.first))
    .bind(column(lines, |line| line.extent.last))
    .bind(column(lines, |line| line.step))
    .bind(column(lines, |line| line.allocation_id))
    .bind(head(lines, |head| head.number))
    .bind(head(lines, |head| head.scope))
    .bind(head(lines, |head| head.mask))
    .bind(flat(|head| head.rest.clone()))
    .bind(flat(|head| head.context.clone()))
    .bind(flat(|head| head.document_id.map(str::to_owned)))
    .bind(flat(|head| head.idempotency_key.map(str::to_owned)))
    .bind(column(lines, |line| line.series_id))
    .bind(column(lines, |line| line.version))
    .bind(column(lines, |line| line.type_code))
    .bind(column(lines, |line| line.project))
    .bind(column(lines, |line| line.document_date))
    .bind(column(lines, |line| line.user_id))
    .bind(column(lines, |line| line.ip_address))
    .bind(column(lines, |line| line.payload_digest))
    .bind(column(lines, |line| line.issued_at_us))
    .bind(column(lines, |line| line.retry_count))
    .bind(column(lines, |line| line.path))
    .bind(column(lines, |line| line.partition_id))
    .bind(column(lines, |line| line.epoch))
    .bind(node.0.as_bytes().as_slice())
    .bind(now_us)
    .fetch_all(conn)
    .await?;
    rows.iter().map(|row| Ok((row.try_get("counter_id")?, row.try_get("first_value")?))).collect()
}

/// What an insert with ids of its own says before its values.
pub(super) const OWN_IDS: &str = "overriding system value ";

/// Ids for so many counters, which nobody else gets.
pub(super) async fn reserve_counters(
    conn: &mut Conn,
    count: usize,
) -> Result<Vec<i64>, LedgerError> {
    let ids = sqlx::query_scalar(
        "select nextval(pg_get_serial_sequence('counter', 'counter_id')) \
         from generate_series(1, $1)",
    )
    .bind(i64::try_from(count).unwrap_or(i64::MAX))
    .fetch_all(conn)
    .await?;
    Ok(ids)
}

/// Locks the counters of marks, in the order of their names, and moves them on, in one statement;
/// tells how they stood before. Unknown ones are left out.
pub(super) async fn advance(conn: &mut Conn, marks: &[Mark]) -> Result<Vec<Before>, LedgerError> {
    let column = |of: fn(&Mark) -> i64| -> Vec<i64> { marks.iter().map(of).collect() };
    // Values are set from the row itself: it is its newest version by then, whoever held it.
    let rows = sqlx::query(
        "with held as materialized ( \
           select c.counter_id, c.epoch, c.start_value, c.taken, c.step, m.last, \
             case when m.epoch = c.epoch and m.step = c.step and m.first > c.start_value \
               then m.count else 0 end as count \
           from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], \
             $6::bigint[]) as m (counter_id, last, first, epoch, step, count) \
           join counter c on c.counter_id = m.counter_id \
           order by c.series_id, c.serial, c.key for update of c) \
         update counter c set taken = greatest(c.taken, h.last), \
           ceiling = greatest(c.ceiling, h.last), journaled = c.journaled + h.count \
         from held h where c.counter_id = h.counter_id \
         returning h.counter_id, h.epoch, h.start_value, h.taken, h.step",
    )
    .bind(column(|mark| mark.counter_id))
    .bind(column(|mark| mark.last))
    .bind(column(|mark| mark.first))
    .bind(column(|mark| mark.epoch))
    .bind(column(|mark| mark.step))
    .bind(column(|mark| mark.count))
    .fetch_all(conn)
    .await?;
    rows.iter().map(before).collect()
}

fn before(row: &Row) -> Result<Before, LedgerError> {
    Ok(Before {
        counter_id: row.try_get("counter_id")?,
        epoch: row.try_get("epoch")?,
        start: row.try_get("start_value")?,
        taken: row.try_get("taken")?,
        step: row.try_get("step")?,
    })
}
