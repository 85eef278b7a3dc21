//! Watches the other nodes: which are alive and what they see of Redis, and which fell silent and
//! must be taken over.
//!
//! A node is silent when this observer, itself beating and reading throughout, saw its heartbeat
//! counter unchanged for a whole `node.ttl` of its own monotonic clock (F18). A takeover may take
//! long: it runs apart from the watch, which continues (F31).

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::adopting::{self, Adoption};
use super::heartbeats::Heartbeats;
use super::loans;
use crate::engine::node::{Context, Other};
use crate::ledger::{Adopted, LedgerError, Node};
use crate::node::NodeId;
use crate::task::{Task, Ticks};

/// An observer of fewer periods cannot know which nodes are alive.
const POLL_BEATS: u32 = 4;

/// Silent nodes that are taken over at the same time, each in a separate task; more wait.
const ADOPTIONS_MAX: usize = 2;

/// Watches the nodes and, in a service, adopts the silent ones.
pub struct Reconciler {
    context: Arc<Context>,
    heartbeats: Heartbeats,
    /// The only partition in which it adopts; none: in all.
    only: Option<u32>,
    last_look: Option<Instant>,
    /// Since when it has seen every beat.
    watching_since: Option<Instant>,
    /// Whether its own heartbeat did not move at the last check.
    is_numb: bool,
    /// The silent nodes that are being adopted.
    under_way: HashMap<tokio::task::Id, NodeId>,
    /// The last of them: the next one comes after it.
    last_started: Option<NodeId>,
    adoptions: JoinSet<Adoption>,
}

/// The result of a command's watch.
#[derive(Clone, Debug, Default)]
pub struct Adoptions {
    /// Nodes that were found silent.
    pub nodes: BTreeSet<NodeId>,
    /// The outcome of their entries.
    pub sum: Adopted,
    /// Nodes that neither beat nor could be adopted.
    pub rest: usize,
}

