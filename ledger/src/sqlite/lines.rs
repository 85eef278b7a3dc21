//! Lines into the journal: a statement for their batches, one for as many lines as a statement
//! takes. It looks the ids of what they have in common up itself.

use numerator_base::node::NodeId;
use sqlx::error::{BoxDynError, ErrorKind};
use sqlx::sqlite::{SqliteArguments, SqliteConnection};
use sqlx::{Arguments as _, AssertSqlSafe};

use super::bulk::values;
use crate::LedgerError;
use crate::line::Line;
use crate::sharing::Shared;

/// Columns of a line.
const COLUMNS: usize = 25;

/// Inserts no more lines than a statement takes; how many no unique key kept out.
pub(super) async fn insert(
    conn: &mut SqliteConnection,
    lines: &[&Line<'_>],
    node: NodeId,
    now_us: i64,
) -> Result<u64, LedgerError> {
    let shared = Shared::of(lines);
    let batches = insert_batches(&mut *conn, &shared, node, now_us).await?;
    match insert_into(&mut *conn, lines, &shared, &batches).await {
        // An id may be missing.
        Err(error) if is_missing(&error) => {
            intern(&mut *conn, &shared).await?;
            Ok(insert_into(conn, lines, &shared, &batches).await?)
        }
        inserted => Ok(inserted?),
    }
}

fn is_missing(error: &sqlx::Error) -> bool {
    let of = |kind| matches!(kind, ErrorKind::NotNullViolation | ErrorKind::CheckViolation);
    error.as_database_error().is_some_and(|error| of(error.kind()))
}

/// The ids of new batches, in their order.
async fn insert_batches(
    conn: &mut SqliteConnection,
    shared: &Shared<'_>,
    node: NodeId,
    now_us: i64,
) -> Result<Vec<i64>, LedgerError> {
    let mut ids = Vec::new();
    for (partition_id, epoch) in shared.batches.column(|batch| (batch.partition_id, batch.epoch)) {
        let id = sqlx::query_scalar(
            "insert into journal_batch (partition_id, epoch, node_id, journaled_at_us) \
             values ($1, $2, $3, $4) returning batch_id",
        )
        .bind(partition_id)
        .bind(epoch)
        .bind(node.0.as_bytes().as_slice())
        .bind(now_us)
        .fetch_one(&mut *conn)
        .await?;
        ids.push(id);
    }
    Ok(ids)
}

/// Gives ids to what has none yet.
async fn intern(conn: &mut SqliteConnection, shared: &Shared<'_>) -> Result<(), LedgerError> {
    for name in shared.names.column(|name| name) {
        sqlx::query(
            "insert into journal_name (name) select $1 \
             where not exists (select 1 from journal_name where name = $1)",
        )
        .bind(name)
        .execute(&mut *conn)
        .await?;
    }
    for kind in shared.kinds.column(|kind| kind) {
        sqlx::query(
            "insert into journal_kind (series_id, version, type_code, project) \
             select $1, $2, $3, $4 where not exists (select 1 from journal_kind \
             where series_id = $1 and version = $2 and type_code = $3 and project is $4)",
        )
        .bind(kind.series_id)
        .bind(kind.version)
        .bind(kind.type_code)
        .bind(kind.project)
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
}

async fn insert_into(
    conn: &mut SqliteConnection,
    lines: &[&Line<'_>],
    shared: &Shared<'_>,
    batches: &[i64],
) -> Result<u64, sqlx::Error> {
    let rows = values(COLUMNS, lines.len());
    // SQLite names the columns of values so.
    let statement = format!(
        "insert into journal (counter_id, first_value, last_value, step, allocation_id, number, \
           scope, mask, outline, rest, context, document_id, idempotency_key, document_day, \
           digest, issued_at_us, retry_count, path, batch_id, kind_id, user_name_id, \
           address_name_id) \
         select column1, column2, column3, column4, column5, column6, column7, column8, column9, \
           column10, column11, column12, column13, column14, column15, column16, column17, \
           column18, column19, \
           (select kind_id from journal_kind k where k.series_id = column20 \
             and k.version = column21 and k.type_code = column22 and k.project is column23), \
           (select name_id from journal_name where name = column24), \
           coalesce((select name_id from journal_name where name = column25), \
             case when column25 is not null then 0 end) \
         from ({rows}) as line where column1 is not null \
         on conflict do nothing"
    );
    let mut bound = SqliteArguments::default();
    bound.reserve(lines.len() * COLUMNS, 0);
    for (line, places) in lines.iter().zip(&shared.places) {
        bind(&mut bound, line, batches[places.batch]).map_err(sqlx::Error::Encode)?;
    }
    Ok(sqlx::query_with(AssertSqlSafe(statement), bound).execute(conn).await?.rows_affected())
}

fn bind(bound: &mut SqliteArguments, line: &Line<'_>, batch_id: i64) -> Result<(), BoxDynError> {
    let head = line.head.as_ref();
    bound.add(line.extent.counter_id)?;
    bound.add(line.extent.first)?;
    bound.add(line.further_last())?;
    bound.add(line.further_step())?;
    bound.add(line.allocation_id)?;
    bound.add(head.map(|head| head.number))?;
    bound.add(head.map(|head| head.scope))?;
    bound.add(head.and_then(|head| head.form.columns().0))?;
    bound.add(head.and_then(|head| head.form.columns().1))?;
    bound.add(head.and_then(|head| head.rest.as_deref()))?;
    bound.add(head.and_then(|head| head.context.as_deref()))?;
    bound.add(head.and_then(|head| head.document_id))?;
    bound.add(head.and_then(|head| head.idempotency_key))?;
    bound.add(line.document_date)?;
    bound.add(line.digest.as_deref())?;
    bound.add(line.issued_at_us)?;
    bound.add(line.retries())?;
    bound.add(line.other_path())?;
    bound.add(batch_id)?;
    bound.add(line.series_id)?;
    bound.add(line.version)?;
    bound.add(line.type_code)?;
    bound.add(line.project)?;
    bound.add(line.user_id)?;
    bound.add(line.ip_address)
}
