//! Watches the other nodes: who is alive and what it sees of Redis, and who fell silent and must be
//! adopted.
//!
//! A node is silent when this observer, itself beating and reading throughout, saw its heartbeat
//! counter stand still for a whole `node.ttl` of its own monotonic clock (F18).

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::heartbeats::Heartbeats;
use super::outbox::{AdoptionError, adopt_outbox};
use crate::allocator::{Context, News};
use crate::ledger::{Adopted, At, LedgerError, Node, Owner, PartitionState, Sight};
use crate::node::NodeId;
use crate::task::{Task, Ticks};

/// Whoever has watched for fewer periods cannot tell who is alive.
const LOOK_BEATS: u32 = 4;

/// Watches the nodes and, in a service, adopts the silent ones.
pub struct Reconciler {
    context: Arc<Context>,
    heartbeats: Heartbeats,
    /// The only partition in which it adopts; none: in all.
    only: Option<u32>,
    last_look: Option<Instant>,
    /// Since when it has seen every beat.
    watching_since: Option<Instant>,
}

/// What a command's watch came to.
#[derive(Clone, Debug, Default)]
pub struct Adoptions {
    /// Nodes that were found silent.
    pub nodes: BTreeSet<NodeId>,
    /// What became of their entries.
    pub sum: Adopted,
    /// Nodes that neither beat nor could be adopted.
    pub rest: usize,
}

impl Reconciler {
    /// Starts the watch, one look per heartbeat.
    #[must_use]
    pub fn start(context: Arc<Context>) -> Task {
        let period = context.settings.node_heartbeat;
        let mut reconciler = Reconciler::new(context, None);
        Task::start("reconciler", move |stop| async move {
            reconciler.run(Ticks::every(period, stop)).await;
        })
    }

    fn new(context: Arc<Context>, only: Option<u32>) -> Self {
        Reconciler {
            context,
            heartbeats: Heartbeats::default(),
            only,
            last_look: None,
            watching_since: None,
        }
    }

    async fn run(&mut self, mut ticks: Ticks) {
        while ticks.next().await {
            match self.context.ledger.nodes().await {
                Ok(nodes) => {
                    let silent = self.silent(&nodes);
                    self.tell_peers(&nodes);
                    let metrics = &self.context.metrics;
                    metrics.nodes_silent.set(silent.len() as f64);
                    metrics.nodes_alive.set(self.alive(&nodes, &silent) as f64);
                    if !self.context.eager {
                        continue;
                    }
                    self.context.doubts.set(self.doubtful(&nodes));
                    for silent in silent {
                        // What became of it is in log, metrics and events.
                        let _ = self.adopt_node(&silent).await;
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "cannot read the nodes");
                    // Whoever could not look cannot tell silence from its own blindness.
                    self.look_away();
                    self.context.peers.forget();
                    let metrics = &self.context.metrics;
                    metrics.nodes_silent.set(f64::NAN);
                    metrics.nodes_alive.set(f64::NAN);
                }
            }
        }
    }

    /// Adopts what silent nodes left, in one partition or all, until every node beats or is
    /// adopted, at most for `patience`; for a command that has joined as a node.
    ///
    /// # Errors
    /// When the ledger cannot be read at the end.
    pub async fn adopt_silent(
        context: &Arc<Context>,
        only: Option<u32>,
        patience: Duration,
    ) -> Result<Adoptions, LedgerError> {
        let mut watch = Reconciler::new(Arc::clone(context), only);
        let (deadline, mut adoptions) = (Instant::now() + patience, Adoptions::default());
        loop {
            let nodes = context.ledger.nodes().await;
            if let Ok(nodes) = &nodes {
                for silent in watch.silent(nodes) {
                    adoptions.sum.add(watch.adopt_node(&silent).await);
                    adoptions.nodes.insert(silent.node_id);
                }
                adoptions.rest = nodes.iter().filter(|node| !watch.is_seen_to(node)).count();
            } else {
                watch.look_away();
            }
            if Instant::now() >= deadline || nodes.is_ok() && adoptions.rest == 0 {
                nodes?;
                return Ok(adoptions);
            }
            tokio::time::sleep(context.settings.node_heartbeat).await;
        }
    }

    /// How many nodes were seen to beat and are not silent. One that died before anybody looked is
    /// neither: it would be missed as soon as it is known to be silent.
    fn alive(&self, nodes: &[Node], silent: &[Node]) -> usize {
        let is_silent = |id| silent.iter().any(|node| node.node_id == id);
        let ids = nodes.iter().map(|node| node.node_id);
        ids.filter(|id| self.heartbeats.has_beaten(*id) && !is_silent(*id)).count()
    }

