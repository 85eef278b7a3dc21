//! The end of blocks: one is handed back, by its holder, with the numbers that were used, or given
//! up, and all of it spent. Never ends one by time (L13), and changes no row of one: it is removed
//! in the transaction that says what became of each value (L5).
//!
//! Locks as a take does: the counter, the block's row, then the names of documents.

mod issued;
mod used;

use std::collections::BTreeSet;
use std::iter;

use numerator_runtime::node::NodeId;
use uuid::Uuid;

use crate::calls::CALL;
use crate::counters::table::lock_all;
use crate::dialect::Conn;
use crate::last_seen::takes::ConfirmedNumber;
use crate::last_seen::takes::known::Sighting;
use crate::nodes::marks;
use crate::protocol::entries::WriteMode;
use crate::protocol::journaling::{self, EntrySource};
use crate::protocol::keys::{self, Key};
use crate::protocol::{confirmed_takes, partitions};
use crate::register::gaps;
use crate::register::new_gaps::{NewGap, register_all};
use crate::reservations::ending::{self, Leaving, leave, left_behind, merged};
use crate::reservations::sweep::{UnlessDue, past_due};
use crate::reservations::table::{self, Kept};
use crate::reservations::{block_texts, memory, standing};
use crate::store::{Store, commit};
use crate::{
    ActOutcome, Acted, BlockOutcome, Counter, EndedReservation, Entry, GapReason, HandBack,
    HandedBack, LedgerError, PartitionState, Reservation, ReservationAct, ReservationEnd,
    ReservationStanding, Reservations,
};
use used::{Documents, UsedValues};

/// How often reservations that are over end for one hand-back: those of its documents, at once.
const ENDED_MAX: usize = 1;

impl Reservations<'_> {
    /// Ends a block: the numbers that were used are journaled, each for its document, and all
    /// others come back, or are spent where the series keeps the order of dates or its counter was
    /// moved up meanwhile. All of it is one transaction. Safe to repeat: the same request finds
    /// what it did. The numbers, also those that were found, may be told to callers once this has
    /// returned, and only while the node may still hand out.
    ///
    /// # Errors
    /// `LockTimeout` where a counter is held, or a reservation of one of the documents is over and
    /// held by its caller's transaction: worth a retry. After `Unreachable` with `maybe_written` it
    /// may be done: a repeated call says so. `WentBack` where the block, its counter or one of the
    /// documents shows less than what is known of it (L12): no retry helps before the processes
    /// have agreed on a ledger.
    pub async fn hand_back(
        self,
        node: NodeId,
        order: &HandBack,
    ) -> Result<BlockOutcome, LedgerError> {
        self.call(CALL, async |store| hand_back(store, node, order).await).await
    }

    /// Ends a block whose holder does not say what was used: all of it is spent. Safe to repeat.
    ///
    /// # Errors
    /// As [`Reservations::hand_back`].
    pub async fn cancel_block(
        self,
        node: NodeId,
        id: Uuid,
        (reason, by): (&str, &str),
    ) -> Result<Acted, LedgerError> {
        self.call(CALL, async |store| cancel(store, node, id, (reason, by)).await).await
    }
}

/// A live block; its counter and its row are locked.
struct Locked {
    kept: Kept,
    counter: Counter,
}

/// What locking a block found.
enum LockedBlock {
    Block(Box<Locked>),
    Held,
    None,
}

/// Locks a block, and compares it with what is known of its values.
async fn lock(
    store: &Store,
    conn: &mut Conn,
    (node, id): (NodeId, Uuid),
) -> Result<LockedBlock, LedgerError> {
    let seen = table::by_id(conn, id, store.clock.now_us()).await?;
    let Some(seen) = seen.filter(Reservation::is_block) else { return Ok(LockedBlock::None) };
    let counters: Vec<i64> = seen.entry.taken.iter().map(|taken| taken.counter_id).collect();
    let locked = lock_all(conn, &counters).await?;
    let Some(counter) = locked.into_iter().next() else { return Ok(LockedBlock::None) };
    // Nothing ends while nobody knows what the ledger has forgotten (L8).
    let partition = partitions::read(conn, counter.partition).await?;
    if partition.state == PartitionState::Held {
        return Ok(LockedBlock::Held);
    }
    marks::must_be_remembered(store, conn, node).await?;
    confirmed_takes::must_be_as_confirmed(store, &counter)?;
    // Behind the wait for another one that ends it.
    let Some(kept) = table::lock(conn, id, store.clock.now_us()).await? else {
        return Ok(LockedBlock::None);
    };
    memory::locked_must_show_known(store, node, [&kept.reservation])?;
    Ok(LockedBlock::Block(Box::new(Locked { kept, counter })))
}

