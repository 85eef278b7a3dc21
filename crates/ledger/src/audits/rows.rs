//! The rows that those who check the ledger read.

use numbering::TakenRange;
use serde::Serialize;
use uuid::Uuid;

use crate::{Span, StandsFor, ValueOf};

/// Values of a closed epoch that are not settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Unsettled {
    /// The counter.
    pub counter_id: i64,
    /// The closed epoch.
    pub epoch: u64,
    /// How many of its values have not been looked at: they may be in no register.
    pub left: u64,
    /// How many values the counter had counted that the journal no longer has, once all have been
    /// examined: rows were deleted.
    pub gone: u64,
}

/// A page of a counter's values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audited {
    /// The last value looked at.
    pub upto: i64,
    /// Runs that are in no row.
    pub holes: Vec<Span>,
    /// Runs that are in two rows.
    pub overlaps: Vec<Span>,
}

/// A row of the journal as it is, whatever its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its counter and first value: rows are in this order.
    pub of: ValueOf,
    /// The allocation.
    pub allocation_id: Uuid,
    /// The text of the row of a first serial.
    pub text: Option<WrittenText>,
    /// Of a segment: the rows that it represents.
    pub stands_for: Option<StandsFor>,
}

/// What the row of a number states about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenText {
    /// The number; of a range the first one.
    pub number: String,
    /// The scope within which it is unique.
    pub scope: String,
    /// Series and version that made it, where the row names them.
    pub made_by: Option<(i64, u32)>,
    /// The requested document type.
    pub type_code: String,
    /// The requested project.
    pub project: Option<String>,
    /// The variables, JSON.
    pub context: Option<String>,
    /// The text of the partially rendered number, as the column `mask` keeps it.
    pub mask: String,
    /// Whether it is kept as written: its mask shows no value.
    pub is_as_written: bool,
    /// The values of each serial; `None` where they cannot be read.
    pub taken: Option<Vec<TakenRange>>,
}

/// A record that the ledger put aside, of a counter that it does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Nobodys {
    /// The allocation.
    pub allocation_id: Uuid,
    /// The values.
    #[serde(flatten)]
    pub span: Span,
    /// Why it was refused.
    pub reason: String,
}

/// The user who explains a finding, and the explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The allocation of the collision, or of the rejected record.
    pub allocation_id: Uuid,
    /// The user who explains it.
    pub user_id: String,
    /// The incident and the measures taken.
    pub reason: String,
}
