//! What the ledger's answers to a worker's background jobs lead to: seeds and raises ready to send,
//! counters met, requests answered from the journal, or an epoch that must end.

use std::time::Duration;

use super::{EpochLease, Outcome};
use crate::engine::allocator::background_jobs::{Done, RaiseWish, Unverified};
use crate::engine::allocator::error::unavailable;
use crate::engine::allocator::intake::Intake;
use crate::engine::allocator::pending_request::PendingRequest;
use crate::engine::allocator::{AllocError, NumberTaken, Unavailable, replay};
use crate::ledger::{Counter, CounterSpec, Found, LedgerError, SeedOutcome};
use crate::redis::SeedPlace;

/// How long a counter may be cold while another process seeds it (F12).
const SEED_GRACE: Duration = Duration::from_secs(1);

impl EpochLease {
    /// What a job brought back, unless its epoch is over.
    pub(super) fn take_report(&mut self, intake: &mut Intake, done: Done) -> Outcome {
        match done {
            Done::Asked { at, requests, result } if at == self.at => {
                self.answer_questions(intake, requests, result);
                Ok(())
            }
            Done::Asked { requests, .. } | Done::Aside { requests } => {
                intake.wait_again(requests);
                Ok(())
            }
            Done::Seeded { at, counters, result } if at == self.at => {
                self.send_seeds(intake, counters, result)
            }
            Done::Compared { at, counters, result } if at == self.at => {
                self.is_comparing = false;
                self.compare_next(intake);
                self.meet(intake, counters, result)
            }
            Done::Raised { at, wishes, result } if at == self.at => {
                self.send_raises(intake, wishes, result)
            }
            Done::Seeded { .. } | Done::Compared { .. } | Done::Raised { .. } => Ok(()),
        }
    }

    /// Answers what the journal knows; the rest is sent again, marked as asked in this epoch (F1).
    fn answer_questions(
        &self,
        intake: &mut Intake,
        requests: Vec<PendingRequest>,
        result: Result<Vec<Found>, LedgerError>,
    ) {
        let found = match result {
            Ok(found) => found,
            Err(error) => {
                let why = Unavailable::of_ledger(&error);
                self.note_refused(intake, why, &error, requests.len());
                for pending in requests {
                    // Redis knows of a number that cannot be read now.
                    let taken =
                        if pending.is_journaled { NumberTaken::Maybe } else { NumberTaken::No };
                    pending.answer(Err(AllocError::of_ledger(&error, taken)));
                }
                return;
            }
        };
        let mut back = Vec::new();
        for (mut pending, found) in requests.into_iter().zip(found) {
            if pending.is_question() && !pending.is_journaled {
                pending.answer_question(found, &self.context.metrics);
                continue;
            }
            match replay::judge(&pending.order, found) {
                Some(answer) => {
                    if answer.is_ok() {
                        pending.order.served.meter(&self.context.metrics).replayed.increment(1);
                    }
                    pending.answer(answer);
                }
                // Rejected by the ledger, or lost with an outbox: sending it again would not help.
                None if pending.is_journaled => {
                    let record = &pending.order.record;
                    tracing::error!(
                        series_id = record.series_id,
                        document_id = record.document_id,
                        "a number that was taken is not in the journal; see `numerator verify`"
                    );
                    let taken = NumberTaken::Maybe;
                    pending.answer(Err(unavailable(Unavailable::NotJournaled, taken)));
                }
                None => {
                    pending.asked_in = Some(self.at.epoch);
                    back.push(pending);
                }
            }
        }
        intake.wait_again(back);
    }

