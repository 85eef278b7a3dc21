//! Checks of interface serials and steps of system serials. Every decision is made on the serial's
//! own row, which its transaction holds: a value read earlier decides nothing.

pub(crate) mod chain;
pub(crate) mod rows;

use sqlx_macros::FromRow;

use crate::calls::{CALL, noun};
use crate::columns::{Word, signed, small, unsigned};
use crate::dialect::Conn;
use crate::exchange::rows::StepRow;
use crate::query::{query, query_as};
use crate::store::commit_alone;
use crate::{
    BeginStep, Begun, Checked, EndStep, Ended, Ending, FirstSeen, InterfaceCheck, LedgerError,
    Principal, Step, StepState,
};

/// The sight of an interface serial.
const SEEN: &str = "select accepted_at_us, accepted_by, accepted_key, repeats from interface_check
     where serial = $1";

/// The step of a serial.
const STEP: &str = "select serial, unified_serial, state, attempt, begun_at_us, begun_by,
     begun_key, ended_at_us, ended_by, result, reason from system_step where serial = $1";

noun!(
    /// Sights of interface serials and steps of system serials.
    Exchange,
    exchange
);

impl Exchange<'_> {
    /// Notes the sight of an interface serial, unless it was seen within the window: then the
    /// repetition is counted. Safe to repeat under a key.
    pub async fn check(self, check: &InterfaceCheck) -> Result<Checked, LedgerError> {
        self.write(async |store| {
            let mut tx = store.begin().await?;
            let now_us = store.clock.now_us();
            // Waits for a transaction that is noting the same serial, and then sees its outcome.
            let noted = query(
                "insert into interface_check (serial, accepted_at_us, accepted_by, accepted_key)
                 values ($1, $2, $3, $4)
                 on conflict (serial) do update set accepted_at_us = excluded.accepted_at_us,
                 accepted_by = excluded.accepted_by, accepted_key = excluded.accepted_key,
                 repeats = 0, repeated_at_us = null
                 where interface_check.accepted_at_us <= $5",
            )
            .bind(&check.serial)
            .bind(now_us)
            .bind(&check.principal.user_id)
            .bind(&check.principal.key)
            .bind(now_us.saturating_sub(check.window_us))
            .execute(&mut *tx)
            .await?;
            let checked = if noted.rows_affected() == 1 {
                let event = SerialEvent {
                    serial: &check.serial,
                    unified_serial: check.unified_serial.as_deref(),
                    kind: "accepted",
                    attempt: None,
                    reason: None,
                };
                event.write(&mut *tx, now_us, &check.principal).await?;
                Checked::Accepted { at_us: now_us, replayed: false }
            } else {
                repeated(&mut *tx, check, now_us).await?
            };
            commit_alone(store, tx).await?;
            Ok(checked)
        })
        .await
    }

    /// Begins a step that is unknown or has failed. Time alone never ends an attempt. Safe to
    /// repeat under a key.
    pub async fn begin_step(self, begin: &BeginStep) -> Result<Begun, LedgerError> {
        self.write(async |store| {
            let mut tx = store.begin().await?;
            let now_us = store.clock.now_us();
            let Principal { user_id, key, .. } = &begin.principal;
            let new = query(
                "insert into system_step (serial, unified_serial, state, attempt, begun_at_us,
                 begun_by,
                 begun_key) values ($1, $2, 'in-progress', 1, $3, $4, $5) on conflict (serial) do
                 nothing",
            )
            .bind(&begin.serial)
            .bind(&begin.unified_serial)
            .bind(now_us)
            .bind(user_id)
            .bind(key)
            .execute(&mut *tx)
            .await?;
            let begun = if new.rows_affected() == 1 {
                Begun::Run(locked(&mut *tx, &begin.serial).await?.ok_or_else(lost)?)
            } else {
                let step = locked(&mut *tx, &begin.serial).await?.ok_or_else(lost)?;
                match met(step, begin) {
                    Begun::Run(failed) => {
                        Begun::Run(next_attempt(&mut *tx, failed, begin, now_us).await?)
                    }
                    begun => begun,
                }
            };
            if let Begun::Run(step) = &begun {
                SerialEvent::of_step(step, "begun")
                    .write(&mut *tx, now_us, &begin.principal)
                    .await?;
            }
            commit_alone(store, tx).await?;
            Ok(begun)
        })
        .await
    }

    /// Ends an attempt: compare-and-set on the attempt while it is in progress. Safe to repeat.
    pub async fn end_step(self, end: &EndStep) -> Result<Ended, LedgerError> {
        self.write(async |store| {
            let mut tx = store.begin().await?;
            let now_us = store.clock.now_us();
            let Some(step) = locked(&mut *tx, &end.serial).await? else {
                return Ok(Ended::Unknown);
            };
            let outcome = if may_end(&step, end) && step.state == StepState::InProgress {
                let ended = ended(&step, end, now_us);
                write_step(&mut *tx, &ended).await?;
                let event = SerialEvent::of_step(&ended, ended.state.word());
                event.write(&mut *tx, now_us, &end.principal).await?;
                Ended::Noted(ended)
            } else if was_ended(&step, end) {
                Ended::NotedBefore(step)
            } else {
                Ended::NotCurrent(step)
            };
            commit_alone(store, tx).await?;
            Ok(outcome)
        })
        .await
    }
}

