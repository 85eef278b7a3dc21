//! The Redis path of a lane: one call in the air at a time, flown again until its outcome is known.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::lane::{Lane, Standing, Suspicion, unavailable};
use super::notes::Note;
use super::seat::{Cargo, InAir, Seat};
use super::ticket::Ticket;
use super::{NumberTaken, Unavailable};
use crate::counter::{
    CounterError, Flight, IssueAnswer, IssueRequest, Landing, Raised, RecordLimits, Redis,
    SeedPlace, SeedState,
};
use crate::ledger::At;

/// A flight with fewer requests gives those a chance that arrive at this moment.
const GATHERED_MIN: usize = 16;

/// A lane that has not flown for so long is not busy: nobody else arrives at this moment.
const LULL: Duration = Duration::from_millis(1);

/// What a call's answer means for the seat.
pub(super) enum Course {
    /// Go on.
    Stay,
    /// The epoch must end, or has ended.
    Leave(Suspicion),
}

impl Lane {
    /// One call to Redis: the one in the air again, or the next.
    pub(super) async fn serve_redis(&mut self, mut seat: Box<Seat>) -> Standing {
        // Under an identity that was given up nothing more is flown: nobody would adopt it.
        let spent = seat.node != self.context.membership.node() && seat.air.is_none();
        if spent || self.epoch_is_over(seat.at) || self.is_unwanted() {
            self.vacate(*seat).await;
            return Standing::Nowhere;
        }
        let mut reports = std::mem::take(&mut self.done).into_iter();
        while let Some(done) = reports.next() {
            if let Course::Leave(suspicion) = self.settle_chore(&mut seat, done) {
                // Requests may wait in the others: they are taken back before the next epoch.
                self.done.extend(reports);
                return self.leave(*seat, suspicion).await;
            }
        }
        let Some(redis) = self.context.redis.clone() else {
            unreachable!("a seat is only taken where Redis is configured");
        };
        if self.trim_is_due(&seat)
            && seat.air.is_none()
            && let Course::Leave(suspicion) = self.trim(&mut seat).await
        {
            return self.leave(*seat, suspicion).await;
        }
        if seat.air.is_none() {
            self.gather(&seat).await;
            seat.air = self.load(&mut seat);
        }
        let Some(in_air) = seat.air.take() else { return Standing::Redis(seat) };
        match self.fly(&redis, &mut seat, in_air).await {
            Course::Stay => Standing::Redis(seat),
            Course::Leave(suspicion) => self.leave(*seat, suspicion).await,
        }
    }

