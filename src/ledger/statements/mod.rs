//! Every statement of the ledger that all engines share. Mounted once per engine: `super` is the
//! engine and gives `Db`, `Conn`, `Row`, `Store`, the row locks and the statements over many rows.
//!
//! This page is the table of contents; each method's words stand on the trait.

mod adopt;
mod append;
mod counters;
mod entries;
mod gaps;
mod lookup;
mod nodes;
mod partitions;
mod records;
mod recovery;
mod seed;
mod setup;
mod take;

use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use super::{Conn, Db, ENGINE, FOR_UPDATE, Row, Store, Transaction, allow_long_search, bulk};
use crate::ledger::{
    Acknowledged, Adopted, Appended, At, Claim, ClosedEpoch, Closing, Collision, Counter,
    Deployment, Entry, Event, Found, Gap, GapFilter, JournalFilter, JournalRow, Ledger,
    LedgerError, NewNode, Node, Owner, Partition, PartitionState, Question, Raise, Seed,
    SeedOutcome, SeriesChange, SeriesVersion, Sight, Span, TakeOrder, Taken, Totals, Wanted,
};
use crate::node::NodeId;
use crate::number::TakenRange;

/// Commits; only here may the outcome of a transaction be unknown.
async fn commit(transaction: Transaction) -> Result<(), LedgerError> {
    transaction.commit().await.map_err(LedgerError::at_commit)
}

/// The sixteen bytes of a node's identity.
fn bytes(node: &NodeId) -> &[u8] {
    node.0.as_bytes().as_slice()
}

