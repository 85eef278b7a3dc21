//! Reservations of a ledger that went back. Nobody knows what callers have committed since, so
//! the end of a hold spends every reservation that is not confirmed, and every returned value
//! (L11). A record that comes again ends whatever has its value or its text by now (L9).

use std::collections::{BTreeSet, HashSet};

use crate::columns::small;
use crate::counters::table::lock_all;
use crate::dialect::Conn;
use crate::new_row::{NewRow, ValueRange};
use crate::query::{QueryBuilder, query_scalar};
use crate::reservations::ending::{Leaving, leave};
use crate::reservations::pool;
use crate::reservations::table::{self, Kept, ReservationRow, push_columns};
use crate::{GapReason, LedgerError, ReservationState, number_hash};

/// Reservations that are spent at once.
const PAGE: u32 = 500;

/// Runs, texts or ids that one statement looks for.
const ROWS_PER_SEARCH: usize = 1_000;

/// Spends what a partition's counters have reserved and not confirmed, and their returned values.
/// Waits for transactions that hold reservations, for each as long as the caller's transaction
/// waits for a lock: what they confirm stays. All of it is the caller's transaction: until that
/// commits nothing is spent, and it is safe to repeat.
///
/// # Errors
/// `LockTimeout` where one of them does not end: end it first. Nothing of the transaction may be
/// committed after an error.
pub(crate) async fn spend(conn: &mut Conn, partition: u32, now_us: i64) -> Result<(), LedgerError> {
    let counters = concerned(conn, small(partition, "partition")?).await?;
    // The counters first, as in every transaction.
    lock_all(conn, &counters).await?;
    for counter_id in counters {
        while spend_page(conn, counter_id, now_us).await? {}
        pool::spend(conn, counter_id, GapReason::Unaccounted, now_us).await?;
    }
    Ok(())
}

/// Spends the next reservations of a counter; whether there may be more.
async fn spend_page(conn: &mut Conn, counter_id: i64, now_us: i64) -> Result<bool, LedgerError> {
    let live = page(conn, counter_id, now_us).await.map_err(with_remedy)?;
    let leaving: Vec<_> = live.iter().map(|kept| Leaving::lost(&kept.reservation)).collect();
    leave(conn, &leaving, now_us).await?;
    let is_full = live.len() >= PAGE as usize;
    table::remove(conn, live.into_iter().map(|kept| kept.id).collect()).await?;
    Ok(is_full)
}

/// Counters of a partition that have anything reserved, or values that came back. Never a look at
/// all counters: processes wait for it.
async fn concerned(conn: &mut Conn, partition: i32) -> Result<Vec<i64>, LedgerError> {
    let counters = query_scalar(
        "select c.counter_id from (select counter_id from reservation
         union select counter_id from gap where reason = 'returned') as held
         join counter c on c.counter_id = held.counter_id where c.partition_id = $1",
    );
    Ok(counters.bind(partition).fetch_all(conn).await?)
}

/// The next ones, locked. Never without those that others have locked: one that its caller confirms
/// meanwhile is no longer among them.
async fn page(conn: &mut Conn, counter_id: i64, now_us: i64) -> Result<Vec<Kept>, LedgerError> {
    let mut query = QueryBuilder::new("select ");
    push_columns(&mut query, conn, now_us);
    query.push(" from reservation where state <> 'confirmed' and counter_id = ");
    query.push_bind(counter_id).push(" order by first_value limit ").push_bind(i64::from(PAGE));
    query.build().for_update().typed::<ReservationRow>().fetch_all_into(conn).await
}

/// The same failure, and what to do where a caller's transaction has caused it.
fn with_remedy(error: LedgerError) -> LedgerError {
    match error {
        LedgerError::LockTimeout { cause, counter } => {
            let why = "a transaction that confirms or cancels a reservation does not end; commit \
                       it or end it, and try again";
            LedgerError::LockTimeout { cause: format!("{cause}: {why}"), counter }
        }
        other => other,
    }
}

