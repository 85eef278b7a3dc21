//! Reference data on its way into the ledger, and what became of it.

use serde::Serialize;

use crate::number::{Membership, ReferenceRow};

/// Rows and memberships to save, all or none. What is not listed stays as it is.
#[derive(Clone, Debug)]
pub struct ReferenceChange {
    /// The table of all rows and of all members.
    pub table: String,
    /// Rows; their former codes are not read.
    pub rows: Vec<ReferenceRow>,
    /// Memberships.
    pub memberships: Vec<Membership>,
    /// Who saves them.
    pub changed_by: String,
    /// Why.
    pub reason: String,
    /// When.
    pub changed_at_us: i64,
}

/// What a change does to one row or membership.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "effect", rename_all = "lowercase")]
pub enum Effect {
    /// It is new.
    Added,
    /// It has another code from now on.
    Renamed {
        /// The code that it had.
        from: String,
    },
    /// Its name or whether it is active changes.
    Changed,
    /// Nothing changes.
    Unchanged,
}

/// What a change would do, or has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReferencePlan {
    /// Each row of the change.
    pub rows: Vec<(ReferenceRow, Effect)>,
    /// Each membership of the change.
    pub memberships: Vec<(Membership, Effect)>,
}
