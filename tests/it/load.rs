//! Many callers on one counter: contiguous, no duplicate, all journaled, on every path.

use std::time::{Duration, Instant};

use numerator::clock::SystemClock;
use numerator::ledger::{self, LedgerSettings, SharedLedger};

use crate::deployment::Deployment;
use testkit::load;
use testkit::postgres::Postgres;
use testkit::redis::Redis;

/// Requests of the large load, in the long form of the tests too, and the connections that make
/// them.
const REQUESTS: [u64; 2] = [5_000, 20_000];
const CONNECTIONS: usize = 64;

/// How soon after the last answer the journal must hold every row.
const JOURNAL_LIMIT: Duration = Duration::from_secs(1);

pub(crate) async fn open(deployment: &Deployment) -> SharedLedger {
    let settings = LedgerSettings { connections_max: 2, ..LedgerSettings::default() };
    let clock = std::sync::Arc::new(SystemClock);
    ledger::open(deployment.database_url(), settings, clock).await.unwrap()
}

/// Whether the long forms of tests are wanted: `scripts/test long` says so.
pub(crate) fn is_long() -> bool {
    std::env::var_os("LONG_TESTS").is_some_and(|set| !set.is_empty())
}

async fn one_counter_under_load(deployment: &Deployment, path: &str) {
    let requests = REQUESTS[usize::from(is_long())];
    deployment.apply_load_series();
    let service = deployment.serve();
    let client = testkit::client();
    let (status, body) = load::take(&client, &service.url, "doc-0").await;
    assert_eq!((status, &body["path"]), (201, &path.into()), "{body}");
    let first = load::documents(&service.url, 100, 100).await;
    assert_eq!(first.failures.len(), 0, "{:?}", first.failures);
    first.assert_contiguous(100);
    let ledger = open(deployment).await;
    // The first hundred documents are asked for again: replays take nothing.
    let all = load::documents(&service.url, CONNECTIONS, requests).await;
    let answered = Instant::now();
    assert_eq!(all.failures.len(), 0, "{:?}", all.failures);
    all.assert_contiguous(usize::try_from(requests).unwrap());
    loop {
        let journal = ledger.register().totals().await.unwrap().journal;
        if journal == requests {
            println!("{path}: all {requests} rows {:?} after the last answer", answered.elapsed());
            break;
        }
        let waited = answered.elapsed();
        assert!(waited < JOURNAL_LIMIT, "{journal} of {requests} rows after {waited:?}");
    }
    let report = deployment.assert_clean();
    assert_eq!(report["totals"]["gaps"], 0, "{report}");
    assert!(service.terminate(), "the service ends well");
}

#[tokio::test]
async fn load_on_one_counter_is_contiguous_and_journaled_on_redis_and_postgres() {
    let (postgres, redis) = (Postgres::start(), Redis::start_durable());
    // The program sets it up.
    let deployment = Deployment::new(&postgres.empty_url("load"), Some(&redis.url()));
    one_counter_under_load(&deployment, "redis").await;
}

#[tokio::test]
async fn load_on_one_counter_is_contiguous_and_journaled_on_redis_and_sqlite() {
    let redis = Redis::start_durable();
    one_counter_under_load(&Deployment::sqlite(Some(&redis.url())), "redis").await;
}

#[tokio::test]
async fn load_on_one_counter_is_contiguous_and_journaled_on_postgres_alone() {
    let postgres = Postgres::start();
    one_counter_under_load(&Deployment::new(&postgres.empty_url("load"), None), "database").await;
}

#[tokio::test]
async fn load_on_one_counter_is_contiguous_and_journaled_on_sqlite_alone() {
    one_counter_under_load(&Deployment::embedded(), "database").await;
}
