//! A series beside the versions of other series under which numbers may have been issued (R2.7):
//! whatever became of these series, their numbers are out, and its own counters begin anew.
//!
//! Never takes a request away from such a version but what the series itself took by a better rule
//! while that version gave numbers: what a third one took then is not looked at.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::super::{ReferenceData, Series, SeriesDefinition};
use super::ambiguity::{Ambiguity, Limit};
use super::between::between;
use super::saving::{EarlierVersion, ProofError, compile, numbers};

/// A version of another series under which numbers may have been issued, and the series that is
/// saved as it was then.
#[derive(Clone, Debug, PartialEq)]
pub struct IssuedVersion {
    /// Code of the series that is compared with it.
    pub subject: String,
    /// The version.
    pub version: u32,
    /// The other series as it was.
    pub definition: Arc<SeriesDefinition>,
    /// What the compared series was at a time when that version gave numbers; `None`: it took no
    /// request. One entry for each.
    pub then: Option<Arc<SeriesDefinition>>,
}

/// Compiles each definition once.
#[derive(Default)]
struct Compiled(HashMap<*const SeriesDefinition, Series>);

impl Compiled {
    fn add(
        &mut self,
        definition: &Arc<SeriesDefinition>,
        reference: &Arc<ReferenceData>,
    ) -> Result<(), ProofError> {
        if let Entry::Vacant(vacant) = self.0.entry(Arc::as_ptr(definition)) {
            vacant.insert(compile(definition, reference)?);
        }
        Ok(())
    }

    fn get(&self, definition: &Arc<SeriesDefinition>) -> &Series {
        &self.0[&Arc::as_ptr(definition)]
    }
}

/// Proves that a series can give no text that one of the versions may have given. Those that give
/// the same numbers to the same requests are looked at once.
pub(super) fn beside_issued(
    subject: &Series,
    active: &[&Series],
    reference: &Arc<ReferenceData>,
    earlier: &[EarlierVersion],
    issued: &[IssuedVersion],
) -> Result<Result<(), Ambiguity>, ProofError> {
    let code = &subject.definition.code;
    let issued: Vec<&IssuedVersion> = issued.iter().filter(|one| one.subject == *code).collect();
    let mut compiled = Compiled::default();
    for definition in issued.iter().flat_map(|one| one.then.iter().chain([&one.definition])) {
        compiled.add(definition, reference)?;
    }
    // Counters go on from one version to the next, in values of either.
    let mut versions: Vec<EarlierVersion> =
        earlier.iter().filter(|one| one.definition.code == *code).cloned().collect();
    for IssuedVersion { version, definition, .. } in &issued {
        let before = EarlierVersion { version: *version, definition: (**definition).clone() };
        versions.push(before);
    }
    let mut own: Vec<&Series> = active.to_vec();
    own.retain(|other| other.definition.code != *code);
    own.push(subject);
    let mut proved: Vec<(SeriesDefinition, Option<&SeriesDefinition>)> = Vec::new();
    for IssuedVersion { version, definition, then, .. } in issued {
        let (of, then) = (numbers(definition), then.as_ref());
        let as_then = then.map(|then| &**then);
        if proved.iter().any(|(other, at)| *other == of && same_rules(*at, as_then)) {
            continue;
        }
        let before = compiled.get(definition);
        let mut theirs: Vec<&Series> = then.iter().map(|then| compiled.get(then)).collect();
        theirs.push(before);
        let told = between(subject, before, [&own, &theirs], &versions, Some(*version));
        if let Err(ambiguity) = told {
            return Ok(Err(unproven_beside(ambiguity, before, *version)));
        }
        proved.push((of, as_then));
    }
    Ok(Ok(()))
}

/// Whether both take the same requests, with what these are read by.
fn same_rules(one: Option<&SeriesDefinition>, other: Option<&SeriesDefinition>) -> bool {
    let rules = |definition: &SeriesDefinition| {
        let SeriesDefinition { serves, references, variables, .. } = definition;
        (serves.clone(), references.clone(), variables.clone())
    };
    one.map(rules) == other.map(rules)
}

/// A refusal without two requests names the version, and what always helps.
fn unproven_beside(ambiguity: Ambiguity, before: &Series, version: u32) -> Ambiguity {
    let Ambiguity::Unproven { subject, limit } = ambiguity else { return ambiguity };
    let code = &before.definition.code;
    let subject = format!("{subject}, whose version {version} may have issued numbers,");
    let limit = format!(
        "{limit}; or begin the template with text that series {code} never began with (a new \
         `prefix`, for example)"
    );
    Ambiguity::Unproven { subject, limit: Limit::Tables(limit) }
}

/// Why a series is refused beside such a version, and the remedy.
pub(super) fn remedy(a: &Series, b: &Series, version: u32) -> String {
    let (code, other) = (&a.definition.code, &b.definition.code);
    format!(
        "the number of series {other} is one of its version {version}, which may be out already: \
         begin the template of {code} with other text (a new `prefix`, for example), or go on with \
         series {other}, whose counters are above it"
    )
}
