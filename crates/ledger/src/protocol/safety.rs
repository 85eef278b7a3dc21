//! What is known of commits that are gone. Nothing here releases anything.

use crate::calls::CALL;
use crate::columns::ownership;
use crate::query::{query, query_scalar};
use crate::store::commit;
use crate::{At, Ledger, LedgerCheckup, LedgerError};

/// How far back the newest number is looked for, in steps: the index over time serves a span.
const LOOKBACK_US: [i64; 3] = [3_600_000_000, 86_400_000_000, i64::MAX];

impl Ledger {
    /// Notes the epochs of Redis after which none followed, by the report of a node that took part
    /// in them; only while the partitions are held, and until they are held anew or released. Safe
    /// to repeat.
    pub async fn vouch(&self, epochs: &[At]) -> Result<(), LedgerError> {
        self.write(async |store| {
            let mut epochs = epochs.to_vec();
            // A hold locks them in this order.
            epochs.sort_unstable_by_key(|at| at.partition);
            let mut tx = store.begin().await?;
            for at in epochs {
                let (partition, epoch) = ownership(at)?;
                query(
                    "update partition set vouched_epoch = $2
                     where partition_id = $1 and state = 'held' and vouched_epoch < $2",
                )
                .bind(partition)
                .bind(epoch)
                .execute(&mut *tx)
                .await?;
            }
            commit(tx).await
        })
        .await
    }

    /// When the newest number that was journaled by `upto_us` was issued; `None`: there is none.
    pub async fn last_issued_us(&self, upto_us: i64) -> Result<Option<i64>, LedgerError> {
        self.search(async |store| {
            let mut tx = store.reader.begin().await?;
            tx.allow_long_search().await?;
            for span_us in LOOKBACK_US {
                // What was reported again came after the ledger was held.
                let newest: Option<i64> = query_scalar(
                    "select max(issued_at_us) from journal_row
                     where issued_at_us >= $1 and issued_at_us <= $2 and journaled_at_us <= $2",
                )
                .bind(upto_us.saturating_sub(span_us))
                .bind(upto_us)
                .fetch_one(&mut *tx)
                .await?;
                if newest.is_some() {
                    return Ok(newest);
                }
            }
            Ok(None)
        })
        .await
    }

    /// Asks the database how it keeps commits. Changes nothing.
    pub async fn check_up(&self) -> Result<LedgerCheckup, LedgerError> {
        self.call(CALL, async |store| store.pool().check_up().await).await
    }
}
