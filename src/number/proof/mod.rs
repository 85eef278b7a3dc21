//! The ambiguity proof (R2.7): no two numbers of one uniqueness scope may have one text.
//!
//! Two numbers of a series have different values, or values of different counters, of *each* of its
//! serials. So they can have one text only if for each serial something that tells its value or its
//! counter is not shown, or is read elsewhere in the text by one of them. The first is seen from
//! the definition; for the second, two runs of the series over one text are searched in full. The
//! search follows a little more than can happen and never less: where it finds nothing, there is
//! nothing. Where it finds something, two requests are made of it and rendered; a series is
//! refused with such a pair, or because neither proof nor pair was found within the bounds.
//!
//! Never says that a series is sound because a search ended early.

mod ambiguity;
mod automaton;
mod charset;
mod comparison;
mod earlier;
mod language;
mod moments;
mod product;
mod saving;
#[cfg(test)]
mod tests;
mod witness;

pub use ambiguity::{Ambiguity, CollidingRequest};
pub use saving::{Accepted, EarlierVersion, ProofError, prove_saved};

use std::cell::LazyCell;

use comparison::Comparison;
use language::{Shows, head, shows};
use product::Walk;
use witness::{Asked, PHASE, collision, name_of, scope_names, settle, values, varies};

use super::series::Dimension;
use super::{Reset, Series, choose};

/// Most combinations of a type and a project that are looked at for each of two series.
const COMBINATIONS_MAX: usize = 1_024;

/// Proves that no number of a series can have the text of another of its uniqueness scope: neither
/// of its own nor of the other active series. `active` may hold the series itself; it is told by
/// its code.
///
/// # Errors
/// [`Ambiguity`]: two requests that collide, or that neither proof nor collision was found.
pub fn prove(subject: &Series, active: &[&Series]) -> Result<(), Ambiguity> {
    alone(subject)?;
    let others = active.iter().filter(|other| other.definition.code != subject.definition.code);
    let mut all: Vec<&Series> = others.copied().collect();
    all.push(subject);
    for other in &all[..all.len() - 1] {
        // Other dimensions give other scopes, which have their texts to themselves.
        if scope_names(subject) == scope_names(other) {
            between(subject, other, &all)?;
        }
    }
    Ok(())
}

/// The numbers of one series among themselves.
fn alone(series: &Series) -> Result<(), Ambiguity> {
    // Where an id is shown it takes the place of all serials: two numbers differ in it.
    let has_id = series.parts.iter().any(|part| shows(part) == Shows::Id);
    let serials = 0..if has_id { 1 } else { series.serials.len() };
    let hidden: Vec<Option<&str>> = serials.clone().map(|s| hidden(series, s)).collect();
    let keys: Vec<_> = serials.clone().map(|serial| moments::keys(series, serial)).collect();
    let open = |serial: &usize| !has_id && (hidden[*serial].is_some() || keys[*serial].is_none());
    if serials.clone().all(|serial| open(&serial)) {
        unshown(series, &hidden)?;
    }
    let bit = |serial: usize| 1_u8 << serial;
    let mark = |part| {
        let tells = |serial: &usize| match shows(part) {
            Shows::Id => true,
            Shows::Nothing => false,
            _ if has_id => false,
            Shows::Serial(shown) => shown == *serial,
            Shows::Dimension(dimension) => {
                !series.scope.contains(&dimension)
                    && series.counters[*serial].dimensions.contains(&dimension)
            }
            Shows::Phase => series.counters[*serial].reset == Reset::Phase,
            Shows::Date(field) => keys[*serial].as_ref().is_some_and(|keys| keys.contains(&field)),
        };
        serials.clone().filter(tells).fold(0, |marks, serial| marks | bit(serial))
    };
    let marks: Vec<u8> = series.parts.iter().map(mark).collect();
    let in_scope = |part| matches!(shows(part), Shows::Dimension(d) if series.scope.contains(&d));
    let same = series.parts.iter().enumerate();
    let same: Vec<_> = same.map(|(index, part)| in_scope(part).then_some(index)).collect();
    let types = &series.definition.serves.types;
    let comparison = Comparison {
        series: [series, series],
        types: [types, types],
        places: &(0..series.parts.len()).map(Some).collect::<Vec<_>>(),
        marks: [&marks, &marks],
        marked: serials.clone().filter(open).fold(0, |marks, serial| marks | bit(serial)),
        wanted: serials.clone().fold(0, |marks, serial| marks | bit(serial)),
        same: &same,
    };
    let found = |walk: &Walk| {
        let first = Asked::read(series, &walk.text, &walk.first)?;
        let second = Asked::read(series, &walk.text, &walk.second)?;
        told(first, second, || misreading(series, walk))
    };
    comparison.decide(found)
}

