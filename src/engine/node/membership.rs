//! This process as a node: registered, sending heartbeats, and aware of the ledger's state.
//!
//! A node registers, commits, and only then reads the epochs that it may send flights in. A node
//! that was barred, or whose row is gone, takes a new identity; the old one is never used again
//! (F10, F14).
//!
//! Once the ledger is known to have gone back (F9), this process refuses until the ledger itself
//! shows `held`.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::known_epochs::KnownEpochs;
use super::last_seen_file::{LastSeenFile, Said};
use super::ledger_availability::LedgerAvailability;
use super::memory::Memory;
use super::replay::Replay;
use super::settings::ProcessSettings;
use crate::clock::SharedClock;
use crate::engine::journal::Replayed;
use crate::ledger::{At, Confirmed, LedgerError, NewNode, OneIncarnation, Partition, SharedLedger};
use crate::node::{NodeId, host};

/// What the last heartbeat brought: the partitions as the ledger shows them.
pub type News = Arc<Vec<Partition>>;

/// Why a ledger is held that is found so when a process joins.
const PUT_BACK: &str = "the ledger went back while nothing ran: it has forgotten what it confirmed \
                        to an earlier process of this machine";

/// Why the ledger is known to have gone back.
pub(super) const FORGOTTEN: &str = "it has forgotten what it confirmed";

/// A ledger that went back, on its way to an incarnation in which this process may act.
#[derive(Clone, Debug)]
pub(super) struct WentBack {
    /// The identity under which it did.
    pub(super) node: NodeId,
    /// The reason for the hold.
    pub(super) cause: String,
    /// Whether it is held, by this process or another: the replay of what it remembers is left.
    pub(super) is_held: bool,
}

/// A heartbeat that is not verified yet, and when it was sent.
pub(super) type UnprovenBeat = (Confirmed, Instant);

