//! The calls of an epoch lease: what is sent next, and what its answer means.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::counter_cache::CachedCounter;
use super::{EpochLease, Outcome, Suspicion};
use crate::engine::allocator::error::unavailable;
use crate::engine::allocator::intake::Intake;
use crate::engine::allocator::pending_request::PendingRequest;
use crate::engine::allocator::{NumberTaken, Unavailable};
use crate::redis::{
    Completion, CounterError, Flight, IdempotencyLimits, IssueAnswer, IssueRequest, Raised,
    SeedPlace, SeedState,
};

/// A flight with fewer requests gives those a chance that arrive at this moment.
const GATHERED_MIN: usize = 16;

/// A worker that has sent no flight for so long is not busy: no other request arrives at this
/// moment.
const LULL: Duration = Duration::from_millis(1);

/// What a flight carries.
pub(super) enum FlightBatch {
    /// Requests, and the space reserved for their records.
    Requests(Vec<PendingRequest>, OwnedSemaphorePermit),
    /// Counters to seed, and the distances between their values.
    Seeds(Vec<SeedPlace>, Vec<u64>),
    /// Names of counters and ceilings to raise them to, and the same.
    Raises(Vec<(String, i64)>, Vec<u64>),
}

/// The one call in flight: sent again byte for byte until its outcome is known (F10).
pub(super) struct InFlight {
    /// The encoded call.
    pub flight: Flight,
    /// Its number.
    pub number: u64,
    /// What it carries.
    pub batch: FlightBatch,
    /// Whether a try of it ended without an answer: it may have been executed.
    pub is_unresolved: bool,
}

/// A call's answer, by what was sent.
enum Answer {
    Issued(IssueAnswer),
    Seeded(Vec<SeedState>),
    Raised(Vec<Raised>),
}

/// Sets a call off, does something else, and only then waits for the outcome of the call.
async fn set_off<T>(call: impl Future<Output = T>, meanwhile: impl FnOnce()) -> T {
    let mut call = pin!(call);
    let at_once = poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await;
    meanwhile();
    match at_once {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => call.await,
    }
}

impl EpochLease {
    /// Whether the next flight leaves without waiting for more requests.
    pub(super) fn leaves_at_once(&self, intake: &Intake) -> bool {
        intake.waiting() >= GATHERED_MIN
    }

    /// Lets requests that have arrived and are not read yet go first: a flight costs as much as
    /// some ten requests, and one that is nearly empty takes its time from the next. A flight that
    /// is well filled leaves immediately, so that Redis works while its answers are written.
    pub(super) async fn gather(&mut self, intake: &mut Intake) {
        if !self.leaves_at_once(intake) && self.sent_at.elapsed() < LULL {
            self.due.answer();
            tokio::task::yield_now().await;
            intake.pull();
        }
    }

    /// The next call: seeds and raises first, for requests are parked behind them.
    pub(super) fn next_call(&mut self, intake: &mut Intake) -> Option<InFlight> {
        let context = Arc::clone(&self.context);
        let number = context.flights.next();
        let (keys, guard) = (&context.keys, self.guard(number));
        let (flight, batch) = if !self.seeds.is_empty() {
            let (places, steps): (Vec<_>, _) = std::mem::take(&mut self.seeds).into_iter().unzip();
            (Flight::seed(keys, &guard, &places), FlightBatch::Seeds(places, steps))
        } else if !self.raises.is_empty() {
            let (raises, steps): (Vec<_>, _) = std::mem::take(&mut self.raises).into_iter().unzip();
            (Flight::raise(keys, &guard, &raises), FlightBatch::Raises(raises, steps))
        } else {
            let (mut requests, space) = self.admit(intake)?;
            let issues: Vec<&IssueRequest> =
                requests.iter_mut().map(|pending| self.issue_request(pending)).collect();
            let settings = &context.settings;
            let limits = IdempotencyLimits {
                window_ms: settings.idempotency_window_ms(),
                records_max: settings.idempotency_records_max,
                keep_whole: settings.idempotency_keep_whole,
            };
            let flight = Flight::issue(keys, &guard, &issues, None, limits);
            context.metrics.flight_requests.of("redis").record(requests.len() as f64);
            (flight, FlightBatch::Requests(requests, space))
        };
        Some(InFlight { flight, number, batch, is_unresolved: false })
    }

    /// Admits waiting requests to a flight, as far as the journal has space for their records;
    /// those whose counter is being seeded or raised park behind it.
    fn admit(
        &mut self,
        intake: &mut Intake,
    ) -> Option<(Vec<PendingRequest>, OwnedSemaphorePermit)> {
        let mut requests = Vec::new();
        while requests.len() < self.context.settings.flight_max {
            let Some(mut pending) = intake.next_request() else { break };
            let parked =
                pending.order.counters().find(|counter| self.parked.contains_key(*counter));
            if let Some(counter) = parked.cloned() {
                self.parked.entry(counter).or_default().push(pending);
            } else if pending.admit(&self.context.metrics) {
                requests.push(pending);
            }
        }
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
        intake.wait_again(rest);
        Some((requests, space))
    }

