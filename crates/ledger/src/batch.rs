//! The input and output of the statements over many rows, the same for every engine.

use sqlx_macros::FromRow;

use super::last_seen::Marks;
use super::query::Row;

/// The condition of a statement on counters `c`: the journal, the records that it refused, the gap
/// register and the reservations have nothing above the counter's last value.
macro_rules! nothing_above {
    () => {
        "coalesce((select coalesce(j.last_value, j.first_value) from journal j
         where j.counter_id = c.counter_id order by first_value desc limit 1) <= c.taken, true)
         and coalesce((select last_value from gap g where g.counter_id = c.counter_id
         order by first_value desc limit 1) <= c.taken, true)
         and not exists (select 1 from journal_rejected r
         where r.counter_id = c.counter_id and r.first_value > c.taken)
         and not exists (select 1 from reservation v
         where v.counter_id = c.counter_id and v.first_value > c.taken)"
    };
}
pub(super) use nothing_above;

/// 1 where any record is put aside, else 0: that table is nearly always empty.
macro_rules! is_any_aside {
    () => {
        "(select count(*) from (select 1 from journal_rejected limit 1) as one_aside)"
    };
}
pub(super) use is_any_aside;

/// 1 where any number is reserved, else 0: most ledgers have no reservation. In the order of an
/// index: its entries of dead rows are passed over the next time, where a scan of the table reads
/// all dead rows each time.
macro_rules! is_any_reserved {
    () => {
        "(select count(*) from (select 1 from reservation order by counter_id, first_value limit 1)
         as one_reserved)"
    };
}
pub(super) use is_any_reserved;

/// The condition of a statement on counters `c`: their partition is open in their own epoch.
macro_rules! open_in_its_epoch {
    () => {
        "exists (select 1 from partition p where p.partition_id = c.partition_id
         and p.epoch = c.epoch and p.state = 'open')"
    };
}
pub(super) use open_in_its_epoch;

/// A table of runs, indexed by counter and first value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Table {
    Journal,
    Gap,
}

/// A run that a table has already.
#[derive(Clone, Debug, FromRow)]
pub(super) struct Neighbour {
    #[sqlx(rename = "first_value")]
    pub(super) first: i64,
    #[sqlx(rename = "last_value")]
    pub(super) last: i64,
    /// Its allocation; `None` in the gap register.
    pub(super) allocation_id: Option<Vec<u8>>,
}

/// What keys lead to.
#[derive(Debug)]
pub(super) struct Newest {
    /// For each key its newest journal row.
    pub(super) rows: Vec<Option<Row>>,
    /// Whether any record at all is put aside: then those are looked through too.
    pub(super) is_any_aside: bool,
}

/// The key under which an earlier number may exist.
#[derive(Clone, Copy, Debug)]
pub(super) enum WantedKey {
    /// The caller's own.
    CallerKey,
    /// The document's.
    Document,
}

/// The name of a file that has a number of the document that `q` asks for.
macro_rules! archived_file {
    () => {
        "(select f.name from archived_number n
         join archive_file f on f.archive_file_id = n.archive_file_id
         join counter h on h.counter_id = n.counter_id
         where n.document_hash = q.document_hash and h.series_id = q.series_id
         and (q.project_hash is null or n.project_hash = q.project_hash) limit 1)"
    };
}
pub(super) use archived_file;

/// One key to look for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Earlier<'a> {
    pub(super) series_id: i64,
    /// The caller; only its own keys are its own.
    pub(super) user_id: &'a str,
    /// The caller's key, or the document.
    pub(super) value: &'a str,
    pub(super) since_us: i64,
    /// The hash of a document whose number may have moved to a file.
    pub(super) document_hash: Option<i64>,
    /// The code of its project, empty where it has none; without it, of any project.
    pub(super) project: Option<&'a str>,
    /// The hash to search for in addition to the document's.
    pub(super) project_hash: Option<i64>,
}

/// The effect of a batch on the marks of one counter: how far its rows reach, and what they account
/// for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) counter_id: i64,
    /// Highest value of all rows.
    pub(super) last: i64,
    /// The rows that are counted together: their lowest value, epoch and step,
    pub(super) first: i64,
    pub(super) epoch: i64,
    pub(super) step: i64,
    /// and how many values they have.
    pub(super) count: i64,
}

impl Mark {
    /// How many values a counter's count rises by. Values are counted only where count times step
    /// equals their extent: the sum then proves that nothing is missing.
    pub(super) fn counted(&self, before: &Before) -> i64 {
        let Before { epoch, start, step, .. } = *before;
        let is_counted = self.epoch == epoch && self.step == step && self.first > start;
        if is_counted { self.count } else { 0 }
    }
}

/// A counter before a batch.
#[derive(Clone, Copy, Debug, FromRow)]
pub(super) struct Before {
    pub(super) counter_id: i64,
    pub(super) partition_id: i32,
    pub(super) epoch: i64,
    #[sqlx(rename = "start_value")]
    pub(super) start: i64,
    pub(super) taken: i64,
    pub(super) ceiling: i64,
    pub(super) step: i64,
    /// 1 where any record at all is put aside, else 0: then each line is compared with those.
    pub(super) any_aside: i64,
    /// 1 where any number was reserved before the counters were waited for, else 0.
    pub(super) any_reserved: i64,
}

/// The target of a counter that its transaction has locked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub(super) counter_id: i64,
    /// Its last value taken, and its ceiling.
    pub(super) value: i64,
    /// How many more values the journal accounts for.
    pub(super) journaled: i64,
}

/// Counters that move, each as long as it is of this epoch, its partition is open in it, and the
/// journal, the records that it refused and the gap register have nothing above its last value.
#[derive(Clone, Debug)]
pub(super) struct Moves {
    pub(super) partition_id: i32,
    pub(super) epoch: i64,
    /// What the ledger must remember of the node that moves them, where it is known (F9).
    pub(super) confirmed: Option<Marks>,
    pub(super) counters: Vec<Move>,
}
