//! What a completed flight leads to. Here a number becomes handed out, and nowhere else (F11).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use numbering::{TakenRange, first_values};
use tokio::sync::OwnedSemaphorePermit;

use super::counter_cache::{CachedCounter, Moment, signed};
use super::{EpochLease, Outcome};
use crate::engine::allocator::background_jobs::{RaiseWish, Unverified};
use crate::engine::allocator::error::unavailable;
use crate::engine::allocator::handed_out::DueAnswer;
use crate::engine::allocator::headroom::Headroom;
use crate::engine::allocator::intake::Intake;
use crate::engine::allocator::pending_request::PendingRequest;
use crate::engine::allocator::{AllocError, NumberTaken, Unavailable, replay};
use crate::engine::journal::Handover;
use crate::ledger::{CounterSpec, Entry, IssuePath};
use crate::redis::{IssueOutcome, Raised, SeedPlace, SeedState};

/// Most counters that are compared with the ledger by one statement.
const COMPARED_MAX: usize = 1_000;

/// A flight's requests, sorted by their outcome.
#[derive(Default)]
struct Sorted {
    entries: Vec<Entry>,
    /// The records of the entries as they travelled.
    texts: Vec<Arc<str>>,
    /// Answers that show one of the entries.
    told: Vec<DueAnswer>,
    refused: Vec<(PendingRequest, AllocError)>,
    /// Requests and the take whose counter is cold,
    cold: Vec<(PendingRequest, usize)>,
    /// is met here for the first time in the epoch,
    unverified: Vec<(PendingRequest, usize)>,
    /// or has no headroom.
    full: Vec<(PendingRequest, usize)>,
    /// Id and ceiling in Redis of the counters that are met.
    shown: HashMap<String, (i64, i64)>,
    /// Counters to raise ahead of need.
    low: Needs,
    /// When the first number was met.
    now: Option<Moment>,
    ask: Vec<PendingRequest>,
    back: Vec<PendingRequest>,
    /// Whether a number was taken, and not only replayed.
    is_taken: bool,
    /// Why the epoch must end, where it must.
    alarm: Option<String>,
}

/// Counters by name, and how many numbers requests need of each.
type Needs = HashMap<String, (CounterSpec, u64)>;

impl Sorted {
    /// The answer to a request is inconsistent: the epoch must end.
    fn raise_alarm(&mut self, pending: PendingRequest, cause: String) {
        self.alarm = Some(cause);
        self.back.push(pending);
    }
}

impl EpochLease {
    /// The moment of handing out: records into the journal queue, then answers (F11). These may
    /// wait until the next flight is under way, never for its outcome.
    pub(super) fn complete_requests(
        &mut self,
        intake: &mut Intake,
        number: u64,
        requests: Vec<PendingRequest>,
        space: OwnedSemaphorePermit,
        outcomes: Vec<IssueOutcome>,
    ) -> Outcome {
        assert_eq!(requests.len(), outcomes.len(), "one outcome per request");
        let mut sorted = Sorted::default();
        for (pending, outcome) in requests.into_iter().zip(outcomes) {
            self.sort(&mut sorted, pending, outcome);
        }
        if let Some(least) = self.headroom.least() {
            intake.status().least_headroom = Some(least);
        }
        if sorted.is_taken {
            intake.status().note_taken();
        }
        let membership = Arc::clone(&self.context.membership);
        let Some(right) = membership.hand_out(self.node) else {
            hand_nothing_out(intake, sorted);
            return Ok(());
        };
        let Sorted { entries, texts, told, refused, ask, back, alarm, .. } = sorted;
        let Sorted { cold, unverified, shown, full, low, .. } = sorted;
        if !entries.is_empty() {
            let (partition, node, flight) = (self.at.partition, self.node, number);
            let is_urgent = told.iter().any(|(pending, _)| pending.order.is_durable());
            let handover = Handover { partition, flight, node, entries, texts, space, is_urgent };
            intake.handed_out.hand_over(handover);
        }
        drop(right);
        self.due = intake.handed_out.answer(number, told);
        for (pending, error) in refused {
            pending.answer(Err(error));
        }
        intake.wait_again(back);
        if !ask.is_empty() {
            // What Redis knows to be journaled has a number; all others certainly took none.
            ask.iter().filter(|pending| !pending.is_journaled).for_each(PendingRequest::put_back);
            intake.jobs.ask(self.at, ask);
        }
        let lost = self.start_seeds(intake, cold);
        self.start_comparisons(intake, unverified, &shown);
        self.start_raises(intake, full, low);
        let alarm = alarm.or(lost);
        intake.pull();
        if alarm.is_some() || !self.leaves_at_once(intake) {
            self.due.answer();
        }
        match alarm {
            Some(cause) => Err(self.doubt(cause)),
            None => Ok(()),
        }
    }

