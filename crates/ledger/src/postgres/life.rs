//! The life of a PostgreSQL database, and transactions that are of one life only (F25).
//!
//! A server's timeline and the row's own transaction are compared as each transaction begins, in
//! the message that begins it: true from the first moment of a promotion, also for a process that
//! lost nothing itself. No transaction lives through a change of them: a standby takes no writes,
//! and a dump is restored by its own transactions.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::{AssertSqlSafe, Error, Postgres};

use crate::columns::read_uuid;
use crate::connections::Connections;
use crate::dialect::{Acquired, Begin, Conn, Driver, Ends, Pool, Transaction};
use crate::incarnation::{Incarnation, Shown};
use crate::query::{QueryBuilder, query_as, query_scalar};
use crate::{Lack, LedgerCheckup, LedgerError};

/// The longest wait for one lock of work that is repeated in the background (journal, seeds,
/// raises): work whose locks are free goes first meanwhile (F31). Never longer than
/// `database.lock_timeout`.
const BRIEF_WAIT: Duration = Duration::from_secs(1);

/// One share of the connections of one time to a PostgreSQL database.
pub(super) struct PgConnections {
    pub(super) pool: sqlx::PgPool,
    pub(super) lock_timeout: Duration,
}

impl PgConnections {
    /// The beginning of a transaction. One that waits for locks sets how long: all in one message.
    fn beginning(&self, begin: Begin) -> String {
        let brief = |begin: &str| {
            let lock_wait_ms = BRIEF_WAIT.min(self.lock_timeout).as_millis();
            format!("{begin}; set local lock_timeout = {lock_wait_ms}")
        };
        match begin {
            Begin::Writing => "begin".to_owned(),
            Begin::Brief => brief("begin"),
            Begin::LockLimited(lock_wait) => {
                let lock_wait_ms = lock_wait.min(self.lock_timeout).as_millis().max(1);
                // The statements are the same for one counter as for many; planning them anew
                // would cost more than they do.
                format!(
                    "begin; set local lock_timeout = {lock_wait_ms}; \
                     set local plan_cache_mode = force_generic_plan"
                )
            }
            Begin::Reading => "begin read only".to_owned(),
            Begin::Snapshot => "begin isolation level repeatable read read only".to_owned(),
            Begin::Asking => brief("begin read only"),
        }
    }
}

#[async_trait]
impl Pool for PgConnections {
    fn connections(&self) -> Connections {
        let pool = &self.pool;
        Connections::of_pool(pool.size(), pool.num_idle(), pool.options().get_max_connections())
    }

    fn fails_over(&self) -> bool {
        true
    }

    async fn acquire(&self) -> Result<Acquired, Error> {
        Ok(Acquired(Box::new(Driver(self.pool.acquire().await?))))
    }

    /// One round trip: a message of the simple protocol may hold all of it. The comparison comes
    /// first, and becomes part of the transaction: where it fails none was begun, and the
    /// connection is as it was.
    async fn begin(
        &self,
        required: Option<Incarnation>,
        begin: Begin,
    ) -> Result<Transaction, LedgerError> {
        let begin = self.beginning(begin);
        let begun = match required {
            None => self.pool.begin_with(AssertSqlSafe(begin)).await?,
            Some(Incarnation { nonce, .. }) => {
                let nonce = nonce.simple();
                let begin = format!("select must_be_incarnation('\\x{nonce}'); {begin}");
                let begun = self.pool.begin_with(AssertSqlSafe(begin)).await;
                begun.map_err(LedgerError::at_begin)?
            }
        };
        Ok(Transaction(Box::new(Driver(begun))))
    }

    async fn begin_together(&self) -> Result<Vec<Transaction>, LedgerError> {
        let mut first = self.begin(None, Begin::Snapshot).await?;
        let moment = query_scalar::<String>("select pg_export_snapshot()");
        let moment = moment.fetch_one(&mut *first).await?;
        // The server gave it: digits, letters and dashes.
        let begin = self.beginning(Begin::Snapshot);
        let begin = format!("{begin}; set transaction snapshot '{moment}'");
        let second = self.pool.begin_with(AssertSqlSafe(begin)).await?;
        Ok(vec![first, Transaction(Box::new(Driver(second)))])
    }

    async fn shown(&self, conn: &mut Conn) -> Result<Option<Shown>, LedgerError> {
        let row: Option<(i64, Vec<u8>, bool)> = query_as(
            "select number, nonce, life = ledger_life() and born = xmin::text::bigint
             as is_present from incarnation",
        )
        .fetch_optional(conn)
        .await?;
        let Some((number, nonce, is_present)) = row else { return Ok(None) };
        let incarnation = Incarnation { number, nonce: read_uuid(&nonce, "incarnation.nonce")? };
        Ok(Some(Shown { incarnation, is_present, marked: None }))
    }

    async fn held_counters(
        &self,
        required: Incarnation,
        ids: &[i64],
    ) -> Result<Vec<i64>, LedgerError> {
        let begin = self.begin(Some(required), Begin::Brief);
        let mut tx = begin.await?;
        let among = |select| {
            let mut query = QueryBuilder::new(select);
            query.push_among(ids.to_vec());
            query
        };
        let select = "select counter_id from counter where counter_id";
        let mut present = among(select);
        present.push(" order by counter_id");
        let mut held: Vec<i64> = present.build().scalar().fetch_all(&mut *tx).await?;
        let mut free = among(select);
        free.push(" for no key update skip locked");
        let free: Vec<i64> = free.build().scalar().fetch_all(&mut *tx).await?;
        // Only a look: no transaction waits for the locks that were free.
        tx.rollback().await?;
        let free: HashSet<i64> = free.into_iter().collect();
        held.retain(|id| !free.contains(id));
        Ok(held)
    }

    async fn check_up(&self) -> Result<LedgerCheckup, LedgerError> {
        super::check_up::check_up(&self.pool).await
    }

    async fn lacks(&self) -> Result<Vec<Lack>, LedgerError> {
        super::fitness::missing(&self.pool).await
    }

    async fn grant_roles(&self) -> Result<bool, LedgerError> {
        super::migrate::grant_roles(&mut *self.pool.acquire().await?).await
    }
}

#[async_trait]
impl Ends for Driver<sqlx::Transaction<'static, Postgres>> {
    async fn commit(self: Box<Self>) -> Result<(), Error> {
        self.0.commit().await
    }

    async fn rollback(self: Box<Self>) -> Result<(), Error> {
        self.0.rollback().await
    }

    async fn agree(
        &mut self,
        Incarnation { number, nonce }: Incarnation,
    ) -> Result<(), LedgerError> {
        sqlx::query(
            "insert into incarnation (number, nonce, life, born) values ($1, $2, ledger_life(),
             (pg_current_xact_id()::text::numeric % 4294967296)::bigint)
             on conflict (only_row) do update set number = excluded.number,
             nonce = excluded.nonce, life = excluded.life, born = excluded.born",
        )
        .bind(number)
        .bind(nonce.as_bytes().as_slice())
        .execute(&mut *self.0)
        .await?;
        Ok(())
    }
}
