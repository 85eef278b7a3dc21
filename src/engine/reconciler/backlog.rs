//! Records in outboxes that are not in the journal yet. Only reads; adoption is elsewhere.

use std::collections::HashMap;
use std::time::Duration;

use numbering::TakenRange;
use serde::Serialize;
use uuid::Uuid;

use super::{RecoveryError, Stores};
use crate::ledger::{At, LedgerError, Record};
use crate::node::NodeId;
use crate::redis::{OutboxEntry, Redis};

/// Entries of an outbox read at once.
const PAGE_ENTRIES: u32 = 200;

/// The content of one node's outbox of one partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Backlog {
    /// The partition.
    pub partition: u32,
    /// The node.
    pub node_id: String,
    /// Entries, one per flight.
    pub entries: u64,
    /// Allocations in them that are not journaled and may have been handed out: an entry of an
    /// epoch closed exact never was (F5).
    pub unjournaled: u64,
    /// The first flight that has one.
    pub first_flight: Option<u64>,
}

impl Backlog {
    /// The node.
    pub(super) fn node(&self) -> Option<NodeId> {
        NodeId::parse(&self.node_id)
    }
}

/// Reads an outbox of so many entries and looks its allocations up in the journal.
///
/// # Errors
/// When Redis or the ledger does not answer.
pub(super) async fn backlog(
    stores: &Stores,
    redis: &Redis,
    partition: u32,
    (node, entries): (NodeId, u64),
) -> Result<Backlog, RecoveryError> {
    let node_id = node.to_string();
    let mut backlog = Backlog { partition, node_id, entries, unjournaled: 0, first_flight: None };
    let mut pages = Pages::new(stores, redis, partition, (node, entries));
    while let Some(open) = pages.next().await? {
        count(stores, &open, &mut backlog).await?;
    }
    Ok(backlog)
}

/// Reads an outbox page by page: those entries that may have been handed out.
pub(super) struct Pages<'a> {
    stores: &'a Stores,
    redis: &'a Redis,
    partition: u32,
    node: NodeId,
    /// What a running node appends beyond these is not waited for.
    entries: u64,
    read: u64,
    after: u64,
    /// Whether an epoch was closed exact: its entries never were handed out (F5).
    exact: HashMap<u64, bool>,
}

impl<'a> Pages<'a> {
    /// Of an outbox with so many entries.
    pub(super) fn new(
        stores: &'a Stores,
        redis: &'a Redis,
        partition: u32,
        (node, entries): (NodeId, u64),
    ) -> Self {
        let exact = HashMap::new();
        Pages { stores, redis, partition, node, entries, read: 0, after: 0, exact }
    }

    /// The next ones; `None` at the end.
    ///
    /// # Errors
    /// When Redis or the ledger does not answer.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<OutboxEntry>>, RecoveryError> {
        let Pages { stores, redis, partition, node, .. } = *self;
        if self.read >= self.entries {
            return Ok(None);
        }
        let page = redis.peek(&stores.keys, partition, node, self.after, PAGE_ENTRIES).await?;
        let Some(last) = page.last() else { return Ok(None) };
        (self.after, self.read) = (last.flight, self.read + page.len() as u64);
        let mut open = Vec::new();
        for entry in page {
            let at = At { partition, epoch: entry.epoch };
            let discarded = match self.exact.get(&entry.epoch) {
                Some(known) => *known,
                None => {
                    let closed = stores.ledger.closed_epoch(at, None).await?;
                    let is_exact = closed.is_some_and(|closed| closed.closes_exact(at));
                    *self.exact.entry(entry.epoch).or_insert(is_exact)
                }
            };
            if !discarded {
                open.push(entry);
            }
        }
        Ok(Some(open))
    }
}

async fn count(
    stores: &Stores,
    entries: &[OutboxEntry],
    backlog: &mut Backlog,
) -> Result<(), LedgerError> {
    let mut flights = Vec::new();
    let mut asked: Vec<(Uuid, TakenRange)> = Vec::new();
    let mut unjournaled = Vec::new();
    for entry in entries {
        for (taken, record) in &entry.allocations {
            match (serde_json::from_str::<Record>(record), taken.first()) {
                (Ok(record), Some(first)) => {
                    flights.push(entry.flight);
                    asked.push((record.allocation_id, *first));
                }
                // Written by another version: this one cannot know whether it is journaled.
                _ => unjournaled.push(entry.flight),
            }
        }
    }
    let recorded = stores.ledger.recorded(&asked).await?;
    unjournaled.extend(flights.into_iter().zip(recorded).filter(|(_, is)| !is).map(|(f, _)| f));
    backlog.unjournaled += unjournaled.len() as u64;
    let first = unjournaled.into_iter().min();
    backlog.first_flight = [backlog.first_flight, first].into_iter().flatten().min();
    Ok(())
}

/// All outboxes of a partition that are not empty, with their content.
///
/// # Errors
/// When Redis or the ledger does not answer.
pub async fn backlogs(
    stores: &Stores,
    redis: &Redis,
    partition: u32,
    nodes: &[NodeId],
) -> Result<Vec<Backlog>, RecoveryError> {
    let (_, outboxes) = stores.survey(redis, partition, nodes).await?;
    let mut found = Vec::new();
    for outbox in outboxes {
        found.push(backlog(stores, redis, partition, outbox).await?);
    }
    Ok(found)
}

/// How long ago the request of an outbox's oldest entry was accepted; `None` where it is empty by
/// now or the entry cannot be read.
///
/// # Errors
/// When Redis does not answer.
pub async fn oldest(
    stores: &Stores,
    redis: &Redis,
    partition: u32,
    node: NodeId,
) -> Result<Option<Duration>, RecoveryError> {
    let page = redis.peek(&stores.keys, partition, node, 0, 1).await?;
    let record = page.first().and_then(|entry| entry.allocations.first());
    let record = record.and_then(|(_, record)| serde_json::from_str::<Record>(record).ok());
    let age_us = record.map(|record| stores.clock.now_us().saturating_sub(record.issued_at_us));
    Ok(age_us.map(|age_us| Duration::from_micros(u64::try_from(age_us).unwrap_or(0))))
}
