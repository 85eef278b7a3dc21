//! Tables of a database, read in one read-only transaction: all of them in one snapshot. Every
//! column is read as text, so that no number loses a digit.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::{Stream, TryStreamExt as _};
use sqlx::postgres::PgConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ColumnIndex, ConnectOptions as _, Connection as _, Decode, Row, Type};

use super::TableRow;
use crate::features::import::ImportError;
use crate::ledger::postgres_options;

/// The action for each row.
type Each<'a> = dyn FnMut(TableRow) -> Result<(), ImportError> + Send + 'a;

/// Reads tables of a PostgreSQL database, as the search path of its user finds them.
pub(super) async fn postgres(
    url: &str,
    tables: &[&'static str],
    each: &mut Each<'_>,
) -> Result<BTreeSet<&'static str>, ImportError> {
    let options = postgres_options(url).map_err(|why| ImportError::form("source", why))?;
    let mut conn = PgConnection::connect_with(&options).await?;
    let mut tx = conn.begin_with("begin isolation level repeatable read read only").await?;
    let mut there = BTreeSet::new();
    for table in tables {
        let columns: Vec<String> = sqlx::query_scalar(
            "select attname::text from pg_attribute where attrelid = to_regclass($1) \
             and attnum > 0 and not attisdropped order by attnum",
        )
        .bind(table)
        .fetch_all(&mut *tx)
        .await?;
        if columns.is_empty() {
            continue;
        }
        // A materialized view holds rows as a table does.
        let is_stored: bool = sqlx::query_scalar(
            "select relkind in ('r', 'p', 'm') from pg_class where oid = to_regclass($1)",
        )
        .bind(table)
        .fetch_one(&mut *tx)
        .await?;
        must_be_stored(table, is_stored)?;
        there.insert(*table);
        let select = select(table, &columns, |name| format!("{name}::text"));
        hand_over(sqlx::query(select).fetch(&mut *tx), table, &columns, each).await?;
    }
    tx.rollback().await?;
    conn.close().await?;
    Ok(there)
}

/// Reads tables of a SQLite file.
pub(super) async fn sqlite(
    path: &str,
    tables: &[&'static str],
    each: &mut Each<'_>,
) -> Result<BTreeSet<&'static str>, ImportError> {
    let options = SqliteConnectOptions::new().filename(path).read_only(true);
    let mut conn: SqliteConnection = options.connect().await?;
    let mut tx = conn.begin().await?;
    let mut there = BTreeSet::new();
    for table in tables {
        let columns: Vec<String> =
            sqlx::query_scalar("select name from pragma_table_info($1) order by cid")
                .bind(table)
                .fetch_all(&mut *tx)
                .await?;
        if columns.is_empty() {
            continue;
        }
        // A virtual table is the work of a module, and a view that of its query.
        let stored: i64 = sqlx::query_scalar(
            "select count(*) from sqlite_schema where type = 'table' and rootpage > 0 \
             and lower(name) = lower($1)",
        )
        .bind(table)
        .fetch_one(&mut *tx)
        .await?;
        must_be_stored(table, stored == 1)?;
        there.insert(*table);
        let select = select(table, &columns, |name| {
            // Bytes need not be text.
            format!(
                "case typeof({name}) when 'blob' then hex({name}) else cast({name} as text) end"
            )
        });
        hand_over(sqlx::query(select).fetch(&mut *tx), table, &columns, each).await?;
    }
    tx.rollback().await?;
    conn.close().await?;
    Ok(there)
}

/// Refuses what is computed on reading: no code of the source is run, whatever its duration.
fn must_be_stored(table: &str, is_stored: bool) -> Result<(), ImportError> {
    let why = "it is no table that holds its rows, and reading it would run its query; copy its \
               rows into a table of that name";
    if is_stored { Ok(()) } else { Err(ImportError::form(table, why)) }
}

/// The statement that reads a table, each column as text in the engine's way.
fn select(
    table: &str,
    columns: &[String],
    as_text: impl Fn(String) -> String,
) -> AssertSqlSafe<String> {
    let texts: Vec<String> = columns.iter().map(|name| as_text(quote(name))).collect();
    AssertSqlSafe(format!("select {} from {table}", texts.join(", ")))
}

/// Passes on every row of a table, with the names of its columns in the form common to all sources.
async fn hand_over<R: Row>(
    mut rows: impl Stream<Item = Result<R, sqlx::Error>> + Unpin,
    table: &'static str,
    columns: &[String],
    each: &mut Each<'_>,
) -> Result<(), ImportError>
where
    usize: ColumnIndex<R>,
    for<'r> Option<String>: Decode<'r, R::Database> + Type<R::Database>,
{
    let columns: Arc<[String]> = columns.iter().map(|name| name.to_lowercase()).collect();
    let mut row_number = 0;
    while let Some(row) = rows.try_next().await? {
        row_number += 1;
        let values = (0..columns.len()).map(|place| row.try_get(place));
        let values = values.collect::<Result<_, _>>()?;
        each(TableRow { table, row: row_number, columns: Arc::clone(&columns), values })?;
    }
    Ok(())
}

/// A column's name as written in a statement: whatever it is, it remains a name.
fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