    /// Parks requests behind the counters that they met.
    fn park(&mut self, requests: Vec<(PendingRequest, usize)>) -> Needs {
        let mut needs = Needs::new();
        for (pending, take) in requests {
            let (counter, spec) = pending.order.spec(take);
            let (counter, spec) = (counter.clone(), spec.clone());
            needs.entry(counter.clone()).or_insert((spec, 0)).1 += pending.order.count();
            pending.cancellation.put_back();
            self.parked.entry(counter).or_default().push(pending);
        }
        needs
    }

    /// Parks requests behind cold counters and has those seeded; a counter that was warm in this
    /// epoch is lost instead (F12).
    fn start_seeds(
        &mut self,
        intake: &Intake,
        cold: Vec<(PendingRequest, usize)>,
    ) -> Option<String> {
        let mut needs = self.park(cold);
        let is_warm =
            |counter: &&String| self.counters.get(counter).is_some_and(CachedCounter::is_warm);
        if let Some(counter) = needs.keys().find(is_warm) {
            return Some(format!("counter {counter} was lost"));
        }
        let headroom_min = self.context.settings.ceiling_step_min;
        for (spec, need) in needs.values_mut() {
            spec.headroom = headroom_min.max(*need);
        }
        if !needs.is_empty() {
            let counters = needs.into_iter().map(|(counter, (spec, _))| (counter, spec)).collect();
            intake.jobs.seed(self.at, self.node, counters);
        }
        None
    }

    /// Parks requests behind counters that this node has not seen in the epoch, and has those
    /// compared with the ledger before anything is taken from them (F33).
    fn start_comparisons(
        &mut self,
        intake: &Intake,
        unverified: Vec<(PendingRequest, usize)>,
        shown: &HashMap<String, (i64, i64)>,
    ) {
        for counter in self.park(unverified).into_keys() {
            let (counter_id, ceiling) = shown[&counter];
            self.unverified.push(Unverified { counter, counter_id, ceiling });
        }
        self.compare_next(intake);
    }

    /// Has counters compared that wait for it, unless others are being compared: what is met
    /// meanwhile goes together. A comparison waits for no counter's lock.
    pub(super) fn compare_next(&mut self, intake: &Intake) {
        if self.is_comparing || self.unverified.is_empty() {
            return;
        }
        let rest = self.unverified.split_off(self.unverified.len().min(COMPARED_MAX));
        self.is_comparing = true;
        intake.jobs.compare(self.at, std::mem::replace(&mut self.unverified, rest));
    }

    /// Parks requests behind full counters, and has ceilings raised for those and ahead of need.
    fn start_raises(&mut self, intake: &Intake, full: Vec<(PendingRequest, usize)>, low: Needs) {
        let mut wishes = low;
        wishes.extend(self.park(full));
        let mut started = Vec::new();
        let now = self.counters.now();
        for (counter, (spec, need)) in wishes {
            let cached = self.counters.of(&counter);
            let is_ahead = !self.parked.contains_key(&counter);
            if is_ahead && (cached.is_raising || intake.cannot_commit()) {
                continue;
            }
            cached.is_raising = true;
            let ceiling = cached.next_ceiling(&spec, need, now, &self.context.settings);
            started.push(RaiseWish { counter, spec, counter_id: cached.counter_id(), ceiling });
        }
        if !started.is_empty() {
            self.context.metrics.ceiling_raises.increment(started.len() as u64);
            intake.jobs.raise(self.at, started);
        }
    }

