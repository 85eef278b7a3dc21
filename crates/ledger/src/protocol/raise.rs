//! Ceilings of counters are raised. Never lowers one, and takes nothing.

use crate::calls::CALL;
use crate::columns::{ownership, unsigned};
use crate::counters::table::lock_all;
use crate::protocol::tall::{self, TALL_ROOM_MIN};
use crate::query::query_as;
use crate::store::commit;
use crate::{At, Ledger, LedgerError, Raise};

impl Ledger {
    /// Raises ceilings where the counter's own row still carries this epoch; the ceiling in force,
    /// or `None` where it does not (F4). Never lowers one.
    pub async fn raise(&self, at: At, raises: &[Raise]) -> Result<Vec<Option<i64>>, LedgerError> {
        self.call(CALL.named("raise"), async |store| {
            let (partition, epoch) = ownership(at)?;
            let ids: Vec<i64> = raises.iter().map(|raise| raise.counter_id).collect();
            let mut ceilings = Vec::with_capacity(raises.len());
            let mut room_most = 0;
            let mut tx = store.begin_brief(None).await?;
            lock_all(&mut *tx, &ids).await?;
            for raise in raises {
                // Partition and epoch are in the row that changes: one read elsewhere may be stale
                // by the time the row lock is granted.
                let row: Option<(i64, i64)> = query_as(
                    "update counter set ceiling = case when ceiling < $4 then $4 else ceiling end
                     where counter_id = $1 and partition_id = $2 and epoch = $3
                     returning ceiling, (ceiling - taken) / step as room",
                )
                .bind(raise.counter_id)
                .bind(partition)
                .bind(epoch)
                .bind(raise.ceiling)
                .fetch_optional(&mut *tx)
                .await?;
                ceilings.push(row.map(|(ceiling, _)| ceiling));
                room_most = row.map_or(0, |(_, room)| room).max(room_most);
            }
            commit(tx).await?;
            if unsigned(room_most, "room")? >= TALL_ROOM_MIN
                && let Err(error) = tall::note(store, at).await
            {
                // The next raise notes it.
                tracing::debug!(%error, "a tall ceiling is not noted");
            }
            Ok(ceilings)
        })
        .await
    }
}
