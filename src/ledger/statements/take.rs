//! The database path: takes numbers and journals them in one transaction.
//!
//! Locks in one order everywhere: counters by name, then names of keys, then families of counters
//! that keep chronology. So nobody holds a name
//! while it waits for a counter, and one counter's contention blocks no other (R6.1). The counter's
//! own row is the fence of its epoch (F4). Earlier attempts and earlier numbers are looked for only
//! once all locks are held: what another transaction wrote under them is visible from then on.

use std::collections::{BTreeMap, HashMap, btree_map};
use std::time::Duration;

use tokio::time::Instant;

use super::chronology::LastDates;
use super::counters::lock_or_create;
use super::entries::{self, Verdict};
use super::gaps::{self, Loss};
use super::seed::{Toucher, fenced, name};
use super::{Conn, Store, bulk, commit, lookup, nodes, partitions};
use crate::ledger::columns::{self, hash64, signed, unsigned};
use crate::ledger::{
    At, Counter, Entry, Found, GapReason, IssuePath, LedgerError, Owner, Seed, TakeOrder,
    TakeOutcome, Taken, grid,
};
use crate::node::NodeId;
use crate::number::{InputError, Mask, Range, TakenRange, first_values};

/// What orders counters for locking.
type Name = (i64, String, String);

/// See [`crate::ledger::Ledger::take`].
pub(super) async fn take(
    store: &Store,
    at: At,
    node: NodeId,
    orders: &[TakeOrder],
    lock_wait: Duration,
) -> Result<Taken, LedgerError> {
    if orders.is_empty() {
        return Ok(Taken { outcomes: Vec::new() });
    }
    let now_us = store.clock.now_us();
    let mut tx = store.begin_impatient(lock_wait).await?;
    // A number taken from a ledger that went back may have been issued before.
    nodes::must_be_remembered(store, &mut tx, node).await?;
    let toucher = Toucher { at, node, now_us, owner: Some(Owner::Database) };
    let started = Instant::now();
    let locked = lock(&mut tx, &toucher, orders).await;
    store.meter.count_lock_wait(started.elapsed());
    let (counters, dates) = locked?;
    let ids: Vec<_> = orders.iter().map(|order| order.record.allocation_id).collect();
    let mut earlier = lookup::earlier(&mut tx, &ids).await?;
    let questions: Vec<_> = orders.iter().map(|order| order.question.clone()).collect();
    let found = lookup::answers(&mut tx, &questions).await?;

    let mut plan = Plan { at, counters, dates, entries: Vec::new(), keys: HashMap::new() };
    let mut planned = Vec::with_capacity(orders.len());
    for (order, found) in orders.iter().zip(found) {
        planned.push(match earlier.remove(&order.record.allocation_id) {
            Some(entry) => Planned::Answered(TakeOutcome::Taken(entry)),
            None if found != Found::default() => Planned::Answered(TakeOutcome::Found(found)),
            None => plan.order(order)?,
        });
    }
    let verdicts = plan.write(&mut tx, node, now_us).await?;
    commit(tx).await?;
    let outcomes = planned.into_iter().map(|p| p.outcome(&plan.entries, &verdicts)).collect();
    Ok(Taken { outcomes })
}

/// Takes every lock of the orders: counters, names of keys, families.
async fn lock(
    conn: &mut Conn,
    toucher: &Toucher,
    orders: &[TakeOrder],
) -> Result<(BTreeMap<Name, Working>, LastDates), LedgerError> {
    let counters = lock_counters(conn, toucher, orders).await?;
    bulk::lock_names(conn, &lock_names(toucher.at.partition, orders)).await?;
    let dates = LastDates::lock(conn, orders).await?;
    Ok((counters, dates))
}

/// Locks of one partition: a database has room for some thousands of locks in all, so names share
/// them.
const LOCKS_PER_PARTITION: u64 = 64;

