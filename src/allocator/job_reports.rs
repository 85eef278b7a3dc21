//! What the ledger's answers to a worker's background jobs lead to: seeds and raises ready to send,
//! requests answered from the journal, or an epoch that must end.

use super::background_jobs::{Done, RaiseWish};
use super::epoch_lease::{ColdPlace, EpochLease, RaisePlace};
use super::pending_request::PendingRequest;
use super::redis_path::{Course, leave};
use super::worker::{PartitionWorker, unavailable};
use super::{AllocError, NumberTaken, Unavailable, replay};
use crate::counter::SeedPlace;
use crate::ledger::{CounterSpec, Found, LedgerError, SeedOutcome};

impl PartitionWorker {
    /// What a job brought back, unless its epoch is over.
    pub(super) fn take_report(&mut self, lease: &mut EpochLease, done: Done) -> Course {
        match done {
            Done::Asked { at, requests, result } if at == lease.at => {
                self.answer_questions(at.epoch, requests, result);
                Course::Stay
            }
            Done::Asked { requests, .. } | Done::Aside { requests } => {
                self.wait_again(requests);
                Course::Stay
            }
            Done::Seeded { at, counters, result } if at == lease.at => {
                self.send_seeds(lease, counters, result)
            }
            Done::Raised { at, wishes, result } if at == lease.at => {
                self.send_raises(lease, wishes, result)
            }
            Done::Seeded { .. } | Done::Raised { .. } => Course::Stay,
        }
    }

    /// Answers what the journal knows; the rest is sent again, marked as asked in this epoch (F1).
    fn answer_questions(
        &mut self,
        epoch: u64,
        requests: Vec<PendingRequest>,
        result: Result<Vec<Found>, LedgerError>,
    ) {
        let found = match result {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, "the journal cannot be asked for earlier numbers");
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
                    pending.asked_in = Some(epoch);
                    back.push(pending);
                }
            }
        }
        self.wait_again(back);
    }

    fn send_seeds(
        &mut self,
        lease: &mut EpochLease,
        counters: Vec<(String, CounterSpec)>,
        result: Result<Vec<SeedOutcome>, LedgerError>,
    ) -> Course {
        let outcomes = match result {
            Ok(outcomes) => outcomes,
            Err(LedgerError::Fenced { .. }) => return leave(lease, "seed refused".into()),
            Err(error) => {
                let names = counters.iter().map(|(counter, _)| counter);
                self.refuse_parked(lease, names, Unavailable::of_ledger(&error), &error);
                return Course::Stay;
            }
        };
        let settings = &self.context.settings;
        for ((counter, spec), outcome) in counters.into_iter().zip(outcomes) {
            match outcome {
                SeedOutcome::Seeded { counter_id, value, ceiling } => {
                    let place = SeedPlace { counter, counter_id, value, ceiling };
                    lease.seeds.push(ColdPlace { place, step: spec.step });
                }
                SeedOutcome::Already { seeder, counter_id, .. } => {
                    lease.counters.of(&counter).identify(counter_id);
                    let since = lease.counters.cold_since(&counter);
                    if seeder == lease.node || since.elapsed() > settings.seed_grace {
                        return leave(lease, format!("counter {counter} was lost"));
                    }
                    let requests = lease.parked.remove(&counter).unwrap_or_default();
                    self.waiting.extend(requests);
                }
            }
        }
        Course::Stay
    }

    fn send_raises(
        &mut self,
        lease: &mut EpochLease,
        wishes: Vec<RaiseWish>,
        result: Result<Vec<Option<i64>>, LedgerError>,
    ) -> Course {
        let ceilings = match result {
            Ok(ceilings) => ceilings,
            Err(LedgerError::Fenced { .. }) => return leave(lease, "raise refused".into()),
            Err(error) => {
                for wish in &wishes {
                    lease.counters.of(&wish.counter).set_raising(false);
                }
                let names = wishes.iter().map(|wish| &wish.counter);
                self.refuse_parked(lease, names, Unavailable::CeilingReached, &error);
                return Course::Stay;
            }
        };
        for (RaiseWish { counter, spec, .. }, ceiling) in wishes.into_iter().zip(ceilings) {
            let Some(ceiling) = ceiling else {
                return leave(lease, format!("counter {counter} has left the epoch"));
            };
            lease.raises.push(RaisePlace { counter, ceiling, step: spec.step });
        }
        Course::Stay
    }

    /// Refuses requests that wait for counters which the ledger cannot serve now.
    fn refuse_parked<'a>(
        &self,
        lease: &mut EpochLease,
        counters: impl Iterator<Item = &'a String>,
        why: Unavailable,
        error: &LedgerError,
    ) {
        tracing::warn!(partition = self.partition, ?why, %error, "counters wait for the ledger");
        for pending in counters.flat_map(|name| lease.parked.remove(name)).flatten() {
            pending.answer(Err(unavailable(why, NumberTaken::No)));
        }
    }
}
