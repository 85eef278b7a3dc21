//! Writes records to the ledger until it takes them: again while it is away or fails, halved where
//! it refuses them for their content, split where a counter is locked elsewhere. Never drops one.
//!
//! A record is put aside only where the ledger shows that the record alone is to blame, because it
//! took another one through the same queries (F45). Any other fault of the ledger is waited for.

use std::collections::{BTreeSet, HashSet};

use super::Writer;
use super::late::Part;
use crate::ledger::{Entry, Event, LedgerError};
use crate::node::NodeId;

/// How records are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// Behind the answers.
    First,
    /// To a ledger that may have forgotten them.
    Again,
}

/// Why a part cannot be written as it is.
enum Halt {
    /// The ledger refuses its content.
    Refused(String),
    /// These counters are locked elsewhere.
    Held(HashSet<i64>),
}

impl Writer {
    /// Writes records until they are committed; halves what the ledger refuses, and lets those wait
    /// whose counters are locked elsewhere.
    pub(super) async fn write(&mut self, node: NodeId, part: Part, manner: Manner) {
        let mut parts = vec![part];
        while let Some(part) = parts.pop() {
            if part.is_empty() {
                continue;
            }
            let written = match self.append(node, &part.entries, manner).await {
                Ok(written) => written,
                Err(Halt::Refused(reason)) if part.len() == 1 => {
                    if let Err(held) = self.reject(&part.entries[0], &reason).await {
                        self.put_off(node, part, held);
                        continue;
                    }
                    manner
                }
                Err(Halt::Refused(_)) => {
                    let [left, right] = part.halves();
                    parts.extend([right, left]);
                    continue;
                }
                Err(Halt::Held(counters)) => {
                    parts.push(self.put_off(node, part, counters));
                    continue;
                }
            };
            self.note_committed(&part);
            let pairs = part.into_pairs().map(|(entry, tag)| (entry, tag.text));
            match written {
                Manner::First => self.kept.push(node, pairs),
                Manner::Again => self.kept.push_again(node, pairs),
            }
        }
    }

    /// Lets those records wait whose counters are locked elsewhere; returns the others.
    fn put_off(&mut self, node: NodeId, part: Part, counters: HashSet<i64>) -> Part {
        let [free, waiting] = part.without(&counters);
        let records = waiting.len();
        tracing::warn!(records, ?counters, "somebody holds counters; others go on");
        self.late.note_held(counters);
        self.late.wait(node, waiting);
        free
    }

    /// Counts what is committed of that which was handed out.
    fn note_committed(&self, part: &Part) {
        for of_flight in part.tags.chunk_by(|one, next| one.place == next.place) {
            if let Some(place) = of_flight[0].place {
                self.outstanding.commit(place, of_flight.len());
                self.metrics.journaled.increment(of_flight.len() as u64);
            }
        }
    }

    /// Appends, again and again while the ledger cannot be reached; how it was written in the end.
    async fn append(
        &mut self,
        node: NodeId,
        entries: &[Entry],
        mut manner: Manner,
    ) -> Result<Manner, Halt> {
        // Whether an earlier try may have written what the next one finds there.
        let mut in_doubt = false;
        loop {
            let appended = match manner {
                Manner::First => self.ledger.append(node, entries).await,
                Manner::Again => self.ledger.journal_again(node, entries).await,
            };
            match appended {
                Ok(appended) => {
                    self.backoff.reset();
                    let is_new = appended.written > 0 || !appended.collisions.is_empty();
                    if manner == Manner::Again && (is_new || in_doubt) {
                        self.rewritten.extend(&appended.homes);
                    }
                    if !appended.collisions.is_empty() {
                        self.report_duplicates(node, &appended.collisions).await;
                    }
                    return Ok(manner);
                }
                Err(LedgerError::Refused(reason)) => return Err(Halt::Refused(reason)),
                // One of them may be to blame: alone it is judged.
                Err(LedgerError::Unfit(reason)) if entries.len() > 1 => {
                    return Err(Halt::Refused(reason));
                }
                // The heartbeat notices it too, and has the partitions held.
                Err(error @ LedgerError::WentBack(_)) => {
                    tracing::error!(%node, %error, "journaling what it may have forgotten");
                    manner = Manner::Again;
                }
                Err(error) => {
                    if manner == Manner::First
                        && matches!(error, LedgerError::LockTimeout { .. })
                        && let Some(held) = self.held_among(entries).await
                    {
                        return Err(Halt::Held(held));
                    }
                    in_doubt |= manner == Manner::Again && error.maybe_written();
                    tracing::warn!(%error, rows = entries.len(), "journal waits for the ledger");
                    self.backoff.wait().await;
                }
            }
        }
    }

    /// The counters of records that are locked elsewhere, where there are any.
    async fn held_among(&self, entries: &[Entry]) -> Option<HashSet<i64>> {
        let taken = entries.iter().flat_map(|entry| &entry.taken);
        let counters: BTreeSet<i64> = taken.map(|taken| taken.counter_id).collect();
        let counters: Vec<i64> = counters.into_iter().collect();
        let held = self.ledger.held_counters(&counters).await.ok()?;
        (!held.is_empty()).then(|| held.into_iter().collect())
    }

    /// Raises the alarm for duplicate numbers, as an event in the ledger too.
    async fn report_duplicates(&self, node: NodeId, allocations: &[uuid::Uuid]) {
        self.metrics.duplicates.increment(allocations.len() as u64);
        tracing::error!(%node, ?allocations, "DUPLICATE numbers were journaled");
        let event = Event {
            at_us: self.clock.now_us(),
            kind: "conflict".into(),
            partition: None,
            epoch: None,
            node_id: Some(node),
            detail: serde_json::json!({
                "cause": "numbers came twice", "allocations": allocations,
            }),
        };
        // The collisions themselves were committed with the batch: the event only points to them.
        if let Err(error) = self.ledger.events().record(&event).await {
            tracing::warn!(%error, "conflict not recorded as an event");
        }
    }

    /// Puts one refused entry aside, raw, and raises the alarm (F13).
    ///
    /// # Errors
    /// Its counters that are locked elsewhere: it is not put aside yet.
    async fn reject(&mut self, entry: &Entry, reason: &str) -> Result<(), HashSet<i64>> {
        let number = &entry.number;
        tracing::error!(%number, reason, "record refused; it goes to journal_rejected");
        while let Err(error) = self.ledger.reject(entry, reason).await {
            if matches!(error, LedgerError::LockTimeout { .. })
                && let Some(held) = self.held_among(std::slice::from_ref(entry)).await
            {
                return Err(held);
            }
            tracing::error!(%error, %number, "cannot put a refused record aside; trying again");
            self.backoff.wait().await;
        }
        self.metrics.rejected.increment(1);
        self.refused += 1;
        self.backoff.reset();
        Ok(())
    }
}
