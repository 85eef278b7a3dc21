//! A counter that continues with a higher value (F20). Never lower, nor at a value that was issued
//! or may have been: those values are below its present one once it is at rest.

use crate::columns::{self, signed};
use crate::counters::table;
use crate::dialect::Conn;
use crate::protocol::lift::{self, Stand};
use crate::query::query;
use crate::register::gaps::{self, Loss};
use crate::{ChangeRefusal, ChangeRequest, Counter, CounterRow, GapReason, LedgerError, NewChange};

/// Refuses a change that could not be made now, as far as the ledger knows.
pub(super) async fn try_out(
    conn: &mut Conn,
    new: &NewChange,
    next: u64,
) -> Result<(), LedgerError> {
    let counter = of_series(conn, new).await?;
    must_be_above(next, counter.taken, columns::step(new.step)?).map(drop)
}

/// The counter that a request names, if it is one of the series that it names.
pub(super) async fn of_series(conn: &mut Conn, new: &NewChange) -> Result<Counter, LedgerError> {
    let row: Option<CounterRow> = {
        let mut query = crate::query::QueryBuilder::new(table::COLUMNS);
        query.push("where counter_id = ").push_bind(new.counter_id);
        query.push(" and series_id = ").push_bind(new.series_id);
        query.build().typed().fetch_optional(conn).await?
    };
    row.ok_or(ChangeRefusal::UnknownCounter(new.counter_id))?.try_into()
}

/// Raises the counter; the skipped values go to the gap register.
pub(super) async fn make(
    conn: &mut Conn,
    request: &ChangeRequest,
    next: u64,
    (step, now_us): (u64, i64),
) -> Result<(), LedgerError> {
    let step = columns::step(step)?;
    let (counter, base) = match lift::lock(conn, request.counter_id, now_us).await? {
        Stand::AtRest { counter, base } => (counter, base),
        Stand::InRedis(counter) => return Err(ChangeRefusal::InRedis(counter.partition).into()),
        Stand::Held(partition) => return Err(ChangeRefusal::Held(partition).into()),
    };
    let upto = must_be_above(next, base, step)? - step;
    lift::lift(conn, request.counter_id, (upto, step), now_us).await?;
    if base < upto {
        let (counter_id, reason) = (request.counter_id, GapReason::Skipped);
        let epoch = counter.epoch;
        let loss = Loss { counter_id, after: base, upto, step, reason, epoch };
        gaps::register_holes(conn, loss, now_us).await?;
    }
    query("update change_request set stood_at = $2, step = $3 where change_request_id = $1")
        .bind(request.change_id)
        .bind(base)
        .bind(step)
        .execute(conn)
        .await?;
    Ok(())
}

/// The value, if the counter reaches it above its present one.
fn must_be_above(next: u64, base: i64, step: i64) -> Result<i64, LedgerError> {
    let (next, least) = (signed(next, "next_value")?, base.saturating_add(step));
    if next < least {
        return Err(ChangeRefusal::Below { least }.into());
    }
    if (next - least) % step != 0 {
        return Err(ChangeRefusal::BesideStep { least, step }.into());
    }
    Ok(next)
}
