//! Compares Redis with the ledger, counter by counter and outbox by outbox. Reads only.
//!
//! What is compared moves: `taken` is read before Redis and the ceiling after it, and what looks
//! wrong is checked again until it has had time to come right. What was handed out and is not
//! journaled yet is no finding: it lies in an outbox, and its node beats (F42).

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use super::underway::Underway;
use super::{Backlog, Life, RecoveryError, Stores, backlogs, observe};
use crate::backoff::Backoff;
use crate::ledger::{Counter, LedgerError, Owner, Partition, PartitionState, Span};
use crate::node::NodeId;
use crate::redis::{CounterState, Inspection, Redis};

/// Findings listed; the comparison ends when there are so many.
const FINDINGS_MAX: usize = 100;

/// First and longest wait between two polls.
const POLL: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));

/// Least time for a heartbeat to be seen, where there is an outbox.
const BEAT: Duration = Duration::from_secs(1);

/// How Redis compares with the ledger.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RedisReport {
    /// Counters compared.
    pub counters: u64,
    /// Counters that Redis does not hold although the ledger has seeded them in this epoch. Their
    /// next touch brings a recovery; no number is at stake.
    pub missing: u64,
    /// Partitions that could not be compared, and why.
    pub not_compared: BTreeMap<u32, String>,
    /// Counters with values that no script has set.
    pub deviations: Vec<Deviation>,
    /// Outboxes with allocations that no process journals.
    pub unjournaled: Vec<Backlog>,
    /// Outboxes whose allocations wait longer than the patience, of nodes that beat: their journal
    /// is late, and they are no finding.
    pub waiting: Vec<Backlog>,
}

/// A counter in Redis with a value that it should not have.
#[derive(Clone, Debug, Serialize)]
pub struct Deviation {
    /// What is wrong.
    pub kind: DeviationKind,
    /// The partition.
    pub partition: u32,
    /// The counter.
    pub counter_id: i64,
    /// Its key.
    pub counter_key: String,
    /// Highest value taken, by Redis; none where it is damaged.
    pub redis_value: Option<i64>,
    /// Its bound, by Redis.
    pub redis_ceiling: Option<i64>,
    /// Highest value taken, by the ledger.
    pub taken: i64,
    /// Its bound, by the ledger.
    pub ceiling: i64,
}

/// What is wrong with a counter in Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviationKind {
    /// Lower than the journal: numbers would be issued again.
    Lower,
    /// Higher than all that is journaled or lies in an outbox: numbers would be left out.
    Higher,
    /// Above the ledger's ceiling: numbers of the next epoch would be issued in this one.
    Beyond,
    /// Its fields do not fit each other: the next flight brings a recovery (F3).
    Damaged,
}

impl RedisReport {
    /// Whether Redis holds nothing that contradicts the ledger.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.deviations.is_empty() && self.unjournaled.is_empty()
    }
}

impl fmt::Display for RedisReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "in redis    {} counters compared, {} missing", self.counters, self.missing)?;
        for (partition, reason) in &self.not_compared {
            writeln!(f, "partition {partition} is not compared: {reason}")?;
        }
        for Deviation { kind, counter_id, counter_key, taken, ceiling, redis_value, .. } in
            &self.deviations
        {
            let kind = format!("{kind:?}").to_lowercase();
            let value = redis_value.map_or_else(|| "unreadable".to_owned(), |v| v.to_string());
            writeln!(
                f,
                "{kind}: counter {counter_id} ({counter_key}): {value} in redis, \
                 {taken} of {ceiling} in the ledger"
            )?;
        }
        for Backlog { partition, node_id, unjournaled, .. } in &self.unjournaled {
            writeln!(
                f,
                "unjournaled: {unjournaled} allocations in the outbox of node {node_id} \
                 in partition {partition}"
            )?;
        }
        for Backlog { partition, node_id, unjournaled, .. } in &self.waiting {
            writeln!(
                f,
                "waiting: {unjournaled} allocations for the journal of node {node_id}, which \
                 lives, in partition {partition}"
            )?;
        }
        Ok(())
    }
}

/// The comparison under way.
pub(super) struct Comparison<'a> {
    stores: &'a Stores,
    redis: &'a Redis,
    time_limit: Duration,
    pub(super) report: RedisReport,
}

/// A partition's epoch in Redis.
struct Epoch {
    partition: u32,
    epoch: u64,
    incarnation: String,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(stores: &'a Stores, redis: &'a Redis, time_limit: Duration) -> Self {
        Comparison { stores, redis, time_limit, report: RedisReport::default() }
    }

