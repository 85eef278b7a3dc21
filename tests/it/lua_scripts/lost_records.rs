//! Idempotency records that vanish alone: a key that was deleted or evicted ends the epoch, because
//! the journal may not have its numbers yet; in the next one it is a question, never a key that
//! never existed (F28).

use std::slice::from_ref;

use numerator::redis::{IssueOutcome, IssueRequest};

use super::bench::{Bench, NOW_MS, WINDOW_MS, keyed, replayed, seeded, take, taken, window_ms};

/// Deletes every bucket, as an eviction of what expires would, sooner or later.
fn delete_buckets(bench: &Bench) {
    for key in bench.bucket_keys() {
        assert_eq!(bench.server.cli(&["del", &key]).trim(), "1");
    }
}

fn asked(document: &str, digest: &str) -> IssueRequest {
    IssueRequest { asked: true, ..keyed(document, None, digest) }
}

/// The bitmaps of the buckets that should exist.
fn witnesses(bench: &Bench) -> Vec<String> {
    let keys = bench.server.cli(&["--raw", "keys", &format!("{}:w*", bench.records_key())]);
    keys.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_record_whose_bucket_vanished_ends_the_epoch_and_others_are_new() {
    let mut bench = seeded().await;
    bench.issue(&[keyed("doc", Some("key"), "d1")]).await;
    delete_buckets(&bench);
    let caller_only = IssueRequest { document_key: None, ..keyed("doc", Some("key"), "d1") };
    // Whether the journal was asked or not: it may not have had the number yet.
    let missing = [keyed("doc", None, "d1"), caller_only, asked("doc", "d1"), asked("doc", "d2")];
    assert_eq!(bench.issue(&missing).await, vec![IssueOutcome::Vanished; 4]);
    // The others' buckets never existed.
    assert_eq!(bench.issue(&[keyed("other", None, "d1")]).await, [taken(2)]);
    assert_eq!(bench.issue(&missing[..1]).await, [IssueOutcome::Vanished]);
}

/// Once everything of that epoch is journaled, what is missing is a question, and ends no other.
#[tokio::test]
async fn what_vanished_is_asked_for_in_the_next_epoch_until_it_is_over() {
    let mut bench = seeded().await;
    bench.issue(&[keyed("doc", None, "d1"), keyed("other", None, "d1")]).await;
    delete_buckets(&bench);
    bench.epoch_after_a_loss(2).await;
    assert_eq!(bench.issue(&[keyed("doc", None, "d1")]).await, [IssueOutcome::Ask]);
    assert_eq!(bench.issue(&[asked("new", "d1")]).await, [taken(3)]);
    // The bitmaps begin anew with the first bucket: what they showed before is over.
    let outcomes = bench.issue(&[keyed("doc", None, "d1"), keyed("other", None, "d1")]).await;
    assert_eq!(outcomes, [IssueOutcome::Ask, IssueOutcome::Ask]);
    assert_eq!(bench.issue(&[asked("doc", "d1")]).await, [taken(4)]);
    assert_eq!(bench.issue(&[keyed("doc", None, "d1")]).await, [replayed(4, "record of doc d1")]);
    // What is written now is missed again, although each missing record is a question anyway.
    delete_buckets(&bench);
    let outcomes = bench.issue(&[asked("doc", "d1"), keyed("third", None, "d1")]).await;
    assert_eq!(outcomes, [IssueOutcome::Vanished, IssueOutcome::Ask]);
    bench.epoch_after_a_loss(4).await;
    let later = bench.issue_at(&[keyed("doc", None, "d1")], NOW_MS + window_ms()).await;
    assert_eq!(later.outcomes, [taken(5)]);
}

#[tokio::test]
async fn a_bucket_that_comes_back_does_not_answer_for_the_records_that_it_lost() {
    let mut bench = seeded().await;
    bench.issue(&[keyed("doc", None, "d1")]).await;
    delete_buckets(&bench);
    bench.epoch_after_a_loss(1).await;
    assert_eq!(bench.issue(&[asked("doc", "d2")]).await, [taken(2)]);
    let [bucket] = &bench.bucket_keys()[..] else { panic!("one bucket is written to") };
    // Takes the record that was rewritten; what else was lost has left no trace here.
    bench.server.cli(&[
        "eval",
        "for _, name in ipairs(redis.call('hkeys', KEYS[1])) do \
         if #name == 12 then redis.call('hdel', KEYS[1], name) end end",
        "1",
        bucket,
    ]);
    assert_eq!(bench.issue(&[keyed("doc", None, "d1")]).await, [IssueOutcome::Ask]);
    // One window later, what was lost is over.
    let later = bench.issue_at(&[keyed("doc", None, "d1")], NOW_MS + window_ms()).await;
    assert_eq!(later.outcomes, [taken(3)]);
}

#[tokio::test]
async fn what_vanished_in_the_window_before_ends_the_epoch_until_it_is_over() {
    let mut bench = seeded().await;
    // The last moment of one window, by the clock, and the first of the next.
    let next = NOW_MS / window_ms() * window_ms();
    bench.issue_at(&[keyed("doc", None, "d1")], next - 1).await;
    bench.issue_at(&[keyed("filler", None, "d1")], next).await;
    delete_buckets(&bench);
    let again = bench.issue_at(&[keyed("doc", None, "d1")], next + 1).await;
    assert_eq!(again.outcomes, [IssueOutcome::Vanished]);
    let later = bench.issue_at(&[keyed("doc", None, "d1")], next + 2 * window_ms()).await;
    assert_eq!(later.outcomes, [taken(3)]);
}

#[tokio::test]
async fn when_nothing_tells_any_more_which_buckets_there_were_each_missing_one_ends_the_epoch() {
    let mut bench = seeded().await;
    let (doc, new) = (keyed("doc", None, "d1"), keyed("new", None, "d1"));
    bench.issue(&[doc.clone(), keyed("kept", None, "d1")]).await;
    let [witness] = &witnesses(&bench)[..] else { panic!("one bitmap") };
    bench.server.cli(&["del", witness]);
    assert_eq!(
        bench.issue(&[new.clone(), asked("new", "d1")]).await,
        [const { IssueOutcome::Vanished }; 2]
    );
    // An existing bucket answers, and a write to it begins no bitmap with fewer.
    let kept = replayed(2, "record of kept d1");
    assert_eq!(bench.issue(&[keyed("kept", None, "d1")]).await, [kept]);
    let another = IssueRequest { again: true, ..keyed("kept", None, "d2") };
    assert_eq!(bench.issue(&[another]).await, [taken(3)]);
    bench.next_epoch(false, NOW_MS).await;
    bench.seed("c", 3, 1_000).await;
    let another = IssueRequest { again: true, asked: true, ..keyed("kept", None, "d3") };
    assert_eq!(bench.issue(&[another]).await, [taken(4)]);
    assert_eq!(witnesses(&bench), [""; 0], "what vanished comes back with less");
    delete_buckets(&bench);
    assert_eq!(
        bench.issue(&[doc.clone(), new.clone()]).await,
        [const { IssueOutcome::Vanished }; 2]
    );
    bench.epoch_after_a_loss(4).await;
    assert_eq!(bench.issue(&[doc.clone(), new]).await, [IssueOutcome::Ask, IssueOutcome::Ask]);
    let later = bench.issue_at(&[doc], NOW_MS + window_ms()).await;
    assert_eq!(later.outcomes, [taken(5)]);
}

/// Processes whose windows differ forget for each other: each of them would take what the other one
/// removed for what never existed.
#[tokio::test]
async fn under_another_window_every_missing_record_is_asked_for() {
    let mut bench = seeded().await;
    bench.issue(&[keyed("doc", None, "d1")]).await;
    assert_eq!(bench.issue(&[keyed("new", None, "d1")]).await, [taken(2)]);
    for window_ms in [2 * WINDOW_MS, WINDOW_MS] {
        bench.limits.window_ms = window_ms;
        let outcomes = bench.issue(&[keyed("third", None, "d1"), keyed("doc", None, "d1")]).await;
        assert_eq!(outcomes, [IssueOutcome::Ask, replayed(1, "record of doc d1")]);
    }
    // One window after the last change nothing can be missing any more.
    let later = bench.issue_at(&[keyed("third", None, "d1")], NOW_MS + window_ms()).await;
    assert_eq!(later.outcomes, [taken(3)]);
}

/// An owner record that an older program wrote names no window, and its buckets have no marks.
#[tokio::test]
async fn what_an_older_program_kept_is_not_complete_until_a_window_is_over() {
    let mut bench = seeded().await;
    bench.server.cli(&["hdel", &bench.owner_key(), "window_ms", "witnessed"]);
    let request = keyed("doc", None, "d1");
    assert_eq!(bench.issue(from_ref(&request)).await, [IssueOutcome::Ask]);
    let asked = IssueRequest { asked: true, ..request.clone() };
    assert_eq!(bench.issue(&[asked]).await, [taken(1)]);
    assert_eq!(bench.issue(&[keyed("other", None, "d1")]).await, [IssueOutcome::Ask]);
    let later = bench.issue_at(&[keyed("other", None, "d1")], NOW_MS + window_ms()).await;
    assert_eq!(later.outcomes, [taken(2)]);
}

/// A planned recovery carries on what is known of the data set, and which buckets should exist.
#[tokio::test]
async fn a_bucket_that_vanishes_is_missed_in_later_epochs_too() {
    let mut bench = seeded().await;
    let request = keyed("doc", None, "d1");
    bench.issue(from_ref(&request)).await;
    bench.next_epoch(false, NOW_MS).await;
    bench.seed("c", 1, 1_000).await;
    delete_buckets(&bench);
    assert_eq!(bench.issue(from_ref(&request)).await, [IssueOutcome::Vanished]);
    // The owner record goes, with it the names of the bitmaps; the bucket is written to again.
    bench.server.cli(&["del", &bench.owner_key()]);
    bench.next_epoch(false, NOW_MS + 1).await;
    bench.seed("c", 2, 1_000).await;
    let at_ms = NOW_MS + window_ms() / 2;
    assert_eq!(bench.issue_at(&[asked("doc", "d1")], at_ms).await.outcomes, [taken(3)]);
    delete_buckets(&bench);
    let again = bench.issue_at(&[request], NOW_MS + 1 + window_ms()).await;
    assert_eq!(again.outcomes, [IssueOutcome::Vanished]);
}

#[tokio::test]
async fn a_document_that_is_numbered_once_is_asked_for_although_the_data_set_is_complete() {
    let mut bench = seeded().await;
    let once = |document: &str, caller: Option<&str>| IssueRequest {
        once_per_document: true,
        ..keyed(document, caller, "d1")
    };
    let outcomes = bench.issue(&[once("doc", None), keyed("other", None, "d1")]).await;
    assert_eq!(outcomes, [IssueOutcome::Ask, taken(1)]);
    // Of two that were asked at once, the second finds the record of the first.
    let asked = IssueRequest { asked: true, ..once("doc", None) };
    assert_eq!(bench.issue(from_ref(&asked)).await, [taken(2)]);
    assert!(matches!(bench.issue(&[asked]).await[..], [IssueOutcome::Replayed { .. }]));
    assert!(matches!(bench.issue(&[once("doc", None)]).await[..], [IssueOutcome::Replayed { .. }]));
    // A counter that is cold comes before the question (F27), and a caller's key alone asks none.
    let takes = vec![take("cold", 1, 1)];
    let cold = IssueRequest { takes, ..once("new", None) };
    assert_eq!(bench.issue(&[cold]).await, [IssueOutcome::Cold { take: 0 }]);
    let keyed_only = IssueRequest { document_key: None, ..once("", Some("key")) };
    assert_eq!(bench.issue(&[keyed_only]).await, [taken(3)]);
}

/// What a server may evict is never complete, whatever it has. It is checked once a minute, because
/// that costs as much as a flight.
#[tokio::test]
async fn where_redis_may_evict_each_missing_record_is_asked_for_until_a_window_later() {
    let mut bench = seeded().await;
    let may_evict = |bench: &Bench, policy: &str| {
        bench.server.cli(&["config", "set", "maxmemory-policy", policy]);
    };
    let minute_ms = 60_000;
    let sound = bench.issue_at(&[keyed("first", None, "d1")], NOW_MS + minute_ms).await;
    assert_eq!(sound.outcomes, [taken(1)]);
    may_evict(&bench, "volatile-lru");
    // A clock that was set back delays no check.
    assert_eq!(bench.issue(&[keyed("doc", None, "d1")]).await, [IssueOutcome::Ask]);
    assert_eq!(bench.issue(&[asked("doc", "d1")]).await, [taken(2)]);
    assert_eq!(bench.issue(&[keyed("doc", None, "d1")]).await, [replayed(2, "record of doc d1")]);
    assert_eq!(bench.issue(&[keyed("new", None, "d1")]).await, [IssueOutcome::Ask]);
    let last = bench.issue_at(&[keyed("new", None, "d1")], NOW_MS + minute_ms).await;
    assert_eq!(last.outcomes, [IssueOutcome::Ask]);
    may_evict(&bench, "noeviction");
    let over = NOW_MS + minute_ms + window_ms();
    let early = bench.issue_at(&[keyed("new", None, "d1")], over - 1).await;
    assert_eq!(early.outcomes, [IssueOutcome::Ask]);
    assert_eq!(bench.issue_at(&[keyed("new", None, "d1")], over).await.outcomes, [taken(3)]);
    // Between two checks the last one applies.
    may_evict(&bench, "allkeys-random");
    let looked = over - 1;
    let between = bench.issue_at(&[keyed("third", None, "d1")], looked + minute_ms - 1).await;
    assert_eq!(between.outcomes, [taken(4)]);
    let again = bench.issue_at(&[keyed("fourth", None, "d1")], looked + minute_ms).await;
    assert_eq!(again.outcomes, [IssueOutcome::Ask]);
}
