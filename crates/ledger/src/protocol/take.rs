//! The database path: takes numbers and journals them in one transaction.
//!
//! Locks in one order everywhere: counters by name, then names of keys, then families of counters
//! that keep chronology. So no name is held during a wait for a counter, and one counter's
//! contention blocks no other. The counter's own row is the fence of its epoch (F4). Earlier
//! attempts and numbers are looked for only once all locks are held: what another transaction wrote
//! under them is visible from then on. Nothing is written then where the partition shows a later
//! epoch: there, a request may have asked under these names and found nothing (F27).
//!
//! A transaction that finds something in the way of its numbers as it writes them is undone, and
//! runs again with a verdict on each row.

use std::collections::{BTreeMap, HashMap, btree_map};
use std::time::Duration;

use numbering::{InputError, PartialNumber, Range, TakenRange, first_values};
use numerator_runtime::node::NodeId;
use tokio::time::Instant;

use crate::batch::{Move, Moves};
use crate::calls::CALL;
use crate::columns::{self, ownership, signed, unsigned};
use crate::counters::table::{self, lock_or_create};
use crate::dialect::Conn;
use crate::last_seen::takes::ConfirmedNumber;
use crate::new_row::NewRow;
use crate::nodes::marks;
use crate::protocol::chronology::LastDates;
use crate::protocol::entries::{self, Verdict, WriteMode};
use crate::protocol::keys::{self, Key, Named};
use crate::protocol::planned::{Planned, Working};
use crate::protocol::seed::{self, Toucher, name};
use crate::protocol::{confirmed_takes, partitions, put_aside};
use crate::register::gaps::{self, Loss};
use crate::register::lookup;
use crate::seal::Writing;
use crate::store::{Store, commit};
use crate::{
    At, CounterSpec, Entry, Found, GapReason, IssuePath, Ledger, LedgerError, Owner, TakeOutcome,
    TakeRequest, Taken, progression,
};

/// What orders counters for locking.
type Name = (i64, String, String);

impl Ledger {
    /// The database path: looks for earlier numbers under each order's keys, then takes and
    /// journals the rest, in one transaction. Counters are locked in key order; the counter's own
    /// row is the fence (F4). Safe to repeat with the same allocation ids after an unknown outcome
    /// (F10). Waits at most `lock_wait` for each lock where the engine has locks of rows, and never
    /// longer than [`crate::LedgerSettings::lock_timeout`]; a `LockTimeout` names the counter. An
    /// order of a family takes nothing where a later date has a number.
    pub async fn take(
        &self,
        at: At,
        node: NodeId,
        orders: &[TakeRequest],
        lock_wait: Duration,
    ) -> Result<Taken, LedgerError> {
        // Not a search, although a first touch may need one: on the database path no other call may
        // be frequent enough to notice a dead peer, and requests wait for it.
        self.call(CALL.named("take"), async |store| take(store, at, node, orders, lock_wait).await)
            .await
    }
}

/// See [`crate::Ledger::take`].
pub(crate) async fn take(
    store: &Store,
    at: At,
    node: NodeId,
    orders: &[TakeRequest],
    lock_wait: Duration,
) -> Result<Taken, LedgerError> {
    if orders.is_empty() {
        return Ok(Taken { outcomes: Vec::new() });
    }
    let now_us = store.clock.now_us();
    let toucher = Toucher::new(at, node, now_us, Some(Owner::Database));
    match attempt(store, &toucher, orders, lock_wait, WriteMode::Plain).await {
        Ok(Some(taken)) => return Ok(taken),
        // Its epoch may be over because the ledger went back: the next one looks at that first.
        Ok(None) | Err(LedgerError::Fenced { .. }) => {}
        Err(error) => return Err(error),
    }
    let judged = attempt(store, &toucher, orders, lock_wait, WriteMode::Judged).await?;
    Ok(judged.expect("an attempt that judges each row ends with outcomes"))
}

