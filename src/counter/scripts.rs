//! One typed function and one outcome enum per script.

use super::flight::{Flight, IssueOutcome, Landing, Raised, SeedState};
use super::{CounterError, Keys, Redis};
use crate::node::NodeId;
use crate::number::TakenRange;

/// What `open` writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The partition.
    pub partition: u32,
    /// The epoch to open.
    pub epoch: u64,
    /// The incarnation that the ledger names.
    pub incarnation: String,
    /// The ledger's deployment id.
    pub deployment: String,
    /// The epoch just closed: `continuous_since` is carried over only from an owner record of it.
    pub closed_epoch: u64,
    /// Now.
    pub now_ms: i64,
    /// Whether no number was ever issued in this partition: then no key can be older.
    pub pristine: bool,
}

/// What `open` met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenOutcome {
    /// The epoch is open in Redis.
    Opened,
    /// The owner record has an equal or higher epoch: the ledger went back, or `open` was sent twice (F9).
    Newer {
        /// That epoch.
        epoch: u64,
    },
    /// The owner record belongs to another ledger.
    Foreign {
        /// Its deployment id.
        deployment: String,
    },
    /// The server is not a master or shows another or no usable incarnation.
    Unfit {
        /// What it showed.
        reason: String,
    },
}

/// What `bar` met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Barred {
    /// The node cannot write any more in this epoch.
    Barred,
    /// The ownership is not the one named.
    Fenced,
}

/// One entry of an outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxEntry {
    /// The flight that wrote it.
    pub flight: u64,
    /// Its epoch.
    pub epoch: u64,
    /// What it took or replayed: values and record.
    pub allocations: Vec<(Vec<TakenRange>, String)>,
}

/// A page of a barred node's outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutboxPage {
    /// Entries after the position asked for; fewer than the limit: the last page.
    Entries {
        /// The entries.
        entries: Vec<OutboxEntry>,
        /// Whether the outbox holds as many entries as its count says.
        complete: bool,
    },
    /// The ownership is not the one named, or the node is not barred.
    Fenced,
}

/// What `trim` met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trimmed {
    /// So many entries are gone.
    Removed(u64),
    /// The ownership is not the one named.
    Fenced,
    /// The node was barred.
    Barred,
}

impl Redis {
    /// Flies a flight of requests.
    ///
    /// # Errors
    /// See [`CounterError`].
    pub async fn issue(
        &self,
        _flight: &Flight,
    ) -> Result<Landing<Vec<IssueOutcome>>, CounterError> {
        todo!()
    }

    /// Flies a seed.
    ///
    /// # Errors
    /// See [`CounterError`].
    pub async fn seed(&self, _flight: &Flight) -> Result<Landing<Vec<SeedState>>, CounterError> {
        todo!()
    }

    /// Flies a raise.
    ///
    /// # Errors
    /// See [`CounterError`].
    pub async fn raise(&self, _flight: &Flight) -> Result<Landing<Vec<Raised>>, CounterError> {
        todo!()
    }

    /// Opens an epoch. Sent once by whoever claimed it in the ledger (F6).
    ///
    /// # Errors
    /// See [`CounterError`]; after `Unknown` the epoch is given up, never opened again.
    pub async fn open(
        &self,
        _keys: &Keys,
        _opening: &Opening,
    ) -> Result<OpenOutcome, CounterError> {
        todo!()
    }

    /// Removes the caller's own outbox entries up to and including a flight (all journaled).
    ///
    /// # Errors
    /// See [`CounterError`]; safe to repeat.
    pub async fn trim(
        &self,
        _keys: &Keys,
        _guard: &super::Guard,
        _upto: u64,
    ) -> Result<Trimmed, CounterError> {
        todo!()
    }

    /// Bars a silent node from the partition before its outbox is read (F7).
    ///
    /// # Errors
    /// See [`CounterError`]; safe to repeat.
    pub async fn bar(
        &self,
        _keys: &Keys,
        _guard: &super::Guard,
        _dead: NodeId,
    ) -> Result<Barred, CounterError> {
        todo!()
    }

    /// Reads a barred node's outbox after a flight number.
    ///
    /// # Errors
    /// See [`CounterError`].
    pub async fn read_outbox(
        &self,
        _keys: &Keys,
        _guard: &super::Guard,
        _dead: NodeId,
        _after: u64,
        _limit: u32,
    ) -> Result<OutboxPage, CounterError> {
        todo!()
    }

    /// Removes a barred node's journaled entries up to a flight; the stream goes when it is empty.
    ///
    /// # Errors
    /// See [`CounterError`]; safe to repeat.
    pub async fn drop_outbox(
        &self,
        _keys: &Keys,
        _guard: &super::Guard,
        _dead: NodeId,
        _upto: u64,
    ) -> Result<Trimmed, CounterError> {
        todo!()
    }
}
