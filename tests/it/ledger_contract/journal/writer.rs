//! The journal's loop on real ledgers: what it writes together, and what its gauge shows meanwhile
//! (F42).
//!
//! The loop shows each batch to its spectator before it writes it. The spectator of these tests
//! stops it there, so that what waits after a batch is known, and so is what the next one must be.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use numbering::TakenRange;
use numerator::backoff::Backoff;
use numerator::clock::SharedClock;
use numerator::engine::journal::{self, Handover, JournalQueue, JournalSettings, Lag, Replayed};
use numerator::ledger::{At, Closing, CounterSpec, Entry, IssuePath};
use numerator::metrics::Metrics;
use numerator::task::Task;
use testkit::postgres::Postgres;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::time::Instant;
use uuid::Uuid;

use crate::ledger_contract::world::{PARTITION, World, entry, spec, with};

/// Longest wait for what a test waits for; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(60);

/// Partitions of the world.
const PARTITIONS: u32 = 4;

/// Rows of a batch: it is full with these, and its last flight may exceed them.
const ROWS_MAX: usize = 40;

/// Records that may wait.
const QUEUE_MAX: usize = 10_000;

/// Bursts of messages, each after a batch that waits to be written.
const BURSTS: usize = 12;

/// Records, as the ledger is asked for them.
type Names = Vec<(Uuid, TakenRange)>;

/// What was handed out in one flight, and not seen in a batch yet.
#[derive(Debug)]
struct Waiting {
    values: Vec<u64>,
    /// When it was handed over: not before the one, not after the other.
    between: (Instant, Instant),
}

/// A writer, what it shows, and what was sent to it.
struct Bench {
    world: World,
    at: At,
    /// The counter that flights count, and the one of the database path.
    counters: [i64; 2],
    next: [u64; 2],
    flights: BTreeMap<u32, u64>,
    queue: JournalQueue,
    task: Task,
    /// Each batch before it is written.
    shown: Receiver<Vec<u64>>,
    /// Lets a batch be written; dropped: all that come.
    go: Option<Sender<()>>,
    waiting: VecDeque<Waiting>,
    handed_out: Names,
    kept: Names,
    /// The receivers of a report's outcome, and what was kept when it was asked for.
    told: Vec<(oneshot::Receiver<Replayed>, Names)>,
}

fn name_of(entry: &Entry) -> (Uuid, TakenRange) {
    (entry.record.allocation_id, entry.taken[0])
}

impl Bench {
    async fn new(url: &str) -> Self {
        let world = World::open(url).await;
        let at = world.redis_epoch(Closing::Exact).await;
        let mut counters = [0; 2];
        for (counter, key) in counters.iter_mut().zip(["k", "kept"]) {
            let spec = CounterSpec { headroom: 100_000, ..spec(key) };
            *counter = world.seed(at, &spec).await.0;
        }
        let (show, shown) = channel();
        let (go, wait) = channel::<()>();
        let wait = Mutex::new(wait);
        let spectator = move |entries: &[Entry]| {
            if entries[0].path == IssuePath::Redis {
                let values = entries.iter().map(|entry| entry.taken[0].range.first);
                let _ = show.send(values.collect());
                // The receiver is gone: it continues.
                let _ = wait.lock().unwrap().recv();
            }
        };
        let clock: SharedClock = world.clock.clone();
        let settings = JournalSettings {
            queue_max: QUEUE_MAX,
            batch_rows_max: ROWS_MAX,
            ..JournalSettings::default()
        };
        let backoff = Backoff::new(Duration::from_millis(10), Duration::from_millis(50));
        let (queue, task) = journal::start(
            &world.ledger,
            &clock,
            PARTITIONS,
            settings,
            backoff,
            &Metrics::new(),
            Box::new(spectator),
        );
        Bench {
            world,
            at,
            counters,
            next: [1; 2],
            flights: BTreeMap::new(),
            queue,
            task,
            shown,
            go: Some(go),
            waiting: VecDeque::new(),
            handed_out: Vec::new(),
            kept: Vec::new(),
            told: Vec::new(),
        }
    }

    fn entries(&mut self, counter: usize, count: usize, path: IssuePath) -> Vec<Entry> {
        let key = ["k", "kept"][counter];
        let mut one = || {
            let value = self.next[counter];
            self.next[counter] += 1;
            let entry = entry(self.at, self.counters[counter], value);
            let entry = with(entry, |record| {
                record.counter_keys = vec![key.into()];
                record.mask = record.mask.replace("{0:3}", "{0:9}");
            });
            let number = entry.record.mask.replace("{0:9}", &format!("{value:09}"));
            Entry { path, number, ..entry }
        };
        (0..count).map(|_| one()).collect()
    }

