//! The times that processes report to a ledger (F37): which of them count, and by which rules.

use std::sync::Arc;

use numerator::clock::ManualClock;
use numerator::ledger::{LedgerSettings, NewNode, open};
use numerator::node::NodeId;
use testkit::postgres::Postgres;

use crate::deployment::Deployment;

/// Goal: reports of a clock that was ahead do not count, nor those of a process that has left.
#[tokio::test]
async fn a_ledger_shows_the_times_that_others_tell() {
    const NOW_US: i64 = 1_700_000_000_000_000;
    let postgres = Postgres::start();
    for url in [Some(postgres.url("told")), None] {
        let deployment =
            url.as_deref().map_or_else(Deployment::embedded, |url| Deployment::new(url, None));
        deployment.apply_load_series();
        let clock = Arc::new(ManualClock::at(NOW_US));
        let settings = LedgerSettings::default();
        let ledger = open(deployment.database_url(), settings, clock.clone()).await.unwrap();
        let join = async || {
            let (node_id, label, version) = (NodeId::random(), "test".into(), "0".into());
            let new = NewNode { node_id, label, version, started_at_us: NOW_US };
            ledger.nodes().register(&new).await.unwrap();
            node_id
        };
        let times = ledger.times(NOW_US - 1).await.unwrap();
        assert_eq!((times.server.is_some(), times.journaled_us), (url.is_some(), None));
        let (one, other) = (join().await, join().await);
        let times = ledger.times(NOW_US).await.unwrap();
        assert_eq!((times.told_us, times.nodes), (Some(NOW_US), vec![]), "they have registered");
        clock.set(NOW_US + 5);
        let (server, others) = ledger.report_time(one).await.unwrap();
        assert_eq!((server.is_some(), others), (url.is_some(), vec![]));
        clock.set(NOW_US + 1_000);
        let (_, others) = ledger.report_time(other).await.unwrap();
        assert_eq!(others, [(one, NOW_US + 5)]);
        let times = ledger.times(NOW_US + 10).await.unwrap();
        assert_eq!((times.told_us, times.nodes.len()), (Some(NOW_US + 5), 2), "one was ahead");
        let nodes = ledger.nodes().list().await.unwrap();
        assert!(nodes.iter().all(|one| one.clock_ahead_us.is_some() == url.is_some()), "{nodes:?}");
        ledger.nodes().leave(other).await.unwrap();
        let times = ledger.times(NOW_US + 10).await.unwrap();
        assert_eq!(times.nodes, [(one, NOW_US + 5)]);
        deployment.ok(&["next", "LOAD"]);
        let journaled_us = ledger.times(NOW_US).await.unwrap().journaled_us;
        assert!(journaled_us > Some(NOW_US), "{journaled_us:?}");
    }
}
