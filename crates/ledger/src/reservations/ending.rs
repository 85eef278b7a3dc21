//! The end of reservations of one counter, whose row the transaction has locked: those that are
//! over or cancelled end, and their values return or are spent; confirmed ones become rows of the
//! journal. Never commits.

mod leaving;

pub(crate) use leaving::{Leaving, leave, merged, note};

use crate::columns::signed;
use crate::dialect::Conn;
use crate::last_seen::takes::known::Sighting;
use crate::protocol::entries::WriteMode;
use crate::protocol::journaling::{self, EntrySource};
use crate::query::{QueryBuilder, query_scalar};
use crate::register::gaps;
use crate::reservations::memory;
use crate::reservations::table::{self, Kept, ReservationRow, push_clock, push_columns};
use crate::seal::Writing;
use crate::store::Store;
use crate::{Entry, GapReason, LedgerError, ReservationEnd, ReservationState, ReservationsSwept};

/// Most reservations that one transaction ends or journals. Requests for numbers of their counter
/// wait for it meanwhile.
pub(crate) const BATCH_MAX: u32 = 500;

/// Which of the due reservations of a counter a transaction looks at.
#[derive(Clone, Debug)]
pub(crate) enum Which {
    /// All but those with these ids,
    AllBut(Vec<Vec<u8>>),
    /// or only those.
    Only(Vec<Vec<u8>>),
}

impl Which {
    /// Adds the condition to a statement on `reservation`.
    pub(crate) fn push_onto(&self, query: &mut QueryBuilder<'_>) {
        match self {
            Which::AllBut(ids) if ids.is_empty() => {}
            Which::AllBut(ids) => {
                query.push(" and not (reservation_id").push_among(ids.clone()).push(")");
            }
            Which::Only(ids) => {
                query.push(" and reservation_id").push_among(ids.clone());
            }
        }
    }
}

/// Ends and journals what is due of a counter, at most [`BATCH_MAX`], the lowest values first; rows
/// that other transactions have locked are left alone. Also returns what is to be noted once it is
/// committed.
///
/// The number of statements does not depend on how many are due. One finds and locks them. Those
/// that end take four: what the counter has left behind, the register, the count of returned
/// values, `life`. One removes all of them. Those that were confirmed take what any batch of the
/// journal takes: a statement for each row only where another record stands in its way.
///
/// # Errors
/// `WentBack` where one shows less than what is known of it, its value or its document (L12).
/// Nothing of the transaction may be committed after an error.
pub(crate) async fn settle(
    store: &Store,
    conn: &mut Conn,
    writing: &Writing,
    (counter_id, which): (i64, &Which),
) -> Result<(ReservationsSwept, Vec<Sighting>), LedgerError> {
    let due = due(conn, counter_id, which, writing.now_us).await?;
    let reservations = || due.iter().map(|kept| &kept.reservation);
    memory::locked_must_show_known(store, writing.node, reservations())?;
    let ended = reservations().filter_map(Sighting::of).map(Sighting::ended).collect();
    let (confirmed, over): (Vec<_>, Vec<_>) =
        due.into_iter().partition(|kept| kept.reservation.state == ReservationState::Confirmed);
    let mut swept = end(conn, counter_id, &over, writing.now_us).await?;
    let issued: Vec<Entry> = confirmed.iter().map(|kept| kept.reservation.issued()).collect();
    let ids: Vec<Vec<u8>> = over.into_iter().chain(confirmed).map(|kept| kept.id).collect();
    let count = ids.len() as u64;
    // First: what is journaled here is reserved by nobody else.
    if table::remove(conn, ids).await? != count {
        return Err(LedgerError::Conflict("a locked reservation was removed".into()));
    }
    let issued: Vec<&Entry> = issued.iter().collect();
    let mode = (EntrySource::Issuer, WriteMode::Judged);
    let appended = journaling::journal(conn, writing, &issued, mode).await?;
    swept.issued = appended.written + appended.known;
    swept.collided = appended.collisions.len() as u64;
    swept.unfinished = u64::from(count >= u64::from(BATCH_MAX));
    Ok((swept, ended))
}

