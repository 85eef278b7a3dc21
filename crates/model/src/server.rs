//! A Redis server: the scripts over its data set. Each script runs in one step; besides scripts
//! only faults write.

use crate::data::{Counter, Data, Guard, Line, OwnerRecord};
use crate::message::{Body, Message, Opening, Outcome, Reply};
use crate::rules::Rules;
use crate::scenario::{Scenario, Second};
use crate::state::{
    Asked, CounterId, Epoch, Incarnation, Job, NodeId, PendingRequest, Record, SPAN, counter_of,
    insert,
};

/// The digest of a flight that will never be executed.
const SPENT: u8 = 0xFF;

/// A Redis server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Server {
    /// Whether it exists.
    pub present: bool,
    /// Whether its role is master.
    pub master: bool,
    /// Its `master_replid`.
    pub incarnation: Incarnation,
    /// Its data set.
    pub data: Data,
    /// An older one, on its disk.
    pub saved: Option<Box<Data>>,
}

impl Server {
    /// The owner of epoch 1.
    #[must_use]
    pub fn first(scenario: &Scenario) -> Self {
        let nodes = usize::from(scenario.nodes);
        let headroom = scenario.headroom;
        let warm = |base| Counter { epoch: 1, value: base, check: base, ceiling: base + headroom };
        let owned = Data {
            owner: Some(OwnerRecord::new(1, 1, true, 0, nodes)),
            counters: [0, SPAN].map(|base| scenario.warm.then(|| warm(base))),
            ..Data::empty(nodes)
        };
        let data = if scenario.on_database { Data::empty(nodes) } else { owned };
        Self { present: true, master: true, incarnation: 1, data, saved: None }
    }

    /// The other server.
    #[must_use]
    pub fn second(scenario: &Scenario) -> Self {
        let first = Self::first(scenario);
        let data = Data::empty(scenario.nodes.into());
        match scenario.second {
            Second::Absent => Self { present: false, master: false, incarnation: 0, data, ..first },
            Second::Replica => Self { master: false, ..first },
            Second::Master => Self { incarnation: 2, data, ..first },
        }
    }

    fn owned(&self, rules: &Rules, message: &Message) -> Option<Reply> {
        if rules.f19 && !self.master {
            return Some(Reply::Fenced);
        }
        // Without F6 a node takes the incarnation that its server shows.
        let expected = if rules.f6 { message.incarnation } else { self.incarnation };
        let Some(owner) = &self.data.owner else { return Some(Reply::Fenced) };
        if rules.incarnation && (self.incarnation != expected || owner.incarnation != expected) {
            return Some(Reply::Fenced);
        }
        if rules.epoch && owner.epoch != message.epoch {
            return Some(Reply::Fenced);
        }
        owner.barred[usize::from(message.node)].then_some(Reply::Barred)
    }

    /// Whether a call of a script that belongs to no flight would be admitted.
    #[must_use]
    pub fn admits(&self, rules: &Rules, epoch: Epoch, incarnation: Incarnation) -> bool {
        let is_owner = |owner: &OwnerRecord| {
            (!rules.epoch || owner.epoch == epoch)
                && (!rules.incarnation
                    || (owner.incarnation == incarnation && self.incarnation == incarnation))
        };
        self.present
            && (self.master || !rules.f19)
            && self.data.owner.as_ref().is_some_and(is_owner)
    }

    /// Whether a flight may proceed; `Ok(true)` if it was executed before.
    fn guard(&self, rules: &Rules, message: &Message) -> Result<bool, Reply> {
        if let Some(refusal) = self.owned(rules, message) {
            return Err(refusal);
        }
        let node = usize::from(message.node);
        let guard = self.data.owner.as_ref().and_then(|owner| owner.guards[node]);
        let last = guard.map_or(0, |guard| guard.flight);
        if rules.flight_guard {
            if last > message.flight {
                return Err(Reply::Late);
            }
            if let Some(guard) = guard
                && last == message.flight
                && rules.f10
                && guard.digest != message.digest()
            {
                return Err(Reply::Mismatch);
            }
            if last < message.confirmed {
                return Err(Reply::Fenced);
            }
        }
        let held = self.data.outboxes[node].len();
        if rules.f7 && guard.is_some_and(|guard| usize::from(guard.count) != held) {
            return Err(Reply::Miscounted);
        }
        Ok(rules.flight_guard && last == message.flight)
    }

    fn note(&mut self, message: &Message) {
        let node = usize::from(message.node);
        let count = u8::try_from(self.data.outboxes[node].len()).expect("few entries");
        if let Some(owner) = &mut self.data.owner {
            let (flight, digest) = (message.flight, message.digest());
            owner.guards[node] = Some(Guard { flight, digest, count });
        }
    }

