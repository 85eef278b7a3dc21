//! What a landed flight leads to. Here a number becomes handed out, and nowhere else (F11).

use std::collections::HashMap;
use std::sync::Arc;

use numbering::{TakenRange, first_values};
use tokio::sync::OwnedSemaphorePermit;

use super::chores::RaiseWish;
use super::durable::Answer;
use super::lane::{Lane, unavailable};
use super::notes::{Note, signed};
use super::redis_path::{Course, leave};
use super::rooms::Room;
use super::seat::{ColdPlace, RaisePlace, Seat};
use super::ticket::Ticket;
use super::{AllocError, NumberTaken, Unavailable, replay};
use crate::counter::{IssueOutcome, Raised, SeedState};
use crate::journal::Handover;
use crate::ledger::{Entry, IssuePath, Seed};

/// A flight's requests, sorted by what becomes of them.
#[derive(Default)]
struct Sorted {
    entries: Vec<Entry>,
    /// The records of the entries as they travelled.
    texts: Vec<Arc<str>>,
    /// Answers that tell of one of the entries.
    told: Vec<Answer>,
    refused: Vec<(Ticket, AllocError)>,
    cold: Vec<(Ticket, usize)>,
    full: Vec<Full>,
    ask: Vec<Ticket>,
    back: Vec<Ticket>,
    /// Why the epoch must end, where it must.
    alarm: Option<String>,
}

/// A counter without room, and the request that met it (none: raised ahead of need).
struct Full {
    ticket: Option<Ticket>,
    counter: String,
    serial: Seed,
    need: u64,
}

impl Lane {
    /// The moment of handing out: records into the journal queue, then answers (F11).
    pub(super) fn land_tickets(
        &mut self,
        seat: &mut Seat,
        number: u64,
        tickets: Vec<Ticket>,
        room: OwnedSemaphorePermit,
        outcomes: Vec<IssueOutcome>,
    ) -> Course {
        assert_eq!(tickets.len(), outcomes.len(), "one outcome per request");
        let mut sorted = Sorted::default();
        for (ticket, outcome) in tickets.into_iter().zip(outcomes) {
            self.sort(seat, &mut sorted, ticket, outcome);
        }
        let Sorted { entries, texts, told, refused, cold, full, ask, back, alarm } = sorted;
        if let Some(least) = seat.room.told() {
            self.show_room(least);
        }
        let membership = Arc::clone(&self.context.membership);
        let Some(right) = membership.hand_out(seat.node) else {
            return self.hand_nothing_out(
                told,
                refused,
                [
                    cold.into_iter().map(|(ticket, _)| ticket).collect(),
                    full.into_iter().filter_map(|full| full.ticket).collect(),
                    ask,
                    back,
                ],
            );
        };
        if !entries.is_empty() {
            let (partition, node) = (self.partition, seat.node);
            let is_urgent = told.iter().any(|(ticket, _)| ticket.order.is_durable());
            let flight = number;
            let handover = Handover { partition, flight, node, entries, texts, room, is_urgent };
            self.context.journal.hand_over(handover);
            self.handed = number;
        }
        drop(right);
        self.answer_handed_out(number, told);
        for (ticket, error) in refused {
            ticket.answer(Err(error));
        }
        self.wait_again(back);
        if !ask.is_empty() {
            self.chores.ask(seat.at, ask);
        }
        let lost = self.start_seeds(seat, cold);
        self.start_raises(seat, full);
        match alarm.or(lost) {
            Some(cause) => leave(seat, cause),
            None => Course::Stay,
        }
    }

    /// The ledger went back before the flight landed: its users may agree on one without what it
    /// took, so that nobody may get it (F25).
    fn hand_nothing_out(
        &mut self,
        told: Vec<Answer>,
        refused: Vec<(Ticket, AllocError)>,
        others: [Vec<Ticket>; 4],
    ) -> Course {
        for (ticket, _) in told {
            ticket.answer(Err(unavailable(Unavailable::Held, NumberTaken::Maybe)));
        }
        for (ticket, error) in refused {
            ticket.answer(Err(error));
        }
        others.into_iter().for_each(|tickets| self.wait_again(tickets));
        Course::Stay
    }

