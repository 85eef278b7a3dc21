//! Two runs over one text, by how long each part of each run is: where the lengths are known, it is
//! known which places must show the same character, however long the text is.
//!
//! Leaves out nothing that can happen: places are taken to depend on each other only as far as they
//! surely do.

use super::super::template::Part;
use super::super::{Series, TEXT_CHARS_MAX};
use super::ambiguity::Ambiguity;
use super::automaton::Sets;
use super::days::Calendar;
use super::grid::Grid;
use super::language::{Shows, shows};
use super::memory::{Counted, Named, named_values};
use super::product::{Chance, Runs, Walk};
use super::shapes::{Alphabet, Shape};
use super::texts::Texts;

/// Most parts that are placed.
const PLACED_MAX: usize = 400_000;

/// How the search ended.
pub(super) enum Found {
    /// There are no such two numbers.
    Never,
    /// These two collide.
    Told(Ambiguity),
    /// Neither.
    Nothing,
}

/// A part of a run.
struct Placing {
    shapes: Vec<Shape>,
    /// Fewest and most characters.
    least: usize,
    most: usize,
    /// What other parts show the same text, if any.
    value: Option<usize>,
}

/// Two runs by the lengths of their parts.
pub(super) struct Lengths<'a> {
    pub(super) runs: &'a Runs<'a>,
    pub(super) series: [&'a Series; 2],
    pub(super) counted: &'a [Counted],
    pub(super) alphabet: Alphabet,
    parts: [Vec<Placing>; 2],
    pub(super) calendar: Calendar,
    pub(super) chance: &'a mut Chance,
    pub(super) found: &'a mut dyn FnMut(&Walk) -> Option<Ambiguity>,
    placed: usize,
    pub(super) checked: usize,
    /// How many lengths are left.
    pub(super) left: usize,
    /// Whether all that was placed is contradictory.
    pub(super) never: bool,
    pub(super) told: Option<Ambiguity>,
}

/// How far both runs are placed.
#[derive(Clone)]
pub(super) struct Placed {
    pub(super) texts: Texts,
    /// Where each part begins, then where the next one does.
    pub(super) starts: [Vec<usize>; 2],
    /// Of each value, where it was first shown, and how long it is.
    values: Vec<Option<(usize, usize)>>,
}

