//! Draws the ids of `{SNOWFLAKE}` under a node number that the ledger leases to this node.
//!
//! A number is leased at the first order that needs an id; orders extend its lease ahead of time.
//! Only what the ledger has committed is drawn from, so no clock and no pause of this process can
//! make it give an id that another process gives (F23). Takes no values and knows no series.

mod generator;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use numbering::Snowflake;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Unavailable;
use crate::clock::SharedClock;
use crate::engine::node::{Membership, SnowflakeSettings, Use};
use crate::ledger::{LedgerError, SharedLedger};
use generator::{Generator, NotYet};

/// Longest wait for a clock that is behind the last id; then a request is refused.
const CLOCK_WAIT_MAX: Duration = Duration::from_secs(1);

/// The ids of this process. Cheap to clone.
#[derive(Clone)]
pub(super) struct Snowflakes(Arc<IdSource>);

struct IdSource {
    ledger: SharedLedger,
    clock: SharedClock,
    membership: Arc<Membership>,
    settings: SnowflakeSettings,
    /// The pause after a failed renewal that no order waits for.
    retry_delay: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    generator: Option<Generator>,
    /// The renewal that is under way.
    renewal: Option<Renewal>,
    /// When a renewal ahead of time may be tried again.
    quiet_until: Option<Instant>,
}

/// What a renewal of the lease comes to, once it has.
type Renewal = watch::Receiver<Option<Result<(), Unavailable>>>;

impl Snowflakes {
    pub(super) fn new(
        ledger: SharedLedger,
        clock: SharedClock,
        membership: Arc<Membership>,
        settings: SnowflakeSettings,
        retry_delay: Duration,
    ) -> Self {
        let state = Mutex::default();
        Snowflakes(Arc::new(IdSource { ledger, clock, membership, settings, retry_delay, state }))
    }

    /// Draws an id. Waits for the ledger where a number must be leased, and at most
    /// [`CLOCK_WAIT_MAX`] for the clock. Safe to drop: an unused id is never given again.
    ///
    /// # Errors
    /// `ClockBehind`, `NodeNumbers`, or what keeps the ledger from answering.
    pub(super) async fn draw(&self) -> Result<Snowflake, Unavailable> {
        let mut behind_since = None;
        loop {
            match self.0.try_draw() {
                Ok(id) => return Ok(id),
                Err(NotYet::Spent) => {
                    if self.0.membership.availability().still_lacks(Use::Write).await {
                        return Err(Unavailable::Ledger);
                    }
                    renewed(self.0.renewal()).await?;
                }
                Err(NotYet::OutOfYears) => return Err(Unavailable::ClockBehind),
                Err(NotYet::Behind { by_ms }) => {
                    let behind = Duration::from_millis(by_ms);
                    let since = behind_since.get_or_insert_with(Instant::now);
                    if since.elapsed() + behind > CLOCK_WAIT_MAX {
                        return Err(Unavailable::ClockBehind);
                    }
                    tokio::time::sleep(behind).await;
                }
            }
        }
    }

    /// Ends the lease where its last id was drawn. For a process that stops: whatever is asked for
    /// an id afterwards leases a number again.
    pub(super) async fn stop(&self) {
        let running = self.0.lock().renewal.clone();
        if let Some(running) = running {
            // Whatever it came to: the lease is ended next.
            let _ = renewed(running).await;
        }
        let Some(generator) = self.0.lock().generator.take() else { return };
        let lease = generator.lease();
        let returned =
            self.0.ledger.snowflakes().give_back(&lease, generator.unused_from_ms()).await;
        if let Err(error) = returned {
            tracing::debug!(%error, "a lease of ids is not ended; it ends by itself");
        }
    }
}

/// Waits for a renewal.
async fn renewed(mut renewal: Renewal) -> Result<(), Unavailable> {
    match renewal.wait_for(Option::is_some).await.as_deref() {
        Ok(Some(outcome)) => *outcome,
        // The runtime ends before the renewal.
        Ok(None) | Err(_) => Err(Unavailable::Stopping),
    }
}

impl IdSource {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }

    /// Draws an id of the lease there is, and sees to the next one ahead of time.
    fn try_draw(self: &Arc<Self>) -> Result<Snowflake, NotYet> {
        let now_ms = self.clock.now_ms();
        let mut state = self.lock();
        let generator = state.generator.as_mut().ok_or(NotYet::Spent)?;
        let id = generator.draw(now_ms)?;
        let is_short = self.end_ms(now_ms, self.settings.lease / 2) > generator.lease().until_ms;
        let is_quiet = state.quiet_until.is_some_and(|until| Instant::now() < until);
        if is_short && !is_quiet {
            self.renew_once(&mut state);
        }
        Ok(id)
    }

    /// The renewal that is under way, or a new one.
    fn renewal(self: &Arc<Self>) -> Renewal {
        self.renew_once(&mut self.lock())
    }

    /// The same under the lock. The work runs in a separate task, which is never cancelled.
    fn renew_once(self: &Arc<Self>, state: &mut State) -> Renewal {
        if let Some(running) = &state.renewal {
            return running.clone();
        }
        let (done, renewal) = watch::channel(None);
        state.renewal = Some(renewal.clone());
        let shared = Arc::clone(self);
        tokio::spawn(async move {
            let outcome = shared.renew().await;
            let mut state = shared.lock();
            state.renewal = None;
            state.quiet_until = outcome.is_err().then(|| Instant::now() + shared.retry_delay);
            done.send_replace(Some(outcome));
        });
        renewal
    }

    /// Extends the lease, or takes another one where that is not ours any more.
    async fn renew(&self) -> Result<(), Unavailable> {
        let now_ms = self.clock.now_ms();
        let lease = self.lock().generator.as_ref().map(Generator::lease);
        if let Some(lease) = lease {
            let until_ms = self.end_ms(now_ms, self.settings.lease);
            let extended = self.ledger.snowflakes().extend(&lease, until_ms).await;
            let mut state = self.lock();
            match extended.map_err(|error| unleased(&error))? {
                Some(extended) => {
                    if let Some(generator) = &mut state.generator {
                        generator.extend(extended);
                    }
                    return Ok(());
                }
                None => {
                    tracing::warn!(lease.node_number, "another process has the number of ids now");
                    state.generator = None;
                }
            }
        }
        let node = self.membership.node();
        let lease = self.ledger.snowflakes().lease(node, now_ms, self.settings.lease).await;
        let lease = lease.map_err(|error| unleased(&error))?.ok_or(Unavailable::NodeNumbers)?;
        tracing::info!(lease.node_number, lease.from_ms, "leased a node number for ids");
        self.lock().generator = Some(Generator::new(lease));
        Ok(())
    }

    /// The time so long from now, in milliseconds.
    fn end_ms(&self, now_ms: i64, ahead: Duration) -> i64 {
        now_ms.saturating_add(i64::try_from(ahead.as_millis()).unwrap_or(i64::MAX))
    }
}

/// The answer to an order for which the ledger leases no number.
fn unleased(error: &LedgerError) -> Unavailable {
    tracing::warn!(%error, "no node number could be leased or extended");
    Unavailable::of_ledger(error)
}

#[cfg(test)]
mod tests;
