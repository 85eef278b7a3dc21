//! Reservations: a number that a document holds until it is confirmed or given up.
//!
//! ```text
//!   take ──▶ reserved ── confirm ──▶ confirmed ── sweep ──▶ row of the journal
//!               │  ╰──── cancel ───▶ cancelled ╮
//!               ╰─────── time passes ──────────┴ sweep ──▶ `life`, and the value returns
//! ```
//!
//! A block is a reservation of several numbers without an end by time: its holder says which of
//! them were used, or gives it up, and neither changes its row (`blocks.rs`).
//!
//! A caller changes nothing but its reservation's own row, with one statement and from `reserved`
//! alone (L1). All else a sweep does, under the counter's row (L5), and leaves rows alone that a
//! caller's open transaction has locked (L2). Only what is reserved or cancelled ends (L3).

pub(crate) mod block_rows;
pub(crate) mod block_texts;
mod blocks;
pub(crate) mod by_number;
pub(crate) mod ending;
pub(crate) mod listed;
pub(crate) mod lost;
pub(crate) mod memory;
pub(crate) mod pool;
pub(crate) mod rows;
pub(crate) mod sweep;
pub(crate) mod table;

use numerator_runtime::node::NodeId;
use sqlx_macros::FromRow;
use uuid::Uuid;

use crate::calls::{CALL, noun};
use crate::columns::{Word as _, read_uuid, unsigned};
use crate::dialect::Conn;
use crate::query::{QueryBuilder, query_as};
use crate::register::gaps;
use crate::register::lookup;
use crate::store::{Store, commit};
use crate::{
    ActOutcome, Acted, Audits, EndedReservation, HandedBack, LedgerError, Reservation,
    ReservationAct, ReservationCounts, ReservationEnd, ReservationFinding, ReservationStanding,
};
use table::{Kept, ReservationRow, push_clock};

/// For how long a confirmed reservation may wait for the journal before it is a finding, in
/// microseconds.
const JOURNALED_WITHIN_US: i64 = 60_000_000;

noun!(
    /// The reservations.
    Reservations,
    reservations
);

