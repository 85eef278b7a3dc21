//! scan, reveal, seal: what is read of a held partition, and how its owner is ended (F9).

use numerator::redis::{
    Completion, Frozen, HeldKey, IssueOutcome, OpenOutcome, Opening, Remembered, Revealed,
    SCAN_KEYS,
};

use super::bench::{Bench, DEPLOYMENT, EPOCH, NOW_MS, PARTITION, keyed, plain, taken};

/// Every key of the partition, over all pages.
async fn scan(bench: &Bench) -> Vec<HeldKey> {
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let page =
            bench.redis.scan(&bench.keys, PARTITION, cursor.as_deref(), SCAN_KEYS).await.unwrap();
        assert!(page.is_master);
        all.extend(page.keys);
        cursor = page.next;
        if cursor.is_none() {
            return all;
        }
    }
}

#[tokio::test]
async fn a_scan_finds_every_key_of_the_partition_and_no_other() {
    let mut bench = Bench::new().await;
    for index in 0..1_200 {
        bench.seed(&format!("7:SEQ:k={index}"), 0, 10).await;
    }
    bench.seed("c", 0, 100).await;
    bench.issue(&[keyed("one", None, "d1")]).await;
    bench.server.cli(&["set", "nbr:{8}:c:7:SEQ:other", "x"]);
    bench.server.cli(&["set", "other:{7}:c:7:SEQ:other", "x"]);
    let held = scan(&bench).await;
    let count = |is: fn(&HeldKey) -> bool| {
        let names: std::collections::BTreeSet<_> =
            held.iter().filter(|key| is(key)).map(|key| format!("{key:?}")).collect();
        names.len()
    };
    assert_eq!(count(|key| matches!(key, HeldKey::Counter(_))), 1_201);
    assert_eq!(count(|key| matches!(key, HeldKey::Outbox(_))), 1);
    assert!(count(|key| matches!(key, HeldKey::Bucket(_))) >= 1);
    let page = bench.redis.scan(&bench.keys, PARTITION, None, SCAN_KEYS).await.unwrap();
    assert_eq!(page.deployment.as_deref(), Some(DEPLOYMENT));
    assert_eq!((page.epoch, page.taking_epoch), (Some(EPOCH), Some(EPOCH)));
}

#[tokio::test]
async fn counters_records_and_outboxes_are_revealed_as_they_stand() {
    let mut bench = Bench::new().await;
    bench.limits.keep_whole = true;
    bench.seed("c", 0, 100).await;
    let request = keyed("one", None, "d1");
    let IssueOutcome::Taken(values) = bench.issue(std::slice::from_ref(&request)).await.remove(0)
    else {
        panic!("taken")
    };
    let node = bench.guard.node;
    let entries = bench.redis.peek(&bench.keys, PARTITION, node, 0, 10).await.unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].allocations, [(values.clone(), request.record.to_string())]);
    let after = entries[0].flight;
    assert_eq!(bench.redis.peek(&bench.keys, PARTITION, node, after, 10).await.unwrap(), []);

    let bucket = bench.bucket_keys().remove(0);
    let bucket: u32 = bucket.rsplit(':').next().unwrap().parse().unwrap();
    bench.server.cli(&["hset", "nbr:{7}:c:7:SEQ:high", "value", "500", "ceiling", "x"]);
    let held = [
        HeldKey::Counter("c".into()),
        HeldKey::Bucket(bucket),
        HeldKey::Outbox(node),
        HeldKey::Counter("7:SEQ:high".into()),
        HeldKey::Counter("7:SEQ:missing".into()),
    ];
    let revealed = bench.redis.reveal(&bench.keys, PARTITION, &held).await.unwrap();
    let record = request.record.to_string();
    let whole = Remembered { epoch: EPOCH, taken: values, record };
    let high = Revealed::Counter { highest: 500 };
    let expected = [
        Revealed::Counter { highest: 100 },
        Revealed::Bucket(vec![whole]),
        Revealed::Nothing,
        high,
        Revealed::Nothing,
    ];
    assert_eq!(revealed, expected);
    assert_eq!(bench.redis.reveal(&bench.keys, PARTITION, &[]).await.unwrap(), []);
}

#[tokio::test]
async fn a_sealed_partition_gives_no_number_until_a_higher_epoch_is_opened() {
    let mut bench = Bench::new().await;
    bench.seed("c", 0, 100).await;
    let seal = async |epoch| bench.redis.freeze(&bench.keys, PARTITION, DEPLOYMENT, epoch).await;
    assert!(matches!(seal(EPOCH).await.unwrap(), Frozen::Unfit { .. }), "not above the record");
    for epoch in [EPOCH + 4, EPOCH + 5] {
        assert_eq!(seal(epoch).await.unwrap(), Frozen::Frozen);
    }
    let foreign = bench.redis.freeze(&bench.keys, PARTITION, "another", EPOCH + 9).await.unwrap();
    assert_eq!(foreign, Frozen::Foreign { deployment: DEPLOYMENT.into() });
    let page = bench.redis.scan(&bench.keys, PARTITION, None, SCAN_KEYS).await.unwrap();
    assert_eq!((page.epoch, page.taking_epoch), (Some(EPOCH + 5), Some(EPOCH)), "both are known");
    assert_eq!(page.run_since, Some(EPOCH), "a repeat reads the same");

    let guard = bench.next();
    let flight = bench.flight(&guard, &[plain("c")]);
    let completion = bench.redis.issue(&flight).await.unwrap();
    assert!(matches!(completion, Completion::Fenced { epoch: Some(10), .. }), "{completion:?}");
    let late = Opening { epoch: EPOCH + 5, ..bench.opening() };
    assert_eq!(bench.open(&late).await, OpenOutcome::Newer { epoch: EPOCH + 5 });
    let (epoch, closed_epoch) = (EPOCH + 6, EPOCH + 5);
    let next = Opening { epoch, closed_epoch, pristine: false, ..bench.opening() };
    assert_eq!(bench.open(&next).await, OpenOutcome::Opened);
    let since = bench.server.cli(&["hget", &bench.owner_key(), "continuous_since_ms"]);
    assert_eq!(since, NOW_MS.to_string(), "the records of sealed epochs are not all here");
    let page = bench.redis.scan(&bench.keys, PARTITION, None, SCAN_KEYS).await.unwrap();
    assert_eq!(page.run_since, Some(EPOCH + 6), "nor are their numbers");
    bench.guard.epoch = EPOCH + 6;
    bench.guard.confirmed = 0;
    bench.seed("c", 100, 200).await;
    assert_eq!(bench.issue(&[plain("c")]).await, [taken(101)]);
}

#[tokio::test]
async fn a_server_without_an_owner_record_has_nothing_to_seal() {
    let bench = Bench::unopened().await;
    let sealed = bench.redis.freeze(&bench.keys, PARTITION, DEPLOYMENT, EPOCH).await.unwrap();
    assert_eq!(sealed, Frozen::Frozen);
    assert_eq!(bench.server.cli(&["exists", "nbr:{7}:owner"]), "0");
    let page = bench.redis.scan(&bench.keys, PARTITION, None, SCAN_KEYS).await.unwrap();
    assert_eq!((page.epoch, page.run_since, page.deployment), (None, None, None));
}
