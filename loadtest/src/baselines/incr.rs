//! INCR: alone, with a row before the answer, and with the rows of many numbers in one statement
//! behind their answers.
//!
//! The last is the least that a service can do which remembers every number. It forgets what it has
//! not written when it dies, knows no retry of a request, and starts again at 1 when Redis is lost.

use std::time::Duration;

use sqlx::PgPool;
use tokio::sync::mpsc;

use super::stores::{Stores, TakeError};
use super::{Wanted, number};

/// Most rows of one statement.
const ROWS_MAX: usize = 1_000;

/// Most rows that wait; who has one more waits too.
const WAITING_MAX: usize = 16_384;

/// How long the first row of a statement waits for others, as in the service.
const GATHERED: Duration = Duration::from_millis(20);

/// A row that is still to be written.
#[derive(Debug)]
struct Row {
    counter: String,
    value: i64,
    number: String,
    document_id: String,
    type_code: String,
}

/// Where rows go.
#[derive(Clone, Debug)]
pub(super) struct Writer(mpsc::Sender<Row>);

impl Writer {
    /// A writer on connections to PostgreSQL; it writes for as long as there are any.
    pub(super) fn start(pool: PgPool) -> Self {
        let (rows, waiting) = mpsc::channel(WAITING_MAX);
        tokio::spawn(write(pool, waiting));
        Writer(rows)
    }
}

/// Takes a value that nobody remembers. The client sends what waits in one go.
pub(super) async fn take(stores: &Stores, wanted: &Wanted<'_>) -> Result<u64, TakeError> {
    stores.command("INCR", vec![wanted.counter.to_owned()]).await
}

/// Takes a value and writes its row before it is answered. Whatever dies between the two leaves a
/// hole.
pub(super) async fn take_and_insert(
    stores: &Stores,
    wanted: &Wanted<'_>,
) -> Result<u64, TakeError> {
    let value = take(stores, wanted).await?;
    let insert = sqlx::query(
        "insert into journal (counter, value, number, document_id, type_code, user_id, \
         ip_address) values ($1, $5, $2 || lpad($5::text, 12, '0'), $3, $4, 'local', '127.0.0.1')",
    );
    let insert = insert.bind(wanted.counter).bind(wanted.prefix).bind(wanted.document_id);
    let insert = insert.bind(wanted.type_code).bind(value.cast_signed());
    insert.execute(&stores.pool).await?;
    Ok(value)
}

/// Takes a value; its row is written later.
pub(super) async fn take_and_leave(stores: &Stores, wanted: &Wanted<'_>) -> Result<u64, TakeError> {
    let value = take(stores, wanted).await?;
    let row = Row {
        counter: wanted.counter.to_owned(),
        value: value.cast_signed(),
        number: number(wanted.prefix, value),
        document_id: wanted.document_id.to_owned(),
        type_code: wanted.type_code.to_owned(),
    };
    stores.writer.0.send(row).await.expect("the writer lives as long as the process");
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
    let column =
        |of: fn(&Row) -> &String| -> Vec<&str> { rows.iter().map(|row| &**of(row)).collect() };
    let values: Vec<i64> = rows.iter().map(|row| row.value).collect();
    sqlx::query(
        "insert into journal (counter, value, number, document_id, type_code, user_id, ip_address) \
         select l.counter, l.value, l.number, l.document_id, l.type_code, 'local', '127.0.0.1' \
         from unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[]) \
         as l (counter, value, number, document_id, type_code)",
    )
    .bind(column(|row| &row.counter))
    .bind(values)
    .bind(column(|row| &row.number))
    .bind(column(|row| &row.document_id))
    .bind(column(|row| &row.type_code))
    .execute(pool)
    .await?;
    Ok(())
}
