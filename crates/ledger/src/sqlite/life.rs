//! How far a SQLite file has come, and transactions that begin only where it has come as far as it
//! ever confirmed (F25).
//!
//! Each writing transaction raises the generation; after its commit the mark next to the file
//! records it. Under the write lock the file may not be below its mark.

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use numerator_runtime::owned::remedy;
use sqlx::{Error, Sqlite, SqlitePool};
use sqlx_macros::FromRow;

use super::mark::{Come, MarkFile};
use crate::columns::read_uuid;
use crate::connections::Connections;
use crate::dialect::{Acquired, Begin, Conn, Driver, Ends, Pool, Transaction};
use crate::incarnation::{Incarnation, Shown};
use crate::query::{query_as, query_scalar};
use crate::{Lack, LedgerCheckup, LedgerError};

/// Why nothing is begun.
const FORGOTTEN: &str = "it is not the incarnation that was agreed on";

/// Attempts to begin two transactions with the same view.
const TOGETHER_ATTEMPTS: u32 = 10;

/// The connections to the file, and the files next to it.
pub(super) struct SqlitePools {
    /// Where the file is.
    pub(super) ledger: PathBuf,
    pub(super) writer: SqlitePool,
    pub(super) reader: SqlitePool,
    pub(super) mark: Arc<MarkFile>,
}

/// A transaction that raised the generation, where it writes and the ledger has not gone back.
struct Counted {
    inner: sqlx::Transaction<'static, Sqlite>,
    mark: Arc<MarkFile>,
    come: Option<Come>,
}

impl Deref for Counted {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &*self.inner
    }
}

impl DerefMut for Counted {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut *self.inner
    }
}

#[async_trait]
impl Ends for Counted {
    /// Raises the mark before the commit is reported.
    async fn commit(self: Box<Self>) -> Result<(), Error> {
        self.inner.commit().await?;
        if let Some(Err(error)) = self.come.map(|come| self.mark.raise(&come)) {
            // Committed it is: only whether an older copy would be noticed is in doubt.
            tracing::error!(%error, "the mark beside the ledger cannot be written");
        }
        Ok(())
    }

    /// The generation too.
    async fn rollback(self: Box<Self>) -> Result<(), Error> {
        self.inner.rollback().await
    }

    /// The generation continues from the file's own.
    async fn agree(&mut self, on: Incarnation) -> Result<(), LedgerError> {
        sqlx::query(
            "insert into incarnation (only_row, number, nonce, generation) values (1, $1, $2, 1)
             on conflict (only_row) do update set number = excluded.number, nonce = excluded.nonce",
        )
        .bind(on.number)
        .bind(on.nonce.as_bytes().as_slice())
        .execute(&mut *self.inner)
        .await?;
        // A mark of an earlier one is of this line if it claims no more than this.
        sqlx::query(
            "update incarnation_line
             set replaced_generation = (select generation from incarnation)
             where replaced_generation is null and nonce <> $1",
        )
        .bind(on.nonce.as_bytes().as_slice())
        .execute(&mut *self.inner)
        .await?;
        self.come = come(&mut *self.inner).await?;
        Ok(())
    }
}

#[async_trait]
impl Ends for Driver<sqlx::Transaction<'static, Sqlite>> {
    async fn commit(self: Box<Self>) -> Result<(), Error> {
        self.0.commit().await
    }

    async fn rollback(self: Box<Self>) -> Result<(), Error> {
        self.0.rollback().await
    }

    async fn agree(&mut self, _on: Incarnation) -> Result<(), LedgerError> {
        Err(LedgerError::Refused("who reads agrees on nothing".into()))
    }
}

#[async_trait]
impl Pool for SqlitePools {
    fn connections(&self) -> Connections {
        let [writer, reader] = [&self.writer, &self.reader].map(|pool| {
            Connections::of_pool(pool.size(), pool.num_idle(), pool.options().get_max_connections())
        });
        Connections {
            used: writer.used + reader.used,
            idle: writer.idle + reader.idle,
            max: writer.max + reader.max,
        }
    }

    fn fails_over(&self) -> bool {
        false
    }

    /// The write-ahead log otherwise keeps its largest size while any process has the ledger open.
    async fn tidy(&self) {
        // Waits for readers and writers no longer than a statement would.
        let checkpoint = sqlx::query("pragma wal_checkpoint(truncate)").execute(&self.writer).await;
        if let Err(error) = checkpoint {
            tracing::debug!(%error, "the write-ahead log keeps its size");
        }
    }

    async fn acquire(&self) -> Result<Acquired, Error> {
        Ok(Acquired(Box::new(Driver(self.reader.acquire().await?))))
    }

    /// There is one lock for all writers, and its wait is the connection's own: a shorter one would
    /// let no other go first. Reads wait for nothing.
    async fn begin(
        &self,
        required: Option<Incarnation>,
        begin: Begin,
    ) -> Result<Transaction, LedgerError> {
        match begin {
            Begin::Writing | Begin::Brief | Begin::LockLimited(_) => {
                self.begin_to_write(required).await
            }
            // Every one that reads is a snapshot.
            Begin::Reading | Begin::Snapshot | Begin::Asking => self.begin_to_read(required).await,
        }
    }

