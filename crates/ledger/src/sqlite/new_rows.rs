//! Rows into the journal: a statement for their batches, one for as many rows as a statement
//! takes. It looks up the ids of their common parts itself.

use sqlx::error::{BoxDynError, ErrorKind};
use sqlx::sqlite::{SqliteArguments, SqliteConnection};
use sqlx::{Arguments as _, AssertSqlSafe};

use super::bulk::values;
use crate::LedgerError;
use crate::journal_columns::{OWN, OWN_NAMES, own_columns};
use crate::new_row::NewRow;
use crate::seal::Writing;
use crate::sharing::Shared;

/// What is bound for a row: its own columns, its batch, and the texts of what it shares.
const COLUMNS: usize = OWN.len() + 7;

/// Inserts no more rows than a statement takes, with their batches; those that no unique key kept
/// out.
pub(super) async fn insert<'l>(
    conn: &mut SqliteConnection,
    new_rows: &[&'l NewRow<'l>],
    writing: &Writing,
) -> Result<Vec<&'l NewRow<'l>>, LedgerError> {
    let shared = Shared::of(new_rows);
    // The transaction is the only writer.
    let first: i64 = sqlx::query_scalar("select coalesce(max(batch_id), 0) + 1 from journal_batch")
        .fetch_one(&mut *conn)
        .await?;
    let inserted = match insert_into(&mut *conn, new_rows, &shared, first).await {
        // An id may be missing.
        Err(error) if is_missing(&error) => {
            intern(&mut *conn, &shared).await?;
            insert_into(&mut *conn, new_rows, &shared, first).await?
        }
        inserted => inserted?,
    };
    let mut written = new_rows.to_vec();
    if inserted != new_rows.len() as u64 {
        written.clear();
        for new_row in new_rows {
            if stands(&mut *conn, new_row, first).await? {
                written.push(new_row);
            }
        }
    }
    insert_batches(conn, new_rows, &written, first, writing).await?;
    Ok(written)
}

/// Whether a row is in one of the new batches.
async fn stands(
    conn: &mut SqliteConnection,
    new_row: &NewRow<'_>,
    first_batch: i64,
) -> Result<bool, LedgerError> {
    let row = sqlx::query(
        "select 1 from journal where counter_id = $1 and first_value = $2 and batch_id >= $3",
    )
    .bind(new_row.value_range.counter_id)
    .bind(new_row.value_range.first)
    .bind(first_batch)
    .fetch_optional(conn)
    .await?;
    Ok(row.is_some())
}

fn is_missing(error: &sqlx::Error) -> bool {
    let of = |kind| matches!(kind, ErrorKind::NotNullViolation | ErrorKind::CheckViolation);
    error.as_database_error().is_some_and(|error| of(error.kind()))
}

/// Writes the batches of rows, sealed with those that were written.
async fn insert_batches(
    conn: &mut SqliteConnection,
    new_rows: &[&NewRow<'_>],
    written: &[&NewRow<'_>],
    first: i64,
    writing: &Writing,
) -> Result<(), LedgerError> {
    let of = Shared::of(new_rows).batches;
    let shared = Shared::of(written);
    let sealed = shared.seal(written, writing);
    for (batch, sealed) in shared.batches.column(|batch| batch).into_iter().zip(sealed) {
        let place = of.column(|one| one).iter().position(|one| *one == batch);
        let place = place.expect("a batch of some of the lines is one of all of them");
        sqlx::query(
            "insert into journal_batch (batch_id, partition_id, epoch, node_id, journaled_at_us,
               line_count, seal, proof)
             values ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(id_of(first, place))
        .bind(batch.partition_id)
        .bind(batch.epoch)
        .bind(writing.node.0.as_bytes().as_slice())
        .bind(writing.now_us)
        .bind(sealed.rows)
        .bind(sealed.seal.as_slice())
        .bind(sealed.proof.map(|proof| proof.to_vec()))
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
}

/// The id of a new batch.
fn id_of(first: i64, place: usize) -> i64 {
    first + i64::try_from(place).expect("a statement has few batches")
}

/// Gives ids to new values.
async fn intern(conn: &mut SqliteConnection, shared: &Shared<'_>) -> Result<(), LedgerError> {
    for name in shared.names.column(|name| name) {
        sqlx::query(
            "insert into journal_name (name) select $1
             where not exists (select 1 from journal_name where name = $1)",
        )
        .bind(name)
        .execute(&mut *conn)
        .await?;
    }
    for kind in shared.kinds.column(|kind| kind) {
        sqlx::query(
            "insert into journal_kind (series_id, version, type_code, project)
             select $1, $2, $3, $4 where not exists (select 1 from journal_kind
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
    new_rows: &[&NewRow<'_>],
    shared: &Shared<'_>,
    first_batch: i64,
) -> Result<u64, sqlx::Error> {
    let rows = values(COLUMNS, new_rows.len());
    let own: String = (1..=OWN.len()).map(|place| format!("column{place}, ")).collect();
    // SQLite names the columns of values so.
    let further = |place: usize| format!("column{}", OWN.len() + place);
    let statement = format!(
        "insert into journal ({OWN_NAMES}batch_id, kind_id, user_name_id, address_name_id)
         select {own}{batch},
           (select kind_id from journal_kind k where k.series_id = {series}
             and k.version = {version} and k.type_code = {type_code} and k.project is {project}),
           (select name_id from journal_name where name = {user}),
           coalesce((select name_id from journal_name where name = {address}),
             case when {address} is not null then 0 end)
         from ({rows}) as line where column1 is not null
         on conflict do nothing",
        batch = further(1),
        series = further(2),
        version = further(3),
        type_code = further(4),
        project = further(5),
        user = further(6),
        address = further(7),
    );
    let mut bound = SqliteArguments::default();
    bound.reserve(new_rows.len() * COLUMNS, 0);
    for (new_row, places) in new_rows.iter().zip(&shared.places) {
        bind(&mut bound, new_row, id_of(first_batch, places.batch)).map_err(sqlx::Error::Encode)?;
    }
    Ok(sqlx::query_with(AssertSqlSafe(statement), bound).execute(conn).await?.rows_affected())
}

macro_rules! bound_columns {
    ($($name:ident $bound_as:literal $cast:literal ($read_as:ty) $said:expr;)*) => {
        /// Binds the own columns of a row.
        fn bind_own<'l>(
            bound: &mut SqliteArguments,
            new_row: &'l NewRow<'l>,
        ) -> Result<(), BoxDynError> {
            fn said<'l, T>(new_row: &'l NewRow<'l>, said: impl Fn(&'l NewRow<'l>) -> T) -> T {
                said(new_row)
            }
            $(bound.add(said(new_row, $said))?;)*
            Ok(())
        }
    };
}
own_columns!(bound_columns);

fn bind(
    bound: &mut SqliteArguments,
    new_row: &NewRow<'_>,
    batch_id: i64,
) -> Result<(), BoxDynError> {
    bind_own(bound, new_row)?;
    bound.add(batch_id)?;
    bound.add(new_row.series_id)?;
    bound.add(new_row.version)?;
    bound.add(new_row.type_code)?;
    bound.add(new_row.project)?;
    bound.add(new_row.user_id)?;
    bound.add(new_row.ip_address)
}
