//! The sweep of reservations: journals what is confirmed and ends what is over, one transaction
//! for each counter. Any process does it, and what one leaves another goes on with.

mod course;

pub(crate) use course::SweepCourse;

use std::collections::{BTreeMap, BTreeSet};

use numerator_runtime::node::NodeId;
use uuid::Uuid;

use crate::calls::CALL;
use crate::connections::Share;
use crate::counters::table::lock_all;
use crate::dialect::Conn;
use crate::protocol::partitions;
use crate::query::{QueryBuilder, SqlQuery};
use crate::reservations::ending::{BATCH_MAX, Which, push_due, settle};
use crate::reservations::memory;
use crate::store::{Store, commit};
use crate::{LedgerError, PartitionState, Reservation, Reservations, ReservationsSwept};

/// Most counters of one sweep.
const COUNTERS_MAX: u32 = 1_000;

/// Most reservations of a counter that one sweep finds refused, one by one. Where it refuses more,
/// the ledger may refuse every one: the sweep of the counter ends, with few transactions.
const REFUSED_MAX: usize = 4;

/// Reservations by their counters.
pub(crate) type DueIds = BTreeMap<i64, BTreeSet<Uuid>>;

/// An outcome, or the reservations that are over and must end before there is one.
pub(crate) type UnlessDue<T> = Result<T, DueIds>;

/// The outcome of an attempt that commits nothing where it shows a reservation, unless that is
/// over. What is shown is compared with what this process knew before the attempt, and remembered
/// (L10, L12).
///
/// # Errors
/// Those of the attempt; `WentBack` where it shows less.
pub(crate) async fn unless_due<T>(
    store: &Store,
    node: NodeId,
    attempt: impl Future<Output = Result<T, LedgerError>>,
    shown: impl Fn(&T) -> Option<&Reservation>,
) -> Result<UnlessDue<T>, LedgerError> {
    // The attempt begins as it is awaited.
    let asked = (Some(node), store.last_seen.takes().noted());
    let outcome = attempt.await?;
    let Some(shown) = shown(&outcome) else { return Ok(Ok(outcome)) };
    memory::must_show_known(store, asked, [shown])?;
    let taken = shown.entry.taken.first().filter(|_| shown.is_due());
    if let Some(counter_id) = taken.map(|taken| taken.counter_id) {
        return Ok(Err(DueIds::from([(counter_id, [shown.id()].into())])));
    }
    memory::note_shown(store, Some(node), [shown])?;
    Ok(Ok(outcome))
}