    fn hand_over(&mut self, partition: u32, count: usize, is_urgent: bool) {
        let entries = self.entries(0, count, IssuePath::Redis);
        let values = entries.iter().map(|entry| entry.taken[0].range.first).collect();
        self.handed_out.extend(entries.iter().map(name_of));
        let flight = self.flights.entry(partition).or_default();
        *flight += 1;
        let texts = entries.iter().map(|entry| entry.record.to_flat_json().into()).collect();
        let space = self.queue.reserve(count).expect("room");
        let (node, flight) = (self.world.node, *flight);
        let before = Instant::now();
        let handover = Handover { partition, flight, node, entries, texts, space, is_urgent };
        self.queue.hand_over(handover);
        self.waiting.push_back(Waiting { values, between: (before, Instant::now()) });
    }

    fn keep(&mut self, count: usize) {
        let entries = self.entries(1, count, IssuePath::Database);
        self.kept.extend(entries.iter().map(name_of));
        self.queue.keep(self.world.node, entries);
    }

    fn replay_kept(&mut self) {
        self.told.push((self.queue.replay_kept(), self.kept.clone()));
    }

    /// One message of any kind.
    fn send_any(&mut self, random: &mut fastrand::Rng) {
        match random.u32(..20) {
            0 => self.replay_kept(),
            1..8 => self.keep(random.usize(1..4)),
            _ => {
                let (partition, count) = (random.u32(..PARTITIONS), random.usize(1..6));
                self.hand_over(partition, count, random.u32(..8) == 0);
            }
        }
    }

    /// The next batch, which the loop is about to write.
    fn batch(&self) -> Vec<u64> {
        self.shown.recv_timeout(LIMIT).expect("a batch within the limit")
    }

    /// What the next batch must be: as much as waits, in the order in which it came, up to the
    /// bound; and what was handed over when in it.
    fn expected(&mut self) -> Vec<Waiting> {
        let (mut rows, mut batch) = (0, Vec::new());
        while rows < ROWS_MAX
            && let Some(next) = self.waiting.pop_front()
        {
            rows += next.values.len();
            batch.push(next);
        }
        batch
    }

    /// The gauge is correct while a batch waits to be written.
    fn assert_gauge(&self, batch: &[Waiting], seed: u64) {
        let all = batch.iter().chain(&self.waiting);
        let records: usize = all.map(|waiting| waiting.values.len()).sum();
        assert_lag(self.queue.lag(), records, batch[0].between, &format!("seed {seed}"));
    }

    /// Waits until everything that was handed out is committed.
    async fn all_committed(&self) {
        for (partition, flight) in &self.flights {
            let mut progress = self.queue.progress(*partition);
            let committed = progress.wait_for(|committed| committed >= flight);
            tokio::time::timeout(LIMIT, committed).await.expect("in time").expect("a loop");
        }
    }

    async fn assert_recorded(&self, names: &[(Uuid, TakenRange)]) {
        let recorded = self.world.ledger.recorded(names).await.unwrap();
        let missing = recorded.iter().filter(|is_there| !**is_there).count();
        assert_eq!(missing, 0, "of {} records", names.len());
    }
}

/// A gauge shows how much is not committed, and since when the oldest of it waits.
#[track_caller]
fn assert_lag(lag: Lag, records: usize, (not_before, not_after): (Instant, Instant), what: &str) {
    assert_eq!(lag.records, records, "{what}");
    let oldest = lag.oldest.expect("something waits");
    assert!(oldest <= not_after, "{what}: younger than the truth by {:?}", oldest - not_after);
    assert!(oldest >= not_before, "{what}: older than the truth by {:?}", not_before - oldest);
}