/// One transaction; `None`, and nothing done, where a plain one met something in its way.
async fn attempt(
    store: &Store,
    toucher: &Toucher,
    orders: &[TakeRequest],
    lock_wait: Duration,
    write_mode: WriteMode,
) -> Result<Option<Taken>, LedgerError> {
    let mut toucher = toucher.clone();
    let Toucher { at, node, now_us, .. } = toucher;
    let mut tx = store.begin_with_lock_limit(node, lock_wait).await?;
    if write_mode == WriteMode::Judged {
        // A number taken from a ledger that went back may have been issued before.
        marks::must_be_remembered(store, &mut *tx, node).await?;
    }
    let started = Instant::now();
    let locked = lock(store, &mut *tx, &mut toucher, orders).await;
    store.meter.count_lock_wait(started.elapsed());
    if matches!(locked, Err(LedgerError::WentBack(_))) {
        // Even where no mark is missing, the next heartbeat must report the loss.
        store.last_seen.forget(node);
    }
    let (counters, mut dates) = locked?;
    if let Some(unknown) = dates.unknown() {
        // What was looked at for it is not to be looked at again.
        commit(tx).await?;
        return Err(unknown);
    }
    // Only an order that was tried before may have its number.
    let tried = orders.iter().filter(|order| order.retry_count > 0);
    let ids: Vec<_> = tried.map(|order| order.record.allocation_id).collect();
    let mut earlier = lookup::earlier(&mut *tx, &ids).await?;
    let questions: Vec<_> = orders.iter().map(|order| order.question.clone()).collect();
    let found = lookup::answers(&mut *tx, &questions).await?;

    let mut plan = Plan { at, counters, dates, entries: Vec::new(), keys: HashMap::new() };
    let mut planned = Vec::with_capacity(orders.len());
    for (order, found) in orders.iter().zip(found) {
        planned.push(match earlier.remove(&order.record.allocation_id) {
            Some(entry) => Planned::Answered(TakeOutcome::Taken(entry)),
            None if found != Found::default() => Planned::Answered(TakeOutcome::Found(found)),
            None => plan.order(order)?,
        });
    }
    let writing = store.writing(node, now_us);
    let verdicts = match write_mode {
        WriteMode::Plain => plan.write(store, &mut *tx, &writing).await?,
        WriteMode::Judged => {
            seed::must_be_open(&partitions::read(&mut *tx, at.partition).await?, at)?;
            Some(plan.write_judged(&mut *tx, &writing).await?)
        }
    };
    let Some(verdicts) = verdicts else { return Ok(None) };
    commit(tx).await?;
    plan.remember(store, &verdicts);
    let outcomes = planned.into_iter().map(|p| p.outcome(&plan.entries, &verdicts)).collect();
    Ok(Some(Taken { outcomes }))
}

/// Takes every lock of the orders: counters, names of keys, families.
async fn lock(
    store: &Store,
    conn: &mut Conn,
    toucher: &mut Toucher,
    orders: &[TakeRequest],
) -> Result<(BTreeMap<Name, Working>, LastDates), LedgerError> {
    let counters = lock_counters(store, conn, toucher, orders).await?;
    let keys = orders.iter().flat_map(|order| Key::all_of(&order.record));
    conn.lock_names(&keys::lock_names(toucher.at.partition, keys)).await?;
    let dates = LastDates::lock(conn, orders).await?;
    Ok((counters, dates))
}

/// Locks every counter of the orders by name and brings it into this epoch.
///
/// # Errors
/// `WentBack` where a counter is below what was confirmed to this process (F34).
async fn lock_counters(
    store: &Store,
    conn: &mut Conn,
    toucher: &mut Toucher,
    orders: &[TakeRequest],
) -> Result<BTreeMap<Name, Working>, LedgerError> {
    let mut specs: BTreeMap<(i64, &str, &str), &CounterSpec> = BTreeMap::new();
    for spec in orders.iter().flat_map(|order| &order.specs) {
        specs.insert(name(spec), spec);
    }
    let mut locked = Vec::with_capacity(specs.len());
    for spec in specs.into_values() {
        let resolved = lock_or_create(conn, toucher.at, toucher.node, spec, toucher.now_us)
            .await
            .map_err(|error| error.at_counter(spec.name()))?;
        locked.push((spec, resolved.counter));
    }
    confirmed_takes::must_be_reached(store, &locked)?;
    let mut counters = BTreeMap::new();
    for (spec, counter) in locked {
        let counter = if counter.epoch == toucher.at.epoch {
            // In an epoch of the database both are moved together: this one is counted by Redis.
            if counter.ceiling != counter.taken {
                return Err(LedgerError::fenced(toucher.at));
            }
            counter
        } else {
            // No headroom beyond what is taken: the epoch closes without a gap.
            toucher.touch(conn, &counter, &CounterSpec { headroom: 0, ..spec.clone() }).await?
        };
        let working = Working { value: counter.taken, counter };
        counters.insert((spec.series_id, spec.serial.clone(), spec.key.clone()), working);
    }
    Ok(counters)
}

