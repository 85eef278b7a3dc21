//! Which nodes are alive, for reports: a short watch of the heartbeats.
//!
//! A node that takes over others must itself beat and read throughout (F18): `watch` does. A
//! heartbeat that does not move is evidence only where heartbeats can be written at all: in a
//! ledger that is read-only, full or locked none of them moves.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::ledger::{LedgerError, Node, SharedLedger};
use crate::node::NodeId;

/// The observed state of a node's heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It moved.
    Alive,
    /// It did not move, while heartbeats could be written.
    Silent,
    /// It did not move, and neither would that of a living process.
    Unknown,
}

/// A node, and what was seen of its heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The node.
    pub node: Node,
    /// Whether it lives.
    pub life: Life,
}

/// What a watch has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The nodes that have not left.
    pub nodes: Vec<Observed>,
    /// Why the ledger takes no heartbeats, where it takes none: then it is unknown which nodes are
    /// dead.
    pub untold: Option<String>,
}

impl Observation {
    /// The nodes of which this was seen.
    pub fn of(&self, life: Life) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(move |seen| seen.life == life).map(|seen| &seen.node)
    }
}

/// Watches all heartbeats until each has moved, at most for `time_limit`. Where one does not move,
/// its row is written unchanged, at half of the time and at its end: a living process has half of
/// the time to move its own.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn observe(
    ledger: &SharedLedger,
    time_limit: Duration,
) -> Result<Observation, LedgerError> {
    let (deadline, half) = (Instant::now() + time_limit, Instant::now() + time_limit / 2);
    let mut wait = Backoff::new(Duration::from_millis(20), Duration::from_millis(200));
    let mut first_seen: HashMap<NodeId, i64> = HashMap::new();
    let mut at_half: Option<Result<(), String>> = None;
    loop {
        let nodes = ledger.nodes().list().await?;
        let beats = |node: &Node| first_seen.get(&node.node_id).is_some_and(|at| *at != node.beat);
        let still = nodes.iter().find(|node| !beats(node)).map(|node| node.node_id);
        if still.is_none() && !nodes.is_empty() {
            let alive = |node| Observed { node, life: Life::Alive };
            return Ok(Observation { nodes: nodes.into_iter().map(alive).collect(), untold: None });
        }
        if at_half.is_none() && (nodes.is_empty() || Instant::now() >= half) {
            at_half = Some(takes_heartbeats(ledger, still).await);
        }
        if nodes.is_empty() || Instant::now() >= deadline {
            let at_end = takes_heartbeats(ledger, still).await;
            let nodes: Vec<(Node, bool)> =
                nodes.into_iter().map(|node| (node.clone(), beats(&node))).collect();
            let untold = at_half.and_then(Result::err).or(at_end.err());
            let of = |(node, is_alive): (Node, bool)| {
                let life = match (is_alive, &untold) {
                    (true, _) => Life::Alive,
                    (false, None) => Life::Silent,
                    (false, Some(_)) => Life::Unknown,
                };
                Observed { node, life }
            };
            return Ok(Observation { nodes: nodes.into_iter().map(of).collect(), untold });
        }
        for node in nodes {
            first_seen.entry(node.node_id).or_insert(node.beat);
        }
        wait.wait().await;
    }
}

/// Whether the ledger takes heartbeats now, or why not.
async fn takes_heartbeats(ledger: &SharedLedger, still: Option<NodeId>) -> Result<(), String> {
    ledger.nodes().takes_heartbeats(still).await.map_err(|error| error.to_string())
}
