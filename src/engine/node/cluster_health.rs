//! The health of Redis as the other live nodes report it: whether one node's broken link is its
//! own, and whether all would go back to the same data set (F22).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use crate::ledger::{HealthReport, Node, NodeWords};
use crate::node::NodeId;

/// How many times `redis.return_after` Redis waits for a node that does not see it at all. After
/// that it takes the partitions back without it: such a node can take nothing there, and answers
/// 503.
pub const LEFT_OUT_PERIODS: u32 = 3;

/// The other nodes' health reports, kept by the reconciler's watch.
#[derive(Debug)]
pub struct ClusterHealth(Mutex<View>);

#[derive(Debug)]
struct View {
    /// Nothing was read yet.
    is_blind: bool,
    /// Each live node but this one that has an opinion.
    others: Vec<Other>,
    /// What each of them sees of each partition, and since when.
    sights: HashMap<(NodeId, u32), (Sight, Instant)>,
}

/// The report of another live node.
#[derive(Clone, Debug)]
pub struct Other {
    node: NodeId,
    label: String,
    report: HealthReport,
    words: Option<NodeWords>,
}

/// What a node sees of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Sight {
    /// Nothing.
    Nothing,
    /// This data set.
    One(String),
    /// More than one.
    Several,
}

impl Other {
    /// A node that has an opinion.
    #[must_use]
    pub fn of(node: &Node) -> Option<Self> {
        let report = node.sight.clone()?;
        let (label, words) = (node.label.clone(), node.words.clone());
        Some(Other { node: node.node_id, label, report, words })
    }

    fn sight(&self, partition: u32) -> Sight {
        let mut seen = data_sets(&self.report, partition);
        match (seen.next(), seen.next()) {
            (None, _) => Sight::Nothing,
            (Some(one), None) => Sight::One(one.clone()),
            (Some(_), Some(_)) => Sight::Several,
        }
    }

    /// Whether it has a Redis and does not reach it. A node without one is configured so; a command
    /// does not report.
    fn tries(&self) -> bool {
        self.words.as_ref().is_some_and(|words| !words.without_redis)
    }
}

impl Default for ClusterHealth {
    fn default() -> Self {
        let (others, sights) = (Vec::new(), HashMap::new());
        ClusterHealth(Mutex::new(View { is_blind: true, others, sights }))
    }
}

impl ClusterHealth {
    /// Sets the current reports of the other live nodes (those that have an opinion).
    pub fn set(&self, partitions: u32, others: Vec<Other>) {
        let now = Instant::now();
        let mut view = self.view();
        view.sights.retain(|(node, _), _| others.iter().any(|other| other.node == *node));
        for other in &others {
            for partition in 0..partitions {
                let sight = other.sight(partition);
                let known = view.sights.get(&(other.node, partition));
                if known.is_none_or(|(before, _)| *before != sight) {
                    view.sights.insert((other.node, partition), (sight, now));
                }
            }
        }
        view.others = others;
        view.is_blind = false;
    }

    /// Their reports are unknown from now on.
    pub fn forget(&self) {
        *self.view() = View { is_blind: true, others: Vec::new(), sights: HashMap::new() };
    }

    /// Whether another live node may see a partition in Redis. Before the first read, one may.
    #[must_use]
    pub fn may_see(&self, partition: u32) -> bool {
        let view = self.view();
        let sees = |other: &Other| data_sets(&other.report, partition).next().is_some();
        view.is_blind || view.others.iter().any(sees)
    }

