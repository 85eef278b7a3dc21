//! Makes checkpoints, one after the other, as long as a process serves and has the key. Every
//! process that has it may: the first one binds what there is.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::checkpoint::{Body, FORM, Part, TABLES, name_of};
use super::key::AuditKey;
use crate::clock::SharedClock;
use crate::engine::node::Context;
use crate::ledger::{Bindable, Bound, LedgerError, MacCheck, OneIncarnation, SharedLedger};
use crate::task::{Task, Ticks};

/// Rows of one table that a checkpoint binds at most; the next one follows immediately.
const ROWS_MAX: u32 = 10_000;

/// Makes one every period, where there is something to bind.
pub(crate) fn make_checkpoints(context: Arc<Context>, key: AuditKey, period: Duration) -> Task {
    Task::start("checkpoints", move |stop| async move {
        let node = context.membership.node().0.to_string();
        let mut ticks = Ticks::every(period, stop.clone());
        let (metrics, clock, begun_us) = (&context.metrics, &context.clock, context.clock.now_us());
        // A process that cannot make any uses what is there: it may not run for long.
        let mut bound_us = None;
        metrics.due.checkpoint_period.set(period.as_secs_f64());
        metrics.due.checkpoint_age.set(f64::NAN);
        while ticks.next().await {
            while !stop.is_requested() {
                match make(&context.ledger, clock, &node, &key).await {
                    Ok(Made::Whole) => {
                        bound_us = Some(clock.now_us());
                        break;
                    }
                    Ok(Made::MoreIsLeft) => {}
                    Err(error) => {
                        tracing::warn!(%error, "no checkpoint could be made; it is tried again");
                        if bound_us.is_none() {
                            bound_us = last_us(&context.ledger, begun_us).await;
                        }
                        break;
                    }
                }
            }
            let age = |since_us| clock.now_us().saturating_sub(since_us).max(0) as f64 / 1e6;
            metrics.due.checkpoint_age.set(bound_us.map_or(f64::NAN, age));
        }
    })
}

/// When the last checkpoint of the ledger was made, by its content, signed or not; 0 where it shows
/// no time. Where there is none, `begun_us`; nothing where the ledger does not answer.
async fn last_us(ledger: &SharedLedger, begun_us: i64) -> Option<i64> {
    let Some(last) = ledger.checkpoints().last(None).await.ok()? else { return Some(begun_us) };
    let body: Value = serde_json::from_str(&last.body).unwrap_or_default();
    let at = body["at"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
    Some(at.map_or(0, Timestamp::as_microsecond))
}

/// How far a checkpoint reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// All that there was is bound.
    Whole,
    /// Not all: more rows than one takes, or another process was quicker.
    MoreIsLeft,
}

/// Makes the next checkpoint, unless all is bound.
///
/// # Errors
/// Those of the ledger, `WentBack` where it did meanwhile or nothing is agreed on yet; `Refused`
/// where the last checkpoint is none.
pub async fn make(
    ledger: &SharedLedger,
    clock: &SharedClock,
    node: &str,
    key: &AuditKey,
) -> Result<Made, LedgerError> {
    // What was read of a ledger that has gone back since is not written into the other one (F25).
    let within = ledger.one_incarnation().await?;
    let last = ledger.checkpoints().last(Some(within)).await?;
    let before = match &last {
        None => None,
        Some(signed) => match Body::read(signed) {
            Ok((body, _)) => Some(body),
            Err(error) => {
                let why = format!(
                    "checkpoint {}: {error}; `numerator audit verify` says what to make of it",
                    signed.number
                );
                return Err(LedgerError::Refused(why));
            }
        },
    };
    let now_us = clock.now_us();
    let nothing = Part::default();
    let (mut parts, mut is_more) = (Vec::with_capacity(TABLES.len()), false);
    for (index, table) in TABLES.into_iter().enumerate() {
        let last = before.as_ref().map_or(&nothing, |body| body.parts()[index]);
        let (part, more) = next(ledger, within, table, last, now_us).await?;
        is_more |= more;
        parts.push(part);
    }
    if before.is_some() && parts.iter().all(|part| part.bound.is_empty()) {
        return Ok(Made::Whole);
    }
    let parts = <[Part; TABLES.len()]>::try_from(parts);
    let [batches, events, versions, counters, series, life] = parts.expect("a part of each table");
    let mut before_key = None;
    if before.is_none() {
        // What exists by now was written before any process could know of a key.
        let highest = ledger.checkpoints().last_batch(Some(within)).await?;
        before_key = Some(highest).filter(|highest| *highest > batches.upto);
    }
    let body = Body {
        checkpoint: before.as_ref().map_or(1, |body| body.checkpoint + 1),
        form: FORM,
        at: clock.now().to_string(),
        node: node.to_owned(),
        previous: last.as_ref().map(name_of),
        batches,
        events,
        versions,
        counters,
        series,
        life,
        before_key,
    };
    warn_of_forged(&body);
    let added = ledger.checkpoints().add(within, last.as_ref(), &body.sign(key)).await?;
    Ok(if added && !is_more { Made::Whole } else { Made::MoreIsLeft })
}

/// The next part of a table, and whether there is more.
async fn next(
    ledger: &SharedLedger,
    within: OneIncarnation,
    table: Bindable,
    before: &Part,
    now_us: i64,
) -> Result<(Part, bool), LedgerError> {
    let mut late: Vec<Bound> = Vec::new();
    for (first, last, _) in &before.open {
        let left = ROWS_MAX.saturating_sub(u32::try_from(late.len()).unwrap_or(u32::MAX));
        late.extend(
            ledger.checkpoints().bindable(Some(within), table, (first - 1, *last), left).await?,
        );
    }
    let rows = ledger
        .checkpoints()
        .bindable(Some(within), table, (before.upto, i64::MAX), ROWS_MAX)
        .await?;
    let is_more = rows.len() >= ROWS_MAX as usize || late.len() >= ROWS_MAX as usize;
    Ok((before.next(&late, &rows, now_us), is_more))
}

/// A batch with a signature that no process with the key made: it was forged.
fn warn_of_forged(body: &Body) {
    for entry in body.batches.bound.iter().filter(|it| it.standing == MacCheck::Forged) {
        tracing::error!(
            batch = entry.id,
            checkpoint = body.checkpoint,
            "a journal batch was written by somebody without the key, or changed since; \
             see `numerator audit verify`"
        );
    }
}