    /// Parks requests behind cold counters and has those seeded; a counter that was warm in this
    /// epoch is lost instead (F12).
    fn start_seeds(&mut self, seat: &mut Seat, cold: Vec<(Ticket, usize)>) -> Option<String> {
        let mut needs: HashMap<String, (Seed, u64)> = HashMap::new();
        let mut lost = None;
        for (mut ticket, take) in cold {
            // Until the counter is seeded, a late transaction of the database's epoch may take from
            // it, under the same keys: the journal is asked again (F1, F4).
            ticket.asked_in = None;
            let counter = ticket.order.counters[take].clone();
            if seat.notes.get(&counter).is_some_and(Note::is_warm) {
                lost = Some(format!("counter {counter} was lost"));
            }
            let serial = ticket.order.serials[take].clone();
            needs.entry(counter.clone()).or_insert((serial, 0)).1 += ticket.order.count;
            ticket.stage.disembark();
            seat.parked.entry(counter).or_default().push(ticket);
        }
        if needs.is_empty() || lost.is_some() {
            return lost;
        }
        let room_min = self.context.settings.ceiling_step_min;
        let counters = needs
            .into_iter()
            .map(|(counter, (mut serial, need))| {
                serial.room = need.max(room_min);
                (counter, serial)
            })
            .collect();
        self.chores.seed(seat.at, seat.node, counters);
        None
    }

    /// Parks requests behind full counters, and has ceilings raised for those and ahead of need.
    fn start_raises(&mut self, seat: &mut Seat, full: Vec<Full>) {
        let settings = &self.context.settings;
        let mut wishes: HashMap<String, (Seed, u64)> = HashMap::new();
        for Full { ticket, counter, serial, need } in full {
            wishes.entry(counter.clone()).or_insert((serial, 0)).1 += need;
            if let Some(ticket) = ticket {
                ticket.stage.disembark();
                seat.parked.entry(counter).or_default().push(ticket);
            }
        }
        let mut started = Vec::new();
        let now = seat.notes.now();
        for (counter, (serial, need)) in wishes {
            let note = seat.notes.of(&counter);
            if note.is_raising() && !seat.parked.contains_key(&counter) {
                continue;
            }
            note.set_raising(true);
            let ceiling = note.next_ceiling(&serial, need, now, settings);
            started.push(RaiseWish { counter, serial, counter_id: note.counter_id(), ceiling });
        }
        if !started.is_empty() {
            self.context.metrics.ceiling_raises.increment(started.len() as u64);
            self.chores.raise(seat.at, started);
        }
    }

    /// Seeded counters are warm: their requests fly.
    pub(super) fn land_seeds(
        &mut self,
        seat: &mut Seat,
        places: &[ColdPlace],
        states: &[SeedState],
    ) {
        let now = seat.notes.now();
        for (ColdPlace { place, step }, state) in places.iter().zip(states) {
            let note = seat.notes.of(&place.counter);
            note.warmed(place.counter_id);
            if *state == SeedState::Seeded {
                note.seeded(place.value);
                note.grant(place.ceiling, *step, now);
            }
            self.waiting.extend(seat.parked.remove(&place.counter).unwrap_or_default());
        }
    }

    /// Raised counters have room: their requests fly.
    pub(super) fn land_raises(
        &mut self,
        seat: &mut Seat,
        raises: &[RaisePlace],
        raised: &[Raised],
    ) -> Course {
        let now = seat.notes.now();
        for (RaisePlace { counter, step, .. }, raised) in raises.iter().zip(raised) {
            match raised {
                Raised::Ceiling(ceiling) => {
                    seat.notes.of(counter).grant(*ceiling, *step, now);
                }
                Raised::Cold => return leave(seat, format!("counter {counter} was lost")),
                Raised::Regressed => {
                    return leave(seat, format!("counter {counter} was written to"));
                }
            }
            self.waiting.extend(seat.parked.remove(counter).unwrap_or_default());
        }
        Course::Stay
    }

