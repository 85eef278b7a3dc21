//! settle: the outcome of a flight whose answer was lost, once its epoch ends (F17).

use numerator::redis::{Completion, Flight, IssueOutcome, Settled};

use super::bench::{Bench, issued, keyed, plain, replayed, taken};

/// A flight whose answer was lost.
async fn send(bench: &mut Bench, requests: &[numerator::redis::IssueRequest]) -> Flight {
    let guard = bench.next();
    let flight = bench.flight(&guard, requests);
    issued(bench.redis.issue(&flight).await);
    flight
}

async fn settle(bench: &Bench, flight: &Flight) -> Settled {
    bench.redis.settle(&bench.keys, flight).await.unwrap()
}

fn is_fenced(settled: &Settled) -> bool {
    matches!(settled, Settled::Fenced { .. })
}

#[tokio::test]
async fn a_flight_that_was_executed_tells_what_it_took_and_replayed() {
    let mut bench = Bench::new().await;
    bench.seed("c", 0, 100).await;
    bench.issue(&[keyed("one", None, "d1")]).await;
    let again = keyed("one", None, "d1");
    let requests = [again.clone(), keyed("two", None, "d2"), plain("cold")];
    let flight = send(&mut bench, &requests).await;
    let outcomes = vec![replayed(1, &again.record), taken(2), IssueOutcome::Nothing];
    for _ in 0..2 {
        assert_eq!(settle(&bench, &flight).await, Settled::Executed(outcomes.clone()));
    }
}

#[tokio::test]
async fn a_flight_that_took_nothing_was_executed_all_the_same() {
    let mut bench = Bench::new().await;
    let flight = send(&mut bench, &[plain("cold")]).await;
    assert_eq!(settle(&bench, &flight).await, Settled::Executed(vec![IssueOutcome::Nothing]));
}

#[tokio::test]
async fn a_flight_that_was_not_executed_never_will_be() {
    let mut bench = Bench::new().await;
    bench.seed("c", 0, 100).await;
    let guard = bench.next();
    let flight = bench.flight(&guard, &[plain("c")]);
    for _ in 0..2 {
        assert_eq!(settle(&bench, &flight).await, Settled::Spent);
    }
    let before = bench.dump();
    assert_eq!(
        bench.redis.issue(&flight).await.unwrap(),
        Completion::Mismatch,
        "it comes too late"
    );
    assert_eq!(bench.dump(), before);
    assert_eq!(bench.issue(&[plain("c")]).await, [taken(1)], "the next one is executed");
}

#[tokio::test]
async fn a_first_flight_that_is_spent_leaves_a_whole_outbox() {
    let mut bench = Bench::new().await;
    let guard = bench.next();
    let flight = bench.flight(&guard, &[plain("c")]);
    assert_eq!(settle(&bench, &flight).await, Settled::Spent);
    let (other, dead) = (bench.other_node(), bench.guard.node);
    bench.redis.bar(&bench.keys, &other, dead).await.unwrap();
    let page = bench.redis.read_outbox(&bench.keys, &other, dead, 0, 10).await.unwrap();
    let empty = numerator::redis::OutboxPage::Entries { entries: vec![], complete: true };
    assert_eq!(page, empty);
}

#[tokio::test]
async fn a_flight_is_settled_although_the_data_set_got_another_id() {
    let mut bench = Bench::new().await;
    bench.seed("c", 0, 100).await;
    let flight = send(&mut bench, &[plain("c")]).await;
    let before = bench.guard.incarnation.clone();
    let _replica = bench.server.start_replica(&[]);
    let probe = bench.redis.probe(&bench.keys, super::bench::PARTITION).await.unwrap();
    assert_ne!(probe.incarnation, before, "the first replica changes the id");
    assert_eq!(settle(&bench, &flight).await, Settled::Executed(vec![taken(1)]));
}

#[tokio::test]
async fn another_epoch_another_flight_or_a_damaged_outbox_tell_nothing() {
    let mut bench = Bench::new().await;
    bench.seed("c", 0, 100).await;
    let flight = send(&mut bench, &[plain("c")]).await;
    let guard = bench.guard.clone();
    let other_bytes = bench.flight(&guard, &[plain("d")]);
    assert!(is_fenced(&settle(&bench, &other_bytes).await), "same number, other bytes");
    bench.guard.confirmed = guard.flight;
    bench.issue(&[plain("c")]).await;
    assert!(is_fenced(&settle(&bench, &flight).await), "a later flight is confirmed");

    let last = send(&mut bench, &[plain("c")]).await;
    bench.server.cli(&["del", &bench.outbox_key()]);
    assert!(is_fenced(&settle(&bench, &last).await), "its entry is gone");
    bench.next_epoch(false, super::bench::NOW_MS).await;
    assert!(is_fenced(&settle(&bench, &last).await), "its epoch is over");
    bench.server.flushall();
    assert!(is_fenced(&settle(&bench, &last).await), "everything is gone");
    bench.server.cli(&["set", &bench.owner_key(), "x"]);
    assert!(is_fenced(&settle(&bench, &last).await), "the owner record is no hash");
}
