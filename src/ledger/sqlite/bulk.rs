//! Statements over many rows: a loop over one prepared statement. There is no round trip to save,
//! and nobody else writes meanwhile.

use std::collections::{HashMap, HashSet};

use sqlx::{Encode, QueryBuilder, Row as _, Type};

use super::{Conn, Db, Row};
use crate::ledger::LedgerError;
use crate::ledger::batch::{Before, Earlier, Mark, Neighbour, Table, Wanted};
use crate::ledger::line::{Extent, Line};
use crate::node::NodeId;

/// Nothing to lock: the transaction is the only writer.
pub(super) async fn lock_names(_conn: &mut Conn, _sorted: &[i64]) -> Result<(), LedgerError> {
    Ok(())
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

/// For each extent the last row of its counter that begins at or before its end. Rows of one
/// counter do not overlap, so an extent overlaps a row exactly when it overlaps this one.
pub(super) async fn neighbours(
    conn: &mut Conn,
    table: Table,
    extents: &[Extent],
) -> Result<Vec<Option<Neighbour>>, LedgerError> {
    let statement = match table {
        Table::Journal => {
            "select first_value, last_value, allocation_id from journal \
             where counter_id = $1 and first_value <= $2 order by first_value desc limit 1"
        }
        Table::Gap => {
            "select first_value, last_value, null as allocation_id from gap \
             where counter_id = $1 and first_value <= $2 order by first_value desc limit 1"
        }
    };
    let mut found = Vec::with_capacity(extents.len());
    for extent in extents {
        let row = sqlx::query(statement)
            .bind(extent.counter_id)
            .bind(extent.last)
            .fetch_optional(&mut *conn)
            .await?;
        found.push(match row {
            None => None,
            Some(row) => Some(Neighbour {
                first: row.try_get("first_value")?,
                last: row.try_get("last_value")?,
                allocation_id: row.try_get("allocation_id")?,
            }),
        });
    }
    Ok(found)
}

/// For each key its newest journal row, with the key of the row's counter.
pub(super) async fn newest(
    conn: &mut Conn,
    wanted: Wanted,
    keys: &[Earlier<'_>],
) -> Result<Vec<Option<Row>>, LedgerError> {
    let mut found = Vec::with_capacity(keys.len());
    for key in keys {
        let query = match wanted {
            Wanted::CallerKey => sqlx::query(
                "select j.*, c.serial, c.key from journal j \
                 join counter c on c.counter_id = j.counter_id \
                 where j.idempotency_key = $1 and j.series_id = $2 and j.issued_at_us >= $3 \
                 and j.user_id = $4 order by j.issued_at_us desc, j.first_value desc limit 1",
            ),
            // A document is numbered once, whoever asks.
            Wanted::Document => sqlx::query(
                "select j.*, c.serial, c.key from journal j \
                 join counter c on c.counter_id = j.counter_id \
                 where j.document_id = $1 and j.series_id = $2 and j.issued_at_us >= $3 \
                 order by j.issued_at_us desc, j.first_value desc limit 1",
            ),
        };
        let query = query.bind(key.value).bind(key.series_id).bind(key.since_us);
        let query = match wanted {
            Wanted::CallerKey => query.bind(key.user_id),
            Wanted::Document => query,
        };
        found.push(query.fetch_optional(&mut *conn).await?);
    }
    Ok(found)
}

/// Inserts lines; returns the (counter, first value) of those that no unique key kept out.
pub(super) async fn insert_lines(
    conn: &mut Conn,
    lines: &[&Line<'_>],
    node: NodeId,
    now_us: i64,
) -> Result<HashSet<(i64, i64)>, LedgerError> {
    let mut inserted = HashSet::with_capacity(lines.len());
    for line in lines {
        let head = line.head.as_ref();
        let done = sqlx::query(
            "insert into journal (counter_id, first_value, last_value, step, allocation_id, \
             number, scope, mask, rest, context, document_id, idempotency_key, series_id, \
             version, type_code, project, document_date, user_id, ip_address, payload_digest, \
             issued_at_us, retry_count, path, partition_id, epoch, node_id, journaled_at_us) \
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, \
             $18, $19, $20, $21, $22, $23, $24, $25, $26, $27) on conflict do nothing",
        )
        .bind(line.extent.counter_id)
        .bind(line.extent.first)
        .bind(line.extent.last)
        .bind(line.step)
        .bind(line.allocation_id)
        .bind(head.map(|head| head.number))
        .bind(head.map(|head| head.scope))
        .bind(head.map(|head| head.mask))
        .bind(head.and_then(|head| head.rest.as_deref()))
        .bind(head.and_then(|head| head.context.as_deref()))
        .bind(head.and_then(|head| head.document_id))
        .bind(head.and_then(|head| head.idempotency_key))
        .bind(line.series_id)
        .bind(line.version)
        .bind(line.type_code)
        .bind(line.project)
        .bind(line.document_date)
        .bind(line.user_id)
        .bind(line.ip_address)
        .bind(line.payload_digest)
        .bind(line.issued_at_us)
        .bind(line.retry_count)
        .bind(line.path)
        .bind(line.partition_id)
        .bind(line.epoch)
        .bind(node.0.as_bytes().as_slice())
        .bind(now_us)
        .execute(&mut *conn)
        .await?;
        if done.rows_affected() == 1 {
            inserted.insert((line.extent.counter_id, line.extent.first));
        }
    }
    Ok(inserted)
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

/// Moves counters on by their marks; tells how they stood before. Unknown ones are left out.
pub(super) async fn advance(conn: &mut Conn, marks: &[Mark]) -> Result<Vec<Before>, LedgerError> {
    let mut query = QueryBuilder::<Db>::new(
        "select counter_id, epoch, start_value, taken, step from counter where counter_id",
    );
    push_among(&mut query, marks.iter().map(|mark| mark.counter_id).collect::<Vec<i64>>());
    let rows = query.build().persistent(ONE_TEXT).fetch_all(&mut *conn).await?;
    let mut found = HashMap::with_capacity(rows.len());
    for row in rows {
        let before = Before {
            counter_id: row.try_get("counter_id")?,
            epoch: row.try_get("epoch")?,
            start: row.try_get("start_value")?,
            taken: row.try_get("taken")?,
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
