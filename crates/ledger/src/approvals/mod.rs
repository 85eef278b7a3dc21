//! Changes of counters that two people answer for: requested, listed, refused, approved.
//!
//! An approval and its change are one transaction, which holds the request's row from its
//! beginning: of two concurrent answers the second one finds the request answered. The change is
//! checked anew there, and does not rely on what was shown at the request.

pub(crate) mod dates;
pub(crate) mod jump;
pub(crate) mod rows;

use numerator_runtime::actor::FoldedActor;
use serde_json::{Value, json};
use sqlx_macros::FromRow;

use crate::calls::{CALL, noun};
use crate::columns::{Word, hash64, signed, unreadable, unsigned};
use crate::dialect::{Conn, Transaction};
use crate::events::insert_event;
use crate::query::{QueryBuilder, query, query_scalar};
use crate::store::{Store, commit_alone};
use crate::tokens::in_force::{must_be_in_force, must_stay_in_force};
use crate::{
    CHANGES_PENDING_MAX, ChangeDecision, ChangeRefusal, ChangeRequest, ChangeState, Event,
    LedgerError, NewChange, ShownToken, WantedChange,
};

noun!(
    /// Changes of counters that two people answer for.
    Approvals,
    approvals
);

impl Approvals<'_> {
    /// Requests a change. Refused immediately where it could not be made now; it may still be
    /// refused when it is approved.
    ///
    /// # Errors
    /// `Change` where it could not be made, and where too many requests are pending; `Token` where
    /// the token of the request is no longer in force, as for an answer.
    pub async fn request(self, new: &NewChange) -> Result<ChangeRequest, LedgerError> {
        self.search(async |store| request(store, new).await).await
    }

    /// Requests before one, newest first, at most `limit`; on request only those that wait for an
    /// answer and may still get it.
    pub async fn list(
        self,
        before: Option<i64>,
        pending_only: bool,
        limit: u32,
    ) -> Result<Vec<ChangeRequest>, LedgerError> {
        self.call(CALL, async |store| {
            let mut query = select();
            query.push(" where 1 = 1");
            if let Some(before) = before {
                query.push(" and r.change_request_id < ").push_bind(before);
            }
            if pending_only {
                query.push(" and r.state = 'pending' and r.expires_at_us > ");
                query.push_bind(store.clock.now_us());
            }
            query.push(" order by r.change_request_id desc limit ").push_bind(i64::from(limit));
            query.build().typed::<ChangeRow>().fetch_all_into(&store.reader).await
        })
        .await
    }

    /// One request.
    ///
    /// # Errors
    /// `Change` where there is none.
    pub async fn get(self, change_id: i64) -> Result<ChangeRequest, LedgerError> {
        self.read(async |reader| {
            let mut conn = reader.acquire().await?;
            read(&mut *conn, change_id).await
        })
        .await
    }

    /// The change that left a gap at this value, if any.
    pub async fn behind(
        self,
        counter_id: i64,
        value: i64,
    ) -> Result<Option<ChangeRequest>, LedgerError> {
        self.read(async |reader| {
            let mut query = select();
            query.push(" where r.state = 'approved' and r.counter_id = ").push_bind(counter_id);
            query.push(" and r.stood_at < ").push_bind(value);
            query.push(" and r.next_value > ").push_bind(value);
            query.push(" order by r.change_request_id limit 1");
            query.build().typed::<ChangeRow>().fetch_optional_into(reader).await
        })
        .await
    }

    /// Refuses a request, or withdraws one's own, and returns it.
    ///
    /// # Errors
    /// `Change` where there is none, and where it is already answered.
    pub async fn reject(self, decision: &ChangeDecision) -> Result<ChangeRequest, LedgerError> {
        self.write(async |store| {
            let now_us = store.clock.now_us();
            let mut tx = store.begin().await?;
            must_be_in_force(&mut *tx, decision.shown, now_us).await?;
            let request = lock_pending(&mut *tx, decision.change_id).await?;
            decide(&mut *tx, (&request, decision), ChangeState::Rejected, now_us).await?;
            let detail = json!({ "is_own": is_own(&request, decision) });
            note(&mut *tx, (decision, now_us), "change-rejected", &request, detail).await?;
            let request = read(&mut *tx, decision.change_id).await?;
            commit_in_force(store, tx, decision.shown).await?;
            Ok(request)
        })
        .await
    }

    /// Approves a request and makes the change, both or neither, and returns it.
    ///
    /// # Errors
    /// `Change` where it does not exist, is answered, is too old, or was made by the approver;
    /// where an issued number could come again; and where Redis counts the counter (`InRedis`):
    /// then the database has to take its partition over first.
    pub async fn approve(self, decision: &ChangeDecision) -> Result<ChangeRequest, LedgerError> {
        self.search(async |store| approve(store, decision).await).await
    }
}

