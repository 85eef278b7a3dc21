//! Who is compared where series are saved: a series with itself, with its earlier versions, with
//! the other active series, and with all that others may have issued; and what is done where an
//! administrator has accepted an ambiguity.
//!
//! Never takes a request away from a version of another series but what the series itself took by
//! a better rule while that version gave numbers: third series are not looked at.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use thiserror::Error;

use super::super::{Policy, ReferenceData, Series, SeriesDefinition, TemplateError};
use super::{Ambiguity, Party, compare, differ_at_an_end};

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

/// Proves that no number of a series can have the text of another of its uniqueness scope: neither
/// of its own nor of the other active series. `active` may hold the series itself; it is told by
/// its code. `earlier` holds the versions before of all of them, as far as they may have counters.
///
/// # Errors
/// [`Ambiguity`]: a text with two readings, or a search that was too large.
pub fn prove(
    subject: &Series,
    active: &[&Series],
    earlier: &[EarlierVersion],
) -> Result<(), Ambiguity> {
    let current = active.iter().copied().chain([subject]).map(Series::definition);
    let starts = Starts::of(current.chain(earlier.iter().map(|before| &before.definition)));
    beside_active(subject, active, &starts)
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
    let before = earlier.iter().map(|before| &before.definition);
    let out = issued.iter().map(|issued| &*issued.definition);
    let starts = Starts::of(active.iter().chain(before).chain(out));
    let all = compile_all(active, reference)?;
    let all: Vec<&Series> = all.iter().collect();
    let issued = Issued::of(issued, reference)?;
    let mut accepted = Vec::new();
    for subject in all.iter().filter(|series| saved(series.definition())) {
        let mut proved = beside_active(subject, &all, &starts);
        if proved.is_ok() {
            proved = beside_earlier(subject, reference, earlier, &starts)?;
        }
        if proved.is_ok() {
            proved = issued.beside(subject, &all, &starts);
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
/// else. One that accepts an ambiguity is left out. Their earlier versions are not known here: a
/// counter of them may be at any value.
///
/// # Errors
/// See [`ProofError`].
pub fn prove_issued(
    active: &[SeriesDefinition],
    reference: &Arc<ReferenceData>,
    issued: &[IssuedVersion],
) -> Result<(), ProofError> {
    let all = compile_all(active, reference)?;
    let all: Vec<&Series> = all.iter().collect();
    let issued = Issued::of(issued, reference)?;
    for subject in all.iter().filter(|one| one.definition.ambiguity_accepted.is_none()) {
        issued
            .beside(subject, &all, &Starts::Unknown)
            .map_err(|ambiguity| ProofError::Ambiguity(Box::new(ambiguity)))?;
    }
    Ok(())
}

/// The least start of each serial in all versions of its series, by their names: a counter goes on
/// where it is, whichever version takes from it.
enum Starts<'d> {
    Known(HashMap<(&'d str, &'d str), u64>),
    Unknown,
}

impl<'d> Starts<'d> {
    fn of(versions: impl Iterator<Item = &'d SeriesDefinition>) -> Self {
        let mut starts = HashMap::new();
        for version in versions {
            for serial in &version.serials {
                let start = starts.entry((&*version.code, &*serial.name)).or_insert(serial.start);
                *start = serial.start.min(*start);
            }
        }
        Starts::Known(starts)
    }

    /// A version of a series beside a rival.
    fn party<'s>(
        &self,
        series: &'s Series,
        version: Option<u32>,
        rival: Option<&'s Series>,
    ) -> Party<'s> {
        let code = series.definition.code.as_str();
        let least = series.serials.iter().map(|serial| match self {
            Starts::Known(starts) => {
                let least = starts.get(&(code, &*serial.name)).copied();
                least.unwrap_or(serial.start).min(serial.start)
            }
            Starts::Unknown => 1,
        });
        Party { series, version, least: least.collect(), rival }
    }
}

/// Proves a series by itself, and beside the other active ones.
fn beside_active(
    subject: &Series,
    active: &[&Series],
    starts: &Starts<'_>,
) -> Result<(), Ambiguity> {
    let alone = starts.party(subject, None, None);
    compare(&alone, &alone)?;
    let others = active.iter().filter(|other| other.definition.code != subject.definition.code);
    for other in others.filter(|other| !differ_at_an_end([subject, other])) {
        let one = starts.party(subject, None, Some(other));
        compare(&one, &starts.party(other, None, Some(subject)))?;
    }
    Ok(())
}

