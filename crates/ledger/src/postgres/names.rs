//! Locks on names: of documents and callers' keys, which are numbered once regardless of their
//! counter. And all else that depends on how transactions of PostgreSQL see each other.
//!
//! They last until their transaction ends. The writes of another transaction under a name are
//! visible to the statements that follow its lock.

use std::time::Duration;

use async_trait::async_trait;
use numerator_runtime::node::NodeId;
use sqlx::postgres::PgConnection;

use crate::LedgerError;
use crate::dialect::{Locks, Moment};

#[async_trait]
impl Locks for PgConnection {
    async fn lock_names(&mut self, sorted: &[i64]) -> Result<(), LedgerError> {
        // Waits as long as the session does: the holder of a name is at work.
        if sorted.is_empty() {
            return Ok(());
        }
        // All rows are joined before the first lock is requested.
        sqlx::query(
            "select pg_advisory_xact_lock(n.name) from (select set_config('lock_timeout',
             current_setting('numerator.lock_timeout'), true)) as patience,
             (select name from unnest($1::bigint[]) as n (name) order by name) as n",
        )
        .bind(sorted)
        .execute(self)
        .await?;
        Ok(())
    }

    async fn share_names(&mut self, sorted: &[i64]) -> Result<(), LedgerError> {
        if sorted.is_empty() {
            return Ok(());
        }
        sqlx::query(
            "select pg_advisory_xact_lock_shared(n.name)
             from (select name from unnest($1::bigint[]) as n (name) order by name) as n",
        )
        .bind(sorted)
        .execute(self)
        .await?;
        Ok(())
    }

    async fn lock_own_name(&mut self, name: i64) -> Result<(), LedgerError> {
        sqlx::query(
            "select pg_advisory_xact_lock(hashtextextended(current_schema(), $1))
             from (select set_config('lock_timeout',
             current_setting('numerator.lock_timeout'), true)) as patience",
        )
        .bind(name)
        .execute(self)
        .await?;
        Ok(())
    }

    async fn try_share_own_name(&mut self, name: i64) -> Result<bool, LedgerError> {
        // The server refuses it also where the request of another session waits.
        let shared = sqlx::query_scalar(
            "select pg_try_advisory_xact_lock_shared(hashtextextended(current_schema(), $1))",
        );
        Ok(shared.bind(name).fetch_one(self).await?)
    }

    async fn lock_incarnation(&mut self) -> Result<(), LedgerError> {
        sqlx::query("lock table incarnation in share row exclusive mode").execute(self).await?;
        Ok(())
    }

    async fn server_now_us(&mut self) -> Result<Option<i64>, LedgerError> {
        // The time of the statement, not of the transaction.
        let now = "select (extract(epoch from clock_timestamp()) * 1000000)::bigint";
        Ok(Some(sqlx::query_scalar(now).fetch_one(self).await?))
    }

    async fn moment(&mut self) -> Result<Moment, LedgerError> {
        // The oldest that ran then.
        let oldest = "select (pg_snapshot_xmin(pg_current_snapshot())::text::numeric
                      % 4294967296)::bigint";
        Ok(Moment(sqlx::query_scalar(oldest).fetch_one(self).await?))
    }

    async fn know_rows(&mut self) -> Result<(), LedgerError> {
        // With the statistics of an empty journal it would compare each row with each: nine minutes
        // at 100,000. Never waits: the other transaction may wait for this one. Then, and for a
        // role that does not own the journal, the statistics stay as they are.
        sqlx::query("analyze (skip_locked) journal").execute(self).await?;
        Ok(())
    }

    async fn numbered_since(
        &mut self,
        Moment(oldest): Moment,
        node: NodeId,
        counters: Vec<i64>,
    ) -> Result<Option<(String, String)>, LedgerError> {
        Ok(sqlx::query_as(
            "select f.document_id, f.number from journal_row i join journal_row f
             on f.document_id = i.document_id and f.series_id = i.series_id
             where i.counter_id = any ($1) and i.node_id = $2 and f.node_id <> $2
             and age(f.written_by) <= age($3::text::xid)
             union all
             select a.document_id, a.number from journal_row i join assignment a
             on a.document_id = i.document_id and a.series_id = i.series_id
             where i.counter_id = any ($1) and i.node_id = $2
             and age(a.xmin) <= age($3::text::xid) limit 1",
        )
        .bind(counters)
        .bind(node.0.as_bytes().as_slice())
        .bind(oldest.to_string())
        .fetch_optional(self)
        .await?)
    }

    async fn allow_long_search(&mut self) -> Result<(), LedgerError> {
        sqlx::query("set local statement_timeout = '10min'").execute(self).await?;
        Ok(())
    }

    /// The session's own limit ends each statement.
    async fn limit_search(&mut self, _limit: Option<Duration>) -> Result<(), LedgerError> {
        Ok(())
    }

    async fn allow_import(&mut self) -> Result<(), LedgerError> {
        self.allow_long_search().await?;
        sqlx::query("set local idle_in_transaction_session_timeout = '1min'").execute(self).await?;
        Ok(())
    }
}
