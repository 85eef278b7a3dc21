//! The removal of a series that never had a counter. It is a new version, by which the series
//! serves nothing, so each process with the series in its catalog sees the removal; the row stays.
//!
//! Never removes a series of which a number may be out, or may yet come out: the creator of a first
//! counter holds the series' row, as the removal does, and creates none for a version older than
//! the removal.

use numerator_runtime::node::NodeId;

use crate::nodes::marks;
use crate::protocol::partitions;
use crate::query::query;
use crate::series::saving::{lock_all, must_stand_at, note, put_in_force};
use crate::series::used::{is_used, must_keep_no_number, start_anew};
use crate::series::versions::by_id;
use crate::store::{Store, commit_alone};
use crate::{LedgerError, PartitionState, Series, SeriesRefusal, SeriesRemoval, SeriesVersion};

impl Series<'_> {
    /// Removes a series without counters for good: it is in no list any more, its code and types
    /// are free, its id and versions stay on record. An event says who removed it, and why. Returns
    /// its last version. The node is the one of this process.
    ///
    /// # Errors
    /// `WentBack` where the ledger has forgotten what it confirmed to the node: perhaps counters as
    /// well. `Series`: `Unknown` (or removed already), `VersionConflict`, `Used` where it has a
    /// counter, `KeepsNumbers` where it keeps numbers as written, `Held` where the ledger may have
    /// forgotten one.
    pub async fn remove(
        self,
        node: NodeId,
        removal: &SeriesRemoval,
    ) -> Result<SeriesVersion, LedgerError> {
        self.search(async |store| remove(store, node, removal).await).await
    }
}

async fn remove(
    store: &Store,
    node: NodeId,
    removal: &SeriesRemoval,
) -> Result<SeriesVersion, LedgerError> {
    let mut tx = store.begin().await?;
    // Between two heartbeats no other check has noticed a loss yet.
    marks::must_be_remembered(store, &mut *tx, node).await?;
    lock_all(&mut *tx).await?;
    let unknown = SeriesRefusal::Unknown { series_id: removal.series_id };
    let before = by_id(&mut *tx, removal.series_id).await?.ok_or(unknown)?;
    if let Some(expected) = removal.expected {
        must_stand_at(&before, expected)?;
    }
    let code = before.definition.code.clone();
    if is_used(&mut *tx, before.series_id).await? {
        return Err(SeriesRefusal::Used { code }.into());
    }
    must_keep_no_number(&mut *tx, &before).await?;
    // A ledger that went back may have forgotten the very counters of the series.
    if partitions::read(&mut *tx, before.partition).await?.state == PartitionState::Held {
        return Err(SeriesRefusal::Held { code }.into());
    }
    let mut after = SeriesVersion {
        version: before.version + 1,
        active: false,
        saved_by: removal.removed_by.clone(),
        saved_at_us: removal.removed_at_us,
        reason: removal.reason.clone(),
        is_new: true,
        ..before
    };
    // A node that does not know the removal creates no counter: this version has no requests.
    start_anew(&mut *tx, &after).await?;
    put_in_force(&mut *tx, &mut after).await?;
    // No code contains this sign, so another series may have the code.
    query("update series set removed_at_us = $2, code = $3 where series_id = $1")
        .bind(after.series_id)
        .bind(removal.removed_at_us)
        .bind(format!("{code}#{}", after.series_id))
        .execute(&mut *tx)
        .await?;
    note(&mut *tx, &after, after.stamp, "series-removed").await?;
    commit_alone(store, tx).await?;
    Ok(after)
}
