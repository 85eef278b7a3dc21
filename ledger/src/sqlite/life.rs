//! How far a SQLite file has come, and transactions that begin only where it has come as far as it
//! ever confirmed (F25).
//!
//! Each writing transaction raises the generation; after its commit the mark beside the file says
//! so. Under the write lock the file may not stand below its mark.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use numerator_base::node::NodeId;
use sqlx::Row as _;

use super::mark::Come;
use super::{Conn, Db, Store};
use crate::LedgerError;
use crate::columns::read_uuid;
use crate::incarnation::{Incarnation, Shown};

/// Why nothing is begun.
const FORGOTTEN: &str = "it is not the incarnation that was agreed on";

/// A transaction that raised the generation, where the ledger has not gone back.
pub(super) struct Transaction {
    inner: sqlx::Transaction<'static, Db>,
    store: Store,
    come: Option<Come>,
}

impl Transaction {
    /// Commits, and raises the mark before anybody hears of it.
    pub(super) async fn commit(self) -> Result<(), sqlx::Error> {
        self.inner.commit().await?;
        if let Some(Err(error)) = self.come.map(|come| self.store.mark.raise(&come)) {
            // Committed it is: only whether an older copy would be noticed is in doubt.
            tracing::error!(%error, "the mark beside the ledger cannot be written");
        }
        Ok(())
    }

    /// Takes back everything, the generation too.
    pub(super) async fn rollback(self) -> Result<(), sqlx::Error> {
        self.inner.rollback().await
    }
}

impl Deref for Transaction {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &self.inner
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut self.inner
    }
}

impl Store {
    /// Begins a transaction in what was agreed on last.
    pub(super) async fn begin(&self) -> Result<Transaction, LedgerError> {
        self.begin_in(self.witness.required(None)?).await
    }

    /// Begins a transaction of a node, in the incarnation that it registered in.
    pub(super) async fn begin_as(&self, node: NodeId) -> Result<Transaction, LedgerError> {
        self.begin_in(self.witness.required(Some(node))?).await
    }

    /// There is one lock for all: a shorter wait would let nobody else go first.
    pub(super) async fn begin_brief(
        &self,
        node: Option<NodeId>,
    ) -> Result<Transaction, LedgerError> {
        self.begin_in(self.witness.required(node)?).await
    }

    /// There is one lock for all, and whoever writes holds it: its wait is the connection's own.
    pub(super) async fn begin_impatient(
        &self,
        node: NodeId,
        _lock_wait: Duration,
    ) -> Result<Transaction, LedgerError> {
        self.begin_as(node).await
    }

    /// Begins a transaction that reads, in what was agreed on last.
    pub(super) async fn begin_reading(
        &self,
    ) -> Result<sqlx::Transaction<'static, Db>, LedgerError> {
        let required = self.witness.required(None)?;
        // Before the first statement: what is committed meanwhile may be marked already.
        let marked = self.marked()?;
        let mut tx = self.reader.begin().await?;
        let come = come(&mut tx).await?;
        let reaches = |come: &Come| marked.is_some_and(|marked| come.reaches(&marked));
        match come {
            Some(come) if come.incarnation == required && reaches(&come) => Ok(tx),
            _ => Err(LedgerError::WentBack(FORGOTTEN.into())),
        }
    }

    /// The same: who only asks waits for nobody.
    pub(super) async fn begin_asking(&self) -> Result<sqlx::Transaction<'static, Db>, LedgerError> {
        self.begin_reading().await
    }

    /// The same however far the ledger has come.
    pub(super) async fn begin_reading_unfenced(
        &self,
    ) -> Result<sqlx::Transaction<'static, Db>, LedgerError> {
        Ok(self.reader.begin().await?)
    }

    /// Begins a transaction however far the ledger has come: for what must be written all the
    /// same, and for agreeing on an incarnation. One that went back does not catch up by it.
    pub(super) async fn begin_unfenced(&self) -> Result<Transaction, LedgerError> {
        let mut inner = self.writer.begin_with("begin immediate").await?;
        let marked = self.marked()?;
        let reaches = |come: &Come| marked.is_some_and(|marked| come.reaches(&marked));
        let come = come(&mut inner).await?.filter(reaches);
        if come.is_some() {
            sqlx::query("update incarnation set generation = generation + 1")
                .execute(&mut *inner)
                .await?;
        }
        let come = come.map(|come| Come { generation: come.generation + 1, ..come });
        Ok(Transaction { inner, store: self.clone(), come })
    }

    async fn begin_in(&self, required: Incarnation) -> Result<Transaction, LedgerError> {
        let tx = self.begin_unfenced().await?;
        match tx.come {
            Some(come) if come.incarnation == required => Ok(tx),
            _ => Err(LedgerError::WentBack(FORGOTTEN.into())),
        }
    }

    fn marked(&self) -> Result<Option<Come>, LedgerError> {
        let unread = |error: std::io::Error| {
            let cause = format!("{}: {error}", self.mark.path().display());
            LedgerError::Unreachable { cause, maybe_written: false }
        };
        self.mark.read().map_err(unread)
    }
}

async fn come(conn: &mut Conn) -> Result<Option<Come>, LedgerError> {
    let row = sqlx::query("select number, nonce, generation from incarnation")
        .fetch_optional(conn)
        .await
        .map_err(LedgerError::at_begin)?;
    let come = |row: super::Row| -> Result<Come, LedgerError> {
        let nonce = read_uuid(row.try_get("nonce")?, "incarnation.nonce")?;
        let incarnation = Incarnation { number: row.try_get("number")?, nonce };
        Ok(Come { incarnation, generation: row.try_get("generation")? })
    };
    row.map(come).transpose()
}

/// What the ledger shows; `None` where nothing was agreed on yet.
pub(super) async fn read(store: &Store, conn: &mut Conn) -> Result<Option<Shown>, LedgerError> {
    let marked = store.marked()?;
    let shown = |come: Come| {
        let is_present = marked.is_some_and(|marked| come.reaches(&marked));
        Shown { incarnation: come.incarnation, is_present }
    };
    Ok(come(conn).await?.map(shown))
}

/// Keeps others from agreeing on anything until the transaction ends: it is the only writer.
#[expect(clippy::unused_async, reason = "other engines ask the server")]
pub(super) async fn lock(_conn: &mut Conn) -> Result<(), LedgerError> {
    Ok(())
}

/// Agrees on an incarnation. The generation goes on from where the file stands.
pub(super) async fn write(
    tx: &mut Transaction,
    incarnation: Incarnation,
) -> Result<(), LedgerError> {
    sqlx::query(
        "insert into incarnation (only_row, number, nonce, generation) values (1, $1, $2, 1) \
         on conflict (only_row) do update set number = excluded.number, nonce = excluded.nonce",
    )
    .bind(incarnation.number)
    .bind(incarnation.nonce.as_bytes().as_slice())
    .execute(&mut **tx)
    .await?;
    tx.come = come(tx).await?;
    Ok(())
}
