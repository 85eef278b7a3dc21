//! Idempotency records: replay, reuse, another number for a document, when the journal is asked.

use std::slice::from_ref;

use numerator::redis::{Completion, Flight, IssueOutcome, IssueRequest};

use super::bench::{
    Bench, NOW_MS, PARTITION, WINDOW_MS, issued, keyed, plain, range, replayed, seeded, taken,
};

fn numbered(value: u64, record: &str) -> IssueOutcome {
    IssueOutcome::DocumentNumbered { taken: vec![range(value, value, 1)], record: record.into() }
}

#[tokio::test]
async fn a_retry_gets_its_number_again_in_the_same_flight_and_in_later_ones() {
    let mut bench = seeded().await;
    let request = keyed("doc", Some("key"), "d1");
    let outcomes = bench.issue(&[request.clone(), request.clone(), plain("c")]).await;
    assert_eq!(outcomes, [taken(1), replayed(1, "record of doc d1"), taken(2)]);
    // The record of the first request answers, not the one that the retry brings.
    let retry = IssueRequest { record: "another".into(), ..request };
    assert_eq!(bench.issue(&[retry]).await, [replayed(1, "record of doc d1")]);
}

#[tokio::test]
async fn a_replay_stands_in_the_replaying_nodes_outbox() {
    let mut bench = seeded().await;
    bench.issue(&[keyed("doc", None, "d1")]).await;
    let mut other = bench.other_node();
    other.flight = 1;
    let flight = bench.flight(&other, &[keyed("doc", None, "d1")]);
    let outcomes = issued(bench.redis.issue(&flight).await);
    assert_eq!(outcomes, [replayed(1, "record of doc d1")]);
    let outbox = bench.keys.outbox(PARTITION, other.node);
    let entry = bench.server.cli(&["--raw", "xrange", &outbox, "-", "+"]);
    assert_eq!(entry, "1-0\nepoch\n5\n1\nreplayed 70:1:1:1 record of doc d1");
}

#[tokio::test]
async fn a_callers_key_for_another_payload_is_refused_before_the_document_is_looked_at() {
    let mut bench = seeded().await;
    bench.issue(&[keyed("doc", Some("key"), "d1")]).await;
    let outcomes = bench
        .issue(&[
            keyed("doc", Some("key"), "d2"),
            keyed("other", Some("key"), "d2"),
            IssueRequest { again: true, ..keyed("doc", Some("key"), "d2") },
        ])
        .await;
    assert_eq!(outcomes, vec![IssueOutcome::KeyReused; 3]);
    assert_eq!(bench.issue(&[keyed("other", None, "d2")]).await, [taken(2)]);
}

#[tokio::test]
async fn a_documents_retry_under_a_new_key_is_a_replay_and_binds_that_key() {
    let mut bench = seeded().await;
    bench.issue(&[keyed("doc", Some("first"), "d1")]).await;
    let again = bench.issue(&[keyed("doc", Some("second"), "d1")]).await;
    assert_eq!(again, [replayed(1, "record of doc d1")]);
    let reuse = bench.issue(&[keyed("elsewhere", Some("second"), "d2")]).await;
    assert_eq!(reuse, [IssueOutcome::KeyReused]);
}

#[tokio::test]
async fn a_document_gets_another_number_only_when_asked_for_again() {
    let mut bench = seeded().await;
    bench.issue(&[keyed("doc", Some("k1"), "d1")]).await;
    let refused = bench.issue(&[keyed("doc", Some("k2"), "d2")]).await;
    assert_eq!(refused, [numbered(1, "record of doc d1")]);
    let again = IssueRequest { again: true, ..keyed("doc", Some("k2"), "d2") };
    assert_eq!(bench.issue(from_ref(&again)).await, [taken(2)]);
    // A retry of it is a replay; the document has its latest number from now on.
    assert_eq!(bench.issue(&[again]).await, [replayed(2, "record of doc d2")]);
    let refused = bench.issue(&[keyed("doc", None, "d3")]).await;
    assert_eq!(refused, [numbered(2, "record of doc d2")]);
    // The first key still finds the first number and leaves the document's record as it is.
    let first = bench.issue(&[keyed("doc", Some("k1"), "d1"), keyed("doc", None, "d3")]).await;
    assert_eq!(first, [replayed(1, "record of doc d1"), numbered(2, "record of doc d2")]);
}

#[tokio::test]
async fn a_request_that_takes_nothing_leaves_no_record() {
    let mut bench = Bench::new().await;
    let cold = bench.issue(&[keyed("doc", Some("key"), "d1")]).await;
    assert_eq!(cold, [IssueOutcome::Cold { take: 0 }]);
    bench.seed("c", 0, 1_000).await;
    assert_eq!(bench.issue(&[keyed("doc", Some("key"), "d2")]).await, [taken(1)]);
}

