//! This process as a node: registered, beating, and aware of what the ledger says.
//!
//! A node registers, commits, and only then reads the epochs that it may send flights in. A node
//! that was barred, or whose row is gone, takes a new identity; the old one is never used again
//! (F10, F14).
//!
//! Here it is noticed that the ledger went back (F9): it has forgotten a heartbeat, a journal batch
//! or an epoch that it showed before. Until the ledger itself says `held`, this process refuses.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::memory::Memory;
use super::testimony::{Said, Testimony};
use super::vouching::Vouching;
use super::{Context, ProcessSettings};
use crate::clock::SharedClock;
use crate::ledger::{
    At, HealthReport, LedgerError, NewNode, Partition, PartitionState, SharedLedger,
};
use crate::node::{NodeId, host};
use crate::task::{Task, Ticks};

/// What the last heartbeat brought: the partitions as the ledger shows them.
pub type News = Arc<Vec<Partition>>;

/// Why the ledger is known to have gone back.
const FORGOTTEN: &str = "it has forgotten what it confirmed";
const PUT_BACK: &str = "the ledger went back while nothing ran: it has forgotten what it confirmed \
                        to an earlier process of this machine";

/// The identity of this process and its view of the ledger.
pub struct Membership {
    ledger: SharedLedger,
    clock: SharedClock,
    label: String,
    node: Mutex<NodeId>,
    news: watch::Sender<News>,
    /// Highest epoch seen of each partition, wherever it was seen.
    seen: Mutex<BTreeMap<u32, u64>>,
    vouching: Mutex<Vouching>,
    memory: Mutex<Memory>,
    /// Identities that hand nothing out any more: the ledger has gone back under them.
    silenced: RwLock<HashSet<NodeId>>,
    /// Whether the ledger answered the last heartbeat, or was held in its place.
    ledger_answers: AtomicBool,
    /// Why the ledger must be held, until it is.
    went_back: Mutex<Option<String>>,
    /// Where the next process of this machine learns what was confirmed to this one.
    testimony: Testimony,
}

impl Membership {
    /// Registers a new node. A ledger that has forgotten what it confirmed to an earlier process
    /// of this machine is held first: it was put back while nothing ran.
    ///
    /// # Errors
    /// When the ledger cannot take the registration, or the witness cannot be read.
    pub async fn join(
        ledger: SharedLedger,
        clock: SharedClock,
        testimony: Testimony,
        settings: &ProcessSettings,
    ) -> Result<Arc<Self>, LedgerError> {
        let label = label();
        let unreadable = |error: std::io::Error| {
            let remedy = "where the ledger was not put back, delete it";
            LedgerError::Refused(format!("the witness of the ledger: {error}; {remedy}"))
        };
        if let Some(said) = testimony.read().map_err(unreadable)?
            && !ledger.remembers(&said.confirmed).await?
        {
            tracing::error!(?said, "THE LEDGER WENT BACK while nothing ran");
            ledger.hold_all(&said.seen(), PUT_BACK).await?;
        }
        let node = match register(&ledger, &clock, &label).await {
            // Held by another process since this one opened it.
            Err(LedgerError::WentBack(_)) => {
                ledger.hold_all(&[], FORGOTTEN).await?;
                register(&ledger, &clock, &label).await?
            }
            registered => registered?,
        };
        let partitions = ledger.partitions().await?;
        let membership = Membership {
            ledger,
            clock,
            label,
            node: Mutex::new(node),
            news: watch::Sender::new(Arc::new(partitions)),
            seen: Mutex::default(),
            vouching: Mutex::default(),
            memory: Mutex::new(Memory::new(node, settings.journal.keep)),
            silenced: RwLock::default(),
            ledger_answers: AtomicBool::new(true),
            went_back: Mutex::default(),
            testimony,
        };
        membership.look_around(settings.node_ttl).await;
        membership.testify();
        Ok(Arc::new(membership))
    }

    /// Leaves word of what was confirmed, for the next process of this machine.
    fn testify(&self) {
        let epochs = self.news.borrow().iter().map(|row| row.epoch).collect();
        if let Some(confirmed) = self.ledger.confirmed(self.node()) {
            self.testimony.write(&Said { confirmed, epochs });
        }
    }

    /// The current identity.
    #[must_use]
    pub fn node(&self) -> NodeId {
        *self.node.lock().expect("no holder of this lock panics")
    }

    /// What the ledger says of the partitions, kept up to date by the heartbeat.
    #[must_use]
    pub fn news(&self) -> watch::Receiver<News> {
        self.news.subscribe()
    }

