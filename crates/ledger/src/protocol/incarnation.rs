//! What the users of a ledger agree on: its incarnation (F25). Drawn when a ledger is first opened,
//! and anew with each hold.

use numerator_runtime::node::NodeId;

use crate::calls::CALL;
use crate::connections::Share;
use crate::dialect::Transaction;
use crate::incarnation::{Incarnation, Shown};
use crate::protocol::holding::{self, Asking};
use crate::protocol::lineage;
use crate::store::{Store, commit};
use crate::{Ledger, LedgerError, Nodes, OneIncarnation};

/// Why a ledger is held that is opened in another incarnation than the one agreed on.
const PUT_BACK: &str = "the ledger went back while nobody looked: it lives another life than the \
                        one that was agreed on";

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

/// Takes over what was agreed on. A ledger in another incarnation by now was restored, or failed
/// over, while no process of this handle watched: it is held immediately, before the first number.
pub(crate) async fn agree(store: &Store) -> Result<(), LedgerError> {
    let mut tx = store.reader.begin().await?;
    let shown = store.pool().shown(&mut *tx).await?;
    tx.commit().await?;
    if let Some(Shown { incarnation, is_present: true, .. }) = shown {
        store.last_seen.agree(incarnation);
        return Ok(());
    }
    let mut tx = store.begin_unfenced().await?;
    tx.lock_incarnation().await?;
    // Another process may have been first.
    match store.pool().shown(&mut *tx).await? {
        Some(Shown { incarnation, is_present: true, .. }) => store.last_seen.agree(incarnation),
        None => {
            let first = Incarnation::first();
            tx.agree(first).await?;
            lineage::begin(&mut *tx, first, store.clock.now_us()).await?;
            commit(tx).await?;
            store.last_seen.agree(first);
        }
        Some(_) => {
            drop(tx);
            // Other processes may run that have not noticed yet.
            let asking = if store.pool().fails_over() { Asking::All } else { Asking::Nobody };
            holding::hold_all(store, &[], PUT_BACK, (asking, None)).await?;
        }
    }
    Ok(())
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
