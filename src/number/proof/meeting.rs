//! Which requests of one uniqueness scope two series may both be asked (R2.9). Where there are
//! none, it does no harm that the two can show one text.
//!
//! Looks at lists and ranks, not at requests. Of tables it builds on one thing alone: a code that
//! has a row keeps it for ever. A code without a row may become that of any, and a request may be
//! sent in codes or in ids. So in doubt a series may be asked, and no other surely wins over it.

use std::collections::BTreeSet;

use super::super::Series;
use super::super::series::{Dimension, Variable};
use super::super::served::{self, ORIGINATORS};
use super::super::ties::{
    Names, ORIGINATOR, PROJECT, Region, Rule, SUB_TYPE, TYPE, left_over, rules_of,
};
use super::witness::{ANY_PROJECT, ANY_TYPE};

/// Most combinations of a type and a project that are looked at for two series.
const COMBINATIONS_MAX: usize = 1_024;

/// What a request may name, as far as the choice of a series looks at it.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    pub(super) type_code: String,
    pub(super) project: Option<String>,
    /// Originator and sub type by the names of their variables, where they matter.
    pub(super) context: Vec<(String, String)>,
}

/// What two series may be asked in one scope.
#[derive(Debug)]
pub(super) enum Meetings {
    /// No two requests of one scope reach both, whatever becomes of the tables.
    Never,
    /// Some may: these, for example, if any example is at hand.
    Perhaps(Vec<(Asking, Asking)>),
}

/// Looks for requests of one scope that the rules may give to the one and to the other series.
pub(super) fn meetings(a: &Series, b: &Series, active: &[&Series]) -> Meetings {
    let (over_a, over_b) = (winners(a, active), winners(b, active));
    let (offers_a, offers_b) = (offers(a), offers(b));
    let (mut met, mut looked, mut examples) = (false, 0, Vec::new());
    for (x, y) in offers_a.iter().flat_map(|x| offers_b.iter().map(move |y| (x, y))) {
        let types = joint(a, b, TYPE, x, y);
        let projects = joint(a, b, PROJECT, x, y);
        for (of_type, project) in types.iter().flat_map(|t| projects.iter().map(move |p| (t, p))) {
            looked += 1;
            if looked > COMBINATIONS_MAX {
                return Meetings::Perhaps(examples);
            }
            let of_a = left(x, &of_type.0, &project.0, &over_a);
            let both = of_a.zip(left(y, &of_type.1, &project.1, &over_b));
            let Some((left_a, left_b)) = both else { continue };
            met = true;
            examples.extend(askings(a, &left_a).into_iter().flat_map(|for_a| {
                let others = askings(b, &left_b).into_iter();
                others.map(move |for_b| (for_a.clone(), for_b))
            }));
        }
    }
    let (by_type, by_project) = (is_shared(a, b, TYPE), is_shared(a, b, PROJECT));
    examples.retain(|(for_a, for_b)| {
        // Two codes may be one row's.
        let is_one = |is_shared: bool, place: usize| is_shared && table(a, place).is_none();
        (!is_one(by_type, TYPE) || for_a.type_code == for_b.type_code)
            && (!is_one(by_project, PROJECT) || for_a.project == for_b.project)
    });
    examples.truncate(COMBINATIONS_MAX);
    if met { Meetings::Perhaps(examples) } else { Meetings::Never }
}

/// Whether lists alone keep two series apart: no type or no project of one scope is for both.
pub(super) fn are_apart(a: &Series, b: &Series) -> bool {
    let (offers_a, offers_b) = (offers(a), offers(b));
    let mut pairs = offers_a.iter().flat_map(|x| offers_b.iter().map(move |y| (x, y)));
    pairs.all(|(x, y)| [TYPE, PROJECT].into_iter().any(|place| joint(a, b, place, x, y).is_empty()))
}

