//! Two series beside each other: every text that both can show is a collision, unless no two
//! requests of one scope reach both.

use std::cell::LazyCell;

use super::super::series::Dimension;
use super::super::ties::TYPE;
use super::super::{Inputs, Series, choose};
use super::EarlierVersion;
use super::ambiguity::{Ambiguity, CollidingRequest, Limit};
use super::comparison::Comparison;
use super::grid::grids;
use super::language::{Shows, head, shows};
use super::meeting::{Meetings, are_apart, is_shared, meetings};
use super::product::Walk;
use super::scope::may_meet;
use super::told;
use super::witness::{Asked, dimension_of, name_of};
use super::world::World;

/// Most codes that a refusal lists.
const LISTED_MAX: usize = 12;

/// The numbers of two series.
pub(super) fn between(
    a: &Series,
    b: &Series,
    active: &[&Series],
    earlier: &[EarlierVersion],
) -> Result<(), Ambiguity> {
    // Most series are told apart by their prefix: nothing needs to be searched.
    let differs = |(x, y)| x != y;
    if std::iter::zip(head(a).chars(), head(b).chars()).any(differs) || are_apart(a, b) {
        return Ok(());
    }
    if !may_meet(a, b) {
        return Ok(());
    }
    let (grids_a, grids_b) = (grids(a, earlier), grids(b, earlier));
    let types = |series: &Series| series.definition.serves.types.clone();
    let (mut types_a, mut types_b) = (types(a), types(b));
    if is_shared(a, b, TYPE) && a.table_of(Dimension::Type).is_none() {
        types_a.retain(|name| types_b.contains(name));
        types_b.clone_from(&types_a);
    }
    let same: Vec<_> = a.parts.iter().map(|part| same_in_scope(a, b, shows(part))).collect();
    let comparison = Comparison {
        series: [a, b],
        types: [&types_a, &types_b],
        places: &[],
        marks: [&[], &[]],
        marked: 0,
        wanted: 0,
        same: &same,
        grids: [&grids_a, &grids_b],
        counted: &[],
    };
    // Looked at only where the texts meet: most series differ in their first characters.
    let asking = LazyCell::new(|| meetings(a, b, active));
    let mut turn = 0;
    let found = |walk: &Walk| {
        let Meetings::Perhaps(all) = &*asking else { return None };
        let (for_a, for_b) = all.get(turn % all.len().max(1))?;
        turn += 1;
        let mut first = Asked::read(a, &grids_a, &walk.text, &walk.first)?;
        let mut second = Asked::read(b, &grids_b, &walk.text, &walk.second)?;
        for (asked, asking) in [(&mut first, for_a), (&mut second, for_b)] {
            asked.known.entry("type".into()).or_insert_with(|| asking.type_code.clone());
            if let Some(project) = &asking.project {
                asked.known.entry("project".into()).or_insert_with(|| project.clone());
            }
            for (name, value) in &asking.context {
                asked.known.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        let ambiguity = told(first, second, || {
            let (a, b) = (&a.definition.code, &b.definition.code);
            format!(
                "series {a} and {b} can show the same text: give one of them other literal text, \
                 such as a prefix, or name what tells them apart in `unique_within` of both"
            )
        })?;
        chosen(&ambiguity, active).then_some(ambiguity)
    };
    // No request of one scope reaches both.
    match comparison.decide(|| matches!(*asking, Meetings::Never), found) {
        Err(Ambiguity::Unproven { subject, limit }) => {
            let limit = of_tables(a, b).map_or(limit, Limit::Tables);
            Err(Ambiguity::Unproven { subject, limit })
        }
        decided => decided,
    }
}

/// The part of the other series that shows the same value of the scope. One id of a table may be
/// shown by two codes, before and after it was renamed.
fn same_in_scope(a: &Series, b: &Series, shown: Shows) -> Option<usize> {
    let Shows::Dimension(dimension) = shown else { return None };
    if !a.scope.contains(&dimension) {
        return None;
    }
    let other = dimension_of(b, name_of(a, dimension))?;
    let is_code = a.table_of(dimension).is_none() && b.table_of(other).is_none();
    b.parts.iter().position(|part| is_code && shows(part) == Shows::Dimension(other))
}

/// Whether each of two requests is served by the series that it is told for (R2.9).
fn chosen(ambiguity: &Ambiguity, active: &[&Series]) -> bool {
    let Ambiguity::Collision { first, second, .. } = ambiguity else { return false };
    let series = |request: &CollidingRequest| {
        active.iter().find(|series| series.definition.code == request.series)
    };
    let (Some(a), Some(b)) = (series(first), series(second)) else { return false };
    let world = World::of([(*a, &first.inputs), (*b, &second.inputs)]);
    let bound: Vec<_> = active.iter().map(|series| world.bound(series)).collect();
    let serves = |inputs: &Inputs, code: &str| {
        let choice = choose(bound.iter().map(std::ops::Deref::deref), inputs);
        choice.is_ok_and(|index| active[index].definition.code == code)
    };
    serves(&first.inputs, &first.series) && serves(&second.inputs, &second.series)
}

/// What keeps two series from being proved that lies in their tables, and the remedy.
fn of_tables(a: &Series, b: &Series) -> Option<String> {
    let differently = a.scope.iter().find(|dimension| {
        let other = dimension_of(b, name_of(a, **dimension));
        other.is_some_and(|other| a.table_of(**dimension) != b.table_of(other))
    });
    if let Some(dimension) = differently {
        let name = name_of(a, *dimension);
        return Some(format!(
            "both can show the same text within one {name}, which one of them knows by its code \
             and the other by an id, or by ids of another table: refer to the same table in both, \
             or give one of them other literal text, such as a prefix"
        ));
    }
    let mut without_row: Vec<&str> = [a, b].into_iter().flat_map(codes_without_row).collect();
    without_row.sort_unstable();
    without_row.dedup();
    let more = if without_row.len() > LISTED_MAX { ", …" } else { "" };
    without_row.truncate(LISTED_MAX);
    (!without_row.is_empty()).then(|| {
        format!(
            "both can show the same text, and what they serve cannot be told apart before the \
             tables have the codes {}{more}: import these first (`numerator reference import`)",
            without_row.join(", ")
        )
    })
}

/// Types and projects that a series names, and that its tables do not have.
fn codes_without_row(series: &Series) -> Vec<&str> {
    let serves = &series.definition.serves;
    let places = [(Dimension::Type, &serves.types), (Dimension::Project, &serves.projects)];
    let mut missing: Vec<&str> = Vec::new();
    for (dimension, codes) in places {
        let Some(table) = series.table_of(dimension) else { continue };
        let has_row = |code: &&str| series.reference.by_code(table, code).is_some();
        missing.extend(codes.iter().map(String::as_str).filter(|code| !has_row(code)));
    }
    missing
}
