//! The proof where series are saved: which definitions are proved against which, and what is done
//! where an administrator has accepted an ambiguity.

use std::sync::Arc;

use thiserror::Error;

use super::super::{ReferenceData, Series, SeriesDefinition, TemplateError};
use super::{Ambiguity, prove};

/// An ambiguity that a series is saved with, since its administrator accepted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Code of the series.
    pub code: String,
    /// `ambiguity_accepted` of its definition.
    pub reason: String,
    /// What was accepted.
    pub ambiguity: Ambiguity,
}

/// Why series cannot be saved together.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProofError {
    /// A definition that does not compile: it was saved by a newer version.
    #[error("series {code}: {error}")]
    Series {
        /// Its code.
        code: String,
        /// What is wrong.
        error: Box<TemplateError>,
    },
    /// A saved series is ambiguous and does not accept it.
    #[error(transparent)]
    Ambiguity(Box<Ambiguity>),
}

/// Proves each of the definitions that are `saved` against all that will be `active` then, itself
/// among them, with the reference data of now. Each series answers for itself: one that accepts an
/// ambiguity may be saved beside another, but that one is refused when it is saved again, unless it
/// accepts it too.
///
/// # Errors
/// See [`ProofError`].
pub fn prove_saved(
    active: &[SeriesDefinition],
    reference: &Arc<ReferenceData>,
    saved: impl Fn(&SeriesDefinition) -> bool,
) -> Result<Vec<Accepted>, ProofError> {
    let compile = |definition: &SeriesDefinition| {
        let compiled = Series::compile(definition.clone()).map_err(|error| ProofError::Series {
            code: definition.code.clone(),
            error: Box::new(error),
        });
        compiled.map(|series| series.with_reference(Arc::clone(reference)))
    };
    let all = active.iter().map(compile).collect::<Result<Vec<Series>, _>>()?;
    let all: Vec<&Series> = all.iter().collect();
    let mut accepted = Vec::new();
    for subject in all.iter().filter(|series| saved(series.definition())) {
        let Err(ambiguity) = prove(subject, &all) else { continue };
        let SeriesDefinition { code, ambiguity_accepted, .. } = subject.definition();
        let Some(reason) = ambiguity_accepted.clone() else {
            return Err(ProofError::Ambiguity(Box::new(ambiguity)));
        };
        accepted.push(Accepted { code: code.clone(), reason, ambiguity });
    }
    Ok(accepted)
}
