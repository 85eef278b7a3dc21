//! The interface of an engine: its connections, the transactions on them, and the statements that
//! differ between engines. An engine is a folder that implements the traits of this page, a kind of
//! [`crate::query::Row`], and the line of [`crate::open`] that knows its URLs.
//!
//! All statements that engines share are with their nouns, and in `protocol`.

use std::collections::HashSet;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use numerator_runtime::node::NodeId;
use sqlx::Error;

use crate::batch::{Before, Earlier, Mark, Moves, Neighbour, Newest, Table, WantedKey};
use crate::connections::Connections;
use crate::incarnation::{Incarnation, Shown};
use crate::new_row::{NewRow, ValueRange};
use crate::query::{Done, Row, SqlQuery};
use crate::seal::Writing;
use crate::{Lack, LedgerCheckup, LedgerError, RawRows};

/// How a transaction begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// It writes.
    Writing,
    /// It writes, and is repeated in the background: work whose locks are free goes first meanwhile
    /// (F31).
    Brief,
    /// It writes, and waits no longer than this for each lock.
    LockLimited(Duration),
    /// It reads.
    Reading,
    /// It reads, and all its statements see the ledger as it was at the first of them.
    Snapshot,
    /// It reads, and waits briefly for each name.
    Asking,
}

/// Connections of one share, of one time.
#[async_trait]
pub(crate) trait Pool: Send + Sync + 'static {
    /// How many there are.
    fn connections(&self) -> Connections;

    /// Whether a copy that lacks commits may automatically take the ledger's place.
    fn fails_over(&self) -> bool;

    /// A connection that reads.
    async fn acquire(&self) -> Result<Acquired, Error>;

    /// Begins a transaction in an incarnation; without one in any life of the ledger: for writes
    /// that must happen in any case, and for agreeing on an incarnation (F25).
    async fn begin(
        &self,
        required: Option<Incarnation>,
        begin: Begin,
    ) -> Result<Transaction, LedgerError>;

    /// Begins two transactions that read, and whose statements all see the ledger as of the same
    /// time; one where there are no connections for two.
    async fn begin_together(&self) -> Result<Vec<Transaction>, LedgerError>;

    /// The incarnation that the ledger shows; `None` where none was agreed on yet.
    async fn shown(&self, conn: &mut Conn) -> Result<Option<Shown>, LedgerError>;

    /// The counters among these that another transaction holds now. Waits for none.
    async fn held_counters(
        &self,
        required: Incarnation,
        ids: &[i64],
    ) -> Result<Vec<i64>, LedgerError>;

    /// Gives back the space that one large transaction took next to the database, as far as it is
    /// no longer needed; a failure does no harm.
    async fn tidy(&self) {}

    /// How the database keeps commits.
    async fn check_up(&self) -> Result<LedgerCheckup, LedgerError>;

    /// What it lacks of all that records need.
    async fn lacks(&self) -> Result<Vec<Lack>, LedgerError>;

    /// Gives the roles of the ledger their rights, where the engine has roles; whether any right
    /// changed.
    async fn grant_roles(&self) -> Result<bool, LedgerError> {
        let why = "a file has no roles: whoever may write it may do everything";
        Err(LedgerError::Refused(why.into()))
    }
}

/// The abilities of begun transactions in addition to statements.
#[async_trait]
pub(crate) trait Ends: DerefMut<Target = Conn> + Send {
    /// Commits.
    async fn commit(self: Box<Self>) -> Result<(), Error>;

    /// Takes back everything.
    async fn rollback(self: Box<Self>) -> Result<(), Error>;

    /// Agrees on an incarnation in the life of now. The lock is held.
    async fn agree(&mut self, on: Incarnation) -> Result<(), LedgerError>;
}