/// The results of an earlier call. Reads only, and waits for no other call: the changes of one in
/// progress are not visible yet.
impl Exchange<'_> {
    /// The answer for an interface serial that the same call has had accepted, within its window.
    pub async fn accepted_before(
        self,
        check: &InterfaceCheck,
    ) -> Result<Option<Checked>, LedgerError> {
        self.call(CALL, async |store| {
            let seen: Option<CheckRow> =
                query_as(SEEN).bind(&check.serial).fetch_optional(&store.reader).await?;
            let Some(seen) = seen else { return Ok(None) };
            let at_us = seen.accepted_at_us;
            let since_us = store.clock.now_us().saturating_sub(check.window_us);
            let is_same = at_us > since_us && seen.is_of(&check.principal);
            Ok(is_same.then_some(Checked::Accepted { at_us, replayed: true }))
        })
        .await
    }

    /// The state of a step that the same call has begun, or that has succeeded.
    pub async fn begun_before(self, begin: &BeginStep) -> Result<Option<Begun>, LedgerError> {
        let step = self.step(&begin.serial).await?;
        let met = step.map(|step| met(step, begin));
        Ok(met.filter(|begun| matches!(begun, Begun::RunAgain(_) | Begun::Succeeded(_))))
    }

    /// The state of a step that the same call has ended.
    pub async fn ended_before(self, end: &EndStep) -> Result<Option<Ended>, LedgerError> {
        let step = self.step(&end.serial).await?;
        Ok(step.filter(|step| was_ended(step, end)).map(Ended::NotedBefore))
    }

    async fn step(self, serial: &str) -> Result<Option<Step>, LedgerError> {
        self.read(async |reader| {
            query_as::<StepRow>(STEP).bind(serial).fetch_optional_into(reader).await
        })
        .await
    }
}

/// The meaning of an existing step for a caller that begins it: one that has failed may run, as its
/// next attempt.
fn met(step: Step, begin: &BeginStep) -> Begun {
    let chains = (&step.unified_serial, &begin.unified_serial);
    match step.state {
        _ if matches!(chains, (Some(own), Some(other)) if own != other) => Begun::OtherChain(step),
        StepState::Succeeded => Begun::Succeeded(step),
        StepState::InProgress
            if is_same_call(&begin.principal, &step.begun_by, step.begun_key.as_deref()) =>
        {
            Begun::RunAgain(step)
        }
        StepState::InProgress => Begun::InProgress(step),
        StepState::Failed => Begun::Run(step),
    }
}

/// The meaning of a serial that was seen within the window; its row is locked.
async fn repeated(
    conn: &mut Conn,
    check: &InterfaceCheck,
    now_us: i64,
) -> Result<Checked, LedgerError> {
    let seen: CheckRow = query_as(SEEN).bind(&check.serial).fetch_one(&mut *conn).await?;
    let at_us = seen.accepted_at_us;
    if seen.is_of(&check.principal) {
        return Ok(Checked::Accepted { at_us, replayed: true });
    }
    let repeats = unsigned(seen.repeats, "interface_check.repeats")? + 1;
    query("update interface_check set repeats = $2, repeated_at_us = $3 where serial = $1")
        .bind(&check.serial)
        .bind(signed(repeats, "repeats")?)
        .bind(now_us)
        .execute(conn)
        .await?;
    Ok(Checked::Repeated(FirstSeen { at_us, user_id: seen.accepted_by, repeats }))
}

/// An interface serial that was seen.
#[derive(FromRow)]
struct CheckRow {
    accepted_at_us: i64,
    accepted_by: String,
    accepted_key: Option<String>,
    repeats: i64,
}

impl CheckRow {
    /// Whether a call is the repetition of the one that was accepted.
    fn is_of(&self, principal: &Principal) -> bool {
        is_same_call(principal, &self.accepted_by, self.accepted_key.as_deref())
    }
}

