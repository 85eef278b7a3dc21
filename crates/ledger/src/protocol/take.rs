//! The database path: takes numbers and journals them in one transaction, or reserves them.
//!
//! Locks in one order everywhere: counters by name, then names of keys, then families of counters
//! that keep chronology. Where numbers are reserved, a share of the lock of series comes before all
//! of them, and the names of their texts behind. So no name is held during a wait
//! for a counter, and one counter's contention blocks no other. The counter's own row is the fence
//! of its epoch (F4). Earlier attempts and numbers are looked for only once all locks are held:
//! what another transaction wrote under them is visible from then on. Nothing is written then where
//! the partition shows a later epoch: there, a request may have asked under these names and found
//! nothing (F27).
//!
//! A value that came back from a reservation is taken before any new one, the lowest first.
//!
//! A transaction that finds something in the way of its numbers as it writes them is undone, and
//! runs again with a verdict on each row.

mod plan;
mod reserving;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use numerator_runtime::node::NodeId;
use tokio::time::Instant;
use uuid::Uuid;

use crate::calls::CALL;
use crate::counters::table::lock_or_create;
use crate::dialect::Conn;
use crate::nodes::marks;
use crate::protocol::chronology::LastDates;
use crate::protocol::entries::WriteMode;
use crate::protocol::keys::{self, Key};
use crate::protocol::planned::{Planned, Working};
use crate::protocol::seed::{self, Toucher, name};
use crate::protocol::{confirmed_takes, partitions};
use crate::register::lookup;
use crate::reservations::memory;
use crate::reservations::pool::ReturnedValues;
use crate::reservations::sweep::{DueIds, sweep_these};
use crate::reservations::table;
use crate::store::{Store, commit};
use crate::{
    At, CounterSpec, Found, Ledger, LedgerError, Owner, Reservation, TakeOutcome, TakeRequest,
    Taken,
};
use plan::Plan;
use reserving::{Reserving, takes_returned};

/// What orders counters for locking.
type Name = (i64, String, String);

impl Ledger {
    /// The database path: looks for earlier numbers under each order's keys, then takes and
    /// journals the rest, in one transaction. Counters are locked in key order; the counter's own
    /// row is the fence (F4). Safe to repeat with the same allocation ids after an unknown outcome
    /// (F10). Waits at most `lock_wait` for each lock where the engine has locks of rows, and never
    /// longer than [`crate::LedgerSettings::lock_timeout`]; a `LockTimeout` names the counter. An
    /// order of a family takes nothing where a later date has a number. An order with
    /// [`TakeRequest::reserve_us`] is journaled only once its reservation is confirmed.
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
    let toucher = Toucher::new(at, node, store.clock.now_us(), Some(Owner::Database));
    // A row of the journal keeps its own text apart; a reservation is judged against all others.
    let is_reserving = orders.iter().any(|order| order.reserve_us.is_some());
    let write_mode = if is_reserving { WriteMode::Judged } else { WriteMode::Plain };
    let mut progress = Progress { write_mode, is_swept: false };
    loop {
        match attempt(store, &toucher, orders, lock_wait, progress).await {
            Ok(TakeAttempt::Taken(taken)) => return Ok(taken),
            Ok(TakeAttempt::Due(due)) => {
                match sweep_these(store, node, due).await {
                    // Who holds it keeps it: the next attempt says so to the orders concerned.
                    Ok(()) | Err(LedgerError::LockTimeout { .. }) => progress.is_swept = true,
                    Err(error) => return Err(error),
                }
            }
            // Its epoch may be over because the ledger went back: the next one looks at that first.
            Ok(TakeAttempt::Met) | Err(LedgerError::Fenced { .. })
                if progress.write_mode == WriteMode::Plain =>
            {
                progress.write_mode = WriteMode::Judged;
            }
            Ok(TakeAttempt::Met) => {
                return Err(LedgerError::Fault("a judged attempt ends with outcomes".into()));
            }
            Err(error) => return Err(error),
        }
    }
}

/// What an attempt knows of those before it.
#[derive(Clone, Copy)]
struct Progress {
    write_mode: WriteMode,
    /// Whether reservations were swept that were over under the orders' keys.
    is_swept: bool,
}

/// What became of an attempt that did not fail.
enum TakeAttempt {
    /// It is committed.
    Taken(Taken),
    /// A plain one met something in its way; nothing was done.
    Met,
    /// These reservations are over under the orders' keys, and must end first; nothing was done.
    Due(DueIds),
}

