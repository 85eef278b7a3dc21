//! Rows of `reservation`: reading, finding, making. Owns its columns.

use sqlx_macros::FromRow;
use uuid::Uuid;

use crate::columns::{Word as _, raw, read_raw};
use crate::dialect::Conn;
use crate::new_row::NewRow;
use crate::query::{QueryBuilder, Row, SqlQuery, query};
use crate::{
    AsideNames, Entry, Found, LedgerError, Projects, Question, Reservation, ReservationState,
    document_hash, key_hash,
};

/// The columns of a reservation, but for whether its time is over.
const COLUMNS: &str = "reservation_id, state, expires_at_us, returns, turn, raw,
     reserved_at_us, changed_at_us, changed_by, reason";

/// The ledger's clock at the moment of a statement: the server's, else the process's.
pub(crate) fn push_clock(query: &mut QueryBuilder<'_>, conn: &Conn, now_us: i64) {
    match conn.clock() {
        Some(clock) => query.push(clock),
        None => query.push_bind(now_us),
    };
}

/// Adds the columns of reservations.
pub(crate) fn push_columns(query: &mut QueryBuilder<'_>, conn: &Conn, now_us: i64) {
    query.push(COLUMNS).push(", cast(case when expires_at_us <= ");
    push_clock(query, conn, now_us);
    query.push(" then 1 else 0 end as integer) as is_over");
}

/// A reservation as it is kept.
#[derive(FromRow)]
pub(crate) struct ReservationRow {
    reservation_id: Vec<u8>,
    state: String,
    expires_at_us: i64,
    returns: i32,
    turn: i64,
    raw: String,
    reserved_at_us: i64,
    changed_at_us: Option<i64>,
    changed_by: Option<String>,
    reason: Option<String>,
    is_over: i32,
}

/// A reservation, and whether its value may be issued again once it ends.
pub(crate) struct Kept {
    pub(crate) id: Vec<u8>,
    pub(crate) reservation: Reservation,
    pub(crate) returns: bool,
}

impl TryFrom<ReservationRow> for Kept {
    type Error = LedgerError;

    fn try_from(row: ReservationRow) -> Result<Self, LedgerError> {
        let reservation = Reservation {
            entry: read_raw(&row.raw)?,
            state: ReservationState::read(&row.state)?,
            expires_at_us: row.expires_at_us,
            is_over: row.is_over != 0,
            turn: row.turn,
            reserved_at_us: row.reserved_at_us,
            changed_at_us: row.changed_at_us,
            changed_by: row.changed_by,
            reason: row.reason,
        };
        Ok(Kept { id: row.reservation_id, reservation, returns: row.returns != 0 })
    }
}

/// The statement for one by its id.
fn select_by_id(conn: &Conn, id: Uuid, now_us: i64) -> SqlQuery<'static> {
    let mut query = QueryBuilder::new("select ");
    push_columns(&mut query, conn, now_us);
    query.push(" from reservation where reservation_id = ");
    query.push_bind(id.as_bytes().to_vec());
    query.build()
}

/// One by its id.
pub(crate) async fn by_id(
    conn: &mut Conn,
    id: Uuid,
    now_us: i64,
) -> Result<Option<Reservation>, LedgerError> {
    let query = select_by_id(conn, id, now_us);
    let row: Option<Kept> = query.typed::<ReservationRow>().fetch_optional_into(conn).await?;
    Ok(row.map(|row| row.reservation))
}

/// One by its id, locked. Its counter's row is locked before.
pub(crate) async fn lock(
    conn: &mut Conn,
    id: Uuid,
    now_us: i64,
) -> Result<Option<Kept>, LedgerError> {
    let query = select_by_id(conn, id, now_us).for_update();
    query.typed::<ReservationRow>().fetch_optional_into(conn).await
}

/// What stands beside the journal at all.
#[derive(Clone, Copy, Default)]
pub(crate) struct Beside {
    /// Whether any number is reserved.
    pub(crate) is_any_reserved: bool,
    /// Whether a number of a range may be assigned to one of the documents that are asked for: by
    /// their hashes.
    pub(crate) is_any_assigned: bool,
}

/// What reservations answer to questions, one statement for all, and what stands beside the journal
/// at all. Asked before the journal: one that is journaled meanwhile is found there.
pub(crate) async fn answer(
    conn: &mut Conn,
    questions: &[Question],
    projects: &[Projects],
    now_us: i64,
    found: &mut [Found],
) -> Result<Beside, LedgerError> {
    let keys = |question: &Question| {
        let key = question.idempotency_key.as_deref()?;
        Some(key_hash(&question.user_id, key))
    };
    let documents = |question: &Question| question.document_id.as_deref().map(document_hash);
    let mut query = QueryBuilder::new("select there.is_any, there.is_any_assigned, ");
    push_columns(&mut query, conn, now_us);
    query.push(
        " from (select (select count(*) from (select 1 from reservation
         order by counter_id, first_value limit 1) as one) as is_any,
         (select count(*) from (select 1 from assignment where document_hash",
    );
    query.push_among(questions.iter().filter_map(documents).collect::<Vec<i64>>());
    query.push(" limit 1) as one) as is_any_assigned) as there left join reservation on key_hash");
    query.push_among(questions.iter().filter_map(keys).collect::<Vec<i64>>());
    query.push(" or document_hash");
    query.push_among(questions.iter().filter_map(documents).collect::<Vec<i64>>());
    let mut beside = Beside::default();
    for row in query.build().fetch_all(conn).await? {
        beside.is_any_reserved |= row.try_get::<i64>("is_any")? != 0;
        beside.is_any_assigned |= row.try_get::<i64>("is_any_assigned")? != 0;
        if row.try_get::<Option<i64>>("expires_at_us")?.is_none() {
            continue;
        }
        let reservation = read(&row)?;
        for ((question, of), found) in questions.iter().zip(projects).zip(found.iter_mut()) {
            meet(question, of, &reservation, found);
        }
    }
    Ok(beside)
}