    /// Nodes whose heartbeat stood still for a whole time-to-live under this observer's eyes.
    fn silent(&mut self, nodes: &[Node]) -> Vec<Node> {
        let now = Instant::now();
        let ttl = self.context.settings.node_ttl;
        let blind = self.last_look.is_some_and(|last| now - last > ttl / 2);
        self.last_look = Some(now);
        if blind {
            self.look_away();
        }
        self.watching_since.get_or_insert(now);
        self.heartbeats.look(nodes, now);
        // A ledger that can be read but not written lets every beat stand still, ours too: then
        // nobody's silence means anything.
        let myself = self.context.membership.node();
        if self.heartbeats.stands_still(myself, ttl / 2, now) {
            self.look_away();
            return Vec::new();
        }
        let is_silent = |node: &&Node| {
            node.node_id != myself && self.heartbeats.stands_still(node.node_id, ttl, now)
        };
        nodes.iter().filter(is_silent).cloned().collect()
    }

    /// Starts over: what stood still meanwhile may only not have been looked at.
    fn look_away(&mut self) {
        self.heartbeats.look_away();
        self.watching_since = None;
    }

    /// Notes what the other live nodes see of Redis, those that have an opinion.
    fn tell_peers(&self, nodes: &[Node]) {
        let (myself, settings) = (self.context.membership.node(), &self.context.settings);
        let look_min = settings.node_heartbeat * LOOK_BEATS;
        if self.watching_since.is_none_or(|since| since.elapsed() < look_min) {
            return self.context.peers.forget();
        }
        // A node that pauses for a moment still sees what it saw: until it counts as silent, nobody
        // moves a partition behind its back (F22).
        let is_fresh = |node: &&Node| {
            node.node_id != myself && self.heartbeats.is_alive(node.node_id, settings.node_ttl)
        };
        let sights: Vec<Sight> =
            nodes.iter().filter(is_fresh).filter_map(|node| node.sight.clone()).collect();
        self.context.peers.set(self.context.deployment.partitions, sights);
    }

    /// Partitions of nodes that are not known to be alive.
    fn doubtful(&self, nodes: &[Node]) -> HashSet<u32> {
        let (ttl, myself) = (self.context.settings.node_ttl, self.context.membership.node());
        let is_absent =
            |node: &&Node| node.node_id != myself && !self.heartbeats.is_alive(node.node_id, ttl);
        let absent = nodes.iter().filter(is_absent);
        absent.flat_map(|node| node.partitions.iter().copied()).collect()
    }

    /// Adopts what a silent node left in each partition that it flew in, then retires it.
    async fn adopt_node(&mut self, dead: &Node) -> Adopted {
        let news = self.context.membership.news().borrow().clone();
        let mut sum = Adopted::default();
        let mut rest = 0;
        for partition in &dead.partitions {
            if self.only.is_some_and(|only| only != *partition) {
                rest += 1;
                continue;
            }
            if self.heartbeats.is_finished(dead.node_id, *partition) {
                continue;
            }
            match self.adopt(&news, *partition, dead.node_id).await {
                Ok(Some(adopted)) => {
                    self.heartbeats.finish(dead.node_id, *partition);
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
            return sum;
        }
        match self.context.ledger.retire_node(dead.node_id, dead.beat).await {
            Ok(true) => {
                self.context.metrics.nodes_died.increment(1);
                tracing::warn!(node = %dead.node_id, label = dead.label, ?sum, "adopted");
            }
            // It beats again: where it was barred it is told so and takes a new identity.
            Ok(false) => tracing::info!(node = %dead.node_id, "woke up while it was adopted"),
            Err(error) => {
                tracing::warn!(node = %dead.node_id, %error, "not retired yet");
                return sum;
            }
        }
        self.heartbeats.forget(dead.node_id);
        sum
    }

    /// Whether nothing is to be done (any more) about a node: it beats, or is adopted wherever it
    /// was to be.
    fn is_seen_to(&self, node: &Node) -> bool {
        let beats = self.heartbeats.has_beaten(node.node_id);
        let mut asked = node.partitions.iter().filter(|one| self.only.is_none_or(|o| o == **one));
        beats
            || node.node_id == self.context.membership.node()
            || self.only.is_some()
                && asked.all(|one| self.heartbeats.is_finished(node.node_id, *one))
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
        adopt_outbox(&self.context, redis, at, incarnation, dead).await.map(Some)
    }
}