/// One transaction.
async fn attempt(
    store: &Store,
    toucher: &Toucher,
    orders: &[TakeRequest],
    lock_wait: Duration,
    progress: Progress,
) -> Result<TakeAttempt, LedgerError> {
    let mut tx = store.begin_with_lock_limit(toucher.node, lock_wait).await?;
    let mut toucher = toucher.clone();
    // Behind the wait for another writer.
    toucher.now_us = store.clock.now_us();
    let Toucher { at, node, now_us, .. } = toucher;
    let series = reserving::keep_series(store, &mut *tx, orders).await?;
    if progress.write_mode == WriteMode::Judged {
        // A number taken from a ledger that went back may have been issued before.
        marks::must_be_remembered(store, &mut *tx, node).await?;
    }
    let started = Instant::now();
    let locked = lock(store, &mut *tx, &mut toucher, orders).await;
    store.meter.count_lock_wait(started.elapsed());
    let (counters, mut dates) = store.last_seen.or_forget(node, locked)?;
    if let Some(unknown) = dates.unknown() {
        // What was looked at for it is not to be looked at again.
        commit(tx).await?;
        return Err(unknown);
    }
    let upto = store.last_seen.takes().noted();
    let (earlier, ended) = earlier(&mut *tx, orders, now_us).await?;
    let own = earlier.values().flat_map(TakeOutcome::reserved);
    memory::must_show_known(store, (Some(node), upto), own)?;
    let questions: Vec<_> = orders.iter().map(|order| order.question.clone()).collect();
    let (found, is_any_reserved) = lookup::answers(&mut *tx, &questions, now_us).await?;
    let due = due_of(store, (node, upto), &found)?;
    if !due.is_empty() && !progress.is_swept {
        return Ok(TakeAttempt::Due(due));
    }
    let reserving = Reserving::of(&mut *tx, orders, series, now_us).await?;

    let mut plan = Plan::new(at, counters, dates, (reserving, is_any_reserved));
    let planned = plan_all(&mut plan, orders, found, (earlier, &ended))?;
    let writing = store.writing(node, now_us);
    let verdicts = match progress.write_mode {
        WriteMode::Plain => plan.write(store, &mut *tx, &writing).await?,
        WriteMode::Judged => {
            seed::must_be_open(&partitions::read(&mut *tx, at.partition).await?, at)?;
            Some(plan.write_judged(&mut *tx, &writing).await?)
        }
    };
    let Some(verdicts) = verdicts else { return Ok(TakeAttempt::Met) };
    commit(tx).await?;
    let plain = plan.remember(store, &verdicts);
    let outcomes: Vec<TakeOutcome> =
        planned.into_iter().map(|planned| plan.outcome(planned, &verdicts)).collect();
    memory::note_taken(store, node, orders, &outcomes, plain)
        .map_err(LedgerError::behind_commit)?;
    Ok(TakeAttempt::Taken(Taken { outcomes }))
}

/// Plans the answer to each order: by what an earlier attempt of it did, by what was found under
/// its keys, else by what it takes.
fn plan_all(
    plan: &mut Plan,
    orders: &[TakeRequest],
    found: Vec<Found>,
    (mut earlier, ended): (HashMap<Uuid, TakeOutcome>, &BTreeSet<Uuid>),
) -> Result<Vec<Planned>, LedgerError> {
    let mut planned = Vec::with_capacity(orders.len());
    for (order, found) in orders.iter().zip(found) {
        planned.push(match earlier.remove(&order.record.allocation_id) {
            Some(outcome) => Planned::Answered(outcome),
            None if found.reserved().any(Reservation::is_due) => {
                Planned::Answered(TakeOutcome::StillHeld)
            }
            None if found != Found::default() => Planned::Answered(TakeOutcome::Found(found)),
            None if ended.contains(&order.record.allocation_id) => {
                plan.order(&reserving::under_another_id(order))?
            }
            None => plan.order(order)?,
        });
    }
    Ok(planned)
}

/// The reservations among what was found that are over or cancelled, by their counters.
///
/// # Errors
/// `WentBack` where one shows less than what is known of it, its value or its document (L12).
fn due_of(
    store: &Store,
    (node, upto): (NodeId, u64),
    found: &[Found],
) -> Result<DueIds, LedgerError> {
    let reserved = || found.iter().flat_map(Found::reserved);
    memory::must_show_known(store, (Some(node), upto), reserved())?;
    let mut due = DueIds::new();
    for reservation in reserved().filter(|reserved| reserved.is_due()) {
        if let Some(taken) = reservation.entry.taken.first() {
            due.entry(taken.counter_id).or_default().insert(reservation.id());
        }
    }
    Ok(due)
}

/// What earlier attempts of orders did: only one that was tried before may have its number, or its
/// reservation (F10). And the reservations of such attempts that have ended.
async fn earlier(
    conn: &mut Conn,
    orders: &[TakeRequest],
    now_us: i64,
) -> Result<(HashMap<Uuid, TakeOutcome>, BTreeSet<Uuid>), LedgerError> {
    let (mut earlier, mut gone) = (HashMap::new(), Vec::new());
    // First: what is journaled meanwhile is found in the journal.
    for order in orders {
        if order.retry_count == 0 || order.reserve_us.is_none() {
            continue;
        }
        let id = order.record.allocation_id;
        match table::by_id(conn, id, now_us).await? {
            // It is issued, although the journal does not have it yet.
            Some(live) if live.is_confirmed() => {
                earlier.insert(id, TakeOutcome::Taken(live.issued()));
            }
            Some(live) if !live.is_due() => {
                earlier.insert(id, TakeOutcome::Reserved(Box::new(live)));
            }
            _ => gone.push(id),
        }
    }
    let tried = orders.iter().filter(|order| order.retry_count > 0);
    let ids: Vec<Uuid> = tried.map(|order| order.record.allocation_id).collect();
    let journaled = lookup::earlier(conn, &ids).await?;
    earlier.extend(journaled.into_iter().map(|(id, entry)| (id, TakeOutcome::Taken(entry))));
    gone.retain(|id| !earlier.contains_key(id));
    Ok((earlier, reserving::ended(conn, &gone).await?))
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
        let wanted = orders.iter().filter(|order| takes_returned(order)).map(|it| &it.specs[0]);
        // Each by its own bounds: they may be of several versions.
        let wanted: Vec<&CounterSpec> = wanted.filter(|it| name(it) == name(spec)).collect();
        let pool = ReturnedValues::of(conn, &counter, &wanted).await?;
        let working = Working { value: counter.taken, counter, pool, reissued: 0 };
        counters.insert((spec.series_id, spec.serial.clone(), spec.key.clone()), working);
    }
    Ok(counters)
}
