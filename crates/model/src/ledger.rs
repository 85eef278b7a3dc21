//! The ledger: each function is one transaction. What depends on an epoch is fenced by the row that
//! it changes; never reads what another transaction may change meanwhile.

use crate::rules::Rules;
use crate::scenario::Scenario;
use crate::state::{
    COUNTERS, CounterId, Epoch, History, Key, NodeId, Owner, Record, SPAN, Value, counter_of,
    insert,
};

/// State of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Numbers are taken.
    Open,
    /// The epoch before is being closed.
    Recovering,
    /// `open` may have been sent.
    Opening,
}

/// What is known of a participant of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// It may have sent flights in it.
    Joined,
    /// It is done with it.
    Acknowledged,
    /// Its outbox was whole and is journaled.
    Adopted,
}

/// How an epoch was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Closing {
    /// Not yet.
    Not,
    /// The counter continues from `taken`.
    Exact,
    /// The counter continues above its ceiling.
    Ceiling,
}

/// The counter's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CounterRow {
    /// The epoch that touched it last.
    pub epoch: Epoch,
    /// Where it started in it.
    pub start: Value,
    /// The highest value that the journal has.
    pub taken: Value,
    /// Redis takes nothing above this.
    pub ceiling: Value,
    /// Which node seeded it.
    pub seeder: NodeId,
    /// The seeder knows that Redis has the seed.
    pub reported: bool,
}

/// The answer to a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seeding {
    /// Seeded now: value and ceiling for Redis.
    Seeded(Value, Value),
    /// Seeded in this epoch before.
    Already(CounterRow),
    /// The epoch is over.
    Fenced,
}

/// The SQL database.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ledger {
    /// The partition's epoch.
    pub epoch: Epoch,
    /// Its state.
    pub stage: Stage,
    /// The owner of the epoch that is open or opening, or of the one being closed.
    pub owner: Owner,
    /// The epoch that is being closed, or the one that is open.
    pub owned: Epoch,
    /// The last epoch closed at the ceiling.
    pub last_ceiling: Epoch,
    /// How each epoch was closed, from epoch 1.
    pub closings: Vec<Closing>,
    /// The owners of the epochs that were claimed, from epoch 1.
    pub owners: Vec<Owner>,
    /// Which node took part in which epoch.
    pub participants: Vec<(Epoch, NodeId, Part)>,
    /// The counters.
    pub counters: [CounterRow; COUNTERS],
    /// Journaled numbers, in order.
    pub journal: Vec<Record>,
    /// Values that were never handed out, one bit each.
    pub discarded: u64,
    /// Values of unknown fate, one bit each.
    pub unaccounted: u64,
    /// Whether it went back.
    pub went_back: bool,
}

fn bit(value: Value) -> u64 {
    1 << value
}

impl Ledger {
    /// Epoch 1 is open.
    #[must_use]
    pub fn first(scenario: &Scenario) -> Self {
        let headroom = if scenario.warm && !scenario.on_database { scenario.headroom } else { 0 };
        let row = |start| CounterRow {
            epoch: u8::from(scenario.warm),
            start,
            taken: start,
            ceiling: start + headroom,
            seeder: 0,
            reported: scenario.warm,
        };
        Self {
            epoch: 1,
            stage: Stage::Open,
            owner: scenario.owner(),
            owned: 1,
            last_ceiling: 0,
            closings: vec![Closing::Not],
            owners: vec![scenario.owner()],
            participants: Vec::new(),
            counters: [0, SPAN].map(row),
            journal: Vec::new(),
            discarded: 0,
            unaccounted: 0,
            went_back: false,
        }
    }

    /// How an epoch was closed.
    #[must_use]
    pub fn closing(&self, epoch: Epoch) -> Closing {
        self.closings.get(usize::from(epoch) - 1).copied().unwrap_or(Closing::Not)
    }

    /// Whether an epoch in which numbers are taken is open.
    #[must_use]
    pub fn is_open(&self, epoch: Epoch) -> bool {
        self.stage == Stage::Open && self.epoch == epoch
    }

    /// Enters a participant.
    pub fn join(&mut self, epoch: Epoch, node: NodeId) {
        let known = self.participants.iter().any(|part| (part.0, part.1) == (epoch, node));
        if !known {
            insert(&mut self.participants, (epoch, node, Part::Joined));
        }
    }

    /// Marks a participant of an epoch, if it has joined it.
    pub fn mark(&mut self, epoch: Epoch, node: NodeId, part: Part) {
        for (of, who, state) in &mut self.participants {
            if (*of, *who, *state) == (epoch, node, Part::Joined) {
                *state = part;
            }
        }
    }

