//! The outbox: trimmed by its node, and barred, read and dropped by an adopter.

use numerator::redis::{Barred, Completion, Guard, IssueOutcome, OutboxEntry, OutboxPage, Trimmed};

use super::bench::{Bench, EPOCH, NOW_MS, PARTITION, issued, keyed, plain, range, taken};

/// Three flights with entries (2, 3, 4) after a seed (1).
async fn with_entries() -> Bench {
    let mut bench = Bench::new().await;
    bench.seed("c", 0, 1_000).await;
    bench.issue(&[plain("c"), keyed("doc", None, "d1")]).await;
    bench.issue(&[keyed("doc", None, "d1")]).await;
    bench.issue(&[plain("c"), plain("missing")]).await;
    bench
}

async fn trim(bench: &Bench, upto: u64) -> Trimmed {
    bench.redis.trim(&bench.keys, &bench.guard, upto, "").await.unwrap()
}

async fn page(bench: &Bench, reader: &Guard, after: u64, limit: u32) -> OutboxPage {
    let dead = bench.guard.node;
    bench.redis.read_outbox(&bench.keys, reader, dead, after, limit).await.unwrap()
}

async fn bar(bench: &Bench) -> Guard {
    let adopter = bench.other_node();
    let barred = bench.redis.bar(&bench.keys, &adopter, bench.guard.node).await.unwrap();
    assert_eq!(barred, Barred::Barred);
    adopter
}

fn completeness(page: &OutboxPage) -> (usize, bool) {
    match page {
        OutboxPage::Entries { entries, complete } => (entries.len(), *complete),
        OutboxPage::Fenced => panic!("fenced"),
    }
}

#[tokio::test]
async fn trimming_removes_up_to_a_flight_and_the_count_follows() {
    let mut bench = with_entries().await;
    assert_eq!(trim(&bench, 1).await, Trimmed::Removed(0));
    assert_eq!(trim(&bench, 3).await, Trimmed::Removed(2));
    assert_eq!(trim(&bench, 3).await, Trimmed::Removed(0));
    assert_eq!(bench.issue(&[plain("c")]).await, [taken(4)]);
    assert_eq!(trim(&bench, u64::MAX).await, Trimmed::Removed(2));
    // An emptied stream keeps its last id and its count: the next flight still completes.
    assert_eq!(bench.issue(&[plain("c")]).await, [taken(5)]);
}

#[tokio::test]
async fn entries_of_an_earlier_epoch_are_trimmed_before_and_after_the_first_flight() {
    let mut bench = with_entries().await;
    bench.next_epoch(true, NOW_MS).await;
    assert_eq!(trim(&bench, 2).await, Trimmed::Removed(1));
    bench.seed("c", 10, 1_000).await;
    assert_eq!(trim(&bench, 3).await, Trimmed::Removed(1));
    assert_eq!(bench.issue(&[plain("c")]).await, [taken(11)]);
}

#[tokio::test]
async fn trimming_is_refused_to_a_fenced_and_to_a_barred_node() {
    let bench = with_entries().await;
    let old = Guard { epoch: EPOCH - 1, ..bench.guard.clone() };
    let fenced = bench.redis.trim(&bench.keys, &old, 9, "").await.unwrap();
    assert_eq!(fenced, Trimmed::Fenced);
    bar(&bench).await;
    assert_eq!(trim(&bench, 9).await, Trimmed::Barred);
    assert_eq!(bench.server.cli(&["xlen", &bench.outbox_key()]), "3");
}

#[tokio::test]
async fn trimming_a_key_of_another_type_or_with_a_wrong_count_hides_nothing() {
    let mut bench = with_entries().await;
    let (owner, field) = (bench.owner_key(), format!("n:{}", bench.guard.node));
    bench.server.cli(&["hset", &owner, &field, "7"]);
    assert_eq!(trim(&bench, 2).await, Trimmed::Removed(1));
    assert_eq!(bench.server.cli(&["hget", &owner, &field]), "6");
    let guard = bench.next();
    assert_eq!(bench.refused(&guard).await, Completion::Miscounted);
    bench.server.cli(&["set", &bench.outbox_key(), "x"]);
    assert_eq!(trim(&bench, 9).await, Trimmed::Removed(0));
    assert_eq!(bench.refused(&guard).await, Completion::Miscounted);
}

