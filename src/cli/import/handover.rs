//! While an import lifts counters that Redis counts, the database owns their partitions: there a
//! counter's row is all there is of it, and who locks it is alone with it.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context as _;

use crate::cli::fallback::event;
use crate::cli::output::say;
use crate::cli::session::{operator, with_service};
use crate::config::Settings;
use crate::ledger::{LedgerError, Owner, Partition, SharedLedger, Wanted};
use crate::reconciler::hand_over;
use crate::service::Service;

/// Longest wait until the database owns a partition.
const PATIENCE: Duration = Duration::from_secs(15);

/// Partitions that Redis gets back afterwards.
pub(super) struct Handover(Vec<Partition>);

impl Handover {
    /// Has the database take over those of the partitions that Redis owns. They stay with it until
    /// [`Handover::give_back`].
    ///
    /// # Errors
    /// Where the database does not own them in time; Redis has kept them then, or gets them back.
    pub(super) async fn take(
        settings: &Settings,
        ledger: &SharedLedger,
        partitions: &BTreeSet<u32>,
    ) -> anyhow::Result<Self> {
        let mut rows = ledger.partitions().await?;
        rows.retain(|row| {
            partitions.contains(&row.partition) && matches!(row.owner, Owner::Redis { .. })
        });
        if rows.is_empty() {
            return Ok(Handover(rows));
        }
        let lasting = |row: &Partition| row.wanted == Wanted::Database;
        let lent: Vec<Partition> = rows.iter().filter(|row| !lasting(row)).cloned().collect();
        let handover = Handover(lent);
        let taken = handover.take_all(settings, ledger, &rows).await;
        if let Err(error) = taken {
            handover.give_back(ledger).await;
            return Err(error);
        }
        Ok(handover)
    }

    async fn take_all(
        &self,
        settings: &Settings,
        ledger: &SharedLedger,
        rows: &[Partition],
    ) -> anyhow::Result<()> {
        self.want(ledger, Wanted::Database).await?;
        with_service(settings, async |service: &Service| {
            for Partition { partition, .. } in rows {
                let cause = "an import lifts counters";
                hand_over(&service.context, *partition, cause, PATIENCE).await.with_context(
                    || format!("the database cannot take over partition {partition}"),
                )?;
            }
            Ok(())
        })
        .await
    }

    /// Lets Redis own the partitions again. The running services give them back, or the next ones.
    pub(super) async fn give_back(self, ledger: &SharedLedger) {
        if let Err(error) = self.want(ledger, Wanted::Auto).await {
            say(format_args!(
                "numerator: the database keeps partitions, since the wish cannot be written \
                 ({error}); `numerator fallback off` gives them back to redis"
            ));
        }
    }

    async fn want(&self, ledger: &SharedLedger, wanted: Wanted) -> Result<(), LedgerError> {
        for row in &self.0 {
            ledger.want(Some(row.partition), wanted).await?;
            ledger.record_event(&event(row, wanted, &operator())).await?;
        }
        Ok(())
    }
}