    /// Gives up an identity that was barred; does nothing when it was replaced before.
    ///
    /// # Errors
    /// `WentBack` when the ledger has forgotten what it confirmed to it: then all is held first
    /// (F9). Else when the ledger does not answer, or cannot take the registration.
    pub async fn renew(&self, barred: NodeId) -> Result<(), LedgerError> {
        if self.node() != barred {
            return Ok(());
        }
        // Nobody else would notice any more: to the next identity nothing was confirmed.
        match self.ledger.heartbeat(barred, None).await {
            Ok(_) | Err(LedgerError::NodeGone(_)) => self.replace(barred).await,
            Err(error) => {
                if matches!(error, LedgerError::WentBack(_)) {
                    self.alarm(FORGOTTEN);
                }
                Err(error)
            }
        }
    }

    /// Gives up an identity of which the ledger was asked, and knows it no more.
    async fn replace(&self, lost: NodeId) -> Result<(), LedgerError> {
        let node = register(&self.ledger, &self.clock, &self.label).await?;
        tracing::warn!(%lost, %node, "node takes a new identity");
        let mut current = self.node.lock().expect("no holder of this lock panics");
        // Two workers may learn at once that the node is barred: the first one's identity stays,
        // the other row never sends a flight, falls silent and is retired.
        if *current == lost {
            *current = node;
            self.memory().take(node);
        }
        Ok(())
    }

    /// Whether the ledger answered the last heartbeat.
    #[must_use]
    pub fn ledger_answers(&self) -> bool {
        self.ledger_answers.load(Ordering::Relaxed)
    }

    /// Starts the heartbeat. A service says what it sees of Redis with each beat; a one-shot
    /// command has no opinion.
    #[must_use]
    pub fn start(context: Arc<Context>) -> Task {
        let period = context.settings.node_heartbeat;
        Task::start("heartbeat", move |stop| async move {
            let mut ticks = Ticks::every(period, stop);
            while ticks.next().await {
                let report = context.eager.then(|| context.redis_health.report());
                context.membership.beat(&context, report.as_ref()).await;
            }
        })
    }

    /// Notes an epoch that the ledger or Redis has shown.
    pub fn see(&self, at: At) {
        let mut seen = self.seen.lock().expect("no holder of this lock panics");
        let highest = seen.entry(at.partition).or_default();
        *highest = at.epoch.max(*highest);
    }

