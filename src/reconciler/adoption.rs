//! Adopts the outboxes of nodes that fell silent: bar, read, journal, remove.
//!
//! A node is silent when this observer, itself beating and reading throughout, saw its heartbeat
//! counter stand still for a whole `node.ttl` of its own monotonic clock (F18). The node may only
//! be paused, so it is barred before its outbox is read (F7); when it wakes it is told so.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tokio::time::Instant;

use crate::allocator::{Context, News};
use crate::counter::{Barred, CounterError, Guard, OutboxEntry, OutboxPage, Redis, Trimmed};
use crate::ledger::{Adopted, At, Entry, LedgerError, Node, Owner, PartitionState};
use crate::node::NodeId;
use crate::task::{Task, Ticks};

/// Entries of an outbox read at once.
const PAGE_ENTRIES: u32 = 200;

/// Watches the nodes and adopts the silent ones.
pub struct Reconciler {
    context: Arc<Context>,
    observed: HashMap<NodeId, Observed>,
    /// Partitions of silent nodes that are done with, until the node is retired.
    done: HashSet<(NodeId, u32)>,
    last_look: Option<Instant>,
}

/// A node's heartbeat as last seen to move.
struct Observed {
    beat: i64,
    since: Instant,
    /// Whether it was seen to move at all.
    moved: bool,
}

/// Why an outbox could not be adopted now; it is tried again later.
#[derive(Debug, thiserror::Error)]
enum AdoptionError {
    #[error(transparent)]
    Redis(#[from] CounterError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("the partition has moved on")]
    MovedOn,
    #[error("entry of flight {flight} cannot be read by this version: {reason}")]
    Unreadable { flight: u64, reason: String },
}

impl Reconciler {
    /// Starts the watch, one look per heartbeat.
    #[must_use]
    pub fn start(context: Arc<Context>) -> Task {
        let period = context.settings.node_heartbeat;
        let mut reconciler =
            Reconciler { context, observed: HashMap::new(), done: HashSet::new(), last_look: None };
        Task::start("reconciler", move |stop| async move {
            reconciler.run(Ticks::every(period, stop)).await;
        })
    }

    async fn run(&mut self, mut ticks: Ticks) {
        while ticks.next().await {
            match self.context.ledger.nodes().await {
                Ok(nodes) => {
                    let silent = self.silent(&nodes);
                    self.context.doubts.set(self.doubtful(&nodes));
                    for silent in silent {
                        self.adopt_node(&silent).await;
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "cannot read the nodes");
                    // Whoever could not look cannot tell silence from its own blindness.
                    self.observed.clear();
                }
            }
        }
    }

    /// Nodes whose heartbeat stood still for a whole time-to-live under this observer's eyes.
    fn silent(&mut self, nodes: &[Node]) -> Vec<Node> {
        let now = Instant::now();
        let ttl = self.context.settings.node_ttl;
        let blind = self.last_look.is_some_and(|last| now - last > ttl / 2);
        self.last_look = Some(now);
        if blind {
            self.observed.clear();
        }
        self.observed.retain(|id, _| nodes.iter().any(|node| node.node_id == *id));
        for node in nodes {
            let fresh = Observed { beat: node.beat, since: now, moved: false };
            let seen = self.observed.entry(node.node_id).or_insert(fresh);
            if seen.beat != node.beat {
                *seen = Observed { beat: node.beat, since: now, moved: true };
            }
        }
        // A ledger that can be read but not written lets every beat stand still, ours too: then
        // nobody's silence means anything.
        let myself = self.context.membership.node();
        let stands_still = |id: &NodeId, limit| {
            self.observed.get(id).is_none_or(|observed| now - observed.since >= limit)
        };
        if stands_still(&myself, ttl / 2) {
            self.observed.clear();
            return Vec::new();
        }
        let is_silent = |node: &&Node| node.node_id != myself && stands_still(&node.node_id, ttl);
        nodes.iter().filter(is_silent).cloned().collect()
    }

    /// Partitions of nodes that are not known to be alive.
    fn doubtful(&self, nodes: &[Node]) -> HashSet<u32> {
        let (ttl, myself) = (self.context.settings.node_ttl, self.context.membership.node());
        let is_alive = |node: &Node| {
            let seen = self.observed.get(&node.node_id);
            seen.is_some_and(|seen| seen.moved && seen.since.elapsed() < ttl)
        };
        let absent = nodes.iter().filter(|node| node.node_id != myself && !is_alive(node));
        absent.flat_map(|node| node.partitions.iter().copied()).collect()
    }

    /// Adopts what a silent node left in each partition that it flew in, then retires it.
    async fn adopt_node(&mut self, dead: &Node) {
        let news = self.context.membership.news().borrow().clone();
        let mut sum = Adopted::default();
        let mut rest = 0;
        for partition in &dead.partitions {
            if self.done.contains(&(dead.node_id, *partition)) {
                continue;
            }
            match self.adopt(&news, *partition, dead.node_id).await {
                Ok(Some(adopted)) => {
                    self.done.insert((dead.node_id, *partition));
                    sum.add(adopted);
                }
                Ok(None) => rest += 1,
                Err(error) => {
                    // Tried again at the next look; the lanes see to what stands in its way.
                    tracing::info!(node = %dead.node_id, partition, %error, "not adopted yet");
                    rest += 1;
                }
            }
        }
        if rest > 0 {
            return;
        }
        match self.context.ledger.retire_node(dead.node_id, dead.beat).await {
            Ok(true) => tracing::warn!(node = %dead.node_id, label = dead.label, ?sum, "adopted"),
            // It beats again: where it was barred it is told so and takes a new identity.
            Ok(false) => tracing::info!(node = %dead.node_id, "woke up while it was adopted"),
            Err(error) => {
                tracing::warn!(node = %dead.node_id, %error, "not retired yet");
                return;
            }
        }
        self.done.retain(|(node, _)| *node != dead.node_id);
    }