/// Whether a call is the repetition of a noted one: only a key can show it.
fn is_same_call(principal: &Principal, user_id: &str, key: Option<&str>) -> bool {
    key.is_some() && principal.key.as_deref() == key && principal.user_id == user_id
}

/// Begins the next attempt of a step that has failed; its row is locked.
async fn next_attempt(
    conn: &mut Conn,
    failed: Step,
    begin: &BeginStep,
    now_us: i64,
) -> Result<Step, LedgerError> {
    let step = Step {
        serial: failed.serial,
        unified_serial: failed.unified_serial.or_else(|| begin.unified_serial.clone()),
        state: StepState::InProgress,
        attempt: failed.attempt + 1,
        begun_at_us: now_us,
        begun_by: begin.principal.user_id.clone(),
        begun_key: begin.principal.key.clone(),
        ended_at_us: None,
        ended_by: None,
        result: None,
        reason: None,
    };
    write_step(conn, &step).await?;
    Ok(step)
}

/// Whether an ending is of this attempt: only its runner can know that it succeeded.
fn may_end(step: &Step, end: &EndStep) -> bool {
    let is_sure = matches!(end.ending, Ending::Failed { .. });
    step.attempt == end.attempt && (is_sure || step.begun_by == end.principal.user_id)
}

/// Whether the step was ended in the same way before, by the same asker.
fn was_ended(step: &Step, end: &EndStep) -> bool {
    let is_same = |at_us| *step == ended(step, end, at_us);
    may_end(step, end) && step.ended_at_us.is_some_and(is_same)
}

/// The step as an ending leaves it.
fn ended(step: &Step, end: &EndStep, now_us: i64) -> Step {
    let (state, result, reason) = match end.ending.clone() {
        Ending::Succeeded { result } => (StepState::Succeeded, result, None),
        Ending::Failed { reason } => (StepState::Failed, None, Some(reason)),
    };
    Step {
        state,
        result,
        reason,
        ended_at_us: Some(now_us),
        ended_by: Some(end.principal.user_id.clone()),
        ..step.clone()
    }
}

/// The step of a serial, its row locked until the transaction ends.
async fn locked(conn: &mut Conn, serial: &str) -> Result<Option<Step>, LedgerError> {
    query_as::<StepRow>(STEP).for_update().bind(serial).fetch_optional_into(conn).await
}

/// A row that was inserted or found a moment ago is missing, although no statement deletes one.
fn lost() -> LedgerError {
    LedgerError::Refused("system_step: a row has vanished; somebody else deletes from it".into())
}

/// Writes a step whose row is locked.
async fn write_step(conn: &mut Conn, step: &Step) -> Result<(), LedgerError> {
    query(
        "update system_step set unified_serial = $2, state = $3, attempt = $4, begun_at_us = $5,
         begun_by = $6, begun_key = $7, ended_at_us = $8, ended_by = $9, result = $10,
         reason = $11 where serial = $1",
    )
    .bind(&step.serial)
    .bind(&step.unified_serial)
    .bind(step.state.word())
    .bind(small(step.attempt, "attempt")?)
    .bind(step.begun_at_us)
    .bind(&step.begun_by)
    .bind(&step.begun_key)
    .bind(step.ended_at_us)
    .bind(&step.ended_by)
    .bind(&step.result)
    .bind(&step.reason)
    .execute(conn)
    .await?;
    Ok(())
}

/// What happened to a serial.
struct SerialEvent<'e> {
    serial: &'e str,
    unified_serial: Option<&'e str>,
    kind: &'static str,
    attempt: Option<u32>,
    reason: Option<&'e str>,
}

impl<'e> SerialEvent<'e> {
    fn of_step(step: &'e Step, kind: &'static str) -> Self {
        SerialEvent {
            serial: &step.serial,
            unified_serial: step.unified_serial.as_deref(),
            kind,
            attempt: Some(step.attempt),
            reason: step.reason.as_deref(),
        }
    }

    async fn write(
        self,
        conn: &mut Conn,
        at_us: i64,
        principal: &Principal,
    ) -> Result<(), LedgerError> {
        query(
            "insert into serial_event (serial, unified_serial, kind, attempt, at_us, user_id,
             ip_address, reason) values ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(self.serial)
        .bind(self.unified_serial)
        .bind(self.kind)
        .bind(self.attempt.map(|attempt| small(attempt, "attempt")).transpose()?)
        .bind(at_us)
        .bind(&principal.user_id)
        .bind(&principal.ip_address)
        .bind(self.reason)
        .execute(conn)
        .await?;
        Ok(())
    }
}
