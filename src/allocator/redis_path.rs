//! The Redis path of a worker: one call in flight at a time, sent again until its outcome is
//! known.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::counter_cache::CachedCounter;
use super::epoch_lease::{EpochLease, FlightBatch, InFlight};
use super::pending_request::PendingRequest;
use super::worker::{PartitionWorker, Standing, Suspicion, unavailable};
use super::{NumberTaken, Unavailable};
use crate::counter::{
    Completion, CounterError, Flight, IdempotencyLimits, IssueAnswer, IssueRequest, Raised, Redis,
    SeedPlace, SeedState,
};
use crate::ledger::At;

/// A flight with fewer requests gives those a chance that arrive at this moment.
const GATHERED_MIN: usize = 16;

/// A worker that has sent no flight for so long is not busy: nobody else arrives at this moment.
const LULL: Duration = Duration::from_millis(1);

/// What a call's answer means for the epoch lease.
pub(super) enum Course {
    /// Go on.
    Stay,
    /// The epoch must end, or has ended.
    Leave(Suspicion),
}

impl PartitionWorker {
    /// One call to Redis: the one in flight again, or the next.
    pub(super) async fn serve_redis(&mut self, mut lease: Box<EpochLease>) -> Standing {
        // Under an identity that was given up nothing more is sent: nobody would adopt it.
        let spent = lease.node != self.context.membership.node() && lease.in_flight.is_none();
        if spent || self.epoch_is_over(lease.at) || self.is_unwanted() {
            self.vacate(*lease).await;
            return Standing::Nowhere;
        }
        let mut reports = std::mem::take(&mut self.done).into_iter();
        while let Some(done) = reports.next() {
            if let Course::Leave(suspicion) = self.take_report(&mut lease, done) {
                // Requests may wait in the others: they are taken back before the next epoch.
                self.done.extend(reports);
                return self.leave(*lease, suspicion).await;
            }
        }
        let Some(redis) = self.context.redis.clone() else {
            unreachable!("an epoch lease is only taken where Redis is configured");
        };
        if self.trim_is_due(&lease)
            && lease.in_flight.is_none()
            && let Course::Leave(suspicion) = self.trim(&mut lease).await
        {
            return self.leave(*lease, suspicion).await;
        }
        if lease.in_flight.is_none() {
            self.gather(&lease).await;
            lease.in_flight = self.next_call(&mut lease);
        }
        let Some(in_flight) = lease.in_flight.take() else { return Standing::Redis(lease) };
        match self.send(&redis, &mut lease, in_flight).await {
            Course::Stay => Standing::Redis(lease),
            Course::Leave(suspicion) => self.leave(*lease, suspicion).await,
        }
    }

    /// Gives everything back and takes the suspicion along.
    async fn leave(&mut self, lease: EpochLease, suspicion: Suspicion) -> Standing {
        let Suspicion { at, cause, .. } = &suspicion;
        tracing::warn!(partition = at.partition, epoch = at.epoch, cause, "leaving the epoch");
        self.context.metrics.fenced.increment(1);
        let (at, node) = (lease.at, lease.node);
        self.vacate(lease).await;
        if suspicion.identity_spent {
            self.spent = Some(node);
        }
        if !suspicion.epoch_in_doubt {
            return Standing::Nowhere;
        }
        let detail = serde_json::json!({ "cause": suspicion.cause });
        self.context.event("fenced", at, node, detail).await;
        Standing::Away(suspicion)
    }

    /// Lets those go first whose requests have arrived and are not read yet: a flight costs as much
    /// as some ten requests, and one that is nearly empty takes its time from the next. A flight
    /// that is well filled leaves at once, so that Redis works while its answers are written.
    async fn gather(&mut self, lease: &EpochLease) {
        if self.waiting.len() < GATHERED_MIN && lease.sent_at.elapsed() < LULL {
            tokio::task::yield_now().await;
            self.pull();
        }
    }

