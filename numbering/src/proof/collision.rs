//! Shows that two requests collide: renders each as any request is rendered, in the tables that it
//! finds. Nothing is called a collision that was not rendered.

use jiff::Timestamp;

use super::super::{Draft, Inputs, Serial, Series};
use super::ambiguity::Ambiguity;
use super::witness::{Asked, dimension_of, scope_names, settle};
use super::world::Worlds;

/// Two requests that get one number.
pub(super) struct Collided {
    /// The requests as callers would write them.
    pub(super) inputs: [Inputs; 2],
    /// The tables that each finds.
    pub(super) worlds: Worlds,
    text: String,
    scope: String,
}

/// The collision of two requests, the first of them made first, if it is one and `chosen` finds
/// that their series serve them.
pub(super) fn told(
    mut first: Asked<'_>,
    mut second: Asked<'_>,
    explanation: impl FnOnce() -> String,
    chosen: impl FnOnce(&Collided) -> bool,
) -> Option<Ambiguity> {
    settle(&mut first, &mut second);
    let collided = collision(&first, &second).filter(chosen)?;
    let Collided { inputs: [of_first, of_second], worlds, text, scope } = collided;
    let (first, second) = (first.told(of_first), second.told(of_second));
    let (changes, explanation) = (worlds.changes, explanation());
    Some(Ambiguity::Collision { first, second, text, scope, changes, explanation })
}

/// One number for two requests that take no value in common.
fn collision(a: &Asked<'_>, b: &Asked<'_>) -> Option<Collided> {
    // No id is drawn twice.
    if !a.reached() || !b.reached() || a.snowflake.is_some() && a.snowflake == b.snowflake {
        return None;
    }
    let worlds = Worlds::of([a, b])?;
    let inputs = [a.inputs(&worlds.tables[0])?, b.inputs(&worlds.tables[1])?];
    let draft = |request: usize, series: &Series| {
        worlds.bound(request, series).draft(&inputs[request], Timestamp::UNIX_EPOCH).ok()
    };
    let (of_a, of_b) = (draft(0, a.series)?, draft(1, b.series)?);
    let (text, other) = (rendered(a, &of_a)?, rendered(b, &of_b)?);
    let one_series = a.series.definition.code == b.series.definition.code;
    // A counter gives no value twice, whichever version takes it.
    let never = |(index, serial): (usize, &Serial)| {
        let mut others = b.series.serials.iter();
        let other = others.position(|other| other.name == serial.name);
        a.shows_serial(index)
            && other.is_some_and(|other| {
                of_a.keys[index] == of_b.keys[other] && a.values[index] == b.values[other]
            })
    };
    let shared = one_series && a.series.serials.iter().enumerate().any(never);
    let one_scope = of_a.scope == of_b.scope || means_one_scope(a, b, &worlds);
    (text == other && one_scope && !shared).then_some(Collided {
        inputs,
        worlds,
        text,
        scope: of_a.scope,
    })
}

/// The number of a request.
fn rendered(asked: &Asked<'_>, draft: &Draft) -> Option<String> {
    let mut mask = draft.mask.clone();
    if let (Some(place), Some(id)) = (draft.snowflake, asked.snowflake) {
        place.put(&mut mask, id);
    }
    mask.fill(&asked.values).ok()
}

/// Whether two scopes are of the same things, some of which the one knows by a code and the other
/// by the id of a row that has or had it.
fn means_one_scope(a: &Asked<'_>, b: &Asked<'_>, worlds: &Worlds) -> bool {
    let same = |name: &str| {
        let of = |request: usize, asked: &Asked<'_>| {
            let series = asked.series;
            let code = asked.known.get(name)?.clone();
            let row = match series.table_of(dimension_of(series, name)?) {
                Some(table) => Some(worlds.tables[request].by_code(table, &code)?.clone()),
                None => None,
            };
            Some((code, row))
        };
        let (Some((code, row)), Some((other_code, other_row))) = (of(0, a), of(1, b)) else {
            return false;
        };
        match (row, other_row) {
            (None, None) => code == other_code,
            (Some(row), Some(other)) => row.id == other.id,
            (Some(row), None) => row.code == other_code || row.former_codes.contains(&other_code),
            (None, Some(row)) => row.code == code || row.former_codes.contains(&code),
        }
    };
    let names = scope_names(a.series);
    names == scope_names(b.series) && names.into_iter().all(same)
}
