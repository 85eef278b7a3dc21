//! A server with one open epoch, and short ways to say what the cases need.

use std::time::Duration;

use numbering::{Range, TakenRange};
use numerator::node::NodeId;
use numerator::redis::{
    Completion, CounterError, Flight, Guard, IdempotencyLimits, IssueAnswer, IssueOutcome,
    IssueRequest, Keys, OpenOutcome, Opening, PayloadMark, Redis, RedisSettings, SeedPlace,
    SeedState, Take, Trimmed,
};

use testkit::redis::Redis as Server;

pub(super) const PARTITION: u32 = 7;
pub(super) const EPOCH: u64 = 5;
pub(super) const DEPLOYMENT: &str = "deployment-a";
pub(super) const NOW_MS: i64 = 1_800_000_000_000;
pub(super) const WINDOW_MS: u64 = 86_400_000;
pub(super) const LIMITS: IdempotencyLimits =
    IdempotencyLimits { window_ms: WINDOW_MS, records_max: 1_000_000, keep_whole: false };
pub(super) const NUMBER_MAX: u64 = (1 << 53) - 1;

/// A node on a server of its own, in epoch 5 of partition 7.
pub(super) struct Bench {
    pub(super) server: Server,
    pub(super) redis: Redis,
    pub(super) keys: Keys,
    pub(super) guard: Guard,
    pub(super) limits: IdempotencyLimits,
}

/// A partition with one counter, `c`, that has a thousand values.
pub(super) async fn seeded() -> Bench {
    let mut bench = Bench::new().await;
    bench.seed("c", 0, 1_000).await;
    bench
}

/// The window, in the unit of the moments.
pub(super) fn window_ms() -> i64 {
    i64::try_from(WINDOW_MS).unwrap()
}

impl Bench {
    /// Opens a pristine partition.
    pub(super) async fn new() -> Self {
        let bench = Self::unopened().await;
        assert_eq!(bench.open(&bench.opening()).await, OpenOutcome::Opened);
        bench
    }

    /// A server without an owner record.
    pub(super) async fn unopened() -> Self {
        let server = Server::start();
        let redis = connect(&server);
        let keys = Keys::new("nbr");
        let probe = redis.probe(&keys, PARTITION).await.unwrap();
        assert!(probe.is_master);
        let guard = Guard {
            partition: PARTITION,
            epoch: EPOCH,
            incarnation: probe.incarnation,
            node: NodeId::random(),
            flight: 0,
            confirmed: 0,
        };
        Bench { server, redis, keys, guard, limits: LIMITS }
    }

    /// The same server seen by another node.
    pub(super) fn other_node(&self) -> Guard {
        Guard { node: NodeId::random(), flight: 0, confirmed: 0, ..self.guard.clone() }
    }

    pub(super) fn opening(&self) -> Opening {
        Opening {
            partition: PARTITION,
            epoch: EPOCH,
            incarnation: self.guard.incarnation.clone(),
            deployment: DEPLOYMENT.into(),
            closed_epoch: EPOCH - 1,
            now_ms: Some(NOW_MS),
            pristine: true,
            window_ms: WINDOW_MS,
        }
    }

    pub(super) async fn open(&self, opening: &Opening) -> OpenOutcome {
        self.redis.open(&self.keys, opening).await.unwrap()
    }

    /// Opens the next epoch on the same data set and follows it.
    pub(super) async fn next_epoch(&mut self, pristine: bool, now_ms: i64) {
        let closed_epoch = self.guard.epoch;
        let epoch = closed_epoch + 1;
        let now_ms = Some(now_ms);
        let opening = Opening { epoch, closed_epoch, now_ms, pristine, ..self.opening() };
        assert_eq!(self.open(&opening).await, OpenOutcome::Opened);
        self.guard.epoch = epoch;
        self.guard.confirmed = 0;
    }

    /// Opens the next epoch like a node that lost data, naming none as closed, and seeds `c` in it.
    pub(super) async fn epoch_after_a_loss(&mut self, value: i64) {
        let epoch = self.guard.epoch + 1;
        let opening = Opening { epoch, closed_epoch: 0, pristine: false, ..self.opening() };
        assert_eq!(self.open(&opening).await, OpenOutcome::Opened);
        (self.guard.epoch, self.guard.confirmed) = (epoch, 0);
        self.seed("c", value, 1_000).await;
    }

    /// The guard of the node's next flight.
    pub(super) fn next(&mut self) -> Guard {
        self.guard.flight += 1;
        self.guard.clone()
    }

    /// Seeds counter `name` with the ledger id 70.
    pub(super) async fn seed(&mut self, name: &str, value: i64, ceiling: i64) -> SeedState {
        let place = SeedPlace { counter: name.into(), counter_id: 70, value, ceiling };
        let guard = self.next();
        let flight = Flight::seed(&self.keys, &guard, &[place]);
        let states = completed(self.redis.seed(&flight).await);
        self.guard.confirmed = self.guard.flight;
        states[0]
    }

    /// A flight at a fixed moment.
    pub(super) fn flight(&self, guard: &Guard, requests: &[IssueRequest]) -> Flight {
        self.flight_at(guard, requests, NOW_MS)
    }

    /// A flight at a moment.
    pub(super) fn flight_at(
        &self,
        guard: &Guard,
        requests: &[IssueRequest],
        now_ms: i64,
    ) -> Flight {
        Flight::issue(&self.keys, guard, requests, Some(now_ms), self.limits)
    }

