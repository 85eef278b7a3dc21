//! A number that was given by hand: an import of one, of a counter that is at rest.
//!
//! Above its counter's value it raises the counter; what it passes over goes to the gap register,
//! either to be issued next or never. Below that value it fills any gap but one of a text that
//! another document has: an issued number that was found on paper is proof, and no duplicate. Never
//! registers a value that anything else accounts for.
//!
//! A number that no series could render is kept as written: it takes the next place of a counter of
//! such numbers.
//!
//! Locks as an import and a take do: imports, the series, the counter, names of keys, the family,
//! the text; the partition, before the first row is written. What is looked for is looked for
//! behind them, the document once more behind the partition.

mod as_written;
mod outside;
mod passing_over;
mod remembering;
mod reserved;

use std::iter;
use std::sync::Arc;

use numbering::{Range, TakenRange};
use numerator_runtime::node::NodeId;

use super::Imports;
use crate::archive::names;
use crate::calls::CALL;
use crate::columns::{self, Word as _, signed, unsigned_small};
use crate::counters::table::lock_or_create;
use crate::dialect::Conn;
use crate::life::registrations;
use crate::protocol::chronology::LastDates;
use crate::protocol::entries::{self, Verdict};
use crate::protocol::keys::{self, Key};
use crate::protocol::lift::{self, Stand};
use crate::protocol::{confirmed_takes, put_aside};
use crate::query::{query_as, query_scalar};
use crate::register::lookup;
use crate::reservations::sweep::{past_due, unless_due};
use crate::reservations::table;
use crate::store::{Store, commit, commit_alone};
use crate::{
    At, Counter, CounterSpec, Entry, Found, GapReason, IssuePath, LedgerError, NewAct,
    NumberByHand, PASSED_OVER_MAX, RegisteredNumber, Registering, ValueOf,
};
use as_written::Looked;
use remembering::Memory;

/// Most reservations that are over which one registration ends: the one of its text, the one of its
/// value, and that of its document.
const ENDED_MAX: usize = 3;

impl Imports<'_> {
    /// Registers a number that was given by hand, for its document, or says why not. Counters that
    /// Redis counts are not touched, nor partitions of Redis where the number has a document. Safe
    /// to repeat: the same registration is found.
    ///
    /// # Errors
    /// `SeriesChanged` where the series has another version by now; `LockTimeout` where an import
    /// runs, a counter is held, or a last date is still being looked for: worth a retry.
    pub async fn register(
        self,
        node: NodeId,
        new: &NumberByHand,
    ) -> Result<Registering, LedgerError> {
        if new.is_as_written {
            // It is compared with all series.
            return self.search(async |store| register(store, node, new).await).await;
        }
        self.write(async |store| register(store, node, new).await).await
    }

    /// The same registration, where it was made before, or that the journal has the number
    /// otherwise: as the ledger shows it in the incarnation that was last agreed on. Nothing is
    /// locked: what is not there may come.
    ///
    /// # Errors
    /// `WentBack` where the ledger is another incarnation.
    pub async fn registered(self, new: &NumberByHand) -> Result<Option<Registering>, LedgerError> {
        self.call(CALL, async |store| {
            // What a ledger that went back does not know may have been registered.
            let mut tx = store.begin_reading().await?;
            let found = answered(&mut *tx, new).await?;
            tx.commit().await?;
            Ok(found)
        })
        .await
    }
}

/// See [`crate::Imports::register`]. A reservation that is over or cancelled keeps no number from
/// being registered: it ends first.
///
/// # Errors
/// Also `LockTimeout` where such a reservation could not be ended now: worth a retry.
async fn register(
    store: &Store,
    node: NodeId,
    new: &NumberByHand,
) -> Result<Registering, LedgerError> {
    past_due(store, node, ENDED_MAX, move || {
        unless_due(store, node, attempt(store, node, new), reserved::held)
    })
    .await
}

