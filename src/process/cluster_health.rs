//! The health of Redis as the other live nodes report it: whether one node's broken link is its
//! own, and whether all would go back to the same data set (F22).

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use crate::ledger::HealthReport;

/// The other nodes' health reports, kept by the reconciler's watch.
#[derive(Debug)]
pub struct ClusterHealth(Mutex<View>);

#[derive(Debug)]
struct View {
    /// Nobody has looked yet.
    is_blind: bool,
    /// What each live node but this one sees.
    reports: Vec<HealthReport>,
    /// Per partition the only data set that they see, and since when.
    agreed: HashMap<u32, (Option<String>, Instant)>,
}

impl Default for ClusterHealth {
    fn default() -> Self {
        ClusterHealth(Mutex::new(View {
            is_blind: true,
            reports: Vec::new(),
            agreed: HashMap::new(),
        }))
    }
}

impl ClusterHealth {
    /// Says what the other live nodes report now (those that have an opinion).
    pub fn set(&self, partitions: u32, reports: Vec<HealthReport>) {
        let now = Instant::now();
        let mut view = self.view();
        for partition in 0..partitions {
            let common = common(&reports, partition);
            let known = view.agreed.get(&partition).map(|(common, _)| common);
            if known != Some(&common) {
                view.agreed.insert(partition, (common, now));
            }
        }
        view.reports = reports;
        view.is_blind = false;
    }

    /// Nobody knows what they see.
    pub fn forget(&self) {
        *self.view() = View { is_blind: true, reports: Vec::new(), agreed: HashMap::new() };
    }

    /// Whether another live node may see a partition in Redis. While nobody has looked, one may.
    #[must_use]
    pub fn may_see(&self, partition: u32) -> bool {
        let view = self.view();
        view.is_blind || view.reports.iter().any(|report| data_sets(report, partition).count() > 0)
    }

    /// Whether every other live node has seen a partition on this data set, and on no other, for so
    /// long. True where there is none.
    #[must_use]
    pub fn agree_on(&self, partition: u32, incarnation: &str, period: Duration) -> bool {
        let view = self.view();
        if view.is_blind {
            return false;
        }
        match view.agreed.get(&partition) {
            _ if view.reports.is_empty() => true,
            Some((Some(common), since)) => common == incarnation && since.elapsed() >= period,
            _ => false,
        }
    }

    fn view(&self) -> std::sync::MutexGuard<'_, View> {
        self.0.lock().expect("no holder of this lock panics")
    }
}

/// The data set on which all nodes see a partition, if all do and it is one.
fn common(reports: &[HealthReport], partition: u32) -> Option<String> {
    let mut common = None;
    for report in reports {
        let mut seen = data_sets(report, partition);
        let (Some(one), None) = (seen.next(), seen.next()) else { return None };
        if common.is_some_and(|before| before != one) {
            return None;
        }
        common = Some(one);
    }
    common.cloned()
}

fn data_sets(report: &HealthReport, partition: u32) -> impl Iterator<Item = &String> {
    let shows = move |(_, partitions): &(&String, &std::collections::BTreeSet<u32>)| {
        partitions.contains(&partition)
    };
    report.iter().filter(shows).map(|(incarnation, _)| incarnation)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(incarnation: &str, partitions: &[u32]) -> HealthReport {
        HealthReport::from([(incarnation.to_owned(), partitions.iter().copied().collect())])
    }

    #[tokio::test(start_paused = true)]
    async fn nodes_agree_once_all_have_seen_the_same_data_set_for_the_whole_period() {
        let (cluster, period) = (ClusterHealth::default(), Duration::from_secs(10));
        assert!(cluster.may_see(0) && !cluster.agree_on(0, "a", period), "nobody has looked yet");
        cluster.set(2, vec![]);
        assert!(!cluster.may_see(0) && cluster.agree_on(0, "a", period), "there is nobody else");
        cluster.set(2, vec![report("a", &[0, 1]), report("a", &[0])]);
        assert!(cluster.may_see(1) && !cluster.agree_on(0, "a", period), "not long enough");
        tokio::time::advance(period).await;
        cluster.set(2, vec![report("a", &[0, 1]), report("a", &[0])]);
        assert!(cluster.agree_on(0, "a", period) && !cluster.agree_on(0, "b", period));
        assert!(!cluster.agree_on(1, "a", period), "one does not see it");
        cluster.set(2, vec![report("a", &[0]), report("b", &[0])]);
        assert!(!cluster.agree_on(0, "a", Duration::ZERO), "they see different ones");
        cluster.forget();
        assert!(cluster.may_see(0) && !cluster.agree_on(0, "a", Duration::ZERO));
    }
}