/// The identity of this process and its view of the ledger.
pub struct Membership {
    pub(super) ledger: SharedLedger,
    pub(super) clock: SharedClock,
    pub(super) label: String,
    /// `node.ttl`: when others take a process for dead.
    pub(super) node_ttl: Duration,
    /// Locked before whatever else of this is.
    pub(super) node: Mutex<NodeId>,
    pub(super) news: watch::Sender<News>,
    /// Highest epoch seen of each partition, wherever it was seen.
    seen: Mutex<BTreeMap<u32, u64>>,
    known_epochs: Mutex<KnownEpochs>,
    memory: Mutex<Memory>,
    /// Identities that hand nothing out any more: the ledger has gone back under them.
    pub(super) silenced: RwLock<HashSet<NodeId>>,
    /// Whether the ledger answers, by its heartbeats or what is done in their place.
    pub(super) availability: LedgerAvailability,
    /// Why the ledger must be held, until it is and this process has replayed what it remembers.
    pub(super) went_back: Mutex<Option<WentBack>>,
    /// Its replays.
    pub(super) replay: Replay,
    /// One identity follows another: the second caller finds it replaced.
    pub(super) replacing: tokio::sync::Mutex<()>,
    /// What is read later is published later: it is never older.
    pub(super) reading: tokio::sync::Mutex<()>,
    /// The newest heartbeat that is not verified yet, and when it was sent.
    pub(super) unproven: Mutex<Option<UnprovenBeat>>,
    /// Where the next process of this machine learns what was confirmed to this one.
    last_seen_file: LastSeenFile,
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
        last_seen_file: LastSeenFile,
        settings: &ProcessSettings,
    ) -> Result<Arc<Self>, LedgerError> {
        let label = label();
        let refused = |why| LedgerError::Refused(format!("the witness of the ledger: {why}"));
        // A SQLite file has its last-seen mark next to it as well.
        if let Err(why) = last_seen_file.must_be_writable() {
            if ledger.fails_over() {
                return Err(refused(why));
            }
            tracing::warn!("{why}");
        }
        if let Some(said) = last_seen_file.read().map_err(refused)?
            && !ledger.nodes().remembers(&said.confirmed).await?
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
        let availability = LedgerAvailability::new(ledger.fails_over(), settings.node_ttl);
        let membership = Membership {
            ledger,
            clock,
            label,
            node_ttl: settings.node_ttl,
            node: Mutex::new(node),
            news: watch::Sender::new(Arc::new(partitions)),
            seen: Mutex::default(),
            known_epochs: Mutex::default(),
            memory: Mutex::new(Memory::new(node, settings.journal.keep)),
            silenced: RwLock::default(),
            availability,
            went_back: Mutex::default(),
            replay: Replay::default(),
            replacing: tokio::sync::Mutex::default(),
            reading: tokio::sync::Mutex::default(),
            unproven: Mutex::default(),
            last_seen_file,
        };
        // Nothing was handed out before.
        membership.note_replayed_by(node, Replayed::default());
        let asked_at = Instant::now();
        match membership.ledger.nodes().list().await {
            Ok(nodes) => {
                let living = nodes.iter().map(|node| (node.node_id, node.beat)).collect();
                membership.look_at(living, asked_at);
            }
            Err(error) => tracing::debug!(%error, "cannot read the nodes"),
        }
        membership.testify();
        Ok(Arc::new(membership))
    }

    /// Leaves word of what was confirmed, for the next process of this machine.
    pub(super) fn testify(&self) {
        let epochs = self.news.borrow().iter().map(|row| row.epoch).collect();
        if let Some(confirmed) = self.ledger.confirmed(self.node()) {
            self.last_seen_file.write(&Said { confirmed, epochs });
        }
    }

    /// The current identity.
    #[must_use]
    pub fn node(&self) -> NodeId {
        *self.node.lock().expect("no holder of this lock panics")
    }

    /// The ledger's state of the partitions, kept up to date by the heartbeat.
    #[must_use]
    pub fn news(&self) -> watch::Receiver<News> {
        self.news.subscribe()
    }

    /// Whether the ledger answers this process.
    #[must_use]
    pub fn availability(&self) -> &LedgerAvailability {
        &self.availability
    }

    /// Notes an epoch that the ledger or Redis has shown.
    pub fn see(&self, at: At) {
        let mut seen = self.seen.lock().expect("no holder of this lock panics");
        let highest = seen.entry(at.partition).or_default();
        *highest = at.epoch.max(*highest);
    }

    /// Of which epochs this process knows that none followed.
    pub(crate) fn known_epochs(&self) -> MutexGuard<'_, KnownEpochs> {
        self.known_epochs.lock().expect("no holder of this lock panics")
    }

    /// What this process could report to an inquest.
    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().expect("no holder of this lock panics")
    }

    /// Takes over the nodes that the ledger shows, each with its heartbeats, and when it was asked
    /// for them.
    pub(super) fn look_at(&self, living: Vec<(NodeId, i64)>, asked_at: Instant) {
        if self.ledger.fails_over() {
            self.memory().look(living, asked_at, self.node_ttl);
        }
    }

    /// Whether this identity may take numbers from the database: should the ledger forget it,
    /// another process must miss it (F25). Redis has its own record of the nodes that took from it.
    pub(crate) fn is_met(&self) -> bool {
        !self.ledger.fails_over() || self.memory().is_met()
    }

    /// The right to hand out what an identity took, until it is dropped; `None` once the ledger has
    /// gone back under that identity: what comes then is no answer any more.
    pub(crate) fn hand_out(&self, node: NodeId) -> Option<RwLockReadGuard<'_, HashSet<NodeId>>> {
        let silenced = self.silenced.read().expect("no holder of this lock panics");
        (!silenced.contains(&node)).then_some(silenced)
    }

    /// The same of what was written, or read, and is handed out only with that right.
    ///
    /// # Errors
    /// `Unreachable`, maybe written, once the ledger has gone back under that identity: worth a
    /// retry.
    pub(crate) fn must_hand_out(
        &self,
        node: NodeId,
    ) -> Result<RwLockReadGuard<'_, HashSet<NodeId>>, LedgerError> {
        self.hand_out(node).ok_or_else(|| {
            let cause = "the ledger went back meanwhile".to_owned();
            LedgerError::Unreachable { cause, maybe_written: true }
        })
    }

    /// The highest epochs seen.
    pub(super) fn seen(&self) -> Vec<At> {
        let seen = self.seen.lock().expect("no holder of this lock panics");
        seen.iter().map(|(partition, epoch)| At { partition: *partition, epoch: *epoch }).collect()
    }

    /// Whether the ledger is known to have gone back and does not show it yet.
    #[must_use]
    pub fn ledger_went_back(&self) -> bool {
        self.went_back.lock().expect("no holder of this lock panics").is_some()
    }
}

/// Registers a new node, in one incarnation or in what was agreed on last.
pub(super) async fn register(
    ledger: &SharedLedger,
    clock: &SharedClock,
    label: &str,
    within: Option<OneIncarnation>,
) -> Result<NodeId, LedgerError> {
    let node = NewNode {
        node_id: NodeId::random(),
        label: label.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at_us: clock.now_us(),
    };
    match within {
        Some(within) => ledger.nodes().register_in(&node, within).await?,
        None => ledger.nodes().register(&node).await?,
    }
    Ok(node.node_id)
}

/// Host and process id: for operators only, never an identity.
fn label() -> String {
    format!("{}/{}", host(), std::process::id())
}