    /// Runs a flight's script; `broken`: a write inside it is refused.
    pub fn execute(&mut self, rules: &Rules, message: &Message, broken: bool) -> Reply {
        let executed = match self.guard(rules, message) {
            Ok(executed) => executed,
            Err(refusal) => return refusal,
        };
        match &message.body {
            Body::Issue(requests) if executed => {
                Reply::Issued(self.completed(message, requests.len()))
            }
            Body::Issue(requests) => self.issue(rules, message, requests, broken),
            Body::Job(job) => {
                if !executed {
                    self.job(rules, message, *job);
                    self.note(message);
                }
                Reply::Done
            }
        }
    }

    fn completed(&self, message: &Message, count: usize) -> Vec<Outcome> {
        let mut outcomes = vec![Outcome::Nothing; count];
        let outbox = &self.data.outboxes[usize::from(message.node)];
        let entry = outbox.iter().find(|(flight, _)| *flight == message.flight);
        for line in entry.map_or(&[][..], |(_, lines)| lines) {
            if let Some(outcome) = outcomes.get_mut(usize::from(line.place)) {
                let of = if line.replayed { Outcome::Replayed } else { Outcome::Taken };
                *outcome = of(line.record);
            }
        }
        outcomes
    }

    fn issue(
        &mut self,
        rules: &Rules,
        message: &Message,
        requests: &[PendingRequest],
        broken: bool,
    ) -> Reply {
        let node = usize::from(message.node);
        if broken && rules.f15 {
            return Reply::Error;
        }
        let before = self.data.clone();
        let (mut outcomes, mut lines) = (Vec::new(), Vec::new());
        for (place, request) in (0..).zip(requests) {
            let outcome = match self.recall(rules, message.epoch, request) {
                // The previous epoch may still take from this counter in the ledger.
                Some(Outcome::Ask)
                    if rules.f27 && self.is_cold(rules, message.epoch, request.counter) =>
                {
                    Outcome::Cold
                }
                Some(outcome) => outcome,
                None => self.take(rules, message, request),
            };
            match outcome {
                Outcome::Taken(record) => {
                    self.remember(record);
                    lines.push(Line { place, replayed: false, record });
                }
                Outcome::Numbered(record) if rules.f30 => {
                    lines.push(Line { place, replayed: true, record });
                }
                Outcome::Replayed(record) if rules.f2 => {
                    lines.push(Line { place, replayed: true, record });
                }
                _ => {}
            }
            outcomes.push(outcome);
        }
        if !lines.is_empty() {
            let outbox = &mut self.data.outboxes[node];
            if outbox.last().is_some_and(|(flight, _)| *flight >= message.flight) {
                self.take_back(before);
                // Without F15 the existing entry shows what the flight took.
                let completed = || Reply::Issued(self.completed(message, requests.len()));
                return if rules.f15 { Reply::Error } else { completed() };
            }
            outbox.push((message.flight, lines));
        }
        if broken {
            self.take_back(before);
            return Reply::Error;
        }
        self.note(message);
        Reply::Issued(outcomes)
    }

    /// What a failed script wrote is undone, except for its outbox entry.
    fn take_back(&mut self, before: Data) {
        let outboxes = std::mem::take(&mut self.data.outboxes);
        self.data = Data { outboxes, ..before };
    }

    fn lacks_records(&self) -> bool {
        let held = self.data.records.len();
        self.data.owner.as_ref().is_some_and(|owner| usize::from(owner.records) != held)
    }

    /// Writes the idempotency record of what was taken.
    fn remember(&mut self, record: Record) {
        let before = self.data.records.len();
        self.data.records.retain(|other| other.key != record.key);
        let is_new = before == self.data.records.len();
        insert(&mut self.data.records, record);
        if let Some(owner) = &mut self.data.owner {
            owner.records += u8::from(is_new);
        }
    }

    /// What the idempotency record says; `None`: the key is new.
    fn recall(&self, rules: &Rules, epoch: Epoch, request: &PendingRequest) -> Option<Outcome> {
        let record = self.data.records.iter().find(|record| record.key == request.key);
        let lacks = rules.f28 && self.lacks_records();
        let complete = !lacks && self.data.owner.as_ref().is_some_and(|owner| owner.complete);
        match record {
            None if lacks && rules.f28_ends => Some(Outcome::Regressed),
            Some(record) if !rules.f1 => Some(Outcome::Replayed(*record)),
            Some(record) if record.epoch == epoch && self.stands(*record) => {
                let of = if request.differs { Outcome::Numbered } else { Outcome::Replayed };
                Some(of(*record))
            }
            // Trimmed: the journal has it, even if it did not when it was asked.
            Some(record) if record.epoch == epoch && rules.trimmed => Some(Outcome::Ask),
            _ if !rules.f1 || request.asked == Asked::In(epoch) => None,
            None if complete => None,
            _ => Some(Outcome::Ask),
        }
    }

    /// Whether an allocation is in an outbox: its idempotency record holds only where.
    fn stands(&self, record: Record) -> bool {
        let mut lines = self.data.outboxes.iter().flatten().flat_map(|(_, lines)| lines);
        lines.any(|line| line.record == record)
    }