    /// Participants of the epoch that is being closed that are not accounted for.
    pub fn joined(&self) -> impl Iterator<Item = NodeId> + '_ {
        let parts = self.participants.iter();
        parts.filter(|part| part.0 == self.owned && part.2 == Part::Joined).map(|part| part.1)
    }

    /// Closes the epoch and claims the opening of the next.
    pub fn claim(&mut self, closing: Closing, owner: Owner) {
        self.closings[usize::from(self.epoch) - 2] = closing;
        if closing == Closing::Ceiling {
            self.last_ceiling = self.epoch - 1;
        }
        self.owner = owner;
        self.owned = self.epoch;
        self.closings.push(Closing::Not);
        self.owners.push(owner);
        self.stage = if owner == Owner::Database { Stage::Open } else { Stage::Opening };
    }

    /// Begins the next epoch. The one before is closed from here on.
    pub fn bump(&mut self) {
        self.epoch += 1;
        self.stage = Stage::Recovering;
    }

    /// Journals what was handed out, in any epoch.
    pub fn journal(&mut self, record: Record, history: &mut History) {
        let other = self.journal.iter().find(|other| other.value == record.value);
        if let Some(other) = other {
            history.conflict |= other.allocation != record.allocation;
            return;
        }
        insert(&mut self.journal, record);
        self.unaccounted &= !bit(record.value);
        let row = &mut self.counters[usize::from(counter_of(record.value))];
        if record.epoch >= row.epoch {
            row.taken = row.taken.max(record.value);
            row.ceiling = row.ceiling.max(row.taken);
        }
    }

    /// The latest number of a key.
    #[must_use]
    pub fn find(&self, key: Key) -> Option<Record> {
        self.journal.iter().rev().find(|record| record.key == key).copied()
    }

    /// Whether a value is in the journal.
    #[must_use]
    pub fn has(&self, value: Value) -> bool {
        self.journal.iter().any(|record| record.value == value)
    }

    /// The first touch of the counter in an epoch: where it continues, and what was lost.
    pub fn seed(
        &mut self,
        rules: &Rules,
        history: &mut History,
        node: NodeId,
        epoch: Epoch,
        counter: CounterId,
        headroom: u8,
    ) -> Seeding {
        let row = self.counters[usize::from(counter)];
        if !self.is_open(epoch) || row.epoch > epoch {
            return Seeding::Fenced;
        }
        if row.epoch == epoch {
            return Seeding::Already(row);
        }
        let own = row.epoch > 0 && self.closing(row.epoch) == Closing::Ceiling;
        let closed_at_ceiling = match (rules.last_ceiling, rules.f32) {
            (true, true) => own,
            (true, false) => row.epoch <= self.last_ceiling,
            (false, _) => self.last_ceiling + 1 == epoch,
        };
        let base = if closed_at_ceiling { row.ceiling } else { row.taken };
        let after = match (rules.f17, closed_at_ceiling) {
            (true, _) => row.start,
            (false, true) => row.taken,
            (false, false) => base,
        };
        for value in after + 1..=base {
            if !self.has(value) {
                history.false_gap |= closed_at_ceiling && !own;
                let gap =
                    if closed_at_ceiling { &mut self.unaccounted } else { &mut self.discarded };
                *gap |= bit(value);
            }
        }
        self.counters[usize::from(counter)] = CounterRow {
            epoch,
            start: base,
            taken: base,
            ceiling: base + headroom,
            seeder: node,
            reported: false,
        };
        insert(&mut history.starts, (epoch, base));
        Seeding::Seeded(base, base + headroom)
    }

    /// Raises the ceiling, once per `seen`; `None`: the counter has left the epoch.
    pub fn raise(
        &mut self,
        fenced: bool,
        epoch: Epoch,
        seen: Value,
        headroom: u8,
    ) -> Option<Value> {
        let row = &mut self.counters[usize::from(counter_of(seen))];
        if fenced && row.epoch != epoch {
            return None;
        }
        if row.ceiling <= seen || !fenced {
            // Without the fence the value is the one that was meant for the epoch's own row.
            row.ceiling = seen + headroom;
        }
        Some(row.ceiling)
    }

    /// Takes a value on the database path; `None`: the epoch is over.
    pub fn take(
        &mut self,
        rules: &Rules,
        history: &mut History,
        node: NodeId,
        epoch: Epoch,
        counter: CounterId,
    ) -> Option<Value> {
        let fenced = rules.f4;
        let place = usize::from(counter);
        if fenced && self.counters[place].epoch != epoch {
            match self.seed(rules, history, node, epoch, counter, 0) {
                Seeding::Seeded(..) => {}
                Seeding::Already(_) | Seeding::Fenced => return None,
            }
        }
        let row = &mut self.counters[place];
        row.taken += 1;
        row.ceiling = row.ceiling.max(row.taken);
        Some(row.taken)
    }

    /// Whether a value is registered as never handed out.
    #[must_use]
    pub fn denies(&self, value: Value) -> bool {
        self.discarded & bit(value) != 0
    }

    /// Whether a value is registered at all.
    #[must_use]
    pub fn registers(&self, value: Value) -> bool {
        (self.discarded | self.unaccounted) & bit(value) != 0
    }
}