async fn request(store: &Store, new: &NewChange) -> Result<ChangeRequest, LedgerError> {
    let now_us = store.clock.now_us();
    let mut tx = store.begin().await?;
    must_be_in_force(&mut *tx, new.shown, now_us).await?;
    let (mut next_value, mut family, mut last_date, mut dated_later) = (None, None, None, None);
    match &new.wanted {
        WantedChange::NextValue(next) => {
            jump::try_out(&mut *tx, new, *next).await?;
            next_value = Some(signed(*next, "next_value")?);
        }
        WantedChange::LastDate { family: key, date } => {
            dated_later = Some(dates::try_out(&mut *tx, new, (key, date), now_us).await?);
            (family, last_date) = (Some(&**key), Some(&**date));
        }
    }
    must_have_room(&mut *tx, now_us).await?;
    let change_id: i64 = query_scalar(
        "insert into change_request (series_id, counter_id, step, next_value, family, last_date,
         dated_later, reason, requested_by, requested_at_us, expires_at_us, state)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'pending')
         returning change_request_id",
    )
    .bind(new.series_id)
    .bind(new.counter_id)
    .bind(signed(new.step, "step")?)
    .bind(next_value)
    .bind(family)
    .bind(last_date)
    .bind(dated_later)
    .bind(&new.reason)
    .bind(&new.requested_by)
    .bind(now_us)
    .bind(new.expires_at_us)
    .fetch_one(&mut *tx)
    .await?;
    let request = read(&mut *tx, change_id).await?;
    let (decided_by, reason) = (new.requested_by.clone(), Some(new.reason.clone()));
    let (step, shown) = (new.step, new.shown);
    let asked = ChangeDecision { change_id, decided_by, reason, step, shown };
    let detail = json!({ "expires_at_us": new.expires_at_us });
    note(&mut *tx, (&asked, now_us), "change-requested", &request, detail).await?;
    commit_in_force(store, tx, new.shown).await?;
    Ok(request)
}

/// Refuses a request above the maximum of pending ones. From here on others wait, except during a
/// search: two concurrent requests would both find the last room.
async fn must_have_room(conn: &mut Conn, now_us: i64) -> Result<(), LedgerError> {
    let one_at_a_time = i64::from_be_bytes(hash64("numerator change requests").to_be_bytes());
    conn.lock_names(&[one_at_a_time]).await?;
    let waiting: i64 = query_scalar(
        "select count(*) from change_request where state = 'pending' and expires_at_us > $1",
    )
    .bind(now_us)
    .fetch_one(conn)
    .await?;
    if unsigned(waiting, "change_request")? >= CHANGES_PENDING_MAX {
        return Err(ChangeRefusal::TooMany.into());
    }
    Ok(())
}

