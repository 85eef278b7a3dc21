//! What those who check the ledger read of it.

use uuid::Uuid;

use super::{Entry, Span};

/// Values of a closed epoch that are not settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsettled {
    /// The counter.
    pub counter_id: i64,
    /// The closed epoch.
    pub epoch: u64,
    /// How many of its values have not been looked at: they may be in no register.
    pub left: u64,
    /// How many values the counter had counted that the journal does not have any more, once all
    /// have been looked at: rows were deleted.
    pub gone: u64,
}

/// A page of a counter's values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audited {
    /// The last value looked at.
    pub upto: i64,
    /// Runs that stand nowhere.
    pub holes: Vec<Span>,
    /// Runs that stand twice.
    pub overlaps: Vec<Span>,
}

/// A number as the journal's row shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// First value of its first serial: its place within the counter.
    pub first: i64,
    /// Its text.
    pub number: String,
    /// The scope within which that is unique.
    pub scope: String,
    /// The allocation.
    pub allocation_id: Uuid,
    /// The number but for its values, as text.
    pub mask: String,
    /// The values of each serial; `None` where the row cannot be read.
    pub taken: Option<Vec<crate::number::TakenRange>>,
}

/// A record that the ledger put aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The allocation.
    pub allocation_id: Uuid,
    /// Its counter; 0: the ledger had none of its name.
    pub counter_id: i64,
    /// The values.
    pub span: Span,
    /// Why it was refused.
    pub reason: String,
}

/// A number that two allocations hold, noticed behind the ledger's unique keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Twice {
    /// The allocation whose number it is, as an entry of that number alone.
    pub entry: Entry,
    /// The one that has it too.
    pub other_allocation_id: Uuid,
}

/// Who explains a finding, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The allocation of the collision, or of the rejected record.
    pub allocation_id: Uuid,
    /// Who says so.
    pub user_id: String,
    /// What happened, and what was done.
    pub reason: String,
}