    /// Of which epochs this process knows that none followed.
    pub(crate) fn vouching(&self) -> MutexGuard<'_, Vouching> {
        self.vouching.lock().expect("no holder of this lock panics")
    }

    /// What this process could report to an inquest.
    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().expect("no holder of this lock panics")
    }

    /// Takes in whom the ledger shows; one that cannot be read shows nobody.
    async fn look_around(&self, ttl: Duration) {
        if !self.ledger.fails_over() {
            return;
        }
        match self.ledger.nodes().await {
            Ok(nodes) => self.memory().look(&nodes, Instant::now(), ttl),
            Err(error) => tracing::debug!(%error, "cannot read the nodes"),
        }
    }

    /// Whether this identity may take numbers from the database: should the ledger forget it,
    /// somebody else must miss it (F25). Redis remembers by itself who took from it.
    pub(crate) fn is_met(&self) -> bool {
        !self.ledger.fails_over() || self.memory().is_met()
    }

    /// The right to hand out what an identity took, until it is dropped; `None` once the ledger has
    /// gone back under that identity: what comes then is no answer any more.
    pub(crate) fn hand_out(&self, node: NodeId) -> Option<RwLockReadGuard<'_, HashSet<NodeId>>> {
        let silenced = self.silenced.read().expect("no holder of this lock panics");
        (!silenced.contains(&node)).then_some(silenced)
    }

    /// The highest epochs seen.
    pub(super) fn seen(&self) -> Vec<At> {
        let seen = self.seen.lock().expect("no holder of this lock panics");
        seen.iter().map(|(partition, epoch)| At { partition: *partition, epoch: *epoch }).collect()
    }

    /// Whether the ledger is known to have gone back and does not say so itself yet.
    #[must_use]
    pub fn ledger_went_back(&self) -> bool {
        self.went_back.lock().expect("no holder of this lock panics").is_some()
    }

    async fn beat(&self, context: &Context, report: Option<&HealthReport>) {
        if self.ledger_went_back() {
            return self.hold_all(context).await;
        }
        let (node, sent_at) = (self.node(), Instant::now());
        let beat = self.ledger.heartbeat(node, report).await;
        self.note_answer(context, beat.as_ref().err());
        match beat {
            Ok(partitions) => {
                self.publish(context, partitions);
                self.testify();
                if let Some(confirmed) = self.ledger.confirmed(node) {
                    self.memory().beat(confirmed, sent_at);
                }
                self.look_around(context.settings.node_ttl).await;
                self.vouching().beat(sent_at, context.settings.recovery_barrier_max);
            }
            Err(LedgerError::NodeGone(_)) => {
                if let Err(error) = self.replace(node).await {
                    tracing::warn!(%error, "cannot register anew");
                }
            }
            Err(LedgerError::WentBack(_)) => self.alarm(FORGOTTEN),
            Err(error) => tracing::warn!(%error, "heartbeat failed"),
        }
        if self.ledger_went_back() {
            self.hold_all(context).await;
        }
    }

    /// Notes whether the ledger answers, by the error of a call that had one.
    fn note_answer(&self, context: &Context, error: Option<&LedgerError>) {
        use LedgerError::{LockTimeout, Unreachable};
        let is_answered = !matches!(error, Some(Unreachable { .. } | LockTimeout { .. }));
        self.ledger_answers.store(is_answered, Ordering::Relaxed);
        context.metrics.ledger_up.set(f64::from(u8::from(is_answered)));
    }

    fn alarm(&self, what: &str) {
        // Before anybody learns of it: from here on nothing is handed out that is not reported
        // again.
        let mut silenced = self.silenced.write().expect("no holder of this lock panics");
        silenced.extend(self.memory().identities());
        drop(silenced);
        let mut went_back = self.went_back.lock().expect("no holder of this lock panics");
        if went_back.is_none() {
            tracing::error!(what, "THE LEDGER WENT BACK; no numbers until its users agree on it");
            *went_back = Some(format!("the ledger went back: {what}"));
        }
    }

    /// Has the ledger say that all partitions are held, then goes on under another identity: of
    /// this one it does not know what it confirmed.
    async fn hold_all(&self, context: &Context) {
        let node = self.node();
        let seen = self.seen();
        let cause = self.went_back.lock().expect("no holder of this lock panics").clone();
        let cause = cause.unwrap_or_default();
        let vouched = {
            let mut vouching = self.vouching();
            vouching.stop(context.settings.recovery_barrier_max);
            vouching.given()
        };
        let held = async {
            if self.ledger.fails_over() {
                self.ledger.inquire(&seen, &cause).await?;
            } else {
                self.ledger.hold_all(&seen, &cause).await?;
            }
            self.ledger.vouch(&vouched).await?;
            self.replace(node).await?;
            self.ledger.partitions().await
        };
        let held = held.await;
        self.note_answer(context, held.as_ref().err());
        match held {
            Ok(partitions) => {
                let at = At { partition: 0, epoch: partitions.first().map_or(0, |row| row.epoch) };
                let detail = serde_json::json!({ "cause": cause });
                context.event("ledger-went-back", at, node, detail).await;
                self.publish(context, partitions);
                self.vouching().forget();
                *self.went_back.lock().expect("no holder of this lock panics") = None;
            }
            Err(error) => tracing::error!(%error, "the partitions cannot be held yet"),
        }
    }

    /// Compares what the ledger shows with what it showed before, and notifies the workers.
    fn publish(&self, context: &Context, partitions: Vec<Partition>) {
        let before = Arc::clone(&self.news.borrow());
        let was = |row: &Partition| before.iter().find(|old| old.partition == row.partition);
        let is_held = |row: &Partition| row.state == PartitionState::Held;
        // One beat follows the other: what the later one shows is not older.
        let is_lower = |row: &&Partition| was(row).is_some_and(|old| row.epoch < old.epoch);
        if let Some(row) = partitions.iter().find(|row| !is_held(row) && is_lower(row)) {
            self.alarm(&format!("partition {} shows an earlier epoch", row.partition));
        }
        let changes = |held| {
            partitions
                .iter()
                .any(|row| is_held(row) == held && was(row).is_some_and(|old| is_held(old) != held))
        };
        if changes(true) {
            context.metrics.ledger_went_back.increment(1);
        }
        // An inquest has it reported by itself, and hears what came of it.
        if changes(true) && !self.ledger.fails_over() || changes(false) {
            drop(context.journal.tell_again());
        }
        for Partition { partition, epoch, .. } in &partitions {
            self.see(At { partition: *partition, epoch: *epoch });
        }
        self.news.send_if_modified(|news| {
            let changed = **news != partitions;
            if changed {
                *news = Arc::new(partitions);
            }
            changed
        });
    }
}

async fn register(
    ledger: &SharedLedger,
    clock: &SharedClock,
    label: &str,
) -> Result<NodeId, LedgerError> {
    let node = NewNode {
        node_id: NodeId::random(),
        label: label.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at_us: clock.now_us(),
    };
    ledger.register_node(&node).await?;
    Ok(node.node_id)
}

/// Host and process id: for operators only, never an identity.
fn label() -> String {
    format!("{}/{}", host(), std::process::id())
}