/// Commits a request made with a token, if the token is in force now. Its row is locked here and
/// not earlier: the work before may take minutes, and a revocation waits for one commit only.
async fn commit_in_force(
    store: &Store,
    mut tx: Transaction,
    shown: Option<ShownToken>,
) -> Result<(), LedgerError> {
    must_stay_in_force(&mut *tx, shown, store.clock.now_us()).await?;
    commit_alone(store, tx).await
}

/// Whether the person who answers a request also made it, under any of their names.
fn is_own(request: &ChangeRequest, decision: &ChangeDecision) -> bool {
    let [asks, answers] =
        [&request.requested_by, &decision.decided_by].map(|it| FoldedActor::of(it));
    asks.is_of_one_with(&answers)
}

async fn approve(store: &Store, decision: &ChangeDecision) -> Result<ChangeRequest, LedgerError> {
    let now_us = store.clock.now_us();
    let mut tx = store.begin().await?;
    must_be_in_force(&mut *tx, decision.shown, now_us).await?;
    let request = lock_pending(&mut *tx, decision.change_id).await?;
    if request.expires_at_us <= now_us {
        return Err(ChangeRefusal::Expired(request.change_id).into());
    }
    if is_own(&request, decision) {
        return Err(ChangeRefusal::Own(request.requested_by).into());
    }
    match &request.wanted {
        WantedChange::NextValue(next) => {
            jump::make(&mut *tx, &request, *next, (decision.step, now_us)).await?;
        }
        WantedChange::LastDate { family, date } => {
            dates::make(&mut *tx, &request, (family, date), now_us).await?;
        }
    }
    decide(&mut *tx, (&request, decision), ChangeState::Approved, now_us).await?;
    let request = read(&mut *tx, decision.change_id).await?;
    let detail = json!({
        "requested_by": request.requested_by, "stood_at": request.stands_at,
        "stood_on": request.stands_on, "skipped": request.skipped(),
    });
    note(&mut *tx, (decision, now_us), "change-approved", &request, detail).await?;
    commit_in_force(store, tx, decision.shown).await?;
    Ok(request)
}

/// Locks a pending request.
async fn lock_pending(conn: &mut Conn, change_id: i64) -> Result<ChangeRequest, LedgerError> {
    // The lock only: a later read sees what the previous holder left.
    query_scalar::<i64>(
        "select change_request_id from change_request where change_request_id = $1",
    )
    .for_update()
    .bind(change_id)
    .fetch_optional(&mut *conn)
    .await?
    .ok_or(ChangeRefusal::Unknown(change_id))?;
    let request = read(conn, change_id).await?;
    match request.state {
        ChangeState::Pending => Ok(request),
        state => Err(ChangeRefusal::Decided { change_id, state }.into()),
    }
}

/// Writes an answer, with the names of both as the ledger compares them itself.
async fn decide(
    conn: &mut Conn,
    (request, decision): (&ChangeRequest, &ChangeDecision),
    state: ChangeState,
    now_us: i64,
) -> Result<(), LedgerError> {
    let asks = FoldedActor::of(&request.requested_by);
    let answers = FoldedActor::of(&decision.decided_by);
    query(
        "update change_request set state = $2, decided_by = $3, decided_at_us = $4,
         decision_reason = $5, requested_identity = $6, requested_person = $7,
         decided_identity = $8, decided_person = $9 where change_request_id = $1",
    )
    .bind(decision.change_id)
    .bind(state.word())
    .bind(&decision.decided_by)
    .bind(now_us)
    .bind(decision.reason.as_deref())
    .bind(asks.identity)
    .bind(asks.person)
    .bind(answers.identity)
    .bind(answers.person)
    .execute(conn)
    .await?;
    Ok(())
}

