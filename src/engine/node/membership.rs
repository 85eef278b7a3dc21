//! This process as a node: registered, beating, and aware of what the ledger says.
//!
//! A node registers, commits, and only then reads the epochs that it may send flights in. A node
//! that was barred, or whose row is gone, takes a new identity; the old one is never used again
//! (F10, F14).
//!
//! Here it is noticed that the ledger went back (F9): it has forgotten a heartbeat, a journal batch
//! or an epoch that it showed before. Until the ledger itself says `held`, this process refuses.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::going_back::{FORGOTTEN, UnprovenBeat, WentBack};
use super::ledger_sight::LedgerSight;
use super::memory::Memory;
use super::own_sight::report;
use super::renewal::{label, register};
use super::telling::Telling;
use super::testimony::{Said, Testimony};
use super::vouching::Vouching;
use super::{Context, ProcessSettings};
use crate::clock::SharedClock;
use crate::engine::journal::Told;
use crate::ledger::{At, LedgerError, NodeReport, Partition, PartitionState, SharedLedger};
use crate::node::NodeId;
use crate::task::{Task, Ticks};

/// What the last heartbeat brought: the partitions as the ledger shows them.
pub type News = Arc<Vec<Partition>>;

/// Why a ledger is held that is found so when a process joins.
const PUT_BACK: &str = "the ledger went back while nothing ran: it has forgotten what it confirmed \
                        to an earlier process of this machine";

/// The identity of this process and its view of the ledger.
pub struct Membership {
    pub(super) ledger: SharedLedger,
    pub(super) clock: SharedClock,
    pub(super) label: String,
    /// `node.ttl`: when others take a process for dead.
    pub(super) node_ttl: Duration,
    /// Locked before whatever else of this is.
    pub(super) node: Mutex<NodeId>,
    news: watch::Sender<News>,
    /// Highest epoch seen of each partition, wherever it was seen.
    seen: Mutex<BTreeMap<u32, u64>>,
    vouching: Mutex<Vouching>,
    memory: Mutex<Memory>,
    /// Identities that hand nothing out any more: the ledger has gone back under them.
    pub(super) silenced: RwLock<HashSet<NodeId>>,
    /// Whether the ledger answers, by its heartbeats or what is done in their place.
    sight: LedgerSight,
    /// Why the ledger must be held, until it is, and this process has told it what it remembers.
    pub(super) went_back: Mutex<Option<WentBack>>,
    /// What it told.
    pub(super) telling: Telling,
    /// One identity follows another: whoever comes second finds it taken.
    pub(super) replacing: tokio::sync::Mutex<()>,
    /// What is read later is published later: it is never older.
    pub(super) reading: tokio::sync::Mutex<()>,
    /// The newest heartbeat behind which nobody has looked yet, and when it was sent.
    pub(super) unproven: Mutex<Option<UnprovenBeat>>,
    /// Where the next process of this machine learns what was confirmed to this one.
    testimony: Testimony,
}