#[tokio::test]
async fn an_adopter_reads_every_hand_out_page_by_page() {
    let bench = with_entries().await;
    let adopter = bar(&bench).await;
    let one = |value| vec![range(value, value, 1)];
    let entry = |flight, allocations| OutboxEntry { flight, epoch: EPOCH, allocations };
    let first = [
        entry(2, vec![(one(1), "record of c".to_owned()), (one(2), "record of doc d1".to_owned())]),
        entry(3, vec![(one(2), "record of doc d1".to_owned())]),
    ];
    let OutboxPage::Entries { entries, complete } = page(&bench, &adopter, 0, 2).await else {
        panic!("fenced");
    };
    assert_eq!((entries.as_slice(), complete), (first.as_slice(), true));
    let last = entry(4, vec![(one(3), "record of c".to_owned())]);
    let second = OutboxPage::Entries { entries: vec![last], complete: true };
    assert_eq!(page(&bench, &adopter, 3, 2).await, second);
    assert_eq!(completeness(&page(&bench, &adopter, 4, 2).await), (0, true));
}

#[tokio::test]
async fn reading_needs_the_ownership_and_the_bar() {
    let bench = with_entries().await;
    let adopter = bench.other_node();
    assert_eq!(page(&bench, &adopter, 0, 9).await, OutboxPage::Fenced);
    let drop_early = bench.redis.drop_outbox(&bench.keys, &adopter, bench.guard.node, 9).await;
    assert_eq!(drop_early.unwrap(), Trimmed::Fenced);
    let old = Guard { epoch: EPOCH - 1, ..bench.other_node() };
    let barred = bench.redis.bar(&bench.keys, &old, bench.guard.node).await.unwrap();
    assert_eq!(barred, Barred::Fenced);
    let adopter = bar(&bench).await;
    let old = Guard { epoch: EPOCH - 1, ..adopter.clone() };
    assert_eq!(page(&bench, &old, 0, 9).await, OutboxPage::Fenced);
    // An adopter that was barred itself has lost the right to adopt.
    let barred = bench.redis.bar(&bench.keys, &bench.other_node(), adopter.node).await.unwrap();
    assert_eq!(barred, Barred::Barred);
    assert_eq!(page(&bench, &adopter, 0, 9).await, OutboxPage::Fenced);
    let again = bench.redis.bar(&bench.keys, &adopter, bench.guard.node).await.unwrap();
    assert_eq!(again, Barred::Fenced);
    bench.server.flushall();
    assert_eq!(page(&bench, &adopter, 0, 9).await, OutboxPage::Fenced);
}

#[tokio::test]
async fn a_missing_outbox_is_not_an_empty_one() {
    let bench = with_entries().await;
    let adopter = bar(&bench).await;
    bench.server.cli(&["xdel", &bench.outbox_key(), "3-0"]);
    assert_eq!(completeness(&page(&bench, &adopter, 0, 9).await), (2, false));
    bench.server.cli(&["del", &bench.outbox_key()]);
    assert_eq!(completeness(&page(&bench, &adopter, 0, 9).await), (0, false));
    bench.server.cli(&["set", &bench.outbox_key(), "x"]);
    assert_eq!(completeness(&page(&bench, &adopter, 0, 9).await), (0, false));
}

#[tokio::test]
async fn a_node_that_sent_nothing_in_this_epoch_has_nothing_to_account_for_in_it() {
    let mut bench = with_entries().await;
    bench.next_epoch(true, NOW_MS).await;
    let adopter = bar(&bench).await;
    let OutboxPage::Entries { entries, complete } = page(&bench, &adopter, 0, 9).await else {
        panic!("fenced");
    };
    assert!(complete);
    assert!(entries.iter().all(|entry| entry.epoch == EPOCH) && entries.len() == 3);
    // A count without flight, or a flight without count, is a damaged record.
    let (owner, node) = (bench.owner_key(), bench.guard.node);
    bench.server.cli(&["hset", &owner, &format!("f:{node}"), "4"]);
    assert_eq!(completeness(&page(&bench, &adopter, 0, 9).await), (3, false));
}

#[tokio::test]
async fn an_entry_that_no_flight_writes_makes_the_account_incomplete_but_hides_no_other() {
    let wrong: [&[&str]; 9] = [
        &["epoch", "5", "1", "rubbish"],
        &["epoch", "x", "taken", "1 70:9:9:1", "records", "r"],
        &["taken", "1 70:9:9:1", "records", "r"],
        &["epoch", "5", "taken", "1 70:9:8:1", "records", "r"],
        &["epoch", "5", "taken", "2 70:9:9:1", "records", "r"],
        &["epoch", "5", "taken", "1 70:9:9:1"],
        &["epoch", "x", "1", "taken 70:9:9:1 r"],
        &["1", "taken 70:9:9:1 r"],
        &["epoch", "5", "1", "taken 70:9:8:1 r"],
    ];
    for fields in wrong {
        let bench = with_entries().await;
        let (owner, outbox) = (bench.owner_key(), bench.outbox_key());
        let mut command = vec!["xadd", &outbox, "9-0"];
        command.extend(fields);
        bench.server.cli(&command);
        bench.server.cli(&["hset", &owner, &format!("n:{}", bench.guard.node), "4"]);
        let adopter = bar(&bench).await;
        assert_eq!(completeness(&page(&bench, &adopter, 0, 9).await), (4, false), "{fields:?}");
        assert_eq!(completeness(&page(&bench, &adopter, 0, 3).await), (3, true));
    }
}

