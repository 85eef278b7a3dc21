//! What the users of a ledger agree on: its incarnation (F25). Drawn when a ledger is first opened,
//! and anew with each hold.

use numerator_runtime::node::NodeId;

use crate::calls::CALL;
use crate::connections::Share;
use crate::dialect::Transaction;
use crate::incarnation::{Incarnation, Shown};
use crate::protocol::lineage;
use crate::store::Store;
use crate::{Ledger, LedgerError, Nodes, OneIncarnation};

impl Ledger {
    /// The incarnation that was agreed on last, for calls that belong together.
    ///
    /// # Errors
    /// `WentBack` where nothing was agreed on.
    pub async fn one_incarnation(&self) -> Result<OneIncarnation, LedgerError> {
        self.call(CALL, async |store| store.last_seen.required(None).map(OneIncarnation)).await
    }
}

impl Nodes<'_> {
    /// Whether a node of this handle registered in an incarnation.
    pub fn is_registered_in(self, node: NodeId, OneIncarnation(it): OneIncarnation) -> bool {
        self.0.store(Share::Common).last_seen.registered_in(node) == Some(it)
    }

    /// The incarnation in which a node of this handle registered.
    ///
    /// # Errors
    /// `WentBack` where the ledger has forgotten what it confirmed to the node.
    pub fn incarnation_of(self, node: NodeId) -> Result<OneIncarnation, LedgerError> {
        self.0.store(Share::Common).last_seen.required(Some(node)).map(OneIncarnation)
    }
}

/// What the ledger shows while others are kept from changing it.
pub(crate) async fn locked(
    store: &Store,
    tx: &mut Transaction,
) -> Result<Option<Shown>, LedgerError> {
    tx.lock_incarnation().await?;
    store.pool().shown(&mut **tx).await
}

/// Draws the next one: a process that knows another one went back, or is late. It replaces the one
/// that is found, the one this process agreed on, and one that it knows besides. The lock is held.
pub(crate) async fn renew(
    store: &Store,
    tx: &mut Transaction,
    shown: Option<Shown>,
    known: Option<Incarnation>,
) -> Result<Incarnation, LedgerError> {
    let (found, marked) = shown.map(|shown| (shown.incarnation, shown.marked)).unzip();
    let replaced: Vec<Incarnation> =
        found.into_iter().chain(store.last_seen.agreed()).chain(known).collect();
    let next = Incarnation::after(replaced.iter().copied().chain(marked.flatten()));
    let now_us = store.clock.now_us();
    lineage::replace(&mut **tx, replaced, now_us).await?;
    lineage::begin(&mut **tx, next, now_us).await?;
    // Last: it notes how far the line has come.
    tx.agree(next).await?;
    Ok(next)
}
