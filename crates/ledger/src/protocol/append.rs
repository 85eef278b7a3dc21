//! Issued entries on their way into the journal. Not fenced by an epoch: what was handed out is
//! always journaled.
//!
//! Before Redis counts, the ledger has the counter, and a ceiling for it. So an entry of a missing
//! counter, or above the ceiling of its own epoch, is never a bad one: the ledger has forgotten
//! what it confirmed (F25).

use numerator_runtime::node::NodeId;
use uuid::Uuid;

use crate::calls::CALL;
use crate::connections::Share;
use crate::new_row::NewRow;
use crate::nodes::marks;
use crate::protocol::blame;
use crate::protocol::entries::WriteMode;
use crate::protocol::journaling::{EntrySource, journal, record_collision};
use crate::store::{Store, commit, commit_alone};
use crate::{Appended, Entry, Ledger, LedgerError};

impl Ledger {
    /// Writes issued records: one row per range, in one transaction, which counts as one batch of
    /// the node. Idempotent by allocation id.
    /// Raises each counter's `taken` and count of journaled values, shrinks gaps that a late row
    /// fills. A record whose (counter, value) or number belongs to another allocation goes to the
    /// collisions instead; it counts as written.
    ///
    /// # Errors
    /// `WentBack` where an earlier batch of the node is forgotten, or a counter, or its ceiling:
    /// use `journal_again`. `Unfit` where the database refuses one of several for what it holds;
    /// `Refused` of one entry alone, which is to blame (F45).
    /// `LockTimeout` after a brief wait: [`crate::Ledger::held_counters`] says which counter was
    /// held.
    pub async fn append(&self, node: NodeId, entries: &[Entry]) -> Result<Appended, LedgerError> {
        self.call(CALL.named("append").of(Share::Journal), async |store| {
            append(store, node, entries).await
        })
        .await
    }

    /// Notes among the collisions a number that another allocation holds too, unseen by the unique
    /// keys. Safe to repeat.
    pub async fn note_twice(&self, number: &Entry, other: Uuid) -> Result<(), LedgerError> {
        self.write(async |store| {
            let now_us = store.clock.now_us();
            let mut tx = store.begin().await?;
            let new_rows = NewRow::of(0, number)?;
            let other = other.as_bytes().as_slice();
            record_collision(&mut *tx, &new_rows[0], number, Some(other), now_us).await?;
            commit_alone(store, tx).await
        })
        .await
    }
}

/// See [`crate::Ledger::append`].
pub(crate) async fn append(
    store: &Store,
    node: NodeId,
    entries: &[Entry],
) -> Result<Appended, LedgerError> {
    if entries.is_empty() {
        return Ok(Appended::default());
    }
    let all: Vec<&Entry> = entries.iter().collect();
    let appended = match attempt(store, node, &all, WriteMode::Plain).await {
        // A row is above what its counter has taken, or has the text of one of these numbers: then
        // all are looked for.
        Err(LedgerError::Conflict(_)) => attempt(store, node, &all, WriteMode::Judged).await,
        appended => appended,
    };
    blame::judged(store, node, entries, appended).await
}

/// One transaction.
async fn attempt(
    store: &Store,
    node: NodeId,
    entries: &[&Entry],
    write_mode: WriteMode,
) -> Result<Appended, LedgerError> {
    // A process that sleeps before it reads the answer reads it by a later clock (F36).
    let asked_at_us = store.clock.now_us();
    // A waiter for these rows does not wait longer for a counter that it does not need.
    let mut tx = store.begin_brief(Some(node)).await?;
    marks::must_be_remembered(store, &mut *tx, node).await?;
    let writing = store.writing(node, store.clock.now_us());
    let appended = journal(&mut *tx, &writing, entries, (EntrySource::Issuer, write_mode)).await;
    let appended = store.last_seen.or_forget(node, appended)?;
    // Last, so that the node's heartbeat does not wait for the rows.
    let counted = marks::count_batch(&mut *tx, node).await?;
    commit(tx).await?;
    if let Some(counted) = counted.filter(|_| store.last_seen.of(node).is_some()) {
        store.last_seen.confirm(node, counted, asked_at_us);
    }
    Ok(appended)
}