    /// Sorts one request by its outcome.
    fn sort(&self, seat: &mut Seat, sorted: &mut Sorted, ticket: Ticket, outcome: IssueOutcome) {
        match outcome {
            IssueOutcome::Taken(taken) => {
                Self::note_taken(seat, sorted, &ticket, &taken);
                let number = ticket.order.mask.fill(&first_values(&taken));
                let record = Arc::clone(&ticket.order.record);
                let retry_count = ticket.retry_count();
                match number {
                    Ok(number) => {
                        let path = IssuePath::Redis;
                        let entry = Entry { record, taken, number, at: seat.at, retry_count, path };
                        sorted.entries.push(entry.clone());
                        sorted.texts.push(Arc::clone(&ticket.order.request.record));
                        let answer = ticket.order.issued(entry, false);
                        let metrics = &self.context.metrics;
                        let meter = ticket.order.served.meter(metrics);
                        meter.issued_redis.increment(ticket.order.count);
                        metrics.request_retries.record(f64::from(retry_count));
                        sorted.told.push((ticket, answer));
                    }
                    // The draft bounds every value by its width: only a broken reply gets here.
                    Err(error) => {
                        sorted.alarm = Some(error.to_string());
                        sorted.back.push(ticket);
                    }
                }
            }
            IssueOutcome::Replayed { taken, record } => {
                self.sort_earlier(seat, sorted, ticket, taken, &record, true);
            }
            IssueOutcome::DocumentNumbered { taken, record } => {
                self.sort_earlier(seat, sorted, ticket, taken, &record, false);
            }
            IssueOutcome::KeyReused => sorted.refused.push((ticket, AllocError::KeyReused)),
            IssueOutcome::Ask => sorted.ask.push(Ticket { is_journaled: false, ..ticket }),
            IssueOutcome::Journaled => sorted.ask.push(Ticket { is_journaled: true, ..ticket }),
            IssueOutcome::Cold { take } => sorted.cold.push((ticket, take)),
            IssueOutcome::Ceiling { take, value, ceiling } => {
                self.context.metrics.ceiling_waits.increment(1);
                let (counter, serial) = ticket.order.serial(take);
                seat.notes.of(&counter).met_ceiling(value, ceiling);
                seat.room.note(Room { left: 0, granted: 1 });
                let need = ticket.order.count;
                sorted.full.push(Full { ticket: Some(ticket), counter, serial, need });
            }
            IssueOutcome::Exhausted { take } => {
                let error = replay::exhausted(&ticket.order, take);
                sorted.refused.push((ticket, error));
            }
            IssueOutcome::Regressed { take } => {
                let counter = &ticket.order.counters[take];
                sorted.alarm = Some(format!("counter {counter} was written to"));
                sorted.back.push(ticket);
            }
            IssueOutcome::Vanished => {
                sorted.alarm = Some("idempotency records vanished".into());
                sorted.back.push(ticket);
            }
            IssueOutcome::Nothing => sorted.back.push(ticket),
        }
    }

    /// Notes what was taken, and which ceilings should rise ahead of need.
    fn note_taken(seat: &mut Seat, sorted: &mut Sorted, ticket: &Ticket, taken: &[TakenRange]) {
        for (take, taken) in taken.iter().enumerate() {
            let (counter, serial) = (&ticket.order.counters[take], &ticket.order.serials[take]);
            let (value, count) = (signed(taken.range.last), taken.range.count());
            let note = seat.notes.took(counter, taken.counter_id, value, count);
            if let Some(room) = note.room_left(serial) {
                seat.room.note(room);
            }
            if note.wants_raise(serial) {
                let (counter, serial) = ticket.order.serial(take);
                sorted.full.push(Full { ticket: None, counter, serial, need: 0 });
            }
        }
    }

    /// An earlier allocation answers. It is recorded like an issue: its first record may be in the
    /// hands of a node that will never write it (F2).
    fn sort_earlier(
        &self,
        seat: &Seat,
        sorted: &mut Sorted,
        ticket: Ticket,
        taken: Vec<TakenRange>,
        record: &str,
        same_payload: bool,
    ) {
        let Ok(entry) = Entry::of_flight(seat.at, taken, record) else {
            sorted.alarm = Some("an idempotency record cannot be read".into());
            sorted.back.push(ticket);
            return;
        };
        sorted.entries.push(entry.clone());
        sorted.texts.push(record.into());
        let answer = if same_payload {
            ticket.order.served.meter(&self.context.metrics).replayed.increment(1);
            ticket.order.issued(entry, true)
        } else {
            Err(AllocError::DocumentNumbered { number: entry.number })
        };
        sorted.told.push((ticket, answer));
    }
}