/// Whether both series have a place in their scope and read it alike: then it is one value.
pub(super) fn is_shared(a: &Series, b: &Series, place: usize) -> bool {
    let dimension = if place == TYPE { Dimension::Type } else { Dimension::Project };
    a.scope.contains(&dimension)
        && b.scope.contains(&dimension)
        && table(a, place) == table(b, place)
}

/// The table by whose ids a series knows the values of a place.
fn table(series: &Series, place: usize) -> Option<&str> {
    match place {
        PROJECT => series.table_of(Dimension::Project),
        TYPE => series.table_of(Dimension::Type),
        _ => variable(series, place)?.reference.as_deref(),
    }
}

/// The variable that holds the originator or the sub type; none where a series declares the
/// originator twice.
fn variable(series: &Series, place: usize) -> Option<&Variable> {
    let names = if place == ORIGINATOR { &ORIGINATORS[..] } else { &[served::SUB_TYPE][..] };
    let mut declared = series.variables.iter().filter(|v| names.contains(&v.name.as_str()));
    let only = declared.next()?;
    declared.next().is_none().then_some(only)
}

/// The rules of a series with all that they may ever take. Tables are named by ids.
fn offers(series: &Series) -> Vec<Rule<'_>> {
    let mut rules = rules_of(&series.definition);
    for rule in &mut rules {
        for (place, names) in rule.names.iter_mut().enumerate() {
            let is_told = matches!(place, PROJECT | TYPE) || variable(series, place).is_some();
            let codes = names.take().filter(|_| is_told);
            *names = codes.and_then(|codes| match table(series, place) {
                None => Some(codes),
                // Where one has no row yet, any row may come to have it.
                Some(table) => codes.into_iter().map(|code| id(series, table, code)).collect(),
            });
        }
    }
    rules
}

/// The rules of other series with what they surely take of the requests that a series may be
/// asked, named as that series names it.
fn winners<'s>(series: &'s Series, active: &[&'s Series]) -> Vec<Rule<'s>> {
    let code = &series.definition.code;
    let others = active.iter().filter(|other| other.definition.code != *code);
    let surely = |other: &'s Series| {
        let rules = rules_of(&other.definition).into_iter();
        rules.filter_map(move |mut rule| {
            // A type that is only in a table may become undetermined, or another series' own.
            rule.names[TYPE].as_ref()?;
            for (place, names) in rule.names.iter_mut().enumerate() {
                if let Some(codes) = names.take() {
                    *names = Some(surely_taken(series, other, place, codes)?);
                }
            }
            Some(rule)
        })
    };
    others.flat_map(|other| surely(other)).collect()
}

/// Of the codes that another series names at a place, those that it surely takes in a request for
/// this one; `None` where it may read the request otherwise.
fn surely_taken<'s>(
    series: &'s Series,
    other: &'s Series,
    place: usize,
    codes: BTreeSet<&'s str>,
) -> Option<BTreeSet<&'s str>> {
    let by_membership = series.definition.references.membership;
    let is_told = match place {
        TYPE => true,
        // Without a project, both must find the same one.
        PROJECT => !by_membership || derives_alike(series, other),
        _ => variable(series, place).is_some(),
    };
    match (table(series, place), table(other, place)) {
        _ if !is_told => None,
        // What has no table is sent as a code, which is one that the other names as well.
        (None, _) => Some(codes),
        (Some(own), Some(its)) if own == its => {
            Some(codes.into_iter().filter_map(|code| id(series, own, code)).collect())
        }
        // By an id of a table that the other does not look into.
        (Some(_), _) => None,
    }
}

/// Whether another series finds the same project by the originator's memberships, and both by what
/// the request says.
fn derives_alike(series: &Series, other: &Series) -> bool {
    let (own, its) = (&series.definition.references, &other.definition.references);
    let is_sent = variable(series, ORIGINATOR).is_some_and(|variable| variable.default.is_none());
    is_sent
        && its.membership
        && own.project == its.project
        && series.originator_table() == other.originator_table()
}

/// The id of the row that has a code, or had it.
fn id<'s>(series: &'s Series, table: &str, code: &str) -> Option<&'s str> {
    series.reference.by_code(table, code).map(|row| row.id.as_str())
}

