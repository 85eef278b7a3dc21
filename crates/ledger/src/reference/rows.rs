//! Reference data on its way into the ledger, and the effect.

use numbering::{Membership, ReferenceRow};
use serde::Serialize;

/// Rows and memberships to save, all or none. Rows that are not listed stay as they are, and so do
/// fields that a listed row leaves out.
#[derive(Clone, Debug)]
pub struct ReferenceChange {
    /// The table of all rows and of all members.
    pub table: String,
    /// Rows.
    pub rows: Vec<RowChange>,
    /// Memberships.
    pub memberships: Vec<MembershipChange>,
    /// The user who saves them.
    pub changed_by: String,
    /// Why.
    pub reason: String,
    /// When.
    pub changed_at_us: i64,
}

/// A row to save.
#[derive(Clone, Debug)]
pub struct RowChange {
    /// Its id.
    pub id: String,
    /// Its code from now on.
    pub code: String,
    /// Its display name; `None` keeps the one that it has, a new row has none then.
    pub name: Option<String>,
    /// Whether new numbers may use it; `None` keeps it as it is, a new row may be used then.
    pub active: Option<bool>,
}

impl RowChange {
    /// The row after the change; `now` is the row as it is.
    pub(crate) fn upon(&self, table: &str, now: Option<&ReferenceRow>) -> ReferenceRow {
        let name = self.name.clone().or_else(|| now.map(|row| row.name.clone()));
        let active = self.active.or_else(|| now.map(|row| row.active));
        ReferenceRow {
            table: table.to_owned(),
            id: self.id.clone(),
            code: self.code.clone(),
            name: name.unwrap_or_default(),
            active: active.unwrap_or(true),
            former_codes: Vec::new(),
        }
    }
}

/// A membership to save.
#[derive(Clone, Debug)]
pub struct MembershipChange {
    /// Id of the member.
    pub id: String,
    /// The table that it belongs to.
    pub of_table: String,
    /// The id that it belongs to.
    pub of_id: String,
    /// Whether it still does; `None` keeps it as it is, a new one begins then.
    pub active: Option<bool>,
}

impl MembershipChange {
    /// The membership after the change; `was_active` is its present state, if there is one.
    pub(crate) fn upon(&self, table: &str, was_active: Option<bool>) -> Membership {
        Membership {
            table: table.to_owned(),
            id: self.id.clone(),
            of_table: self.of_table.clone(),
            of_id: self.of_id.clone(),
            active: self.active.or(was_active).unwrap_or(true),
        }
    }
}

/// The effect of a change on one row or membership.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "effect", rename_all = "lowercase")]
pub enum Effect {
    /// It is new.
    Added,
    /// It has another code from now on.
    Renamed {
        /// The code that it had.
        from: String,
        /// Whether it is activated or deactivated with that.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        switched: bool,
    },
    /// It was inactive.
    Activated,
    /// It was active.
    Deactivated,
    /// Only its name changes.
    Changed,
    /// Nothing changes.
    Unchanged,
}

/// The intended or actual effect of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReferencePlan {
    /// Each row of the change.
    pub rows: Vec<(ReferenceRow, Effect)>,
    /// Each membership of the change.
    pub memberships: Vec<(Membership, Effect)>,
}