#[tokio::test]
async fn a_record_of_an_older_epoch_is_not_an_answer() {
    let mut bench = seeded().await;
    bench.issue(&[keyed("doc", Some("key"), "d1"), keyed("other", None, "d1")]).await;
    bench.next_epoch(true, NOW_MS).await;
    bench.seed("c", 10, 1_000).await;
    let request = keyed("doc", Some("key"), "d1");
    assert_eq!(bench.issue(from_ref(&request)).await, [IssueOutcome::Ask]);
    // By the document alone, too, and whatever the payload is.
    let by_document = [keyed("other", None, "d1"), keyed("other", None, "d2")];
    assert_eq!(bench.issue(&by_document).await, [IssueOutcome::Ask, IssueOutcome::Ask]);
    let asked = IssueRequest { asked: true, ..request };
    let outcomes = bench.issue(&[asked.clone(), asked.clone()]).await;
    assert_eq!(outcomes, [taken(11), replayed(11, "record of doc d1")]);
}

#[tokio::test]
async fn a_missing_record_is_new_only_when_the_data_set_is_older_than_the_window() {
    let mut bench = seeded().await;
    let window_ms = i64::try_from(WINDOW_MS).unwrap();
    // One millisecond short of a whole window: a record may have been lost with the old data set.
    let since = bench.owner_key();
    let young = (NOW_MS - window_ms + 1).to_string();
    bench.server.cli(&["hset", &since, "continuous_since_ms", &young]);
    let caller_only = IssueRequest { document_key: None, ..keyed("doc", Some("key"), "d1") };
    let outcomes = bench.issue(&[keyed("doc", None, "d1"), caller_only.clone()]).await;
    assert_eq!(outcomes, [IssueOutcome::Ask, IssueOutcome::Ask]);
    assert_eq!(bench.issue(&[plain("c")]).await, [taken(1)]);
    let asked = IssueRequest { asked: true, ..caller_only };
    assert_eq!(bench.issue(&[asked]).await, [taken(2)]);

    let old = (NOW_MS - window_ms).to_string();
    bench.server.cli(&["hset", &since, "continuous_since_ms", &old]);
    assert_eq!(bench.issue(&[keyed("doc", None, "d1")]).await, [taken(3)]);
    bench.server.cli(&["hdel", &since, "continuous_since_ms"]);
    assert_eq!(bench.issue(&[keyed("new", None, "d1")]).await, [IssueOutcome::Ask]);
}

#[tokio::test]
async fn a_callers_lost_key_is_asked_for_even_when_the_document_would_answer() {
    let mut bench = seeded().await;
    bench.issue(&[keyed("doc", None, "d1")]).await;
    let owner = bench.owner_key();
    bench.server.cli(&["hset", &owner, "continuous_since_ms", &NOW_MS.to_string()]);
    let outcomes = bench.issue(&[keyed("doc", Some("key"), "d1")]).await;
    assert_eq!(outcomes, [IssueOutcome::Ask]);
}

#[tokio::test]
async fn whatever_stands_in_place_of_a_record_ends_the_epoch_and_is_replaced_in_the_next() {
    let mut bench = seeded().await;
    bench.issue(&[keyed("doc", None, "d1")]).await;
    let key = bench.bucket_keys().remove(0);
    // The name is not text.
    let bytes = "return table.concat({string.byte(redis.call('hkeys', KEYS[1])[1], 1, -1)}, ',')";
    let name = bench.server.cli(&["--raw", "eval", bytes, "1", &key]);
    let put = format!("return redis.call('hset', KEYS[1], string.char({name}), 'rubbish')");
    let damages: [&[&str]; 3] =
        [&["set", &key, "rubbish"], &["lpush", &key, "x"], &["eval", &put, "1", &key]];
    for (value, damage) in (1..).zip(damages) {
        bench.server.cli(&["del", &key]);
        bench.server.cli(damage);
        let request = keyed("doc", None, "d1");
        let asked = IssueRequest { asked: true, ..request.clone() };
        let outcomes = bench.issue(&[request.clone(), asked]).await;
        assert_eq!(outcomes, [IssueOutcome::Vanished, IssueOutcome::Vanished], "{damage:?}");
        bench.epoch_after_a_loss(value).await;
        assert_eq!(bench.issue(from_ref(&request)).await, [IssueOutcome::Ask], "{damage:?}");
        let outcomes = bench.issue(&[IssueRequest { asked: true, ..request.clone() }]).await;
        assert!(matches!(outcomes[0], IssueOutcome::Taken(_)), "{outcomes:?}");
        assert!(matches!(bench.issue(&[request]).await[0], IssueOutcome::Replayed { .. }));
    }
}