/// See [`crate::Reservations::hand_back`].
async fn hand_back(
    store: &Store,
    node: NodeId,
    order: &HandBack,
) -> Result<BlockOutcome, LedgerError> {
    past_due(store, node, ENDED_MAX, || attempt(store, node, order)).await
}

/// One transaction; what it does not commit is rolled back.
async fn attempt(
    store: &Store,
    node: NodeId,
    order: &HandBack,
) -> Result<UnlessDue<BlockOutcome>, LedgerError> {
    let answered = |outcome| Ok(Ok(outcome));
    let mut tx = store.begin_as(node).await?;
    let locked = lock(store, &mut *tx, (node, order.id)).await;
    let Locked { kept, counter } = match store.last_seen.or_forget(node, locked)? {
        LockedBlock::Block(locked) => *locked,
        LockedBlock::Held => return answered(BlockOutcome::Held),
        LockedBlock::None => {
            let found = standing(&mut *tx, order.id, store.clock.now_us()).await?;
            return answered(unchanged(store, &mut *tx, (node, order), found).await?);
        }
    };
    let used = match UsedValues::of(&kept.reservation, &order.used)? {
        Ok(used) => used,
        Err((place, flaw)) => return answered(BlockOutcome::Flawed { place, flaw }),
    };
    let series_id = kept.reservation.entry.record.series_id;
    let documents = order.used.iter().map(|used| used.document_id.clone());
    let names = documents.map(|document_id| Key::Document { series_id, document_id });
    tx.lock_names(&keys::lock_names(counter.partition, names)).await?;
    let now_us = store.clock.now_us();
    match used::documents(&mut *tx, &kept.reservation, order, now_us).await? {
        Documents::Free => {}
        Documents::Flawed(place, flaw) => {
            return answered(BlockOutcome::Flawed { place, flaw });
        }
        Documents::Due(due) => return Ok(Err(due)),
    }
    let now_us = tx.server_now_us().await?.unwrap_or(now_us);
    let entries = issued::entries_of(&kept.reservation, &used, now_us)?;
    let mut seen: Vec<Sighting> = issued::seen_of(&entries, &counter).collect();
    for new in &seen {
        memory::new_number_must_miss_nothing(store, node, new)?;
    }
    seen.extend(ended_in_memory(&kept.reservation));
    remove(&mut *tx, &kept).await?;
    if let Some(collided) = journal(store, &mut *tx, &entries, node).await? {
        return answered(used.flawed(&entries[collided]));
    }
    let ended = return_rest(&mut *tx, &kept, (order, &used), now_us).await?;
    commit(tx).await?;
    let last = entries.last().map(ConfirmedNumber::of);
    store.last_seen.takes().note(counter.partition, iter::empty(), last);
    memory::note(store, Some(node), &seen).map_err(LedgerError::behind_commit)?;
    answered(BlockOutcome::Done { ended, entries })
}

/// The answer where no live block has the id. Numbers that the same request issued are found and
/// noted: the process that issued them may keep none (L9).
///
/// # Errors
/// See [`memory::note`].
async fn unchanged(
    store: &Store,
    conn: &mut Conn,
    (node, order): (NodeId, &HandBack),
    found: ReservationStanding,
) -> Result<BlockOutcome, LedgerError> {
    match found {
        ReservationStanding::Ended(ended) if is_same(&ended, order) => {
            let entries = issued::found(conn, order).await?;
            let seen: Vec<_> = entries.iter().filter_map(Sighting::confirmed).collect();
            memory::note(store, Some(node), &seen)?;
            Ok(BlockOutcome::Repeated { ended, entries })
        }
        other => Ok(BlockOutcome::Refused(other)),
    }
}

/// Whether a block ended by the same request.
fn is_same(ended: &EndedReservation, order: &HandBack) -> bool {
    ended.handed_back.as_ref().is_some_and(|earlier| earlier.digest == order.digest())
}

/// What this process notes of a block that ends (L12).
fn ended_in_memory(block: &Reservation) -> Option<Sighting> {
    Sighting::of(block).map(Sighting::ended)
}

/// Removes the row of a locked block, and with it its texts.
async fn remove(conn: &mut Conn, kept: &Kept) -> Result<(), LedgerError> {
    match table::remove(conn, vec![kept.id.clone()]).await? {
        1 => Ok(()),
        _ => Err(LedgerError::Conflict("a locked block was removed".into())),
    }
}