/// Notes the act and its user, with further details.
async fn note(
    conn: &mut Conn,
    (decision, at_us): (&ChangeDecision, i64),
    kind: &str,
    request: &ChangeRequest,
    mut detail: Value,
) -> Result<(), LedgerError> {
    let series: Option<String> = query_scalar("select code from series where series_id = $1")
        .bind(request.series_id)
        .fetch_optional(&mut *conn)
        .await?;
    let (next_value, last_date) = match &request.wanted {
        WantedChange::NextValue(next) => (Some(next), None),
        WantedChange::LastDate { date, .. } => (None, Some(date)),
    };
    let common = json!({
        "change_id": request.change_id, "change": request.wanted.kind(), "series": series,
        "counter_id": request.counter_id, "counter_key": request.key, "next_value": next_value,
        "last_date": last_date, "user": decision.decided_by, "reason": decision.reason,
    });
    if let (Value::Object(detail), Value::Object(common)) = (&mut detail, common) {
        detail.extend(common);
    }
    let (kind, partition, epoch, node_id) = (kind.to_owned(), None, None, None);
    insert_event(conn, &Event { at_us, kind, partition, epoch, node_id, detail }).await
}

/// Pending requests are shown as of now.
fn select<'q>() -> QueryBuilder<'q> {
    QueryBuilder::new(
        "select r.change_request_id, r.series_id, r.counter_id, c.serial, c.key, r.step,
         r.next_value, coalesce(r.stood_at, c.taken) as stands_at, r.family, r.last_date,
         coalesce(r.stood_on, h.last_date) as stands_on, r.dated_later, r.reason,
         r.requested_by, r.requested_at_us, r.expires_at_us, r.state, r.decided_by,
         r.decided_at_us, r.decision_reason from change_request r
         join counter c on c.counter_id = r.counter_id
         left join chronology h on h.series_id = r.series_id and h.serial = c.serial
         and h.family = r.family",
    )
}

async fn read(conn: &mut Conn, change_id: i64) -> Result<ChangeRequest, LedgerError> {
    let mut query = select();
    query.push(" where r.change_request_id = ").push_bind(change_id);
    let row: Option<ChangeRow> = query.build().typed().fetch_optional(conn).await?;
    row.ok_or(ChangeRefusal::Unknown(change_id))?.try_into()
}

/// The columns of a request, as [`select`] names them.
#[derive(FromRow)]
struct ChangeRow {
    change_request_id: i64,
    series_id: i64,
    counter_id: i64,
    serial: String,
    key: String,
    step: i64,
    next_value: Option<i64>,
    stands_at: i64,
    family: Option<String>,
    last_date: Option<String>,
    stands_on: Option<String>,
    dated_later: Option<i64>,
    reason: String,
    requested_by: String,
    requested_at_us: i64,
    expires_at_us: i64,
    state: String,
    decided_by: Option<String>,
    decided_at_us: Option<i64>,
    decision_reason: Option<String>,
}

impl TryFrom<ChangeRow> for ChangeRequest {
    type Error = LedgerError;

    fn try_from(row: ChangeRow) -> Result<Self, LedgerError> {
        let dateless = || unreadable("change_request.last_date", "null");
        let wanted = match (row.next_value, row.family) {
            (None, Some(family)) => {
                WantedChange::LastDate { family, date: row.last_date.ok_or_else(dateless)? }
            }
            (next, _) => WantedChange::NextValue(unsigned(next.unwrap_or(0), "next_value")?),
        };
        let dated_later = row.dated_later.map(|later| unsigned(later, "dated_later"));
        Ok(ChangeRequest {
            change_id: row.change_request_id,
            series_id: row.series_id,
            counter_id: row.counter_id,
            serial: row.serial,
            key: row.key,
            wanted,
            step: unsigned(row.step, "change_request.step")?,
            stands_at: row.stands_at,
            stands_on: row.stands_on,
            dated_later: dated_later.transpose()?,
            reason: row.reason,
            requested_by: row.requested_by,
            requested_at_us: row.requested_at_us,
            expires_at_us: row.expires_at_us,
            state: ChangeState::read(&row.state)?,
            decided_by: row.decided_by,
            decided_at_us: row.decided_at_us,
            decision_reason: row.decision_reason,
        })
    }
}
