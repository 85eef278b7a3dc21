//! The guarantees of the connection: one call, one execution at most, and errors that claim no more
//! than they prove. Method: a fake server that counts executions, and a real one that is killed.

mod fake;
mod sentinels;

use std::time::{Duration, Instant};

use numerator::node::NodeId;
use numerator::redis::{
    CounterError, Flight, Guard, IdempotencyLimits, IssueRequest, Keys, PayloadMark, Probe, Redis,
    RedisSettings, Take,
};

use fake::{Act, Fake};
use testkit::redis::Redis as Server;

/// Longest wait for a client to come back; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(20);

fn client(url: String, command_timeout: Duration) -> Redis {
    let reconnect_max = Duration::from_millis(50);
    Redis::start(&RedisSettings { url, command_timeout, reconnect_max }).unwrap()
}

async fn with_acts(acts: &[Act]) -> (Fake, Redis) {
    let fake = Fake::start(acts).await;
    let redis = client(fake.url(), Duration::from_secs(5));
    (fake, redis)
}

async fn probe(redis: &Redis) -> Result<Probe, CounterError> {
    redis.probe(&Keys::new("nbr"), 7).await
}

/// Probes until the server answers.
async fn until_served(redis: &Redis) -> Probe {
    let deadline = Instant::now() + LIMIT;
    let mut tick = tokio::time::interval(Duration::from_millis(10));
    loop {
        tick.tick().await;
        match probe(redis).await {
            Ok(probe) => return probe,
            Err(error) => assert!(Instant::now() < deadline, "still not served: {error}"),
        }
    }
}

#[tokio::test]
async fn a_connection_lost_after_the_execution_means_one_execution_and_an_unknown_outcome() {
    let (fake, redis) = with_acts(&[Act::ExecuteAndHangUp]).await;
    let outcome = probe(&redis).await;
    assert!(matches!(outcome, Err(CounterError::Unknown(_))), "{outcome:?}");
    // A client that repeated the lost call would do it before it sends the next one.
    until_served(&redis).await;
    fake.until_connected(2).await;
    assert_eq!(fake.executed(), fake.calls().len());
    assert_eq!(fake.calls(), ["EVALSHA", "EVALSHA"]);
}