#[tokio::test]
async fn an_entry_of_the_older_form_is_read_too() {
    let bench = with_entries().await;
    let (owner, outbox) = (bench.owner_key(), bench.outbox_key());
    bench.server.cli(&["xadd", &outbox, "9-0", "epoch", "5", "1", "taken 70:9:9:1 an old record"]);
    bench.server.cli(&["hset", &owner, &format!("n:{}", bench.guard.node), "4"]);
    let adopter = bar(&bench).await;
    let allocations = vec![(vec![range(9, 9, 1)], "an old record".to_owned())];
    let entries = vec![OutboxEntry { flight: 9, epoch: EPOCH, allocations }];
    assert_eq!(page(&bench, &adopter, 8, 9).await, OutboxPage::Entries { entries, complete: true });
}

#[tokio::test]
async fn a_dropped_outbox_goes_when_it_is_empty() {
    let bench = with_entries().await;
    let (adopter, dead) = (bar(&bench).await, bench.guard.node);
    let dropped = bench.redis.drop_outbox(&bench.keys, &adopter, dead, 3).await.unwrap();
    assert_eq!(dropped, Trimmed::Removed(2));
    assert_eq!(completeness(&page(&bench, &adopter, 0, 9).await), (1, true));
    let dropped = bench.redis.drop_outbox(&bench.keys, &adopter, dead, 4).await.unwrap();
    assert_eq!(dropped, Trimmed::Removed(1));
    assert_eq!(bench.server.cli(&["exists", &bench.outbox_key()]), "0");
    assert_eq!(completeness(&page(&bench, &adopter, 0, 9).await), (0, true));
    let again = bench.redis.drop_outbox(&bench.keys, &adopter, dead, 4).await.unwrap();
    assert_eq!(again, Trimmed::Removed(0));
}

/// The 409 shows a number that another node may have taken and may never hand out (F30).
#[tokio::test]
async fn a_number_that_a_refusal_shows_stands_in_the_outbox_of_who_shows_it() {
    let mut bench = Bench::new().await;
    bench.seed("c", 0, 1_000).await;
    bench.issue(&[keyed("doc", None, "d1")]).await;
    let mut other = bench.other_node();
    other.flight = 1;
    let flight = bench.flight(&other, &[keyed("doc", None, "d2")]);
    let record = "record of doc d1".to_owned();
    let shown = [IssueOutcome::DocumentNumbered { taken: vec![range(1, 1, 1)], record }];
    assert_eq!(issued(bench.redis.issue(&flight).await), shown);
    let outbox = bench.keys.outbox(PARTITION, other.node);
    let entry = bench.server.cli(&["--raw", "xrange", &outbox, "-", "+"]);
    assert_eq!(entry, "1-0\nepoch\n5\n1\nnumbered 70:1:1:1 record of doc d1");
    // Sent again, it shows the same.
    assert_eq!(issued(bench.redis.issue(&flight).await), shown);
}

#[tokio::test]
async fn what_the_ledger_confirmed_is_left_by_who_trims_and_outlives_epochs() {
    let mut bench = with_entries().await;
    let said = async |bench: &Bench| {
        let survey = bench.redis.survey(&bench.keys, PARTITION, &[]).await.unwrap();
        survey.owner.unwrap().confirmed
    };
    assert_eq!(said(&bench).await, None);
    bench.redis.trim(&bench.keys, &bench.guard, 1, "seven beats").await.unwrap();
    assert_eq!(said(&bench).await.as_deref(), Some("seven beats"));
    // A caller with nothing to report leaves the earlier report.
    trim(&bench, 2).await;
    assert_eq!(said(&bench).await.as_deref(), Some("seven beats"));
    let fenced = Guard { epoch: bench.guard.epoch + 1, ..bench.guard.clone() };
    let refused = bench.redis.trim(&bench.keys, &fenced, 2, "nine").await.unwrap();
    assert_eq!((refused, said(&bench).await.as_deref()), (Trimmed::Fenced, Some("seven beats")));
    bench.next_epoch(false, NOW_MS).await;
    assert_eq!(said(&bench).await.as_deref(), Some("seven beats"));
}
