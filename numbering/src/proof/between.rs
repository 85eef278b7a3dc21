//! Two series beside each other: every text that both can show is a collision, unless no two
//! requests of one scope reach both.

use std::cell::LazyCell;

use super::super::series::Dimension;
use super::super::ties::TYPE;
use super::super::{Series, choose};
use super::EarlierVersion;
use super::ambiguity::{Ambiguity, Limit};
use super::collision::{Collided, told};
use super::comparison::Comparison;
use super::grid::grids;
use super::issued;
use super::language::{Shows, head, shows};
use super::meeting::{Asking, Meetings, PLACES, are_apart, is_shared, may_meet_in, meetings};
use super::memory::Counted;
use super::offers::{dimension, is_known_alike};
use super::product::Walk;
use super::scope::may_meet;
use super::witness::{ANY_PROJECT, ANY_TYPE, Asked, dimension_of, name_of};

/// Most codes that a refusal lists.
const LISTED_MAX: usize = 12;

/// How many requests are tried for one text.
const TRIES: usize = 8;

/// Most requests that are tried for two series.
const TRIES_MAX: usize = 6_000;

/// How two requests are made.
#[derive(Clone, Copy)]
struct Way {
    /// Whether each of them names rows by their ids.
    by_id: [bool; 2],
    /// Whether that for the second series comes first: what is known of rows only grows.
    swapped: bool,
    /// Whether they leave the project to memberships, where their series look at these.
    derives: bool,
}

/// The ways to make two requests, the plain one first.
const WAYS: [Way; 16] = {
    let mut ways = [Way { by_id: [false; 2], swapped: false, derives: false }; 16];
    let mut way = 0;
    while way < ways.len() {
        let by_id = [way & 4 > 0, way & 8 > 0];
        ways[way] = Way { by_id, swapped: way & 1 > 0, derives: way & 2 > 0 };
        way += 1;
    }
    ways
};

/// The numbers of two series. `beside`: what may take requests from the one and from the other,
/// these themselves among them; `issued`: the version of the second, where its numbers are out.
pub(super) fn between(
    a: &Series,
    b: &Series,
    beside: [&[&Series]; 2],
    earlier: &[EarlierVersion],
    issued: Option<u32>,
) -> Result<(), Ambiguity> {
    // Most series are told apart by their prefix: nothing needs to be searched.
    let differs = |(x, y)| x != y;
    let starts_apart = std::iter::zip(head(a).chars(), head(b).chars()).any(differs);
    if starts_apart || are_apart(a, b) || !may_meet(a, b) {
        return Ok(());
    }
    let (grids_a, grids_b) = (grids(a, earlier), grids(b, earlier));
    let [types_a, types_b] = types(a, b);
    let same: Vec<_> = a.parts.iter().map(|part| same_in_scope(a, b, shows(part))).collect();
    let ids = Ids::of(a, b);
    let comparison = Comparison {
        series: [a, b],
        types: [&types_a, &types_b],
        places: &ids.places,
        marks: [&ids.marks[0], &ids.marks[1]],
        marked: 0,
        wanted: u8::from(!ids.counted.is_empty()),
        same: &same,
        grids: [&grids_a, &grids_b],
        counted: &ids.counted,
    };
    // Looked at only where the texts meet: most series differ in their first characters.
    let asking = LazyCell::new(|| meetings(a, b, beside));
    let (mut turn, ways) = (0, ways(a, b));
    let mut found = |walk: &Walk| {
        let Meetings::Perhaps(all) = &*asking else { return None };
        let first = Asked::read(a, &grids_a, &walk.text, &walk.first)?;
        let second = Asked::read(b, &grids_b, &walk.text, &walk.second)?;
        (0..TRIES.min(ways.len() * all.len())).find_map(|_| {
            let (for_a, for_b) = &all[turn % all.len()];
            let way = ways[turn / all.len() % ways.len()];
            turn += 1;
            let (mut first, mut second) = (first.clone(), second.clone());
            if turn > TRIES_MAX || !asked(&mut first, for_a) || !asked(&mut second, for_b) {
                return None;
            }
            (first.by_id, second.by_id) = (way.by_id[0], way.by_id[1]);
            let derives = |asked: &Asked<'_>| way.derives && derives(asked.series);
            (first.derives, second.derives) = (derives(&first), derives(&second));
            let both = if way.swapped { [second, first] } else { [first, second] };
            let series = both.each_ref().map(|asked| asked.series);
            let [first, second] = both;
            let beside = if way.swapped { [beside[1], beside[0]] } else { beside };
            let explained = || remedy(a, b, issued);
            told(first, second, explained, |collided| chosen(collided, series, beside))
        })
    };
    // No request of one scope reaches both.
    let mut decided = comparison.decide(|| matches!(*asking, Meetings::Never), &mut found);
    if matches!(decided, Err(Ambiguity::Unproven { .. })) {
        let telling = Telling::of(a, b, beside, &ids);
        if telling.wanted > comparison.wanted {
            decided = telling.among(comparison).decide(|| false, &mut found);
        }
    }
    decided.map_err(|ambiguity| match ambiguity {
        Ambiguity::Unproven { subject, limit } => {
            let limit = of_tables(a, b).map_or(limit, Limit::Tables);
            Ambiguity::Unproven { subject, limit }
        }
        told => told,
    })
}