    fn is_cold(&self, rules: &Rules, epoch: Epoch, counter: CounterId) -> bool {
        let counter = self.data.counters[usize::from(counter)];
        counter.is_none_or(|counter| rules.counter_epoch && counter.epoch != epoch)
    }

    fn take(&mut self, rules: &Rules, message: &Message, request: &PendingRequest) -> Outcome {
        let at = usize::from(request.counter);
        if self.is_cold(rules, message.epoch, request.counter) {
            return Outcome::Cold;
        }
        let Some(counter) = &mut self.data.counters[at] else { return Outcome::Cold };
        let written = counter.value != counter.check || counter.value > counter.ceiling;
        if (rules.f3 && written) || counter.value < message.seen[at] {
            return Outcome::Regressed;
        }
        if rules.ceiling && counter.value + 1 > counter.ceiling {
            return Outcome::Ceiling(counter.ceiling);
        }
        counter.value += 1;
        counter.check = counter.value;
        Outcome::Taken(Record {
            value: counter.value,
            key: request.key,
            allocation: request.allocation,
            epoch: message.epoch,
        })
    }

    fn job(&mut self, rules: &Rules, message: &Message, job: Job) {
        let warm = |counter: &&mut Counter| !rules.counter_epoch || counter.epoch == message.epoch;
        let at = usize::from(counter_of(job.value()));
        let counter = self.data.counters[at].as_mut().filter(warm);
        match (job, counter) {
            (Job::Seed { value, ceiling }, None) => {
                let epoch = message.epoch;
                self.data.counters[at] = Some(Counter { epoch, value, check: value, ceiling });
            }
            (Job::Raise { ceiling }, Some(counter)) => {
                counter.ceiling = counter.ceiling.max(ceiling);
            }
            (Job::Seed { .. }, Some(_)) | (Job::Raise { .. }, None) => {}
        }
    }

    /// `settle`: resolves a flight of an epoch that is closing; `None`: this server cannot.
    pub fn settle(&mut self, rules: &Rules, message: &Message) -> Option<Reply> {
        let node = usize::from(message.node);
        let owner = self.data.owner.as_ref()?;
        if !self.present || (rules.f19 && !self.master) || owner.epoch != message.epoch {
            return None;
        }
        let guard = owner.guards[node];
        let last = guard.map_or(0, |guard| guard.flight);
        let count = u8::try_from(self.data.outboxes[node].len()).expect("few entries");
        let miscounted = rules.f7 && guard.is_some_and(|guard| guard.count != count);
        if last > message.flight || miscounted {
            return None;
        }
        if last < message.flight {
            let spent = Guard { flight: message.flight, digest: SPENT, count };
            self.data.owner.as_mut()?.guards[node] = Some(spent);
            return Some(Reply::NotExecuted);
        }
        Some(match &message.body {
            _ if guard.is_some_and(|guard| guard.digest == SPENT) => Reply::NotExecuted,
            Body::Issue(requests) => Reply::Issued(self.completed(message, requests.len())),
            Body::Job(_) => Reply::Done,
        })
    }

    /// `open`: whether this server owns the epoch from now on.
    pub fn open(&mut self, rules: &Rules, opening: &Opening, nodes: usize) -> bool {
        let owner = self.data.owner.as_ref();
        let newer = owner.is_some_and(|owner| owner.epoch >= opening.epoch);
        if !self.master || self.incarnation != opening.incarnation || newer {
            return false;
        }
        // Idempotency records are complete if the same data set ran through the closed epoch.
        let records = u8::try_from(self.data.records.len()).expect("few records");
        let lacks = rules.f28 && self.lacks_records();
        let complete = owner.is_some_and(|owner| {
            owner.complete
                && !lacks
                && owner.epoch + 1 == opening.epoch
                && owner.incarnation == opening.incarnation
        });
        self.data.owner =
            Some(OwnerRecord::new(opening.epoch, opening.incarnation, complete, records, nodes));
        true
    }

    /// `read_outbox`: its records, and whether they are complete.
    #[must_use]
    pub fn outbox(&self, rules: &Rules, dead: NodeId) -> (Vec<Record>, bool) {
        let node = usize::from(dead);
        let outbox = &self.data.outboxes[node];
        let records = outbox.iter().flat_map(|(_, lines)| lines.iter().map(|line| line.record));
        let guard = self.data.owner.as_ref().and_then(|owner| owner.guards[node]);
        let whole = guard.is_none_or(|guard| usize::from(guard.count) == outbox.len());
        (records.collect(), whole || !rules.f7)
    }

    /// `trim`: removes a node's entries up to a flight.
    pub fn trim(&mut self, node: NodeId, upto: u8) {
        let node = usize::from(node);
        let outbox = &mut self.data.outboxes[node];
        let before = outbox.len();
        outbox.retain(|(flight, _)| *flight > upto);
        let removed = u8::try_from(before - outbox.len()).expect("few entries");
        let guard = self.data.owner.as_mut().and_then(|owner| owner.guards[node].as_mut());
        if let Some(guard) = guard {
            guard.count = guard.count.wrapping_sub(removed);
        }
    }
}
