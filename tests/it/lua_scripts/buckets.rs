//! How buckets store idempotency records, and for how long the buckets last.

use std::slice::from_ref;

use numerator::redis::{IssueOutcome, IssueRequest};

use super::bench::{Bench, NOW_MS, WINDOW_MS, keyed, range, replayed, seeded, taken, window_ms};

/// Another number for the document `doc`.
fn another(digest: &str) -> IssueRequest {
    IssueRequest { again: true, asked: true, ..keyed("doc", None, digest) }
}

/// The remaining time of a key.
fn left_ms(bench: &Bench, key: &str) -> u64 {
    bench.server.cli(&["pttl", key]).trim().parse().unwrap()
}

/// Leaves a key little time, takes a number for its document, and returns what the key has then.
async fn left_after_a_number(bench: &mut Bench, key: &str, digest: &str, at_ms: i64) -> u64 {
    bench.server.cli(&["pexpire", key, &WINDOW_MS.to_string()]);
    bench.issue_at(&[another(digest)], at_ms).await;
    left_ms(bench, key)
}

#[tokio::test]
async fn a_record_takes_few_bytes_and_goes_with_the_window() {
    let mut bench = seeded().await;
    bench.issue(&[keyed("doc", Some("key"), "d1")]).await;
    let buckets = bench.bucket_keys();
    assert_eq!(buckets.len(), 2, "{buckets:?}");
    for key in &buckets {
        let lengths = "local list = {} for i, text in ipairs(redis.call('hgetall', KEYS[1])) do \
                       list[i] = #text end return list";
        let lengths = bench.server.cli(&["--raw", "eval", lengths, "1", key]);
        // And the bucket's mark, however many records it has.
        assert_eq!(lengths.trim(), "12\n44\n0\n18");
        assert_eq!(bench.server.cli(&["object", "encoding", key]).trim(), "listpack");
    }
    let list = bench.records_key();
    // The list outlives what it names.
    for (key, windows) in buckets.iter().map(|key| (key, 3)).chain([(&list, 4)]) {
        let left_ms = left_ms(&bench, key);
        assert!(left_ms.abs_diff(windows * WINDOW_MS) < 60_000, "{left_ms}");
        bench.server.cli(&["pexpire", key, &(2 * WINDOW_MS - 1_000).to_string()]);
    }
    // Extended before a record in it could expire early: what comes in the next period stays for a
    // window, and is expected to exist until the end of the period after that.
    let again = IssueRequest { again: true, ..keyed("doc", None, "d2") };
    assert_eq!(bench.issue_at(&[again], NOW_MS + window_ms()).await.outcomes, [taken(2)]);
    let put_off = buckets.iter().filter(|key| left_ms(&bench, key) > 2 * WINDOW_MS);
    assert_eq!(put_off.count(), 1, "the document's");
    assert!(left_ms(&bench, &list) > 3 * WINDOW_MS);
}

/// Its mark shows that it was extended, unless that was for a shorter window: periods of two
/// windows may begin at the same moment.
#[tokio::test]
async fn a_bucket_is_put_off_once_in_a_period_and_with_each_record_while_its_window_is_new() {
    let mut bench = seeded().await;
    let at_ms = NOW_MS + window_ms();
    assert_eq!(at_ms / window_ms() % 2, 0, "a period of twice the window begins with this one");
    bench.issue_at(&[another("d1")], at_ms).await;
    let [key] = &bench.bucket_keys()[..] else { panic!("one bucket") };
    let first = left_ms(&bench, key);
    assert!(first > 2 * WINDOW_MS, "{first}");
    let second = left_after_a_number(&mut bench, key, "d2", at_ms + 1).await;
    assert!(second <= WINDOW_MS, "asked again though marked: {second}");

    bench.limits.window_ms = 2 * WINDOW_MS;
    // In the very millisecond in which both periods begin: what has the mark may be from before.
    for (digest, at_ms) in [("d3", at_ms), ("d4", at_ms + 2)] {
        let left = left_after_a_number(&mut bench, key, digest, at_ms).await;
        assert!(left > 4 * WINDOW_MS, "{digest}: {left}");
    }
    let next_ms = at_ms + 2 * window_ms();
    let left = left_after_a_number(&mut bench, key, "d5", next_ms).await;
    assert!(left > 4 * WINDOW_MS, "{left}");
    let left = left_after_a_number(&mut bench, key, "d6", next_ms).await;
    assert!(left <= WINDOW_MS, "asked again though marked: {left}");
    // Another epoch's marks say nothing of this one's windows, nor the other way round.
    bench.next_epoch(false, next_ms).await;
    bench.seed("c", 6, 1_000).await;
    let left = left_after_a_number(&mut bench, key, "d7", next_ms).await;
    assert!(left > 4 * WINDOW_MS, "{left}");
}

