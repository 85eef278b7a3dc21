//! Sets of characters, and where two of them intersect. Exact about whether they intersect: a
//! missed intersection would be a false proof.

use foldhash::HashMap;

use super::super::characters::{self, CharRange};
use super::super::text::is_printable;

/// Shown first if they are in the set: plain, and easy to distinguish.
const PREFERRED: &str = "AB01CXZ23456789abcxz-./_#+";

/// Characters as ranges, in order and disjoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CharSet(Vec<CharRange>);

impl CharSet {
    /// One character.
    pub(super) fn of(character: char) -> Self {
        CharSet(vec![(character, character)])
    }

    /// The characters of some ranges.
    pub(super) fn within(ranges: &[CharRange]) -> Self {
        CharSet(characters::merged(ranges.iter().copied()))
    }

    /// The same characters without one.
    pub(super) fn without(&self, character: char) -> Self {
        CharSet(characters::without(&self.0, &[(character, character)]))
    }

    /// Whether it has the character.
    pub(super) fn has(&self, character: char) -> bool {
        characters::has(&self.0, character)
    }

    /// The character, if it has only one.
    fn only(&self) -> Option<char> {
        let [(first, last)] = self.0[..] else { return None };
        (first == last).then_some(first)
    }

    /// A character that a number may show and that both have: one that reads well, if there is any.
    pub(super) fn common(&self, other: &CharSet) -> Option<char> {
        let fits = |c: &char| is_printable(*c) && self.has(*c) && other.has(*c);
        if let Some(only) = self.only().or_else(|| other.only()) {
            return Some(only).filter(fits);
        }
        PREFERRED.chars().find(fits).or_else(|| {
            let both: Vec<CharRange> = characters::common(&self.0, &other.0).collect();
            characters::printable(&both).map(|(first, _)| first).next()
        })
    }

    /// The first `most` characters that a number may show, those that read well before others.
    pub(super) fn some(&self, most: usize) -> Vec<char> {
        let mut some: Vec<char> = PREFERRED.chars().filter(|c| self.has(*c)).take(most).collect();
        let all = characters::printable(&self.0).flat_map(|(first, last)| first..=last);
        let others = all.filter(|c| *c != ' ' && !PREFERRED.contains(*c)).take(most - some.len());
        some.extend(others);
        some
    }
}

/// Index of a set.
pub(super) type SetId = u32;

/// Sets, each once, and where they intersect.
#[derive(Debug, Default)]
pub(super) struct CharSets {
    ids: HashMap<CharSet, SetId>,
    sets: Vec<CharSet>,
    /// Their characters if they have only one.
    only: Vec<Option<char>>,
    common: HashMap<(SetId, SetId), Option<char>>,
}

impl CharSets {
    /// The index of a set.
    pub(super) fn id(&mut self, set: &CharSet) -> SetId {
        if let Some(known) = self.ids.get(set) {
            return *known;
        }
        let new = SetId::try_from(self.sets.len()).expect("fewer sets than a u32 counts");
        self.sets.push(set.clone());
        self.only.push(set.only());
        self.ids.insert(set.clone(), new);
        new
    }

    /// A character that both sets have and that a number may show; none only if there is none.
    pub(super) fn common(&mut self, a: SetId, b: SetId) -> Option<char> {
        let [one, other] = [a, b].map(|id| &self.sets[id as usize]);
        // There may be thousands of single characters, and two are compared directly.
        match [a, b].map(|id| self.only[id as usize]) {
            [Some(only), Some(its)] => Some(only).filter(|_| only == its),
            [Some(only), None] => Some(only).filter(|c| other.has(*c)),
            [None, Some(only)] => Some(only).filter(|c| one.has(*c)),
            [None, None] => {
                return *self.common.entry((a, b)).or_insert_with(|| one.common(other));
            }
        }
        .filter(|c| is_printable(*c))
    }
}
