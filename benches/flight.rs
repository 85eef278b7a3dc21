//! How long a flight takes to be encoded, keys and digest included: `cargo bench --bench flight`.
//! Partition workers do this between two calls to Redis, so it is to stay far below what the call
//! takes.
#![allow(missing_docs, reason = "a benchmark says what it measures in its name")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use numerator::ledger::Record;
use numerator::node::NodeId;
use numerator::redis::{Flight, Guard, IdempotencyLimits, IssueRequest, Keys, PayloadMark, Take};
use uuid::Uuid;

const NOW_MS: i64 = 1_764_600_000_000;
const LIMITS: IdempotencyLimits =
    IdempotencyLimits { window_ms: 86_400_000, records_max: 10_000_000, keep_whole: false };

/// The record of an ordinary request for a document.
fn record(document: usize) -> Record {
    Record {
        allocation_id: Uuid::from_u128(u128::MAX),
        series_id: 3,
        version: 1,
        type_code: "SPO".into(),
        project: None,
        scope: String::new(),
        mask: "SPO-20240122-{0:3}".into(),
        document_id: Some(format!("order-{document}")),
        document_date: "2024-01-22".into(),
        context: [("BRANCH".to_owned(), "BKK02".to_owned())].into(),
        serials: vec!["SEQ".into()],
        counter_keys: vec!["type=SPO;day=2024-01-22".into()],
        user_id: "local".into(),
        ip_address: Some("127.0.0.1".into()),
        idempotency_key: None,
        payload_digest: "971ec6de3dc8b2fec57bac1ba299503c".into(),
        issued_at_us: NOW_MS * 1_000,
    }
}

/// A request for a document; counters are dealt out in turn.
fn request(document: usize, counters: usize) -> IssueRequest {
    IssueRequest {
        takes: vec![Take {
            start: 1,
            counter: format!("3:SEQ:branch={};day=2024-01-22", document % counters),
            count: 1,
            step: 1,
            max: 999_999_999,
            seen: Some(123_456),
        }],
        caller_key: None,
        document_key: Some(format!("d:3:order-{document}")),
        payload: PayloadMark::of("971ec6de3dc8b2fec57bac1ba299503c"),
        again: false,
        once_per_document: false,
        asked: false,
        record: record(document).to_flat_json().into(),
    }
}

fn keys(criterion: &mut Criterion) {
    let keys = Keys::new("nbr");
    criterion.bench_function("build the key of a counter", |bencher| {
        bencher.iter(|| keys.counter(black_box(7), black_box("3:SEQ:day=2024-01-22")));
    });
}

fn encoding(criterion: &mut Criterion) {
    let one = record(1);
    criterion.bench_function("encode a record", |bencher| {
        bencher.iter(|| black_box(&one).to_flat_json());
    });
    let keys = Keys::new("nbr");
    let guard = Guard {
        partition: 7,
        epoch: 1,
        incarnation: "0123456789012345678901234567890123456789".into(),
        node: NodeId(Uuid::from_u128(1)),
        flight: 2,
        confirmed: 1,
    };
    let mut group = criterion.benchmark_group("encode a flight");
    for (requests, counters) in [(1, 1), (32, 1), (32, 32), (256, 1)] {
        let list: Vec<_> = (0..requests).map(|document| request(document, counters)).collect();
        group.throughput(Throughput::Elements(requests as u64));
        let name = BenchmarkId::new(format!("{counters} counters"), requests);
        group.bench_function(name, |bencher| {
            bencher.iter(|| Flight::issue(&keys, &guard, black_box(&list), Some(NOW_MS), LIMITS));
        });
    }
    group.finish();
}

criterion_group!(benches, keys, encoding);
criterion_main!(benches);
