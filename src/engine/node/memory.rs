//! What this process can report should the ledger go back under it: its identities, its heartbeats,
//! and the nodes that it has met (F25).
//!
//! Knows no store; times are arguments. What it has forgotten it reports as forgotten: a gap never
//! looks like nothing to report.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use crate::ledger::Confirmed;
use crate::node::NodeId;

/// Heartbeats that are remembered: four minutes of them by default, longer than records are.
const BEATS_MAX: usize = 1_024;
/// Other nodes that are remembered.
const NODES_MAX: usize = 4_096;

/// The memory.
#[derive(Debug)]
pub(super) struct Memory {
    identities: BTreeSet<NodeId>,
    beats: VecDeque<Beat>,
    /// When each other node was last seen in the ledger.
    met: BTreeMap<NodeId, Instant>,
    /// How long a node is remembered that is not seen any more.
    keep: Duration,
    /// When the last node was seen that is not remembered.
    forgot: Option<Instant>,
    acquaintance: Acquaintance,
    /// It has reported that it does not remember enough, and no operator has decided since.
    is_stuck: bool,
}

/// A heartbeat that was confirmed: whatever was committed before it was sent is in every ledger
/// that has it.
#[derive(Clone, Copy, Debug)]
struct Beat {
    node: NodeId,
    beat: i64,
    nonce: Uuid,
    sent_at: Instant,
}

/// Whether another node has met the current identity: an identity that no other node knows would
/// not be missed.
#[derive(Debug, Default)]
enum Acquaintance {
    /// It has not read the nodes.
    #[default]
    New,
    /// The others that it met, with their heartbeats at the beginning and now, and since when they
    /// have not moved.
    Waits { first: BTreeMap<NodeId, i64>, last: BTreeMap<NodeId, i64>, since: Instant },
    /// Another process has read its row, or there is none that lives.
    Met,
}

/// Two heartbeats of another node after this one's registration: between them it has read the
/// nodes.
const BEATS_TO_MEET: i64 = 2;

impl Memory {
    /// Of a process that has just registered.
    pub(super) fn new(node: NodeId, keep: Duration) -> Self {
        Memory {
            identities: BTreeSet::from([node]),
            beats: VecDeque::new(),
            met: BTreeMap::new(),
            keep,
            forgot: None,
            acquaintance: Acquaintance::New,
            is_stuck: false,
        }
    }

    /// Every identity that the process took: few in its life.
    pub(super) fn identities(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.identities.iter().copied()
    }

    /// It takes another identity, which no node has met.
    pub(super) fn take(&mut self, node: NodeId) {
        self.identities.insert(node);
        self.acquaintance = Acquaintance::New;
    }

    /// A heartbeat was confirmed that was sent at this moment.
    pub(super) fn beat(
        &mut self,
        Confirmed { node, beat, nonce, .. }: Confirmed,
        sent_at: Instant,
    ) {
        self.beats.push_back(Beat { node, beat, nonce, sent_at });
        if self.beats.len() > BEATS_MAX {
            self.beats.pop_front();
        }
    }