#[tokio::test]
async fn a_journaled_number_is_asked_for_even_when_the_journal_was_asked_before() {
    let mut bench = seeded().await;
    let request = keyed("doc", Some("key"), "d1");
    bench.issue(from_ref(&request)).await;
    bench.trim().await;
    let asked = IssueRequest { asked: true, ..request.clone() };
    let by_document = [
        request,
        asked,
        keyed("doc", Some("new"), "d1"),
        keyed("doc", None, "d2"),
        keyed("other", Some("key"), "d2"),
    ];
    let journaled = || IssueOutcome::Journaled;
    let expected = [journaled(), journaled(), journaled(), journaled(), IssueOutcome::KeyReused];
    assert_eq!(bench.issue(&by_document).await, expected);
    // The new key is bound nevertheless.
    assert_eq!(bench.issue(&[keyed("x", Some("new"), "d2")]).await, [IssueOutcome::KeyReused]);
    // Another number for the document needs none of it.
    let again = IssueRequest { again: true, ..keyed("doc", None, "d3") };
    assert_eq!(bench.issue(&[again]).await, [taken(2)]);
}

#[tokio::test]
async fn a_record_that_is_kept_whole_answers_after_its_number_was_journaled() {
    let mut bench = seeded().await;
    bench.limits.keep_whole = true;
    let request = keyed("doc", Some("key"), "d1");
    bench.issue(from_ref(&request)).await;
    bench.trim().await;
    assert_eq!(bench.issue(&[request]).await, [replayed(1, "record of doc d1")]);
}

#[tokio::test]
async fn a_record_of_a_lost_outbox_is_a_question_for_ever() {
    let mut bench = seeded().await;
    bench.issue(&[keyed("doc", None, "d1")]).await;
    let outbox = bench.outbox_key();
    let mut other = bench.other_node();
    for damage in [&["del", &outbox][..], &["set", &outbox, "rubbish"]] {
        bench.server.cli(damage);
        other.flight += 1;
        let asked = IssueRequest { asked: true, ..keyed("doc", None, "d1") };
        let flight = bench.flight(&other, &[asked]);
        assert_eq!(
            issued(bench.redis.issue(&flight).await),
            [IssueOutcome::Journaled],
            "{damage:?}"
        );
    }
}

#[tokio::test]
async fn records_go_by_the_clock_of_the_server_alone() {
    let mut bench = seeded().await;
    let request = keyed("doc", None, "d1");
    let guard = bench.next();
    let flight = Flight::issue(&bench.keys, &guard, from_ref(&request), None, bench.limits);
    assert_eq!(issued(bench.redis.issue(&flight).await), [taken(1)]);
    bench.guard.confirmed = guard.flight;
    let now_ms: i64 = bench.server.cli(&["time"]).lines().next().unwrap().parse().unwrap();
    let now_ms = now_ms * 1_000;
    let key = bench.bucket_keys().remove(0);
    let at_ms = "local text = redis.call('hvals', KEYS[1])[1]; \
                 return string.format('%.0f', select(2, struct.unpack('>I6I6', text)))";
    let at_ms: i64 = bench.server.cli(&["--raw", "eval", at_ms, "1", &key]).trim().parse().unwrap();
    assert!((now_ms - at_ms).abs() < 60_000, "{at_ms} at {now_ms}");
}

#[tokio::test]
async fn a_record_past_the_window_is_missing_though_its_bucket_lasts() {
    let mut bench = seeded().await;
    let window_ms = i64::try_from(WINDOW_MS).unwrap();
    let old = (NOW_MS - window_ms * 3).to_string();
    bench.server.cli(&["hset", &bench.owner_key(), "continuous_since_ms", &old]);
    let request = keyed("doc", None, "d1");
    bench.issue_at(from_ref(&request), NOW_MS - window_ms + 1).await;
    assert_eq!(bench.issue(from_ref(&request)).await, [replayed(1, "record of doc d1")]);
    let list = bench.records_key();
    bench.server.cli(&["del", &list]);
    let answer = bench.issue_at(from_ref(&request), NOW_MS + 1).await;
    assert_eq!(answer.outcomes, [taken(2)]);
}

#[tokio::test]
async fn any_text_survives_the_way_there_and_back() {
    let mut bench = seeded().await;
    let record = "{\"n\":\"เลข-0001\",\"q\":\"a \\\"b\\\" \\\\ c\"}\ttab\r  blanks ";
    let request = IssueRequest {
        record: record.into(), ..keyed("เอกสาร {7} 文件", None, "d1")
    };
    let guard = bench.next();
    let flight = bench.flight(&guard, from_ref(&request));
    issued(bench.redis.issue(&flight).await);
    assert_eq!(bench.issue(&[request]).await, [replayed(1, record)]);
    let again = bench.redis.issue(&flight).await.unwrap();
    assert_eq!(again, Completion::Late);
}