    /// Sends requests at a moment; the whole answer.
    pub(super) async fn issue_at(&mut self, requests: &[IssueRequest], now_ms: i64) -> IssueAnswer {
        let guard = self.next();
        let flight = self.flight_at(&guard, requests, now_ms);
        let completion = self.redis.issue(&flight).await;
        self.guard.confirmed = guard.flight;
        let Ok(Completion::Completed(issued)) = completion else {
            panic!("the flight did not complete: {completion:?}");
        };
        issued
    }

    /// Sends requests under the next number and records the outcome as known.
    pub(super) async fn issue(&mut self, requests: &[IssueRequest]) -> Vec<IssueOutcome> {
        self.issue_at(requests, NOW_MS).await.outcomes
    }

    /// Trims the node's outbox as if all of it were journaled.
    pub(super) async fn trim(&self) {
        let upto = self.guard.flight;
        let trimmed = self.redis.trim(&self.keys, &self.guard, upto, "").await.unwrap();
        assert!(matches!(trimmed, Trimmed::Removed(_)), "{trimmed:?}");
    }

    /// The refusal of a flight under `guard` that does not complete.
    pub(super) async fn refused(&self, guard: &Guard) -> Completion<IssueAnswer> {
        let completion = self.redis.issue(&self.flight(guard, &[plain("c")])).await.unwrap();
        assert!(!matches!(completion, Completion::Completed(_)), "{completion:?}");
        completion
    }

    pub(super) fn counter_key(&self, name: &str) -> String {
        self.keys.counter(PARTITION, name)
    }

    pub(super) fn owner_key(&self) -> String {
        self.keys.owner(PARTITION)
    }

    pub(super) fn records_key(&self) -> String {
        self.keys.records(PARTITION)
    }

    /// Every existing bucket of idempotency records.
    pub(super) fn bucket_keys(&self) -> Vec<String> {
        let keys = self.server.cli(&["--raw", "keys", &format!("{}:[0-9]*", self.records_key())]);
        keys.lines().map(str::to_owned).collect()
    }

    pub(super) fn outbox_key(&self) -> String {
        self.keys.outbox(PARTITION, self.guard.node)
    }

    /// Everything in the partition except the probe's mark, to compare before and after.
    pub(super) fn dump(&self) -> Vec<(String, String)> {
        let names = self.server.cli(&["--raw", "keys", "nbr:*"]);
        let mut names: Vec<&str> = names.lines().filter(|name| !name.ends_with(":probe")).collect();
        names.sort_unstable();
        let dump = |name: &&str| ((*name).to_owned(), self.server.cli(&["dump", name]));
        names.iter().map(dump).collect()
    }
}

/// A client of a server.
pub(super) fn connect(server: &Server) -> Redis {
    Redis::start(&RedisSettings {
        url: server.url(),
        command_timeout: Duration::from_secs(5),
        reconnect_max: Duration::from_millis(50),
    })
    .unwrap()
}

/// The answers of a flight that completed.
pub(super) fn completed<T: std::fmt::Debug>(
    completion: Result<Completion<Vec<T>>, CounterError>,
) -> Vec<T> {
    match completion {
        Ok(Completion::Completed(answers)) => answers,
        other => panic!("the flight did not complete: {other:?}"),
    }
}

/// The same for a flight of requests.
pub(super) fn issued(
    completion: Result<Completion<IssueAnswer>, CounterError>,
) -> Vec<IssueOutcome> {
    match completion {
        Ok(Completion::Completed(issued)) => issued.outcomes,
        other => panic!("the flight did not complete: {other:?}"),
    }
}

/// One value of a counter, without keys.
pub(super) fn plain(counter: &str) -> IssueRequest {
    IssueRequest {
        takes: vec![take(counter, 1, 1)],
        caller_key: None,
        document_key: None,
        payload: payload("d1"),
        again: false,
        once_per_document: false,
        asked: false,
        record: format!("record of {counter}").into(),
    }
}

/// A payload identified by a short word.
fn payload(word: &str) -> PayloadMark {
    let digest: String = word.bytes().map(|byte| format!("{byte:02x}")).collect();
    PayloadMark::of(&format!("{digest:0>16}"))
}

/// One value of counter `c`, for a document and perhaps a caller's key.
pub(super) fn keyed(document: &str, caller: Option<&str>, digest: &str) -> IssueRequest {
    IssueRequest {
        caller_key: caller.map(|key| format!("k:{key}")),
        document_key: Some(format!("d:{document}")),
        payload: payload(digest),
        record: format!("record of {document} {digest}").into(),
        ..plain("c")
    }
}

pub(super) fn take(counter: &str, count: u64, step: u64) -> Take {
    let counter = counter.into();
    Take { counter, count, step, start: 1, max: NUMBER_MAX, seen: Some(i64::MIN) }
}

/// A range of the counter with id 70.
pub(super) fn range(first: u64, last: u64, step: u64) -> TakenRange {
    TakenRange { counter_id: 70, range: Range { first, last, step } }
}

/// One value taken from the counter with id 70.
pub(super) fn taken(value: u64) -> IssueOutcome {
    IssueOutcome::Taken(vec![range(value, value, 1)])
}

/// A replay of one value.
pub(super) fn replayed(value: u64, record: &str) -> IssueOutcome {
    IssueOutcome::Replayed { taken: vec![range(value, value, 1)], record: record.into() }
}
