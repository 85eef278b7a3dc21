//! While an import raises counters that Redis counts, or imports documents, the database owns their
//! partitions: there a counter is only its row, and the holder of its lock has exclusive access;
//! and the journal has all numbers of a document. When Redis takes a partition back, its memory of
//! documents restarts (F29).
//!
//! The command is a node while it holds them: if it dies, the watch over the nodes takes them back.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use uuid::Uuid;

use crate::config::{Keyless, Settings};
use crate::engine::reconciler::hand_over;
use crate::ledger::{Event, LedgerError, Owner, Partition, SharedLedger};
use crate::node::system_random;
use crate::startup::Service;
use crate::terminal::output::say;
use crate::terminal::session::{clock, join_for_command, leave, operator};

/// Longest wait until the database owns a partition.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Partitions that are lent to the database, and the loan's id: this command takes them back.
pub(super) struct Handover {
    id: Uuid,
    lent: Vec<Partition>,
    /// The service as which this command lends; `None` if nothing is lent.
    service: Option<Arc<Service>>,
}

impl Handover {
    /// Has the database take over those of the partitions that Redis owns. They stay with it until
    /// [`Handover::give_back`], or longer if an operator wants it.
    ///
    /// # Errors
    /// The database does not own them in time, or another import has them; Redis has kept them
    /// then, or gets them back.
    pub(super) async fn take(
        settings: &Settings,
        ledger: &SharedLedger,
        partitions: &BTreeSet<u32>,
    ) -> anyhow::Result<Self> {
        let mut lent = ledger.partitions().await?;
        lent.retain(|row| {
            partitions.contains(&row.partition) && matches!(row.owner, Owner::Redis { .. })
        });
        let mut handover = Handover { id: system_random(), lent, service: None };
        if handover.lent.is_empty() {
            return Ok(handover);
        }
        // It only lends: whether the import may write without a key was checked before.
        let mut settings = settings.clone();
        settings.audit.keyless = Keyless::Onlooker;
        let service = join_for_command(&settings).await?;
        handover.service = Some(Arc::clone(&service));
        if let Err(error) = handover.take_all(&service).await {
            handover.give_back(ledger).await;
            return Err(error);
        }
        Ok(handover)
    }

    async fn take_all(&self, service: &Service) -> anyhow::Result<()> {
        let ledger = &service.ledger;
        for row in &self.lent {
            let (partition, lender) = (row.partition, service.context.membership.node());
            if !ledger.lend_by(Some(lender), partition, [None, Some(self.id)]).await? {
                bail!(
                    "partition {partition} is lent to another import: wait until it is done; where \
                     it was killed, the services take the partition back within seconds, or \
                     `numerator fallback off`"
                );
            }
            ledger.events().record(&event(row, true)).await?;
        }
        for Partition { partition, .. } in &self.lent {
            let cause = "an import lifts counters or brings documents";
            let handed_over = hand_over(&service.context, *partition, cause, TIMEOUT).await;
            handed_over
                .with_context(|| format!("the database cannot take over partition {partition}"))?;
        }
        Ok(())
    }

    /// Takes back the loan, and nothing that an operator wants. The running services, or the next
    /// ones, give the partitions back to Redis.
    pub(super) async fn give_back(self, ledger: &SharedLedger) {
        for row in &self.lent {
            let taken_back = async {
                if ledger.lend(row.partition, [Some(self.id), None]).await? {
                    ledger.events().record(&event(row, false)).await?;
                }
                Ok::<_, LedgerError>(())
            };
            if let Err(error) = taken_back.await {
                let partition = row.partition;
                say(format_args!(
                    "numerator: partition {partition} may still be lent to the database ({error}); \
                     the services give it back to redis within seconds, or `numerator fallback off`"
                ));
            }
        }
        if let Some(service) = &self.service {
            leave(service).await;
        }
    }
}

/// The event for a loan or its return.
fn event(row: &Partition, is_lent: bool) -> Event {
    let kind = if is_lent { "partition-lent" } else { "partition-taken-back" };
    Event {
        at_us: clock().now_us(),
        kind: kind.into(),
        partition: Some(row.partition),
        epoch: Some(row.epoch),
        node_id: None,
        detail: serde_json::json!({ "to": "import", "user": operator() }),
    }
}
