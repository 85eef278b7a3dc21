//! The time by sources other than this process: the server's clock, what is written, and the times
//! that nodes report (F37).

use numerator_runtime::node::NodeId;
use tokio::time::Instant;

use crate::calls::CALL;
use crate::columns::{bytes, read_node};
use crate::connections::Share;
use crate::dialect::Conn;
use crate::query::{query, query_as, query_scalar};
use crate::store::commit;
use crate::{Heard, Ledger, LedgerError, LedgerTimes};

impl Ledger {
    /// All times that the ledger shows. Of the times that nodes reported, none after `upto_us`:
    /// those came from a clock that was ahead.
    pub async fn times(&self, upto_us: i64) -> Result<LedgerTimes, LedgerError> {
        self.read(async |reader| {
            let mut conn = reader.acquire().await?;
            // Ids rise with time.
            let journaled_us = query_scalar(
                "select journaled_at_us from journal_batch order by batch_id desc limit 1",
            );
            let told_us = query_scalar(
                "select max(coalesce(told_at_us, started_at_us)) from node
                 where coalesce(told_at_us, started_at_us) <= $1",
            );
            Ok(LedgerTimes {
                server: server(&mut *conn).await?,
                journaled_us: journaled_us.fetch_optional(&mut *conn).await?,
                told_us: told_us.bind(upto_us).fetch_one(&mut *conn).await?,
                nodes: told(&mut *conn).await?,
            })
        })
        .await
    }

    /// Reports the time of a node's own clock, and returns the server's and the last reports of
    /// other nodes. Like a heartbeat it touches the node's own row alone.
    pub async fn report_time(
        &self,
        node: NodeId,
    ) -> Result<(Option<Heard>, Vec<(NodeId, i64)>), LedgerError> {
        self.call(CALL.of(Share::Heartbeat), async |store| {
            let mut tx = store.begin_as(node).await?;
            let own_us = store.clock.now_us();
            let server = server(&mut *tx).await?;
            query("update node set told_at_us = $2, heard_at_us = $3 where node_id = $1")
                .bind(bytes(&node))
                .bind(own_us)
                .bind(server.map(|server| server.at_us))
                .execute(&mut *tx)
                .await?;
            let mut others = told(&mut *tx).await?;
            others.retain(|(other, _)| *other != node);
            commit(tx).await?;
            Ok((server, others))
        })
        .await
    }

    /// `idempotency.window` as the processes agreed on it, in milliseconds; none before the first.
    pub async fn agreed_window_ms(&self) -> Result<Option<i64>, LedgerError> {
        self.read(async |reader| {
            let window: Option<Option<i64>> =
                query_scalar("select idempotency_window_ms from deployment")
                    .fetch_optional(reader)
                    .await?;
            Ok(window.flatten())
        })
        .await
    }
}

async fn server(conn: &mut Conn) -> Result<Option<Heard>, LedgerError> {
    let asked = Instant::now();
    let at_us = conn.server_now_us().await?;
    Ok(at_us.map(|at_us| Heard { at_us, asked, answered: Instant::now() }))
}

/// The times reported by nodes that have not ended.
async fn told(conn: &mut Conn) -> Result<Vec<(NodeId, i64)>, LedgerError> {
    let rows = query_as::<(Vec<u8>, i64)>(
        "select node_id, told_at_us from node
         where left_at_us is null and adopted_at_us is null and told_at_us is not null",
    );
    let rows = rows.fetch_all(conn).await?;
    rows.iter().map(|(node, told)| Ok((read_node(node, "node.node_id")?, *told))).collect()
}