/// Proves a series against those of the earlier versions that are its own. One with the same
/// numbers is proved with the series itself.
fn beside_earlier(
    subject: &Series,
    reference: &Arc<ReferenceData>,
    earlier: &[EarlierVersion],
    starts: &Starts<'_>,
) -> Result<Result<(), Ambiguity>, ProofError> {
    let definition = subject.definition();
    let mut proved = vec![numbers(definition)];
    for EarlierVersion { version, definition: before } in earlier {
        let of_before = numbers(before);
        if before.code != definition.code || proved.contains(&of_before) {
            continue;
        }
        let before = compile(before, reference)?;
        let before = starts.party(&before, Some(*version), None);
        if let Err(ambiguity) = compare(&before, &starts.party(subject, None, None)) {
            return Ok(Err(ambiguity));
        }
        proved.push(of_before);
    }
    Ok(Ok(()))
}

/// What others have issued, each definition compiled once.
struct Issued<'i> {
    versions: &'i [IssuedVersion],
    compiled: HashMap<*const SeriesDefinition, Series>,
}

impl<'i> Issued<'i> {
    fn of(
        versions: &'i [IssuedVersion],
        reference: &Arc<ReferenceData>,
    ) -> Result<Self, ProofError> {
        let mut compiled = HashMap::new();
        for definition in versions.iter().flat_map(|one| one.then.iter().chain([&one.definition])) {
            if let Entry::Vacant(vacant) = compiled.entry(Arc::as_ptr(definition)) {
                vacant.insert(compile(definition, reference)?);
            }
        }
        Ok(Issued { versions, compiled })
    }

    fn series(&self, definition: &Arc<SeriesDefinition>) -> &Series {
        &self.compiled[&Arc::as_ptr(definition)]
    }

    /// Proves that a series can give no text that one of the versions may have given. Those that
    /// give the same numbers to the same requests are looked at once.
    fn beside(
        &self,
        subject: &Series,
        active: &[&Series],
        starts: &Starts<'_>,
    ) -> Result<(), Ambiguity> {
        let code = &subject.definition.code;
        let mut proved: Vec<(SeriesDefinition, Option<&SeriesDefinition>)> = Vec::new();
        for issued in self.versions.iter().filter(|one| one.subject == *code) {
            let IssuedVersion { version, definition, then, .. } = issued;
            let before = self.series(definition);
            let (of, as_then) = (numbers(definition), then.as_deref());
            if differ_at_an_end([subject, before])
                || proved.iter().any(|(known, at)| *known == of && same_rules(*at, as_then))
            {
                continue;
            }
            let mut others = active.iter().copied();
            let now = others.find(|other| other.definition.code == before.definition.code);
            let then = then.as_ref().map(|then| self.series(then));
            let one = starts.party(subject, None, now);
            compare(&one, &starts.party(before, Some(*version), then))?;
            proved.push((of, as_then));
        }
        Ok(())
    }
}

/// Whether both take the same requests, with what these are read by.
fn same_rules(one: Option<&SeriesDefinition>, other: Option<&SeriesDefinition>) -> bool {
    let rules = |definition: &SeriesDefinition| {
        let SeriesDefinition { serves, references, variables, .. } = definition;
        (serves.clone(), references.clone(), variables.clone())
    };
    one.map(rules) == other.map(rules)
}

/// A definition without what says nothing of its numbers.
fn numbers(definition: &SeriesDefinition) -> SeriesDefinition {
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

fn compile_all(
    definitions: &[SeriesDefinition],
    reference: &Arc<ReferenceData>,
) -> Result<Vec<Series>, ProofError> {
    definitions.iter().map(|definition| compile(definition, reference)).collect()
}

fn compile(
    definition: &SeriesDefinition,
    reference: &Arc<ReferenceData>,
) -> Result<Series, ProofError> {
    let compiled = Series::compile(definition.clone()).map_err(|error| ProofError::Series {
        code: definition.code.clone(),
        error: Box::new(error),
    });
    compiled.map(|series| series.with_reference(Arc::clone(reference)))
}
