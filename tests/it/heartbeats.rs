//! A heartbeat depends on the row of its own process alone (F47): a lock on another table blocks
//! what needs that table, and no node is taken for dead.

use std::time::Duration;

use sqlx::Connection as _;
use testkit::eventually::eventually;
use testkit::postgres::Postgres;
use testkit::service::Service;

use crate::deployment::Deployment;
use crate::load::open;
use crate::promotions::numbers_of;

/// Heartbeats of each process under a lock: more than fit into `node.ttl`.
const BEATS: i64 = 20;
const LIMIT: Duration = Duration::from_secs(60);

fn kept_their_identities(services: &[&Service]) {
    for service in services {
        let log = service.log();
        assert!(!log.contains("takes a new identity") && !log.contains("WENT BACK"), "{log}");
    }
}

/// Goal: no node is declared dead while a table is locked. Method: numbers of the database path, so
/// that there is something to look for in the journal; then a lock on one table after the other,
/// for as long as each process has beaten for more than `node.ttl`.
#[tokio::test]
async fn nodes_beat_on_while_somebody_holds_any_other_table() {
    let postgres = Postgres::start();
    let mut deployment = Deployment::new(&postgres.url("locked"), None);
    deployment.extra = "[node]\nttl = \"1s\"\n".into();
    deployment.apply_load_series();
    let (one, other) = (deployment.serve(), deployment.serve());
    let ledger = open(&deployment).await;
    let beats = async || {
        let mut rows: Vec<_> = ledger
            .nodes()
            .list()
            .await
            .unwrap()
            .iter()
            .map(|node| (node.node_id, node.beat))
            .collect();
        rows.sort_unstable();
        rows
    };
    let mut session = sqlx::PgConnection::connect(deployment.database_url()).await.unwrap();
    for table in ["journal", "journal_batch", "counter", "partition", "participant"] {
        numbers_of(&one, "LOAD", &format!("{table}-one"), 2).await;
        numbers_of(&other, "LOAD", &format!("{table}-other"), 2).await;
        // Another session reads the heartbeats, past the tables that are locked.
        let beating = "select sum(beat)::bigint from locked.node where left_at_us is null";
        let before = beats().await;
        let lock = format!("begin; lock table {table} in access exclusive mode");
        sqlx::raw_sql(sqlx::AssertSqlSafe(lock)).execute(&mut session).await.unwrap();
        let count = i64::try_from(before.len()).unwrap();
        let goal: i64 = before.iter().map(|(_, beat)| beat).sum::<i64>() + BEATS * count;
        eventually(LIMIT, async || {
            let sum: i64 = postgres.sql(beating).parse().unwrap();
            let least = postgres.sql("select min(beat) from locked.node where left_at_us is null");
            if sum < goal {
                Err(format!("{table}: {sum} of {goal}, least {least}"))
            } else {
                Ok(())
            }
        })
        .await;
        sqlx::raw_sql("rollback").execute(&mut session).await.unwrap();
        let nodes = |beats: &[(numerator::node::NodeId, i64)]| {
            beats.iter().map(|(node, _)| *node).collect::<Vec<_>>()
        };
        let after = beats().await;
        assert_eq!(nodes(&after), nodes(&before), "{table}");
        let each = after.iter().zip(&before).all(|((_, now), (_, was))| now - was >= BEATS / 2);
        assert!(each, "{table}: {before:?} {after:?}");
        kept_their_identities(&[&one, &other]);
    }
    numbers_of(&one, "LOAD", "after", 2).await;
    assert!(one.terminate() && other.terminate());
    deployment.assert_clean();
}