    /// The next call: seeds and raises first, for requests are parked behind them.
    fn next_call(&mut self, lease: &mut EpochLease) -> Option<InFlight> {
        let context = Arc::clone(&self.context);
        let number = context.flights.next();
        let (keys, guard) = (&context.keys, lease.guard(number));
        if !lease.seeds.is_empty() {
            let places = std::mem::take(&mut lease.seeds);
            let flat: Vec<SeedPlace> = places.iter().map(|cold| cold.place.clone()).collect();
            let flight = Flight::seed(keys, &guard, &flat);
            return Some(InFlight {
                flight,
                number,
                batch: FlightBatch::Seeds(places),
                is_unresolved: false,
            });
        }
        if !lease.raises.is_empty() {
            let raises = std::mem::take(&mut lease.raises);
            let flat: Vec<(String, i64)> =
                raises.iter().map(|raise| (raise.counter.clone(), raise.ceiling)).collect();
            let flight = Flight::raise(keys, &guard, &flat);
            return Some(InFlight {
                flight,
                number,
                batch: FlightBatch::Raises(raises),
                is_unresolved: false,
            });
        }
        let mut requests = self.admit(lease);
        if requests.is_empty() {
            return None;
        }
        let Some(space) = self.context.journal.reserve(requests.len()) else {
            for pending in requests {
                pending.answer(Err(unavailable(Unavailable::OutboxFull, NumberTaken::No)));
            }
            return None;
        };
        let rest = requests.split_off(space.num_permits().min(requests.len()));
        self.wait_again(rest);
        let issues: Vec<&IssueRequest> =
            requests.iter_mut().map(|pending| issue_request(pending, lease)).collect();
        let settings = &self.context.settings;
        let limits = IdempotencyLimits {
            window_ms: settings.idempotency_window_ms(),
            records_max: settings.idempotency_records_max,
            keep_whole: settings.idempotency_keep_whole,
        };
        let flight = Flight::issue(keys, &guard, &issues, None, limits);
        self.context.metrics.flight_requests.of("redis").record(requests.len() as f64);
        Some(InFlight {
            flight,
            number,
            batch: FlightBatch::Requests(requests, space),
            is_unresolved: false,
        })
    }

    /// Admits waiting requests to a flight; those whose counter is being seeded or raised park
    /// behind it.
    fn admit(&mut self, lease: &mut EpochLease) -> Vec<PendingRequest> {
        let mut requests = Vec::new();
        while requests.len() < self.context.settings.flight_max {
            let Some(mut pending) = self.waiting.pop_front() else { break };
            let parked =
                pending.order.counters().find(|counter| lease.parked.contains_key(*counter));
            if let Some(counter) = parked.cloned() {
                lease.parked.entry(counter).or_default().push(pending);
            } else if pending.admit(&self.context.metrics) {
                requests.push(pending);
            }
        }
        requests
    }

    /// Sends it once. An unknown outcome leaves the flight in flight, to be sent again as it is.
    async fn send(&mut self, redis: &Redis, lease: &mut EpochLease, in_flight: InFlight) -> Course {
        let started = Instant::now();
        lease.sent_at = started;
        let completed = match &in_flight.batch {
            FlightBatch::Requests(..) => redis.issue(&in_flight.flight).await.map(Answer::Issue),
            FlightBatch::Seeds(_) => redis.seed(&in_flight.flight).await.map(Answer::Seed),
            FlightBatch::Raises(_) => redis.raise(&in_flight.flight).await.map(Answer::Raise),
        };
        self.context.metrics.flight_seconds.of("redis").record(started.elapsed());
        match completed {
            Ok(answer) => self.complete(lease, in_flight, answer),
            Err(error @ (CounterError::Unknown(_) | CounterError::NotExecuted(_))) => {
                let is_unresolved =
                    in_flight.is_unresolved || matches!(error, CounterError::Unknown(_));
                lease.in_flight = Some(InFlight { is_unresolved, ..in_flight });
                self.context.metrics.retries_redis.of(error.reason()).increment(1);
                self.without_redis(lease, started, &error).await
            }
            Err(error @ (CounterError::Broken(_) | CounterError::Garbled(_))) => {
                lease.in_flight = Some(in_flight);
                // An outbox that refuses entries would break the next epoch too: with a new
                // identity comes a new one.
                let suspicion = Suspicion::of_epoch(lease.at, error.to_string());
                Course::Leave(Suspicion { identity_spent: true, ..suspicion })
            }
        }
    }