impl Reconciler {
    /// Starts the watch, one poll per heartbeat.
    #[must_use]
    pub fn start(context: Arc<Context>) -> Task {
        let period = context.settings.node_heartbeat();
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
            is_numb: false,
            under_way: HashMap::new(),
            last_started: None,
            adoptions: JoinSet::new(),
        }
    }

    async fn run(&mut self, mut ticks: Ticks) {
        while ticks.next().await {
            self.take_adoptions();
            match self.context.ledger.nodes().list().await {
                Ok(nodes) => {
                    let silent = self.silent(&nodes);
                    self.set_cluster_health(&nodes);
                    let metrics = &self.context.metrics;
                    metrics.nodes_silent.set(silent.len() as f64);
                    metrics.nodes_alive.set(self.alive(&nodes, &silent) as f64);
                    if !self.context.eager {
                        continue;
                    }
                    self.context.unjournaled.set(self.unjournaled(&nodes));
                    loans::take_back_from_ended(&self.context, &nodes).await;
                    self.start_adoptions(silent);
                }
                Err(error) => {
                    tracing::debug!(%error, "cannot read the nodes");
                    // An observer that could not read cannot tell a silent node from its own
                    // failure.
                    self.look_away();
                    self.context.cluster_health.forget();
                    let metrics = &self.context.metrics;
                    metrics.nodes_silent.set(f64::NAN);
                    metrics.nodes_alive.set(f64::NAN);
                }
            }
        }
        // Ledger and Redis work is never cancelled: the end of the process waits as long as it
        // wants to.
        while self.adoptions.join_next().await.is_some() {}
    }

    /// Has silent nodes taken over apart from the watch, in turn: some may fail again and again.
    fn start_adoptions(&mut self, mut silent: Vec<Node>) {
        let last = silent.iter().position(|node| Some(node.node_id) == self.last_started);
        silent.rotate_left(last.map_or(0, |place| place + 1));
        for node in silent {
            if self.adoptions.len() >= ADOPTIONS_MAX {
                return;
            }
            let dead = node.node_id;
            if !self.under_way.values().any(|adopted| *adopted == dead) {
                let (context, partitions) = (Arc::clone(&self.context), self.open_with(&node));
                let task = self.adoptions.spawn(adopting::adopt_node(context, node, partitions));
                self.under_way.insert(task.id(), dead);
                self.last_started = Some(dead);
            }
        }
    }

    /// Takes in the outcome of adoptions. What they came to is in log, metrics and events.
    fn take_adoptions(&mut self) {
        while let Some(ended) = self.adoptions.try_join_next_with_id() {
            match ended {
                Ok((task, adoption)) => {
                    self.under_way.remove(&task);
                    self.note(&adoption);
                }
                Err(failure) => {
                    let node = self.under_way.remove(&failure.id());
                    tracing::error!(?node, %failure, "an adoption panicked; it is tried again");
                    self.context.metrics.jobs_failed.increment(1);
                }
            }
        }
    }

    /// Notes what is done with about a silent node.
    fn note(&mut self, adoption: &Adoption) {
        for partition in &adoption.finished {
            self.heartbeats.finish(&adoption.node, *partition);
        }
        if adoption.is_over {
            self.heartbeats.forget(adoption.node.node_id);
        }
    }

    /// The partitions in which a silent node is still to be adopted; `None` for those that are not
    /// this watch's business.
    fn open_with(&self, node: &Node) -> Vec<Option<u32>> {
        let is_open = |partition: &&u32| !self.heartbeats.is_finished(node, **partition);
        let is_mine = |partition: &u32| self.only.is_none_or(|only| only == *partition);
        let open = node.partitions.iter().filter(is_open);
        open.map(|partition| Some(*partition).filter(is_mine)).collect()
    }

    /// Takes over what silent nodes left, in one partition or all, until every node beats or is
    /// taken over, at most for `time_limit`; for a command that has joined as a node.
    ///
    /// # Errors
    /// When the ledger cannot be read at the end, or takes no heartbeats: then it is unknown which
    /// nodes are silent.
    pub async fn adopt_silent(
        context: &Arc<Context>,
        only: Option<u32>,
        time_limit: Duration,
    ) -> Result<Adoptions, LedgerError> {
        let mut watch = Reconciler::new(Arc::clone(context), only);
        let (deadline, mut adoptions) = (Instant::now() + time_limit, Adoptions::default());
        loop {
            let nodes = context.ledger.nodes().list().await;
            if let Ok(nodes) = &nodes {
                for silent in watch.silent(nodes) {
                    adoptions.nodes.insert(silent.node_id);
                    let partitions = watch.open_with(&silent);
                    let adoption =
                        adopting::adopt_node(Arc::clone(context), silent, partitions).await;
                    watch.note(&adoption);
                    adoptions.sum.add(adoption.sum);
                }
                adoptions.rest = nodes.iter().filter(|node| !watch.is_seen_to(node)).count();
            } else {
                watch.look_away();
            }
            if Instant::now() >= deadline || nodes.is_ok() && adoptions.rest == 0 {
                nodes?;
                if adoptions.rest > 0 && watch.is_numb {
                    let cause = "it takes no heartbeats, so nobody can tell who lives".into();
                    return Err(LedgerError::Unreachable { cause, maybe_written: false });
                }
                return Ok(adoptions);
            }
            tokio::time::sleep(context.settings.node_heartbeat()).await;
        }
    }

    /// How many nodes were seen to beat and are not silent. A node that died before the first check
    /// is neither: it would be missed as soon as it is known to be silent.
    fn alive(&self, nodes: &[Node], silent: &[Node]) -> usize {
        let is_silent = |id| silent.iter().any(|node| node.node_id == id);
        let ids = nodes.iter().map(|node| node.node_id);
        ids.filter(|id| self.heartbeats.has_beaten(*id) && !is_silent(*id)).count()
    }

    /// Nodes whose heartbeat did not move for a whole time-to-live under this observer's watch.
    fn silent(&mut self, nodes: &[Node]) -> Vec<Node> {
        let now = Instant::now();
        let ttl = self.context.settings.node_ttl;
        let blind = self.last_look.is_some_and(|last| now - last > ttl / 2);
        self.last_look = Some(now);
        if blind {
            self.look_away();
        }
        self.watching_since.get_or_insert(now);
        self.heartbeats.poll(nodes, now);
        // In a ledger that can be read but not written no heartbeat moves, the own one included:
        // then a node's silence means nothing.
        let myself = self.context.membership.node();
        let stands_still = self.heartbeats.stands_still(myself, ttl / 2, now);
        self.is_numb = stands_still || self.is_numb && !self.heartbeats.has_beaten(myself);
        if stands_still {
            self.look_away();
            return Vec::new();
        }
        let is_silent = |node: &&Node| {
            node.node_id != myself && self.heartbeats.stands_still(node.node_id, ttl, now)
        };
        nodes.iter().filter(is_silent).cloned().collect()
    }

    /// Starts over: a heartbeat that did not move meanwhile may only not have been read.
    fn look_away(&mut self) {
        self.heartbeats.look_away();
        self.watching_since = None;
    }

    /// Notes what the other live nodes see of Redis, those that have an opinion.
    fn set_cluster_health(&self, nodes: &[Node]) {
        let (myself, settings) = (self.context.membership.node(), &self.context.settings);
        let look_min = settings.node_heartbeat() * POLL_BEATS;
        if self.watching_since.is_none_or(|since| since.elapsed() < look_min) {
            return self.context.cluster_health.forget();
        }
        // A node that pauses for a moment still sees what it saw: until it counts as silent, no
        // partition is moved without it (F22).
        let is_fresh = |node: &&Node| {
            node.node_id != myself && self.heartbeats.is_alive(node.node_id, settings.node_ttl)
        };
        let others = nodes.iter().filter(is_fresh).filter_map(Other::of).collect();
        self.context.cluster_health.set(self.context.deployment.partitions, others);
        if self.context.eager {
            self.context.isolation.poll(&self.context);
        }
    }

    /// Partitions of nodes that are not known to be alive.
    fn unjournaled(&self, nodes: &[Node]) -> HashSet<u32> {
        let (ttl, myself) = (self.context.settings.node_ttl, self.context.membership.node());
        let is_absent =
            |node: &&Node| node.node_id != myself && !self.heartbeats.is_alive(node.node_id, ttl);
        let absent = nodes.iter().filter(is_absent);
        absent.flat_map(|node| node.partitions.iter().copied()).collect()
    }

    /// Whether nothing is to be done (any more) about a node: it beats, or is adopted wherever it
    /// was to be.
    fn is_seen_to(&self, node: &Node) -> bool {
        let beats = self.heartbeats.has_beaten(node.node_id);
        let mut asked = node.partitions.iter().filter(|one| self.only.is_none_or(|o| o == **one));
        beats
            || node.node_id == self.context.membership.node()
            || self.only.is_some() && asked.all(|one| self.heartbeats.is_finished(node, *one))
    }
}
