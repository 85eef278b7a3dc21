//! Every statement of the ledger, for all engines: what one says differently is asked of its
//! connection ([`crate::dialect`]). This page is the table of contents.

mod activity;
mod adopt;
mod append;
mod chain;
mod chronology;
mod counters;
mod entries;
mod gaps;
mod incarnation;
mod inquest;
mod keys;
mod nodes;
mod partitions;
mod proving;
mod records;
mod recovery;
mod reference;
mod restored;
mod seed;
mod series;
mod setup;
mod succession;
mod take;
mod unsettled;
mod versions;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use numbering::TakenRange;
use tokio::time::Instant;
use uuid::Uuid;

use crate::connections::Share;
use crate::dialect::{Conn, Engine, Moment, Transaction};
use crate::patience::Patience;
use crate::statement::{QueryBuilder, Row, query, query_scalar};
use crate::store::Store;
use crate::{
    Acknowledged, ActivityChange, Adopted, Appended, At, Claim, ClosedEpoch, Closing, Collision,
    Connections, Counter, CounterSpec, Deployment, Entry, Event, Gap, GapFilter, HealthReport,
    JournalFilter, JournalRow, Ledger, LedgerError, NewNode, Node, Owner, Partition,
    PartitionState, Raise, RestingSeries, SeedOutcome, SeriesChange, SeriesVersion, Span,
    TakeOrder, Taken, Totals, Wanted,
};
use numerator_base::metrics::LedgerMeter;
use numerator_base::node::NodeId;
use series::Saving;

pub(crate) use incarnation::agree;

/// Commits; only here may the outcome of a transaction be unknown.
async fn commit(transaction: Transaction) -> Result<(), LedgerError> {
    transaction.commit().await.map_err(LedgerError::at_commit)
}

/// Commits what no process reports again to a ledger that forgets it (F25).
async fn commit_alone(store: &Store, transaction: Transaction) -> Result<(), LedgerError> {
    commit(transaction).await?;
    store.witness.note_change();
    Ok(())
}

/// Works on the engine's connections of now, within a call's time. Names the kind of the call where
/// it is watched apart, and whose connections it uses where they are not those that all share.
macro_rules! call {
    ($engine:ident, $store:ident => $work:expr) => {
        call!($engine, $store, "other" => $work)
    };
    ($engine:ident, $store:ident, $kind:literal => $work:expr) => {
        call!($engine, $store of Common, $kind => $work)
    };
    ($engine:ident, $store:ident of $share:ident, $kind:literal => $work:expr) => {{
        let $store = $engine.0.store($crate::connections::Share::$share);
        metered(&$store.meter, $kind, $engine.within(&$store, Patience::Call, $work)).await
    }};
}

/// The same for work that may search through all values of a counter, or write to all counters.
macro_rules! search {
    ($engine:ident, $store:ident => $work:expr) => {
        search!($engine, $store, "other" => $work)
    };
    ($engine:ident, $store:ident, $kind:literal => $work:expr) => {
        search!($engine, $store of Common, $kind => $work)
    };
    ($engine:ident, $store:ident of $share:ident, $kind:literal => $work:expr) => {{
        let $store = $engine.0.store($crate::connections::Share::$share);
        metered(&$store.meter, $kind, $engine.within(&$store, Patience::Search, $work)).await
    }};
}

/// A ledger that was opened.
pub(crate) struct Opened(pub(crate) Box<dyn Engine>);

impl Opened {
    /// Waits for a call on connections as long as it may take.
    ///
    /// # Errors
    /// Those of the call; `Unreachable` after its time, when it may have written all the same.
    async fn within<T>(
        &self,
        store: &Arc<Store>,
        patience: Patience,
        call: impl Future<Output = Result<T, LedgerError>>,
    ) -> Result<T, LedgerError> {
        let mut call = pin!(call);
        tokio::select! {
            biased;
            result = &mut call => {
                if result.as_ref().is_err_and(LedgerError::is_of_outgrown_statement) {
                    self.0.give_up(store, "the schema has changed");
                }
                result
            }
            () = self.0.is_late(store, patience) => {
                // Before the call is dropped: its connection must not go back to a living pool.
                self.0.give_up(store, "the ledger does not answer");
                let cause = "no answer within database.call_limit".to_owned();
                Err(LedgerError::Unreachable { cause, maybe_written: true })
            }
        }
    }
}

/// Counts a call.
async fn metered<T>(
    meter: &LedgerMeter,
    kind: &str,
    call: impl Future<Output = Result<T, LedgerError>>,
) -> Result<T, LedgerError> {
    let started = Instant::now();
    let outcome = call.await;
    meter.count(kind, started.elapsed(), outcome.as_ref().err().map(LedgerError::reason));
    outcome
}

// Below the macros that they use.
mod audits;
mod documents;
mod exchange_serials;
mod holding;
mod import;
mod lookup;
mod safety;
mod snowflakes;

