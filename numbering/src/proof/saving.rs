//! The proof where series are saved: which definitions are proved against which, and what is done
//! where an administrator has accepted an ambiguity.

use std::sync::Arc;

use thiserror::Error;

use super::super::{Policy, ReferenceData, Series, SeriesDefinition, TemplateError};
use super::earlier::beside_earlier;
use super::issued::{IssuedVersion, beside_issued};
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

/// An earlier version of a series, under which numbers may have been issued.
#[derive(Clone, Debug, PartialEq)]
pub struct EarlierVersion {
    /// Which one.
    pub version: u32,
    /// The series as it was; its code says which.
    pub definition: SeriesDefinition,
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
/// among them, against the `earlier` versions of itself, and against what others have `issued`,
/// with the reference data of now. Each series answers for itself: one that accepts an ambiguity
/// may be saved beside another, but that one is refused when it is saved again, unless it accepts
/// it too.
///
/// # Errors
/// See [`ProofError`].
pub fn prove_saved(
    active: &[SeriesDefinition],
    reference: &Arc<ReferenceData>,
    saved: impl Fn(&SeriesDefinition) -> bool,
    earlier: &[EarlierVersion],
    issued: &[IssuedVersion],
) -> Result<Vec<Accepted>, ProofError> {
    let compile = |definition: &SeriesDefinition| compile(definition, reference);
    let all = active.iter().map(compile).collect::<Result<Vec<Series>, _>>()?;
    let all: Vec<&Series> = all.iter().collect();
    let mut accepted = Vec::new();
    for subject in all.iter().filter(|series| saved(series.definition())) {
        let mut proved = prove(subject, &all, earlier);
        if proved.is_ok() {
            proved = prove_beside(subject, reference, earlier)?;
        }
        if proved.is_ok() {
            proved = beside_issued(subject, &all, reference, earlier, issued)?;
        }
        let Err(ambiguity) = proved else { continue };
        let SeriesDefinition { code, ambiguity_accepted, .. } = subject.definition();
        let Some(reason) = ambiguity_accepted.clone() else {
            return Err(ProofError::Ambiguity(Box::new(ambiguity)));
        };
        accepted.push(Accepted { code: code.clone(), reason, ambiguity });
    }
    Ok(accepted)
}

/// Proves those of the definitions that are subjects of `issued` against it, and against nothing
/// else. One that accepts an ambiguity is left out.
///
/// # Errors
/// See [`ProofError`].
pub fn prove_issued(
    active: &[SeriesDefinition],
    reference: &Arc<ReferenceData>,
    issued: &[IssuedVersion],
) -> Result<(), ProofError> {
    let all = active.iter().map(|definition| compile(definition, reference));
    let all = all.collect::<Result<Vec<Series>, _>>()?;
    let all: Vec<&Series> = all.iter().collect();
    for subject in all.iter().filter(|one| one.definition.ambiguity_accepted.is_none()) {
        beside_issued(subject, &all, reference, &[], issued)?
            .map_err(|ambiguity| ProofError::Ambiguity(Box::new(ambiguity)))?;
    }
    Ok(())
}

/// Proves a series against those of the earlier versions that are its own. One with the same
/// numbers is proved with the series itself.
fn prove_beside(
    subject: &Series,
    reference: &Arc<ReferenceData>,
    earlier: &[EarlierVersion],
) -> Result<Result<(), Ambiguity>, ProofError> {
    let definition = subject.definition();
    let mut proved = vec![numbers(definition)];
    for EarlierVersion { version, definition: before } in earlier {
        let of_before = numbers(before);
        if before.code != definition.code || proved.contains(&of_before) {
            continue;
        }
        if let Err(ambiguity) =
            beside_earlier(&compile(before, reference)?, *version, subject, earlier)
        {
            return Ok(Err(ambiguity));
        }
        proved.push(of_before);
    }
    Ok(Ok(()))
}

/// A definition without what says nothing of its numbers.
pub(super) fn numbers(definition: &SeriesDefinition) -> SeriesDefinition {
    SeriesDefinition {
        name: String::new(),
        description: String::new(),
        policy: Policy::default(),
        once_per_document: None,
        chronology: false,
        closed_before: None,
        ambiguity_accepted: None,
        ..definition.clone()
    }
}

pub(super) fn compile(
    definition: &SeriesDefinition,
    reference: &Arc<ReferenceData>,
) -> Result<Series, ProofError> {
    let compiled = Series::compile(definition.clone()).map_err(|error| ProofError::Series {
        code: definition.code.clone(),
        error: Box::new(error),
    });
    compiled.map(|series| series.with_reference(Arc::clone(reference)))
}
