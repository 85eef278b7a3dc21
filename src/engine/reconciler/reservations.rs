//! Sweeps reservations: confirmed ones become rows of the journal, those that are over or cancelled
//! end, and their values return. Every process that serves does so; no caller waits for it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use crate::engine::node::Context;
use crate::ledger::{LedgerError, ReservationCounts, ReservationsSwept, SharedLedger};
use crate::task::{Stop, Task};

/// Time between two sweeps; one follows at once what a caller of this process has confirmed, or a
/// sweep that has left something that is due.
const PERIOD: Duration = Duration::from_millis(500);

/// Least time between two counts of what is live: they read the whole table.
const COUNT_PERIOD: Duration = Duration::from_secs(5);

/// Sweeps as long as the process runs.
pub(crate) fn sweep_reservations(context: Arc<Context>) -> Task {
    Task::start("reservations", move |mut stop| async move {
        let mut counted: Option<Instant> = None;
        let mut period = PERIOD;
        while next(&context, &mut stop, period).await {
            period = PERIOD;
            match round(&context).await {
                Ok(swept) => {
                    note(&context, &swept);
                    if swept.unfinished > 0 {
                        period = Duration::ZERO;
                    }
                }
                Err(error) => tracing::debug!(%error, "reservations are swept another time"),
            }
            if counted.is_none_or(|at| at.elapsed() >= COUNT_PERIOD) {
                counted = Some(Instant::now());
                if let Err(error) = count(&context).await {
                    tracing::debug!(%error, "reservations are counted another time");
                }
            }
        }
    })
}

/// The last sweep of a process that ends: what its callers have confirmed does not wait for another
/// process. Ends by `by`; what is left another process goes on with.
pub(crate) async fn sweep_last(context: &Arc<Context>, by: Instant) {
    if !context.reservations.has_acted() {
        return;
    }
    if let Err(error) = sweep_all(context, by).await {
        tracing::warn!(%error, "confirmed reservations are left to the next process");
    }
}

/// Sweeps until nothing confirmed is left that can be journaled now; says how many were.
///
/// # Errors
/// A ledger that does not answer, or not by `by`: a repeated call goes on.
pub(crate) async fn sweep_all(context: &Arc<Context>, by: Instant) -> Result<u64, LedgerError> {
    let mut issued = 0;
    loop {
        let late = |_| LedgerError::Unreachable {
            cause: "a sweep takes longer than there is time".to_owned(),
            maybe_written: true,
        };
        let swept = timeout_at(by, round(context)).await.map_err(late)??;
        note(context, &swept);
        issued += swept.issued;
        if swept.issued == 0 && swept.unfinished == 0 {
            return Ok(issued);
        }
    }
}

/// Waits for the next round, no longer than a period; false when the process ends.
async fn next(context: &Context, stop: &mut Stop, period: Duration) -> bool {
    let urged = timeout(period, context.reservations.urged());
    tokio::select! {
        () = stop.requested() => false,
        _ = urged => !stop.is_requested(),
    }
}

/// One sweep, in a task that nobody cancels.
async fn round(context: &Arc<Context>) -> Result<ReservationsSwept, LedgerError> {
    let (ledger, node) = (Arc::clone(&context.ledger), context.membership.node());
    let swept = tokio::spawn(async move { ledger.reservations().sweep(node).await }).await;
    swept.expect("a sweep does not panic")
}

fn note(context: &Context, swept: &ReservationsSwept) {
    let ReservationsSwept { issued, collided, cancelled, expired, .. } = *swept;
    let metrics = &context.metrics;
    for (act, count) in [("issued", issued), ("cancelled", cancelled), ("expired", expired)] {
        metrics.reservations.ended.of(act).increment(count);
    }
    if collided > 0 {
        metrics.duplicates.increment(collided);
        tracing::error!(collided, "confirmed reservations have numbers that others have");
    }
}

/// Counts what is live, for the bound of new ones and for the gauges.
async fn count(context: &Arc<Context>) -> Result<(), LedgerError> {
    let ledger = Arc::clone(&context.ledger);
    let counted = tokio::spawn(async move {
        let counts = ledger.reservations().counts().await?;
        Ok::<_, LedgerError>((counts, ledger.reservations().live_of_series().await?))
    });
    let (counts, of_series) = counted.await.expect("a count does not panic")?;
    context.reservations.note(of_series);
    let ReservationCounts { reserved, confirmed, cancelled, .. } = counts;
    let meters = &context.metrics.reservations;
    let states = [("reserved", reserved), ("confirmed", confirmed), ("cancelled", cancelled)];
    for (state, live) in states {
        meters.live.of(state).set(live as f64);
    }
    meters.confirmed_age.set(counts.confirmed_for_us as f64 / 1e6);
    meters.over_age.set(counts.over_for_us as f64 / 1e6);
    Ok(())
}

/// What is wrong with reservations and returned values, in words; at most `limit` of each kind.
pub(super) async fn reservation_findings(
    ledger: &SharedLedger,
    limit: u32,
) -> Result<Vec<String>, LedgerError> {
    let found = ledger.audits().reservation_findings(limit).await?;
    Ok(found.iter().map(ToString::to_string).collect())
}