    /// Whether the other live nodes would go back to this data set: each has seen a partition on
    /// it, and on no other, for so long. One that has seen nothing there for [`LEFT_OUT_PERIODS`]
    /// of that is left out, unless there are more of its kind than others. True where this node is
    /// alone.
    #[must_use]
    pub fn agree_on(&self, partition: u32, incarnation: &str, period: Duration) -> bool {
        let view = self.view();
        if view.is_blind {
            return false;
        }
        // This node sees it.
        let (mut seeing, mut left_out) = (1, 0);
        for other in &view.others {
            match view.sights.get(&(other.node, partition)) {
                Some((Sight::One(seen), since))
                    if seen == incarnation && since.elapsed() >= period =>
                {
                    seeing += 1;
                }
                Some((Sight::Nothing, since))
                    if other.tries() && since.elapsed() >= period * LEFT_OUT_PERIODS =>
                {
                    left_out += 1;
                }
                _ => return false,
            }
        }
        left_out <= seeing
    }

    /// Why Redis does not take partitions back that this node sees on a data set: each node that
    /// does not see it there, in words. Empty before the first read.
    #[must_use]
    pub fn waits_for(&self, partition: u32, incarnation: &str) -> BTreeMap<String, String> {
        let view = self.view();
        let said = view.others.iter().filter_map(|other| {
            let why = match other.sight(partition) {
                Sight::One(seen) if seen == incarnation => return None,
                Sight::One(seen) => format!("sees another data set, {seen}"),
                Sight::Several => "sees more than one data set".into(),
                Sight::Nothing => other.words.as_ref().map_or_else(
                    || "does not see it".into(),
                    |words| match words.blind_to(partition) {
                        _ if words.without_redis => "has no redis.url".into(),
                        Some(blind) => format!("does not see it: {}", blind.why),
                        None => "does not see it yet".into(),
                    },
                ),
            };
            Some((format!("{} ({})", other.label, other.node), why))
        });
        said.collect()
    }

    /// Whether another live node sees all that this one sees of these partitions on their data
    /// sets, and more: it can serve whatever this one can. Of several nodes that each lack
    /// something, at least one finds no such node. `None` before the first read.
    #[must_use]
    pub fn outdoes(&self, owners: &BTreeMap<u32, String>, mine: &BTreeSet<u32>) -> Option<bool> {
        let view = self.view();
        let outdoes = |other: &Other| {
            let sees = |(partition, owner): (&u32, &String)| {
                let sees = data_sets(&other.report, *partition).any(|seen| seen == owner);
                sees.then_some(*partition)
            };
            let theirs: BTreeSet<u32> = owners.iter().filter_map(sees).collect();
            theirs.is_superset(mine) && theirs.len() > mine.len()
        };
        (!view.is_blind).then(|| view.others.iter().any(outdoes))
    }

    fn view(&self) -> std::sync::MutexGuard<'_, View> {
        self.0.lock().expect("no holder of this lock panics")
    }
}