/// Names of everything that may be numbered only once, hashed, in rising order.
fn lock_names(partition: u32, orders: &[TakeOrder]) -> Vec<i64> {
    let mut names: Vec<i64> = Vec::with_capacity(orders.len());
    for order in orders {
        for key in Key::all_of(order) {
            // An equal lock of two names only makes them wait for each other.
            let lock = hash64(&format!("{key:?}")) % LOCKS_PER_PARTITION;
            let name = hash64(&format!("numerator partition {partition} lock {lock}"));
            names.push(i64::from_be_bytes(name.to_be_bytes()));
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// Locks every counter of the orders by name and brings it into this epoch.
async fn lock_counters(
    conn: &mut Conn,
    toucher: &Toucher,
    orders: &[TakeOrder],
) -> Result<BTreeMap<Name, Working>, LedgerError> {
    let mut seeds: BTreeMap<(i64, &str, &str), &Seed> = BTreeMap::new();
    for seed in orders.iter().flat_map(|order| &order.serials) {
        seeds.insert(name(seed), seed);
    }
    let mut locked = Vec::with_capacity(seeds.len());
    for seed in seeds.into_values() {
        let resolved = lock_or_create(conn, toucher.at, toucher.node, seed, toucher.now_us)
            .await
            .map_err(|error| error.at_counter(seed.name()))?;
        locked.push((seed, resolved.counter));
    }
    let mut counters = BTreeMap::new();
    for (seed, counter) in locked {
        let counter = if counter.epoch == toucher.at.epoch {
            // In an epoch of the database both are moved together: this one is counted by Redis.
            if counter.ceiling != counter.taken {
                return Err(fenced(toucher.at));
            }
            counter
        } else {
            // No room beyond what is taken: the epoch closes without a gap.
            toucher.touch(conn, &counter, &Seed { room: 0, ..seed.clone() }).await?
        };
        let working = Working { value: counter.taken, journaled: 0, counter };
        counters.insert((seed.series_id, seed.serial.clone(), seed.key.clone()), working);
    }
    Ok(counters)
}

/// A locked counter and what this transaction takes from it.
struct Working {
    counter: Counter,
    value: i64,
    journaled: i64,
}

/// A key under which a document or a caller is numbered once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Caller { series_id: i64, user_id: String, key: String },
    Document { series_id: i64, document_id: String },
}

impl Key {
    fn caller(series_id: i64, user_id: &str, key: Option<&String>) -> Option<Self> {
        let key = key?.clone();
        Some(Key::Caller { series_id, user_id: user_id.to_owned(), key })
    }

    fn document(series_id: i64, document_id: Option<&String>) -> Option<Self> {
        Some(Key::Document { series_id, document_id: document_id?.clone() })
    }

    /// The keys that an order's number will stand under.
    fn all_of(order: &TakeOrder) -> impl Iterator<Item = Key> {
        let record = &order.record;
        let caller =
            Key::caller(record.series_id, &record.user_id, record.idempotency_key.as_ref());
        caller.into_iter().chain(Key::document(record.series_id, record.document_id.as_ref()))
    }
}

/// What an order will be answered, before it is known which rows the ledger takes.
enum Planned {
    /// Decided.
    Answered(TakeOutcome),
    /// The entry at this place of the plan.
    Entry(usize),
    /// An earlier order of this batch has these keys already.
    Same { by_key: Option<usize>, by_document: Option<usize> },
}

impl Planned {
    fn outcome(self, entries: &[Entry], verdicts: &[Verdict]) -> TakeOutcome {
        let collided = |place: usize| matches!(verdicts[place], Verdict::Collided { .. });
        let lost = |place: usize| TakeOutcome::Collided { number: entries[place].number.clone() };
        match self {
            Planned::Answered(outcome) => outcome,
            Planned::Entry(place) if collided(place) => lost(place),
            Planned::Entry(place) => TakeOutcome::Taken(entries[place].clone()),
            Planned::Same { by_key, by_document } => {
                match by_key.into_iter().chain(by_document).find(|place| collided(*place)) {
                    Some(place) => lost(place),
                    None => TakeOutcome::Found(Found {
                        by_key: by_key.map(|place| entries[place].clone()),
                        by_document: by_document.map(|place| entries[place].clone()),
                    }),
                }
            }
        }
    }
}

/// What the transaction is going to write.
struct Plan {
    at: At,
    counters: BTreeMap<Name, Working>,
    dates: LastDates,
    entries: Vec<Entry>,
    keys: HashMap<Key, usize>,
}

impl Plan {
    /// Plans one order: the number that an earlier order of the batch took under its keys, or its
    /// own.
    fn order(&mut self, order: &TakeOrder) -> Result<Planned, LedgerError> {
        let question = &order.question;
        let place = |key: Option<Key>| key.and_then(|key| self.keys.get(&key)).copied();
        let caller = question.idempotency_key.as_ref();
        let by_key = place(Key::caller(question.series_id, &question.user_id, caller));
        let by_document = place(Key::document(question.series_id, question.document_id.as_ref()))
            .filter(|place| question.is_answered_by(&self.entries[*place]));
        if by_key.is_some() || by_document.is_some() {
            return Ok(Planned::Same { by_key, by_document });
        }
        if let Some(last_date) = self.dates.refuse(order).map(str::to_owned) {
            return Ok(Planned::Answered(TakeOutcome::BeforeLast { last_date }));
        }
        let taken = match self.ranges(order)? {
            Ok(taken) => taken,
            Err(serial) => return Ok(Planned::Answered(TakeOutcome::Exhausted { serial })),
        };
        let mask = Mask::parse(&order.record.mask)
            .map_err(|e| LedgerError::Refused(format!("mask: {e}")))?;
        let number = match mask.fill(&first_values(&taken)) {
            Ok(number) => number,
            Err(InputError::SerialTooWide { serial, .. }) => {
                let serial = u16::try_from(serial).unwrap_or(u16::MAX);
                return Ok(Planned::Answered(TakeOutcome::Exhausted { serial }));
            }
            Err(other) => return Err(LedgerError::Refused(format!("mask: {other}"))),
        };
        // Only now is the order certain to take its values.
        for (seed, taken) in order.serials.iter().zip(&taken) {
            self.working(seed)?.value = signed(taken.range.last, "last")?;
        }
        self.dates.note(order);
        let place = self.entries.len();
        self.keys.extend(Key::all_of(order).map(|key| (key, place)));
        self.entries.push(Entry {
            record: order.record.clone(),
            taken,
            number,
            at: self.at,
            retry_count: order.retry_count,
            path: IssuePath::Database,
        });
        Ok(Planned::Entry(place))
    }

    /// The values that an order's serials would take; else the serial that is past its last one.
    fn ranges(&mut self, order: &TakeOrder) -> Result<Result<Vec<TakenRange>, u16>, LedgerError> {
        let record = &order.record;
        if order.count == 0 || order.serials.len() != record.counter_keys.len() {
            let why = "an order takes at least one number, and names each serial's counter";
            return Err(LedgerError::Refused(format!("order: {why}")));
        }
        let mut taken = Vec::with_capacity(order.serials.len());
        let mut ahead: BTreeMap<(i64, &str, &str), i64> = BTreeMap::new();
        for (index, seed) in order.serials.iter().enumerate() {
            let working = self.working(seed)?;
            let value = match ahead.entry(name(seed)) {
                btree_map::Entry::Vacant(empty) => empty.insert(working.value),
                btree_map::Entry::Occupied(known) => known.into_mut(),
            };
            let step = columns::step(seed.step)?;
            let Some((first, last)) = grid::next(*value, step, order.count, seed.max) else {
                return Ok(Err(u16::try_from(index).unwrap_or(u16::MAX)));
            };
            *value = last;
            let range = Range {
                first: unsigned(first, "first")?,
                last: unsigned(last, "last")?,
                step: seed.step,
            };
            taken.push(TakenRange { counter_id: working.counter.counter_id, range });
        }
        Ok(Ok(taken))
    }

    fn working(&mut self, seed: &Seed) -> Result<&mut Working, LedgerError> {
        let name = (seed.series_id, seed.serial.clone(), seed.key.clone());
        self.counters.get_mut(&name).ok_or_else(|| fenced(self.at))
    }

    /// Journals the entries and moves their counters. A number that another allocation has is
    /// spent: its values go to the gap register.
    async fn write(
        &mut self,
        conn: &mut Conn,
        node: NodeId,
        now_us: i64,
    ) -> Result<Vec<Verdict>, LedgerError> {
        if self.entries.is_empty() {
            return Ok(Vec::new());
        }
        let entries: Vec<&Entry> = self.entries.iter().collect();
        let lines = entries::lines(&entries)?;
        let judged = entries::write(conn, node, now_us, lines, entries.len()).await?;
        for line in &judged.lines {
            let verdict = &judged.verdicts[line.entry];
            if matches!(verdict, Verdict::Collided { .. }) {
                // Only what nobody accounts for: a value that stands in the journal is no gap.
                let loss = Loss {
                    counter_id: line.extent.counter_id,
                    after: line.extent.first - line.step,
                    upto: line.extent.last,
                    step: line.step,
                    reason: GapReason::Collided,
                    epoch: self.at.epoch,
                };
                gaps::register_holes(conn, loss, now_us).await?;
                continue;
            }
            let id = line.extent.counter_id;
            let owner = self.counters.values_mut().find(|c| c.counter.counter_id == id);
            if let Some(working) = owner {
                let step = signed(working.counter.step, "counter.step")?;
                working.journaled += if line.step == step { line.count } else { 0 };
            }
        }
        let verdicts = judged.verdicts;
        self.advance(conn).await?;
        self.dates.write(conn).await?;
        Ok(verdicts)
    }

    async fn advance(&self, conn: &mut Conn) -> Result<(), LedgerError> {
        let (partition, epoch) = partitions::columns(self.at)?;
        for working in self.counters.values().filter(|c| c.value != c.counter.taken) {
            let moved = sqlx::query(
                "update counter set taken = $4, ceiling = $4, journaled = journaled + $5 \
                 where counter_id = $1 and partition_id = $2 and epoch = $3",
            )
            .bind(working.counter.counter_id)
            .bind(partition)
            .bind(epoch)
            .bind(working.value)
            .bind(working.journaled)
            .execute(&mut *conn)
            .await?;
            if moved.rows_affected() == 0 {
                return Err(fenced(self.at));
            }
        }
        Ok(())
    }
}