    /// Gives everything back and takes the suspicion along.
    async fn leave(&mut self, seat: Seat, suspicion: Suspicion) -> Standing {
        let Suspicion { at, cause, .. } = &suspicion;
        tracing::warn!(partition = at.partition, epoch = at.epoch, cause, "leaving the epoch");
        self.context.metrics.fenced.increment(1);
        let (at, node) = (seat.at, seat.node);
        self.vacate(seat).await;
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
    async fn gather(&mut self, seat: &Seat) {
        if self.waiting.len() < GATHERED_MIN && seat.flown_at.elapsed() < LULL {
            tokio::task::yield_now().await;
            self.pull();
        }
    }

    /// The next call: seeds and raises first, for requests are parked behind them.
    fn load(&mut self, seat: &mut Seat) -> Option<InAir> {
        let context = Arc::clone(&self.context);
        let number = context.flights.next();
        let (keys, guard) = (&context.keys, seat.guard(number));
        if !seat.seeds.is_empty() {
            let places = std::mem::take(&mut seat.seeds);
            let flat: Vec<SeedPlace> = places.iter().map(|cold| cold.place.clone()).collect();
            let flight = Flight::seed(keys, &guard, &flat);
            return Some(InAir {
                flight,
                number,
                cargo: Cargo::Seeds(places),
                is_unresolved: false,
            });
        }
        if !seat.raises.is_empty() {
            let raises = std::mem::take(&mut seat.raises);
            let flat: Vec<(String, i64)> =
                raises.iter().map(|raise| (raise.counter.clone(), raise.ceiling)).collect();
            let flight = Flight::raise(keys, &guard, &flat);
            return Some(InAir {
                flight,
                number,
                cargo: Cargo::Raises(raises),
                is_unresolved: false,
            });
        }
        let mut tickets = self.board(seat);
        if tickets.is_empty() {
            return None;
        }
        let Some(room) = self.context.journal.reserve(tickets.len()) else {
            for ticket in tickets {
                ticket.answer(Err(unavailable(Unavailable::OutboxFull, NumberTaken::No)));
            }
            return None;
        };
        let rest = tickets.split_off(room.num_permits().min(tickets.len()));
        self.wait_again(rest);
        let requests: Vec<&IssueRequest> =
            tickets.iter_mut().map(|ticket| flown(ticket, seat)).collect();
        let settings = &self.context.settings;
        let limits = RecordLimits {
            window_ms: settings.idempotency_window_ms(),
            records_max: settings.idempotency_records_max,
            keep_whole: settings.idempotency_keep_whole,
        };
        let flight = Flight::issue(keys, &guard, &requests, None, limits);
        self.context.metrics.flight_requests.of("redis").record(tickets.len() as f64);
        Some(InAir { flight, number, cargo: Cargo::Tickets(tickets, room), is_unresolved: false })
    }

    /// Takes waiting requests aboard; those whose counter is being seeded or raised park behind it.
    fn board(&mut self, seat: &mut Seat) -> Vec<Ticket> {
        let mut tickets = Vec::new();
        while tickets.len() < self.context.settings.flight_max {
            let Some(mut ticket) = self.waiting.pop_front() else { break };
            let parked =
                ticket.order.counters.iter().find(|counter| seat.parked.contains_key(*counter));
            if let Some(counter) = parked.cloned() {
                seat.parked.entry(counter).or_default().push(ticket);
            } else if ticket.board(&self.context.metrics) {
                tickets.push(ticket);
            }
        }
        tickets
    }

    /// Flies once. An unknown outcome leaves the flight in the air, to be flown again as it is.
    async fn fly(&mut self, redis: &Redis, seat: &mut Seat, in_air: InAir) -> Course {
        let started = Instant::now();
        seat.flown_at = started;
        let landed = match &in_air.cargo {
            Cargo::Tickets(..) => redis.issue(&in_air.flight).await.map(Answer::Issue),
            Cargo::Seeds(_) => redis.seed(&in_air.flight).await.map(Answer::Seed),
            Cargo::Raises(_) => redis.raise(&in_air.flight).await.map(Answer::Raise),
        };
        self.context.metrics.flight_seconds.of("redis").record(started.elapsed());
        match landed {
            Ok(answer) => self.land(seat, in_air, answer),
            Err(error @ (CounterError::Unknown(_) | CounterError::NotExecuted(_))) => {
                let is_unresolved =
                    in_air.is_unresolved || matches!(error, CounterError::Unknown(_));
                seat.air = Some(InAir { is_unresolved, ..in_air });
                self.context.metrics.retries_redis.of(error.reason()).increment(1);
                self.without_redis(seat, started, &error).await
            }
            Err(error @ (CounterError::Broken(_) | CounterError::Garbled(_))) => {
                seat.air = Some(in_air);
                // An outbox that refuses entries would break the next epoch too: with a new
                // identity comes a new one.
                let suspicion = Suspicion::of_epoch(seat.at, error.to_string());
                Course::Leave(Suspicion { identity_spent: true, ..suspicion })
            }
        }
    }

    /// Sorts a landing by what was flown and what Redis said of the ownership.
    fn land(&mut self, seat: &mut Seat, in_air: InAir, answer: Answer) -> Course {
        let number = in_air.number;
        let at = seat.at;
        let (cargo, suspicion) = match (in_air.cargo, answer) {
            (Cargo::Tickets(tickets, room), Answer::Issue(Landing::Landed(answer))) => {
                self.confirm(seat, number);
                let IssueAnswer { outcomes, records_shed } = answer;
                self.note_shed(seat, records_shed);
                return self.land_tickets(seat, number, tickets, room, outcomes);
            }
            (Cargo::Seeds(places), Answer::Seed(Landing::Landed(states))) => {
                self.confirm(seat, number);
                self.land_seeds(seat, &places, &states);
                return Course::Stay;
            }
            (Cargo::Raises(raises), Answer::Raise(Landing::Landed(raised))) => {
                self.confirm(seat, number);
                return self.land_raises(seat, &raises, &raised);
            }
            (cargo, Answer::Issue(landing)) => (cargo, refusal(at, landing)),
            (cargo, Answer::Seed(landing)) => (cargo, refusal(at, landing)),
            (cargo, Answer::Raise(landing)) => (cargo, refusal(at, landing)),
        };
        let InAir { flight, is_unresolved, .. } = in_air;
        seat.air = Some(InAir { flight, number, cargo, is_unresolved });
        Course::Leave(suspicion)
    }

    /// Idempotency records that went early: from then on new keys are looked up in the journal.
    fn note_shed(&self, seat: &mut Seat, records: u64) {
        if records == 0 {
            return;
        }
        self.context.metrics.records_shed.increment(records);
        // Said once in an epoch, not with each flight.
        if !std::mem::replace(&mut seat.sheds, true) {
            let records_max = self.context.settings.idempotency_records_max;
            tracing::warn!(
                partition = self.partition,
                records_max,
                "more idempotency records than idempotency.records_max: the oldest go, and every \
                 new key is looked up in the journal"
            );
        }
    }

    fn confirm(&mut self, seat: &mut Seat, number: u64) {
        assert!(number > seat.confirmed, "flight {number} landed after {}", seat.confirmed);
        seat.confirmed = number;
        self.well();
    }
}

/// A call's answer, by what was flown.
enum Answer {
    Issue(Landing<IssueAnswer>),
    Seed(Landing<Vec<SeedState>>),
    Raise(Landing<Vec<Raised>>),
}

/// What a landing that did nothing says.
fn refusal<T>(at: At, landing: Landing<T>) -> Suspicion {
    let of_epoch = |cause: &str| Suspicion::of_epoch(at, cause.to_owned());
    match landing {
        Landing::Landed(_) => unreachable!("landings are sorted before"),
        Landing::Fenced { epoch, reason } => {
            Suspicion { redis_epoch: epoch, ..of_epoch(&format!("fenced: {reason}")) }
        }
        Landing::Barred => Suspicion::barred(at),
        Landing::Late => of_epoch("a later flight was executed before this one"),
        // A new identity brings a new outbox: the key may be of another type for good.
        Landing::Miscounted => Suspicion {
            identity_spent: true,
            ..of_epoch("the outbox does not hold what it should")
        },
        Landing::Mismatch => {
            // Two processes fly under one identity: nothing that this one does is safe (F10).
            tracing::error!("another process flies under this node's identity; aborting");
            std::process::abort();
        }
    }
}

/// The request as it flies: with what is known in this epoch of its keys and counters.
fn flown<'t>(ticket: &'t mut Ticket, seat: &Seat) -> &'t IssueRequest {
    let request = &mut ticket.order.request;
    request.asked = ticket.asked_in == Some(seat.at.epoch);
    for take in &mut request.takes {
        take.seen = seat.notes.get(&take.counter).and_then(Note::value);
    }
    request
}

/// The course of a seat whose epoch must end.
pub(super) fn leave(seat: &Seat, cause: String) -> Course {
    Course::Leave(Suspicion::of_epoch(seat.at, cause))
}