    /// Compares a page of counters as the ledger showed them a moment ago.
    pub(super) async fn page(&mut self, counters: &[Counter]) -> Result<(), LedgerError> {
        for epoch in epochs(&self.stores.ledger.partitions().await?) {
            let of_epoch = |counter: &&Counter| {
                (counter.partition, counter.epoch) == (epoch.partition, epoch.epoch)
            };
            let counters: Vec<&Counter> = counters.iter().filter(of_epoch).collect();
            let is_given_up = self.report.not_compared.contains_key(&epoch.partition)
                || self.report.deviations.len() >= FINDINGS_MAX;
            if !counters.is_empty() && !is_given_up {
                self.inspect(&epoch, &counters).await?;
            }
        }
        Ok(())
    }

    async fn inspect(&mut self, epoch: &Epoch, counters: &[&Counter]) -> Result<(), LedgerError> {
        let Epoch { partition, epoch, incarnation } = epoch;
        let names: Vec<String> = counters.iter().map(|counter| counter.name()).collect();
        let at = (*partition, *epoch, incarnation.as_str());
        let states = match self.redis.inspect(&self.stores.keys, at, &names).await {
            Ok(Inspection::Counters(states)) => states,
            Ok(Inspection::Fenced { reason }) => {
                self.not_compared(*partition, reason);
                return Ok(());
            }
            Err(error) => {
                self.not_compared(*partition, error.to_string());
                return Ok(());
            }
        };
        let deadline = Instant::now() + self.time_limit;
        for (counter, state) in counters.iter().zip(states) {
            self.report.counters += 1;
            self.report.missing += u64::from(state == CounterState::Cold);
            if let Some(deviation) = self.judge(counter, state, deadline).await? {
                self.report.deviations.push(deviation);
            }
        }
        self.report.deviations.truncate(FINDINGS_MAX);
        Ok(())
    }

    fn not_compared(&mut self, partition: u32, reason: String) {
        self.report.not_compared.insert(partition, reason);
    }

    /// The values of a counter that are on their way to the journal; none where Redis does not
    /// answer.
    pub(super) async fn underway(
        &mut self,
        partition: u32,
        counter_id: i64,
    ) -> Result<Underway, LedgerError> {
        if self.report.not_compared.contains_key(&partition) {
            return Ok(Underway::default());
        }
        let counters = HashSet::from([counter_id]);
        match Underway::read(self.stores, self.redis, partition, &counters).await {
            Ok(underway) => Ok(underway),
            Err(RecoveryError::Ledger(error)) => Err(error),
            Err(error) => {
                self.not_compared(partition, error.to_string());
                Ok(Underway::default())
            }
        }
    }

    /// What is wrong with a counter, once the ledger has had time to catch up with Redis.
    async fn judge(
        &mut self,
        counter: &Counter,
        state: CounterState,
        deadline: Instant,
    ) -> Result<Option<Deviation>, LedgerError> {
        let mut row = counter.clone();
        let mut wait = Backoff::new(POLL.0, POLL.1);
        loop {
            // `taken` was read before Redis: only that reading can find Redis too low.
            let kind = match deviation(&row, state) {
                Some(DeviationKind::Lower) if row.taken != counter.taken => return Ok(None),
                Some(kind) => kind,
                None => return Ok(None),
            };
            if !matches!(kind, DeviationKind::Higher | DeviationKind::Beyond) {
                return Ok(Some(describe(&row, state, kind)));
            }
            let is_last = Instant::now() >= deadline;
            // Behind Redis' counter and before the ledger's: what leaves an outbox is journaled.
            let underway = self.underway(counter.partition, counter.counter_id).await?;
            let Counter { series_id, serial, key, .. } = counter;
            match self.stores.ledger.counters().get(*series_id, serial, key).await? {
                Some(now) if now.epoch == counter.epoch => row = now,
                // Its epoch has ended: what Redis showed does not count any more.
                _ => return Ok(None),
            }
            if is_explained(&row, state, &underway) {
                return Ok(None);
            }
            if is_last {
                return Ok(deviation(&row, state).map(|kind| describe(&row, state, kind)));
            }
            wait.wait().await;
        }
    }

