//! Decides a comparison of two runs: searched in full for the proof, walked through for examples.

use super::super::Series;
use super::ambiguity::Ambiguity;
use super::ambiguity::Limit;
use super::automaton::{Automaton, Sets, automaton};
use super::grid::Grid;
use super::language::{Reach, language};
use super::lengths::{Compared, Found};
use super::memory::Counted;
use super::product::{Chance, EVERYTHING, FURTHER, Product, Runs, Search, Walk};
use super::refined::{Detail, Refined, Refining};

/// Walks through a product of examples before it is given up.
pub(super) const WALKS_MAX: usize = 400;

/// What is compared: one series with itself, or two.
#[derive(Clone, Copy)]
pub(super) struct Comparison<'a> {
    /// The series of the first run and of the second.
    pub(super) series: [&'a Series; 2],
    /// The types that each is looked at for.
    pub(super) types: [&'a [String]; 2],
    /// For each part of the first, the part of the second that is the same place of a number.
    pub(super) places: &'a [Option<usize>],
    /// What is marked where the runs are at different places, by the parts of each.
    pub(super) marks: [&'a [u8]; 2],
    /// Marks that stand from the beginning.
    pub(super) marked: u8,
    /// The marks with which a common text matters.
    pub(super) wanted: u8,
    /// For each part of the first, the part of the second that shows the same value in both runs.
    pub(super) same: &'a [Option<usize>],
    /// The values that the serials of each can have.
    pub(super) grids: [&'a [Grid]; 2],
    /// Serials that both take from the same counters.
    pub(super) counted: &'a [Counted],
}

/// How closely the second search looks, in turn.
const DETAILS: [Detail; 5] = [
    Detail { characters: 1, texts: false, signs: true, values: false },
    Detail { characters: 2, texts: true, signs: false, values: false },
    Detail::SIGNS,
    Detail { values: true, ..Detail::SIGNS },
    Detail { characters: 2, values: true, ..Detail::SIGNS },
];

impl Comparison<'_> {
    /// Searches everything; where that is not empty, and a common text does harm at all, looks for
    /// one that `found` can show to be a collision.
    pub(super) fn decide(
        &self,
        harmless: impl FnOnce() -> bool,
        mut found: impl FnMut(&Walk) -> Option<Ambiguity>,
    ) -> Result<(), Ambiguity> {
        let mut sets = Sets::default();
        let mut chance = Chance::new();
        let everything = self.automata(Reach::Everything, &mut sets);
        let runs = self.runs(&everything);
        let product = match runs.search(&mut sets, FURTHER) {
            Search::Never => return Ok(()),
            Search::TooLarge => {
                return match self.by_lengths(&runs, &sets, &mut chance, &mut found) {
                    Found::Never => Ok(()),
                    Found::Told(ambiguity) => Err(ambiguity),
                    Found::Nothing => Err(self.unproven(Limit::States)),
                };
            }
            Search::Perhaps(_) if harmless() => return Ok(()),
            Search::Perhaps(product) => product,
        };
        let likely = self.automata(Reach::Likely, &mut sets);
        let likely = self.runs(&likely);
        if let Search::Perhaps(product) = likely.search(&mut sets, FURTHER)
            && let Some(ambiguity) = examples(&product, &likely, &mut sets, &mut chance, &mut found)
        {
            return Err(ambiguity);
        }
        match examples(&product, &runs, &mut sets, &mut chance, &mut found) {
            Some(ambiguity) => Err(ambiguity),
            None => self.refine(&mut chance, found),
        }
    }

    /// Searches again, with what was read in mind.
    fn refine(
        &self,
        chance: &mut Chance,
        mut found: impl FnMut(&Walk) -> Option<Ambiguity>,
    ) -> Result<(), Ambiguity> {
        let mut sets = Sets::default();
        let everything = self.automata(Reach::Everything, &mut sets);
        let runs = self.runs(&everything);
        match self.by_lengths(&runs, &sets, chance, &mut found) {
            Found::Never => return Ok(()),
            Found::Told(ambiguity) => return Err(ambiguity),
            Found::Nothing => {}
        }
        let product = match runs.search(&mut sets, EVERYTHING) {
            Search::Never => return Ok(()),
            Search::TooLarge => return Err(self.unproven(Limit::States)),
            Search::Perhaps(product) => product,
        };
        let Comparison { series, grids, counted, .. } = *self;
        let refining = Refining { runs: &runs, series, grids, counted };
        for detail in DETAILS {
            // Fewer characters to remember, where they need not be judged.
            if !detail.signs && !refining.has_signs() {
                continue;
            }
            match refining.search(&product, &sets, detail) {
                Refined::Never => return Ok(()),
                Refined::TooLarge if !detail.signs => {}
                Refined::TooLarge => return Err(self.unproven(Limit::States)),
                Refined::Perhaps(texts) => {
                    let mut walks = (0..WALKS_MAX).filter_map(|_| texts.walk(chance));
                    if let Some(ambiguity) = walks.find_map(|walk| found(&walk)) {
                        return Err(ambiguity);
                    }
                }
            }
        }
        Err(self.unproven(Limit::Examples))
    }

    fn by_lengths(
        &self,
        runs: &Runs<'_>,
        sets: &Sets,
        chance: &mut Chance,
        found: &mut dyn FnMut(&Walk) -> Option<Ambiguity>,
    ) -> Found {
        let Comparison { series, types, grids, counted, .. } = *self;
        Compared { runs, series, types, grids, counted }.by_lengths(sets, chance, found)
    }

    /// Whether the search by lengths alone finds that there are no such two numbers.
    #[cfg(test)]
    pub(super) fn never_by_lengths(&self, chance: &mut Chance) -> bool {
        let mut sets = Sets::default();
        let everything = self.automata(Reach::Everything, &mut sets);
        let runs = self.runs(&everything);
        matches!(self.by_lengths(&runs, &sets, chance, &mut |_| None), Found::Never)
    }

    fn automata(&self, reach: Reach, sets: &mut Sets) -> [Automaton; 2] {
        [0, 1].map(|side| {
            let (series, types) = (self.series[side], self.types[side]);
            let languages = series.parts.iter().map(|part| language(series, part, types, reach));
            automaton(&languages.collect::<Vec<_>>(), sets)
        })
    }

    fn runs<'r>(&'r self, [first, second]: &'r [Automaton; 2]) -> Runs<'r> {
        let Comparison { places, marks, marked, wanted, same, .. } = *self;
        Runs { first, second, places, marks, marked, wanted, same }
    }

    fn unproven(&self, limit: Limit) -> Ambiguity {
        let [a, b] = self.series.map(|series| series.definition.code.as_str());
        let subject =
            if a == b { format!("series {a}") } else { format!("series {a} beside series {b}") };
        Ambiguity::Unproven { subject, limit }
    }
}

/// Walks until one text is a collision.
fn examples(
    product: &Product,
    runs: &Runs<'_>,
    sets: &mut Sets,
    chance: &mut Chance,
    found: &mut impl FnMut(&Walk) -> Option<Ambiguity>,
) -> Option<Ambiguity> {
    (0..WALKS_MAX).find_map(|_| product.walk(runs, sets, chance).as_ref().and_then(&mut *found))
}
