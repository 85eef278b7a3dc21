//! Read-only views: what a server holds of a partition, for commands and people.
//!
//! Reads only, and is never a fence: a decision that depends on an epoch is made by the scripts
//! that write.

use std::time::Duration;

use fred::types::Value;
use numerator_runtime::node::NodeId;

use super::call::{Call, Verb};
use super::reply::{Parts, answer, completion, garbled};
use super::scripts::read_entry;
use super::{Completion, CounterError, Keys, OutboxEntry, Redis};

/// What a server holds of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// Whether it is a master.
    pub is_master: bool,
    /// Its `master_replid`.
    pub incarnation: String,
    /// The partition's owner record, if there is one.
    pub owner: Option<OwnerRecord>,
    /// Nodes that sent flights under that record and have entries left in their outbox, by its
    /// counts.
    pub counted: Vec<NodeId>,
    /// All nodes that sent flights under that record.
    pub senders: Vec<NodeId>,
    /// Entries in the outboxes asked for, in their order; `None`: not a stream.
    pub lengths: Vec<Option<u64>>,
}

/// The owner record as it is in Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerRecord {
    /// The epoch.
    pub epoch: u64,
    /// The data set that owned it.
    pub incarnation: String,
    /// The ledger that it belongs to.
    pub deployment: String,
    /// Which idempotency records the partition has.
    pub records: Completeness,
    /// What the ledger had confirmed to the node that trimmed its outbox last, in the node's own
    /// words.
    pub confirmed: Option<String>,
}

/// Which idempotency records of a partition a data set has, by its owner record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completeness {
    /// Since when it has all of them, in milliseconds since 1970.
    pub continuous_since_ms: Option<u64>,
    /// The window for which they are kept, in milliseconds.
    pub window_ms: Option<u64>,
}

impl Completeness {
    /// For how long from now on a key that Redis does not know is looked up in the journal (F1):
    /// until its records have been complete for a whole window. Records kept for another window are
    /// complete from the next flight on. Zero: it is new.
    #[must_use]
    pub fn asks_for(self, now_us: i64, window: Duration) -> Duration {
        let now = Duration::from_micros(u64::try_from(now_us).unwrap_or(0));
        let is_of_window = self.window_ms.map(u128::from) == Some(window.as_millis());
        let since = self.continuous_since_ms.filter(|_| is_of_window);
        let since = since.map_or(now, Duration::from_millis);
        (since + window).saturating_sub(now)
    }
}

/// Outcome of `inspect`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inspection {
    /// The counters asked for, in their order.
    Counters(Vec<CounterState>),
    /// The ownership is not the one named.
    Fenced {
        /// Why.
        reason: String,
    },
}

/// The state of a counter in Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterState {
    /// Of this epoch.
    Warm {
        /// Highest value taken.
        value: i64,
        /// Bound of the epoch.
        ceiling: i64,
        /// Its id in the ledger.
        counter_id: i64,
    },
    /// Missing, or of another epoch.
    Cold,
    /// Written from outside (F3).
    Regressed,
}