fn data_sets(report: &HealthReport, partition: u32) -> impl Iterator<Item = &String> {
    let shows = move |(_, partitions): &(&String, &BTreeSet<u32>)| partitions.contains(&partition);
    report.iter().filter(shows).map(|(incarnation, _)| incarnation)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes that see these partitions, each on one data set, and try to see the rest.
    fn others(nodes: &[NodeId], seen: &[(&str, &[u32])]) -> Vec<Other> {
        let of = |(node, (incarnation, partitions)): (&NodeId, &(&str, &[u32]))| Other {
            node: *node,
            label: "vm/1".into(),
            report: match partitions {
                [] => HealthReport::new(),
                _ => [((*incarnation).to_owned(), partitions.iter().copied().collect())].into(),
            },
            words: Some(NodeWords::default()),
        };
        nodes.iter().zip(seen).map(of).collect()
    }

    fn ids<const N: usize>() -> [NodeId; N] {
        std::array::from_fn(|_| NodeId::random())
    }

    #[tokio::test(start_paused = true)]
    async fn nodes_agree_once_all_have_seen_the_same_data_set_for_the_whole_period() {
        let (cluster, period) = (ClusterHealth::default(), Duration::from_secs(10));
        let nodes: [NodeId; 2] = ids();
        assert!(cluster.may_see(0) && !cluster.agree_on(0, "a", period), "nobody has looked yet");
        cluster.set(2, vec![]);
        assert!(!cluster.may_see(0) && cluster.agree_on(0, "a", period), "there is nobody else");
        let look = || others(&nodes, &[("a", &[0, 1]), ("a", &[0])]);
        cluster.set(2, look());
        assert!(cluster.may_see(1) && !cluster.agree_on(0, "a", period), "not long enough");
        tokio::time::advance(period).await;
        cluster.set(2, look());
        assert!(cluster.agree_on(0, "a", period) && !cluster.agree_on(0, "b", period));
        assert!(!cluster.agree_on(1, "a", period), "one does not see it");
        cluster.set(2, others(&nodes, &[("a", &[0]), ("b", &[0])]));
        assert!(!cluster.agree_on(0, "a", Duration::ZERO), "they see different ones");
        cluster.forget();
        assert!(cluster.may_see(0) && !cluster.agree_on(0, "a", Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn who_sees_nothing_is_left_out_after_a_while_and_who_sees_another_data_set_never() {
        let (cluster, period) = (ClusterHealth::default(), Duration::from_secs(10));
        let nodes: [NodeId; 3] = ids();
        let look = |seen: &[(&str, &[u32])]| {
            cluster.set(1, others(&nodes, seen));
            cluster.agree_on(0, "a", period)
        };
        let blind: &[(&str, &[u32])] = &[("a", &[0]), ("", &[])];
        assert!(!look(blind));
        tokio::time::advance(period * LEFT_OUT_PERIODS - Duration::from_millis(1)).await;
        assert!(!look(blind), "it is waited for");
        assert_eq!(cluster.waits_for(0, "a").len(), 1);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(look(blind));
        assert!(!look(&[("a", &[0]), ("", &[]), ("", &[])]), "the third has only come");
        tokio::time::advance(period * LEFT_OUT_PERIODS).await;
        assert!(look(&[("a", &[0]), ("", &[]), ("", &[])]), "as many see it as do not");
        assert!(!look(&[("", &[]), ("", &[]), ("", &[])]));
        tokio::time::advance(period * LEFT_OUT_PERIODS).await;
        assert!(!look(&[("", &[]), ("", &[]), ("", &[])]), "more do not see it");
        look(&[("b", &[0])]);
        tokio::time::advance(period * 100).await;
        assert!(!look(&[("b", &[0])]), "it would lead the partition away again");
        // By choice, or it does not report: it keeps partitions from Redis.
        for words in [Some(NodeWords { without_redis: true, ..NodeWords::default() }), None] {
            let mut seen = others(&nodes, &[("", &[])]);
            seen[0].words = words;
            cluster.set(1, seen.clone());
            tokio::time::advance(period * 100).await;
            cluster.set(1, seen);
            assert!(!cluster.agree_on(0, "a", period));
        }
    }

    #[test]
    fn of_nodes_that_each_lack_something_one_at_least_is_outdone_by_nobody() {
        let (cluster, nodes) = (ClusterHealth::default(), ids::<1>());
        let owners: BTreeMap<u32, String> = (0..3).map(|number| (number, "a".into())).collect();
        let outdone = |theirs: (&str, &[u32]), mine: &[u32]| {
            cluster.set(3, others(&nodes, &[theirs]));
            cluster.outdoes(&owners, &mine.iter().copied().collect()).expect("somebody looked")
        };
        assert_eq!(ClusterHealth::default().outdoes(&owners, &BTreeSet::new()), None);
        assert!(outdone(("a", &[0, 1, 2]), &[]) && outdone(("a", &[0, 1, 2]), &[0, 1]));
        assert!(!outdone(("a", &[0, 1, 2]), &[0, 1, 2]), "it sees as much");
        assert!(!outdone(("a", &[0, 1]), &[1, 2]) && !outdone(("a", &[1, 2]), &[0, 1]));
        assert!(!outdone(("b", &[0, 1, 2]), &[]), "it sees another data set than the owner");
    }
}
