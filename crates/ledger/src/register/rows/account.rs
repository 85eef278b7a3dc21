//! Accounts of counters as auditors read them: every value once, with what accounts for it.

use sqlx_macros::FromRow;
use uuid::Uuid;

use crate::{Counter, CounterFilter, GapReason, KeyCondition};

/// Which counters to account for, and how much may be read and listed.
#[derive(Clone, Debug)]
pub struct AccountRequest {
    /// Which counters; its `limit` and `after` are ignored.
    pub filter: CounterFilter,
    /// More counters are refused.
    pub counters_max: u32,
    /// More rows are refused.
    pub rows_max: u64,
    /// Further runs that are no issued numbers are counted, not listed.
    pub entries_max: usize,
    /// The batches that a checkpoint has seen, where there is one.
    pub seen: Option<SeenBatches>,
}

/// A part of the numbers of some counters: those whose documents are dated so.
#[derive(Clone, Debug)]
pub struct DatedPart {
    /// Which counters.
    pub of: KeyCondition,
    /// The first day, and the last.
    pub days: [String; 2],
}

/// The batches that a checkpoint and those before it bind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenBatches {
    /// The highest id that it has seen.
    pub upto: i64,
    /// Runs of ids below it that had no row then.
    pub open: Vec<(i64, i64)>,
}

impl SeenBatches {
    /// Whether a batch is bound.
    #[must_use]
    pub fn holds(&self, batch_id: i64) -> bool {
        batch_id >= 1
            && batch_id <= self.upto
            && !self.open.iter().any(|(first, last)| (*first..=*last).contains(&batch_id))
    }
}

/// All accounts of an order, or what is too much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accounted {
    /// By series, serial and key.
    Whole(Vec<CounterAccount>),
    /// There are more counters than were allowed for.
    TooManyCounters,
    /// They have more rows than were allowed for.
    TooManyRows,
}

/// A run of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct Run {
    /// First value.
    #[sqlx(rename = "first_value")]
    pub first: i64,
    /// Last value.
    #[sqlx(rename = "last_value")]
    pub last: i64,
    /// Distance between two, at least 1.
    pub step: i64,
}

impl Run {
    /// How many values it has.
    #[must_use]
    pub fn count(self) -> u64 {
        if self.last < self.first {
            return 0;
        }
        self.last.abs_diff(self.first) / self.step.unsigned_abs().max(1) + 1
    }
}

/// What accounts for a run of values that is no number in the journal, or one too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// It will not be issued any more.
    Gap(GapReason),
    /// A record that the journal did not take, kept as it came.
    Rejected,
    /// A record whose number another one has already.
    Collision,
    /// Held by a document that is not final, or just confirmed.
    Reserved,
    /// Taken in an epoch that lasts; its record may be on its way.
    Pending,
    /// Of a closed epoch that has not been looked through.
    Unexamined,
    /// It is recorded nowhere.
    Missing,
    /// It is recorded twice.
    Twice,
}

/// A run of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountEntry {
    /// What it is.
    pub kind: EntryKind,
    /// Its values.
    pub run: Run,
    /// The row that says so, where one does.
    pub row: Option<EntryRow>,
}

/// A row of the gap register, of the rejected records, of the collisions or of the reservations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRow {
    /// Its id there.
    pub id: i64,
    /// When it was noted.
    pub noted_at_us: i64,
    /// Of a gap, its epoch.
    pub epoch: u64,
    /// Of a record, its allocation.
    pub allocation_id: Option<Uuid>,
    /// Of a record, who has explained it, and how.
    pub explained: Option<(String, String)>,
}

/// How many values are accounted for, and as what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountTally {
    /// Issued by this service, those in the archive included.
    pub issued: u64,
    /// Issued by another system, and imported.
    pub imported: u64,
    /// Given by hand, and registered.
    pub registered: u64,
    /// Given by hand, and kept as written: of counters that count nothing else.
    pub as_written: u64,
    /// Of those, in the archive: the files show which system issued them.
    pub archived: u64,
    /// Gaps: `discarded`, `unaccounted`, `collided`, `before-import`, `skipped`, `returned`,
    /// `cancelled`, `expired`.
    pub gaps: [u64; 8],
    /// Reserved: held by documents that are not final.
    pub reserved: u64,
    /// Rejected records.
    pub rejected: u64,
    /// Records whose number another one has.
    pub collisions: u64,
    /// On their way into the journal.
    pub pending: u64,
    /// Not looked through.
    pub unexamined: u64,
    /// Nowhere.
    pub missing: u64,
    /// Once too often.
    pub twice: u64,
}

impl AccountTally {
    /// The place of a reason among the gaps.
    #[must_use]
    pub fn place(reason: GapReason) -> usize {
        match reason {
            GapReason::Discarded => 0,
            GapReason::Unaccounted => 1,
            GapReason::Collided => 2,
            GapReason::BeforeImport => 3,
            GapReason::Skipped => 4,
            GapReason::Returned => 5,
            GapReason::Cancelled => 6,
            GapReason::Expired => 7,
        }
    }

