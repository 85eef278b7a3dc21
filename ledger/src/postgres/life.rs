//! Which life a PostgreSQL database lives, and transactions that are of one life alone (F25).
//!
//! A server's timeline and the row's own transaction are compared as each transaction begins, in
//! the message that begins it: true from the first moment of a promotion, also for a process that
//! lost nothing itself. No transaction lives through a change of them: a standby takes no writes,
//! and a dump is put back by transactions of its own.

use std::time::Duration;

use numerator_base::node::NodeId;
use sqlx::{AssertSqlSafe, Row as _};

use super::{BRIEF_WAIT, Conn, Store, Transaction};
use crate::LedgerError;
use crate::columns::read_uuid;
use crate::incarnation::{Incarnation, Shown};

impl Store {
    /// Begins a transaction in what was agreed on last.
    pub(super) async fn begin(&self) -> Result<Transaction, LedgerError> {
        self.begin_in(self.witness.required(None)?, "begin").await
    }

    /// Begins a transaction of a node, in the incarnation that it registered in.
    pub(super) async fn begin_as(&self, node: NodeId) -> Result<Transaction, LedgerError> {
        self.begin_in(self.witness.required(Some(node))?, "begin").await
    }

    /// The same, of a node or of none, for one that waits [`BRIEF_WAIT`] for each lock.
    pub(super) async fn begin_brief(
        &self,
        node: Option<NodeId>,
    ) -> Result<Transaction, LedgerError> {
        let begin = self.brief("begin");
        self.begin_in(self.witness.required(node)?, &begin).await
    }

    /// The same for one that waits shorter for each lock than the session would.
    pub(super) async fn begin_impatient(
        &self,
        node: NodeId,
        lock_wait: Duration,
    ) -> Result<Transaction, LedgerError> {
        let lock_wait_ms = lock_wait.min(self.lock_timeout).as_millis().max(1);
        // The statements are the same for one counter as for many; planning them anew would cost
        // more than they do.
        let begin = format!(
            "begin; set local lock_timeout = {lock_wait_ms}; \
             set local plan_cache_mode = force_generic_plan"
        );
        self.begin_in(self.witness.required(Some(node))?, &begin).await
    }

    /// Begins a transaction that reads, in what was agreed on last.
    pub(super) async fn begin_reading(&self) -> Result<Transaction, LedgerError> {
        self.begin_in(self.witness.required(None)?, "begin read only").await
    }

    /// The same for one that waits [`BRIEF_WAIT`] for each name.
    pub(super) async fn begin_asking(&self) -> Result<Transaction, LedgerError> {
        let begin = self.brief("begin read only");
        self.begin_in(self.witness.required(None)?, &begin).await
    }

    /// The same in whatever life the ledger lives.
    pub(super) async fn begin_reading_unfenced(&self) -> Result<Transaction, LedgerError> {
        Ok(self.writer.begin_with("begin read only").await?)
    }

    /// Begins a transaction in whatever life the ledger lives: for what must be written all the
    /// same, and for agreeing on one.
    pub(super) async fn begin_unfenced(&self) -> Result<Transaction, LedgerError> {
        Ok(self.writer.begin().await?)
    }

    /// A beginning that has its transaction wait [`BRIEF_WAIT`] for each lock.
    fn brief(&self, begin: &str) -> String {
        let lock_wait_ms = BRIEF_WAIT.min(self.lock_timeout).as_millis();
        format!("{begin}; set local lock_timeout = {lock_wait_ms}")
    }

    /// One round trip: a message of the simple protocol may hold all of it. The comparison comes
    /// first, and becomes part of the transaction: where it fails none was begun, and the
    /// connection is as it was.
    async fn begin_in(
        &self,
        Incarnation { nonce, .. }: Incarnation,
        begin: &str,
    ) -> Result<Transaction, LedgerError> {
        let nonce = nonce.simple();
        let begin = format!("select must_be_incarnation('\\x{nonce}'); {begin}");
        self.writer.begin_with(AssertSqlSafe(begin)).await.map_err(LedgerError::at_begin)
    }
}

/// What the ledger shows; `None` where nothing was agreed on yet.
pub(super) async fn read(_store: &Store, conn: &mut Conn) -> Result<Option<Shown>, LedgerError> {
    let row = sqlx::query(
        "select number, nonce, life = ledger_life() and born = xmin::text::bigint as is_present \
         from incarnation",
    )
    .fetch_optional(conn)
    .await?;
    let shown = |row: super::Row| -> Result<Shown, LedgerError> {
        let nonce = read_uuid(row.try_get("nonce")?, "incarnation.nonce")?;
        let incarnation = Incarnation { number: row.try_get("number")?, nonce };
        Ok(Shown { incarnation, is_present: row.try_get("is_present")? })
    };
    row.map(shown).transpose()
}

/// Keeps others from agreeing on anything until the transaction ends.
pub(super) async fn lock(conn: &mut Conn) -> Result<(), LedgerError> {
    sqlx::query("lock table incarnation in share row exclusive mode").execute(conn).await?;
    Ok(())
}

/// Agrees on an incarnation in the life of now. The lock is held.
pub(super) async fn write(
    tx: &mut Transaction,
    Incarnation { number, nonce }: Incarnation,
) -> Result<(), LedgerError> {
    sqlx::query(
        "insert into incarnation (number, nonce, life, born) values ($1, $2, ledger_life(), \
         (pg_current_xact_id()::text::numeric % 4294967296)::bigint) \
         on conflict (only_row) do update set number = excluded.number, nonce = excluded.nonce, \
         life = excluded.life, born = excluded.born",
    )
    .bind(number)
    .bind(nonce.as_bytes().as_slice())
    .execute(&mut **tx)
    .await?;
    Ok(())
}
