//! The reaction of this process once it knows that the ledger went back (F9, F25): it hands nothing
//! out any more, has everything held, replays what it remembers (F35), and continues under another
//! identity.
//!
//! Also the check after the heartbeats, which must not wait for it: whether the ledger has what the
//! database path confirmed before them (F34, F47).

use std::sync::Arc;

use tokio::time::Instant;
use uuid::Uuid;

use super::membership::{FORGOTTEN, UnprovenBeat, WentBack};
use super::{Context, Membership};
use crate::engine::journal::Replayed;
use crate::ledger::{At, LedgerError};
use crate::node::NodeId;
use crate::task::{Task, Ticks};

impl Membership {
    /// Starts the check after the heartbeats, as often as these.
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

    /// Checks whether the ledger has what was taken before the newest heartbeat.
    async fn prove(&self) {
        if self.ledger_went_back() || !self.ledger.has_unproven_takes() {
            return;
        }
        let node = self.node();
        // Before the check: it does not verify a heartbeat that is sent meanwhile.
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

    pub(super) fn note_replayed_by(&self, node: NodeId, replayed: Replayed) {
        if let Some(confirmed) = self.ledger.confirmed(node) {
            self.note_replayed(confirmed.nonce, replayed);
        }
    }

    /// Checks whether the ledger still knows an identity, if what was asked at that moment took so
    /// long that others may take this process for dead: a process that was stopped finds old
    /// answers when it continues (F35). Nothing is asked otherwise.
    ///
    /// # Errors
    /// `Unreachable` where the ledger does not know it, or does not answer: the answer may be
    /// another ledger's.
    pub async fn must_not_have_slept(
        &self,
        asked_at: Instant,
        node: NodeId,
    ) -> Result<(), LedgerError> {
        if asked_at.elapsed() < self.node_ttl {
            return Ok(());
        }
        self.ledger.nodes().must_show(node).await.map_err(|error| {
            let cause = format!("the answer came late: {error}");
            LedgerError::Unreachable { cause, maybe_written: true }
        })
    }

    /// The ledger has forgotten what it confirmed to an identity. Does nothing for one that was
    /// followed by another in a later incarnation: that one was held, and the replay is done.
    pub(super) fn alarm(&self, of: NodeId, what: &str) {
        // No identity follows meanwhile.
        let node = self.node.lock().expect("no holder of this lock panics");
        if !self.is_beside(of, *node) {
            tracing::info!(%of, node = %*node, what, "an answer about an identity of before");
            return;
        }
        // Before any other task learns of it: from here on nothing is handed out that is not
        // reported again.
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

    /// It is held, replayed, and known under another identity; it may have gone back under that
    /// since.
    fn note_over(&self, under: NodeId) {
        let mut went_back = self.went_back.lock().expect("no holder of this lock panics");
        went_back.take_if(|known| known.node == under);
    }

    /// Has the ledger hold all partitions, replays what this process remembers, then continues
    /// under another identity: what the ledger confirmed to this one is unknown.
    pub(super) async fn hold_all(&self, context: &Context) {
        let node = self.node();
        let seen = self.seen();
        let went_back = self.went_back.lock().expect("no holder of this lock panics").clone();
        let Some(WentBack { node: under, cause, is_held }) = went_back else { return };
        let vouched = {
            let mut known_epochs = self.known_epochs();
            known_epochs.stop(context.settings.recovery_barrier_max);
            known_epochs.given()
        };
        let held = async {
            if !is_held && self.ledger.fails_over() {
                self.ledger.inquire(&seen, &cause).await?;
            } else if !is_held {
                self.ledger.hold_all(&seen, &cause).await?;
            }
            // Drawn once: all others have to report anew with each that is drawn.
            self.note_held(under, true);
            // Other tasks of this process may agree on the next one meanwhile: that gets its own
            // replay.
            let within = self.ledger.one_incarnation().await?;
            self.ledger.vouch(&vouched).await?;
            let replayed = self.tell(context, node).await?;
            self.begin_anew(within).await?;
            self.note_replayed_by(self.node(), replayed);
            let reading = self.reading.lock().await;
            Ok((self.ledger.partitions().await?, reading))
        };
        let held = held.await;
        self.note_answer(context, held.as_ref().err());
        if matches!(held, Err(LedgerError::WentBack(_))) {
            // Again, or another process has drawn the next one.
            self.note_held(under, false);
        }
        match held {
            Ok((partitions, _reading)) => {
                let at = At { partition: 0, epoch: partitions.first().map_or(0, |row| row.epoch) };
                let detail = serde_json::json!({ "cause": cause });
                context.event("ledger-went-back", at, node, detail).await;
                self.publish(context, self.node(), partitions);
                self.known_epochs().forget();
                self.note_over(under);
            }
            Err(error) => tracing::error!(%error, "the partitions cannot be held yet"),
        }
    }

    /// Replays what is remembered of earlier incarnations into the one that was agreed on last.
    /// Safe to repeat.
    ///
    /// # Errors
    /// When the ledger does not answer, or a counter of the replay is locked elsewhere: call it
    /// again, and do nothing in that incarnation before.
    pub(super) async fn tell(
        &self,
        context: &Context,
        node: NodeId,
    ) -> Result<Replayed, LedgerError> {
        let away = |cause: &str| LedgerError::Unreachable {
            cause: cause.to_owned(),
            maybe_written: false,
        };
        let replayed =
            context.journal.replay_kept().await.map_err(|_| away("the journal has ended"))?;
        // Before anything can fail.
        self.replay.owe(replayed.partitions.iter().copied());
        if replayed.waiting > 0 {
            return Err(away("somebody holds counters of what is to be told"));
        }
        self.replay.owe(context.ledger.report_takes(node).await?);
        if self.replay.owes() {
            // Redis counts on below it, and knows none of its documents.
            self.replay.note_outdated(&context.ledger.partitions().await?);
        }
        Ok(replayed)
    }

    /// Notes that the replay into the incarnation of this name is done.
    pub(super) fn note_replayed(&self, nonce: Uuid, replayed: Replayed) {
        *self.replay.replayed.lock().expect("no holder of this lock panics") =
            Some((nonce, replayed));
    }

    /// The result of the replay into that incarnation; `None` where it is not done.
    pub(super) fn replayed(&self, nonce: Uuid) -> Option<Replayed> {
        let replayed = self.replay.replayed.lock().expect("no holder of this lock panics");
        replayed.as_ref().filter(|(of, _)| *of == nonce).map(|(_, replayed)| replayed.clone())
    }

    /// Whether this epoch of Redis began below what was replayed since: it ends before this process
    /// takes part in it, and the next one asks the journal for documents.
    pub(crate) fn is_outdated(&self, at: At) -> bool {
        self.replay.is_outdated(at)
    }
}

#[cfg(test)]
mod tests;