/// Versions run side by side on one Redis: these are the bytes that each of them writes and reads.
#[tokio::test]
async fn a_record_has_the_bytes_that_every_version_writes() {
    let mut bench = seeded().await;
    bench.issue(&[keyed("filler", None, "d1"), keyed("doc", None, "d1")]).await;
    let stored = |key: &str, script: &str, args: &[String]| {
        let mut command = vec!["--raw", "eval", script, "1", key];
        command.extend(args.iter().map(String::as_str));
        bench.server.cli(&command).trim().to_owned()
    };
    let guard = &bench.guard;
    let script = "local part = function(at) \
                  return tonumber(string.sub(ARGV[2], at, at + 7), 16) end \
                  local node = struct.pack('>I4I4I4I4', part(1), part(9), part(17), part(25)) \
                  local text = struct.pack('>I6I6c16I6I2c8', ARGV[1], ARGV[4], node, ARGV[3], \
                  ARGV[5], '\\0\\0\\0\\0\\0\\0d1') \
                  local all, equal = redis.call('hgetall', KEYS[1]), 0 \
                  for i = 1, #all, 2 do if #all[i] == 12 and all[i + 1] == text then \
                  equal = equal + 1 end end return equal";
    for place in 1..=2 {
        let args = [
            guard.epoch.to_string(),
            guard.node.to_string(),
            guard.flight.to_string(),
            NOW_MS.to_string(),
            place.to_string(),
        ];
        let keys = bench.bucket_keys();
        let equal = keys.iter().filter(|key| stored(key, script, &args) == "1");
        assert_eq!(equal.count(), 1, "{place}");
    }
    let mark =
        "return redis.call('hget', KEYS[1], '') == struct.pack('>I6I6I6', 0, ARGV[1], ARGV[2])";
    let period = (NOW_MS / window_ms() * window_ms()).to_string();
    for key in bench.bucket_keys() {
        assert_eq!(stored(&key, mark, &[guard.epoch.to_string(), period.clone()]), "1", "{key}");
    }
}

#[tokio::test]
async fn a_document_and_a_key_that_come_again_in_a_flight_are_written_once_as_they_are_at_its_end()
{
    let mut bench = seeded().await;
    let first = keyed("doc", Some("k1"), "d1");
    let second = IssueRequest { again: true, ..keyed("doc", Some("k2"), "d2") };
    let flight = [
        first.clone(),
        second.clone(),
        first.clone(),
        keyed("doc", Some("k3"), "d2"),
        keyed("doc", None, "d3"),
        keyed("other", Some("k2"), "d3"),
    ];
    let numbered = |value| IssueOutcome::DocumentNumbered {
        taken: vec![range(value, value, 1)],
        record: "record of doc d2".into(),
    };
    let reused = IssueOutcome::KeyReused;
    let expected = [
        taken(1),
        taken(2),
        replayed(1, "record of doc d1"),
        replayed(2, "record of doc d2"),
        numbered(2),
        reused,
    ];
    assert_eq!(bench.issue(&flight).await, expected);
    // The document, and three keys.
    let list = bench.server.cli(&["--raw", "eval", LIST, "1", &bench.records_key()]);
    assert_eq!(list.trim(), "1 4 48 48");
    let third = keyed("doc", Some("k3"), "d2");
    for (request, value) in [(&first, 1), (&second, 2), (&third, 2)] {
        let record = format!("record of doc d{value}");
        assert_eq!(bench.issue(from_ref(request)).await, [replayed(value, &record)]);
    }
    assert_eq!(bench.issue(&[keyed("doc", None, "d3")]).await, [numbered(2)]);
}

/// The list's only element: its ordinals, the length of its names, and that of all different ones.
const LIST: &str = "local text = redis.call('lindex', KEYS[1], 0) \
                    local first, last, names = string.match(text, '^(%d+) (%d+) %d+ (.*)$') \
                    local seen, different = {}, 0 \
                    for at = 1, #names, 12 do local name = string.sub(names, at, at + 11) \
                    if not seen[name] then seen[name], different = true, different + 12 end end \
                    return first .. ' ' .. last .. ' ' .. #names .. ' ' .. different";