/// What is compared.
pub(super) struct Compared<'a> {
    pub(super) runs: &'a Runs<'a>,
    pub(super) series: [&'a Series; 2],
    pub(super) types: [&'a [String]; 2],
    pub(super) grids: [&'a [Grid]; 2],
    pub(super) counted: &'a [Counted],
}

impl Compared<'_> {
    /// Searches all lengths; `found` shows that a text is a collision.
    pub(super) fn by_lengths(
        &self,
        sets: &Sets,
        chance: &mut Chance,
        found: &mut dyn FnMut(&Walk) -> Option<Ambiguity>,
    ) -> Found {
        let Some(alphabet) = Alphabet::of(sets.all()) else { return Found::Nothing };
        let Compared { runs, series, counted, .. } = *self;
        let calendar = Calendar::of(series);
        let (values, count) = self.values();
        let parts = [0, 1].map(|side| {
            let (series, types, grids) = (series[side], self.types[side], self.grids[side]);
            let placing = |(index, part): (usize, &Part)| {
                let is_dated = calendar.judges(side, index);
                let shapes = alphabet.shapes((series, grids), part, types, is_dated);
                let lengths = || shapes.iter().map(Vec::len);
                let (least, most) = (lengths().min()?, lengths().max()?);
                Some(Placing { shapes, least, most, value: values[side][index] })
            };
            series.parts.iter().enumerate().map(placing).collect::<Option<Vec<_>>>()
        });
        // A part without texts makes no number.
        let [Some(first), Some(second)] = parts else { return Found::Never };
        let parts = [first, second];
        let (never, told) = (true, None);
        let (placed, checked, left) = (0, 0, 0);
        let mut search = Lengths {
            runs,
            series,
            counted,
            alphabet,
            parts,
            calendar,
            chance,
            found,
            placed,
            checked,
            left,
            never,
            told,
        };
        let starts = [vec![0], vec![0]];
        let all = search.place(&Placed { texts: Texts::new(), starts, values: vec![None; count] });
        match search.told {
            Some(told) => Found::Told(told),
            None if all && search.never => Found::Never,
            None => Found::Nothing,
        }
    }

    /// For each part of each run what it shows in common with others, and of how many there are.
    fn values(&self) -> ([Vec<Option<usize>>; 2], usize) {
        let mut values = self.series.map(|series| vec![None; series.parts.len()]);
        let mut count = 0;
        for Named { parts, shared } in named_values(self.runs, self.series) {
            for side in [0, 1] {
                for part in &parts[side] {
                    values[side][*part] = Some(count);
                }
                count += usize::from(!shared);
            }
            count += usize::from(shared);
        }
        // A field of the date is the same wherever it is shown.
        for side in [0, 1] {
            let parts = &self.series[side].parts;
            for (index, part) in parts.iter().enumerate() {
                let Shows::Date(_) = shows(part) else { continue };
                let before = parts[..index].iter().position(|other| shows(other) == shows(part));
                values[side][index] = before.map_or(Some(count), |before| values[side][before]);
                count += usize::from(before.is_none());
            }
        }
        (values, count)
    }
}

impl Lengths<'_> {
    /// Places the next part in every way; false where the search is to end.
    fn place(&mut self, placed: &Placed) -> bool {
        let ends = placed.starts.each_ref().map(|starts| starts[starts.len() - 1]);
        let parts = placed.starts.each_ref().map(|starts| starts.len() - 1);
        let rest = [0, 1].map(|side| self.parts[side].len() - parts[side]);
        if rest == [0, 0] {
            return ends[0] != ends[1] || self.judge(placed);
        }
        let side = match rest {
            [0, _] => 1,
            [_, 0] => 0,
            _ => usize::from(ends[1] < ends[0]),
        };
        let known = self.parts[side][parts[side]].value.and_then(|value| placed.values[value]);
        for shape in 0..self.parts[side][parts[side]].shapes.len() {
            let chars = self.parts[side][parts[side]].shapes[shape].len();
            if known.is_some_and(|(_, known)| known != chars) {
                continue;
            }
            if self.placed == PLACED_MAX {
                return false;
            }
            self.placed += 1;
            let Some(next) = self.with(placed, side, shape) else { continue };
            if !self.place(&next) {
                return false;
            }
        }
        true
    }

    /// With one part more; none where there are no such two numbers.
    fn with(&self, placed: &Placed, side: usize, shape: usize) -> Option<Placed> {
        let starts = &placed.starts[side];
        let (part, start) = (&self.parts[side][starts.len() - 1], starts[starts.len() - 1]);
        let shape = &part.shapes[shape];
        let end = start + shape.len();
        let mut next = placed.clone();
        next.starts[side].push(end);
        let is_first = part.value.filter(|value| next.values[*value].is_none());
        if let Some(value) = is_first {
            next.values[value] = Some((start, shape.len()));
        }
        if !self.may_end(&next) {
            return None;
        }
        for (offset, signs) in shape.iter().enumerate() {
            if !next.texts.restrict(start + offset, *signs) {
                return None;
            }
        }
        if let Some((first, _)) = part.value.and_then(|value| next.values[value]) {
            for offset in 0..shape.len() {
                if !next.texts.join(first + offset, start + offset) {
                    return None;
                }
            }
        }
        Some(next)
    }

    /// Whether both runs can still end at one place.
    fn may_end(&self, placed: &Placed) -> bool {
        let ends = [0, 1].map(|side| {
            let starts = &placed.starts[side];
            let rest = &self.parts[side][starts.len() - 1..];
            rest.iter().fold([starts[starts.len() - 1]; 2], |[least, most], part| {
                let known = part.value.and_then(|value| placed.values[value]);
                let (fewest, longest) =
                    known.map_or((part.least, part.most), |(_, chars)| (chars, chars));
                [least + fewest, most + longest]
            })
        });
        let [first, second] = ends;
        first[0] <= second[1] && second[0] <= first[1] && first[0].max(second[0]) <= TEXT_CHARS_MAX
    }
}
