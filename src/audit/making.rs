//! Makes checkpoints, one after the other, as long as a process serves and has the key. Every
//! process that has it may: whoever comes first binds what there is.

use std::sync::Arc;
use std::time::Duration;

use numbering::hexadecimal;
use tokio::time::Instant;

use super::checkpoint::{Body, FORM, Part, TABLES, UnsealedRows, name_of};
use super::key::AuditKey;
use crate::clock::SharedClock;
use crate::ledger::{Bindable, Bound, LedgerError, OneIncarnation, SharedLedger, Vouched};
use crate::process::Context;
use crate::task::{Task, Ticks};

/// Rows of one table that a checkpoint binds at most; what is left comes into the next, at once.
const ROWS_MAX: u32 = 10_000;

/// Makes one every period, where there is something to bind.
pub(crate) fn make_checkpoints(context: Arc<Context>, key: AuditKey, period: Duration) -> Task {
    Task::start("checkpoints", move |stop| async move {
        let node = context.membership.node().0.to_string();
        let mut ticks = Ticks::every(period, stop.clone());
        let (metrics, mut bound_at) = (&context.metrics, Instant::now());
        metrics.due.checkpoint_period.set(period.as_secs_f64());
        metrics.due.checkpoint_age.set(0.0);
        while ticks.next().await {
            while !stop.is_requested() {
                match make(&context.ledger, &context.clock, &node, &key).await {
                    Ok(Made::Whole) => {
                        bound_at = Instant::now();
                        break;
                    }
                    Ok(Made::MoreIsLeft) => {}
                    Err(error) => {
                        tracing::warn!(%error, "no checkpoint could be made; it is tried again");
                        break;
                    }
                }
            }
            metrics.due.checkpoint_age.set(bound_at.elapsed().as_secs_f64());
        }
    })
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
    let last = ledger.last_checkpoint(Some(within)).await?;
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
    let [batches, events, versions, counters, series] = parts.expect("a part of each table");
    let (mut unsealed, mut before_key) = (None, None);
    if before.is_none() {
        let all = ledger.unsealed(Some(within)).await?;
        unsealed = Some(UnsealedRows { rows: all.rows, digest: hexadecimal(&all.digest) });
        // What is there by now was written before anybody could know of a key.
        let highest = ledger.last_batch(Some(within)).await?;
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
        unsealed,
        before_key,
    };
    warn_of_forged(&body);
    let added = ledger.add_checkpoint(within, last.as_ref(), &body.sign(key)).await?;
    Ok(if added && !is_more { Made::Whole } else { Made::MoreIsLeft })
}

/// What comes next of a table, and whether there is more.
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
        late.extend(ledger.bindable(Some(within), table, (first - 1, *last), left).await?);
    }
    let rows = ledger.bindable(Some(within), table, (before.upto, i64::MAX), ROWS_MAX).await?;
    let is_more = rows.len() >= ROWS_MAX as usize || late.len() >= ROWS_MAX as usize;
    Ok((before.next(&late, &rows, now_us), is_more))
}

/// A batch that shows a proof that no process with the key made: somebody else wrote it.
fn warn_of_forged(body: &Body) {
    for entry in body.batches.bound.iter().filter(|it| it.standing == Vouched::Forged) {
        tracing::error!(
            batch = entry.id,
            checkpoint = body.checkpoint,
            "a journal batch was written by somebody without the key, or changed since; \
             see `numerator audit verify`"
        );
    }
}
