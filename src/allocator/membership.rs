//! This process as a node: registered, beating, and aware of what the ledger says.
//!
//! A node registers, commits, and only then reads the epochs that it may fly in. A node that was
//! barred, or whose row is gone, takes a new identity; the old one is never used again (F10, F14).

use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use super::Context;
use crate::clock::SharedClock;
use crate::ledger::{LedgerError, NewNode, Partition, SharedLedger, Sight};
use crate::node::{NodeId, host};
use crate::task::{Task, Ticks};

/// What the last heartbeat brought: the partitions as the ledger shows them.
pub type News = Arc<Vec<Partition>>;

/// The identity of this process and its view of the ledger.
pub struct Membership {
    ledger: SharedLedger,
    clock: SharedClock,
    label: String,
    node: Mutex<NodeId>,
    news: watch::Sender<News>,
}

impl Membership {
    /// Registers a new node.
    ///
    /// # Errors
    /// When the ledger cannot take the registration.
    pub async fn join(ledger: SharedLedger, clock: SharedClock) -> Result<Arc<Self>, LedgerError> {
        let label = label();
        let node = register(&ledger, &clock, &label).await?;
        let partitions = ledger.partitions().await?;
        Ok(Arc::new(Membership {
            ledger,
            clock,
            label,
            node: Mutex::new(node),
            news: watch::Sender::new(Arc::new(partitions)),
        }))
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

    /// Gives up an identity that was barred or forgotten; does nothing when it was replaced before.
    ///
    /// # Errors
    /// When the ledger cannot take the registration.
    pub async fn renew(&self, lost: NodeId) -> Result<(), LedgerError> {
        if self.node() != lost {
            return Ok(());
        }
        let node = register(&self.ledger, &self.clock, &self.label).await?;
        tracing::warn!(%lost, %node, "node takes a new identity");
        let mut current = self.node.lock().expect("no holder of this lock panics");
        // Two lanes may be told at once that the node is barred: the first one's identity stays,
        // the other row never flies, falls silent and is retired.
        if *current == lost {
            *current = node;
        }
        Ok(())
    }

    /// Starts the heartbeat. A service says what it sees of Redis with each beat; a one-shot
    /// command has no opinion.
    #[must_use]
    pub fn start(context: Arc<Context>) -> Task {
        let period = context.settings.node_heartbeat;
        Task::start("heartbeat", move |stop| async move {
            let mut ticks = Ticks::every(period, stop);
            while ticks.next().await {
                let sight = context.eager.then(|| context.sights.sight());
                context.membership.beat(sight.as_ref()).await;
            }
        })
    }

    async fn beat(&self, sight: Option<&Sight>) {
        let node = self.node();
        match self.ledger.heartbeat(node, sight).await {
            Ok(partitions) => self.publish(partitions),
            Err(LedgerError::NodeGone(_)) => {
                if let Err(error) = self.renew(node).await {
                    tracing::warn!(%error, "cannot register anew");
                }
            }
            Err(error) => tracing::warn!(%error, "heartbeat failed"),
        }
    }

    fn publish(&self, partitions: Vec<Partition>) {
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