    /// Sorts a completion by what was sent and what Redis said of the ownership.
    fn complete(&mut self, lease: &mut EpochLease, in_flight: InFlight, answer: Answer) -> Course {
        let number = in_flight.number;
        let at = lease.at;
        let (batch, suspicion) = match (in_flight.batch, answer) {
            (
                FlightBatch::Requests(requests, space),
                Answer::Issue(Completion::Completed(answer)),
            ) => {
                self.confirm(lease, number);
                let IssueAnswer { outcomes, records_shed } = answer;
                self.note_shed(lease, records_shed);
                return self.complete_requests(lease, number, requests, space, outcomes);
            }
            (FlightBatch::Seeds(places), Answer::Seed(Completion::Completed(states))) => {
                self.confirm(lease, number);
                self.complete_seeds(lease, &places, &states);
                return Course::Stay;
            }
            (FlightBatch::Raises(raises), Answer::Raise(Completion::Completed(raised))) => {
                self.confirm(lease, number);
                return self.complete_raises(lease, &raises, &raised);
            }
            (batch, Answer::Issue(completion)) => (batch, refusal(at, completion)),
            (batch, Answer::Seed(completion)) => (batch, refusal(at, completion)),
            (batch, Answer::Raise(completion)) => (batch, refusal(at, completion)),
        };
        let InFlight { flight, is_unresolved, .. } = in_flight;
        lease.in_flight = Some(InFlight { flight, number, batch, is_unresolved });
        Course::Leave(suspicion)
    }

    /// Idempotency records that went early: from then on new keys are looked up in the journal.
    fn note_shed(&self, lease: &mut EpochLease, records: u64) {
        if records == 0 {
            return;
        }
        self.context.metrics.records_shed.increment(records);
        // Said once in an epoch, not with each flight.
        if !std::mem::replace(&mut lease.sheds, true) {
            let records_max = self.context.settings.idempotency_records_max;
            tracing::warn!(
                partition = self.partition,
                records_max,
                "more idempotency records than idempotency.records_max: the oldest go, and every \
                 new key is looked up in the journal"
            );
        }
    }

    fn confirm(&mut self, lease: &mut EpochLease, number: u64) {
        assert!(number > lease.confirmed, "flight {number} completed after {}", lease.confirmed);
        lease.confirmed = number;
        self.well();
    }
}

/// A call's answer, by what was sent.
enum Answer {
    Issue(Completion<IssueAnswer>),
    Seed(Completion<Vec<SeedState>>),
    Raise(Completion<Vec<Raised>>),
}

/// What a completion that did nothing says.
fn refusal<T>(at: At, completion: Completion<T>) -> Suspicion {
    let of_epoch = |cause: &str| Suspicion::of_epoch(at, cause.to_owned());
    match completion {
        Completion::Completed(_) => unreachable!("completions are sorted before"),
        Completion::Fenced { epoch, reason } => {
            Suspicion { redis_epoch: epoch, ..of_epoch(&format!("fenced: {reason}")) }
        }
        Completion::Barred => Suspicion::barred(at),
        Completion::Late => of_epoch("a later flight was executed before this one"),
        // A new identity brings a new outbox: the key may be of another type for good.
        Completion::Miscounted => Suspicion {
            identity_spent: true,
            ..of_epoch("the outbox does not hold what it should")
        },
        Completion::Mismatch => {
            // Two processes send flights under one identity: nothing that this one does is safe
            // (F10).
            tracing::error!("another process sends flights under this node's identity; aborting");
            std::process::abort();
        }
    }
}

/// The request as it is sent: with what is known in this epoch of its keys and counters.
fn issue_request<'p>(pending: &'p mut PendingRequest, lease: &EpochLease) -> &'p IssueRequest {
    let request = &mut pending.order.request;
    request.asked = pending.asked_in == Some(lease.at.epoch);
    for take in &mut request.takes {
        take.seen = lease.counters.get(&take.counter).and_then(CachedCounter::value);
    }
    request
}

/// The course of an epoch lease whose epoch must end.
pub(super) fn leave(lease: &EpochLease, cause: String) -> Course {
    Course::Leave(Suspicion::of_epoch(lease.at, cause))
}
