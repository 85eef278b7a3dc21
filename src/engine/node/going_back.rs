//! What this process does once it knows that the ledger went back (F9, F25): it hands nothing out
//! any more, has everything held, tells what it remembers (F35), and goes on under another
//! identity.
//!
//! Also the look behind the heartbeats, which must not wait for it: whether the ledger has what the
//! database path confirmed before them (F34, F47).

use std::sync::Arc;

use tokio::time::Instant;

use super::{Context, Membership};
use crate::engine::journal::Told;
use crate::ledger::{At, Confirmed, LedgerError};
use crate::node::NodeId;
use crate::task::{Task, Ticks};

/// Why the ledger is known to have gone back.
pub(super) const FORGOTTEN: &str = "it has forgotten what it confirmed";

/// A ledger that went back, on its way to an incarnation in which this process may act.
#[derive(Clone, Debug)]
pub(super) struct WentBack {
    /// The identity under which it did.
    node: NodeId,
    cause: String,
    /// Whether it is held, or was by somebody else: what is left is to tell it what is remembered.
    is_held: bool,
}

/// A heartbeat behind which nobody has looked yet, and when it was sent.
pub(super) type UnprovenBeat = (Confirmed, Instant);

impl Membership {
    /// Starts the look behind the heartbeats, as often as these.
    #[must_use]
    pub fn start_proving(context: Arc<Context>) -> Task {
        let period = context.settings.node_heartbeat();
        Task::start("proof of takes", move |stop| async move {
            let mut ticks = Ticks::every(period, stop);
            while ticks.next().await {
                context.membership.prove().await;
            }
        })
    }

    /// Looks whether the ledger has what was taken before the newest heartbeat.
    async fn prove(&self) {
        if self.ledger_went_back() || !self.ledger.has_unproven_takes() {
            return;
        }
        let node = self.node();
        // Before the look: what is beaten meanwhile is not proven by it.
        let beat = self.unproven.lock().expect("no holder of this lock panics").take();
        match self.ledger.check_takes().await {
            Ok(()) => self.note_proven(beat),
            Err(LedgerError::WentBack(_)) => self.alarm(node, FORGOTTEN),
            Err(error) => tracing::info!(%error, "whether the ledger has the last numbers waits"),
        }
    }

    /// What was committed before this heartbeat was sent is in every ledger that shows it.
    pub(super) fn note_proven(&self, beat: Option<UnprovenBeat>) {
        if let Some((confirmed, sent_at)) = beat {
            self.memory().beat(confirmed, sent_at);
        }
    }

    pub(super) fn note_told_by(&self, node: NodeId, told: Told) {
        if let Some(confirmed) = self.ledger.confirmed(node) {
            self.note_told(confirmed.nonce, told);
        }
    }

    /// Looks whether the ledger still knows an identity, if what was asked at that moment took so
    /// long that others may take this process for dead: a process that was stopped finds old
    /// answers when it goes on (F35). Nothing is asked otherwise.
    ///
    /// # Errors
    /// `Unreachable` where it does not, or does not say: the answer may be another ledger's.
    pub async fn must_not_have_slept(
        &self,
        asked_at: Instant,
        node: NodeId,
    ) -> Result<(), LedgerError> {
        if asked_at.elapsed() < self.node_ttl {
            return Ok(());
        }
        self.ledger.must_show(node).await.map_err(|error| {
            let cause = format!("the answer came late: {error}");
            LedgerError::Unreachable { cause, maybe_written: true }
        })
    }

    /// The ledger has forgotten what it confirmed to an identity. Says nothing of one that has
    /// followed it since in a later incarnation: that was held, and told.
    pub(super) fn alarm(&self, of: NodeId, what: &str) {
        // No identity follows meanwhile.
        let node = self.node.lock().expect("no holder of this lock panics");
        if !self.is_beside(of, *node) {
            tracing::info!(%of, node = %*node, what, "an answer about an identity of before");
            return;
        }
        // Before anybody learns of it: from here on nothing is handed out that is not reported
        // again.
        let mut silenced = self.silenced.write().expect("no holder of this lock panics");
        silenced.extend(self.memory().identities());
        drop(silenced);
        let mut went_back = self.went_back.lock().expect("no holder of this lock panics");
        if went_back.as_ref().is_none_or(|known| !self.is_beside(known.node, *node)) {
            tracing::error!(what, "THE LEDGER WENT BACK; no numbers until its users agree on it");
            let cause = format!("the ledger went back: {what}");
            *went_back = Some(WentBack { node: *node, cause, is_held: false });
        }
    }

    /// Whether what went back under an identity is held; nothing of what went back since.
    fn note_held(&self, under: NodeId, is_held: bool) {
        let mut went_back = self.went_back.lock().expect("no holder of this lock panics");
        if let Some(known) = went_back.as_mut().filter(|known| known.node == under) {
            known.is_held = is_held;
        }
    }

    /// It is held, told, and known under another identity; it may have gone back under that since.
    fn note_over(&self, under: NodeId) {
        let mut went_back = self.went_back.lock().expect("no holder of this lock panics");
        went_back.take_if(|known| known.node == under);
    }

    /// Has the ledger say that all partitions are held, tells it what this process remembers, then
    /// goes on under another identity: of this one it does not know what it confirmed.
    pub(super) async fn hold_all(&self, context: &Context) {
        let node = self.node();
        let seen = self.seen();
        let went_back = self.went_back.lock().expect("no holder of this lock panics").clone();
        let Some(WentBack { node: under, cause, is_held }) = went_back else { return };
        let vouched = {
            let mut vouching = self.vouching();
            vouching.stop(context.settings.recovery_barrier_max);
            vouching.given()
        };
        let held = async {
            if !is_held && self.ledger.fails_over() {
                self.ledger.inquire(&seen, &cause).await?;
            } else if !is_held {
                self.ledger.hold_all(&seen, &cause).await?;
            }
            // Drawn once: all others have to report anew with each that is drawn.
            self.note_held(under, true);
            // Others of this process may agree on the next one meanwhile: that is told anew.
            let within = self.ledger.one_incarnation().await?;
            self.ledger.vouch(&vouched).await?;
            let told = self.tell(context, node).await?;
            self.begin_anew(within).await?;
            self.note_told_by(self.node(), told);
            let reading = self.reading.lock().await;
            Ok((self.ledger.partitions().await?, reading))
        };
        let held = held.await;
        self.note_answer(context, held.as_ref().err());
        if matches!(held, Err(LedgerError::WentBack(_))) {
            // Once more, or somebody else has drawn the next one.
            self.note_held(under, false);
        }
        match held {
            Ok((partitions, _reading)) => {
                let at = At { partition: 0, epoch: partitions.first().map_or(0, |row| row.epoch) };
                let detail = serde_json::json!({ "cause": cause });
                context.event("ledger-went-back", at, node, detail).await;
                self.publish(context, self.node(), partitions);
                self.vouching().forget();
                self.note_over(under);
            }
            Err(error) => tracing::error!(%error, "the partitions cannot be held yet"),
        }
    }
}

#[cfg(test)]
mod tests;
