//! The ledger: the SQL database that is the truth.
//!
//! Owns every statement. The fence of each write that depends on an epoch is the row that the write
//! changes, never a value read before (F4). Never cancels a statement on a connection that is used
//! again: callers run ledger work in tasks that nobody aborts, because a dropped `begin` leaves a
//! transaction open on its connection. A call that takes too long ends with its connections.

mod audits;
mod batch;
mod bound;
mod columns;
mod connections;
mod dialect;
mod documents;
mod error;
mod exchange_serials;
mod imports;
mod incarnation;
mod inquest;
mod line;
mod lookalikes;
mod patience;
mod postgres;
mod progression;
mod questions;
mod reference_ledger;
mod reference_plan;
mod restored_ledger;
mod rows;
mod safety;
mod schema;
mod settings;
mod snowflakes;
mod sqlite;
mod statement;
mod statements;
mod store;
mod witness;

pub use audits::Audits;
pub use connections::Connections;
pub use documents::Documents;
pub use error::LedgerError;
pub use exchange_serials::ExchangeSerialLedger;
pub use imports::Imports;
pub use incarnation::Confirmed;
pub use inquest::{Agreement, Known, Report};
pub use lookalikes::warnings;
pub use questions::Questions;
pub use reference_ledger::ReferenceLedger;
pub use reference_plan::{REFERENCE_CHANGE_MAX, plan_reference};
pub use restored_ledger::RestoredLedger;
pub use rows::*;
pub use safety::{LedgerCheckup, LedgerHazard, SafetyLedger};
pub use settings::{LedgerSettings, Migrate};
pub use snowflakes::{HeldNumber, SNOWFLAKE_LEASE_MAX, SnowflakeLease, SnowflakeLedger};

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use numbering::TakenRange;
use numerator_base::clock::SharedClock;
use numerator_base::node::NodeId;
use uuid::Uuid;