/// One transaction; what it does not commit is rolled back.
async fn attempt(
    store: &Store,
    node: NodeId,
    new: &NumberByHand,
) -> Result<Registering, LedgerError> {
    let looked = match as_written::look(store, new).await? {
        Looked::Ready(looked) => looked,
        Looked::Refused(refused) => return Ok(refused),
    };
    let now_us = store.clock.now_us();
    let spec = spec_of(new)?;
    let mut tx = store.begin_brief(Some(node)).await?;
    if let Some(refused) = outside::refusal_of_ledger(store, &mut *tx, (node, new), looked).await? {
        return Ok(refused);
    }
    let partition = home_of(&mut *tx, spec).await?;
    let at = At { partition, epoch: 0 };
    let counter = lock_or_create(&mut *tx, at, node, spec, now_us).await?.counter;
    let counter_id = counter.counter_id;
    let reached = confirmed_takes::must_be_reached(store, &[(spec, counter)]);
    store.last_seen.or_forget(node, reached)?;
    let (counter, base) = match lift::lock(&mut *tx, counter_id, now_us).await? {
        Stand::AtRest { counter, base } => (counter, base),
        Stand::InRedis(counter) => return Ok(Registering::InRedis(counter.partition)),
        Stand::Held(partition) => return Ok(Registering::Held(partition)),
    };
    let placed = as_written::placed(new, base)?;
    let new = &*placed;
    tx.lock_names(&keys::lock_names(partition, Key::all_of(&new.order.record))).await?;
    let mut dates = LastDates::lock(&mut *tx, std::slice::from_ref(&new.order)).await?;
    if let Some(unknown) = dates.unknown() {
        // What was looked at for it is not to be looked at again.
        commit(tx).await?;
        return Err(unknown);
    }
    let text = iter::once((&*new.order.record.scope, &*new.number));
    tx.lock_names(&keys::text_locks(text)).await?;
    if let Some(refused) = refusal(&mut *tx, new, (&counter, base), &dates, now_us).await? {
        return Ok(refused);
    }
    if let Some(refused) = refusal_at_rest(&mut *tx, new, partition, now_us).await? {
        return Ok(refused);
    }
    let entry = entry_of(new, at, counter_id)?;
    if !journal(store, &mut *tx, &entry, (node, now_us)).await? {
        return Ok(Registering::Taken);
    }
    let passed_over = passing_over::go_above(&mut *tx, new, (&counter, base), now_us).await?;
    dates.note(&new.order);
    dates.write(&mut *tx).await?;
    let document_id = new.order.record.document_id.clone();
    let act = act_of(new, &entry)?;
    let row = registrations::note(store, &mut *tx, &act, document_id, passed_over).await?;
    let stood = (spec, &counter, base);
    let memory = Memory::of(store, &mut *tx, (node, new), stood, &entry).await?;
    commit_alone(store, tx).await?;
    memory.note(store, node, &entry).map_err(LedgerError::behind_commit)?;
    Ok(Registering::Written(Box::new(RegisteredNumber { entry, row })))
}

/// The counter of the number.
fn spec_of(new: &NumberByHand) -> Result<&CounterSpec, LedgerError> {
    match &new.order.specs[..] {
        [spec] => Ok(spec),
        _ => Err(LedgerError::Refused("a number by hand has one serial".into())),
    }
}

/// The partition of the series, which keeps the version that the number was read by.
async fn home_of(conn: &mut Conn, spec: &CounterSpec) -> Result<u32, LedgerError> {
    let row: Option<(i32, i32)> =
        query_as("select partition, active_version from series where series_id = $1")
            .for_share()
            .bind(spec.series_id)
            .fetch_optional(conn)
            .await?;
    let (partition, active) = row.ok_or(LedgerError::SeriesChanged)?;
    if unsigned_small(active, "series.active_version")? != spec.version {
        return Err(LedgerError::SeriesChanged);
    }
    unsigned_small(partition, "series.partition")
}

/// What keeps the number from being registered, looked for behind all locks.
async fn refusal(
    conn: &mut Conn,
    new: &NumberByHand,
    (counter, base): (&Counter, i64),
    dates: &LastDates,
    now_us: i64,
) -> Result<Option<Registering>, LedgerError> {
    if let Some(answered) = answered(conn, new).await? {
        return Ok(Some(answered));
    }
    // Behind the counter's lock, which an archiver holds. Two counters have no text in common
    // within one scope: one of another counter is another number.
    let is_archived = if new.is_as_written {
        names::is_text_archived(conn, &new.number).await?
    } else {
        names::has_text(conn, &new.number, counter.counter_id).await?
    };
    if is_archived {
        return Ok(Some(Registering::Taken));
    }
    if let Some(held) = reserved::find(conn, new, counter.counter_id, now_us).await? {
        return Ok(Some(held));
    }
    if let Some(numbered) = numbered(conn, new, now_us).await? {
        return Ok(Some(numbered));
    }
    if let Some(last) = dates.refuse(&new.order) {
        return Ok(Some(Registering::BeforeLast(last.to_owned())));
    }
    let value = signed(new.value, "value")?;
    if value <= base {
        return below(conn, counter, value).await;
    }
    let spec = spec_of(new)?;
    let (step, start) = (columns::step(spec.step)?, signed(spec.start, "start")?);
    let next = base.saturating_add(step);
    if next < start {
        let counter_id = counter.counter_id;
        return Ok(Some(Registering::BelowStart { counter_id, next, start, step }));
    }
    let passed = (value - next) / step;
    Ok(if (value - next) % step != 0 {
        Some(Registering::Beside { next, step })
    } else if passed.unsigned_abs() > PASSED_OVER_MAX {
        Some(Registering::TooFar { counter_id: counter.counter_id, next })
    } else {
        None
    })
}