#[async_trait]
impl Ledger for Store {
    fn engine(&self) -> &'static str {
        ENGINE
    }

    async fn deployment(&self, wanted: &Deployment) -> Result<Deployment, LedgerError> {
        setup::deployment(self, wanted).await
    }

    async fn apply_series(
        &self,
        changes: &[SeriesChange],
    ) -> Result<Vec<SeriesVersion>, LedgerError> {
        setup::apply_series(self, changes).await
    }

    async fn series(&self) -> Result<Vec<SeriesVersion>, LedgerError> {
        setup::series(self).await
    }

    async fn series_stamp(&self) -> Result<i64, LedgerError> {
        setup::series_stamp(self).await
    }

    async fn register_node(&self, node: &NewNode) -> Result<(), LedgerError> {
        nodes::register(self, node).await
    }

    async fn heartbeat(
        &self,
        node: NodeId,
        sight: Option<&Sight>,
    ) -> Result<Vec<Partition>, LedgerError> {
        nodes::heartbeat(self, node, sight).await
    }

    async fn leave(&self, node: NodeId) -> Result<(), LedgerError> {
        nodes::leave(self, node).await
    }

    async fn nodes(&self) -> Result<Vec<Node>, LedgerError> {
        nodes::list(self).await
    }

    async fn retire_node(&self, node: NodeId, beat: i64) -> Result<bool, LedgerError> {
        nodes::retire(self, node, beat).await
    }

    async fn partitions(&self) -> Result<Vec<Partition>, LedgerError> {
        partitions::list(self).await
    }

    async fn participate(&self, at: At, node: NodeId) -> Result<bool, LedgerError> {
        partitions::participate(self, at, node).await
    }

    async fn bump(
        &self,
        at: At,
        from: PartitionState,
        node: NodeId,
        cause: &str,
    ) -> Result<Option<u64>, LedgerError> {
        recovery::bump(self, at, from, node, cause).await
    }

    async fn acknowledge(&self, at: At, nodes: &[NodeId]) -> Result<Acknowledged, LedgerError> {
        recovery::acknowledge(self, at, nodes).await
    }

    async fn claim_open(
        &self,
        at: At,
        node: NodeId,
        at_ceiling: bool,
        owner: &Owner,
    ) -> Result<Claim, LedgerError> {
        recovery::claim_open(self, at, node, at_ceiling, owner).await
    }

    async fn opened(&self, at: At, node: NodeId) -> Result<bool, LedgerError> {
        recovery::opened(self, at, node).await
    }

    async fn hold(&self, seen: At, cause: &str) -> Result<bool, LedgerError> {
        recovery::hold(self, seen, cause).await
    }

    async fn want(&self, partition: Option<u32>, wanted: Wanted) -> Result<u64, LedgerError> {
        recovery::want(self, partition, wanted).await
    }

    async fn closed_epoch(
        &self,
        at: At,
        closing: Option<Closing>,
    ) -> Result<Option<ClosedEpoch>, LedgerError> {
        recovery::closed_epoch(self, at, closing).await
    }

    async fn closings(&self, partition: u32, since_us: i64) -> Result<u64, LedgerError> {
        recovery::closings(self, partition, since_us).await
    }

    async fn seed(
        &self,
        at: At,
        node: NodeId,
        seeds: &[Seed],
    ) -> Result<Vec<SeedOutcome>, LedgerError> {
        seed::seed(self, at, node, seeds).await
    }

    async fn raise(&self, at: At, raises: &[Raise]) -> Result<Vec<Option<i64>>, LedgerError> {
        counters::raise(self, at, raises).await
    }

    async fn counter(
        &self,
        series_id: i64,
        serial: u16,
        key: &str,
    ) -> Result<Option<Counter>, LedgerError> {
        counters::by_name(self, series_id, serial, key).await
    }

    async fn counters(&self, after: i64, limit: u32) -> Result<Vec<Counter>, LedgerError> {
        counters::page(self, after, limit).await
    }

    async fn tightest(&self, limit: u32) -> Result<Vec<Counter>, LedgerError> {
        counters::tightest(self, limit).await
    }

    async fn settle(&self, counter_id: i64) -> Result<(), LedgerError> {
        seed::settle(self, counter_id).await
    }

    async fn append(&self, node: NodeId, entries: &[Entry]) -> Result<Appended, LedgerError> {
        append::append(self, node, entries).await
    }

    async fn reject(&self, entry: &Entry, reason: &str) -> Result<(), LedgerError> {
        append::reject(self, entry, reason).await
    }

    async fn take(
        &self,
        at: At,
        node: NodeId,
        orders: &[TakeOrder],
        lock_wait: Duration,
    ) -> Result<Taken, LedgerError> {
        take::take(self, at, node, orders, lock_wait).await
    }

    async fn replays(&self, questions: &[Question]) -> Result<Vec<Found>, LedgerError> {
        lookup::replays(self, questions).await
    }

    async fn find(&self, filter: &JournalFilter) -> Result<Vec<JournalRow>, LedgerError> {
        lookup::find(self, filter).await
    }

    async fn row_of(&self, counter_id: i64, value: u64) -> Result<Option<JournalRow>, LedgerError> {
        lookup::row_of(self, counter_id, value).await
    }

    async fn recorded(&self, allocations: &[(Uuid, TakenRange)]) -> Result<Vec<bool>, LedgerError> {
        records::recorded(self, allocations).await
    }

    async fn masks_beside(&self, counter_id: i64, value: u64) -> Result<Vec<String>, LedgerError> {
        lookup::masks_beside(self, counter_id, value).await
    }

    async fn holes(
        &self,
        counter_id: i64,
        after: i64,
        upto: i64,
        limit: u32,
    ) -> Result<Vec<Span>, LedgerError> {
        gaps::holes(self, counter_id, after, upto, limit).await
    }

    async fn overlaps(&self, counter_id: i64, limit: u32) -> Result<Vec<Span>, LedgerError> {
        gaps::overlaps(self, counter_id, limit).await
    }

    async fn gaps(&self, filter: &GapFilter) -> Result<Vec<Gap>, LedgerError> {
        gaps::list(self, filter).await
    }

    async fn collisions(&self, limit: u32) -> Result<Vec<Collision>, LedgerError> {
        records::collisions(self, limit).await
    }

    async fn totals(&self) -> Result<Totals, LedgerError> {
        records::totals(self).await
    }

    async fn adopt(
        &self,
        at: At,
        dead: NodeId,
        entries: &[Entry],
        complete: bool,
    ) -> Result<Adopted, LedgerError> {
        adopt::adopt(self, at, dead, entries, complete).await
    }

    async fn record_event(&self, event: &Event) -> Result<(), LedgerError> {
        records::record_event(self, event).await
    }

    async fn events(&self, limit: u32) -> Result<Vec<Event>, LedgerError> {
        records::events(self, limit).await
    }

    async fn events_of(&self, at: At) -> Result<Vec<Event>, LedgerError> {
        records::events_of(self, at).await
    }
}