impl Membership {
    /// Registers a new node. A ledger that has forgotten what it confirmed to an earlier process
    /// of this machine is held first: it was put back while nothing ran.
    ///
    /// # Errors
    /// When the ledger cannot take the registration, the witness cannot be read, or none can be
    /// left for a ledger whose other witnesses do not stay with it.
    pub async fn join(
        ledger: SharedLedger,
        clock: SharedClock,
        testimony: Testimony,
        settings: &ProcessSettings,
    ) -> Result<Arc<Self>, LedgerError> {
        let label = label();
        let refused = |why| LedgerError::Refused(format!("the witness of the ledger: {why}"));
        // A SQLite file has its mark beside it as well.
        if let Err(why) = testimony.must_be_writable() {
            if ledger.fails_over() {
                return Err(refused(why));
            }
            tracing::warn!("{why}");
        }
        if let Some(said) = testimony.read().map_err(refused)?
            && !ledger.remembers(&said.confirmed).await?
        {
            tracing::error!(?said, "THE LEDGER WENT BACK while nothing ran");
            ledger.hold_all_after(&said.confirmed, &said.seen(), PUT_BACK).await?;
        }
        let node = match register(&ledger, &clock, &label, None).await {
            // Held by another process since this one opened it.
            Err(LedgerError::WentBack(_)) => {
                ledger.hold_all(&[], FORGOTTEN).await?;
                register(&ledger, &clock, &label, None).await?
            }
            registered => registered?,
        };
        let partitions = ledger.partitions().await?;
        let sight = LedgerSight::new(ledger.fails_over(), settings.node_ttl);
        let membership = Membership {
            ledger,
            clock,
            label,
            node_ttl: settings.node_ttl,
            node: Mutex::new(node),
            news: watch::Sender::new(Arc::new(partitions)),
            seen: Mutex::default(),
            vouching: Mutex::default(),
            memory: Mutex::new(Memory::new(node, settings.journal.keep)),
            silenced: RwLock::default(),
            sight,
            went_back: Mutex::default(),
            telling: Telling::default(),
            replacing: tokio::sync::Mutex::default(),
            reading: tokio::sync::Mutex::default(),
            unproven: Mutex::default(),
            testimony,
        };
        // Nothing was handed out before.
        membership.note_told_by(node, Told::default());
        match membership.ledger.nodes().await {
            Ok(nodes) => {
                membership.look_at(nodes.iter().map(|node| (node.node_id, node.beat)).collect());
            }
            Err(error) => tracing::debug!(%error, "cannot read the nodes"),
        }
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

    /// Whether the ledger answers this process.
    #[must_use]
    pub fn sight(&self) -> &LedgerSight {
        &self.sight
    }

    /// Starts reading the partitions, as often as the heartbeat and beside it: whoever waits for
    /// them does not fall silent (F47).
    #[must_use]
    pub fn start_news(context: Arc<Context>) -> Task {
        let period = context.settings.node_heartbeat();
        Task::start("news", move |stop| async move {
            let mut ticks = Ticks::every(period, stop);
            while ticks.next().await {
                context.membership.read_news(&context).await;
            }
        })
    }

    async fn read_news(&self, context: &Context) {
        let _one = self.reading.lock().await;
        if self.ledger_went_back() {
            return;
        }
        let (asked_at, node) = (Instant::now(), self.node());
        match self.ledger.partitions_as(node).await {
            Ok(partitions) => {
                self.publish(context, node, partitions);
                self.vouching().beat(asked_at, context.settings.recovery_barrier_max);
            }
            Err(error) => tracing::debug!(%error, "cannot read the partitions"),
        }
    }

    /// Starts the heartbeat. A service says with each beat what it sees of Redis and what keeps it
    /// from its work; a one-shot command has no opinion.
    #[must_use]
    pub fn start(context: Arc<Context>) -> Task {
        let period = context.settings.node_heartbeat();
        Task::start("heartbeat", move |stop| async move {
            let (mut ticks, sight) = (Ticks::every(period, stop), &context.membership.sight);
            let beating = async {
                while ticks.next().await {
                    let report = context.eager.then(|| report(&context));
                    sight.watching(context.membership.beat(&context, report.as_ref())).await;
                }
            };
            let knock = || {
                let ledger = Arc::clone(&context.ledger);
                async move { ledger.knock().await }
            };
            tokio::select! {
                () = beating => {}
                never = sight.knocking(knock) => match never {}
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

    /// Takes in whom the ledger shows, each with its heartbeats.
    fn look_at(&self, living: Vec<(NodeId, i64)>) {
        if self.ledger.fails_over() {
            self.memory().look(living, Instant::now(), self.node_ttl);
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

    async fn beat(&self, context: &Context, report: Option<&NodeReport>) {
        self.sight.ask();
        if self.ledger_went_back() {
            return self.hold_all(context).await;
        }
        let (node, sent_at) = (self.node(), Instant::now());
        let beat = self.ledger.heartbeat(node, report).await;
        self.note_answer(context, beat.as_ref().err());
        match beat {
            Ok(living) => {
                self.testify();
                // Each time before the next heartbeat: others count on it (F25).
                self.look_at(living);
                let beat = self.ledger.confirmed(node).map(|confirmed| (confirmed, sent_at));
                if self.ledger.has_unproven_takes() {
                    *self.unproven.lock().expect("no holder of this lock panics") = beat;
                } else {
                    self.note_proven(beat);
                }
            }
            Err(LedgerError::NodeGone(_)) => {
                if let Err(error) = self.replace(node).await {
                    tracing::warn!(%error, "cannot register anew");
                }
            }
            Err(LedgerError::WentBack(_)) => self.alarm(node, FORGOTTEN),
            Err(error) => tracing::warn!(%error, "heartbeat failed"),
        }
        if self.ledger_went_back() {
            self.hold_all(context).await;
        }
    }

    /// Notes whether the ledger answers, by the error of a call that had one.
    pub(super) fn note_answer(&self, context: &Context, error: Option<&LedgerError>) {
        use LedgerError::{Fault, LockTimeout, Unreachable};
        let is_answered =
            !matches!(error, Some(Unreachable { .. } | LockTimeout { .. } | Fault(_)));
        self.sight.answer(error);
        context.metrics.ledger_up.set(f64::from(u8::from(is_answered)));
    }

    /// Compares what the ledger shows an identity with what it showed before, and notifies the
    /// workers.
    pub(super) fn publish(&self, context: &Context, node: NodeId, partitions: Vec<Partition>) {
        let before = Arc::clone(&self.news.borrow());
        if partitions.len() < before.len() {
            // Its rows are away: it is being put back.
            tracing::warn!(shown = partitions.len(), "the ledger shows fewer partitions");
            return;
        }
        let was = |row: &Partition| before.iter().find(|old| old.partition == row.partition);
        let is_held = |row: &Partition| row.state == PartitionState::Held;
        let is_lower = |row: &&Partition| was(row).is_some_and(|old| row.epoch < old.epoch);
        if let Some(row) = partitions.iter().find(|row| !is_held(row) && is_lower(row)) {
            self.alarm(node, &format!("partition {} shows an earlier epoch", row.partition));
        }
        if partitions.iter().any(|row| is_held(row) && was(row).is_some_and(|old| !is_held(old))) {
            context.metrics.ledger_went_back.increment(1);
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