/// The name of something by which a serial's counter counts, and that no text and no scope tells.
fn hidden(series: &Series, serial: usize) -> Option<&str> {
    let shown = |wanted: Shows| series.parts.iter().any(|part| shows(part) == wanted);
    let rule = &series.counters[serial];
    let untold = |dimension: &Dimension| {
        !series.scope.contains(dimension)
            && !shown(Shows::Dimension(*dimension))
            && varies(series, *dimension)
    };
    let dimension = rule.dimensions.iter().copied().find(untold);
    let phase = rule.reset == Reset::Phase && !shown(Shows::Phase);
    dimension.map(|dimension| name_of(series, dimension)).or(phase.then_some(PHASE))
}

/// Two requests whose texts are read alike and do not show what tells their counters apart.
fn unshown(series: &Series, hidden: &[Option<&str>]) -> Result<(), Ambiguity> {
    let by_period: Vec<usize> = (0..hidden.len()).filter(|s| hidden[*s].is_none()).collect();
    let pair = match by_period[..] {
        [] => Some((moments::first(), moments::first())),
        _ => moments::apart(series, &by_period, &moments::fields(series)),
    };
    let Some((early, late)) = pair else { return Ok(()) };
    let (mut first, mut second) = (Asked::first(series, early), Asked::first(series, late));
    for part in &series.parts {
        let (name, value) = match shows(part) {
            Shows::Dimension(dimension) => {
                let value = values(series, dimension).into_iter().next();
                (name_of(series, dimension), value.unwrap_or_default())
            }
            Shows::Phase => (PHASE, "PHASE-1".into()),
            Shows::Nothing | Shows::Id | Shows::Serial(_) | Shows::Date(_) => continue,
        };
        for asked in [&mut first, &mut second] {
            asked.known.insert(name.to_owned(), value.clone());
        }
    }
    let reasons = hidden.iter().enumerate().map(|(serial, hidden)| {
        let name = &series.serials[serial].name;
        match hidden {
            Some(PHASE) => format!(
                "serial {name} begins anew with each phase, which the number does not show: show \
                 {{PHASE}}, or set another `reset`"
            ),
            Some(dimension) => format!(
                "serial {name} counts by {dimension}, which the number does not show: show it, \
                 take it out of the serial's `counter`, or name it in `unique_within`"
            ),
            None => {
                let period = period_word(series.counters[serial].reset);
                format!(
                    "serial {name} begins anew each {period}, which the number does not show: show \
                     the {period}, or set `reset` to what is shown"
                )
            }
        }
    });
    let reasons = reasons.collect::<Vec<_>>().join("; ");
    told(first, second, || reasons).map_or(Ok(()), Err)
}

/// A period in a sentence.
fn period_word(reset: Reset) -> &'static str {
    match reset {
        Reset::None => "time",
        Reset::Second => "second",
        Reset::Minute => "minute",
        Reset::Hour => "hour",
        Reset::Day => "day",
        Reset::Week => "week",
        Reset::Month => "month",
        Reset::Quarter => "quarter",
        Reset::Year => "year",
        Reset::FiscalYear => "fiscal year",
        Reset::Phase => "phase",
    }
}

