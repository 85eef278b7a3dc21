//! INCR, and the rows of many numbers written in one statement after their answers.
//!
//! The least that a service which remembers every number can do. It loses what it has not written
//! when it dies, has no retry of a request, and starts again at 1 when Redis is lost.

use std::time::Duration;

use sqlx::PgPool;
use tokio::sync::mpsc;

use super::stores::{Stores, TakeError};
use super::{Wanted, number};

/// Most rows of one statement.
const ROWS_MAX: usize = 1_000;

/// Most rows that wait; a caller with one more waits too.
const WAITING_MAX: usize = 16_384;

/// How long the first row of a statement waits for others, as in the service.
const GATHERED: Duration = Duration::from_millis(20);

/// A row that is still to be written: its purpose and the value.
type Row = (Wanted, u64);

/// The queue of rows.
pub(super) type Writer = mpsc::Sender<Row>;

/// Writes rows on connections to PostgreSQL, as long as there are any.
pub(super) fn start_writer(pool: PgPool) -> Writer {
    let (rows, waiting) = mpsc::channel(WAITING_MAX);
    tokio::spawn(write(pool, waiting));
    rows
}

/// Takes a value; its row is written later.
pub(super) async fn take(stores: &Stores, wanted: &Wanted) -> Result<u64, TakeError> {
    let value = stores.command("INCR", vec![wanted.counter.clone()]).await?;
    let sent = stores.writer.send((wanted.clone(), value)).await;
    sent.expect("the writer lives as long as the process");
    Ok(value)
}

async fn write(pool: PgPool, mut waiting: mpsc::Receiver<Row>) {
    let mut rows = Vec::with_capacity(ROWS_MAX);
    while waiting.recv_many(&mut rows, ROWS_MAX).await > 0 {
        if rows.len() < ROWS_MAX {
            tokio::time::sleep(GATHERED).await;
            waiting.recv_many(&mut rows, ROWS_MAX).await;
        }
        insert(&pool, &rows).await.expect("PostgreSQL takes the rows");
        rows.clear();
    }
}

async fn insert(pool: &PgPool, rows: &[Row]) -> Result<(), sqlx::Error> {
    let column = |of: fn(&Wanted) -> &String| -> Vec<&str> {
        rows.iter().map(|(wanted, _)| &**of(wanted)).collect()
    };
    let values: Vec<i64> = rows.iter().map(|(_, value)| value.cast_signed()).collect();
    let numbers: Vec<String> =
        rows.iter().map(|(wanted, value)| number(&wanted.prefix, *value)).collect();
    sqlx::query(
        "insert into journal (counter, value, number, document_id, type_code, user_id, ip_address) \
         select l.counter, l.value, l.number, l.document_id, l.type_code, 'local', '127.0.0.1' \
         from unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[]) \
         as l (counter, value, number, document_id, type_code)",
    )
    .bind(column(|wanted| &wanted.counter))
    .bind(values)
    .bind(numbers)
    .bind(column(|wanted| &wanted.document_id))
    .bind(column(|wanted| &wanted.type_code))
    .execute(pool)
    .await?;
    Ok(())
}