fn read(row: &Row) -> Result<Reservation, LedgerError> {
    let kept: Kept = row.decode::<ReservationRow>()?.try_into()?;
    Ok(kept.reservation)
}

/// Adds a reservation to what was found for a question, where it answers it. A live one does so
/// whatever its age.
fn meet(question: &Question, of: &Projects, reservation: &Reservation, found: &mut Found) {
    let entry = &reservation.entry;
    let any_age = Question { since_us: i64::MIN, ..question.clone() };
    let is_issued = reservation.state == ReservationState::Confirmed;
    if any_age.is_keyed_like(entry) {
        match is_issued {
            true => found.by_key = Some(reservation.issued()),
            false => found.reserved_by_key = Some(Box::new(reservation.clone())),
        }
    }
    if any_age.is_of_document(entry, of) && question.is_answered_by(entry) {
        match is_issued {
            true => found.by_document = Some(reservation.issued()),
            // The earliest: what is known of it holds of all others (L12).
            false => {
                let other = found.reserved_by_document.take();
                let earlier = other.filter(|other| other.turn < reservation.turn);
                found.reserved_by_document =
                    Some(earlier.unwrap_or_else(|| Box::new(reservation.clone())));
            }
        }
    }
}

/// Whether any number is reserved: one of a locked counter is seen.
pub(crate) async fn is_any(conn: &mut Conn) -> Result<bool, LedgerError> {
    // As in `is_any_reserved!`.
    let any = query("select 1 from reservation order by counter_id, first_value limit 1");
    Ok(any.fetch_optional(conn).await?.is_some())
}

/// The reservations that have a text of one of these hashes, blocks by each of their texts, as
/// (number, scope, id).
pub(crate) async fn named(
    conn: &mut Conn,
    number_hashes: Vec<i64>,
) -> Result<Vec<(String, String, Vec<u8>)>, LedgerError> {
    if number_hashes.is_empty() {
        return Ok(Vec::new());
    }
    let mut query = QueryBuilder::new(
        "select number, scope, reservation_id from reservation where number_hash",
    );
    query.push_among(number_hashes.clone());
    query.push(" union all select number, scope, reservation_id from block_number where ");
    query.push("number_hash").push_among(number_hashes);
    Ok(query.build().typed().fetch_all(conn).await?)
}

/// The reservations of counters that reach into a run of values, as (counter, first, last, id).
pub(crate) async fn of_counters(
    conn: &mut Conn,
    counters: Vec<i64>,
    (from, to): (i64, i64),
) -> Result<Vec<(i64, i64, i64, Vec<u8>)>, LedgerError> {
    if counters.is_empty() {
        return Ok(Vec::new());
    }
    let mut query = QueryBuilder::new(
        "select counter_id, first_value, last_value, reservation_id from reservation
         where counter_id",
    );
    query.push_among(counters);
    query.push(" and first_value <= ").push_bind(to);
    query.push(" and last_value >= ").push_bind(from);
    Ok(query.build().typed().fetch_all(conn).await?)
}

/// A reservation to be made.
pub(crate) struct NewReservation<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) reserved_at_us: i64,
    pub(crate) expires_at_us: i64,
    /// Whether its value may be issued again once it ends.
    pub(crate) returns: bool,
    /// See [`Reservation::turn`].
    pub(crate) turn: i64,
}

/// Makes one whose counter is locked; false where another reservation has its value, its text or
/// its caller's key.
pub(crate) async fn insert(
    conn: &mut Conn,
    new: &NewReservation<'_>,
    row: &NewRow<'_>,
) -> Result<bool, LedgerError> {
    let (entry, names) = (new.entry, AsideNames::of(new.entry));
    let record = &*entry.record;
    let done = query(
        "insert into reservation (reservation_id, state, expires_at_us, counter_id, first_value,
         last_value, step, number, scope, series_id, document_id, user_id, returns, raw,
         number_hash, document_hash, key_hash, reserved_at_us, turn)
         select $1, 'reserved', $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
         $17, $18 where not exists (select 1 from block_number where number_hash = $14
         and number = $7 and scope = $8) on conflict do nothing",
    )
    .bind(record.allocation_id.as_bytes().as_slice())
    .bind(new.expires_at_us)
    .bind(row.value_range.counter_id)
    .bind(row.value_range.first)
    .bind(row.value_range.last)
    .bind(row.step)
    .bind(&entry.number)
    .bind(&record.scope)
    .bind(record.series_id)
    .bind(&record.document_id)
    .bind(&record.user_id)
    .bind(i32::from(new.returns))
    .bind(raw(entry))
    .bind(names.number)
    .bind(names.document)
    .bind(names.key)
    .bind(new.reserved_at_us)
    .bind(new.turn)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Removes reservations that have ended or are journaled, in the same transaction.
pub(crate) async fn remove(conn: &mut Conn, ids: Vec<Vec<u8>>) -> Result<u64, LedgerError> {
    if ids.is_empty() {
        return Ok(0);
    }
    let mut query = QueryBuilder::new("delete from reservation where reservation_id");
    query.push_among(ids);
    Ok(query.build().execute(conn).await?.rows_affected())
}
