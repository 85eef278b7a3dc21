//! Gauges that are read and not set by the work itself: partitions, queues, connections and
//! counters of this process.
//!
//! What lies in memory is read whenever the metrics are scraped, so it is never older than the
//! scrape; a slow loop reads what needs a call to Redis or the ledger. Only reads.

mod certificates;
mod fullest;
mod in_use;
mod own_use;

pub use certificates::{ends_in, ends_of};
pub use in_use::CountersInUse;

use std::collections::HashSet;
use std::ops::RangeBounds;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::engine::allocator::{Allocator, Headroom};
use crate::engine::node::Context;
use crate::engine::reconciler::Stores;
use crate::ledger::{LedgerCheckup, LedgerConfigWarning, Owner, Partition, PartitionState};
use crate::metrics::{
    ByPartition, Fullness, Gauge, PartitionGauges, partition_gauges, redis_gauges,
};
use crate::task::{Stop, Task, Ticks};

/// How many of the fullest counters are shown: each is a label that Prometheus keeps.
const COUNTERS_MAX: usize = 20;

/// Bounds of the slow loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GaugeSettings {
    /// `metrics.counter_keys`: whether counters are shown with their keys.
    pub counter_keys: bool,
    /// `metrics.period`: time between two polls of counters, collisions and outboxes.
    pub period: Duration,
}

impl Default for GaugeSettings {
    fn default() -> Self {
        GaugeSettings { counter_keys: false, period: Duration::from_secs(15) }
    }
}

/// The gauges of one process.
pub struct Gauges {
    context: Arc<Context>,
    allocator: Allocator,
    in_use: CountersInUse,
    partitions: ByPartition<PartitionGauges>,
    /// Of the partitions that Redis may own.
    redis_up: ByPartition<Gauge>,
    /// The last known hazards of the database.
    config_warnings: Mutex<HashSet<LedgerConfigWarning>>,
    settings: GaugeSettings,
}

impl Gauges {
    /// Looks the gauges up and sets those that never change.
    #[must_use]
    pub fn new(
        context: &Arc<Context>,
        allocator: &Allocator,
        in_use: CountersInUse,
        settings: GaugeSettings,
    ) -> Self {
        let (metrics, bounds) = (&context.metrics, &context.settings);
        metrics.say_build(context.ledger.engine(), context.clock.now_us());
        metrics.collisions.set(f64::NAN);
        metrics.clock_offset.set(f64::NAN);
        metrics.rejected_records.set(f64::NAN);
        metrics.due.checkpoint_age.set(f64::NAN);
        metrics.due.checkpoint_period.set(f64::NAN);
        for name in LedgerConfigWarning::NAMES {
            metrics.ledger_hazards.of(name).set(f64::NAN);
        }
        metrics.redis_configured.set(flag(context.redis.is_some()));
        metrics.queue_max.set(bounds.queue_max as f64);
        metrics.journal_queue_max.set(bounds.journal.queue_max as f64);
        let gauges = Gauges {
            context: Arc::clone(context),
            allocator: allocator.clone(),
            in_use,
            partitions: partition_gauges(context.deployment.partitions_total()),
            redis_up: redis_gauges(context.deployment.partitions),
            config_warnings: Mutex::default(),
            settings,
        };
        if context.redis.is_some() {
            gauges.show_outboxes(0.., None);
        }
        gauges
    }

    /// Sets what lies in memory.
    pub fn observe(&self) {
        let (context, metrics) = (&self.context, &self.context.metrics);
        let lag = context.journal.lag();
        let waited = lag.oldest.map_or(Duration::ZERO, |oldest| oldest.elapsed());
        metrics.journal_lag_records.set(lag.records as f64);
        metrics.journal_lag_seconds.set(waited.as_secs_f64());
        let connections = context.ledger.connections();
        metrics.ledger_connections_used.set(f64::from(connections.used));
        metrics.ledger_connections_idle.set(f64::from(connections.idle));
        metrics.ledger_connections_max.set(f64::from(connections.max));
        metrics.show_process(&own_use::own_use());
        for (partition, worker) in (0..).zip(self.allocator.workers()) {
            let gauges = self.partitions.of(partition);
            gauges.queue_length.set(worker.queue_length as f64);
            gauges.serving.set(flag(worker.serves()));
            let headroom = worker.least_headroom;
            gauges.ceiling_used.set(headroom.map_or(0.0, Headroom::used_ratio));
            gauges.ceiling_room.set(headroom.map_or(0.0, |headroom| headroom.left as f64));
            let lasts = headroom.map(|it| it.lasts).filter(|lasts| *lasts < Duration::MAX);
            let lasts = lasts.map_or(f64::INFINITY, |lasts| lasts.as_secs_f64());
            gauges.ceiling_room_seconds.set(lasts);
        }
        for partition in 0..context.deployment.partitions {
            let is_up = context.redis_health.healthy_for(partition).is_some();
            self.redis_up.of(partition).set(flag(is_up));
            let asks_for = context.asks_for(partition);
            self.partitions.of(partition).asking.set(asks_for.as_secs_f64());
        }
        for row in context.membership.news().borrow().iter() {
            let Partition { partition, epoch, owner, state, .. } = row;
            self.partitions.of(*partition).show(*epoch, owner_word(owner), state_word(*state));
        }
    }

