//! A number that came twice, as `verify` reports it.

use serde::Serialize;

use crate::ledger::Collision;

/// A number that was issued a second time.
#[derive(Clone, Debug, Serialize)]
pub struct Duplicate {
    /// The number.
    pub number: String,
    /// The allocation that came second.
    pub allocation_id: String,
    /// The one that was there.
    pub other_allocation_id: Option<String>,
}

impl Duplicate {
    pub(super) fn of(collision: Collision) -> Self {
        Duplicate {
            number: collision.number,
            allocation_id: collision.allocation_id.to_string(),
            other_allocation_id: collision.other_allocation_id.map(|id| id.to_string()),
        }
    }
}