#[tokio::test]
async fn calls_in_flight_on_a_lost_connection_are_each_executed_once_at_most() {
    let (fake, redis) = with_acts(&[Act::ExecuteWhenReleased, Act::ExecuteAndHangUp]).await;
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let redis = redis.clone();
            tokio::spawn(async move { probe(&redis).await })
        })
        .collect();
    fake.release();
    let mut unknown = 0;
    let mut served = 0;
    for call in calls {
        match call.await.unwrap() {
            Ok(_) => served += 1,
            Err(CounterError::Unknown(_)) => unknown += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    until_served(&redis).await;
    assert!(unknown >= 1 && served >= 1, "{unknown} unknown, {served} served");
    assert!(fake.executed() <= 21, "{} executions of 21 calls", fake.executed());
    assert!(fake.executed() > served, "the lost call was executed");
}

#[tokio::test]
async fn a_silent_server_gives_an_unknown_outcome_within_the_command_timeout() {
    let fake = Fake::start(&[Act::ExecuteAndKeepSilent]).await;
    let timeout = Duration::from_millis(300);
    let redis = client(fake.url(), timeout);
    let start = Instant::now();
    let outcome = probe(&redis).await;
    assert!(matches!(outcome, Err(CounterError::Unknown(_))), "{outcome:?}");
    assert!(start.elapsed() >= timeout && start.elapsed() < timeout * 10, "{:?}", start.elapsed());
    assert_eq!(fake.executed(), 1);
    // The silent connection is given up, and the call is not repeated on the next one.
    until_served(&redis).await;
    fake.until_connected(2).await;
    assert_eq!(fake.calls().len(), fake.executed());
}

#[tokio::test]
async fn a_peer_that_reads_nothing_any_more_is_given_up() {
    let fake = Fake::start(&[]).await;
    let redis = client(fake.url(), Duration::from_millis(300));
    let incarnation = until_served(&redis).await.incarnation;
    let node = NodeId::random();
    let guard = Guard { partition: 7, epoch: 1, incarnation, node, flight: 1, confirmed: 0 };
    let request = IssueRequest {
        takes: vec![Take { counter: "c".into(), count: 1, step: 1, start: 1, max: 9, seen: None }],
        caller_key: None,
        document_key: None,
        payload: PayloadMark::of("0123456789abcdef"),
        again: false,
        once_per_document: false,
        asked: false,
        // More than the sockets of both sides can hold: the client's write is stuck for good.
        record: "x".repeat(32 << 20).into(),
    };
    let limits = IdempotencyLimits { window_ms: 1, records_max: 1, keep_whole: false };
    let flight = Flight::issue(&Keys::new("nbr"), &guard, &[request], Some(0), limits);
    fake.deafen();
    let outcome = redis.issue(&flight).await;
    assert!(matches!(outcome, Err(CounterError::Unknown(_))), "{outcome:?}");
    until_served(&redis).await;
    fake.until_connected(2).await;
    assert_eq!(fake.calls().len(), fake.executed());
}

#[tokio::test]
async fn a_caller_that_goes_away_does_not_take_its_call_back_or_repeat_it() {
    let (fake, redis) = with_acts(&[Act::ExecuteWhenReleased]).await;
    let caller = tokio::spawn({
        let redis = redis.clone();
        async move { probe(&redis).await }
    });
    fake.until_connected(1).await;
    let deadline = Instant::now() + LIMIT;
    while fake.calls().is_empty() {
        assert!(Instant::now() < deadline, "the call never came");
        tokio::task::yield_now().await;
    }
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    fake.release();
    fake.until_executed(1).await;
    // The reply of the abandoned call must not reach the next caller.
    assert!(probe(&redis).await.is_ok());
    assert_eq!(fake.executed(), 2);
}

#[tokio::test]
async fn a_script_that_the_server_does_not_know_is_sent_with_its_text() {
    let (fake, redis) = with_acts(&[Act::Refuse("NOSCRIPT No matching script.")]).await;
    assert_eq!(probe(&redis).await.unwrap().incarnation, "feed");
    assert_eq!(fake.calls(), ["EVALSHA", "EVAL"]);
    assert_eq!(fake.executed(), 1);
}

#[tokio::test]
async fn a_reply_for_another_call_is_garbled_and_ends_the_connection() {
    let (fake, redis) = with_acts(&[Act::AnswerAnother]).await;
    let outcome = probe(&redis).await;
    assert!(matches!(outcome, Err(CounterError::Garbled(_))), "{outcome:?}");
    tokio::time::timeout(LIMIT, fake.until_connected(2)).await.unwrap();
    until_served(&redis).await;
}

#[tokio::test]
async fn a_replica_is_left_for_another_connection() {
    let refusal = "READONLY You can't write against a read only replica.";
    let (fake, redis) = with_acts(&[Act::Refuse(refusal)]).await;
    let outcome = probe(&redis).await;
    assert_eq!(outcome, Err(CounterError::NotExecuted(refusal.into())));
    tokio::time::timeout(LIMIT, fake.until_connected(2)).await.unwrap();
    until_served(&redis).await;
}

#[tokio::test]
async fn a_cluster_that_is_down_may_have_executed_the_call() {
    let (_fake, redis) = with_acts(&[Act::Refuse("CLUSTERDOWN The cluster is down")]).await;
    let outcome = probe(&redis).await;
    assert!(matches!(outcome, Err(CounterError::Unknown(_))), "{outcome:?}");
}

#[tokio::test]
async fn an_unexpected_error_reply_is_broken() {
    let (_fake, redis) = with_acts(&[Act::Refuse("ERR user_script:1: no reason")]).await;
    let outcome = probe(&redis).await;
    assert!(matches!(outcome, Err(CounterError::Broken(_))), "{outcome:?}");
}

#[tokio::test]
async fn a_url_that_is_not_one_is_refused_at_start() {
    for url in ["", "not a url", "redis-unix:///socket"] {
        let settings = RedisSettings {
            url: url.into(),
            command_timeout: Duration::from_secs(1),
            reconnect_max: Duration::from_secs(1),
        };
        assert!(Redis::start(&settings).is_err(), "{url}");
    }
}

#[tokio::test]
async fn a_server_that_is_down_at_start_is_waited_for() {
    let mut server = Server::start();
    server.kill();
    let redis = client(server.url(), Duration::from_millis(200));
    let outcome = probe(&redis).await;
    assert!(matches!(outcome, Err(CounterError::Unknown(_))), "{outcome:?}");
    server.restart();
    assert!(until_served(&redis).await.is_master);
}

#[tokio::test]
async fn the_client_comes_back_to_a_restarted_server_with_or_without_its_data() {
    let mut server = Server::start_durable();
    let redis = client(server.url(), Duration::from_millis(500));
    let first = until_served(&redis).await;
    server.cli(&["set", "kept", "1"]);
    server.kill();
    let outcome = probe(&redis).await;
    assert!(matches!(outcome, Err(CounterError::Unknown(_))), "{outcome:?}");
    server.restart();
    let second = until_served(&redis).await;
    assert_eq!(server.cli(&["get", "kept"]), "1");
    assert_ne!(first.incarnation, second.incarnation);
    server.restart_empty();
    let third = until_served(&redis).await;
    assert_eq!(server.cli(&["exists", "kept"]), "0");
    assert_ne!(second.incarnation, third.incarnation);
}

#[tokio::test]
async fn a_stopped_client_stays_stopped() {
    let server = Server::start();
    let redis = client(server.url(), Duration::from_millis(200));
    until_served(&redis).await;
    redis.stop().await;
    redis.stop().await;
    let outcome = probe(&redis).await;
    assert!(matches!(outcome, Err(CounterError::Unknown(_))), "{outcome:?}");
}