impl Reservations<'_> {
    /// Where a reservation stands.
    pub async fn get(self, id: Uuid) -> Result<ReservationStanding, LedgerError> {
        self.write(async |store| {
            let upto = store.last_seen.takes().noted();
            let mut tx = store.begin_reading().await?;
            let found = standing(&mut *tx, id, store.clock.now_us()).await?;
            tx.commit().await?;
            must_show_known(store, (None, upto), &found)?;
            memory::note_standing(store, None, &found)?;
            Ok(found)
        })
        .await
    }

    /// Live reservations after one, by id, at most `limit`.
    pub async fn page(
        self,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<Reservation>, LedgerError> {
        self.write(async |store| {
            let mut conn = store.reader.acquire().await?;
            let mut query = QueryBuilder::new("select ");
            table::push_columns(&mut query, &*conn, store.clock.now_us());
            query.push(" from reservation where reservation_id > ");
            query.push_bind(after.unwrap_or_default().as_bytes().to_vec());
            query.push(" order by reservation_id limit ").push_bind(gaps::bounded(limit));
            let rows: Vec<Kept> =
                query.build().typed::<ReservationRow>().fetch_all_into(&mut *conn).await?;
            Ok(rows.into_iter().map(|kept| kept.reservation).collect())
        })
        .await
    }

    /// Confirms or cancels a reservation for a node's caller. One statement changes it, from
    /// `reserved` alone, and never one of a partition that is held (L1, L8). Safe to repeat. A
    /// confirmed number may be told to its caller once this has returned, and only while the node
    /// may still hand out.
    ///
    /// # Errors
    /// `LockTimeout` where another transaction, such as its caller's own, holds it: worth a retry.
    /// After `Unreachable` with `maybe_written` it may be done: a repeated call says so. `WentBack`
    /// where the reservation shows less than what is known of it, its value or its document (L12):
    /// no retry helps before the processes have agreed on a ledger.
    pub async fn act(
        self,
        node: NodeId,
        id: Uuid,
        act: &ReservationAct,
        by: &str,
    ) -> Result<Acted, LedgerError> {
        self.call(CALL, async |store| {
            let upto = store.last_seen.takes().noted();
            let mut tx = store.begin_as(node).await?;
            // Behind the wait for another writer.
            let now_us = store.clock.now_us();
            let acted = match change(&mut *tx, id, act, (by, now_us)).await? {
                Some(reservation) => {
                    memory::must_have_waited(store, node, &reservation)?;
                    let standing = ReservationStanding::Live(reservation);
                    Acted { standing, outcome: ActOutcome::Done }
                }
                None => {
                    let standing = standing(&mut *tx, id, now_us).await?;
                    must_show_known(store, (Some(node), upto), &standing)?;
                    let outcome = act.refused(&standing);
                    Acted { standing, outcome }
                }
            };
            commit(tx).await?;
            memory::note_standing(store, Some(node), &acted.standing)
                .map_err(LedgerError::behind_commit)?;
            Ok(acted)
        })
        .await
    }

    /// How many are live of each series that has any. Reads the whole table.
    pub async fn live_of_series(self) -> Result<Vec<(i64, u64)>, LedgerError> {
        self.read(async |reader| {
            let rows: Vec<(i64, i64)> =
                query_as("select series_id, count(*) from reservation group by series_id")
                    .fetch_all(reader)
                    .await?;
            let live = |(id, live)| Ok((id, unsigned(live, "reservation")?));
            rows.into_iter().map(live).collect()
        })
        .await
    }

    /// How many are live, and for how long the oldest wait.
    pub async fn counts(self) -> Result<ReservationCounts, LedgerError> {
        self.write(async |store| {
            let mut conn = store.reader.acquire().await?;
            let mut query = QueryBuilder::new(
                "select state, count(*) as live, min(changed_at_us) as changed_at_us,
                 min(expires_at_us) as expires_at_us, ",
            );
            push_clock(&mut query, &*conn, store.clock.now_us());
            query.push(" as now_us from reservation group by state");
            let rows: Vec<CountRow> = query.build().typed().fetch_all(&mut *conn).await?;
            let mut counts = ReservationCounts::default();
            for row in rows {
                let live = unsigned(row.live, "reservation")?;
                let since = |at_us: i64| row.now_us.saturating_sub(at_us).max(0);
                match crate::ReservationState::read(&row.state)? {
                    crate::ReservationState::Reserved => {
                        counts.reserved = live;
                        counts.over_for_us = since(row.expires_at_us);
                    }
                    crate::ReservationState::Confirmed => {
                        counts.confirmed = live;
                        counts.confirmed_for_us = row.changed_at_us.map_or(0, since);
                    }
                    crate::ReservationState::Cancelled => counts.cancelled = live,
                }
            }
            Ok(counts)
        })
        .await
    }
}

/// Refuses a live one that shows less than what was known before it was read (L12).
fn must_show_known(
    store: &Store,
    asked: memory::Asked,
    standing: &ReservationStanding,
) -> Result<(), LedgerError> {
    match standing {
        ReservationStanding::Live(live) => memory::must_show_known(store, asked, [live]),
        _ => Ok(()),
    }
}

/// How many are in a state, and the oldest of them.
#[derive(FromRow)]
struct CountRow {
    state: String,
    live: i64,
    changed_at_us: Option<i64>,
    expires_at_us: i64,
    now_us: i64,
}

/// The one statement that changes a reservation; none where it changed nothing.
async fn change(
    conn: &mut Conn,
    id: Uuid,
    act: &ReservationAct,
    (by, now_us): (&str, i64),
) -> Result<Option<Reservation>, LedgerError> {
    let (state, reason) = match act {
        ReservationAct::Confirm => ("confirmed", None),
        ReservationAct::Cancel { reason } => ("cancelled", reason.clone()),
    };
    let mut query = QueryBuilder::new("update reservation set state = ");
    query.push_bind(state).push(", changed_at_us = ");
    push_clock(&mut query, conn, now_us);
    query.push(", changed_by = ").push_bind(by.to_owned());
    query.push(", reason = ").push_bind(reason);
    query.push(" where reservation_id = ").push_bind(id.as_bytes().to_vec());
    // A block ends as a whole, under its counter's row.
    query.push(" and state = 'reserved' and first_value = last_value");
    if *act == ReservationAct::Confirm {
        query.push(" and expires_at_us > ");
        push_clock(&mut query, conn, now_us);
    }
    query.push(
        " and exists (select 1 from counter c join partition p on p.partition_id = c.partition_id
         where c.counter_id = reservation.counter_id and p.state <> 'held') returning ",
    );
    table::push_columns(&mut query, conn, now_us);
    let row: Option<Kept> =
        query.build().typed::<ReservationRow>().fetch_optional_into(conn).await?;
    Ok(row.map(|row| row.reservation))
}

