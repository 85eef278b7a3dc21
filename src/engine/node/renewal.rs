//! How one identity of this process follows another (F10, F14, F35).
//!
//! A node that was barred, or whose row is gone, registers anew in its own incarnation of the
//! ledger. In a later one it does so once that was told what is remembered, and nobody else does:
//! others of this process may have agreed on it already.

use super::Membership;
use super::going_back::FORGOTTEN;
use crate::clock::SharedClock;
use crate::ledger::{LedgerError, NewNode, OneIncarnation, SharedLedger};
use crate::node::{NodeId, host};

impl Membership {
    /// Gives up an identity that was barred; does nothing when it was replaced before.
    ///
    /// # Errors
    /// `WentBack` when the ledger has forgotten what it confirmed to it, or is of another
    /// incarnation: then all is held first (F9), and told (F35). Else when the ledger does not
    /// answer, or cannot take the registration.
    pub async fn renew(&self, barred: NodeId) -> Result<(), LedgerError> {
        if self.node() != barred {
            return Ok(());
        }
        // Nobody else would notice any more: to the next identity nothing was confirmed.
        let renewed = match self.ledger.heartbeat(barred, None).await {
            Ok(_) | Err(LedgerError::NodeGone(_)) => self.replace(barred).await,
            Err(error) => Err(error),
        };
        if matches!(renewed, Err(LedgerError::WentBack(_))) {
            self.alarm(barred, FORGOTTEN);
        }
        renewed
    }

    /// Gives up an identity of which the ledger was asked, and knows it no more. All partition
    /// workers may learn of it at once: one of them registers the next, in the same incarnation.
    pub(super) async fn replace(&self, lost: NodeId) -> Result<(), LedgerError> {
        let _one = self.replacing.lock().await;
        if self.node() != lost {
            return Ok(());
        }
        if self.ledger_went_back() {
            return Err(LedgerError::WentBack("it is to be held, and told".into()));
        }
        self.take_identity(self.ledger.incarnation_of(lost)?).await
    }

    /// Takes an identity in an incarnation that was told what is remembered; none where it has one
    /// there.
    pub(super) async fn begin_anew(&self, told: OneIncarnation) -> Result<(), LedgerError> {
        let _one = self.replacing.lock().await;
        if self.ledger.is_registered_in(self.node(), told) {
            return Ok(());
        }
        self.take_identity(told).await
    }

    async fn take_identity(&self, within: OneIncarnation) -> Result<(), LedgerError> {
        let node = register(&self.ledger, &self.clock, &self.label, Some(within)).await?;
        let mut present = self.node.lock().expect("no holder of this lock panics");
        tracing::warn!(lost = %*present, %node, "node takes a new identity");
        // An alarm that came meanwhile is about this incarnation, too.
        let mut silenced = self.silenced.write().expect("no holder of this lock panics");
        if silenced.iter().any(|silent| self.is_beside(*silent, node)) {
            silenced.insert(node);
        }
        *present = node;
        self.memory().take(node);
        Ok(())
    }

    /// Whether two identities of this process are of one incarnation of the ledger.
    pub(super) fn is_beside(&self, one: NodeId, other: NodeId) -> bool {
        let nonce = |node| self.ledger.confirmed(node).map(|confirmed| confirmed.nonce);
        nonce(one) == nonce(other)
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
        Some(within) => ledger.register_node_in(&node, within).await?,
        None => ledger.register_node(&node).await?,
    }
    Ok(node.node_id)
}

/// Host and process id: for operators only, never an identity.
pub(super) fn label() -> String {
    format!("{}/{}", host(), std::process::id())
}