    /// Adopts one outbox; `None` while the partition has no Redis owner to read it from.
    async fn adopt(
        &self,
        news: &News,
        partition: u32,
        dead: NodeId,
    ) -> Result<Option<Adopted>, AdoptionError> {
        let row = news.iter().find(|row| row.partition == partition);
        let Some((row, redis)) = row.zip(self.context.redis.as_ref()) else { return Ok(None) };
        let (PartitionState::Open, Owner::Redis { incarnation }) = (row.state, &row.owner) else {
            return Ok(None);
        };
        let at = At { partition, epoch: row.epoch };
        let node = self.context.membership.node();
        let guard = self.context.guard(at, incarnation, node);
        if redis.bar(&self.context.keys, &guard, dead).await? == Barred::Fenced {
            return Err(AdoptionError::MovedOn);
        }
        let (entries, complete) = self.read(redis, &guard, dead).await?;
        let last_flight = entries.last().map(|entry| entry.flight);
        let records = self.to_records(&entries, partition)?;
        let adopted = self.write(at, dead, &records, complete).await?;
        match last_flight {
            // What is not whole stays where it is, for whoever looks into it.
            Some(flight) if !complete => {
                tracing::error!(%dead, partition, flight, "outbox is not whole; it is kept");
            }
            Some(upto) => match redis.drop_outbox(&self.context.keys, &guard, dead, upto).await? {
                Trimmed::Removed(_) => {}
                Trimmed::Fenced | Trimmed::Barred => return Err(AdoptionError::MovedOn),
            },
            None => {}
        }
        self.context.metrics.adopted.increment(adopted.written);
        self.context.metrics.duplicates.increment(adopted.collided);
        if adopted.collided > 0 {
            let count = adopted.collided;
            tracing::error!(%dead, partition, count, "DUPLICATE numbers adopted");
        }
        let detail = serde_json::json!({
            "dead": dead.to_string(), "complete": complete, "written": adopted.written,
            "known": adopted.known, "discarded": adopted.discarded,
            "collided": adopted.collided,
        });
        self.context.event("adoption", at, node, detail).await;
        Ok(Some(adopted))
    }

    /// Journals a dead node's records in batches, and marks it as accounted for with the last one.
    /// A batch that the ledger refuses for its content is halved; a record that it refuses alone
    /// goes to `journal_rejected` (F13).
    async fn write(
        &self,
        at: At,
        dead: NodeId,
        records: &[Entry],
        complete: bool,
    ) -> Result<Adopted, AdoptionError> {
        let ledger = &self.context.ledger;
        let rows_max = self.context.settings.journal_batch_rows_max;
        let mut parts: Vec<&[Entry]> = records.chunks(rows_max).rev().collect();
        let mut sum = Adopted::default();
        while let Some(part) = parts.pop() {
            match ledger.adopt(at, dead, part, false).await {
                Ok(adopted) => sum.add(adopted),
                Err(LedgerError::Refused(reason)) if part.len() == 1 => {
                    let number = &part[0].number;
                    tracing::error!(%number, reason, "adopted record goes to journal_rejected");
                    self.context.metrics.rejected.increment(1);
                    ledger.reject(&part[0], &reason).await?;
                }
                Err(LedgerError::Refused(_)) => {
                    let (left, right) = part.split_at(part.len() / 2);
                    parts.extend([right, left]);
                }
                Err(error) => return Err(error.into()),
            }
        }
        ledger.adopt(at, dead, &[], complete).await?;
        Ok(sum)
    }

    /// Reads a barred node's whole outbox. The outbox is bounded by that node's journal queue.
    async fn read(
        &self,
        redis: &Redis,
        guard: &Guard,
        dead: NodeId,
    ) -> Result<(Vec<OutboxEntry>, bool), AdoptionError> {
        let (mut all, mut all_complete) = (Vec::<OutboxEntry>::new(), true);
        loop {
            let after = all.last().map_or(0, |entry| entry.flight);
            let keys = &self.context.keys;
            match redis.read_outbox(keys, guard, dead, after, PAGE_ENTRIES).await? {
                OutboxPage::Fenced => return Err(AdoptionError::MovedOn),
                OutboxPage::Entries { entries, complete } => {
                    all_complete &= complete;
                    let last_page = entries.len() < PAGE_ENTRIES as usize;
                    all.extend(entries);
                    if last_page {
                        return Ok((all, all_complete));
                    }
                }
            }
        }
    }

    /// Makes journal entries of outbox entries. One that cannot be read leaves the outbox as it is:
    /// a newer version of the program may read it.
    fn to_records(
        &self,
        entries: &[OutboxEntry],
        partition: u32,
    ) -> Result<Vec<Entry>, AdoptionError> {
        let mut records = Vec::new();
        for entry in entries {
            let at = At { partition, epoch: entry.epoch };
            for (taken, record) in &entry.allocations {
                let record = Entry::of_flight(at, taken.clone(), record)
                    .map_err(|reason| AdoptionError::Unreadable { flight: entry.flight, reason })?;
                records.push(record);
            }
        }
        Ok(records)
    }
}