/// Where a reservation stands: each place is asked after the one that it moves on from.
async fn standing(
    conn: &mut Conn,
    id: Uuid,
    now_us: i64,
) -> Result<ReservationStanding, LedgerError> {
    if let Some(live) = table::by_id(conn, id, now_us).await? {
        return Ok(ReservationStanding::Live(live));
    }
    // Before its end: what was lost with the ledger may have been told again since.
    if let Some(issued) = lookup::earlier(conn, &[id]).await?.remove(&id) {
        return Ok(ReservationStanding::Issued(issued));
    }
    let ended: Option<EndedRow> = query_as(
        "select act, at_us, subject, number, document_id, user_id, reason, detail from life
         where subject = $1 and act in ('cancelled', 'expired', 'lost', 'handed-back') limit 1",
    )
    .bind(id.as_bytes().as_slice())
    .fetch_optional(&mut *conn)
    .await?;
    let Some(row) = ended else { return Ok(ReservationStanding::Unknown) };
    Ok(ReservationStanding::Ended(row.try_into()?))
}

/// The row that a reservation leaves that ends.
#[derive(FromRow)]
struct EndedRow {
    act: String,
    at_us: i64,
    subject: Vec<u8>,
    number: Option<String>,
    document_id: Option<String>,
    user_id: String,
    reason: Option<String>,
    detail: Option<String>,
}

impl TryFrom<EndedRow> for EndedReservation {
    type Error = LedgerError;

    fn try_from(row: EndedRow) -> Result<Self, LedgerError> {
        let end = ReservationEnd::read(&row.act)?;
        let detail = row.detail.as_deref().filter(|_| end == ReservationEnd::HandedBack);
        let handed_back = detail.map(HandedBack::read).transpose()?;
        Ok(EndedReservation {
            reservation_id: read_uuid(&row.subject, "life.subject")?,
            end,
            ended_at_us: row.at_us,
            number: row.number.unwrap_or_default(),
            document_id: row.document_id,
            user_id: row.user_id,
            reason: row.reason,
            handed_back,
        })
    }
}

impl Audits<'_> {
    /// What is wrong with reservations and returned values, at most `limit` of each kind.
    pub async fn reservation_findings(
        self,
        limit: u32,
    ) -> Result<Vec<ReservationFinding>, LedgerError> {
        self.search(async |store| {
            let mut tx = store.reader.begin_snapshot().await?;
            tx.allow_long_search().await?;
            let mut findings = pool::deviations(&mut *tx, limit).await?;
            let above: Vec<(i64, i64)> = query_as(
                "select r.counter_id, r.last_value from reservation r
                 left join counter c on c.counter_id = r.counter_id
                 where coalesce(r.last_value > c.taken, true)
                 order by r.counter_id, r.first_value limit $1",
            )
            .bind(gaps::bounded(limit))
            .fetch_all(&mut *tx)
            .await?;
            let above_taken =
                |(counter_id, value)| ReservationFinding::AboveTaken { counter_id, value };
            findings.extend(above.into_iter().map(above_taken));
            let mut late = QueryBuilder::new(
                "select reservation_id, number from reservation where state = 'confirmed'
                 and changed_at_us < ",
            );
            push_clock(&mut late, &*tx, store.clock.now_us());
            late.push(" - ").push_bind(JOURNALED_WITHIN_US);
            late.push(" order by changed_at_us limit ").push_bind(gaps::bounded(limit));
            let late: Vec<(Vec<u8>, String)> = late.build().typed().fetch_all(&mut *tx).await?;
            for (id, number) in late {
                let reservation_id = read_uuid(&id, "reservation.reservation_id")?;
                findings.push(ReservationFinding::NotJournaled { reservation_id, number });
            }
            tx.commit().await?;
            Ok(findings)
        })
        .await
    }
}
