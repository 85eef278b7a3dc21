//! What is compared when series are saved: a series with itself, with its earlier versions, with
//! the other active series, and with all that others may have issued; and what is done if an
//! administrator has accepted an ambiguity.
//!
//! Never takes a request away from a version of another series except what the series itself took
//! by a better rule while that version gave numbers: third series are not examined.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use thiserror::Error;

use super::super::window::days_of;
use super::super::{
    Documents, LookAlikes, Policy, ReferenceData, Series, SeriesDefinition, Serves, TemplateError,
    VariableDefinition,
};
use super::accepting::{Hasty, Pairs};
use super::effort::{Effort, GiveUp};
use super::{Ambiguity, Party, compare, differ_at_an_end};

/// An ambiguity that a series is saved with, because its administrator accepted it.
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
    /// The series as it was; its code identifies it.
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
    /// It accepts it, and not every series of the pair is `gapless`.
    #[error(transparent)]
    Hasty(Box<Hasty>),
    /// The proof is no longer awaited: nothing is known of the series.
    #[error("the proof was given up before its end")]
    GivenUp,
}

/// Proves each of the definitions that are `saved` against all that will be `active` then, itself
/// among them, and against the `earlier` versions of itself; and each that is a subject of `issued`
/// against that, with the reference data of now. Each series answers for itself: one that accepts
/// an ambiguity may be saved with another, but the other is refused when it is saved again, unless
/// it accepts it too. Acceptance is for pairs whose series are both `gapless` (F43).
///
/// # Errors
/// See [`ProofError`].
pub fn prove_saved(
    active: &[SeriesDefinition],
    reference: &Arc<ReferenceData>,
    saved: impl Fn(&SeriesDefinition) -> bool,
    earlier: &[EarlierVersion],
    issued: &[IssuedVersion],
    give_up: &GiveUp,
) -> Result<Vec<Accepted>, ProofError> {
    let before = earlier.iter().map(|before| &before.definition);
    let out = issued.iter().map(|issued| &*issued.definition);
    let starts = Starts::of(active.iter().chain(before).chain(out));
    prove_all(active, reference, &starts, saved, earlier, issued, give_up)
}

/// Proves those of the definitions that are subjects of `issued` against it, and against nothing
/// else. A series that accepts an ambiguity may have it. Their earlier versions are not known here:
/// a counter of them may be at any value.
///
/// # Errors
/// See [`ProofError`].
pub fn prove_issued(
    active: &[SeriesDefinition],
    reference: &Arc<ReferenceData>,
    issued: &[IssuedVersion],
    give_up: &GiveUp,
) -> Result<(), ProofError> {
    prove_all(active, reference, &Starts::Unknown, |_| false, &[], issued, give_up).map(drop)
}

fn prove_all(
    active: &[SeriesDefinition],
    reference: &Arc<ReferenceData>,
    starts: &Starts<'_>,
    saved: impl Fn(&SeriesDefinition) -> bool,
    earlier: &[EarlierVersion],
    issued: &[IssuedVersion],
    give_up: &GiveUp,
) -> Result<Vec<Accepted>, ProofError> {
    let all: Result<Vec<Series>, _> = active.iter().map(|one| compile(one, reference)).collect();
    let all = all?;
    let mut accepted = Vec::new();
    for subject in &all {
        let SeriesDefinition { code, ambiguity_accepted, .. } = subject.definition();
        let is_saved = saved(subject.definition());
        let own = earlier.iter().filter(|_| is_saved);
        let own = own.filter(|version| version.definition.code == *code);
        let own = own.map(|EarlierVersion { version, definition }| (*version, definition, None));
        let others = issued.iter().filter(|version| version.subject == *code).map(
            |IssuedVersion { version, definition, then, .. }| {
                (*version, &**definition, then.as_deref())
            },
        );
        let versions: Vec<_> = own.chain(others).collect();
        let prove = |pairs: Pairs| {
            let effort = Effort::whole(give_up);
            let mut proved = Ok(());
            if is_saved {
                proved = beside_active(subject, &all, starts, pairs, &effort);
            }
            if proved.is_ok() {
                let versions = versions.iter().copied();
                let versions = versions.filter(|(_, other, _)| pairs.have(subject, other));
                proved = beside_versions(subject, &all, reference, starts, versions, &effort)?;
            }
            // An unfinished comparison cannot be accepted.
            if give_up.is_given_up() { Err(ProofError::GivenUp) } else { Ok(proved) }
        };
        let Some(reason) = ambiguity_accepted.clone() else {
            let ambiguous = |ambiguity| ProofError::Ambiguity(Box::new(ambiguity));
            prove(Pairs::All)?.map_err(ambiguous)?;
            continue;
        };
        prove(Pairs::Hasty)?.map_err(|ambiguity| {
            ProofError::Hasty(Box::new(Hasty { code: code.clone(), ambiguity }))
        })?;
        if let Err(ambiguity) = prove(Pairs::Gapless)? {
            accepted.push(Accepted { code: code.clone(), reason, ambiguity });
        }
    }
    Ok(accepted)
}

/// The least start of each serial in all versions of its series, by their names: a counter
/// continues from its value, whichever version takes from it.
pub(super) enum Starts<'d> {
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

    /// A version of a series in relation to a rival.
    pub(super) fn party<'s>(
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