    /// The request as it is sent: with what is known in this epoch of its keys and counters.
    fn issue_request<'p>(&self, pending: &'p mut PendingRequest) -> &'p IssueRequest {
        let request = &mut pending.order.request;
        request.asked = pending.asked_in == Some(self.at.epoch);
        for take in &mut request.takes {
            take.seen = self.counters.get(&take.counter).and_then(CachedCounter::value);
        }
        request
    }

    /// Sends it once. An unknown outcome leaves the flight in flight, to be sent again as it is.
    pub(super) async fn send(&mut self, intake: &mut Intake, in_flight: InFlight) -> Outcome {
        let started = Instant::now();
        self.sent_at = started;
        let (redis, flight, mut due) =
            (&self.redis, &in_flight.flight, std::mem::take(&mut self.due));
        let call = async {
            match &in_flight.batch {
                FlightBatch::Requests(..) => {
                    let sent = redis.issue(flight).await;
                    sent.map(|answer| self.executed(answer).map(Answer::Issued))
                }
                FlightBatch::Seeds(..) => {
                    let sent = redis.seed(flight).await;
                    sent.map(|answer| self.executed(answer).map(Answer::Seeded))
                }
                FlightBatch::Raises(..) => {
                    let sent = redis.raise(flight).await;
                    sent.map(|answer| self.executed(answer).map(Answer::Raised))
                }
            }
        };
        let sent = set_off(call, || due.answer()).await;
        self.context.metrics.flight_seconds.of("redis").record(started.elapsed());
        match sent {
            Ok(Ok(answer)) => self.complete(intake, in_flight.number, in_flight.batch, answer),
            Ok(Err(suspicion)) => {
                self.in_flight = Some(in_flight);
                Err(suspicion)
            }
            Err(error @ (CounterError::Unknown(_) | CounterError::NotExecuted(_))) => {
                let is_unresolved =
                    in_flight.is_unresolved || matches!(error, CounterError::Unknown(_));
                self.in_flight = Some(InFlight { is_unresolved, ..in_flight });
                self.context.metrics.retries_redis.of(error.reason()).increment(1);
                self.without_redis(intake, started, &error).await
            }
            Err(error @ (CounterError::Broken(_) | CounterError::Garbled(_))) => {
                self.in_flight = Some(in_flight);
                // An outbox that refuses entries would break the next epoch too.
                Err(self.doubt_outbox(error.to_string()))
            }
        }
    }

    /// The answer of a call that was executed; else the suspicion in a completion that did nothing.
    fn executed<T>(&self, completion: Completion<T>) -> Result<T, Suspicion> {
        match completion {
            Completion::Completed(answer) => Ok(answer),
            Completion::Fenced { epoch, reason } => {
                let suspicion = self.doubt(format!("fenced: {reason}"));
                Err(Suspicion { redis_epoch: epoch, ..suspicion })
            }
            Completion::Barred => Err(self.barred()),
            Completion::Late => {
                Err(self.doubt("a later flight was executed before this one".to_owned()))
            }
            // The key may be of another type for good.
            Completion::Miscounted => {
                Err(self.doubt_outbox("the outbox does not hold what it should".to_owned()))
            }
            Completion::Mismatch => {
                // Two processes send flights under one identity: nothing that this one does is safe
                // (F10).
                tracing::error!(
                    "another process sends flights under this node's identity; aborting"
                );
                std::process::abort();
            }
        }
    }

    /// Takes in the outcome of a call.
    fn complete(
        &mut self,
        intake: &mut Intake,
        number: u64,
        batch: FlightBatch,
        answer: Answer,
    ) -> Outcome {
        assert!(number > self.confirmed, "flight {number} completed after {}", self.confirmed);
        self.confirmed = number;
        intake.well();
        match (batch, answer) {
            (FlightBatch::Requests(requests, space), Answer::Issued(answer)) => {
                self.note_shed(answer.records_shed);
                self.complete_requests(intake, number, requests, space, answer.outcomes)
            }
            (FlightBatch::Seeds(places, steps), Answer::Seeded(states)) => {
                self.complete_seeds(intake, places.iter().zip(steps).zip(states));
                Ok(())
            }
            (FlightBatch::Raises(raises, steps), Answer::Raised(raised)) => {
                self.complete_raises(intake, raises.iter().zip(steps).zip(raised))
            }
            _ => unreachable!("an answer is of what was sent"),
        }
    }

    /// Idempotency records removed early: from then on the journal is asked for new keys.
    fn note_shed(&mut self, records: u64) {
        if records == 0 {
            return;
        }
        self.context.metrics.records_shed.increment(records);
        // Logged once in an epoch, not with each flight.
        if !std::mem::replace(&mut self.sheds, true) {
            let records_max = self.context.settings.idempotency_records_max;
            tracing::warn!(
                partition = self.at.partition,
                records_max,
                "more idempotency records than idempotency.records_max: the oldest go, and every \
                 new key is looked up in the journal"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::set_off;

    /// An answer never waits for the next call: were it so, this would never end.
    #[tokio::test]
    async fn what_is_done_meanwhile_is_done_after_the_call_has_begun_and_before_its_answer() {
        let (answer, answered) = oneshot::channel();
        let begun = std::cell::Cell::new(false);
        let call = async {
            begun.set(true);
            answered.await.expect("answered meanwhile")
        };
        let meanwhile = || {
            assert!(begun.get(), "under way");
            answer.send(7).expect("waited for");
        };
        assert_eq!(set_off(call, meanwhile).await, 7);
        let mut is_done = false;
        assert_eq!(set_off(async { 8 }, || is_done = true).await, 8);
        assert!(is_done, "also where the call ends at once");
    }
}
