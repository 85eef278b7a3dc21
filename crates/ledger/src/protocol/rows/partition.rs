//! Partitions, and the nodes that use them.

use std::collections::{BTreeMap, BTreeSet};

use numerator_runtime::node::NodeId;

use crate::{At, LedgerError, NodeWords};

/// The data sets of Redis that a node sees: partitions by incarnation. A partition is seen while
/// scripts that write succeed there (F22).
pub type HealthReport = BTreeMap<String, BTreeSet<u32>>;

/// A node that joins.
#[derive(Clone, Debug)]
pub struct NewNode {
    /// Its identity.
    pub node_id: NodeId,
    /// For operators: host and process id.
    pub label: String,
    /// Version of the binary.
    pub version: String,
    /// When.
    pub started_at_us: i64,
}

/// A registered node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its identity.
    pub node_id: NodeId,
    /// For operators.
    pub label: String,
    /// Version of the binary.
    pub version: String,
    /// Heartbeat counter: a node that does not raise it is silent (F18).
    pub beat: i64,
    /// When it registered.
    pub started_at_us: i64,
    /// How far its clock was ahead of the server's when it last reported the time; none where it
    /// never did, or there is no server.
    pub clock_ahead_us: Option<i64>,
    /// Partitions in which it took part in an epoch and is not accounted for: where it may have
    /// left an outbox.
    pub partitions: Vec<u32>,
    /// What it sees of Redis; `None`: it has no opinion (a one-shot command).
    pub sight: Option<HealthReport>,
    /// What keeps it from its work; `None`: it does not say.
    pub words: Option<NodeWords>,
}

/// What takes the numbers of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// None yet (epoch 0).
    None,
    /// One incarnation of Redis.
    Redis {
        /// Its `master_replid`.
        incarnation: String,
    },
    /// The ledger itself.
    Database,
}

/// State of a partition's epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionState {
    /// Numbers may be taken.
    Open,
    /// The epoch before is being closed.
    Recovering,
    /// Closed; one node is opening the new owner.
    Opening,
    /// The ledger went back: nothing is issued until an operator acts (F9).
    Held,
}

/// How an epoch was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// Everything handed out is in the journal: counters of that epoch go on from `taken`, but for
    /// those that were lifted since.
    Exact,
    /// A node may hold unjournaled numbers: counters of that epoch go on above their ceiling.
    Ceiling,
}

/// The wanted owner of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Redis while it is healthy, else the database.
    Auto,
    /// The database, until an operator changes it.
    Database,
}

/// What became of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledged {
    /// It is in the ledger.
    Taken,
    /// The partition has moved on: the epoch was closed without it.
    TooLate,
    /// The ledger does not know that the node took part: it has gone back (F9).
    Forgotten,
}

/// What became of a claim to close an epoch and to open the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The epoch before is closed; the caller opens this one.
    Closed(Closing),
    /// These participants are neither heard of nor accounted for.
    Waiting(Vec<NodeId>),
    /// Another node is ahead.
    Elsewhere,
}

/// What became of a release from `held`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// The partition is open at the epoch.
    Released,
    /// A higher epoch was seen since: release it above that one.
    Behind,
    /// It was not held.
    NotHeld,
}

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its number, from 0.
    pub partition: u32,
    /// The epoch.
    pub epoch: u64,
    /// Its state.
    pub state: PartitionState,
    /// The owner of the epoch (of the one being closed, while `recovering`).
    pub owner: Owner,
    /// How the epoch before was closed.
    pub last_closing: Option<Closing>,
    /// The last epoch closed at the ceiling; 0: none.
    pub last_ceiling_epoch: u64,
    /// Counters of this epoch and of older ones go on above their ceilings, however theirs was
    /// closed: a release lifted them; 0: none (F32).
    pub lifted_epoch: u64,
    /// The node that bumped or claimed, while not `open`.
    pub actor: Option<NodeId>,
    /// Why the epoch began.
    pub cause: String,
    /// The owner that an operator wants.
    pub wanted: Wanted,
    /// Whether a command has lent it to the database for as long as it runs.
    pub is_lent: bool,
    /// The node that has lent it.
    pub lender: Option<NodeId>,
    /// The last epoch in which a ceiling was raised far above its counter; 0: none is left.
    pub tall_epoch: u64,
    /// While `held`: the highest epoch that nodes or Redis have shown; 0: none (F9).
    pub seen_epoch: u64,
    /// While `held`: the epoch of Redis that was the newest by the report of a node that took part
    /// in it; 0: no node gave one (F9).
    pub vouched_epoch: u64,
    /// When the state last changed.
    pub changed_at_us: i64,
}

impl Partition {
    /// The row of a partition among all of them.
    ///
    /// # Errors
    /// `Fault` where there is none: a ledger that is being restored may have none yet.
    pub fn among(rows: Vec<Partition>, partition: u32) -> Result<Partition, LedgerError> {
        let row = rows.into_iter().find(|row| row.partition == partition);
        row.ok_or_else(|| LedgerError::Fault(format!("partition {partition} has no row")))
    }

    /// Whether the database should own it, however healthy Redis is.
    #[must_use]
    pub fn is_for_database(&self) -> bool {
        self.wanted == Wanted::Database || self.is_lent
    }
}

impl Partition {
    /// Whether counters of an epoch that is over go on above their ceilings: where they were lifted
    /// since, and else where that epoch was closed there (F32), which `None` asks for. How a later
    /// one was closed does not matter to them: a node that was silent then had accounted for what
    /// it took in one that was closed exact.
    #[must_use]
    pub fn is_above_ceiling(&self, epoch: u64) -> Option<bool> {
        match epoch {
            _ if epoch <= self.lifted_epoch => Some(true),
            _ if epoch > self.last_ceiling_epoch => Some(false),
            _ => None,
        }
    }
}

/// An epoch that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedEpoch {
    /// Partition and epoch.
    pub at: At,
    /// How it was closed.
    pub closing: Closing,
    /// When.
    pub closed_at_us: i64,
    /// Participants that neither acknowledged nor left nor were adopted whole, with their labels.
    pub missing: Vec<(NodeId, String)>,
}

impl ClosedEpoch {
    /// Whether it is that epoch, and was closed exact: then what was taken in it was journaled or
    /// never handed out.
    #[must_use]
    pub fn closes_exact(&self, at: At) -> bool {
        self.at == at && self.closing == Closing::Exact
    }
}
