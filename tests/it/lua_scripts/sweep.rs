//! What a sweep removes of a partition's counters, and that nothing else is removed with them.

use numerator::redis::{Guard, HeldKey, IssueOutcome, SeedState, SweptCounters};

use super::bench::{Bench, EPOCH, NOW_MS, plain};

impl Bench {
    /// Sweeps counters by their names.
    async fn sweep(&self, guard: &Guard, names: &[&str], upto: u64) -> Option<SweptCounters> {
        let held: Vec<_> = names.iter().map(|name| HeldKey::Counter((*name).into())).collect();
        self.redis.sweep(&self.keys, guard, &held, upto).await.unwrap()
    }

    fn run_since(&self) -> String {
        self.server.cli(&["hget", &self.owner_key(), "run_since"])
    }

    /// One counter of each of three epochs, the last of which is open.
    async fn with_three_epochs() -> Self {
        let mut bench = Bench::new().await;
        for (name, epoch) in [("old", EPOCH), ("young", EPOCH + 1), ("present", EPOCH + 2)] {
            assert_eq!(bench.guard.epoch, epoch);
            assert_eq!(bench.seed(name, 3, 10).await, SeedState::Seeded);
            if name != "present" {
                bench.next_epoch(false, NOW_MS).await;
            }
        }
        bench
    }
}

#[tokio::test]
async fn counters_of_epochs_closed_long_ago_go_and_nothing_else() {
    let mut bench = Bench::with_three_epochs().await;
    for (name, epoch) in [("newer", "99"), ("torn", "5x"), ("dated", "")] {
        bench.server.cli(&["hset", &bench.counter_key(name), "epoch", epoch, "value", "1"]);
    }
    bench.server.cli(&["hset", &bench.counter_key("bare"), "value", "1"]);
    bench.server.cli(&["rpush", &bench.counter_key("list"), "x"]);
    let names = ["old", "young", "present", "newer", "torn", "dated", "bare", "list", "missing"];
    let before = bench.dump();
    let none = SweptCounters { removed: 0, present: 1 };
    assert_eq!(bench.sweep(&bench.guard, &names, EPOCH - 1).await, Some(none));
    assert_eq!(bench.dump(), before, "whoever only counts changes nothing");

    let one = SweptCounters { removed: 1, present: 1 };
    assert_eq!(bench.sweep(&bench.guard, &names, EPOCH).await, Some(one));
    let (gone, owner) = (bench.counter_key("old"), bench.owner_key());
    let but_those = |dump: Vec<(String, String)>| {
        dump.into_iter().filter(|(key, _)| *key != gone && *key != owner).collect::<Vec<_>>()
    };
    let after = bench.dump();
    assert!(!after.iter().any(|(key, _)| *key == gone));
    assert_eq!(but_those(after), but_those(before));
    assert_eq!(bench.sweep(&bench.guard, &names, EPOCH).await, Some(none), "it is safe to repeat");

    // It was cold, and is.
    assert_eq!(bench.issue(&[plain("old")]).await, [IssueOutcome::Cold { take: 0 }]);
    assert_eq!(bench.seed("old", 3, 10).await, SeedState::Seeded);
}

#[tokio::test]
async fn what_is_gone_is_no_part_of_what_this_data_set_took() {
    let mut bench = Bench::with_three_epochs().await;
    assert_eq!(bench.run_since(), EPOCH.to_string());
    bench.sweep(&bench.guard, &["young", "present"], EPOCH).await;
    assert_eq!(bench.run_since(), EPOCH.to_string(), "nothing went");
    bench.sweep(&bench.guard, &["old"], EPOCH).await;
    assert_eq!(bench.run_since(), (EPOCH + 1).to_string());
    bench.next_epoch(false, NOW_MS).await;
    assert_eq!(bench.run_since(), (EPOCH + 1).to_string(), "the next epoch carries it");
    // It never falls, and an unknown value stays unknown.
    for since in ["7", "rubbish"] {
        bench.server.cli(&["hset", &bench.counter_key("old"), "epoch", "5"]);
        bench.server.cli(&["hset", &bench.owner_key(), "run_since", since]);
        let swept = bench.sweep(&bench.guard, &["old"], EPOCH).await;
        assert_eq!((swept.unwrap().removed, &*bench.run_since()), (1, since));
    }
}

#[tokio::test]
async fn a_sweep_is_refused_to_whoever_does_not_own_the_partition_now() {
    let bench = Bench::with_three_epochs().await;
    let other = bench.other_node();
    let barred = bench.redis.bar(&bench.keys, &bench.guard, other.node).await;
    assert!(barred.is_ok(), "{barred:?}");
    let before = bench.dump();
    let own = bench.guard.clone();
    for (guard, why) in [
        (Guard { epoch: EPOCH + 1, ..own.clone() }, "an older epoch"),
        (Guard { epoch: EPOCH + 3, ..own.clone() }, "a newer epoch"),
        (Guard { incarnation: "c".repeat(40), ..own.clone() }, "another data set"),
        (other, "a barred node"),
    ] {
        assert_eq!(bench.sweep(&guard, &["old"], EPOCH).await, None, "{why}");
        assert_eq!(bench.dump(), before, "{why}");
    }
    // A caller that names the present epoch is wrong, and nothing is removed.
    let held = [HeldKey::Counter("old".into()), HeldKey::Counter("present".into())];
    let swept = bench.redis.sweep(&bench.keys, &own, &held, EPOCH + 2).await;
    assert!(swept.is_err(), "{swept:?}");
    assert_eq!(bench.dump(), before);
    // Once the partition is sealed its counters are what a release reads.
    let sealed = bench.redis.freeze(&bench.keys, own.partition, super::bench::DEPLOYMENT, 50).await;
    assert!(sealed.is_ok(), "{sealed:?}");
    let before = bench.dump();
    assert_eq!(bench.sweep(&own, &["old"], EPOCH).await, None);
    assert_eq!(bench.dump(), before);
}