    /// Seeded counters are warm: their requests go.
    pub(super) fn complete_seeds<'p>(
        &mut self,
        intake: &mut Intake,
        seeded: impl Iterator<Item = ((&'p SeedPlace, u64), SeedState)>,
    ) {
        let now = self.counters.now();
        for ((place, step), state) in seeded {
            let cached = self.counters.of(&place.counter);
            cached.warmed(place.counter_id);
            if state == SeedState::Seeded {
                cached.seeded(place.value);
                cached.grant(place.ceiling, step, now);
            }
            intake.wait_behind(self.parked.remove(&place.counter));
        }
    }

    /// Raised counters have headroom: their requests go.
    pub(super) fn complete_raises<'r>(
        &mut self,
        intake: &mut Intake,
        raised: impl Iterator<Item = ((&'r (String, i64), u64), Raised)>,
    ) -> Outcome {
        let now = self.counters.now();
        for (((counter, _), step), raised) in raised {
            match raised {
                Raised::Ceiling(ceiling) => self.counters.of(counter).grant(ceiling, step, now),
                Raised::Cold => return Err(self.doubt(format!("counter {counter} was lost"))),
                Raised::Regressed => {
                    return Err(self.doubt(format!("counter {counter} was written to")));
                }
            }
            intake.wait_behind(self.parked.remove(counter));
        }
        Ok(())
    }

    /// Sorts one request by its outcome.
    fn sort(&mut self, sorted: &mut Sorted, pending: PendingRequest, outcome: IssueOutcome) {
        match outcome {
            IssueOutcome::Taken(taken) => {
                self.note_taken(sorted, &pending, &taken);
                let number = pending.order.partial.fill(&first_values(&taken));
                let record = Arc::clone(&pending.order.record);
                let retry_count = pending.retry_count();
                match number {
                    Ok(number) => {
                        let path = IssuePath::Redis;
                        let entry = Entry { record, taken, number, at: self.at, retry_count, path };
                        sorted.is_taken = true;
                        sorted.entries.push(entry.clone());
                        sorted.texts.push(Arc::clone(&pending.order.request.record));
                        let answer = pending.order.issued(entry, false);
                        let metrics = &self.context.metrics;
                        let meter = pending.order.served.meter(metrics);
                        meter.issued_redis.increment(pending.order.count());
                        metrics.request_retries.record(f64::from(retry_count));
                        sorted.told.push((pending, answer));
                    }
                    // The draft bounds every value by its width: only a broken reply gets here.
                    Err(error) => sorted.raise_alarm(pending, error.to_string()),
                }
            }
            IssueOutcome::Replayed { taken, record } => {
                self.sort_earlier(sorted, pending, taken, &record, true);
            }
            IssueOutcome::DocumentNumbered { taken, record } => {
                self.sort_earlier(sorted, pending, taken, &record, false);
            }
            IssueOutcome::KeyReused => sorted.refused.push((pending, AllocError::KeyReused)),
            IssueOutcome::Ask => sorted.ask.push(PendingRequest { is_journaled: false, ..pending }),
            IssueOutcome::Journaled => {
                sorted.ask.push(PendingRequest { is_journaled: true, ..pending });
            }
            // Until the counter is seeded, a late transaction of the database's epoch may take from
            // it, under the same keys: the journal is asked again (F1, F4). A request that only
            // asks has no counter: the journal knows what Redis does not remember.
            IssueOutcome::Cold { .. } if pending.is_question() => sorted.ask.push(pending),
            IssueOutcome::Cold { take } => {
                sorted.cold.push((PendingRequest { asked_in: None, ..pending }, take));
            }
            IssueOutcome::Unverified { take, counter_id, ceiling } => {
                let counter = pending.order.spec(take).0.clone();
                sorted.shown.insert(counter, (counter_id, ceiling));
                sorted.unverified.push((pending, take));
            }
            IssueOutcome::Ceiling { take, value, ceiling } => {
                self.meet_ceiling(&pending, take, (value, ceiling));
                sorted.full.push((pending, take));
            }
            IssueOutcome::Below { take, counter_id, value } => {
                let error = replay::below_start(&pending.order, take, (counter_id, value));
                sorted.refused.push((pending, error));
            }
            IssueOutcome::Exhausted { take } => {
                let error = replay::exhausted(&pending.order, take);
                sorted.refused.push((pending, error));
            }
            IssueOutcome::Regressed { take } => {
                let cause = format!("counter {} was written to", pending.order.spec(take).0);
                sorted.raise_alarm(pending, cause);
            }
            IssueOutcome::Vanished => {
                sorted.raise_alarm(pending, "idempotency records vanished".into());
            }
            IssueOutcome::Nothing => sorted.back.push(pending),
        }
    }

    fn meet_ceiling(&mut self, pending: &PendingRequest, take: usize, at: (i64, i64)) {
        let (value, ceiling) = at;
        self.context.metrics.ceiling_waits.increment(1);
        self.counters.of(pending.order.spec(take).0).met_ceiling(value, ceiling);
        self.headroom.note(Headroom { left: 0, granted: 1, lasts: Duration::ZERO });
    }

    /// Notes what was taken, and which ceilings should rise ahead of need.
    fn note_taken(&mut self, sorted: &mut Sorted, pending: &PendingRequest, taken: &[TakenRange]) {
        let now = *sorted.now.get_or_insert_with(|| self.counters.now());
        for (take, taken) in taken.iter().enumerate() {
            let (counter, spec) = pending.order.spec(take);
            let (value, count) = (signed(taken.range.last), taken.range.count());
            let distance = [count, spec.step];
            let cached = self.counters.took(counter, taken.counter_id, value, distance);
            if let Some(headroom) = cached.headroom_below(spec, now) {
                self.headroom.note(headroom);
            }
            if cached.wants_raise(spec) {
                sorted.low.insert(counter.clone(), (spec.clone(), 0));
            }
        }
    }

    /// An earlier allocation answers. It is recorded like an issue: its first record may be in the
    /// hands of a node that will never write it (F2).
    fn sort_earlier(
        &self,
        sorted: &mut Sorted,
        pending: PendingRequest,
        taken: Vec<TakenRange>,
        record: &str,
        same_payload: bool,
    ) {
        let Ok(entry) = Entry::of_flight(self.at, taken, record) else {
            return sorted.raise_alarm(pending, "an idempotency record cannot be read".into());
        };
        sorted.entries.push(entry.clone());
        sorted.texts.push(record.into());
        let answer = if same_payload {
            pending.order.served.meter(&self.context.metrics).replayed.increment(1);
            pending.order.repeated(entry)
        } else {
            Err(pending.order.numbered(entry))
        };
        sorted.told.push((pending, answer));
    }
}

/// The ledger went back before the flight completed: the processes may agree on one without what it
/// took, so it must not be handed out (F25).
fn hand_nothing_out(intake: &mut Intake, sorted: Sorted) {
    let Sorted { told, refused, cold, unverified, full, ask, back, .. } = sorted;
    for (pending, _) in told {
        pending.answer(Err(unavailable(Unavailable::Held, NumberTaken::Maybe)));
    }
    for (pending, error) in refused {
        pending.answer(Err(error));
    }
    for parked in [cold, unverified, full] {
        intake.wait_again(parked.into_iter().map(|(pending, _)| pending).collect());
    }
    intake.wait_again(ask);
    intake.wait_again(back);
}