    fn send_seeds(
        &mut self,
        intake: &mut Intake,
        counters: Vec<(String, CounterSpec)>,
        result: Result<Vec<SeedOutcome>, LedgerError>,
    ) -> Outcome {
        let outcomes = match result {
            Ok(outcomes) => outcomes,
            Err(LedgerError::Fenced { .. }) => return Err(self.doubt("seed refused".into())),
            Err(error) => {
                let names = counters.iter().map(|(counter, _)| counter);
                self.refuse_parked(intake, names, Unavailable::of_ledger(&error), &error);
                return Ok(());
            }
        };
        for ((counter, spec), outcome) in counters.into_iter().zip(outcomes) {
            match outcome {
                SeedOutcome::Seeded { counter_id, value, ceiling } => {
                    let place = SeedPlace { counter, counter_id, value, ceiling };
                    self.seeds.push((place, spec.step));
                }
                SeedOutcome::Already { seeder, counter_id, .. } => {
                    self.counters.of(&counter).identify(counter_id);
                    let since = self.counters.cold_since(&counter);
                    if seeder == self.node || since.elapsed() > SEED_GRACE {
                        return Err(self.doubt(format!("counter {counter} was lost")));
                    }
                    intake.wait_behind(self.parked.remove(&counter));
                }
            }
        }
        Ok(())
    }

    /// Counters that are what the ledger knows of them may be taken from, above what it has
    /// journaled: their requests go. Anything else was written to (F33).
    fn meet(
        &mut self,
        intake: &mut Intake,
        counters: Vec<Unverified>,
        result: Result<Vec<Option<Counter>>, LedgerError>,
    ) -> Outcome {
        let rows = match result {
            Ok(rows) => rows,
            Err(error) => {
                let names = counters.iter().map(|unverified| &unverified.counter);
                self.refuse_parked(intake, names, Unavailable::of_ledger(&error), &error);
                return Ok(());
            }
        };
        for (Unverified { counter, counter_id, ceiling, .. }, row) in counters.into_iter().zip(rows)
        {
            let at = self.at;
            if row.as_ref().is_some_and(|row| row.epoch > at.epoch) {
                return Err(self.doubt(format!("counter {counter} has left the epoch")));
            }
            // An id may have been swapped for another counter's. The ledger's ceiling only rises in
            // an epoch, and before the one in Redis does.
            let known = row.filter(|row| {
                (row.partition, row.epoch) == (at.partition, at.epoch)
                    && row.name() == counter
                    && ceiling <= row.ceiling
            });
            let Some(row) = known else {
                return Err(self.doubt(format!("counter {counter} was written to")));
            };
            self.counters.of(&counter).met(counter_id, row.taken);
            intake.wait_behind(self.parked.remove(&counter));
        }
        Ok(())
    }

    fn send_raises(
        &mut self,
        intake: &Intake,
        wishes: Vec<RaiseWish>,
        result: Result<Vec<Option<i64>>, LedgerError>,
    ) -> Outcome {
        let ceilings = match result {
            Ok(ceilings) => ceilings,
            Err(LedgerError::Fenced { .. }) => return Err(self.doubt("raise refused".into())),
            Err(error) => {
                for wish in &wishes {
                    self.counters.of(&wish.counter).is_raising = false;
                }
                let names = wishes.iter().map(|wish| &wish.counter);
                self.refuse_parked(intake, names, Unavailable::CeilingReached, &error);
                return Ok(());
            }
        };
        for (RaiseWish { counter, spec, .. }, ceiling) in wishes.into_iter().zip(ceilings) {
            let Some(ceiling) = ceiling else {
                return Err(self.doubt(format!("counter {counter} has left the epoch")));
            };
            self.raises.push(((counter, ceiling), spec.step));
        }
        Ok(())
    }

    /// Refuses requests that wait for counters which the ledger cannot serve now.
    fn refuse_parked<'a>(
        &mut self,
        intake: &Intake,
        counters: impl Iterator<Item = &'a String>,
        why: Unavailable,
        error: &LedgerError,
    ) {
        let parked: Vec<_> = counters.flat_map(|name| self.parked.remove(name)).flatten().collect();
        self.note_refused(intake, why, error, parked.len());
        for pending in parked {
            pending.answer(Err(unavailable(why, NumberTaken::No)));
        }
    }

    /// Notes that so many requests are refused because the ledger does not do its part.
    fn note_refused(&self, intake: &Intake, why: Unavailable, error: &LedgerError, count: usize) {
        let partition = self.at.partition;
        // That it is away was logged when it was found out, and not again with each request.
        if intake.cannot_commit() {
            tracing::debug!(partition, ?why, count, "refused while the ledger is away");
        } else {
            tracing::warn!(partition, ?why, count, %error, "requests wait for the ledger in vain");
        }
        intake.status().note_refused(why, count);
    }
}