/// Proves a series against itself, and against the other active ones.
fn beside_active(
    subject: &Series,
    active: &[Series],
    starts: &Starts<'_>,
    pairs: Pairs,
    effort: &Effort<'_>,
) -> Result<(), Ambiguity> {
    if pairs.have(subject, &subject.definition) {
        let alone = starts.party(subject, None, None);
        compare(&alone, &alone, effort)?;
    }
    let others = active.iter().filter(|other| other.definition.code != subject.definition.code);
    let others = others.filter(|other| pairs.have(subject, &other.definition));
    for other in others.filter(|other| !differ_at_an_end([subject, other])) {
        let one = starts.party(subject, None, Some(other));
        compare(&one, &starts.party(other, None, Some(subject)), effort)?;
    }
    Ok(())
}

/// Proves a series against versions, of its own or of others, with what it was itself while these
/// gave numbers. Those that gave the same numbers to the same requests are examined together; its
/// own are the same if they equal its present state.
fn beside_versions<'d>(
    subject: &Series,
    active: &[Series],
    reference: &Arc<ReferenceData>,
    starts: &Starts<'_>,
    versions: impl Iterator<Item = (u32, &'d SeriesDefinition, Option<&'d SeriesDefinition>)>,
    effort: &Effort<'_>,
) -> Result<Result<(), Ambiguity>, ProofError> {
    let mut proved = vec![(numbers(&subject.definition), None)];
    for (version, definition, then) in versions {
        let of = numbers(definition);
        let is_known = |(known, at): &(SeriesDefinition, Option<&SeriesDefinition>)| {
            *known == of && same_turn(*at, then)
        };
        if proved.iter().any(is_known) {
            continue;
        }
        let before = compile(definition, reference)?;
        let as_then = then.map(|then| compile(then, reference)).transpose()?;
        let code = &before.definition.code;
        let found = if *code == subject.definition.code {
            let before = starts.party(&before, Some(version), None);
            compare(&before, &starts.party(subject, None, None), effort)
        } else {
            let now = active.iter().find(|other| other.definition.code == *code);
            let before = starts.party(&before, Some(version), as_then.as_ref());
            compare(&starts.party(subject, None, now), &before, effort)
        };
        if found.is_err() {
            return Ok(found);
        }
        proved.push((of, then));
    }
    Ok(Ok(()))
}

/// Whether a series took the same requests at two times, or none.
fn same_turn(one: Option<&SeriesDefinition>, other: Option<&SeriesDefinition>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => same_rules(one, other),
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// Whether two versions of a series take the same requests and read them alike, whatever other
/// series exist.
#[must_use]
pub fn same_rules(one: &SeriesDefinition, other: &SeriesDefinition) -> bool {
    (&one.serves, &one.references, by_characters(one), days_of(one))
        == (&other.serves, &other.references, by_characters(other), days_of(other))
}

/// Whether two versions of a series can give the same numbers to the same requests, by their
/// definitions: what is proved of one is proved of the other, except for what was accepted.
#[must_use]
pub fn same_numbers(one: &SeriesDefinition, other: &SeriesDefinition) -> bool {
    numbers(one) == numbers(other)
}

/// Whether a version gives no number to a request that another one did not give it to: they are the
/// same, or it serves fewer of what the other one lists. What was proved of the other one is proved
/// of it.
#[must_use]
pub fn only_narrows(before: &SeriesDefinition, after: &SeriesDefinition) -> bool {
    let (Serves { types, projects, originators, sub_types, .. }, next) =
        (&before.serves, &after.serves);
    // One that lists what it did not list before may come before others that came before it.
    let fewer = |before: &[String], after: &[String]| {
        before.is_empty() == after.is_empty() && after.iter().all(|code| before.contains(code))
    };
    let narrowed = SeriesDefinition {
        serves: Serves {
            types: next.types.clone(),
            projects: next.projects.clone(),
            originators: next.originators.clone(),
            sub_types: next.sub_types.clone(),
            ..before.serves.clone()
        },
        ..before.clone()
    };
    // A code of a table may become any code, and one that is no longer listed may still be served.
    let by_codes = before.serves == after.serves || !before.refers_to_tables();
    by_codes
        && fewer(types, &next.types)
        && fewer(projects, &next.projects)
        && fewer(originators, &next.originators)
        && fewer(sub_types, &next.sub_types)
        && same_numbers(&narrowed, after)
}

/// A definition without the fields that do not affect its numbers.
fn numbers(definition: &SeriesDefinition) -> SeriesDefinition {
    SeriesDefinition {
        name: String::new(),
        description: String::new(),
        policy: Policy::default(),
        once_per_document: None,
        documents: Documents::default(),
        chronology: false,
        by_hand: false,
        closed_before: None,
        document_date: None,
        dates: None,
        look_alikes: LookAlikes::default(),
        ambiguity_accepted: None,
        variables: by_characters(definition),
        ..definition.clone()
    }
}

/// Variables as the proof takes them: their values are no part of it.
fn by_characters(definition: &SeriesDefinition) -> BTreeMap<String, VariableDefinition> {
    let mut variables = definition.variables.clone();
    for variable in variables.values_mut() {
        (variable.label, variable.values) = (None, None);
    }
    variables
}

pub(super) fn compile(
    definition: &SeriesDefinition,
    reference: &Arc<ReferenceData>,
) -> Result<Series, ProofError> {
    let compiled = Series::restore(definition.clone()).map_err(|error| ProofError::Series {
        code: definition.code.clone(),
        error: Box::new(error),
    });
    compiled.map(|series| series.with_reference(Arc::clone(reference)))
}