/// Runs statements.
#[async_trait]
pub(crate) trait Runs: Send + Sync + 'static {
    /// Runs one that returns nothing.
    async fn run(&mut self, query: SqlQuery<'_>) -> Result<Done, Error>;

    /// All rows of one.
    async fn all(&mut self, query: SqlQuery<'_>) -> Result<Vec<Row>, Error>;

    /// Its first row, if any.
    async fn first(&mut self, query: SqlQuery<'_>) -> Result<Option<Row>, Error>;
}

/// Statements over many rows.
#[async_trait]
pub(crate) trait Bulk: Send {
    /// For each extent the last row of its counter that begins at or before its end. Rows of one
    /// counter do not overlap, so an extent overlaps a row exactly when it overlaps this one.
    async fn neighbours(
        &mut self,
        table: Table,
        value_ranges: &[ValueRange],
    ) -> Result<Vec<Option<Neighbour>>, LedgerError>;

    /// For each key its newest journal row, with the key of the row's counter.
    async fn newest(
        &mut self,
        wanted: WantedKey,
        keys: &[Earlier<'_>],
    ) -> Result<Newest, LedgerError>;

    /// Inserts lines; returns the (counter, first value) of those that no unique key kept out. May
    /// fail with `Conflict` where all are above what their counters had taken and one was kept out:
    /// then nothing may be committed.
    async fn insert_new_rows(
        &mut self,
        new_rows: &[&NewRow<'_>],
        writing: &Writing,
    ) -> Result<HashSet<(i64, i64)>, LedgerError>;

    /// Inserts lines. False where a unique key kept one out: then nothing may be committed.
    async fn insert_all(
        &mut self,
        new_rows: &[&NewRow<'_>],
        writing: &Writing,
    ) -> Result<bool, LedgerError>;

    /// Moves counters and inserts the lines that this accounts for. False where a counter must not
    /// move, the ledger forgot the node, or a unique key kept a line out: then nothing may be
    /// committed.
    async fn move_and_insert(
        &mut self,
        moves: &Moves,
        new_rows: &[&NewRow<'_>],
        writing: &Writing,
    ) -> Result<bool, LedgerError>;

    /// Locks the counters of marks, in the order of their names, and advances them; returns their
    /// former states. Unknown ones are left out.
    async fn advance(&mut self, marks: &[Mark]) -> Result<Vec<Before>, LedgerError>;

    /// Removes the rows of a counter that begin in a run of values; how many. The transaction must
    /// write a segment that represents them.
    async fn make_room(&mut self, run: ValueRange) -> Result<u64, LedgerError>;

    /// The first and the last place of rows in the journal.
    async fn journal_range(&mut self) -> Result<Option<(i64, i64)>, LedgerError>;

    /// How many places a slice has.
    fn journal_slice_places(&self) -> i64;

    /// The rows of the slice that begins at a place, in no order.
    async fn journal_slice(&mut self, from: i64) -> Result<RawRows, LedgerError>;

    /// The first place at or above one at which the journal may have a row.
    async fn journal_place_from(&mut self, from: i64) -> Result<Option<i64>, LedgerError>;

    /// The schema's definitions of the record's tables, views, triggers, functions and keys: names
    /// and texts.
    async fn definitions(&mut self) -> Result<Vec<(String, String)>, LedgerError>;

    /// In how many parts the entries of archived numbers lie.
    async fn archived_number_parts(&mut self) -> Result<i64, LedgerError>;

    /// Removes the entries of a file's numbers that lie in a part.
    async fn forget_numbers(&mut self, archive_file_id: i32, part: i64) -> Result<(), LedgerError>;

    /// About how many rows a table has.
    async fn rows_about(&mut self, table: &'static str) -> Result<i64, LedgerError>;

    /// New ids for so many counters, reserved for the caller.
    async fn reserve_counters(&mut self, count: usize) -> Result<Vec<i64>, LedgerError>;

    /// The clause of an insert that gives its own ids, before its values.
    fn own_ids(&self) -> &'static str;

    /// The expression of the server's clock at the moment of the statement, in microseconds of UTC;
    /// none where there is no server: the caller's clock is the ledger's.
    fn clock(&self) -> Option<&'static str>;
}

/// A moment in the order of transactions, as the engine counts them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment(pub(crate) i64);

/// Locks on names, of documents and callers' keys, which are numbered once regardless of their
/// counter; and all else that depends on how transactions see each other.
#[async_trait]
pub(crate) trait Locks: Send {
    /// Takes the transaction's locks on names, in rising order, so that two nodes cannot number one
    /// document at the same time.
    async fn lock_names(&mut self, sorted: &[i64]) -> Result<(), LedgerError>;

    /// Waits for the holders of the names, and keeps others from taking them; lookups under them
    /// are not affected.
    async fn share_names(&mut self, sorted: &[i64]) -> Result<(), LedgerError>;

    /// Locks a name of this ledger, of which other ledgers in the same database know nothing.
    async fn lock_own_name(&mut self, name: i64) -> Result<(), LedgerError>;

    /// Shares such a name until the transaction ends, and says whether it does. Never waits: not
    /// where another transaction holds the name alone, or waits to.
    async fn try_share_own_name(&mut self, name: i64) -> Result<bool, LedgerError>;

    /// Keeps others from agreeing on an incarnation until the transaction ends.
    async fn lock_incarnation(&mut self) -> Result<(), LedgerError>;

    /// The server's clock, in microseconds of UTC; none where there is no server.
    async fn server_now_us(&mut self) -> Result<Option<i64>, LedgerError>;

    /// The present moment.
    async fn moment(&mut self) -> Result<Moment, LedgerError>;

    /// Has the next question go by statistics of this transaction's rows.
    async fn know_rows(&mut self) -> Result<(), LedgerError>;

    /// A document of the rows that a node brought of these counters that was numbered by others
    /// since, or to which a number of a range was assigned since, and that number.
    async fn numbered_since(
        &mut self,
        since: Moment,
        node: NodeId,
        counters: Vec<i64>,
    ) -> Result<Option<(String, String)>, LedgerError>;

    /// Lets the statements of this transaction run longer than a request may: searches through all
    /// values of a counter take as long as there are values.
    async fn allow_long_search(&mut self) -> Result<(), LedgerError>;

    /// Limits the searches of the connection's next statements to this time, where the engine has
    /// no own limit for them; without one they take as long as they need. A statement that is ended
    /// fails with `LockTimeout`.
    async fn limit_search(&mut self, limit: Option<Duration>) -> Result<(), LedgerError>;

    /// Lets this transaction wait for a file between its statements too. It holds nothing that
    /// others need until its end.
    async fn allow_import(&mut self) -> Result<(), LedgerError>;
}

/// A connection with the whole interface of its engine.
pub(crate) trait Dialect: Runs + Bulk + Locks {}

impl<T: Runs + Bulk + Locks> Dialect for T {}

/// A connection of any engine.
pub(crate) type Conn = dyn Dialect;

/// The connection type of an engine's driver.
pub(crate) struct Driver<C>(pub(crate) C);

impl<C: Deref<Target: Dialect + Sized>> Deref for Driver<C> {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &*self.0
    }
}

impl<C: DerefMut<Target: Dialect + Sized>> DerefMut for Driver<C> {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut *self.0
    }
}

/// A connection that reads, in no transaction.
pub(crate) struct Acquired(pub(crate) Box<dyn DerefMut<Target = Conn> + Send>);

impl Deref for Acquired {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &**self.0
    }
}

impl DerefMut for Acquired {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut **self.0
    }
}

/// A transaction; dropping it rolls it back.
pub(crate) struct Transaction(pub(crate) Box<dyn Ends>);

impl Transaction {
    /// Commits.
    pub(crate) async fn commit(self) -> Result<(), Error> {
        self.0.commit().await
    }

    /// Takes back everything.
    pub(crate) async fn rollback(self) -> Result<(), Error> {
        self.0.rollback().await
    }

    /// Agrees on an incarnation in the life of now. The lock is held.
    pub(crate) async fn agree(&mut self, on: Incarnation) -> Result<(), LedgerError> {
        self.0.agree(on).await
    }
}

impl Deref for Transaction {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &**self.0
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut **self.0
    }
}

/// Reads outside of transactions.
#[derive(Clone)]
pub(crate) struct Reader(pub(crate) Arc<dyn Pool>);

impl Reader {
    /// A connection that reads.
    pub(crate) async fn acquire(&self) -> Result<Acquired, Error> {
        self.0.acquire().await
    }

    /// Begins a transaction that reads, in any life of the ledger.
    pub(crate) async fn begin(&self) -> Result<Transaction, LedgerError> {
        self.0.begin(None, Begin::Reading).await
    }

    /// The same for one whose statements all see the ledger as of the same time.
    pub(crate) async fn begin_snapshot(&self) -> Result<Transaction, LedgerError> {
        self.0.begin(None, Begin::Snapshot).await
    }
}