/// The types that each of two series is looked at for.
fn types(a: &Series, b: &Series) -> [Vec<String>; 2] {
    let [mut of_a, mut of_b] = [a, b].map(|series| series.definition.serves.types.clone());
    if is_shared(a, b, TYPE) && a.table_of(Dimension::Type).is_none() {
        of_a.retain(|name| of_b.contains(name));
        of_b.clone_from(&of_a);
    }
    [of_a, of_b]
}

/// The ways to make requests for two series.
fn ways(a: &Series, b: &Series) -> Vec<Way> {
    if !a.refers() && !b.refers() {
        return WAYS[..1].to_vec();
    }
    let makes_sense = |way: &&Way| !way.derives || derives(a) || derives(b);
    WAYS.iter().filter(makes_sense).copied().collect()
}

/// Whether a series looks at memberships.
fn derives(series: &Series) -> bool {
    series.definition.references.membership
}

/// What two numbers of one text show differently, if they are numbers of two requests that the
/// rules may give to both series: a project or a type, for example, that is for one of them alone.
/// Read at the same place it is one value.
struct Telling {
    places: Vec<Option<usize>>,
    marks: [Vec<u8>; 2],
    wanted: u8,
}

impl Telling {
    /// Beside the ids.
    fn of(a: &Series, b: &Series, beside: [&[&Series]; 2], ids: &Ids) -> Self {
        let part = |series: &Series, place: usize| {
            let dimension = dimension(series, place)?;
            series.parts.iter().position(|part| shows(part) == Shows::Dimension(dimension))
        };
        let shown = (0..PLACES).filter(|place| is_known_alike(a, b, *place));
        let shown: Vec<(usize, [usize; 2])> =
            shown.filter_map(|place| Some((place, [part(a, place)?, part(b, place)?]))).collect();
        let tells = |places: &[usize]| !may_meet_in(a, b, beside, places);
        let sorted: Vec<_> = shown.iter().filter(|(place, _)| tells(&[*place])).collect();
        // By itself, or one of all.
        let all: Vec<usize> = shown.iter().map(|(place, _)| *place).collect();
        let sorted: Vec<(u8, [usize; 2])> = match sorted.is_empty() {
            false => sorted.iter().zip(1..).map(|((_, parts), bit)| (1 << bit, *parts)).collect(),
            true if tells(&all) => shown.iter().map(|(_, parts)| (2, *parts)).collect(),
            true => Vec::new(),
        };
        let mut places = ids.places.clone();
        places.resize(a.parts.len(), None);
        let mut marks = ids.marks.clone();
        marks[0].resize(a.parts.len(), 0);
        marks[1].resize(b.parts.len(), 0);
        let mut wanted = u8::from(!ids.counted.is_empty());
        for (mark, [of_a, of_b]) in sorted {
            places[of_a] = Some(of_b);
            marks[0][of_a] |= mark;
            marks[1][of_b] |= mark;
            wanted |= mark;
        }
        Telling { places, marks, wanted }
    }