#[tokio::test]
async fn past_their_bound_the_oldest_records_go_and_missing_ones_are_asked_for_again() {
    let mut bench = seeded().await;
    bench.limits.records_max = 4;
    let old = NOW_MS - i64::try_from(WINDOW_MS).unwrap() * 2;
    bench.server.cli(&["hset", &bench.owner_key(), "continuous_since_ms", &old.to_string()]);
    let pair = |one: &str, other: &str| [keyed(one, None, "d"), keyed(other, None, "d")];
    for (documents, at_ms) in [(pair("a", "b"), NOW_MS - 3), (pair("c", "d"), NOW_MS - 2)] {
        assert_eq!(bench.issue_at(&documents, at_ms).await.records_shed, 0);
    }
    let issued = bench.issue_at(&[keyed("e", None, "d")], NOW_MS - 1).await;
    assert_eq!((issued.outcomes, issued.records_shed), (vec![taken(5)], 2), "with their flight");
    let since = bench.server.cli(&["hget", &bench.owner_key(), "continuous_since_ms"]);
    assert_eq!(since.trim(), (NOW_MS - 1).to_string());
    // The first two are gone, the others are not; a new one might be one of those removed.
    let outcomes = bench.issue(&pair("a", "new")).await;
    assert_eq!(outcomes, [IssueOutcome::Ask, IssueOutcome::Ask]);
    assert_eq!(bench.issue(&[keyed("c", None, "d")]).await, [replayed(3, "record of c d")]);
    let asked = IssueRequest { asked: true, ..keyed("new", None, "d") };
    assert_eq!(bench.issue_at(&[asked], NOW_MS).await.records_shed, 0, "four are allowed");
}

#[tokio::test]
async fn a_record_that_was_written_anew_outlives_the_flight_that_first_named_it() {
    let mut bench = seeded().await;
    bench.limits.records_max = 2;
    let half_ms = i64::try_from(WINDOW_MS).unwrap() / 2;
    let asked = |document: &str, digest: &str| IssueRequest {
        asked: true,
        again: true,
        ..keyed(document, None, digest)
    };
    bench.issue_at(&[asked("a", "d1")], NOW_MS - half_ms).await;
    bench.issue_at(&[asked("a", "d2")], NOW_MS).await;
    assert_eq!(bench.issue_at(&[asked("b", "d1")], NOW_MS).await.records_shed, 1);
    let again = bench.issue(&[keyed("a", None, "d2")]).await;
    assert_eq!(again, [replayed(2, "record of a d2")]);
}

#[tokio::test]
async fn records_that_are_over_make_room_without_a_question() {
    let mut bench = seeded().await;
    bench.limits.records_max = 2;
    let window_ms = i64::try_from(WINDOW_MS).unwrap();
    let old = (NOW_MS - window_ms * 3).to_string();
    bench.server.cli(&["hset", &bench.owner_key(), "continuous_since_ms", &old]);
    for (document, at_ms) in [("a", NOW_MS - window_ms), ("b", NOW_MS - 1), ("c", NOW_MS)] {
        let issued = bench.issue_at(&[keyed(document, None, "d")], at_ms).await;
        assert_eq!(issued.records_shed, 0, "{document}");
    }
    assert_eq!(bench.server.cli(&["llen", &bench.records_key()]).trim(), "2");
    let since = bench.server.cli(&["hget", &bench.owner_key(), "continuous_since_ms"]);
    assert_eq!(since.trim(), old);
}

#[tokio::test]
async fn whatever_stands_in_place_of_the_list_of_records_stops_no_flight() {
    let mut bench = seeded().await;
    bench.limits.records_max = 1;
    let key = bench.records_key();
    let damages: [&[&str]; 4] = [
        &["set", "rubbish"],
        &["hset", "a", "b"],
        &["rpush", "rubbish"],
        &["rpush", "1 9 1800000000000 short"],
    ];
    for (value, damage) in (1..).zip(damages) {
        bench.server.cli(&["del", &key]);
        bench.server.cli(&[&damage[..1], &[&key], &damage[1..]].concat());
        let document = format!("doc {value}");
        assert_eq!(
            bench.issue(&[IssueRequest { asked: true, ..keyed(&document, None, "d") }]).await,
            [taken(value)]
        );
        assert_eq!(bench.server.cli(&["llen", &key]).trim(), "1", "{damage:?}");
    }
}
