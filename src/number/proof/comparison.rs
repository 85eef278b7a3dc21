//! Decides a comparison of two runs: searched in full for the proof, walked through for examples.

use super::super::Series;
use super::ambiguity::Ambiguity;
use super::automaton::{Automaton, Sets, automaton};
use super::language::{Reach, language};
use super::product::{Chance, PAIRS_MAX, Product, Runs, Search, Walk};

/// Walks through a product of examples before it is given up.
const WALKS_MAX: usize = 400;

/// What is compared: one series with itself, or two.
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
}

impl Comparison<'_> {
    /// Searches everything; where that is not empty, looks for a text that `found` can show to be a
    /// collision.
    pub(super) fn decide(
        &self,
        mut found: impl FnMut(&Walk) -> Option<Ambiguity>,
    ) -> Result<(), Ambiguity> {
        let mut sets = Sets::default();
        let mut chance = Chance::new();
        let everything = self.automata(Reach::Everything, &mut sets);
        let runs = self.runs(&everything);
        let product = match runs.search(&mut sets) {
            Search::Never => return Ok(()),
            Search::TooLarge => {
                return Err(self.unproven(&format!("more than {PAIRS_MAX} states")));
            }
            Search::Perhaps(product) => product,
        };
        let likely = self.automata(Reach::Likely, &mut sets);
        let likely = self.runs(&likely);
        if let Search::Perhaps(product) = likely.search(&mut sets)
            && let Some(ambiguity) = examples(&product, &likely, &mut sets, &mut chance, &mut found)
        {
            return Err(ambiguity);
        }
        let ambiguity = examples(&product, &runs, &mut sets, &mut chance, &mut found);
        Err(ambiguity.unwrap_or_else(|| {
            self.unproven(&format!("two readings seem possible, none of {WALKS_MAX} was"))
        }))
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

    fn unproven(&self, reason: &str) -> Ambiguity {
        let [a, b] = self.series.map(|series| series.definition.code.as_str());
        let subject =
            if a == b { format!("series {a}") } else { format!("series {a} beside series {b}") };
        let explanation = format!(
            "{reason}; separate parts of variable width by a sign that they exclude, or give them \
             a fixed width"
        );
        Ambiguity::Unproven { subject, explanation }
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
