//! Releases a partition that is held because the ledger went back (F9).
//!
//! The ledger gets what Redis remembers: the records of the epoch that took the last numbers are
//! journaled again, and no counter continues below anything that was ever allowed. What no store
//! remembers ends up in the gap register as unaccounted. Whatever is read here only ever lifts:
//! each step is safe to repeat, and nothing is issued before the last one.

use serde::Serialize;
use thiserror::Error;

use super::margin::{Unbounded, unbounded};
use crate::ledger::{
    At, Entry, LedgerError, Lift, Owner, Partition, PartitionState, Released, SharedLedger,
};
use crate::node::NodeId;
use crate::redis::{
    CounterError, Frozen, HeldKey, Keys, OutboxEntry, Redis, Remembered, Revealed, SCAN_KEYS,
    Scanned,
};

/// Entries of an outbox read at once.
const PAGE_ENTRIES: u32 = 200;
/// Records journaled at once.
const ROWS_MAX: usize = 500;

/// Why a partition was not released. Nothing is lost: the same call may be made again.
#[derive(Debug, Error)]
pub enum RestoreError {
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Redis.
    #[error(transparent)]
    Redis(#[from] CounterError),
    /// Redis counts for another ledger (F8).
    #[error("redis counts for the ledger {0}: name another one in redis.url")]
    Foreign(String),
    /// Redis may know more, and cannot be asked.
    #[error(
        "partition {0} belongs to redis; set redis.url, or say --without-redis if its data is lost"
    )]
    NoRedis(u32),
    /// It is unknown how many numbers the ledger has forgotten.
    #[error(
        "partition {0}: {1}; say with --margin how many numbers each counter may have issued since \
         the newest record of the ledger"
    )]
    MarginNeeded(u32, Unbounded),
    /// A higher epoch was opened meanwhile.
    #[error("partition {0} has moved on; try again")]
    MovedOn(u32),
}

/// What a release works on.
#[derive(Clone, Copy)]
pub struct Restore<'a> {
    /// The ledger that went back.
    pub ledger: &'a SharedLedger,
    /// The Redis of the fast path; `None`: its data is lost, or there is none.
    pub redis: Option<&'a Redis>,
    /// Builds Redis keys.
    pub keys: &'a Keys,
    /// The ledger's deployment id.
    pub deployment: &'a str,
    /// The acting node, for the rows that it writes.
    pub node: NodeId,
    /// Numbers left out above each counter of the ledger; `None`: none were named.
    pub margin: Option<u64>,
    /// Whether `redis` is left out because the operator declares its data lost.
    pub without_redis: bool,
    /// Whether to write; else it is only read.
    pub apply: bool,
}

/// What was found of one partition, and done.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Restored {
    /// The partition.
    pub partition: u32,
    /// The epoch that the ledger shows.
    pub epoch: u64,
    /// The highest epoch that nodes have shown.
    pub seen_epoch: u64,
    /// The epoch in which Redis last took numbers; `None`: it knows of none.
    pub redis_epoch: Option<u64>,
    /// Since which epoch its data set has owned every one up to that.
    pub run_since: Option<u64>,
    /// Counters in Redis.
    pub counters: u64,
    /// Counters whose ceiling in Redis is above the ledger's, or which the ledger does not know.
    pub counters_behind: u64,
    /// Records in outboxes and idempotency records of that epoch.
    pub records: u64,
    /// Of these written to the journal now.
    pub journaled: u64,
    /// Records of earlier epochs: whether they were handed out is not known any more.
    pub left_alone: u64,
    /// Why `--margin` must give what Redis cannot; `None`: it can, or there is no counter.
    pub unbounded: Option<Unbounded>,
    /// The epoch in which the partition is open again; `None`: only read.
    pub released: Option<u64>,
}

