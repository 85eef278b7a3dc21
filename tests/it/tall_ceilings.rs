//! Ceilings that a burst has left far above their counters do not stay: what a crash turns into a
//! gap is no more than what recent traffic needs.

use std::time::Duration;

use numerator::ledger::{At, Raise, TALL_ROOM_MIN};
use testkit::eventually::eventually;
use testkit::load::{self, take};
use testkit::postgres::Postgres;
use testkit::redis::Redis;

use crate::deployment::Deployment;
use crate::load::open;

/// Longest wait; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(30);

/// Room below the highest ceiling of a schema, in numbers.
fn room(postgres: &Postgres, schema: &str) -> u64 {
    let room = format!("select max((ceiling - taken) / step) from {schema}.counter");
    postgres.sql(&room).parse().unwrap()
}

/// Waits until an epoch has ended for its ceilings and the next one is open.
async fn ended_by_plan(postgres: &Postgres, schema: &str, log: impl Fn() -> String) {
    let ended = format!(
        "select count(*) from {schema}.partition where state = 'open' \
         and cause = 'planned: ceilings are far above their counters'"
    );
    eventually(LIMIT, async || {
        let count = postgres.sql(&ended);
        if count == "1" { Ok(()) } else { Err(format!("{count} {}", log())) }
    })
    .await;
}

/// Goal: a burst, a restart, and then process and Redis lost together leave a small gap. Method:
/// thousands of numbers at once, so that the ceiling rises by the rate of that moment.
#[tokio::test(flavor = "multi_thread")]
async fn a_burst_leaves_no_large_gap_to_a_crash_after_the_next_start() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.empty_url("burst"), Some(&redis.url()));
    deployment.apply_load_series();
    let service = deployment.serve();
    load::documents(&service.url, 32, 6_000).await.assert_contiguous(6_000);
    assert!(service.terminate());
    let left = room(&postgres, "burst");
    assert!(left >= TALL_ROOM_MIN, "no burst: {left}");

    let mut service = deployment.serve();
    ended_by_plan(&postgres, "burst", || service.log()).await;
    let client = testkit::client();
    let (status, body) = take(&client, &service.url, "after").await;
    assert_eq!((status, &body["document_number"]), (201, &"L-00006001".into()), "{body}");
    service.kill();
    redis.flushall();
    let service = deployment.serve();
    let (status, body) = take(&client, &service.url, "after the crash").await;
    assert_eq!(status, 201, "{body}");
    assert!(service.terminate());
    let report = deployment.assert_clean();
    let lost = "select coalesce(sum((last_value - first_value) / step + 1), 0) from burst.gap";
    let lost: u64 = postgres.sql(lost).parse().unwrap();
    println!("room after the burst: {left}; numbers lost: {lost}");
    assert!(lost < TALL_ROOM_MIN, "{lost} of {left}: {report}");
}

/// Next to others, which may be at a burst of their own, a ceiling is lowered once it is not
/// needed; and the counter that is not touched any more has none.
#[tokio::test]
async fn a_ceiling_that_nobody_needs_any_more_goes_while_two_services_run() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.empty_url("quiet"), Some(&redis.url()));
    deployment.extra = "[ceiling]\nhorizon = \"1s\"\n".into();
    deployment.apply_load_series();
    let services = [deployment.serve(), deployment.serve()];
    let client = testkit::client();
    for (service, document) in services.iter().zip(["a", "b"]) {
        assert_eq!(take(&client, &service.url, document).await.0, 201);
    }
    let ledger = open(&deployment).await;
    let counter = eventually(LIMIT, async || {
        let counter = ledger.counters().page(0, 1).await.unwrap().remove(0);
        if counter.taken == 2 { Ok(counter) } else { Err(format!("{counter:?}")) }
    })
    .await;
    let at = At { partition: counter.partition, epoch: counter.epoch };
    let raise = Raise { counter_id: counter.counter_id, ceiling: counter.ceiling + 50_000 };
    assert!(ledger.raise(at, &[raise]).await.unwrap()[0].is_some());
    ended_by_plan(&postgres, "quiet", || services[0].log()).await;
    eventually(LIMIT, async || {
        let left = room(&postgres, "quiet");
        if left == 0 { Ok(()) } else { Err(format!("{left}")) }
    })
    .await;
    let forgotten = "select count(*) from quiet.partition where tall_epoch > 0";
    eventually(LIMIT, async || {
        let count = postgres.sql(forgotten);
        if count == "0" { Ok(()) } else { Err(count) }
    })
    .await;
    // Earlier connections may be closed by now.
    let client = testkit::client();
    for (service, value) in services.iter().zip(3..) {
        let (status, body) = take(&client, &service.url, &format!("after {value}")).await;
        let next = format!("L-{value:08}");
        assert_eq!((status, &body["document_number"]), (201, &next.into()), "no gap: {body}");
    }
    for service in services {
        assert!(service.terminate());
    }
    deployment.assert_clean();
}