impl Redis {
    /// Looks at a partition's owner record and at outboxes.
    ///
    /// # Errors
    /// See [`CounterError`].
    pub async fn survey(
        &self,
        keys: &Keys,
        partition: u32,
        nodes: &[NodeId],
    ) -> Result<Survey, CounterError> {
        let mut names = vec![keys.owner(partition)];
        names.extend(nodes.iter().map(|node| keys.outbox(partition, *node)));
        let call =
            Call::new(Verb::Survey, format!("survey {partition}"), names, Vec::<String>::new());
        self.ask(&call, |call, value| {
            let (word, mut parts) = answer(call, value)?;
            if word != call.verb.word() {
                return Err(garbled(&format!("unexpected word {word:?}")));
            }
            let is_master = parts.text()? == "master";
            let incarnation = parts.text()?;
            let (epoch, owner, deployment) = (parts.text()?, parts.text()?, parts.text()?);
            let records = Completeness {
                continuous_since_ms: parts.text()?.parse().ok(),
                window_ms: parts.text()?.parse().ok(),
            };
            let confirmed = Some(parts.text()?).filter(|said| !said.is_empty());
            let owner = epoch.parse().ok().map(|epoch| OwnerRecord {
                epoch,
                incarnation: owner,
                deployment,
                records,
                confirmed,
            });
            let text = |value: Value| value.into_string().unwrap_or_default();
            let counted = parts.list(|node| Ok(text(node)))?;
            let lengths = parts.list(|length| Ok(text(length).parse().ok()))?;
            let senders = parts.list(|node| Ok(text(node)))?;
            parts.end()?;
            if lengths.len() != nodes.len() {
                return Err(garbled(&format!("{} lengths of {}", lengths.len(), nodes.len())));
            }
            // A name that is no node's was written from outside.
            let nodes =
                |names: Vec<String>| names.iter().filter_map(|n| NodeId::parse(n)).collect();
            let (counted, senders) = (nodes(counted), nodes(senders));
            Ok(Survey { is_master, incarnation, owner, counted, senders, lengths })
        })
        .await
    }

    /// Reads entries of an outbox after a flight number. `limit` is at least 1; fewer than that:
    /// the last page.
    ///
    /// # Errors
    /// See [`CounterError`].
    pub async fn peek(
        &self,
        keys: &Keys,
        partition: u32,
        node: NodeId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<OutboxEntry>, CounterError> {
        let from = after.saturating_add(1).to_string();
        let echo = format!("peek {partition} {node} {from}");
        let args = vec![from, limit.max(1).to_string()];
        let call = Call::new(Verb::Peek, echo, vec![keys.outbox(partition, node)], args);
        self.ask(&call, |call, value| {
            let (word, mut parts) = answer(call, value)?;
            if word != call.verb.word() {
                return Err(garbled(&format!("unexpected word {word:?}")));
            }
            let entries = parts.list(read_entry)?;
            parts.end()?;
            Ok(entries.into_iter().map(|(entry, _)| entry).collect())
        })
        .await
    }

    /// Looks at counters of a partition, by their names within it, in an epoch of one data set.
    ///
    /// # Errors
    /// See [`CounterError`].
    pub async fn inspect(
        &self,
        keys: &Keys,
        (partition, epoch, incarnation): (u32, u64, &str),
        counters: &[String],
    ) -> Result<Inspection, CounterError> {
        let mut names = vec![keys.owner(partition)];
        names.extend(counters.iter().map(|name| keys.counter(partition, name)));
        let args = vec![epoch.to_string(), incarnation.to_owned()];
        let call = Call::new(Verb::Inspect, format!("inspect {partition} {epoch}"), names, args);
        self.ask(&call, |call, value| {
            let read = completion(call, value, |parts| parts.list(read_counter))?;
            match read {
                Completion::Completed(states) if states.len() == counters.len() => {
                    Ok(Inspection::Counters(states))
                }
                Completion::Completed(states) => {
                    Err(garbled(&format!("{} states of {}", states.len(), counters.len())))
                }
                Completion::Fenced { reason, .. } => Ok(Inspection::Fenced { reason }),
                _ => Err(garbled("an answer to a flight")),
            }
        })
        .await
    }
}

fn read_counter(value: Value) -> Result<CounterState, CounterError> {
    let mut parts = Parts::of(value)?;
    let state = match parts.text()?.as_str() {
        "warm" => CounterState::Warm {
            value: parts.number()?,
            ceiling: parts.number()?,
            counter_id: parts.number()?,
        },
        "cold" => CounterState::Cold,
        "regressed" => CounterState::Regressed,
        other => return Err(garbled(&format!("unexpected state {other:?}"))),
    };
    parts.end()?;
    Ok(state)
}
