//! What each of these tests plays on: a ledger, two nodes of the service on one Redis, a load; and
//! what must hold when it is over.

use std::collections::BTreeMap;

use harness::postgres::Postgres;
use harness::service::Service;

use super::spread::{CODES, Spread, series_file};
use crate::deployment::Deployment;

/// Numbers of each series before the first fault, and after each.
const SOME: u64 = 40;

/// A ledger, two nodes, and a load on both.
pub(super) struct Stage {
    postgres: Postgres,
    deployment: Deployment,
    nodes: Vec<Service>,
    load: Spread,
}

impl Stage {
    /// Starts everything on a Redis and waits until every series is served.
    pub(super) async fn start(redis_url: &str) -> Self {
        let postgres = Postgres::start();
        let deployment = Deployment::new(&postgres.url("shapes"), Some(redis_url));
        let file = deployment.path("series.toml");
        std::fs::write(&file, series_file()).expect("series file");
        deployment.apply(&[file]);
        let nodes = vec![deployment.serve(), deployment.serve()];
        let load = Spread::start(nodes.iter().map(|node| node.url.clone()).collect());
        let stage = Stage { postgres, deployment, nodes, load };
        stage.advance().await;
        stage
    }

    /// The partition of each series.
    pub(super) fn partitions(&self) -> Vec<u32> {
        let rows = self.postgres.sql("select distinct type_code, partition_id from shapes.journal");
        let found: BTreeMap<&str, u32> = rows
            .lines()
            .filter_map(|row| row.split_once('|'))
            .map(|(code, partition)| (code, partition.parse().unwrap()))
            .collect();
        CODES.iter().map(|code| found[code]).collect()
    }

    /// The epoch of a partition.
    pub(super) fn epoch(&self, partition: u32) -> u64 {
        let select = format!("select epoch from shapes.partition where partition_id = {partition}");
        self.postgres.sql(&select).parse().unwrap()
    }

    /// Waits until every series got some more numbers.
    pub(super) async fn advance(&self) {
        self.advance_some(|_| true).await;
    }

    /// Waits until each of the series that `which` names got some more numbers.
    pub(super) async fn advance_some(&self, which: impl Fn(usize) -> bool) {
        if let Err(late) = self.load.advance(SOME, which).await {
            panic!("no numbers for {late:?}: {}", self.troubles());
        }
    }

    /// What the nodes complained of.
    fn troubles(&self) -> String {
        let logs: String = self.nodes.iter().map(Service::log).collect();
        logs.lines().filter(|line| !line.contains(" INFO ")).collect::<Vec<_>>().join("\n")
    }

    /// Ends the load and the nodes: each number came once and stands in the journal under its
    /// document, and the ledger is clean.
    pub(super) async fn close(self, what: &str) {
        let Stage { postgres, deployment, nodes, load } = self;
        let seen = load.finish().await;
        seen.assert_no_duplicate();
        for node in nodes {
            let log = node.log();
            assert!(node.terminate(), "the node does not end well: {log}");
        }
        let rows = postgres.sql("select document_id, number from shapes.journal");
        let journal: BTreeMap<&str, &str> =
            rows.lines().filter_map(|row| row.split_once('|')).collect();
        for (document, number) in &seen.numbers {
            assert_eq!(journal.get(document.as_str()), Some(&number.as_str()), "{document}");
        }
        let (clean, report) = deployment.verify();
        assert!(clean, "{report}");
        let gaps = postgres.sql(
            "select reason || ' ' || sum((last_value - first_value) / step + 1) \
             from shapes.gap group by reason",
        );
        println!(
            "{what}: {} numbers, longest stall {:?}, failures {:?}, gaps {gaps:?}",
            seen.numbers.len(),
            seen.longest_stall,
            seen.failures
        );
    }
}