impl Reservations<'_> {
    /// Journals confirmed reservations and ends those that are over or cancelled, of at most 1,000
    /// counters, each at most 500 in a transaction of its own. What another transaction has locked
    /// is left to the next sweep, and so is what is in a partition that is held. Safe to repeat and
    /// to run in any number of processes.
    ///
    /// A counter that fails keeps no other from its end: each sweep of this process goes on behind
    /// the counter with which the last one ended, and begins anew after the last counter. Of `n`
    /// counters of which something is due, each has its turn within the next `n / 1,000 + 1`
    /// sweeps.
    ///
    /// A reservation that the ledger refuses keeps no other from its end: the others are done in
    /// smaller transactions, and it stays as it is, is named in the log, and is tried again after
    /// five seconds.
    ///
    /// # Errors
    /// A ledger that does not answer.
    pub async fn sweep(self, node: NodeId) -> Result<ReservationsSwept, LedgerError> {
        self.sweep_some(node, COUNTERS_MAX).await
    }

    /// The same of at most so many counters.
    ///
    /// # Errors
    /// A ledger that does not answer.
    pub async fn sweep_some(
        self,
        node: NodeId,
        counters_max: u32,
    ) -> Result<ReservationsSwept, LedgerError> {
        let due =
            self.call(CALL.uncounted(), async |store| due_counters(store, counters_max).await);
        let mut all = ReservationsSwept::default();
        for counter_id in due.await? {
            let swept = self.sweep_one(node, counter_id, &mut all).await;
            self.0.store(Share::Common).sweeps.pass(counter_id);
            let Err(error) = swept else { continue };
            all.failed += 1;
            if !matches!(error, LedgerError::LockTimeout { .. }) {
                tracing::warn!(counter_id, %error, "reservations were not swept");
            }
            if matches!(error, LedgerError::Unreachable { .. }) {
                break;
            }
        }
        Ok(all)
    }

    /// Sweeps a counter: a batch in one transaction, or in several where the ledger refuses it.
    async fn sweep_one(
        self,
        node: NodeId,
        counter_id: i64,
        all: &mut ReservationsSwept,
    ) -> Result<(), LedgerError> {
        let swept =
            self.call(CALL, async |store| sweep_counter(store, node, counter_id).await).await;
        match swept {
            Ok(swept) => all.add(swept),
            Err(error) if is_refusal(&error) => {
                return self.sweep_divided(node, counter_id, all).await;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Sweeps a batch that the ledger refuses: halves it until each part is done, or is a single
    /// reservation, which is passed over.
    async fn sweep_divided(
        self,
        node: NodeId,
        counter_id: i64,
        all: &mut ReservationsSwept,
    ) -> Result<(), LedgerError> {
        let due = self.call(CALL, async |store| due_ids(store, counter_id).await).await?;
        let (mut parts, mut refused) = (vec![due], 0);
        while let Some(mut part) = parts.pop() {
            let which = Which::Only(part.clone());
            let swept =
                self.call(CALL, async |store| sweep_part(store, node, (counter_id, &which)).await);
            match (swept.await, part.len()) {
                (Ok(swept), _) => all.add(swept),
                (Err(error), 0) => return Err(error),
                (Err(error), _) if !is_refusal(&error) => return Err(error),
                (Err(error), 1) => {
                    self.pass_over(&part[0], counter_id, &error);
                    all.refused += 1;
                    refused += 1;
                    if refused > REFUSED_MAX {
                        return Err(error);
                    }
                }
                (Err(_), count) => {
                    // The lower half is the next one.
                    parts.push(part.split_off(count / 2));
                    parts.push(part);
                }
            }
        }
        Ok(())
    }

    /// Passes a reservation over for a while, and names it the first time.
    fn pass_over(self, id: &[u8], counter_id: i64, error: &LedgerError) {
        let store = self.0.store(Share::Common);
        if store.sweeps.pass_over(id, store.clock.now_us()) {
            let reservation = Uuid::from_slice(id).unwrap_or_default();
            tracing::warn!(
                %reservation,
                counter_id,
                %error,
                "a reservation is refused by the ledger and stays as it is"
            );
        }
    }
}

/// Whether the ledger refuses some reservation of a batch for what it holds, as far as its answer
/// tells: it may refuse every one.
fn is_refusal(error: &LedgerError) -> bool {
    matches!(error, LedgerError::Unfit(_) | LedgerError::Fault(_) | LedgerError::Refused(_))
}

impl ReservationsSwept {
    /// Adds what another transaction did.
    fn add(&mut self, more: Self) {
        self.issued += more.issued;
        self.collided += more.collided;
        self.cancelled += more.cancelled;
        self.expired += more.expired;
        self.failed += more.failed;
        self.refused += more.refused;
        self.unfinished += more.unfinished;
    }
}

/// All reservations but those that are passed over now.
fn not_passed_over(store: &Store) -> Which {
    Which::AllBut(store.sweeps.passed_over(store.clock.now_us()))
}

/// Counters of which something is due, from the one behind the last that was swept on, and then
/// from the first on. Nothing is locked.
async fn due_counters(store: &Store, counters_max: u32) -> Result<Vec<i64>, LedgerError> {
    let mut conn = store.reader.acquire().await?;
    let (now_us, which) = (store.clock.now_us(), not_passed_over(store));
    let query = due_counters_query(&*conn, now_us, &which, (store.sweeps.place(), counters_max));
    Ok(query.scalar().fetch_all(&mut *conn).await?)
}

/// The statement that finds them, from behind the counter `place` on, with an index for each way to
/// be due.
pub(crate) fn due_counters_query(
    conn: &Conn,
    now_us: i64,
    which: &Which,
    (place, counters_max): (i64, u32),
) -> SqlQuery<'static> {
    let mut query = QueryBuilder::new(
        "select reservation.counter_id from reservation
         join counter c on c.counter_id = reservation.counter_id
         join partition p on p.partition_id = c.partition_id
         where p.state <> 'held' and ",
    );
    push_due(&mut query, conn, now_us);
    which.push_onto(&mut query);
    query.push(" group by reservation.counter_id order by case when reservation.counter_id <= ");
    query.push_bind(place).push(" then 1 else 0 end, reservation.counter_id limit ");
    query.push_bind(i64::from(counters_max));
    query.build()
}

/// The ids of what is due of a counter, the lowest values first: at most a batch. Nothing is
/// locked, and nothing else is read: a row that cannot be read is among them.
async fn due_ids(store: &Store, counter_id: i64) -> Result<Vec<Vec<u8>>, LedgerError> {
    let mut conn = store.reader.acquire().await?;
    let mut query = QueryBuilder::new("select reservation_id from reservation where counter_id = ");
    query.push_bind(counter_id).push(" and ");
    push_due(&mut query, &*conn, store.clock.now_us());
    not_passed_over(store).push_onto(&mut query);
    query.push(" order by first_value limit ").push_bind(i64::from(BATCH_MAX));
    Ok(query.build().scalar().fetch_all(&mut *conn).await?)
}

/// One transaction: the counter's row first, as in every other.
async fn sweep_counter(
    store: &Store,
    node: NodeId,
    counter_id: i64,
) -> Result<ReservationsSwept, LedgerError> {
    sweep_part(store, node, (counter_id, &not_passed_over(store))).await
}

/// The same of a part of what is due.
async fn sweep_part(
    store: &Store,
    node: NodeId,
    (counter_id, which): (i64, &Which),
) -> Result<ReservationsSwept, LedgerError> {
    let mut tx = store.begin_brief(Some(node)).await?;
    let locked = lock_all(&mut *tx, &[counter_id]).await?;
    let Some(counter) = locked.first() else { return Ok(ReservationsSwept::default()) };
    // Nothing ends while nobody knows what the ledger has forgotten.
    let partition = partitions::read(&mut *tx, counter.partition).await?;
    if partition.state == PartitionState::Held {
        return Ok(ReservationsSwept::default());
    }
    let writing = store.writing(node, store.clock.now_us());
    let swept = settle(store, &mut *tx, &writing, (counter_id, which)).await;
    let (swept, ended) = store.last_seen.or_forget(node, swept)?;
    commit(tx).await?;
    memory::note(store, Some(node), &ended)?;
    Ok(swept)
}

/// Attempts something that reservations which are over stand in the way of, as often as others may
/// be found once these have ended: `ends_max` times.
///
/// # Errors
/// Those of the attempt; `LockTimeout` also where such a reservation could not be ended now: worth
/// a retry.
pub(crate) async fn past_due<T, Attempt>(
    store: &Store,
    node: NodeId,
    ends_max: usize,
    attempt: impl Fn() -> Attempt,
) -> Result<T, LedgerError>
where
    Attempt: Future<Output = Result<UnlessDue<T>, LedgerError>>,
{
    for _ in 0..ends_max {
        match attempt().await? {
            Ok(outcome) => return Ok(outcome),
            Err(due) => sweep_these(store, node, due).await?,
        }
    }
    let cause = "a reservation is over, and has not ended yet".to_owned();
    attempt().await?.map_err(|_| LedgerError::LockTimeout { cause, counter: None })
}

/// Sweeps what requests need ended, where it is due: exactly these, however much else is due of
/// their counters. One that the ledger refuses is left to the sweep of all, which finds out which
/// it is. What a transaction of its caller has locked stays.
///
/// # Errors
/// `LockTimeout` where a counter is held, once all others are done: worth a retry.
pub(crate) async fn sweep_these(
    store: &Store,
    node: NodeId,
    due: DueIds,
) -> Result<(), LedgerError> {
    let mut held = None;
    for (counter_id, ids) in due {
        let ids: Vec<Vec<u8>> = ids.into_iter().map(|id| id.as_bytes().to_vec()).collect();
        for part in ids.chunks(BATCH_MAX as usize) {
            let which = Which::Only(part.to_vec());
            match sweep_part(store, node, (counter_id, &which)).await {
                Err(error @ LedgerError::LockTimeout { .. }) => {
                    held = Some(error);
                    break;
                }
                Err(error) if !is_refusal(&error) => return Err(error),
                Err(error) => {
                    tracing::warn!(counter_id, ?part, %error, "what a request needs ended stays");
                }
                Ok(_) => {}
            }
        }
    }
    held.map_or(Ok(()), Err)
}
