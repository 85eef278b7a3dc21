//! Which series serves a request (R2.9): the most specific rule wins, then the default.

use thiserror::Error;

use super::Series;

/// The outcome of a choice: the index of the chosen series among those offered.
pub type Choice = usize;

/// No series serves the request.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RuleError {
    /// No series has ever heard of the type.
    #[error("unknown document type {0:?}")]
    UnknownType(String),
    /// The type exists, but no series numbers it (for this project).
    #[error("document type {0:?} has no numbering configured")]
    TypeNotConfigured(String),
    /// Two series serve the request equally well.
    #[error("series {0} and {1} both serve the request; deactivate one or name a project")]
    Ambiguous(String, String),
}

/// Chooses among active series.
///
/// # Errors
/// See [`RuleError`].
pub fn choose<'a>(
    _series: impl IntoIterator<Item = &'a Series>,
    _type_code: &str,
    _project: Option<&str>,
) -> Result<Choice, RuleError> {
    todo!()
}
