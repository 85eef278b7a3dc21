//! Callers whose tables are in the ledger's database: they confirm a reservation in a transaction
//! that saves their document, or cancel it in one; which commits late, or not at all.
//!
//! The table is beside those of the ledger: what goes back goes back with it. So at the end each of
//! its rows must have its number, and no number two rows.

use std::time::Duration;

use numerator::clock::{Clock as _, SystemClock};
use sqlx::{Connection as _, PgConnection, Transaction};
use tokio::time::{sleep, timeout};

use super::ledger::{Ledger, SCHEMA};

/// How long a caller waits for the connection, for the statement, and for the commit.
const LIMIT: Duration = Duration::from_secs(6);

/// What a reservation that is not confirmed any more is refused with.
const REFUSED: &str = "NU003";

/// Saves a document with the number of its reservation.
const CONFIRM: &str = "insert into own_document (reservation_id, document_id, number) \
    select $1, $2, confirm($1::uuid, $3) returning number";

/// Gives a reservation up.
const CANCEL: &str = "select cancel($1::uuid, 'the order is withdrawn')";

/// How a transaction ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Transacted {
    /// It committed.
    Committed {
        /// The number that it was told; empty where it cancelled.
        number: String,
        /// When it was told to commit, in microseconds of UTC.
        sent_us: i64,
        /// When it said that it had, likewise.
        at_us: i64,
    },
    /// It was told to commit, and did not say whether it had.
    Unknown,
    /// It rolled back, or never came to its commit.
    RolledBack,
    /// The reservation was not to be confirmed, or not to be cancelled.
    Refused {
        /// Why.
        why: String,
        /// When, in microseconds of UTC.
        at_us: i64,
    },
}

/// What a transaction does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    /// Whether it names the document, as a worker that may come again does; one that cancels names
    /// none.
    pub(super) names: bool,
    /// How long it stays open once it has confirmed or cancelled.
    pub(super) open_for: Duration,
    /// Whether it commits, or rolls back.
    pub(super) commits: bool,
}

/// The table of these callers, and how they reach it.
#[derive(Clone, Debug)]
pub(super) struct OwnTable {
    url: String,
}

/// A row of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnRow {
    /// The reservation.
    pub(super) id: String,
    /// The document.
    pub(super) document: String,
    /// The number that it was saved with.
    pub(super) number: String,
}

impl OwnTable {
    /// Makes it; `None` in a ledger that is a file, where there are no functions.
    pub(super) fn make(ledger: &Ledger, url: &str) -> Option<Self> {
        let Ledger::Postgres(postgres) = ledger else { return None };
        postgres.sql(&format!(
            "create table {SCHEMA}.own_document (reservation_id text not null, \
             document_id text not null, number text not null)"
        ));
        Some(OwnTable { url: url.to_owned() })
    }

    /// Confirms a reservation for a document in a transaction.
    pub(super) async fn confirm(&self, id: &str, document: &str, course: Course) -> Transacted {
        let named = course.names.then_some(document);
        self.run(Act::Confirm { id, document, named }, course).await
    }

    /// Cancels a reservation in a transaction.
    pub(super) async fn cancel(&self, id: &str, course: Course) -> Transacted {
        self.run(Act::Cancel { id }, course).await
    }

    async fn run(&self, act: Act<'_>, course: Course) -> Transacted {
        let Course { open_for, commits, .. } = course;
        let connect = Box::pin(PgConnection::connect(&self.url));
        let Ok(Ok(mut connection)) = timeout(LIMIT, connect).await else {
            return Transacted::RolledBack;
        };
        let (transaction, number) = match timeout(LIMIT, begin(&mut connection, act)).await {
            Ok(Ok(begun)) => begun,
            Ok(Err(error)) => return refusal(&error),
            Err(_) => return Transacted::RolledBack,
        };
        sleep(open_for).await;
        if !commits {
            // Whatever is answered: it was not told to commit.
            let _ = timeout(LIMIT, transaction.rollback()).await;
            return Transacted::RolledBack;
        }
        let sent_us = SystemClock.now_us();
        match timeout(LIMIT, transaction.commit()).await {
            Ok(Ok(())) => Transacted::Committed { number, sent_us, at_us: SystemClock.now_us() },
            _ => Transacted::Unknown,
        }
    }

    /// Its rows.
    pub(super) fn rows(ledger: &Ledger) -> Vec<OwnRow> {
        let mut rows = Vec::new();
        if matches!(ledger, Ledger::Postgres(_)) {
            ledger.rows("select reservation_id, document_id, number from {}.own_document", |row| {
                let [id, document, number] = [row[0], row[1], row[2]].map(str::to_owned);
                rows.push(OwnRow { id, document, number });
            });
        }
        rows
    }
}

/// What a transaction is for.
#[derive(Clone, Copy, Debug)]
enum Act<'a> {
    /// Saves the document with the number of its reservation.
    Confirm { id: &'a str, document: &'a str, named: Option<&'a str> },
    /// Gives the reservation up.
    Cancel { id: &'a str },
}

/// Does it, and leaves the transaction open.
async fn begin<'c>(
    connection: &'c mut PgConnection,
    act: Act<'_>,
) -> Result<(Transaction<'c, sqlx::Postgres>, String), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let number = match act {
        Act::Confirm { id, document, named } => {
            let query = sqlx::query_scalar(CONFIRM).bind(id).bind(document).bind(named);
            query.fetch_one(&mut *transaction).await?
        }
        Act::Cancel { id } => {
            sqlx::query(CANCEL).bind(id).execute(&mut *transaction).await?;
            String::new()
        }
    };
    Ok((transaction, number))
}

/// An error before the commit: nothing was confirmed.
fn refusal(error: &sqlx::Error) -> Transacted {
    match error.as_database_error() {
        Some(told) if told.code().as_deref() == Some(REFUSED) => {
            Transacted::Refused { why: told.message().to_owned(), at_us: SystemClock.now_us() }
        }
        _ => Transacted::RolledBack,
    }
}
