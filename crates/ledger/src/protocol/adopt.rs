//! A dead node's outbox enters the journal, and the node is accounted for.

use std::collections::{HashMap, hash_map};

use numerator_runtime::node::NodeId;

use crate::columns::{bytes, ownership};
use crate::protocol::entries::WriteMode;
use crate::protocol::journaling::{self, EntrySource};
use crate::protocol::{blame, named_counters, partitions};
use crate::query::query;
use crate::store::{Store, commit_alone};
use crate::{Adopted, At, Closing, Entry, Ledger, LedgerError};

impl Ledger {
    /// Journals a dead node's outbox entries and marks the node as adopted for this epoch, in one
    /// transaction under a share lock of the partition row. Entries of an epoch closed exact are
    /// discarded in that same transaction. `complete` says whether the outbox held as many entries
    /// as its count: only then is the node accounted for (F7).
    pub async fn adopt(
        &self,
        at: At,
        dead: NodeId,
        entries: &[Entry],
        complete: bool,
    ) -> Result<Adopted, LedgerError> {
        // Counters that are looked for by their names take some statements each.
        self.search(async |store| {
            let adopted = adopt(store, at, dead, entries, complete).await;
            match (adopted, entries) {
                (Err(error @ LedgerError::Unfit(_)), [_]) => {
                    let judged = blame::judged(store, dead, entries, Err(error)).await;
                    Err(judged.expect_err("what was refused is not written by that"))
                }
                (adopted, _) => adopted,
            }
        })
        .await
    }
}

/// See [`crate::Ledger::adopt`].
async fn adopt(
    store: &Store,
    at: At,
    dead: NodeId,
    entries: &[Entry],
    complete: bool,
) -> Result<Adopted, LedgerError> {
    let (partition, epoch) = ownership(at)?;
    let mut tx = store.begin().await?;
    // No epoch of this partition is closed while the rows are written: the closing at the time of
    // the write decides whether an entry was handed out, not one read earlier.
    partitions::share(&mut *tx, at.partition).await?;
    let mut closings: HashMap<u64, Option<Closing>> = HashMap::new();
    let mut handed_out = Vec::with_capacity(entries.len());
    for entry in entries {
        let of = entry.at.epoch;
        if entry.at.partition != at.partition {
            let why = "an outbox holds entries of its own partition only";
            return Err(LedgerError::Refused(format!("partition: {why}")));
        }
        let closing = match closings.entry(of) {
            hash_map::Entry::Occupied(known) => *known.get(),
            hash_map::Entry::Vacant(empty) => {
                *empty.insert(partitions::closing(&mut *tx, at.partition, of).await?)
            }
        };
        if closing != Some(Closing::Exact) {
            handed_out.push(entry.clone());
        }
    }
    let (discarded, now_us) = (entries.len() - handed_out.len(), store.clock.now_us());
    // An outbox may be older than the copy to which the ledger went back (F9).
    let found = named_counters::with_present_ids(&mut *tx, dead, handed_out, now_us).await?;
    let found: Vec<&Entry> = found.iter().collect();
    let appended = journaling::journal(
        &mut *tx,
        &store.writing(dead, now_us),
        &found,
        (EntrySource::Teller, WriteMode::Judged),
    )
    .await?;
    if complete {
        query(
            "update participant set state = 'adopted', changed_at_us = $4
                     where partition_id = $1 and epoch = $2 and node_id = $3 and state = 'joined'",
        )
        .bind(partition)
        .bind(epoch)
        .bind(bytes(&dead))
        .bind(now_us)
        .execute(&mut *tx)
        .await?;
    }
    commit_alone(store, tx).await?;
    Ok(Adopted {
        written: appended.written,
        known: appended.known,
        discarded: discarded as u64,
        collided: appended.collisions.len() as u64,
    })
}