    /// All of it but what is there once too often: each value once.
    #[must_use]
    pub fn sum(&self) -> u64 {
        let gaps: u64 = self.gaps.iter().sum();
        let numbers = self.issued + self.imported + self.registered + self.as_written;
        let present = numbers + gaps + self.rejected + self.collisions;
        (present + self.reserved + self.pending + self.unexamined + self.missing)
            .saturating_sub(self.twice)
    }
}

/// The first or the last number of a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountEnd {
    /// Its value.
    pub value: i64,
    /// Its text; none of a further serial's value, nor in the archive.
    pub number: Option<String>,
    /// When the request was accepted.
    pub issued_at_us: i64,
    /// In the archive, its file.
    pub file: Option<String>,
}

/// The part of a counter's numbers that is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountPart {
    /// How many values, except those outside the journal and those in the archive.
    pub values: u64,
    /// The number of the lowest of them.
    pub first: Option<AccountEnd>,
    /// The number of the highest.
    pub last: Option<AccountEnd>,
    /// Values dated so whose records are not in the journal: kept aside, or of a text that another
    /// number has. What cannot be read of them may be dated so.
    pub kept_aside: u64,
    /// Values in files of the archive that may have some of it: only the files show their dates.
    pub archived: u64,
}

/// The void numbers of a counter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountVoids {
    /// How many there are.
    pub voided: u64,
    /// How many of them are replaced by another number.
    pub replaced: u64,
    /// The first of them, by value.
    pub listed: Vec<AccountVoid>,
}

/// A void number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountVoid {
    /// The row of its void.
    pub life_id: i64,
    /// Its value.
    pub value: i64,
    /// Its text.
    pub number: String,
    /// When it was voided.
    pub voided_at_us: i64,
    /// By whom.
    pub voided_by: String,
    /// Why.
    pub reason: String,
    /// The number in its place.
    pub replaced_by: Option<String>,
}

/// A number that was given by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountByHand {
    /// The row of its registration.
    pub life_id: i64,
    /// Its value.
    pub value: i64,
    /// Its text.
    pub number: String,
    /// When it was registered.
    pub registered_at_us: i64,
    /// By whom.
    pub registered_by: String,
    /// Why.
    pub reason: String,
}

/// How many rows of the journal a checkpoint binds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BoundRows {
    /// In batches that it, or one before it, binds.
    pub bound: u64,
    /// In batches that it had not seen.
    pub later: u64,
    /// Of batches without a proof, and of none.
    pub keyless: u64,
}

/// The account of one counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterAccount {
    /// The counter.
    pub counter: Counter,
    /// Its values from the first to the last, by stretches of one step.
    pub stretches: Vec<Run>,
    /// Values of stretches that are not listed.
    pub further_stretches: u64,
    /// What accounts for them.
    pub tally: AccountTally,
    /// Everything but the numbers in the journal, by value.
    pub entries: Vec<AccountEntry>,
    /// Entries that are not listed.
    pub further_entries: u64,
    /// The number of the lowest value in the journal.
    pub first: Option<AccountEnd>,
    /// The number of the highest one.
    pub last: Option<AccountEnd>,
    /// Where only a part was asked for, that part.
    pub part: Option<AccountPart>,
    /// Numbers that have a revision.
    pub revised: u64,
    /// Numbers that are void.
    pub voids: AccountVoids,
    /// The first numbers that were given by hand, or are kept as written, by value.
    pub by_hand: Vec<AccountByHand>,
    /// Numbers that were given by hand, or are kept as written, and are not listed.
    pub further_by_hand: u64,
    /// Files of the archive, not more than a few.
    pub files: Vec<String>,
    /// Files that are not listed.
    pub further_files: u64,
    /// How its rows are bound.
    pub rows: BoundRows,
    /// Whether its epoch is closed and not settled: values up to its ceiling may turn out as gaps.
    pub is_unsettled: bool,
    /// Values that were counted in a closed epoch and are gone from the journal.
    pub gone: u64,
    /// Whether a value above the counter's own is recorded somewhere.
    pub is_exceeded: bool,
    /// Records that the journal did not take, and collisions, without an explanation.
    pub unexplained: u64,
}

impl CounterAccount {
    /// How many values it has from the first to the last.
    #[must_use]
    pub fn values(&self) -> u64 {
        self.stretches.iter().map(|run| run.count()).sum::<u64>() + self.further_stretches
    }

    /// Whether each of its values is recorded, none twice, none is gone, and what is odd is
    /// explained.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let is_whole = self.values() == self.tally.sum() && !self.is_exceeded;
        is_whole && self.tally.missing + self.tally.twice + self.gone + self.unexplained == 0
    }

    /// Whether nothing of it is open either.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.tally.reserved + self.tally.pending + self.tally.unexamined == 0 && !self.is_unsettled
    }
}
