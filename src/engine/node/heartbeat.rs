//! The heartbeat of this process as a node, and the regular read of the partitions.
//!
//! Here it is noticed that the ledger went back (F9): it has forgotten a heartbeat, or shows an
//! earlier epoch of a partition than before. Never waits for the work of a partition.

use std::sync::Arc;

use tokio::time::Instant;

use super::Context;
use super::isolation::report;
use super::membership::{FORGOTTEN, Membership};
use crate::ledger::{At, LedgerError, NodeReport, Partition, PartitionState};
use crate::node::NodeId;
use crate::task::{Task, Ticks};

impl Membership {
    /// Starts reading the partitions, as often as the heartbeat and apart from it: a slow read must
    /// not delay the heartbeat (F47).
    #[must_use]
    pub fn start_news(context: Arc<Context>) -> Task {
        let period = context.settings.node_heartbeat();
        Task::start("news", move |stop| async move {
            let mut ticks = Ticks::every(period, stop);
            while ticks.next().await {
                context.membership.read_news(&context).await;
            }
        })
    }

    async fn read_news(&self, context: &Context) {
        let _one = self.reading.lock().await;
        if self.ledger_went_back() {
            return;
        }
        let (asked_at, node) = (Instant::now(), self.node());
        match self.ledger.partitions_as(node).await {
            Ok(partitions) => {
                self.publish(context, node, partitions);
                self.known_epochs().beat(asked_at, context.settings.recovery_barrier_max);
            }
            Err(error) => tracing::debug!(%error, "cannot read the partitions"),
        }
    }

    /// Starts the heartbeat. A service reports with each beat what it sees of Redis and what keeps
    /// it from its work; a one-shot command has no opinion.
    #[must_use]
    pub fn start(context: Arc<Context>) -> Task {
        let period = context.settings.node_heartbeat();
        Task::start("heartbeat", move |stop| async move {
            let (mut ticks, availability) =
                (Ticks::every(period, stop), &context.membership.availability);
            let beating = async {
                while ticks.next().await {
                    let report = context.eager.then(|| report(&context));
                    availability.watching(context.membership.beat(&context, report.as_ref())).await;
                }
            };
            let knock = || {
                let ledger = Arc::clone(&context.ledger);
                async move { ledger.knock().await }
            };
            tokio::select! {
                () = beating => {}
                never = availability.knocking(knock) => match never {}
            }
        })
    }

    async fn beat(&self, context: &Context, report: Option<&NodeReport>) {
        self.availability.ask();
        if self.ledger_went_back() {
            return self.hold_all(context).await;
        }
        let (node, sent_at) = (self.node(), Instant::now());
        let beat = self.ledger.nodes().heartbeat(node, report).await;
        self.note_answer(context, beat.as_ref().err());
        match beat {
            Ok(living) => {
                self.testify();
                // Each time before the next heartbeat: others count on it (F25).
                self.look_at(living, sent_at);
                let beat = self.ledger.confirmed(node).map(|confirmed| (confirmed, sent_at));
                if self.ledger.has_unproven_takes() {
                    *self.unproven.lock().expect("no holder of this lock panics") = beat;
                } else {
                    self.note_proven(beat);
                }
            }
            Err(LedgerError::NodeGone(_)) => {
                if let Err(error) = self.replace(node).await {
                    tracing::warn!(%error, "cannot register anew");
                }
            }
            Err(LedgerError::WentBack(_)) => self.alarm(node, FORGOTTEN),
            Err(error) => tracing::warn!(%error, "heartbeat failed"),
        }
        if self.ledger_went_back() {
            self.hold_all(context).await;
        }
    }

    /// Notes whether the ledger answers, by the error of a call that had one.
    pub(super) fn note_answer(&self, context: &Context, error: Option<&LedgerError>) {
        use LedgerError::{Fault, LockTimeout, Unreachable};
        let is_answered =
            !matches!(error, Some(Unreachable { .. } | LockTimeout { .. } | Fault(_)));
        self.availability.answer(error);
        context.metrics.ledger_up.set(f64::from(u8::from(is_answered)));
    }

    /// Compares what the ledger shows an identity with what it showed before, and notifies the
    /// workers.
    pub(super) fn publish(&self, context: &Context, node: NodeId, partitions: Vec<Partition>) {
        let before = Arc::clone(&self.news.borrow());
        if partitions.len() < before.len() {
            // Its rows are away: it is being put back.
            tracing::warn!(shown = partitions.len(), "the ledger shows fewer partitions");
            return;
        }
        let was = |row: &Partition| before.iter().find(|old| old.partition == row.partition);
        let is_held = |row: &Partition| row.state == PartitionState::Held;
        let is_lower = |row: &&Partition| was(row).is_some_and(|old| row.epoch < old.epoch);
        if let Some(row) = partitions.iter().find(|row| !is_held(row) && is_lower(row)) {
            self.alarm(node, &format!("partition {} shows an earlier epoch", row.partition));
        }
        if partitions.iter().any(|row| is_held(row) && was(row).is_some_and(|old| !is_held(old))) {
            context.metrics.ledger_went_back.increment(1);
        }
        for Partition { partition, epoch, .. } in &partitions {
            self.see(At { partition: *partition, epoch: *epoch });
        }
        self.news.send_if_modified(|news| {
            let changed = **news != partitions;
            if changed {
                *news = Arc::new(partitions);
            }
            changed
        });
    }
}
