//! The basis of a case: an open ledger with four partitions and one registered node, and short ways
//! to say what happens to it.

use std::sync::Arc;
use std::time::Duration;

use numbering::{DocumentsOf, NUMBER_MAX, Range, TakenRange};
use numerator::clock::ManualClock;
use numerator::ledger::{
    At, Claim, Closing, CounterSpec, Deployment, Entry, IssuePath, LedgerError, LedgerSettings,
    NewNode, Owner, Partition, PartitionState, Question, Record, SeedOutcome, SharedLedger, Span,
    TakeOutcome, TakeRequest, Taken, open,
};
use numerator::node::NodeId;
use tokio::task::JoinHandle;
use uuid::Uuid;

/// The time at which every case begins.
pub(super) const NOW_US: i64 = 1_700_000_000_000_000;
/// How long takes wait for a lock.
pub(super) const LOCK_WAIT: Duration = Duration::from_secs(10);
/// The partition that cases use unless they need two.
pub(super) const PARTITION: u32 = 2;

pub(super) struct World {
    pub ledger: SharedLedger,
    pub url: String,
    pub clock: Arc<ManualClock>,
    pub node: NodeId,
}

impl World {
    /// Waits until a session of its database waits for a lock; false if a call that should has
    /// ended before.
    pub(super) async fn meets_lock<T>(&self, pool: &sqlx::PgPool, call: &JoinHandle<T>) -> bool {
        // A lock of a transaction names no database.
        let waits = "select count(*) from pg_locks join pg_stat_activity using (pid) \
                     where not granted and datname = current_database()";
        while sqlx::query_scalar::<_, i64>(waits).fetch_one(pool).await.unwrap() == 0 {
            if call.is_finished() {
                return false;
            }
            // Between two checks: what is waited for needs the processor too.
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        true
    }

    pub(super) async fn open(url: &str) -> Self {
        let clock = Arc::new(ManualClock::at(NOW_US));
        let ledger = open(url, connections(6), clock.clone()).await.unwrap();
        ledger.deployment(&deployment()).await.unwrap();
        let world = World { ledger, url: url.to_owned(), clock, node: NodeId::random() };
        world.join(world.node).await;
        world
    }

    /// Another process on the same ledger.
    pub(super) async fn another(&self) -> SharedLedger {
        open(&self.url, connections(2), self.clock.clone()).await.unwrap()
    }

    /// Registers a node.
    pub(super) async fn join(&self, node: NodeId) {
        let label = "test".to_owned();
        let new = NewNode { node_id: node, label, version: "0".into(), started_at_us: NOW_US };
        self.ledger.nodes().register(&new).await.unwrap();
    }

    pub(super) async fn partition(&self) -> Partition {
        let mut partitions = self.ledger.partitions().await.unwrap();
        partitions.remove(PARTITION as usize)
    }

    /// Ends the current epoch with a closing and opens the next for an owner. Only an epoch of
    /// Redis can close at the ceiling: a node takes part in it and then falls silent.
    pub(super) async fn next_epoch(&self, closing: Closing, owner: Owner) -> At {
        let epoch = self.partition().await.epoch;
        if closing == Closing::Ceiling {
            self.join_silently(at(epoch)).await;
        }
        let from = PartitionState::Open;
        let next = self.ledger.bump(at(epoch), from, self.node, "test").await.unwrap().unwrap();
        self.claim(at(next), closing, &owner).await;
        if owner != Owner::Database {
            assert!(self.ledger.opened(at(next), self.node).await.unwrap());
        }
        at(next)
    }

    /// A node takes part in an open epoch and then falls silent.
    pub(super) async fn join_silently(&self, at: At) {
        let silent = NodeId::random();
        self.join(silent).await;
        assert!(self.ledger.participate(at, silent).await.unwrap());
    }

    /// Closes the epoch before, which must end so, and claims this one.
    pub(super) async fn claim(&self, at: At, closing: Closing, owner: &Owner) {
        let claim = self.ledger.claim_open(at, self.node, true, owner).await.unwrap();
        assert_eq!(claim, Claim::Closed(closing));
    }

    pub(super) async fn redis_epoch(&self, closing: Closing) -> At {
        self.next_epoch(closing, redis()).await
    }

    pub(super) async fn database_epoch(&self) -> At {
        self.next_epoch(Closing::Exact, Owner::Database).await
    }

    /// Seeds one counter; its id, the value it starts above, and its ceiling.
    pub(super) async fn seed(&self, at: At, spec: &CounterSpec) -> (i64, i64, i64) {
        let seeded = self.ledger.seed(at, self.node, std::slice::from_ref(spec)).await.unwrap();
        match &seeded[..] {
            [SeedOutcome::Seeded { counter_id, value, ceiling }] => (*counter_id, *value, *ceiling),
            other => panic!("not seeded: {other:?}"),
        }
    }

    /// Journals entries that must all be new and sound.
    pub(super) async fn append(&self, entries: &[Entry]) {
        let appended = self.ledger.append(self.node, entries).await.unwrap();
        assert_eq!((appended.known, appended.collisions.len()), (0, 0), "{appended:?}");
    }

    /// Takes one order that must get a number.
    pub(super) async fn take(&self, at: At, order: TakeRequest) -> Entry {
        let taken = self.ledger.take(at, self.node, &[order], LOCK_WAIT).await.unwrap();
        match &taken.outcomes[..] {
            [TakeOutcome::Taken(entry)] => entry.clone(),
            other => panic!("not taken: {other:?}"),
        }
    }

    /// Takes as a caller for numbers does: again if the engine undid it for another transaction. An
    /// import that makes a counter and a take of it may wait for each other.
    pub(super) async fn take_again(&self, at: At, orders: &[TakeRequest]) -> Taken {
        for _ in 0..3 {
            match self.ledger.take(at, self.node, orders, LOCK_WAIT).await {
                Err(LedgerError::Conflict(_)) => {}
                taken => return taken.unwrap(),
            }
        }
        panic!("undone three times");
    }

    /// The gaps of a counter as (first, last, reason), by value.
    pub(super) async fn gaps(&self, counter_id: i64) -> Vec<(u64, u64, String)> {
        let filter = numerator::ledger::GapFilter {
            counter_id: Some(counter_id),
            limit: 10_000,
            ..numerator::ledger::GapFilter::default()
        };
        let gaps = self.ledger.register().gaps(&filter).await.unwrap();
        let mut gaps: Vec<_> = gaps
            .into_iter()
            .map(|gap| (gap.span.first, gap.span.last, format!("{:?}", gap.reason)))
            .collect();
        gaps.sort();
        gaps
    }

    pub(super) async fn holes(&self, counter_id: i64, after: i64, upto: i64) -> Vec<(u64, u64)> {
        let holes = self.ledger.audits().holes(counter_id, after, upto, 100).await.unwrap();
        holes.into_iter().map(|Span { first, last }| (first, last)).collect()
    }

    /// Every value from the first to the highest is accounted for exactly once.
    pub(super) async fn verify(&self) {
        for counter in self.ledger.counters().page(0, 1_000).await.unwrap() {
            let id = counter.counter_id;
            assert_eq!(self.holes(id, counter.origin, counter.taken).await, [], "{counter:?}");
            assert_eq!(self.ledger.audits().overlaps(id, 10).await.unwrap(), [], "{counter:?}");
        }
    }
}

/// Settings with so many connections.
pub(super) fn connections(connections_max: u32) -> LedgerSettings {
    LedgerSettings { connections_max, ..LedgerSettings::default() }
}

pub(super) fn deployment() -> Deployment {
    Deployment { deployment_id: Uuid::new_v4(), partitions: 4, prefix: "nbr".into() }
}

pub(super) fn at(epoch: u64) -> At {
    At { partition: PARTITION, epoch }
}

pub(super) fn redis() -> Owner {
    Owner::Redis { incarnation: "a".repeat(40) }
}

/// A counter from 1 by 1 with room for 10.
pub(super) fn spec(key: &str) -> CounterSpec {
    let key = key.to_owned();
    let (serial, start, step, max, headroom) = ("SEQ".to_owned(), 1, 1, NUMBER_MAX, 10);
    CounterSpec { series_id: 7, version: 1, serial, key, start, step, max, headroom }
}

/// A record whose number is `<document>-<value>`.
pub(super) fn record(document: &str) -> Record {
    Record {
        allocation_id: Uuid::now_v7(),
        series_id: 7,
        version: 1,
        type_code: "T".into(),
        project: None,
        scope: String::new(),
        mask: format!("{document}-{{0:3}}"),
        document_id: Some(document.into()),
        document_date: "2026-01-02".into(),
        context: [("REV".to_owned(), "A".to_owned())].into(),
        serials: vec!["SEQ".into()],
        counter_keys: vec!["k".into()],
        user_id: "u".into(),
        ip_address: Some("::1".into()),
        idempotency_key: None,
        payload_digest: "00ff".into(),
        issued_at_us: NOW_US,
    }
}

/// An entry of a single number from Redis.
pub(super) fn entry(at: At, counter_id: i64, value: u64) -> Entry {
    range(at, counter_id, value, value)
}

/// An entry of a range of step 1 from Redis.
pub(super) fn range(at: At, counter_id: i64, first: u64, last: u64) -> Entry {
    stepped(at, counter_id, first, last, 1)
}

/// An entry of a range from Redis.
pub(super) fn stepped(at: At, counter_id: i64, first: u64, last: u64, step: u64) -> Entry {
    let document = format!("d{}", Uuid::new_v4().simple());
    Entry {
        number: format!("{document}-{first:03}"),
        record: Arc::new(record(&document)),
        taken: vec![TakenRange { counter_id, range: Range { first, last, step } }],
        at,
        retry_count: 1,
        path: IssuePath::Redis,
    }
}

/// The entry with another record.
pub(super) fn with(mut entry: Entry, change: impl FnOnce(&mut Record)) -> Entry {
    change(Arc::make_mut(&mut entry.record));
    entry
}

/// An order of one number for a document, on the counter `k`.
pub(super) fn order(document: &str) -> TakeRequest {
    order_of(record(document))
}

/// An order of one number for a record, on the counter `k`.
pub(super) fn order_of(record: Record) -> TakeRequest {
    TakeRequest {
        question: question(&record),
        record: Arc::new(record),
        count: 1,
        family: None,
        specs: vec![spec("k")],
        retry_count: 0,
        reserve_us: None,
    }
}

/// What a record's keys ask.
pub(super) fn question(record: &Record) -> Question {
    Question {
        payload_digest: record.payload_digest.clone(),
        again: false,
        series_id: record.series_id,
        user_id: record.user_id.clone(),
        idempotency_key: record.idempotency_key.clone(),
        document_id: record.document_id.clone(),
        documents: DocumentsOf::Series,
        since_us: 0,
        once_per_document: false,
    }
}
