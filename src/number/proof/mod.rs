//! The ambiguity proof (R2.7): no two numbers of one uniqueness scope may have one text.
//!
//! Two numbers of a series have different values, or values of different counters, of *each* of its
//! serials. So they can have one text only if for each serial something that tells its value or its
//! counter is not shown, or is read elsewhere in the text by one of them. The first is seen from
//! the definition; for the second, two runs of the series over one text are searched in full. The
//! search follows a little more than can happen and never less: where it finds nothing, there is
//! nothing. Where it finds something, two requests are made of it and rendered. Where none of
//! them collide, a second search remembers what was read. A series is refused with such a pair, or
//! because neither proof nor pair was found within the bounds.
//!
//! Never says that a series is sound because a search ended early.

mod ambiguity;
mod automaton;
mod between;
mod charset;
mod classes;
mod comparison;
mod earlier;
mod grid;
mod language;
mod meeting;
mod memory;
mod moments;
mod product;
mod reading;
mod refined;
mod saving;
mod scope;
#[cfg(test)]
mod tests;
mod witness;
mod world;

pub use ambiguity::{Ambiguity, CollidingRequest, Limit};
pub use saving::{Accepted, EarlierVersion, ProofError, prove_saved};

use between::between;
use comparison::Comparison;
use grid::{Grid, grids};
use language::{Shows, shows};
use memory::Counted;
use product::Walk;
use witness::{Asked, PHASE, collision, name_of, settle, values, varies};

use super::series::Dimension;
use super::{Reset, Series};

/// Proves that no number of a series can have the text of another of its uniqueness scope: neither
/// of its own nor of the other active series. `active` may hold the series itself; it is told by
/// its code. `earlier` holds the versions before of all of them, as far as they may have counters.
///
/// # Errors
/// [`Ambiguity`]: two requests that collide, or that neither proof nor collision was found.
pub fn prove(
    subject: &Series,
    active: &[&Series],
    earlier: &[EarlierVersion],
) -> Result<(), Ambiguity> {
    alone(subject, &grids(subject, earlier))?;
    let others = active.iter().filter(|other| other.definition.code != subject.definition.code);
    let mut all: Vec<&Series> = others.copied().collect();
    all.push(subject);
    for other in &all[..all.len() - 1] {
        between(subject, other, &all, earlier)?;
    }
    Ok(())
}

/// The numbers of one series among themselves.
fn alone(series: &Series, grids: &[Grid]) -> Result<(), Ambiguity> {
    // Where an id is shown it takes the place of all serials: two numbers differ in it.
    let has_id = series.parts.iter().any(|part| shows(part) == Shows::Id);
    let serials = 0..if has_id { 1 } else { series.serials.len() };
    let hidden: Vec<Option<&str>> = serials.clone().map(|s| hidden(series, s)).collect();
    let keys: Vec<_> = serials.clone().map(|serial| moments::keys(series, serial)).collect();
    let open = |serial: &usize| !has_id && (hidden[*serial].is_some() || keys[*serial].is_none());
    if serials.clone().all(|serial| open(&serial)) {
        unshown(series, grids, &hidden)?;
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
    // One id of a table may be shown by two codes, before and after it was renamed.
    let in_scope = |part| {
        matches!(shows(part), Shows::Dimension(d)
            if series.scope.contains(&d) && series.table_of(d).is_none())
    };
    let same = series.parts.iter().enumerate();
    let same: Vec<_> = same.map(|(index, part)| in_scope(part).then_some(index)).collect();
    let types = &series.definition.serves.types;
    let part = |shown: Shows| {
        let part = series.parts.iter().position(|part| shows(part) == shown)?;
        Some([part, part])
    };
    let counted = |serial: usize| {
        let rule = &series.counters[serial];
        let dimensions =
            rule.dimensions.iter().filter(|dimension| !series.scope.contains(dimension));
        let dimensions = dimensions.map(|dimension| Shows::Dimension(*dimension));
        let phase = (rule.reset == Reset::Phase).then_some(Shows::Phase);
        let dates = keys[serial].iter().flatten().map(|field| Shows::Date(*field));
        let counter = dimensions.chain(phase).chain(dates).filter_map(part);
        Counted { parts: part(Shows::Serial(serial)).into_iter().chain(counter).collect() }
    };
    let shown = serials.clone().filter(|serial| !has_id && !open(serial));
    let counted: Vec<Counted> = shown.map(counted).collect();
    let comparison = Comparison {
        series: [series, series],
        types: [types, types],
        places: &(0..series.parts.len()).map(Some).collect::<Vec<_>>(),
        marks: [&marks, &marks],
        marked: serials.clone().filter(open).fold(0, |marks, serial| marks | bit(serial)),
        wanted: serials.clone().fold(0, |marks, serial| marks | bit(serial)),
        same: &same,
        grids: [grids, grids],
        counted: &counted,
    };
    let found = |walk: &Walk| {
        let first = Asked::read(series, grids, &walk.text, &walk.first)?;
        let second = Asked::read(series, grids, &walk.text, &walk.second)?;
        told(first, second, || misreading(series, walk))
    };
    comparison.decide(|| false, found)
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
fn unshown(series: &Series, grids: &[Grid], hidden: &[Option<&str>]) -> Result<(), Ambiguity> {
    let by_period: Vec<usize> = (0..hidden.len()).filter(|s| hidden[*s].is_none()).collect();
    let pair = match by_period[..] {
        [] => Some((moments::first(), moments::first())),
        _ => moments::apart(series, &by_period, &moments::fields(series)),
    };
    let Some((early, late)) = pair else { return Ok(()) };
    let (mut first, mut second) =
        (Asked::first(series, grids, early), Asked::first(series, grids, late));
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