/// Journals the numbers that were used; the place of the first that another allocation has, if any:
/// then nothing may be committed.
async fn journal(
    store: &Store,
    conn: &mut Conn,
    entries: &[Entry],
    node: NodeId,
) -> Result<Option<usize>, LedgerError> {
    let all: Vec<&Entry> = entries.iter().collect();
    let writing = store.writing(node, store.clock.now_us());
    let mode = (EntrySource::Issuer, WriteMode::Judged);
    let appended = journaling::journal(conn, &writing, &all, mode).await?;
    let Some(collided) = appended.collisions.first() else { return Ok(None) };
    Ok(entries.iter().position(|entry| entry.record.allocation_id == *collided))
}

/// Enters the values that were not used into the gap register, and notes for good what became of
/// the block.
async fn return_rest(
    conn: &mut Conn,
    kept: &Kept,
    (order, used): (&HandBack, &UsedValues<'_>),
    now_us: i64,
) -> Result<EndedReservation, LedgerError> {
    let block = &kept.reservation;
    let values = block_texts::values_of(&block.entry)?;
    let whole = Leaving {
        reservation: block,
        end: ReservationEnd::HandedBack,
        reason: GapReason::Cancelled,
        handed_back: None,
    };
    let whole = whole.gap()?;
    let left_behind = left_behind(conn, whole.counter_id).await?;
    let used_values: BTreeSet<i64> = used.values().collect();
    let mut runs = Vec::new();
    let mut returned: i64 = 0;
    for value in values.into_iter().filter(|value| !used_values.contains(value)) {
        let is_back = kept.returns && left_behind.is_none_or(|upto| value > upto);
        returned += i64::from(is_back);
        let reason = if is_back { GapReason::Returned } else { GapReason::Cancelled };
        runs.push(NewGap { first: value, last: value, reason, ..whole });
    }
    let unused = runs.len() as u64;
    register_all(conn, &merged(runs), now_us).await?;
    if returned > 0 {
        gaps::count_returned(conn, whole.counter_id, returned).await?;
    }
    let returned = returned.unsigned_abs();
    let handed_back = HandedBack {
        digest: order.digest(),
        used: used_values.len() as u64,
        returned,
        spent: unused - returned,
    };
    let changed = Reservation { changed_by: Some(order.by.clone()), ..block.clone() };
    let end = ReservationEnd::HandedBack;
    let leaving = Leaving {
        reservation: &changed,
        end,
        reason: GapReason::Returned,
        handed_back: Some(&handed_back),
    };
    ending::note(conn, &[leaving], now_us).await?;
    let handed_back = Some(handed_back);
    Ok(EndedReservation { handed_back, ..ended_of(&changed, end, now_us) })
}

/// A block that has just ended.
fn ended_of(block: &Reservation, end: ReservationEnd, ended_at_us: i64) -> EndedReservation {
    let record = &block.entry.record;
    EndedReservation {
        reservation_id: block.id(),
        end,
        ended_at_us,
        number: block.entry.number.clone(),
        document_id: record.document_id.clone(),
        user_id: record.user_id.clone(),
        reason: block.reason.clone(),
        handed_back: None,
    }
}

/// See [`crate::Reservations::cancel_block`].
async fn cancel(
    store: &Store,
    node: NodeId,
    id: Uuid,
    (reason, by): (&str, &str),
) -> Result<Acted, LedgerError> {
    let mut tx = store.begin_as(node).await?;
    let locked = lock(store, &mut *tx, (node, id)).await;
    let now_us = store.clock.now_us();
    let kept = match store.last_seen.or_forget(node, locked)? {
        LockedBlock::Block(locked) => locked.kept,
        found => {
            let standing = standing(&mut *tx, id, now_us).await?;
            let reason = Some(reason.to_owned());
            let outcome = match found {
                LockedBlock::Held => ActOutcome::Held,
                _ => ReservationAct::Cancel { reason }.refused(&standing),
            };
            return Ok(Acted { standing, outcome });
        }
    };
    let now_us = tx.server_now_us().await?.unwrap_or(now_us);
    let (changed_by, reason) = (Some(by.to_owned()), Some(reason.to_owned()));
    let changed = Reservation { changed_by, reason, ..kept.reservation.clone() };
    remove(&mut *tx, &kept).await?;
    let (end, reason) = (ReservationEnd::Cancelled, GapReason::Cancelled);
    let leaving = Leaving { reservation: &changed, end, reason, handed_back: None };
    leave(&mut *tx, &[leaving], now_us).await?;
    commit(tx).await?;
    memory::note(store, Some(node), ended_in_memory(&kept.reservation).as_slice())
        .map_err(LedgerError::behind_commit)?;
    let standing = ReservationStanding::Ended(ended_of(&changed, end, now_us));
    Ok(Acted { standing, outcome: ActOutcome::Done })
}