    /// The nodes whose heartbeats are remembered of incarnations before this one.
    pub(super) fn beaten(&self, nonce: Uuid) -> Vec<NodeId> {
        let earlier = self.beats.iter().filter(|beat| beat.nonce != nonce);
        earlier.map(|beat| beat.node).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Since when the ledger may lack what this process did, by what it shows of those heartbeats;
    /// `None`: since the process began.
    pub(super) fn complete_until(
        &self,
        nonce: Uuid,
        shown: &BTreeMap<NodeId, i64>,
    ) -> Option<Instant> {
        let is_there = |beat: &&Beat| {
            beat.nonce != nonce && shown.get(&beat.node).is_some_and(|shown| *shown >= beat.beat)
        };
        self.beats.iter().filter(is_there).map(|beat| beat.sent_at).max()
    }

    /// Takes in which nodes the ledger shows now. Called in turn with the heartbeats, so that two
    /// of these let others know that it has read them.
    pub(super) fn look(
        &mut self,
        living: impl IntoIterator<Item = (NodeId, i64)>,
        now: Instant,
        ttl: Duration,
    ) {
        let others = living.into_iter().filter(|(node, _)| !self.identities.contains(node));
        let others: BTreeMap<NodeId, i64> = others.collect();
        self.met.extend(others.keys().map(|node| (*node, now)));
        let keep = self.keep;
        let old: Vec<_> = self.met.extract_if(.., |_, seen| now - *seen > keep).collect();
        for (_, seen) in old {
            self.forgot = self.forgot.max(Some(seen));
        }
        while self.met.len() > NODES_MAX {
            let (_, seen) = self.met.pop_first().expect("more than none");
            self.forgot = self.forgot.max(Some(seen));
        }
        self.acquaintance = match std::mem::take(&mut self.acquaintance) {
            Acquaintance::New if others.is_empty() => Acquaintance::Met,
            Acquaintance::New => {
                Acquaintance::Waits { first: others.clone(), last: others, since: now }
            }
            Acquaintance::Waits { first, mut last, mut since } => {
                let beat = |node: &NodeId| others.get(node).copied();
                let moved = first.iter().filter_map(|(node, was)| Some(beat(node)? - was)).max();
                if last.iter().any(|(node, was)| beat(node).is_some_and(|beat| beat != *was)) {
                    (last, since) = (others, now);
                }
                match moved {
                    Some(BEATS_TO_MEET..) | None => Acquaintance::Met,
                    Some(_) if now - since >= ttl => Acquaintance::Met,
                    Some(_) => Acquaintance::Waits { first, last, since },
                }
            }
            Acquaintance::Met => Acquaintance::Met,
        };
    }

    /// Whether another process would miss the current identity, should the ledger forget it.
    pub(super) fn is_met(&self) -> bool {
        matches!(self.acquaintance, Acquaintance::Met)
    }

    /// The other nodes that it has met.
    pub(super) fn met(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.met.keys().copied()
    }

    /// When the last node was seen that is not remembered.
    pub(super) fn forgot(&self) -> Option<Instant> {
        self.forgot
    }

    /// Decides whether it remembers enough. Once it does not, it never does again until an operator
    /// has decided: what the next ledger shows is not what this one had lost.
    pub(super) fn judge(&mut self, is_complete: bool) -> bool {
        self.is_stuck |= !is_complete;
        !self.is_stuck
    }

    /// The ledger is not held any more.
    pub(super) fn go_on(&mut self) {
        self.is_stuck = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(3);

    fn shown(nodes: &[(NodeId, i64)]) -> Vec<(NodeId, i64)> {
        nodes.to_vec()
    }

    fn memory() -> (Memory, NodeId) {
        let node = NodeId::random();
        (Memory::new(node, Duration::from_secs(60)), node)
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_is_met_once_another_one_has_beaten_twice_or_none_lives() {
        let (mut memory, mine) = memory();
        let other = NodeId::random();
        let mut look = |beat: i64| {
            memory.look(shown(&[(mine, 1), (other, beat)]), Instant::now(), TTL);
            memory.is_met()
        };
        assert_eq!([look(7), look(8), look(9)], [false, false, true]);

        // The other node does not beat.
        memory.take(NodeId::random());
        let mut look = |nodes: &[(NodeId, i64)]| {
            memory.look(shown(nodes), Instant::now(), TTL);
            memory.is_met()
        };
        assert!(!look(&[(other, 9)]));
        tokio::time::advance(TTL).await;
        assert!(look(&[(other, 9)]));

        // It beats, and then stops: it may have died before it read anything.
        memory.take(NodeId::random());
        let mut look = |nodes: &[(NodeId, i64)]| {
            memory.look(shown(nodes), Instant::now(), TTL);
            memory.is_met()
        };
        assert!(!look(&[(other, 9)]) && !look(&[(other, 10)]));
        tokio::time::advance(TTL / 2).await;
        assert!(!look(&[(other, 10)]));
        tokio::time::advance(TTL / 2).await;
        assert!(look(&[(other, 10)]));

        // No other node is left.
        memory.take(NodeId::random());
        assert!({
            memory.look(shown(&[(other, 10)]), Instant::now(), TTL);
            !memory.is_met()
        });
        memory.look(shown(&[]), Instant::now(), TTL);
        assert!(memory.is_met());
    }

    #[tokio::test(start_paused = true)]
    async fn the_ledger_may_lack_what_came_after_the_last_heartbeat_that_it_shows() {
        let (mut memory, node) = memory();
        let (was, is) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let confirmed =
            |beat, nonce| Confirmed { node, beat, batches: 0, incarnation: 1, nonce, at_us: 0 };
        let began = Instant::now();
        for beat in 1..=3 {
            tokio::time::advance(TTL).await;
            memory.beat(confirmed(beat, was), Instant::now());
        }
        // In the current incarnation it proves nothing of what came before.
        memory.beat(confirmed(4, is), Instant::now());
        let complete_until = |beat: i64| memory.complete_until(is, &BTreeMap::from([(node, beat)]));
        assert_eq!(complete_until(0), None);
        assert_eq!(complete_until(2), Some(began + TTL * 2));
        assert_eq!(complete_until(9), Some(began + TTL * 3));
        assert_eq!(memory.complete_until(is, &BTreeMap::new()), None);
        assert_eq!(memory.beaten(is), [node]);
        assert_eq!(memory.beaten(was), [node]);
    }

    #[tokio::test(start_paused = true)]
    async fn whom_it_has_not_seen_for_long_it_says_that_it_forgot() {
        let (mut memory, mine) = memory();
        let (other, seen_at) = (NodeId::random(), Instant::now());
        memory.look(shown(&[(mine, 1), (other, 1)]), seen_at, TTL);
        assert_eq!((memory.met().collect::<Vec<_>>(), memory.forgot()), (vec![other], None));
        tokio::time::advance(Duration::from_secs(61)).await;
        memory.look(shown(&[(mine, 2)]), Instant::now(), TTL);
        assert_eq!((memory.met().count(), memory.forgot()), (0, Some(seen_at)));
    }

    #[test]
    fn who_did_not_remember_enough_once_waits_for_a_decision() {
        let (mut memory, _) = memory();
        assert!(memory.judge(true) && !memory.judge(false) && !memory.judge(true));
        memory.go_on();
        assert!(memory.judge(true));
    }
}