/// What two rules take at a place, for requests of one scope: where it is one value for both, each
/// that both may take by itself.
fn joint<'s>(
    a: &Series,
    b: &Series,
    place: usize,
    x: &Rule<'s>,
    y: &Rule<'s>,
) -> Vec<(Names<'s>, Names<'s>)> {
    let (of_a, of_b) = (&x.names[place], &y.names[place]);
    let both = |names: &BTreeSet<&'s str>| {
        let one = |name: &&'s str| (Some([*name].into()), Some([*name].into()));
        names.iter().map(one).collect()
    };
    match (of_a, of_b) {
        _ if !is_shared(a, b, place) => vec![(of_a.clone(), of_b.clone())],
        (None, None) => vec![(None, None)],
        (None, Some(names)) | (Some(names), None) => both(names),
        (Some(of_a), Some(of_b)) => both(&(of_a & of_b)),
    }
}

/// What no winner takes of a rule's requests with these types and projects.
fn left<'s>(
    rule: &Rule<'s>,
    types: &Names<'s>,
    projects: &Names<'s>,
    winners: &[Rule<'s>],
) -> Option<Region<'s>> {
    let mut region = rule.names.clone();
    region[TYPE].clone_from(types);
    region[PROJECT].clone_from(projects);
    // Where two are equally specific the request is refused.
    let better: Vec<&Rule<'s>> = winners.iter().filter(|other| other.rank >= rule.rank).collect();
    left_over(region, &better)
}

/// Requests of a region, some of each type and project.
fn askings(series: &Series, region: &Region<'_>) -> Vec<Asking> {
    let serves = &series.definition.serves;
    let code = |place: usize, name: &str| {
        let row = table(series, place).and_then(|table| series.reference.by_id(table, name));
        row.map_or(name, |row| row.code.as_str()).to_owned()
    };
    let codes = |place: usize| -> Option<Vec<String>> {
        Some(region[place].as_ref()?.iter().map(|name| code(place, name)).collect())
    };
    let types = codes(TYPE).unwrap_or_else(|| {
        let any = series.served.any_type.then(|| ANY_TYPE.to_owned());
        serves.types.iter().cloned().chain(any).collect()
    });
    let listed = codes(PROJECT).or_else(|| Some(serves.projects.clone()));
    let listed = listed.filter(|projects| !projects.is_empty());
    let projects: Vec<Option<String>> = match listed {
        Some(projects) => projects.into_iter().map(Some).collect(),
        None if series.project_needed => vec![Some(ANY_PROJECT.to_owned())],
        None => vec![None, Some(ANY_PROJECT.to_owned())],
    };
    let named = |place: usize, listed: &[String]| -> Vec<Option<(String, String)>> {
        let Some(variable) = variable(series, place) else { return vec![None] };
        // Codes that no table has yet are among no ids.
        let values = codes(place).unwrap_or_else(|| listed.to_vec()).into_iter();
        let values: Vec<_> = values.map(|value| Some((variable.name.clone(), value))).collect();
        if values.is_empty() { vec![None] } else { values }
    };
    let originators = named(ORIGINATOR, &serves.originators);
    let sub_types = named(SUB_TYPE, &serves.sub_types);
    let pairs = types.iter().flat_map(|name| projects.iter().map(move |project| (name, project)));
    let contexts = originators.iter().flat_map(|one| sub_types.iter().map(move |two| (one, two)));
    let contexts: Vec<Vec<(String, String)>> =
        contexts.map(|(one, two)| one.iter().chain(two).cloned().collect()).collect();
    let asking = |((type_code, project), context): ((&String, &Option<String>), _)| {
        let (type_code, project) = (type_code.clone(), project.clone());
        Asking { type_code, project, context }
    };
    let all = pairs.flat_map(|pair| contexts.iter().map(move |context| (pair, context.clone())));
    all.map(asking).take(COMBINATIONS_MAX).collect()
}