/// Whether the journal has the number: as the same registration, or as another one's.
async fn answered(conn: &mut Conn, new: &NumberByHand) -> Result<Option<Registering>, LedgerError> {
    let asked = &*new.order.record;
    let Some(entry) = lookup::of_number(conn, &new.number, &asked.scope).await? else {
        return Ok(None);
    };
    let found = &*entry.record;
    let is_same = entry.path == path_of(new)
        && (found.series_id, &found.document_id, &found.payload_digest)
            == (asked.series_id, &asked.document_id, &asked.payload_digest);
    if !is_same {
        return Ok(Some(Registering::Taken));
    }
    let row = registrations::of_allocation(conn, found.allocation_id).await?;
    let row = row.filter(|row| row.is_of(&asked.user_id, &new.reason));
    Ok(Some(match row {
        Some(row) => Registering::Known(Box::new(RegisteredNumber { entry, row })),
        None => Registering::Taken,
    }))
}

/// What keeps the number from being registered although nothing was found: its partition is not at
/// rest, or came to the database after the document was looked for. Then the journal has what Redis
/// took, which it appends without the names of documents.
async fn refusal_at_rest(
    conn: &mut Conn,
    new: &NumberByHand,
    partition: u32,
    now_us: i64,
) -> Result<Option<Registering>, LedgerError> {
    match outside::refusal_of_partition(conn, new, partition).await? {
        Some(refused) => Ok(Some(refused)),
        None => numbered(conn, new, now_us).await,
    }
}

/// The number that the document has, or holds.
async fn numbered(
    conn: &mut Conn,
    new: &NumberByHand,
    now_us: i64,
) -> Result<Option<Registering>, LedgerError> {
    if new.order.record.document_id.is_none() {
        return Ok(None);
    }
    let questions = std::slice::from_ref(&new.order.question);
    let (found, _) = lookup::answers(conn, questions, now_us).await?;
    let has = found.into_iter().find_map(Found::of_document);
    Ok(has.map(Registering::DocumentHas))
}

/// What keeps a value at or below its counter's from being registered: it must be a gap.
async fn below(
    conn: &mut Conn,
    counter: &Counter,
    value: i64,
) -> Result<Option<Registering>, LedgerError> {
    let reason: Option<String> = query_scalar(
        "select reason from gap where counter_id = $1 and first_value <= $2 and last_value >= $2
         and ($2 - first_value) % step = 0",
    )
    .bind(counter.counter_id)
    .bind(value)
    .fetch_optional(&mut *conn)
    .await?;
    if let Some(reason) = reason {
        let is_collided = GapReason::read(&reason)? == GapReason::Collided;
        return Ok(is_collided.then_some(Registering::Collided));
    }
    let step = columns::step(counter.step)?;
    let first = counter.origin.saturating_add(step);
    if value < first {
        return Ok(Some(Registering::BelowFirst { first }));
    }
    let unlooked: Option<i64> = query_scalar(
        "select after_value from unsettled where counter_id = $1 and after_value < $2
         and upto_value >= $2 limit 1",
    )
    .bind(counter.counter_id)
    .bind(value)
    .fetch_optional(conn)
    .await?;
    Ok(Some(match unlooked {
        Some(_) => Registering::Unsettled,
        None if (value - first) % step != 0 => Registering::Beside { next: first, step },
        None => Registering::Taken,
    }))
}

/// The path of the number's row.
const fn path_of(new: &NumberByHand) -> IssuePath {
    if new.is_as_written { IssuePath::AsWritten } else { IssuePath::Registered }
}

/// The journal's entry of the number.
fn entry_of(new: &NumberByHand, at: At, counter_id: i64) -> Result<Entry, LedgerError> {
    let (first, step) = (new.value, spec_of(new)?.step);
    Ok(Entry {
        record: Arc::clone(&new.order.record),
        taken: vec![TakenRange { counter_id, range: Range { first, last: first, step } }],
        number: new.number.clone(),
        at,
        retry_count: 0,
        path: path_of(new),
    })
}

/// Writes the journal's row, which fills the gap that its value is in; false where something else
/// has the number or the value: then nothing may be committed.
async fn journal(
    store: &Store,
    conn: &mut Conn,
    entry: &Entry,
    (node, now_us): (NodeId, i64),
) -> Result<bool, LedgerError> {
    let new_rows = entries::new_rows(&[entry])?;
    let mut verdicts = vec![Verdict::Written];
    put_aside::judge(conn, &new_rows, &mut verdicts).await?;
    let is_any_reserved = table::is_any(conn).await?;
    let writing = store.writing(node, now_us);
    let judged = entries::write(conn, &writing, new_rows, verdicts, is_any_reserved).await?;
    Ok(judged.verdicts == [Verdict::Written])
}

/// The registration of a journaled number.
fn act_of(new: &NumberByHand, entry: &Entry) -> Result<NewAct, LedgerError> {
    let record = &*entry.record;
    let counter_id = entry.taken.first().map_or(0, |taken| taken.counter_id);
    let value = signed(new.value, "value")?;
    Ok(NewAct {
        of: ValueOf { counter_id, value },
        row_first: value,
        allocation_id: record.allocation_id,
        number: new.number.clone(),
        user_id: record.user_id.clone(),
        ip_address: record.ip_address.clone(),
        reason: Some(new.reason.clone()),
    })
}
