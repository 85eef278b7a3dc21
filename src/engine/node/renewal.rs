//! How one identity of this process follows another (F10, F14, F35).
//!
//! A node that was barred, or whose row is gone, registers anew in its own incarnation of the
//! ledger. In a later one it does so only after the replay of what is remembered, and once: other
//! tasks of this process may have agreed on it already.

use super::Membership;
use super::membership::{FORGOTTEN, register};
use crate::ledger::{LedgerError, OneIncarnation};
use crate::node::NodeId;

impl Membership {
    /// Gives up an identity that was barred; does nothing when it was replaced before.
    ///
    /// # Errors
    /// `WentBack` when the ledger has forgotten what it confirmed to it, or is of another
    /// incarnation: then everything is held first (F9), and replayed (F35). Else when the ledger
    /// does not answer, or cannot take the registration.
    pub async fn renew(&self, barred: NodeId) -> Result<(), LedgerError> {
        if self.node() != barred {
            return Ok(());
        }
        // No later check would notice: nothing was confirmed to the next identity.
        let renewed = match self.ledger.nodes().heartbeat(barred, None).await {
            Ok(_) | Err(LedgerError::NodeGone(_)) => self.replace(barred).await,
            Err(error) => Err(error),
        };
        if matches!(renewed, Err(LedgerError::WentBack(_))) {
            self.alarm(barred, FORGOTTEN);
        }
        renewed
    }

    /// Gives up an identity that the ledger no longer has. All partition workers may learn of it at
    /// the same time: one of them registers the next, in the same incarnation.
    pub(super) async fn replace(&self, lost: NodeId) -> Result<(), LedgerError> {
        let _one = self.replacing.lock().await;
        if self.node() != lost {
            return Ok(());
        }
        if self.ledger_went_back() {
            return Err(LedgerError::WentBack("it is to be held, and told".into()));
        }
        self.take_identity(self.ledger.nodes().incarnation_of(lost)?).await
    }

    /// Takes an identity in an incarnation whose replay is done; none where it has one there.
    pub(super) async fn begin_anew(&self, told: OneIncarnation) -> Result<(), LedgerError> {
        let _one = self.replacing.lock().await;
        if self.ledger.nodes().is_registered_in(self.node(), told) {
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
