//! Sweeps what is no answer to any question any more: counters of epochs in Redis that were closed
//! long ago, and rows of the ledger about participations and nodes that ended.
//!
//! A counter of the present epoch is never touched, whatever its period: one that is missing there
//! is lost. So that counters of periods past become old at all, an epoch with very many of them is
//! ended by plan, exact like any recovery that nothing forces, and seldom. The process that has
//! been there the longest sweeps; a second one at it would find nothing more to remove.
//!
//! What is old depends on the ledger's time where that is lower than the own clock, and a
//! process whose clock is off sweeps nothing (F37).

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::engine::node::{Context, PlannedEnd};
use crate::ledger::{At, LedgerError, Owner, Partition, PartitionState, Sweep, Swept};
use crate::metrics::{ByPartition, Gauge, counter_gauges};
use crate::redis::{CounterError, Guard, Redis, SweptCounters};
use crate::task::{Stop, Task, Ticks};

/// Time between two pages, of Redis or of the ledger.
const PAGE_PERIOD: Duration = Duration::from_millis(100);

/// Longest time until a process notices that it has been there the longest.
const LOOK_MAX: Duration = Duration::from_secs(60);

/// Keys of Redis that one page reads, about.
const PAGE_KEYS: u32 = 1_000;

/// Rows of each table that one page deletes, at most.
const PAGE_ROWS: u32 = 500;

/// Why a round was given up; the next one begins anew.
#[derive(Debug, thiserror::Error)]
enum SweepError {
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Redis(#[from] CounterError),
}

/// Sweeps once in a period, as long as the process runs.
pub(crate) fn sweep(context: Arc<Context>) -> Task {
    Task::start("sweep", move |stop| async move {
        let period = context.settings.sweep.period;
        let look = period.min(LOOK_MAX);
        let mut looks = Ticks::every(look, stop.clone());
        let counters = counter_gauges(context.deployment.partitions);
        let sweeper = Sweeper { context, counters, stop };
        sweeper.show_nothing();
        // Not immediately: the partitions are only being opened.
        let mut due = Instant::now() + look;
        while looks.next().await {
            if Instant::now() < due {
                continue;
            }
            match sweeper.round().await {
                Ok(true) => due = Instant::now() + period,
                Ok(false) => {}
                Err(error) => {
                    due = Instant::now() + period;
                    sweeper.context.metrics.sweeps_failed.increment(1);
                    tracing::info!(%error, "the sweep goes on another time");
                }
            }
        }
    })
}

struct Sweeper {
    context: Arc<Context>,
    /// Of the present epoch, by partition.
    counters: ByPartition<Gauge>,
    stop: Stop,
}

impl Sweeper {
    /// Sweeps everything once; false where that is another process's.
    async fn round(&self) -> Result<bool, SweepError> {
        let context = &self.context;
        // They come in the order in which they started.
        let nodes = context.ledger.nodes().list().await?;
        let is_first = nodes.first().map(|node| node.node_id) == Some(context.membership.node());
        if !is_first || context.clocks.off().is_some() {
            self.show_nothing();
            return Ok(false);
        }
        self.rows().await?;
        for partition in 0..context.deployment.partitions {
            if let Some(redis) = context.redis_of(partition) {
                self.counters(redis, partition).await?;
            }
        }
        Ok(true)
    }

    /// Another process may count them.
    fn show_nothing(&self) {
        for partition in 0..self.context.deployment.partitions {
            self.counters.of(partition).set(f64::NAN);
        }
    }

    /// The time before which ended entries are removed.
    fn ago_us(&self, keep: Duration) -> i64 {
        let keep_us = i64::try_from(keep.as_micros()).unwrap_or(i64::MAX);
        self.context.clocks.evidence_us().saturating_sub(keep_us)
    }

    /// Deletes rows of the ledger, page by page.
    async fn rows(&self) -> Result<(), SweepError> {
        let (context, keep) = (&self.context, self.context.settings.sweep.keep);
        let mut pages = Ticks::every(PAGE_PERIOD, self.stop.clone());
        while pages.next().await && !self.must_rest() {
            let sweep = Sweep { ended_before_us: self.ago_us(keep), rows_max: PAGE_ROWS };
            let Swept { participants, nodes } = context.ledger.sweep(&sweep).await?;
            context.metrics.swept.of("participants").increment(participants);
            context.metrics.swept.of("nodes").increment(nodes);
            if participants.max(nodes) < u64::from(PAGE_ROWS) {
                break;
            }
        }
        Ok(())
    }

    /// Whether the ledger went back: then everything is evidence. Or it is unknown what is old.
    fn must_rest(&self) -> bool {
        if self.context.clocks.off().is_some() {
            return true;
        }
        let rows = self.context.membership.news().borrow().clone();
        rows.iter().any(|row| row.state == PartitionState::Held)
    }

    /// The row of a partition while Redis serves it.
    fn served(&self, partition: u32) -> Option<(Partition, Guard)> {
        let rows = self.context.membership.news().borrow().clone();
        let row = rows.iter().find(|row| row.partition == partition)?;
        let (PartitionState::Open, Owner::Redis { incarnation }) = (row.state, &row.owner) else {
            return None;
        };
        let at = At { partition, epoch: row.epoch };
        Some((row.clone(), self.context.guard(at, incarnation, self.context.membership.node())))
    }

    /// Walks through all keys of a partition once, and removes what is old. Ends when the partition
    /// leaves its epoch: the next round walks through the next.
    async fn counters(&self, redis: &Redis, partition: u32) -> Result<(), SweepError> {
        let (context, settings) = (&self.context, &self.context.settings.sweep);
        let Some((row, guard)) = self.served(partition) else { return Ok(()) };
        // The ledger may be ahead of the news.
        let upto = context.ledger.closed_before(partition, self.ago_us(settings.keep)).await?;
        let upto = upto.min(row.epoch.saturating_sub(1));
        let (mut cursor, mut present) = (None::<String>, 0);
        let mut pages = Ticks::every(PAGE_PERIOD, self.stop.clone());
        while pages.next().await {
            if self.must_rest() || self.served(partition).is_none_or(|(now, _)| now != row) {
                return Ok(());
            }
            let page = redis.scan(&context.keys, partition, cursor.as_deref(), PAGE_KEYS).await?;
            let swept = redis.sweep(&context.keys, &guard, &page.keys, upto).await?;
            let Some(SweptCounters { removed, present: seen }) = swept else { return Ok(()) };
            context.metrics.swept.of("counters").increment(removed);
            present += seen;
            cursor = page.next;
            if cursor.is_none() {
                self.counters.of(partition).set(present as f64);
                return self.end_by_plan(&row, present).await;
            }
        }
        Ok(())
    }

    /// Has the epoch end if it has very many counters, most of them of periods past.
    async fn end_by_plan(&self, row: &Partition, counters: u64) -> Result<(), SweepError> {
        let (context, settings) = (&self.context, &self.context.settings.sweep);
        let is_old = row.changed_at_us < self.ago_us(settings.epoch_min);
        // Asked now: without the ledger the partition would wait for its next epoch.
        if counters > settings.counters_max
            && is_old
            && context.ledger.partitions().await?.contains(row)
        {
            let Partition { partition, epoch, .. } = *row;
            tracing::info!(partition, epoch, counters, "the epoch ends by plan");
            context.planned_ends.plan(At { partition, epoch }, PlannedEnd::Counters);
        }
        Ok(())
    }
}