/// Ends what has the value or the text of records that come again, or their allocation; a
/// reservation of another that is confirmed stays, and they collide. Their counters are locked.
pub(crate) async fn make_way(
    conn: &mut Conn,
    new_rows: &[NewRow<'_>],
    now_us: i64,
) -> Result<(), LedgerError> {
    let own = new_rows.iter().map(|row| row.allocation_id.to_vec());
    let mut met: BTreeSet<Vec<u8>> = own.collect();
    met.extend(with_their_texts(conn, new_rows).await?);
    met.extend(with_their_values(conn, new_rows).await?);
    let met: Vec<Vec<u8>> = met.into_iter().collect();
    for part in met.chunks(ROWS_PER_SEARCH) {
        end(conn, new_rows, part.to_vec(), now_us).await?;
    }
    Ok(())
}

/// The reservations that have the text of a row.
async fn with_their_texts(
    conn: &mut Conn,
    new_rows: &[NewRow<'_>],
) -> Result<Vec<Vec<u8>>, LedgerError> {
    let heads: Vec<_> = new_rows.iter().filter_map(|row| row.head.as_ref()).collect();
    let mut met = Vec::new();
    for heads in heads.chunks(ROWS_PER_SEARCH) {
        let texts: HashSet<(&str, &str)> =
            heads.iter().map(|head| (head.number, head.scope)).collect();
        let hashes = heads.iter().map(|head| number_hash(head.number)).collect();
        let named = table::named(conn, hashes).await?;
        let same = named
            .into_iter()
            .filter(|(number, scope, _)| texts.contains(&(number.as_str(), scope.as_str())));
        met.extend(same.map(|(.., id)| id));
    }
    Ok(met)
}

/// The reservations that have a value of a row. Looked for by runs: rows may be far apart, with any
/// number of reservations between them.
async fn with_their_values(
    conn: &mut Conn,
    new_rows: &[NewRow<'_>],
) -> Result<Vec<Vec<u8>>, LedgerError> {
    let mut runs: Vec<ValueRange> = new_rows.iter().map(|row| row.value_range).collect();
    runs.sort_unstable();
    runs.dedup_by(|next, run| {
        let is_one = next.counter_id == run.counter_id && next.first - 1 <= run.last;
        if is_one {
            run.last = run.last.max(next.last);
        }
        is_one
    });
    let mut met = Vec::new();
    for part in runs.chunks(ROWS_PER_SEARCH) {
        let mut query = QueryBuilder::new("with told (counter_id, first_value, last_value) as (");
        query.push_values(part, |mut row, run| {
            row.push_bind(run.counter_id).push_bind(run.first).push_bind(run.last);
        });
        // From the one on that reaches into the run: those of a counter do not overlap.
        query.push(
            ") select r.reservation_id from told t
             join reservation r on r.counter_id = t.counter_id and r.first_value <= t.last_value
             and r.last_value >= t.first_value
             and r.first_value >= coalesce((select max(b.first_value) from reservation b
             where b.counter_id = t.counter_id and b.first_value <= t.first_value),
             t.first_value)",
        );
        let ids: Vec<Vec<u8>> = query.build().once().scalar().fetch_all(&mut *conn).await?;
        met.extend(ids);
    }
    Ok(met)
}

/// Ends these: their own allocation becomes a row; another's is lost, and its value is spent unless
/// a row takes it.
async fn end(
    conn: &mut Conn,
    new_rows: &[NewRow<'_>],
    met: Vec<Vec<u8>>,
    now_us: i64,
) -> Result<(), LedgerError> {
    let mut query = QueryBuilder::new("select ");
    push_columns(&mut query, conn, now_us);
    query.push(" from reservation where reservation_id").push_among(met);
    query.push(" order by counter_id, first_value");
    let mut live: Vec<Kept> =
        query.build().for_update().typed::<ReservationRow>().fetch_all_into(&mut *conn).await?;
    let own: HashSet<&[u8]> = new_rows.iter().map(|row| row.allocation_id).collect();
    let is_own = |kept: &Kept| own.contains(&kept.id[..]);
    live.retain(|kept| is_own(kept) || kept.reservation.state != ReservationState::Confirmed);
    // A row that takes the value shrinks the gap again.
    let lost = live.iter().filter(|kept| !is_own(kept));
    let leaving: Vec<_> = lost.map(|kept| Leaving::lost(&kept.reservation)).collect();
    leave(conn, &leaving, now_us).await?;
    table::remove(conn, live.into_iter().map(|kept| kept.id).collect()).await?;
    Ok(())
}