/// What the transaction is going to write.
struct Plan {
    at: At,
    counters: BTreeMap<Name, Working>,
    dates: LastDates,
    entries: Vec<Entry>,
    keys: HashMap<Named, usize>,
}

impl Plan {
    /// Plans one order: the number that an earlier order of the batch took under its keys, or its
    /// own.
    fn order(&mut self, order: &TakeRequest) -> Result<Planned, LedgerError> {
        let question = &order.question;
        let place = |name: Option<Named>| name.and_then(|name| self.keys.get(&name)).copied();
        let by_key = place(Named::caller(question));
        let by_document = place(Named::document(question))
            .filter(|place| question.is_answered_by(&self.entries[*place]));
        if by_key.is_some() || by_document.is_some() {
            return Ok(Planned::Same { by_key, by_document });
        }
        if let Some(last_date) = self.dates.refuse(order).map(str::to_owned) {
            return Ok(Planned::Answered(TakeOutcome::BeforeLast { last_date }));
        }
        let taken = match self.ranges(order)? {
            Ok(taken) => taken,
            Err(refused) => return Ok(Planned::Answered(refused)),
        };
        let partial = PartialNumber::parse(&order.record.mask)
            .map_err(|e| LedgerError::Refused(format!("mask: {e}")))?;
        let number = match partial.fill(&first_values(&taken)) {
            Ok(number) => number,
            Err(InputError::SerialTooWide { serial, .. }) => {
                let serial = u16::try_from(serial).unwrap_or(u16::MAX);
                return Ok(Planned::Answered(TakeOutcome::Exhausted { serial }));
            }
            Err(other) => return Err(LedgerError::Refused(format!("mask: {other}"))),
        };
        // Only now is the order certain to take its values.
        for (spec, taken) in order.specs.iter().zip(&taken) {
            self.working(spec)?.value = signed(taken.range.last, "last")?;
        }
        self.dates.note(order);
        let place = self.entries.len();
        self.keys.extend(Named::all_of(order).map(|name| (name, place)));
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

    /// The values that an order's serials would take; else what keeps one of them from it.
    fn ranges(
        &mut self,
        order: &TakeRequest,
    ) -> Result<Result<Vec<TakenRange>, TakeOutcome>, LedgerError> {
        let record = &order.record;
        if order.count == 0 || order.specs.len() != record.counter_keys.len() {
            let why = "an order takes at least one number, and names each serial's counter";
            return Err(LedgerError::Refused(format!("order: {why}")));
        }
        let mut taken = Vec::with_capacity(order.specs.len());
        let mut ahead: BTreeMap<(i64, &str, &str), i64> = BTreeMap::new();
        for (index, spec) in order.specs.iter().enumerate() {
            let (working, serial) = (self.working(spec)?, u16::try_from(index).unwrap_or(u16::MAX));
            let counter_id = working.counter.counter_id;
            let value = match ahead.entry(name(spec)) {
                btree_map::Entry::Vacant(empty) => empty.insert(working.value),
                btree_map::Entry::Occupied(known) => known.into_mut(),
            };
            let step = columns::step(spec.step)?;
            if value.saturating_add(step) < signed(spec.start, "start")? {
                return Ok(Err(TakeOutcome::Below { serial, counter_id, value: *value }));
            }
            let Some((first, last)) = progression::next(*value, step, order.count, spec.max) else {
                return Ok(Err(TakeOutcome::Exhausted { serial }));
            };
            *value = last;
            let range = Range {
                first: unsigned(first, "first")?,
                last: unsigned(last, "last")?,
                step: spec.step,
            };
            taken.push(TakenRange { counter_id, range });
        }
        Ok(Ok(taken))
    }

    fn working(&mut self, spec: &CounterSpec) -> Result<&mut Working, LedgerError> {
        self.counters
            .get_mut(&(spec.series_id, spec.serial.clone(), spec.key.clone()))
            .ok_or_else(|| LedgerError::fenced(self.at))
    }

    /// Moves the counters and journals the entries, all of them; else `None`, and nothing of this
    /// may be committed.
    async fn write(
        &self,
        store: &Store,
        conn: &mut Conn,
        writing: &Writing,
    ) -> Result<Option<Vec<Verdict>>, LedgerError> {
        if self.entries.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let entries: Vec<&Entry> = self.entries.iter().collect();
        let new_rows = entries::new_rows(&entries)?;
        let verdicts = vec![Verdict::Written; entries.len()];
        let (partition_id, epoch) = ownership(self.at)?;
        let moves = Moves {
            partition_id,
            epoch,
            confirmed: store.last_seen.of(writing.node),
            counters: self.moves(&new_rows, &verdicts)?,
        };
        let (heads, tails): (Vec<_>, Vec<_>) = new_rows.iter().partition(|l| l.head.is_some());
        let mut is_whole = conn.move_and_insert(&moves, &heads, writing).await?;
        if is_whole && !tails.is_empty() {
            is_whole = conn.insert_all(&tails, writing).await?;
        }
        if !is_whole {
            return Ok(None);
        }
        self.dates.write(conn).await?;
        Ok(Some(verdicts))
    }

    /// Journals the entries that can be, and moves their counters. A number that another
    /// allocation has is spent: its values go to the gap register.
    async fn write_judged(
        &self,
        conn: &mut Conn,
        writing: &Writing,
    ) -> Result<Vec<Verdict>, LedgerError> {
        if self.entries.is_empty() {
            return Ok(Vec::new());
        }
        let entries: Vec<&Entry> = self.entries.iter().collect();
        let new_rows = entries::new_rows(&entries)?;
        let mut verdicts = vec![Verdict::Written; entries.len()];
        put_aside::judge(conn, &new_rows, &mut verdicts).await?;
        let judged = entries::write(conn, writing, new_rows, verdicts).await?;
        let collided =
            |row: &&NewRow<'_>| matches!(judged.verdicts[row.entry], Verdict::Collided { .. });
        for row in judged.new_rows.iter().filter(collided) {
            // Only what nothing accounts for: a value in the journal is no gap.
            let loss = Loss {
                counter_id: row.value_range.counter_id,
                after: row.value_range.first - row.step,
                upto: row.value_range.last,
                step: row.step,
                reason: GapReason::Collided,
                epoch: self.at.epoch,
            };
            gaps::register_holes(conn, loss, writing.now_us).await?;
        }
        table::advance(conn, self.at, &self.moves(&judged.new_rows, &judged.verdicts)?).await?;
        self.dates.write(conn).await?;
        Ok(judged.verdicts)
    }

    /// Where each counter goes, and how many values more its rows account for: only those where
    /// count times step says how far they reach.
    fn moves(
        &self,
        new_rows: &[NewRow<'_>],
        verdicts: &[Verdict],
    ) -> Result<Vec<Move>, LedgerError> {
        let mut moves = BTreeMap::new();
        for Working { counter, value } in self.counters.values() {
            if *value != counter.taken {
                let counter_id = counter.counter_id;
                let to = Move { counter_id, value: *value, journaled: 0 };
                moves.insert(counter_id, (to, signed(counter.step, "counter.step")?));
            }
        }
        for row in new_rows.iter().filter(|row| verdicts[row.entry] == Verdict::Written) {
            if let Some((to, step)) = moves.get_mut(&row.value_range.counter_id) {
                to.journaled += if row.step == *step { row.count } else { 0 };
            }
        }
        Ok(moves.into_values().map(|(to, _)| to).collect())
    }

    /// Notes what was committed: a ledger that shows less from now on has gone back.
    fn remember(&self, store: &Store, verdicts: &[Verdict]) {
        let mut written = self.entries.iter().zip(verdicts).rev();
        let Some((last, _)) = written.find(|(_, v)| **v == Verdict::Written) else { return };
        let values = self.counters.iter().map(|(name, working)| (name.clone(), working.value));
        store.last_seen.takes().note(self.at.partition, values, ConfirmedNumber::of(last));
    }
}