/// What every engine can do. Methods take whole batches; each is one transaction and safe to repeat
/// unless its page says otherwise.
#[async_trait]
pub trait Ledger:
    Audits
    + Documents
    + Imports
    + Questions
    + ReferenceLedger
    + RestoredLedger
    + SafetyLedger
    + ExchangeSerialLedger
    + SnowflakeLedger
{
    /// Name of the engine: `sqlite` or `postgres`.
    fn engine(&self) -> &'static str;

    /// Its connections right now.
    fn connections(&self) -> Connections;

    // --- deployment and series -------------------------------------------------------------

    /// Reads the deployment, writing `wanted` first where the ledger has none (with a row for each
    /// partition, that of gapless series included: epoch 0, state `open`, owner `none`).
    ///
    /// # Errors
    /// `SettingsDiffer` when the ledger has another number of partitions, hash or prefix (F8).
    async fn deployment(&self, wanted: &Deployment) -> Result<Deployment, LedgerError>;

    /// Has a registered node agree with all others on its idempotency window (F29). The first one
    /// writes it; who differs is refused, unless it comes to `change` it and no other is there.
    async fn agree_window(&self, node: NodeId, ms: u64, change: bool) -> Result<(), LedgerError>;

    /// Saves each definition as a new version of its series, creating the series where it is new; a
    /// definition equal to the version in force changes nothing. Whether a series is active stays
    /// as it is. All or nothing, checked against everything that is active afterwards. Each change
    /// is an event.
    ///
    /// # Errors
    /// `Series` says what keeps a change from being saved ([`SeriesRefusal`]).
    async fn apply_series(
        &self,
        changes: &[SeriesChange],
    ) -> Result<Vec<SeriesVersion>, LedgerError>;

    /// The same as a dry run: answers, and refuses, as [`Ledger::apply_series`] would, and writes
    /// nothing. The id of a series that would be new means nothing.
    async fn try_series(&self, changes: &[SeriesChange])
    -> Result<Vec<SeriesVersion>, LedgerError>;

    /// Activates or deactivates a series by a version of its own, the first under the same checks;
    /// one that is so already is left as it is (R4.3), unless it is active and waits for a proof
    /// ([`RestingSeries`]).
    ///
    /// # Errors
    /// Like [`Ledger::apply_series`].
    async fn set_activity(&self, change: &ActivityChange) -> Result<SeriesVersion, LedgerError>;

    /// The versions in force of all series, active or not, by code.
    async fn series(&self) -> Result<Vec<SeriesVersion>, LedgerError>;

    /// The series that are deactivated and served requests before, by code.
    async fn resting_series(&self) -> Result<Vec<RestingSeries>, LedgerError>;

    /// Versions of a series up to `upto`, newest first, at most `limit`; none where there is no
    /// such series.
    async fn series_versions(
        &self,
        series_id: i64,
        upto: u32,
        limit: u32,
    ) -> Result<Vec<SeriesVersion>, LedgerError>;

    /// The highest version id: changes whenever any series does, and with each activation.
    async fn series_stamp(&self) -> Result<i64, LedgerError>;

    // --- nodes and partitions --------------------------------------------------------------

    /// Enters a node with beat 0.
    async fn register_node(&self, node: &NewNode) -> Result<(), LedgerError>;

    /// Raises the node's heartbeat counter by one, notes which data set of Redis it sees, and reads
    /// all partitions (F18: a heartbeat is a counter, never a time).
    ///
    /// # Errors
    /// `NodeGone` when the node has left or was adopted; `WentBack` when the ledger has forgotten
    /// it, a beat or a batch of it.
    async fn heartbeat(
        &self,
        node: NodeId,
        sight: Option<&HealthReport>,
    ) -> Result<Vec<Partition>, LedgerError>;

    /// Marks the node as having left: everything it handed out is in the journal.
    async fn leave(&self, node: NodeId) -> Result<(), LedgerError>;

    /// Nodes that have not left and are not fully adopted.
    async fn nodes(&self) -> Result<Vec<Node>, LedgerError>;

    /// Marks a silent node as adopted once no partition holds an outbox of it: compare-and-set,
    /// true only while its heartbeat still stands at `beat`.
    async fn retire_node(&self, node: NodeId, beat: i64) -> Result<bool, LedgerError>;

    /// All partitions.
    async fn partitions(&self) -> Result<Vec<Partition>, LedgerError>;

    /// Makes the node a participant of the epoch: compare-and-set under the partition's row lock,
    /// true only while the ledger shows that epoch `open` (F5).
    async fn participate(&self, at: At, node: NodeId) -> Result<bool, LedgerError>;

    /// Begins the next epoch: `open` (or an `opening` that its author or `recovery.open_timeout`
    /// gave up) becomes `recovering` at `at.epoch + 1`. Compare-and-set on the epoch and state
    /// under the row lock; `None` when the partition stands elsewhere by now. An epoch is not
    /// bumped again before the one before it was closed, so a `recovering` partition is never
    /// bumped.
    async fn bump(
        &self,
        at: At,
        from: PartitionState,
        node: NodeId,
        cause: &str,
    ) -> Result<Option<u64>, LedgerError>;

    /// Says that nodes have stopped using the epoch before `at.epoch`, and that all they handed out
    /// in it is in the journal: compare-and-set under the partition's row lock, done only while the
    /// ledger shows `at.epoch` `recovering`. Counts for that one epoch (F5). Safe to repeat.
    async fn acknowledge(&self, at: At, nodes: &[NodeId]) -> Result<Acknowledged, LedgerError>;

    /// Closes the epoch before `at.epoch` and claims the opening of `at.epoch`: `recovering` →
    /// `opening` for an owner in Redis, straight to `open` for the database (F6). Closes exact
    /// where every participant has acknowledged, left or was adopted, or where the ledger was the
    /// owner; else at the ceiling where the caller says that it has waited long enough. Only who
    /// got `Closed` may send `open`, once. Not safe to repeat: after an unknown outcome a repeat
    /// says `Elsewhere`, and the epoch is given up like any `opening` that nobody reports done.
    async fn claim_open(
        &self,
        at: At,
        node: NodeId,
        at_ceiling: bool,
        owner: &Owner,
    ) -> Result<Claim, LedgerError>;

    /// `opening` → `open` by the node that claimed it.
    async fn opened(&self, at: At, node: NodeId) -> Result<bool, LedgerError>;

    /// How many numbers an epoch closed at the ceiling leaves unaccounted at most, over all
    /// counters that were touched in it.
    async fn lost_at_most(&self, closed: At) -> Result<u64, LedgerError>;

    /// Says who should own a partition (or all of them) from its next epoch on; how many rows
    /// changed. The nodes see it with their next heartbeat.
    /// `Auto` also ends what was lent.
    async fn want(&self, partition: Option<u32>, wanted: Wanted) -> Result<u64, LedgerError>;

    /// Lends a partition to the database, or takes it back, where it stands as given: sets to whom
    /// it is lent from one to the other (`None`: nobody). False where it stands otherwise.
    async fn lend(&self, partition: u32, lent: [Option<Uuid>; 2]) -> Result<bool, LedgerError>;

    /// The first closed epoch from `at.epoch` on, or the first that was closed in a certain way.
    async fn closed_epoch(
        &self,
        at: At,
        closing: Option<Closing>,
    ) -> Result<Option<ClosedEpoch>, LedgerError>;

    /// How many epochs of a partition were closed since then, counted up to 100.
    async fn closings(&self, partition: u32, since_us: i64) -> Result<u64, LedgerError>;

    // --- counters --------------------------------------------------------------------------

    /// Resolves counters at their first touch in an epoch, all in one transaction: computes each
    /// start by the closing rule ([`Partition::is_above_ceiling`]: above the ceiling, else after
    /// `taken`), and writes start, `taken` and ceiling under this epoch. Gaps of the closed one
    /// are registered as far as a few rows show them; the rest is left to
    /// [`Audits::settle_slice`]. Waits briefly for each lock: a `LockTimeout` names the counter
    /// that somebody else holds.
    async fn seed(
        &self,
        at: At,
        node: NodeId,
        specs: &[CounterSpec],
    ) -> Result<Vec<SeedOutcome>, LedgerError>;

    /// Raises ceilings where the counter's own row still carries this epoch; the ceiling in force,
    /// or `None` where it does not (F4). Never lowers one.
    async fn raise(&self, at: At, raises: &[Raise]) -> Result<Vec<Option<i64>>, LedgerError>;

    /// The counter's row, for previews and listings.
    async fn counter(
        &self,
        series_id: i64,
        serial: &str,
        key: &str,
    ) -> Result<Option<Counter>, LedgerError>;

    /// Counters after `after` by id, at most `limit`: for `verify` and `status`.
    async fn counters(&self, after: i64, limit: u32) -> Result<Vec<Counter>, LedgerError>;

    /// Counters whose ceiling leaves the least headroom, among those of the epochs that Redis owns
    /// now, at most `limit`: how long issuing could go on without the ledger.
    async fn tightest(&self, limit: u32) -> Result<Vec<Counter>, LedgerError>;

    /// Settles a counter whose epoch is closed as its next first touch would, so that `verify` and
    /// `gaps` see untouched counters too (F17). Does nothing to a counter of the current epoch, to
    /// one that nothing was taken from, nor to one whose partition is held.
    async fn settle(&self, counter_id: i64) -> Result<(), LedgerError>;

    // --- the journal -----------------------------------------------------------------------

    /// Writes issued records: one row per range, in one transaction, which counts as one batch of
    /// the node. Idempotent by allocation id.
    /// Raises each counter's `taken` and count of journaled values, shrinks gaps that a late row
    /// fills. A record whose (counter, value) or number belongs to another allocation goes to the
    /// collisions instead; it counts as written.
    ///
    /// # Errors
    /// `WentBack` where an earlier batch of the node is forgotten, or a counter, or its ceiling:
    /// use `journal_again`.
    /// `LockTimeout` after a brief wait: [`Ledger::held_counters`] says which counter was held.
    async fn append(&self, node: NodeId, entries: &[Entry]) -> Result<Appended, LedgerError>;

    /// Which of these counters somebody else holds at this moment, where the engine has locks of
    /// rows: what waits for them may let the others go first. Waits for none.
    async fn held_counters(&self, counter_ids: &[i64]) -> Result<Vec<i64>, LedgerError>;

    /// Writes one entry that the ledger refused to the raw table, counts it for `taken` like a
    /// journal row (F13): of the counter that has its name, whoever has its id by now.
    async fn reject(&self, entry: &Entry, reason: &str) -> Result<(), LedgerError>;

    /// The database path: looks for earlier numbers under each order's keys, then takes and
    /// journals the rest, in one transaction. Counters are locked in key order; the counter's own
    /// row is the fence (F4). Safe to repeat with the same allocation ids after an unknown outcome
    /// (F10). Waits at most `lock_wait` for each lock where the engine has locks of rows, and never
    /// longer than [`LedgerSettings::lock_timeout`]; a `LockTimeout` names the counter. An order of
    /// a family takes nothing where a later date has a number.
    async fn take(
        &self,
        at: At,
        node: NodeId,
        orders: &[TakeOrder],
        lock_wait: Duration,
    ) -> Result<Taken, LedgerError>;

    /// Journal rows by number, document, user or time, newest first.
    async fn find(&self, filter: &JournalFilter) -> Result<Vec<JournalRow>, LedgerError>;

    /// The journal row whose range holds a value of a first serial's counter, if any does.
    async fn row_of(&self, counter_id: i64, value: u64) -> Result<Option<JournalRow>, LedgerError>;

    /// Whether each allocation, named by its id and its first serial's range, stands in the
    /// journal, in the rejected rows or in the collisions.
    async fn recorded(&self, allocations: &[(Uuid, TakenRange)]) -> Result<Vec<bool>, LedgerError>;

    /// Masks of the journal rows next to a value of a first serial's counter: the one at or below,
    /// the one above.
    async fn masks_beside(&self, counter_id: i64, value: u64) -> Result<Vec<String>, LedgerError>;

    /// Runs of values in (`after`, `upto`] of a counter that are neither in the journal nor in the
    /// gap register, at most `limit` of them.
    async fn holes(
        &self,
        counter_id: i64,
        after: i64,
        upto: i64,
        limit: u32,
    ) -> Result<Vec<Span>, LedgerError>;

    /// Values of a counter that stand in the journal more than once or both in the journal and in
    /// the gap register, at most `limit`.
    async fn overlaps(&self, counter_id: i64, limit: u32) -> Result<Vec<Span>, LedgerError>;

    /// Gaps, newest first.
    async fn gaps(&self, filter: &GapFilter) -> Result<Vec<Gap>, LedgerError>;

    /// Recorded collisions that nobody has acknowledged, newest first.
    async fn collisions(&self, limit: u32) -> Result<Vec<Collision>, LedgerError>;

    /// How many collisions nobody has acknowledged: cheap, for whoever asks again and again.
    async fn collisions_count(&self) -> Result<u64, LedgerError>;

    /// How many rows the journal, the gap register, the collisions and the rejected table hold.
    async fn totals(&self) -> Result<Totals, LedgerError>;

    // --- adoption and events ---------------------------------------------------------------

    /// Journals a dead node's outbox entries and marks the node as adopted for this epoch, in one
    /// transaction under a share lock of the partition row. Entries of an epoch closed exact are
    /// discarded in that same transaction. `complete` says whether the outbox held as many entries
    /// as its count: only then is the node accounted for (F7).
    async fn adopt(
        &self,
        at: At,
        dead: NodeId,
        entries: &[Entry],
        complete: bool,
    ) -> Result<Adopted, LedgerError>;

    /// Writes an event (R5.2).
    async fn record_event(&self, event: &Event) -> Result<(), LedgerError>;

    /// Events, newest first.
    async fn events(&self, limit: u32) -> Result<Vec<Event>, LedgerError>;

    /// Events of one epoch of a partition, newest first, at most 100.
    async fn events_of(&self, at: At) -> Result<Vec<Event>, LedgerError>;
}