/// The sixteen bytes of a node's identity.
fn bytes(node: &NodeId) -> &[u8] {
    node.0.as_bytes().as_slice()
}

#[async_trait]
impl Ledger for Opened {
    fn engine(&self) -> &'static str {
        self.0.name()
    }

    fn connections(&self) -> Connections {
        self.0.store(Share::Common).pool.connections()
    }

    async fn deployment(&self, wanted: &Deployment) -> Result<Deployment, LedgerError> {
        call!(self, store => setup::deployment(&store, wanted))
    }

    async fn agree_window(&self, node: NodeId, ms: u64, change: bool) -> Result<(), LedgerError> {
        call!(self, store => setup::agree_window(&store, node, ms, change))
    }

    async fn apply_series(
        &self,
        changes: &[SeriesChange],
    ) -> Result<Vec<SeriesVersion>, LedgerError> {
        search!(self, store => series::save(&store, changes, Saving::Save))
    }

    async fn try_series(
        &self,
        changes: &[SeriesChange],
    ) -> Result<Vec<SeriesVersion>, LedgerError> {
        search!(self, store => series::save(&store, changes, Saving::DryRun))
    }

    async fn set_activity(&self, change: &ActivityChange) -> Result<SeriesVersion, LedgerError> {
        search!(self, store => activity::set_activity(&store, change))
    }

    async fn series(&self) -> Result<Vec<SeriesVersion>, LedgerError> {
        call!(self, store => versions::in_force(&store))
    }

    async fn resting_series(&self) -> Result<Vec<RestingSeries>, LedgerError> {
        call!(self, store => versions::resting(&store))
    }

    async fn series_versions(
        &self,
        series_id: i64,
        upto: u32,
        limit: u32,
    ) -> Result<Vec<SeriesVersion>, LedgerError> {
        call!(self, store => versions::versions(&store, series_id, upto, limit))
    }

    async fn series_stamp(&self) -> Result<i64, LedgerError> {
        call!(self, store => versions::stamp(&store))
    }

    async fn register_node(&self, node: &NewNode) -> Result<(), LedgerError> {
        call!(self, store of Heartbeat, "other" => nodes::register(&store, node))
    }

    async fn heartbeat(
        &self,
        node: NodeId,
        sight: Option<&HealthReport>,
    ) -> Result<Vec<Partition>, LedgerError> {
        call!(self, store of Heartbeat, "heartbeat" => nodes::heartbeat(&store, node, sight))
    }

    async fn leave(&self, node: NodeId) -> Result<(), LedgerError> {
        call!(self, store => nodes::leave(&store, node))
    }

    async fn nodes(&self) -> Result<Vec<Node>, LedgerError> {
        call!(self, store of Heartbeat, "other" => nodes::list(&store))
    }

    async fn retire_node(&self, node: NodeId, beat: i64) -> Result<bool, LedgerError> {
        call!(self, store => nodes::retire(&store, node, beat))
    }

    async fn partitions(&self) -> Result<Vec<Partition>, LedgerError> {
        call!(self, store => partitions::list(&store))
    }

    async fn participate(&self, at: At, node: NodeId) -> Result<bool, LedgerError> {
        call!(self, store => partitions::participate(&store, at, node))
    }

    async fn bump(
        &self,
        at: At,
        from: PartitionState,
        node: NodeId,
        cause: &str,
    ) -> Result<Option<u64>, LedgerError> {
        call!(self, store => recovery::bump(&store, at, from, node, cause))
    }

    async fn acknowledge(&self, at: At, nodes: &[NodeId]) -> Result<Acknowledged, LedgerError> {
        call!(self, store => recovery::acknowledge(&store, at, nodes))
    }

    async fn claim_open(
        &self,
        at: At,
        node: NodeId,
        at_ceiling: bool,
        owner: &Owner,
    ) -> Result<Claim, LedgerError> {
        call!(self, store => recovery::claim_open(&store, at, node, at_ceiling, owner))
    }

    async fn opened(&self, at: At, node: NodeId) -> Result<bool, LedgerError> {
        call!(self, store => recovery::opened(&store, at, node))
    }

    async fn lost_at_most(&self, closed: At) -> Result<u64, LedgerError> {
        search!(self, store => recovery::lost_at_most(&store, closed))
    }

    async fn want(&self, partition: Option<u32>, wanted: Wanted) -> Result<u64, LedgerError> {
        call!(self, store => recovery::want(&store, partition, wanted))
    }

    async fn lend(&self, partition: u32, lent: [Option<Uuid>; 2]) -> Result<bool, LedgerError> {
        call!(self, store => recovery::lend(&store, partition, lent))
    }

    async fn closed_epoch(
        &self,
        at: At,
        closing: Option<Closing>,
    ) -> Result<Option<ClosedEpoch>, LedgerError> {
        call!(self, store => recovery::closed_epoch(&store, at, closing))
    }

    async fn closings(&self, partition: u32, since_us: i64) -> Result<u64, LedgerError> {
        call!(self, store => recovery::closings(&store, partition, since_us))
    }

    async fn seed(
        &self,
        at: At,
        node: NodeId,
        specs: &[CounterSpec],
    ) -> Result<Vec<SeedOutcome>, LedgerError> {
        search!(self, store, "seed" => seed::seed(&store, at, node, specs))
    }

    async fn raise(&self, at: At, raises: &[Raise]) -> Result<Vec<Option<i64>>, LedgerError> {
        call!(self, store, "raise" => counters::raise(&store, at, raises))
    }

    async fn counter(
        &self,
        series_id: i64,
        serial: &str,
        key: &str,
    ) -> Result<Option<Counter>, LedgerError> {
        call!(self, store => counters::by_name(&store, series_id, serial, key))
    }

    async fn counters(&self, after: i64, limit: u32) -> Result<Vec<Counter>, LedgerError> {
        call!(self, store => counters::page(&store, after, limit))
    }

    async fn tightest(&self, limit: u32) -> Result<Vec<Counter>, LedgerError> {
        call!(self, store => counters::tightest(&store, limit))
    }

    async fn settle(&self, counter_id: i64) -> Result<(), LedgerError> {
        search!(self, store => seed::settle(&store, counter_id))
    }

    async fn append(&self, node: NodeId, entries: &[Entry]) -> Result<Appended, LedgerError> {
        call!(self, store of Journal, "append" => append::append(&store, node, entries))
    }

    async fn held_counters(&self, counter_ids: &[i64]) -> Result<Vec<i64>, LedgerError> {
        call!(self, store of Journal, "other" => store.held_counters(counter_ids))
    }

    async fn reject(&self, entry: &Entry, reason: &str) -> Result<(), LedgerError> {
        call!(self, store of Journal, "other" => append::reject(&store, entry, reason))
    }

    async fn take(
        &self,
        at: At,
        node: NodeId,
        orders: &[TakeOrder],
        lock_wait: Duration,
    ) -> Result<Taken, LedgerError> {
        // Not a search, although a first touch may have to: on the database path nothing else may
        // be asking often enough to notice a dead peer, and requests wait for it.
        call!(self, store, "take" => take::take(&store, at, node, orders, lock_wait))
    }

    async fn find(&self, filter: &JournalFilter) -> Result<Vec<JournalRow>, LedgerError> {
        call!(self, store => lookup::find(&store, filter))
    }

    async fn row_of(&self, counter_id: i64, value: u64) -> Result<Option<JournalRow>, LedgerError> {
        call!(self, store => lookup::row_of(&store, counter_id, value))
    }

    async fn recorded(&self, allocations: &[(Uuid, TakenRange)]) -> Result<Vec<bool>, LedgerError> {
        call!(self, store => records::recorded(&store, allocations))
    }

    async fn masks_beside(&self, counter_id: i64, value: u64) -> Result<Vec<String>, LedgerError> {
        call!(self, store => lookup::masks_beside(&store, counter_id, value))
    }

    async fn holes(
        &self,
        counter_id: i64,
        after: i64,
        upto: i64,
        limit: u32,
    ) -> Result<Vec<Span>, LedgerError> {
        search!(self, store => gaps::holes(&store, counter_id, after, upto, limit))
    }

    async fn overlaps(&self, counter_id: i64, limit: u32) -> Result<Vec<Span>, LedgerError> {
        search!(self, store => gaps::overlaps(&store, counter_id, limit))
    }

    async fn gaps(&self, filter: &GapFilter) -> Result<Vec<Gap>, LedgerError> {
        call!(self, store => gaps::list(&store, filter))
    }

    async fn collisions(&self, limit: u32) -> Result<Vec<Collision>, LedgerError> {
        call!(self, store => records::collisions(&store, limit))
    }

    async fn collisions_count(&self) -> Result<u64, LedgerError> {
        call!(self, store => records::collisions_count(&store))
    }

    async fn totals(&self) -> Result<Totals, LedgerError> {
        search!(self, store => records::totals(&store))
    }

    async fn adopt(
        &self,
        at: At,
        dead: NodeId,
        entries: &[Entry],
        complete: bool,
    ) -> Result<Adopted, LedgerError> {
        // Counters that are looked for by their names take some statements each.
        search!(self, store => adopt::adopt(&store, at, dead, entries, complete))
    }

    async fn record_event(&self, event: &Event) -> Result<(), LedgerError> {
        call!(self, store => records::record_event(&store, event))
    }

    async fn events(&self, limit: u32) -> Result<Vec<Event>, LedgerError> {
        call!(self, store => records::events(&store, limit))
    }

    async fn events_of(&self, at: At) -> Result<Vec<Event>, LedgerError> {
        call!(self, store => records::events_of(&store, at))
    }
}
