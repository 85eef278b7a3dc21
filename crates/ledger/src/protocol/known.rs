//! What each process knows of the ledger's series, tables and tokens, by its own report: a save
//! waits until all processes have the change.

use numerator_runtime::node::NodeId;

use crate::columns::{bytes, unsigned};
use crate::query::{query, query_scalar};
use crate::store::commit;
use crate::{Ledger, LedgerError, Stamps};

impl Ledger {
    /// Notes what a process knows. Each process reports it each time that it has learned something.
    pub async fn note_known(&self, node: NodeId, known: &Stamps) -> Result<(), LedgerError> {
        self.write(async |store| {
            let mut tx = store.begin_as(node).await?;
            query(
                "update node set series_known = $2, reference_known = $3, tokens_known = $4
                 where node_id = $1",
            )
            .bind(bytes(&node))
            .bind(known.series)
            .bind(known.reference)
            .bind(known.tokens)
            .execute(&mut *tx)
            .await?;
            commit(tx).await
        })
        .await
    }

    /// How many processes serve that know less than this, except for one. Those without a report do
    /// not count: they are starting, or of a version that makes none.
    pub async fn unaware(&self, of: &Stamps, but_for: Option<NodeId>) -> Result<u64, LedgerError> {
        self.read(async |reader| {
            let none = Vec::new();
            let but_for = but_for.as_ref().map_or(&*none, |node| bytes(node));
            let unaware: i64 = query_scalar(
                "select count(*) from node where left_at_us is null and adopted_at_us is null
                 and node_id <> $4
                 and (series_known < $1 or reference_known < $2 or tokens_known < $3)",
            )
            .bind(of.series)
            .bind(of.reference)
            .bind(of.tokens)
            .bind(but_for)
            .fetch_one(reader)
            .await?;
            unsigned(unaware, "node")
        })
        .await
    }
}