/// Shared handle to a ledger.
pub type SharedLedger = Arc<dyn Ledger>;

/// Opens the ledger that `url` names: `sqlite:<path>` (folder and file are created) or
/// `postgres://…`. Sets an empty one up, and migrates an older one where the settings say so.
///
/// # Errors
/// `Refused` for a URL of another kind and a database that may lose commits; `Migration` for a
/// schema newer than this binary, or older and not to be changed; `LockTimeout` where a migration
/// gets no lock; `Unreachable` when the database cannot be reached.
pub async fn open(
    url: &str,
    settings: LedgerSettings,
    clock: SharedClock,
) -> Result<SharedLedger, LedgerError> {
    let engine = if let Some(rest) = url.strip_prefix("sqlite:") {
        let path = rest.strip_prefix("//").unwrap_or(rest);
        if path.is_empty() || path.starts_with(":memory:") {
            let why = "database.url: sqlite needs the path of a file, as in sqlite:data/ledger.db";
            return Err(LedgerError::Refused(why.into()));
        }
        sqlite::open(Path::new(path), settings, clock).await?
    } else if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        postgres::open(url, settings, clock).await?
    } else {
        let why = "database.url: begins with neither `sqlite:` nor `postgres://`";
        return Err(LedgerError::Refused(why.into()));
    };
    Ok(Arc::new(statements::Opened(engine)))
}