    /// A writer raises the generation: two transactions that show the same one have the same view.
    async fn begin_together(&self) -> Result<Vec<Transaction>, LedgerError> {
        let mut first = self.begin(None, Begin::Snapshot).await?;
        let mut shown = come(&mut *first).await?.map(|come| come.generation);
        if self.reader.options().get_max_connections() < 2 {
            return Ok(vec![first]);
        }
        for _ in 0..TOGETHER_ATTEMPTS {
            let mut second = self.begin(None, Begin::Snapshot).await?;
            let also = come(&mut *second).await?.map(|come| come.generation);
            if also == shown {
                return Ok(vec![first, second]);
            }
            // A write happened between the two.
            first.rollback().await?;
            (first, shown) = (second, also);
        }
        Ok(vec![first])
    }

    async fn shown(&self, conn: &mut Conn) -> Result<Option<Shown>, LedgerError> {
        let marked = self.marked()?;
        let Some(come) = come(conn).await? else { return Ok(None) };
        let is_present = reaches(conn, &come, marked).await?;
        let marked = marked.map(|marked| marked.incarnation);
        Ok(Some(Shown { incarnation: come.incarnation, is_present, marked }))
    }

    /// No counter is held separately: there is one lock for all.
    async fn held_counters(
        &self,
        _required: Incarnation,
        _ids: &[i64],
    ) -> Result<Vec<i64>, LedgerError> {
        Ok(Vec::new())
    }

    async fn check_up(&self) -> Result<LedgerCheckup, LedgerError> {
        super::check_up::check_up(&self.writer).await
    }

    async fn lacks(&self) -> Result<Vec<Lack>, LedgerError> {
        super::fitness::missing(&self.writer).await
    }
}

impl SqlitePools {
    async fn begin_to_read(
        &self,
        required: Option<Incarnation>,
    ) -> Result<Transaction, LedgerError> {
        let Some(required) = required else {
            return Ok(Transaction(Box::new(Driver(self.reader.begin().await?))));
        };
        // Before the first statement: what is committed meanwhile may be marked already.
        let marked = self.marked()?;
        let mut tx = self.reader.begin().await?;
        match come(&mut *tx).await? {
            Some(come)
                if come.incarnation == required && reaches(&mut *tx, &come, marked).await? =>
            {
                Ok(Transaction(Box::new(Driver(tx))))
            }
            _ => Err(LedgerError::WentBack(FORGOTTEN.into())),
        }
    }

    /// Each write raises the generation only of a ledger that did not go back: an unfenced write to
    /// one that did leaves it behind.
    async fn begin_to_write(
        &self,
        required: Option<Incarnation>,
    ) -> Result<Transaction, LedgerError> {
        let mut inner = self.writer.begin_with("begin immediate").await?;
        let marked = self.marked()?;
        let mut come = come(&mut *inner).await?;
        if let Some(found) = &come
            && !reaches(&mut *inner, found, marked).await?
        {
            come = None;
        }
        if come.is_some() {
            sqlx::query("update incarnation set generation = generation + 1")
                .execute(&mut *inner)
                .await?;
        }
        let come = come.map(|come| Come { generation: come.generation + 1, ..come });
        let tx = Counted { inner, mark: Arc::clone(&self.mark), come };
        match required {
            None => Ok(Transaction(Box::new(tx))),
            Some(required) if come.is_some_and(|come| come.incarnation == required) => {
                Ok(Transaction(Box::new(tx)))
            }
            Some(_) => Err(LedgerError::WentBack(FORGOTTEN.into())),
        }
    }

    fn marked(&self) -> Result<Option<Come>, LedgerError> {
        let unread = |error: std::io::Error| {
            let path = self.mark.path();
            let cause = format!("{}: {error}{}", path.display(), remedy(&error, path));
            LedgerError::Unreachable { cause, maybe_written: false }
        };
        self.mark.read().map_err(unread)
    }
}

/// Whether nothing of the mark is missing in a file that has come so far: it is of the same
/// incarnation and no further, or of one that this file's descends from, and claims no more than
/// the file had when that one was replaced (F36).
async fn reaches(conn: &mut Conn, come: &Come, marked: Option<Come>) -> Result<bool, LedgerError> {
    let Some(marked) = marked else { return Ok(false) };
    if come.incarnation == marked.incarnation {
        return Ok(come.generation >= marked.generation);
    }
    let Incarnation { number, nonce } = marked.incarnation;
    let replaced: Option<Option<i64>> = query_scalar(
        "select replaced_generation from incarnation_line where nonce = $1 and number = $2",
    )
    .bind(nonce.as_bytes().as_slice())
    .bind(number)
    .fetch_optional(conn)
    .await?;
    Ok(replaced.flatten().is_some_and(|generation| generation >= marked.generation))
}

async fn come(conn: &mut Conn) -> Result<Option<Come>, LedgerError> {
    let row: Option<ComeRow> = query_as("select number, nonce, generation from incarnation")
        .fetch_optional(conn)
        .await
        .map_err(LedgerError::at_begin)?;
    let Some(ComeRow { number, nonce, generation }) = row else { return Ok(None) };
    let incarnation = Incarnation { number, nonce: read_uuid(&nonce, "incarnation.nonce")? };
    Ok(Some(Come { incarnation, generation }))
}

/// The columns of [`Come`].
#[derive(FromRow)]
struct ComeRow {
    number: i64,
    nonce: Vec<u8>,
    generation: i64,
}