/// Adds the condition that a reservation is due.
pub(crate) fn push_due(query: &mut QueryBuilder<'_>, conn: &Conn, now_us: i64) {
    // Both sides can be searched in `reservation_due`; the clock is read once.
    query.push(
        "(reservation.state in ('confirmed', 'cancelled')
         or (reservation.state = 'reserved' and reservation.expires_at_us <= (select ",
    );
    push_clock(query, conn, now_us);
    query.push(")))");
}

/// What is due of a counter, each locked.
async fn due(
    conn: &mut Conn,
    counter_id: i64,
    which: &Which,
    now_us: i64,
) -> Result<Vec<Kept>, LedgerError> {
    let mut query = QueryBuilder::new("select ");
    push_columns(&mut query, conn, now_us);
    query.push(" from reservation where counter_id = ").push_bind(counter_id).push(" and ");
    push_due(&mut query, conn, now_us);
    which.push_onto(&mut query);
    query.push(" order by first_value limit ").push_bind(i64::from(BATCH_MAX));
    let due = query.build().for_update_of_free().typed::<ReservationRow>();
    due.fetch_all_into(conn).await
}

/// Ends those that are over or cancelled, the lowest value first: their values go to the gap
/// register, and rows of `life` say how they ended.
async fn end(
    conn: &mut Conn,
    counter_id: i64,
    over: &[Kept],
    now_us: i64,
) -> Result<ReservationsSwept, LedgerError> {
    let mut swept = ReservationsSwept::default();
    if over.is_empty() {
        return Ok(swept);
    }
    let left_behind = left_behind(conn, counter_id).await?;
    let mut leaving = Vec::with_capacity(over.len());
    let mut returned: i64 = 0;
    for kept in over {
        let end = match kept.reservation.state {
            _ if kept.reservation.is_block() => {
                return Err(LedgerError::Refused("a block is handed back or given up".into()));
            }
            ReservationState::Cancelled => ReservationEnd::Cancelled,
            ReservationState::Reserved => ReservationEnd::Expired,
            ReservationState::Confirmed => {
                return Err(LedgerError::Refused("a confirmed reservation never ends".into()));
            }
        };
        let value = value_of(kept)?;
        let is_back = kept.returns && left_behind.is_none_or(|upto| value > upto);
        let reason = match end {
            _ if is_back => GapReason::Returned,
            ReservationEnd::Cancelled => GapReason::Cancelled,
            ReservationEnd::Expired | ReservationEnd::Lost | ReservationEnd::HandedBack => {
                GapReason::Expired
            }
        };
        returned += i64::from(is_back);
        match end {
            ReservationEnd::Cancelled => swept.cancelled += 1,
            ReservationEnd::Expired | ReservationEnd::Lost | ReservationEnd::HandedBack => {
                swept.expired += 1;
            }
        }
        leaving.push(Leaving { reservation: &kept.reservation, end, reason, handed_back: None });
    }
    leave(conn, &leaving, now_us).await?;
    if returned > 0 {
        gaps::count_returned(conn, counter_id, returned).await?;
    }
    Ok(swept)
}

/// The value of a reservation.
fn value_of(kept: &Kept) -> Result<i64, LedgerError> {
    let taken = kept.reservation.entry.taken.first();
    let none = || LedgerError::Fault("reservation.raw holds no value".into());
    signed(taken.ok_or_else(none)?.range.first, "first")
}

/// The value up to which a locked counter was moved up by a change, an import or, where dates are
/// kept in order, a number by hand, if ever: none up to there comes back (L16). A lift so waits for
/// no caller's transaction, whatever becomes of it.
pub(crate) async fn left_behind(
    conn: &mut Conn,
    counter_id: i64,
) -> Result<Option<i64>, LedgerError> {
    Ok(query_scalar("select left_behind from counter where counter_id = $1")
        .bind(counter_id)
        .fetch_one(conn)
        .await?)
}