    /// Looks for allocations in outboxes that stay unjournaled.
    pub(super) async fn outboxes(&mut self) -> Result<(), LedgerError> {
        let partitions = self.stores.ledger.partitions().await?;
        let nodes: Vec<_> =
            self.stores.ledger.nodes().list().await?.into_iter().map(|node| node.node_id).collect();
        let deadline = Instant::now() + self.time_limit;
        for row in partitions {
            let partition = row.partition;
            if self.report.not_compared.contains_key(&partition) {
                continue;
            }
            let found = match backlogs(self.stores, self.redis, partition, &nodes).await {
                Ok(found) => found,
                Err(RecoveryError::Ledger(error)) => return Err(error),
                Err(error) => {
                    self.not_compared(partition, error.to_string());
                    continue;
                }
            };
            let stuck = found.into_iter().filter(|found| found.unjournaled > 0).collect();
            let stuck = self.wait_for(partition, stuck, deadline).await?;
            self.report.unjournaled.extend(stuck);
        }
        if self.report.unjournaled.is_empty() {
            return Ok(());
        }
        // A node that beats has them in memory, and journals them.
        let seen = observe(&self.stores.ledger, self.time_limit.max(BEAT)).await?;
        let beating: HashSet<NodeId> = seen.of(Life::Alive).map(|node| node.node_id).collect();
        let lives = |backlog: &Backlog| backlog.node().is_some_and(|node| beating.contains(&node));
        let stuck = std::mem::take(&mut self.report.unjournaled);
        (self.report.waiting, self.report.unjournaled) = stuck.into_iter().partition(lives);
        Ok(())
    }

    /// Those backlogs that have not moved on by the deadline.
    async fn wait_for(
        &mut self,
        partition: u32,
        mut stuck: Vec<Backlog>,
        deadline: Instant,
    ) -> Result<Vec<Backlog>, LedgerError> {
        let mut wait = Backoff::new(POLL.0, POLL.1);
        while !stuck.is_empty() && Instant::now() < deadline {
            wait.wait().await;
            let nodes: Vec<_> = stuck.iter().filter_map(Backlog::node).collect();
            let now = match backlogs(self.stores, self.redis, partition, &nodes).await {
                Ok(now) => now,
                Err(RecoveryError::Ledger(error)) => return Err(error),
                Err(error) => {
                    self.not_compared(partition, error.to_string());
                    return Ok(Vec::new());
                }
            };
            stuck.retain(|one| {
                let same = |now: &&Backlog| now.node_id == one.node_id;
                now.iter().find(same).is_some_and(|now| now.first_flight == one.first_flight)
            });
        }
        Ok(stuck)
    }
}

/// The epochs that Redis owns now.
fn epochs(rows: &[Partition]) -> impl Iterator<Item = Epoch> {
    rows.iter().filter_map(|row| match (&row.owner, row.state) {
        (Owner::Redis { incarnation }, PartitionState::Open) => Some(Epoch {
            partition: row.partition,
            epoch: row.epoch,
            incarnation: incarnation.clone(),
        }),
        _ => None,
    })
}

/// How a counter in Redis deviates from its row.
fn deviation(row: &Counter, state: CounterState) -> Option<DeviationKind> {
    match state {
        CounterState::Cold => None,
        CounterState::Regressed => Some(DeviationKind::Damaged),
        CounterState::Warm { counter_id, .. } if counter_id != row.counter_id => {
            Some(DeviationKind::Damaged)
        }
        CounterState::Warm { value, ceiling, .. } if value.max(ceiling) > row.ceiling => {
            Some(DeviationKind::Beyond)
        }
        CounterState::Warm { value, .. } if value > row.taken => Some(DeviationKind::Higher),
        CounterState::Warm { value, .. } if value < row.taken => Some(DeviationKind::Lower),
        CounterState::Warm { .. } => None,
    }
}

/// Whether all that Redis counts beyond the journal is on its way there, or is there by now.
fn is_explained(row: &Counter, state: CounterState, underway: &Underway) -> bool {
    match (deviation(row, state), state) {
        (None | Some(DeviationKind::Lower), _) => true,
        (Some(DeviationKind::Higher), CounterState::Warm { value, .. }) => {
            let unsigned = |value: i64| u64::try_from(value).unwrap_or_default();
            let first = unsigned(row.taken.saturating_add_unsigned(row.step));
            let run = Span { first, last: unsigned(value) };
            let is_on_step = value.abs_diff(row.taken).is_multiple_of(row.step);
            is_on_step && underway.left_of(row.counter_id, run, row.step).is_empty()
        }
        _ => false,
    }
}

fn describe(row: &Counter, state: CounterState, kind: DeviationKind) -> Deviation {
    let (redis_value, redis_ceiling) = match state {
        CounterState::Warm { value, ceiling, .. } => (Some(value), Some(ceiling)),
        _ => (None, None),
    };
    Deviation {
        kind,
        partition: row.partition,
        counter_id: row.counter_id,
        counter_key: row.key.clone(),
        redis_value,
        redis_ceiling,
        taken: row.taken,
        ceiling: row.ceiling,
    }
}