/// Goal: whatever the order of messages, a batch is all that waits up to its bound, in its order;
/// the gauge is correct; what was kept is reported again; nothing is lost at the end.
fn whatever_comes_is_written_together(url: &str) {
    let seed = std::env::var("NUMERATOR_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("NUMERATOR_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let runtime = Runtime::new().unwrap();
    let mut bench = runtime.block_on(Bench::new(url));
    for burst in 0..BURSTS {
        bench.hand_over(random.u32(..PARTITIONS), random.usize(1..6), false);
        let go = bench.go.clone().expect("not over yet");
        while !bench.waiting.is_empty() {
            let (batch, expected) = (bench.batch(), bench.expected());
            let values: Vec<u64> =
                expected.iter().flat_map(|waiting| waiting.values.clone()).collect();
            assert_eq!(batch, values, "seed {seed}, burst {burst}");
            bench.assert_gauge(&expected, seed);
            if bench.waiting.is_empty() && random.u32(..3) > 0 {
                (0..random.usize(..60)).for_each(|_| bench.send_any(&mut random));
            }
            bench.assert_gauge(&expected, seed);
            go.send(()).unwrap();
        }
        runtime.block_on(bench.all_committed());
        assert_eq!(bench.queue.lag(), Lag::default(), "seed {seed}, burst {burst}");
    }
    // What arrives as it is asked to end is written nevertheless.
    (0..40).for_each(|_| bench.send_any(&mut random));
    bench.go = None;
    let Bench { ref mut told, .. } = bench;
    let told = std::mem::take(told);
    for (listener, kept) in told {
        let told = runtime.block_on(async { tokio::time::timeout(LIMIT, listener).await });
        // What was only kept was in no journal before, and is of some partition.
        let told =
            Replayed { partitions: BTreeSet::new(), ..told.expect("in time").expect("heard") };
        assert_eq!(told, Replayed::default(), "seed {seed}");
        runtime.block_on(bench.assert_recorded(&kept));
    }
    runtime.block_on(async {
        let Bench { task, queue, flights, handed_out, world, .. } = bench;
        assert!(task.stop(Instant::now() + LIMIT).await, "seed {seed}: it does not end");
        assert_eq!(queue.lag(), Lag::default(), "seed {seed}");
        let recorded = world.ledger.recorded(&handed_out).await.unwrap();
        assert!(recorded.iter().all(|is_there| *is_there), "seed {seed}: lost at the end");
        for (partition, flight) in flights {
            assert_eq!(*queue.progress(partition).borrow(), flight, "seed {seed}");
        }
        let room = queue.reserve(QUEUE_MAX).map_or(0, |room| room.num_permits());
        assert_eq!(room, QUEUE_MAX, "seed {seed}: room that nobody gave back");
    });
}

impl World {
    /// The journal loop's answer for a record of the database path that it reports again.
    pub(in crate::ledger_contract) async fn replay_kept(&self, entry: Entry) -> Replayed {
        let clock: SharedClock = self.clock.clone();
        let (settings, metrics) = (JournalSettings::default(), Metrics::new());
        let backoff = Backoff::new(Duration::from_millis(10), Duration::from_millis(50));
        let nobody = Box::new(|_: &[Entry]| {});
        let (queue, task) = journal::start(
            &self.ledger,
            &clock,
            PARTITIONS + 1,
            settings,
            backoff,
            &metrics,
            nobody,
        );
        queue.keep(self.node, vec![Entry { path: IssuePath::Database, ..entry }]);
        let told = tokio::time::timeout(LIMIT, queue.replay_kept()).await;
        assert!(task.stop(Instant::now() + LIMIT).await, "it does not end");
        told.expect("in time").expect("heard")
    }
}

#[test]
fn whatever_the_order_of_messages_a_batch_is_all_that_waits_and_the_gauge_is_true_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("ledger.db").display());
    whatever_comes_is_written_together(&url);
}

#[test]
fn whatever_the_order_of_messages_a_batch_is_all_that_waits_and_the_gauge_is_true_on_postgres() {
    let server = Postgres::start();
    whatever_comes_is_written_together(&server.url("writer"));
}

/// Goal: a record that waits separately for its counter is as old as it is. Method: another session
/// locks its counter while records of another one come and go.
#[test]
fn the_gauge_tells_the_age_of_a_record_whose_counter_is_held() {
    let server = Postgres::start();
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let mut bench = Bench::new(&server.url("writer")).await;
        bench.go = None;
        let pool = sqlx::PgPool::connect(&server.url("writer")).await.unwrap();
        let mut holder = pool.begin().await.unwrap();
        let hold = "select 1 from counter where key = 'k' for update";
        sqlx::query(hold).fetch_one(&mut *holder).await.unwrap();
        bench.hand_over(PARTITION, 3, false);
        let held = bench.waiting[0].between;
        let until_committed = async |bench: &Bench, entries: &[Entry]| {
            let names: Vec<_> = entries.iter().map(name_of).collect();
            let deadline = Instant::now() + LIMIT;
            while bench.world.ledger.recorded(&names).await.unwrap().contains(&false) {
                assert!(Instant::now() < deadline, "held by a counter that they do not need");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        for flight in 1..=3 {
            // Their counter is free.
            let entries = bench.entries(1, 2, IssuePath::Redis);
            let texts = entries.iter().map(|entry| entry.record.to_flat_json().into()).collect();
            let space = bench.queue.reserve(2).expect("room");
            let (node, others) = (bench.world.node, entries.clone());
            let is_urgent = false;
            let handover =
                Handover { partition: 1, flight, node, entries, texts, space, is_urgent };
            bench.queue.hand_over(handover);
            until_committed(&bench, &others).await;
            let mut progress = bench.queue.progress(1);
            let committed = progress.wait_for(|committed| *committed >= flight);
            tokio::time::timeout(LIMIT, committed).await.expect("in time").unwrap();
            assert_lag(bench.queue.lag(), 3, held, "three records wait for their counter");
            assert_eq!(*bench.queue.progress(PARTITION).borrow(), 0, "not past what waits (F16)");
        }
        holder.rollback().await.unwrap();
        bench.all_committed().await;
        assert_eq!(bench.queue.lag(), Lag::default());
        assert!(bench.task.stop(Instant::now() + LIMIT).await);
    });
}