/// The numbers of two series.
fn between(a: &Series, b: &Series, active: &[&Series]) -> Result<(), Ambiguity> {
    // Most series are told apart by their prefix: nothing needs to be searched.
    if !std::iter::zip(head(a).chars(), head(b).chars()).all(|(x, y)| x == y) {
        return Ok(());
    }
    let serves = |series: &Series| series.definition.serves.clone();
    let (mut types_a, mut types_b) = (serves(a).types, serves(b).types);
    if a.scope.contains(&Dimension::Type) {
        types_a.retain(|name| types_b.contains(name));
        types_b.clone_from(&types_a);
    }
    let (of_a, of_b) = (serves(a).projects, serves(b).projects);
    let apart = a.scope.contains(&Dimension::Project)
        && !of_a.is_empty()
        && !of_b.is_empty()
        && !of_a.iter().any(|project| of_b.contains(project));
    if types_a.is_empty() || apart {
        return Ok(());
    }
    let same = |part| match shows(part) {
        Shows::Dimension(dimension) if a.scope.contains(&dimension) => {
            let name = name_of(a, dimension);
            let shown =
                |other: &_| matches!(shows(other), Shows::Dimension(d) if name_of(b, d) == name);
            b.parts.iter().position(shown)
        }
        _ => None,
    };
    let same: Vec<_> = a.parts.iter().map(same).collect();
    let comparison = Comparison {
        series: [a, b],
        types: [&types_a, &types_b],
        places: &[],
        marks: [&[], &[]],
        marked: 0,
        wanted: 0,
        same: &same,
    };
    // Looked at only where the texts meet: most series differ in their first characters.
    let asking = LazyCell::new(|| combinations(a, b, active));
    let mut turn = 0;
    let found = |walk: &Walk| {
        let all = asking.as_ref()?;
        let (for_a, for_b) = all.get(turn % all.len().max(1))?;
        turn += 1;
        let mut first = Asked::read(a, &walk.text, &walk.first)?;
        let mut second = Asked::read(b, &walk.text, &walk.second)?;
        for (asked, (type_code, project)) in [(&mut first, for_a), (&mut second, for_b)] {
            asked.known.entry("type".into()).or_insert_with(|| type_code.clone());
            if let Some(project) = project {
                asked.known.entry("project".into()).or_insert_with(|| project.clone());
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
    match comparison.decide(found) {
        // No request of one scope reaches both.
        Err(_) if asking.as_ref().is_some_and(Vec::is_empty) => Ok(()),
        decided => decided,
    }
}

/// Whether each of two requests is served by the series that it is told for (R2.9).
fn chosen(ambiguity: &Ambiguity, active: &[&Series]) -> bool {
    let Ambiguity::Collision { first, second, .. } = ambiguity else { return false };
    [first, second].into_iter().all(|request| {
        let inputs = &request.inputs;
        let choice = choose(active.iter().copied(), &inputs.type_code, inputs.project.as_deref());
        choice.is_ok_and(|index| active[index].definition.code == request.series)
    })
}

/// A type and a project that a request may name.
type Asking = (String, Option<String>);

/// Which requests of one uniqueness scope the rules give to the one and to the other series; `None`
/// where there are too many to look at.
fn combinations(a: &Series, b: &Series, active: &[&Series]) -> Option<Vec<(Asking, Asking)>> {
    let named = active.iter().flat_map(|series| &series.definition.serves.projects);
    let mut projects: Vec<Option<&str>> = named.map(|project| Some(project.as_str())).collect();
    projects.extend([None, Some("PROJECT-1")]);
    projects.sort_unstable();
    projects.dedup();
    let served = |series: &Series| {
        let types = &series.definition.serves.types;
        let serves = |(name, project): &(&String, Option<&str>)| {
            let choice = choose(active.iter().copied(), name, *project);
            let needs = series.project_needed && project.is_none();
            choice.is_ok_and(|index| active[index].definition.code == series.definition.code)
                && !needs
        };
        let all = types.iter().flat_map(|name| projects.iter().map(move |p| (name, *p)));
        let owned = |(name, project): (&String, Option<&str>)| {
            (name.clone(), project.map(ToOwned::to_owned))
        };
        (types.len() * projects.len() <= COMBINATIONS_MAX)
            .then(|| all.filter(serves).map(owned).collect::<Vec<Asking>>())
    };
    let (for_a, for_b) = (served(a)?, served(b)?);
    let (by_type, by_project) =
        (a.scope.contains(&Dimension::Type), a.scope.contains(&Dimension::Project));
    let pairs = for_a.iter().flat_map(|x| for_b.iter().map(move |y| (x, y)));
    let fit = pairs.filter(|(x, y)| (!by_type || x.0 == y.0) && (!by_project || x.1 == y.1));
    Some(fit.take(COMBINATIONS_MAX).map(|(x, y)| (x.clone(), y.clone())).collect())
}

/// The collision of two requests, if it is one.
fn told(
    mut first: Asked<'_>,
    mut second: Asked<'_>,
    explanation: impl FnOnce() -> String,
) -> Option<Ambiguity> {
    settle(&mut first, &mut second);
    let (text, scope) = collision(&first, &second)?;
    let (first, second) = (first.told()?, second.told()?);
    Some(Ambiguity::Collision { first, second, text, scope, explanation: explanation() })
}

/// Where two readings of a text part, in words.
fn misreading(series: &Series, walk: &Walk) -> String {
    let Some((a, b)) = walk.first.iter().zip(&walk.second).find(|(a, b)| a != b) else {
        return "the number does not show what tells their counters apart: show it".into();
    };
    let name = |part: usize| language::name(series, &series.parts[part]);
    format!(
        "the number can be read in two ways, since {} may go on where {} begins: separate them by \
         a sign that the first excludes, or give the first a fixed width",
        name(*a.min(b)),
        name(*a.max(b)),
    )
}