impl Restore<'_> {
    /// Examines one held partition and, with `apply`, releases it.
    ///
    /// # Errors
    /// See [`RestoreError`].
    pub async fn partition(&self, row: &Partition) -> Result<Restored, RestoreError> {
        let partition = row.partition;
        let mut found = Restored {
            partition,
            epoch: row.epoch,
            seen_epoch: row.seen_epoch,
            ..Restored::default()
        };
        let page = self.first_page(row).await?;
        let redis_epoch = page.as_ref().and_then(|page| page.epoch);
        found.redis_epoch = page.as_ref().and_then(|page| page.taking_epoch);
        found.run_since = page.as_ref().and_then(|page| page.run_since);
        let known = row.epoch.max(row.seen_epoch);
        if let Some(why) = unbounded(row, self.first_forgotten(row).await?, page.as_ref())
            && self.has_counters(partition, page.as_ref()).await?
        {
            found.unbounded = Some(why);
        }
        let to = At { partition, epoch: known.max(redis_epoch.unwrap_or(0)) + 1 };
        if self.apply {
            if let (Some(why), None) = (found.unbounded, self.margin) {
                return Err(RestoreError::MarginNeeded(partition, why));
            }
            self.freeze(to).await?;
        }
        if let (Some(redis), Some(page)) = (self.redis, page) {
            self.walk(redis, page, &mut found).await?;
        }
        if self.apply {
            match self.ledger.release(to, self.margin.unwrap_or(0)).await? {
                Released::Released => found.released = Some(to.epoch),
                Released::Behind | Released::NotHeld => {
                    return Err(RestoreError::MovedOn(partition));
                }
            }
        }
        Ok(found)
    }

    /// The first epoch of which numbers may be forgotten: the one before the ledger's own too,
    /// where that was not closed yet.
    async fn first_forgotten(&self, row: &Partition) -> Result<u64, RestoreError> {
        let before = At { partition: row.partition, epoch: row.epoch.saturating_sub(1) };
        let closed = self.ledger.closed_epoch(before, None).await?;
        let is_closed = closed.is_some_and(|closed| closed.at == before);
        // Nothing is taken in epoch 0.
        Ok(if is_closed { row.epoch } else { before.epoch }.max(1))
    }

    /// Whether the ledger or Redis knows any counter of a partition: a margin lifts those, and
    /// without any there is nothing to state.
    async fn has_counters(
        &self,
        partition: u32,
        first: Option<&Scanned>,
    ) -> Result<bool, RestoreError> {
        let is_counter = |key: &HeldKey| matches!(key, HeldKey::Counter(_));
        let mut page = first.cloned();
        while let (Some(redis), Some(shown)) = (self.redis, &page) {
            if shown.keys.iter().any(is_counter) {
                return Ok(true);
            }
            let Some(cursor) = &shown.next else { break };
            page = Some(redis.scan(self.keys, partition, Some(cursor), SCAN_KEYS).await?);
        }
        Ok(self.ledger.counters().exist_in(partition).await?)
    }

    /// The owner record and the first keys, where there is a Redis to ask.
    async fn first_page(&self, row: &Partition) -> Result<Option<Scanned>, RestoreError> {
        let Some(redis) = self.redis else {
            let belongs = matches!(row.owner, Owner::Redis { .. });
            if belongs && !self.without_redis {
                return Err(RestoreError::NoRedis(row.partition));
            }
            return Ok(None);
        };
        let page = redis.scan(self.keys, row.partition, None, SCAN_KEYS).await?;
        match page.deployment {
            Some(deployment) if deployment != self.deployment => {
                Err(RestoreError::Foreign(deployment))
            }
            _ if !page.is_master => {
                let why = "the Redis server is not a master";
                Err(CounterError::NotExecuted(why.into()).into())
            }
            _ => Ok(Some(page)),
        }
    }

    /// Prevents further numbers of the partition from being taken while they are read.
    async fn freeze(&self, to: At) -> Result<(), RestoreError> {
        let Some(redis) = self.redis else { return Ok(()) };
        match redis.freeze(self.keys, to.partition, self.deployment, to.epoch).await? {
            Frozen::Frozen => Ok(()),
            Frozen::Foreign { deployment } => Err(RestoreError::Foreign(deployment)),
            Frozen::Unfit { reason } => {
                tracing::warn!(partition = to.partition, reason, "redis cannot be sealed");
                Err(RestoreError::MovedOn(to.partition))
            }
        }
    }

    /// Goes through every key that Redis holds of the partition, page by page.
    async fn walk(
        &self,
        redis: &Redis,
        first: Scanned,
        found: &mut Restored,
    ) -> Result<(), RestoreError> {
        let mut page = first;
        loop {
            self.read(redis, &page.keys, found).await?;
            let Some(cursor) = page.next else { return Ok(()) };
            page = redis.scan(self.keys, found.partition, Some(&cursor), SCAN_KEYS).await?;
        }
    }

    async fn read(
        &self,
        redis: &Redis,
        held: &[HeldKey],
        found: &mut Restored,
    ) -> Result<(), RestoreError> {
        let (mut lifts, mut entries) = (Vec::new(), Vec::new());
        for (key, revealed) in
            held.iter().zip(redis.reveal(self.keys, found.partition, held).await?)
        {
            match (key, revealed) {
                (HeldKey::Counter(name), Revealed::Counter { highest }) => {
                    lifts.extend(lift(name, highest));
                }
                (_, Revealed::Bucket(records)) => {
                    for Remembered { epoch, taken, record } in records {
                        let at = At { partition: found.partition, epoch };
                        let entry = Entry::of_flight(at, taken, &record);
                        self.remember(at, entry, &mut entries, found);
                    }
                }
                (HeldKey::Outbox(node), _) => {
                    self.read_outbox(redis, *node, &mut entries, found).await?;
                }
                _ => {}
            }
        }
        self.lift(&lifts, found).await?;
        self.journal(&entries, found).await
    }

    /// Reads a whole outbox. It is bounded by its node's `journal.queue_max`.
    async fn read_outbox(
        &self,
        redis: &Redis,
        node: NodeId,
        entries: &mut Vec<Entry>,
        found: &mut Restored,
    ) -> Result<(), RestoreError> {
        let mut after = 0;
        loop {
            let page = redis.peek(self.keys, found.partition, node, after, PAGE_ENTRIES).await?;
            let is_last = page.len() < PAGE_ENTRIES as usize;
            for OutboxEntry { flight, epoch, allocations } in page {
                after = flight;
                let at = At { partition: found.partition, epoch };
                for (taken, record) in allocations {
                    self.remember(at, Entry::of_flight(at, taken, &record), entries, found);
                }
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Takes a record of the epoch that took the last numbers. One of an earlier epoch may have
    /// been given up when that epoch closed, and its number issued again: the ledger has forgotten.
    fn remember(
        &self,
        at: At,
        entry: Result<Entry, String>,
        entries: &mut Vec<Entry>,
        found: &mut Restored,
    ) {
        match entry {
            Ok(entry) if found.redis_epoch == Some(at.epoch) => {
                found.records += 1;
                entries.push(entry);
            }
            Ok(_) => found.left_alone += 1,
            Err(reason) => {
                tracing::error!(partition = at.partition, reason, "a record cannot be read");
                found.left_alone += 1;
            }
        }
    }

    async fn lift(&self, lifts: &[Lift], found: &mut Restored) -> Result<(), RestoreError> {
        found.counters += lifts.len() as u64;
        if self.apply {
            let lifted = self.ledger.lift(found.partition, self.node, lifts).await?;
            found.counters_behind += lifted;
            return Ok(());
        }
        for Lift { series_id, serial, key, value } in lifts {
            let row = self.ledger.counters().get(*series_id, serial, key).await?;
            found.counters_behind += u64::from(row.is_none_or(|row| row.ceiling < *value));
        }
        Ok(())
    }

    async fn journal(&self, entries: &[Entry], found: &mut Restored) -> Result<(), RestoreError> {
        if !self.apply {
            return Ok(());
        }
        for part in entries.chunks(ROWS_MAX) {
            match self.ledger.journal_again(self.node, part).await {
                Ok(appended) => found.journaled += appended.written,
                Err(LedgerError::Refused(_) | LedgerError::Unfit(_)) => {
                    self.journal_singly(part, found).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Of records that the ledger refuses together, those that it refuses alone are put aside
    /// (F13).
    async fn journal_singly(
        &self,
        entries: &[Entry],
        found: &mut Restored,
    ) -> Result<(), RestoreError> {
        for entry in entries {
            match self.ledger.journal_again(self.node, std::slice::from_ref(entry)).await {
                Ok(appended) => found.journaled += appended.written,
                Err(LedgerError::Refused(reason)) => {
                    let number = &entry.number;
                    tracing::error!(number, reason, "record goes to journal_rejected");
                    self.ledger.reject(entry, &reason).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Whether a partition waits for its release.
#[must_use]
pub fn is_held(row: &Partition) -> bool {
    row.state == PartitionState::Held
}

/// The lift of a counter by its name in Redis, `<series id>:<serial>:<counter key>`.
fn lift(name: &str, value: i64) -> Option<Lift> {
    let mut fields = name.splitn(3, ':');
    let (series_id, serial) = (fields.next()?.parse().ok()?, fields.next()?.to_owned());
    Some(Lift { series_id, serial, key: fields.next()?.to_owned(), value })
}
