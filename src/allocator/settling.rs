//! What the ledger's answers to a lane's chores lead to: seeds and raises ready to fly, requests
//! answered from the journal, or an epoch that must end.

use super::chores::{Done, RaiseWish};
use super::lane::{Lane, unavailable};
use super::redis_path::{Course, leave};
use super::seat::{ColdPlace, RaisePlace, Seat};
use super::ticket::Ticket;
use super::{AllocError, NumberTaken, Unavailable, replay};
use crate::counter::SeedPlace;
use crate::ledger::{Found, LedgerError, Seed, SeedOutcome};

impl Lane {
    /// What a chore brought back, unless its epoch is over.
    pub(super) fn settle_chore(&mut self, seat: &mut Seat, done: Done) -> Course {
        match done {
            Done::Asked { at, tickets, result } if at == seat.at => {
                self.settle_questions(at.epoch, tickets, result);
                Course::Stay
            }
            Done::Asked { tickets, .. } | Done::Aside { tickets } => {
                self.wait_again(tickets);
                Course::Stay
            }
            Done::Seeded { at, counters, result } if at == seat.at => {
                self.settle_seeds(seat, counters, result)
            }
            Done::Raised { at, wishes, result } if at == seat.at => {
                self.settle_raises(seat, wishes, result)
            }
            Done::Seeded { .. } | Done::Raised { .. } => Course::Stay,
        }
    }

    /// Answers what the journal knows; the rest flies again, marked as asked in this epoch (F1).
    fn settle_questions(
        &mut self,
        epoch: u64,
        tickets: Vec<Ticket>,
        result: Result<Vec<Found>, LedgerError>,
    ) {
        let found = match result {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, "the journal cannot be asked for earlier numbers");
                for ticket in tickets {
                    // Redis knows of a number that cannot be read now.
                    let taken =
                        if ticket.is_journaled { NumberTaken::Maybe } else { NumberTaken::No };
                    ticket.answer(Err(AllocError::of_ledger(&error, taken)));
                }
                return;
            }
        };
        let mut back = Vec::new();
        for (mut ticket, found) in tickets.into_iter().zip(found) {
            match replay::judge(&ticket.order, found) {
                Some(answer) => {
                    if answer.is_ok() {
                        ticket.order.served.meter(&self.context.metrics).replayed.increment(1);
                    }
                    ticket.answer(answer);
                }
                // Rejected by the ledger, or lost with an outbox: flying again would not help.
                None if ticket.is_journaled => {
                    let record = &ticket.order.record;
                    tracing::error!(
                        series_id = record.series_id,
                        document_id = record.document_id,
                        "a number that was taken is not in the journal; see `numerator verify`"
                    );
                    let taken = NumberTaken::Maybe;
                    ticket.answer(Err(unavailable(Unavailable::NotJournaled, taken)));
                }
                None => {
                    ticket.asked_in = Some(epoch);
                    back.push(ticket);
                }
            }
        }
        self.wait_again(back);
    }

    fn settle_seeds(
        &mut self,
        seat: &mut Seat,
        counters: Vec<(String, Seed)>,
        result: Result<Vec<SeedOutcome>, LedgerError>,
    ) -> Course {
        let outcomes = match result {
            Ok(outcomes) => outcomes,
            Err(LedgerError::Fenced { .. }) => return leave(seat, "seed refused".into()),
            Err(error) => {
                let names = counters.iter().map(|(counter, _)| counter);
                self.refuse_parked(seat, names, Unavailable::of_ledger(&error), &error);
                return Course::Stay;
            }
        };
        let settings = &self.context.settings;
        for ((counter, serial), outcome) in counters.into_iter().zip(outcomes) {
            match outcome {
                SeedOutcome::Seeded { counter_id, value, ceiling } => {
                    let place = SeedPlace { counter, counter_id, value, ceiling };
                    seat.seeds.push(ColdPlace { place, step: serial.step });
                }
                SeedOutcome::Already { seeder, counter_id, .. } => {
                    seat.notes.of(&counter).identify(counter_id);
                    let since = seat.notes.cold_since(&counter);
                    if seeder == seat.node || since.elapsed() > settings.seed_grace {
                        return leave(seat, format!("counter {counter} was lost"));
                    }
                    let tickets = seat.parked.remove(&counter).unwrap_or_default();
                    self.waiting.extend(tickets);
                }
            }
        }
        Course::Stay
    }

    fn settle_raises(
        &mut self,
        seat: &mut Seat,
        wishes: Vec<RaiseWish>,
        result: Result<Vec<Option<i64>>, LedgerError>,
    ) -> Course {
        let ceilings = match result {
            Ok(ceilings) => ceilings,
            Err(LedgerError::Fenced { .. }) => return leave(seat, "raise refused".into()),
            Err(error) => {
                for wish in &wishes {
                    seat.notes.of(&wish.counter).set_raising(false);
                }
                let names = wishes.iter().map(|wish| &wish.counter);
                self.refuse_parked(seat, names, Unavailable::CeilingReached, &error);
                return Course::Stay;
            }
        };
        for (RaiseWish { counter, serial, .. }, ceiling) in wishes.into_iter().zip(ceilings) {
            let Some(ceiling) = ceiling else {
                return leave(seat, format!("counter {counter} has left the epoch"));
            };
            seat.raises.push(RaisePlace { counter, ceiling, step: serial.step });
        }
        Course::Stay
    }

    /// Refuses requests that wait for counters which the ledger cannot serve now.
    fn refuse_parked<'a>(
        &self,
        seat: &mut Seat,
        counters: impl Iterator<Item = &'a String>,
        why: Unavailable,
        error: &LedgerError,
    ) {
        tracing::warn!(partition = self.partition, ?why, %error, "counters wait for the ledger");
        for ticket in counters.flat_map(|name| seat.parked.remove(name)).flatten() {
            ticket.answer(Err(unavailable(why, NumberTaken::No)));
        }
    }
}
