//! The register: what people look up of issued numbers, their documents, revisions and gaps. Takes
//! nothing and moves no counter.

pub(crate) mod accounts;
pub(crate) mod actors;
pub(crate) mod assigned;
pub(crate) mod assigned_rows;
pub(crate) mod conditions;
pub(crate) mod documents;
pub(crate) mod find;
pub(crate) mod found_aside;
pub(crate) mod gaps;
pub(crate) mod gaps_beside;
pub(crate) mod lookup;
pub(crate) mod new_gaps;
pub(crate) mod paced;
pub(crate) mod revised;
pub(crate) mod rows;
pub(crate) mod shown;
pub(crate) mod since;
pub(crate) mod statuses;

use crate::calls::noun;

noun!(
    /// The register of issued numbers, their documents and gaps.
    Register,
    register
);