    /// Starts the slow loop.
    #[must_use]
    pub fn start(self: Arc<Self>) -> Task {
        let period = self.settings.period;
        Task::start("gauges", move |stop| async move {
            let mut ticks = Ticks::every(period, stop.clone());
            while ticks.next().await {
                self.context.metrics.replace_fullest(self.fullest());
                // A store that is away keeps the other from being looked at no longer than itself.
                tokio::join!(
                    self.measure_unexplained(),
                    self.measure_config_warnings(),
                    self.measure_outboxes(&stop)
                );
            }
        })
    }

    /// The fullest counters of those in use.
    fn fullest(&self) -> Vec<Fullness> {
        let counters = self.in_use.list();
        let counter_keys = self.settings.counter_keys;
        fullest::fullest(&self.allocator.catalog(), counters, COUNTERS_MAX, counter_keys)
    }

    /// Asks how many collisions and records put aside the ledger holds: the counters of this
    /// process end with it, and commands are not counted anywhere. What was not read is not known.
    async fn measure_unexplained(&self) {
        let (ledger, metrics) = (&self.context.ledger, &self.context.metrics);
        for (counted, gauge) in [
            (ledger.register().collisions_count().await, &metrics.collisions),
            (ledger.rejected_count().await, &metrics.rejected_records),
        ] {
            if let Err(error) = &counted {
                tracing::debug!(%error, "collisions or rejected records are not counted");
            }
            gauge.set(counted.map_or(f64::NAN, |count| count as f64));
        }
    }

    /// Asks the database how it keeps commits: a server may be reconfigured at any time (F41).
    async fn measure_config_warnings(&self) {
        let checkup = self.context.ledger.check_up().await;
        match &checkup {
            Ok(checkup) => self.show_config_warnings(&checkup.config_warnings),
            Err(error) => tracing::debug!(%error, "the ledger's hazards are not known"),
        }
        for name in LedgerConfigWarning::NAMES {
            let is_there = |checkup: &LedgerCheckup| {
                checkup.config_warnings.iter().any(|hazard| hazard.name() == name)
            };
            let shown = checkup.as_ref().map_or(f64::NAN, |checkup| flag(is_there(checkup)));
            self.context.metrics.ledger_hazards.of(name).set(shown);
        }
    }

    /// Logs once what is new of them, and what is over.
    fn show_config_warnings(&self, found: &[LedgerConfigWarning]) {
        let mut known = self.config_warnings.lock().expect("no holder of this lock panics");
        for over in known.extract_if(|hazard| !found.contains(hazard)) {
            tracing::info!(hazard = over.name(), "hazard of the ledger is over");
        }
        for hazard in found {
            if known.insert(hazard.clone()) {
                let (name, cure) = (hazard.name(), hazard.cure());
                tracing::warn!(hazard = name, cure, "hazard of the ledger: {hazard}");
            }
        }
    }

    /// Counts the entries of the outboxes. Partitions whose Redis is known to be away are not
    /// asked, and the first failure ends the read: each takes a `redis.command_timeout` and has the
    /// same cause. What was not read is not known.
    async fn measure_outboxes(&self, stop: &Stop) {
        let Some(redis) = &self.context.redis else { return };
        let stores = Stores::of(&self.context);
        for partition in 0..self.context.deployment.partitions {
            if stop.is_requested() {
                return;
            }
            if self.context.redis_health.away_for(partition).is_some() {
                self.show_outboxes(partition..=partition, None);
                continue;
            }
            match stores.survey(redis, partition, &[self.context.membership.node()]).await {
                Ok((_, outboxes)) => {
                    let entries = outboxes.iter().map(|(_, entries)| entries).sum();
                    self.show_outboxes(partition..=partition, Some(entries));
                }
                Err(error) => {
                    tracing::debug!(partition, %error, "outboxes are not counted");
                    return self.show_outboxes(partition.., None);
                }
            }
        }
    }

    /// Shows the entries of the outboxes of partitions that Redis may own; NaN where the number is
    /// unknown.
    fn show_outboxes(&self, which: impl RangeBounds<u32>, entries: Option<u64>) {
        let value = entries.map_or(f64::NAN, |entries| entries as f64);
        let owned = 0..self.context.deployment.partitions;
        for partition in owned.filter(|partition| which.contains(partition)) {
            self.partitions.of(partition).outbox_entries.set(value);
        }
    }
}

fn flag(is_set: bool) -> f64 {
    f64::from(u8::from(is_set))
}

fn owner_word(owner: &Owner) -> &'static str {
    match owner {
        Owner::None => "none",
        Owner::Redis { .. } => "redis",
        Owner::Database => "database",
    }
}

fn state_word(state: PartitionState) -> &'static str {
    match state {
        PartitionState::Open => "open",
        PartitionState::Recovering => "recovering",
        PartitionState::Opening => "opening",
        PartitionState::Held => "held",
    }
}
