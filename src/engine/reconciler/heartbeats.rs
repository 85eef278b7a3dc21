//! What one observer has seen of the other nodes' heartbeats, and what it has done about those that
//! fell silent. Knows no store; times are given to it.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tokio::time::Instant;

use crate::ledger::Node;
use crate::node::NodeId;

/// Heartbeats as last seen to move, and partitions of silent nodes that are done with.
#[derive(Debug, Default)]
pub(super) struct Heartbeats {
    beats: HashMap<NodeId, Beat>,
    /// With the heartbeat of the node: until it is retired, or beats again.
    done: HashSet<(NodeId, i64, u32)>,
}

/// A node's heartbeat as last seen to move.
#[derive(Debug)]
struct Beat {
    beat: i64,
    since: Instant,
    /// Whether it was seen to move at all.
    moved: bool,
}

impl Heartbeats {
    /// Takes in what the ledger shows now.
    pub(super) fn poll(&mut self, nodes: &[Node], now: Instant) {
        self.beats.retain(|id, _| nodes.iter().any(|node| node.node_id == *id));
        for node in nodes {
            let fresh = Beat { beat: node.beat, since: now, moved: false };
            let seen = self.beats.entry(node.node_id).or_insert(fresh);
            if seen.beat != node.beat {
                *seen = Beat { beat: node.beat, since: now, moved: true };
                // It was only paused, and may send flights again in an epoch that knows of no bar:
                // what it leaves from now on is another outbox.
                self.forget(node.node_id);
            }
        }
    }

    /// Starts over: a heartbeat that did not move meanwhile may only not have been read.
    pub(super) fn look_away(&mut self) {
        self.beats.clear();
    }

    /// Whether a node was not seen to beat for so long.
    pub(super) fn stands_still(&self, node: NodeId, period: Duration, now: Instant) -> bool {
        self.beats.get(&node).is_none_or(|seen| now - seen.since >= period)
    }

    /// Whether a node was seen to beat within a period.
    pub(super) fn is_alive(&self, node: NodeId, period: Duration) -> bool {
        self.beats.get(&node).is_some_and(|seen| seen.moved && seen.since.elapsed() < period)
    }

    /// Whether a node was seen to beat at all.
    pub(super) fn has_beaten(&self, node: NodeId) -> bool {
        self.beats.get(&node).is_some_and(|seen| seen.moved)
    }

    /// Nothing more is to be done in a partition about a node with this heartbeat: what it leaves
    /// after a later one is another outbox, whenever this is called.
    pub(super) fn finish(&mut self, node: &Node, partition: u32) {
        self.done.insert((node.node_id, node.beat, partition));
    }

    /// Whether nothing more is to be done about it there.
    pub(super) fn is_finished(&self, node: &Node, partition: u32) -> bool {
        self.done.contains(&(node.node_id, node.beat, partition))
    }

    /// The node is retired, or alive: whatever it leaves later is to be seen to anew.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.done.retain(|(done, _, _)| *done != node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(node_id: NodeId, beat: i64) -> Node {
        Node {
            node_id,
            beat,
            label: String::new(),
            version: String::new(),
            started_at_us: 0,
            clock_ahead_us: None,
            partitions: vec![1],
            sight: None,
            words: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_was_adopted_and_beats_again_is_adopted_anew_when_it_falls_silent() {
        let (mut heartbeats, id) = (Heartbeats::default(), NodeId::random());
        let period = Duration::from_secs(1);
        heartbeats.poll(&[node(id, 7)], Instant::now());
        assert!(!heartbeats.is_alive(id, period) && !heartbeats.has_beaten(id));
        tokio::time::advance(period).await;
        heartbeats.poll(&[node(id, 7)], Instant::now());
        assert!(heartbeats.stands_still(id, period, Instant::now()));
        heartbeats.finish(&node(id, 7), 1);
        heartbeats.poll(&[node(id, 7)], Instant::now());
        assert!(heartbeats.is_finished(&node(id, 7), 1), "still silent");
        heartbeats.poll(&[node(id, 8)], Instant::now());
        assert!(heartbeats.is_alive(id, period) && !heartbeats.is_finished(&node(id, 8), 1));
        // An adoption that began before it woke ends only now.
        heartbeats.finish(&node(id, 7), 1);
        assert!(!heartbeats.is_finished(&node(id, 8), 1));
        tokio::time::advance(period).await;
        assert!(heartbeats.stands_still(id, period, Instant::now()));
        heartbeats.look_away();
        assert!(!heartbeats.has_beaten(id));
    }
}