    /// A comparison in which nothing else matters.
    fn among<'c>(&'c self, comparison: Comparison<'c>) -> Comparison<'c> {
        let Telling { places, marks: [of_a, of_b], wanted } = self;
        Comparison { places, marks: [of_a, of_b], wanted: *wanted, ..comparison }
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

/// The ids of two series that both show one: no two numbers share an id, so a common text matters
/// where it is not read as the same one.
struct Ids {
    places: Vec<Option<usize>>,
    marks: [Vec<u8>; 2],
    counted: Vec<Counted>,
}

impl Ids {
    fn of(a: &Series, b: &Series) -> Self {
        let part = |series: &Series| series.parts.iter().position(|part| shows(part) == Shows::Id);
        let (Some(of_a), Some(of_b)) = (part(a), part(b)) else {
            return Ids { places: Vec::new(), marks: Default::default(), counted: Vec::new() };
        };
        let place = |index| (index == of_a).then_some(of_b);
        let marks = [(a, of_a), (b, of_b)].map(|(series, id)| {
            (0..series.parts.len()).map(|index| u8::from(index == id)).collect()
        });
        let places = (0..a.parts.len()).map(place).collect();
        Ids { places, marks, counted: vec![Counted { parts: vec![[of_a, of_b]] }] }
    }
}

/// Completes a request by what its series may be asked; false where that is not what it shows.
fn asked(asked: &mut Asked<'_>, asking: &Asking) -> bool {
    let series = asked.series;
    let references = &series.definition.references;
    let (types, projects) = (references.type_code.is_some(), references.project.is_some());
    let Asking { type_code, project, context } = asking;
    // What nobody lists may be shown as well.
    let is_any = |asked: &Asked<'_>, name: &str, any: &str, given: &str| {
        given == any && asked.known.contains_key(name)
    };
    let of_type =
        is_any(asked, "type", ANY_TYPE, type_code) || asked.takes("type", type_code, types);
    let of_project = project.as_ref().is_none_or(|project| {
        is_any(asked, "project", ANY_PROJECT, project) || asked.takes("project", project, projects)
    });
    of_type
        && of_project
        && context.iter().all(|(name, value)| {
            let mut declared = series.variables.iter();
            let variable = declared.find(|variable| variable.name == *name);
            asked.takes(name, value, variable.is_some_and(|variable| variable.reference.is_some()))
        })
}

/// Whether each of two requests is served by the series that it is told for (R2.9).
fn chosen(collided: &Collided, series: [&Series; 2], beside: [&[&Series]; 2]) -> bool {
    [0, 1].into_iter().all(|request| {
        let active = beside[request];
        let bound: Vec<_> =
            active.iter().map(|series| collided.worlds.bound(request, series)).collect();
        let offered = bound.iter().map(std::ops::Deref::deref);
        let choice = choose(offered, &collided.inputs[request]);
        choice.is_ok_and(|index| active[index].definition.code == series[request].definition.code)
    })
}

/// Why two series are refused, and the remedy.
fn remedy(a: &Series, b: &Series, issued: Option<u32>) -> String {
    if let Some(version) = issued {
        return issued::remedy(a, b, version);
    }
    let (code, other) = (&a.definition.code, &b.definition.code);
    match known_differently(a, b) {
        Some(name) => format!(
            "series {code} and {other} can show the same text within one {name}, which one of them \
             knows by its code and the other by an id, or by ids of another table: refer to the \
             same table in both, or give one of them other literal text, such as a prefix"
        ),
        None => {
            let import = codes_without_row(a, b).map(|codes| {
                format!(
                    "; or import the codes {codes} first (`numerator reference import`): a code \
                     that has a row keeps it"
                )
            });
            format!(
                "series {code} and {other} can show the same text: give one of them other literal \
                 text, such as a prefix, or name what tells them apart in `unique_within` of \
                 both{}",
                import.unwrap_or_default()
            )
        }
    }
}

/// The name of something in the scope of both that they know by different tables, or one of them
/// by none.
fn known_differently<'s>(a: &'s Series, b: &Series) -> Option<&'s str> {
    let dimension = a.scope.iter().find(|dimension| {
        let other = dimension_of(b, name_of(a, **dimension));
        other.is_some_and(|other| a.table_of(**dimension) != b.table_of(other))
    });
    dimension.map(|dimension| name_of(a, *dimension))
}

/// What keeps two series from being proved that lies in their tables, and the remedy.
fn of_tables(a: &Series, b: &Series) -> Option<String> {
    if let Some(name) = known_differently(a, b) {
        return Some(format!(
            "both can show the same text within one {name}, which one of them knows by its code \
             and the other by an id, or by ids of another table: refer to the same table in both, \
             or give one of them other literal text, such as a prefix"
        ));
    }
    codes_without_row(a, b).map(|codes| {
        format!(
            "both can show the same text, and what they serve cannot be told apart before the \
             tables have the codes {codes}: import these first (`numerator reference import`)"
        )
    })
}

/// Types and projects that two series name and that their tables do not have, as a list.
fn codes_without_row(a: &Series, b: &Series) -> Option<String> {
    let mut codes: Vec<&str> = [a, b].into_iter().flat_map(without_row).collect();
    codes.sort_unstable();
    codes.dedup();
    let more = if codes.len() > LISTED_MAX { ", …" } else { "" };
    codes.truncate(LISTED_MAX);
    (!codes.is_empty()).then(|| format!("{}{more}", codes.join(", ")))
}

/// Types and projects that a series names, and that its tables do not have.
fn without_row(series: &Series) -> Vec<&str> {
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
