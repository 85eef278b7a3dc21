//! The processes for which Redis waits, per partition, while the database has what Redis could
//! take: the basis of the cluster's decision (`process/cluster_health.rs`), read from the ledger.

use std::collections::BTreeMap;

use super::answer::{PartitionAnswer, WaitAnswer};
use crate::engine::reconciler::{Life, Observed};
use crate::ledger::Node;
use crate::terminal::words;

impl PartitionAnswer {
    /// Whether the database has a partition that Redis may have.
    pub(super) fn is_lacking_redis(&self) -> bool {
        (self.owner, self.state, self.wanted) == ("database", "open", "auto")
    }
}

/// Notes them. The last partition, of gapless series, never goes to Redis.
pub(super) fn note(partitions: &mut [PartitionAnswer], nodes: &[Observed]) {
    let opinions = || nodes.iter().filter(|seen| seen.life != Life::Silent).map(|seen| &seen.node);
    let opinions: Vec<&Node> = opinions().filter(|node| node.sight.is_some()).collect();
    let Some((_, hashed)) = partitions.split_last_mut() else { return };
    for row in hashed.iter_mut().filter(|row| row.is_lacking_redis()) {
        // If no process has a Redis, there is none to wait.
        let has_redis = |node: &&Node| node.words.as_ref().is_some_and(|it| !it.without_redis);
        if row.redis.is_none() && !opinions.iter().any(has_redis) {
            continue;
        }
        // A Redis that no process reaches waits for none: it is away.
        let Some(common) = common(row, &opinions) else { continue };
        let waits = opinions.iter().filter_map(|node| wait(row.partition, node, &common));
        row.waits_for = waits.collect();
    }
}

/// The data set that Redis shows of a partition: to this command, else to most processes.
fn common(row: &PartitionAnswer, nodes: &[&Node]) -> Option<String> {
    if let Some(data_set) = row.redis.as_ref().and_then(|redis| redis.data_set.clone()) {
        return Some(data_set);
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for data_set in nodes.iter().flat_map(|node| data_sets(row.partition, node)) {
        *counts.entry(data_set).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(data_set, _)| data_set)
}

/// Why Redis waits for a process in a partition, if it does.
fn wait(partition: u32, node: &Node, common: &str) -> Option<WaitAnswer> {
    let sees = data_sets(partition, node);
    if sees.len() == 1 && sees[0] == common {
        return None;
    }
    let blind = node.words.as_ref().and_then(|words| words.blind_to(partition));
    let is_without = node.words.as_ref().is_some_and(|words| words.without_redis);
    let why = match (sees.is_empty(), blind) {
        (false, _) => format!("it sees another data set ({})", sees.join(", ")),
        (true, _) if is_without => "it has no redis.url".to_owned(),
        (true, Some(blind)) => blind.why.clone(),
        (true, None) => "it does not say why".to_owned(),
    };
    Some(WaitAnswer {
        node_id: node.node_id.to_string(),
        label: node.label.clone(),
        since: blind.filter(|_| sees.is_empty()).map(|blind| words::moment(blind.since_us)),
        sees,
        why,
    })
}

/// The data sets in which a process sees a partition.
fn data_sets(partition: u32, node: &Node) -> Vec<String> {
    let sight = node.sight.iter().flatten();
    sight.filter(|(_, seen)| seen.contains(&partition)).map(|(set, _)| set.clone()).collect()
}
