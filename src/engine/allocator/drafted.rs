//! The results of reading a request, before anything is taken.

use std::sync::Arc;

use jiff::Timestamp;
use numbering::Draft;

use super::catalog::ServedSeries;
use super::{AllocError, Issued};

/// What a request is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A number.
    Issue,
    /// What it would look like: no earlier number is looked for.
    Preview,
}

/// A request as the series that serves it reads it.
pub(super) struct Drafted {
    /// The series that serves it.
    pub(super) served: Arc<ServedSeries>,
    /// As that series reads it.
    pub(super) draft: Draft,
    /// The time of the draft.
    pub(super) now: Timestamp,
}

/// What is known of a request before anything is taken.
#[expect(clippy::large_enum_variant, reason = "nearly every request is drafted, in no box")]
pub(super) enum Drafting {
    /// It was answered before, by a series that takes turns with the one that serves it now.
    Answered(Result<Issued, AllocError>),
    /// How the series that serves it reads it.
    Drafted(Drafted),
}
