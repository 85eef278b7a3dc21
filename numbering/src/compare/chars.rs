//! Sets of characters, and where two of them meet. Exact about whether they meet: a meeting that is
//! missed would be a proof that there is none.

use foldhash::HashMap;

use super::super::text::is_printable;

/// Shown first where they fit: plain, and easy to tell apart.
const PREFERRED: &str = "AB01CXZ23456789abcxz-./_#+";

/// Characters as ranges, both ends included.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CharSet(Vec<(char, char)>);

impl CharSet {
    /// One character.
    pub(super) fn of(character: char) -> Self {
        CharSet(vec![(character, character)])
    }

    /// The characters of some ranges; of none, all there are.
    pub(super) fn within(ranges: Option<&[(char, char)]>) -> Self {
        CharSet(ranges.map_or_else(|| vec![('\0', char::MAX)], <[_]>::to_vec))
    }

    /// The same characters but for those of some ranges.
    pub(super) fn without(self, holes: &[(char, char)]) -> Self {
        let mut ranges = self.0;
        for hole in holes {
            ranges = ranges.into_iter().flat_map(|range| cut(range, *hole)).collect();
        }
        CharSet(ranges)
    }

    /// Whether it has the character.
    pub(super) fn has(&self, character: char) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&character))
    }

    /// A character that a number may show and that both have: one that reads well, if there is
    /// such.
    pub(super) fn common(&self, other: &CharSet) -> Option<char> {
        let fits = |c: &char| is_printable(*c) && self.has(*c) && other.has(*c);
        PREFERRED.chars().find(fits).or_else(|| {
            let pairs = self.0.iter().flat_map(|one| other.0.iter().map(move |its| (one, its)));
            pairs.into_iter().find_map(|((first, last), (from, to))| {
                (*first.max(from)..=*last.min(to)).find(|c| is_printable(*c))
            })
        })
    }

    /// The first so many characters that a number may show, those that read well before others.
    pub(super) fn some(&self, most: usize) -> Vec<char> {
        let fits = |c: &char| is_printable(*c) && *c != ' ' && self.has(*c);
        let mut some: Vec<char> = PREFERRED.chars().filter(fits).take(most).collect();
        let all = self.0.iter().flat_map(|(first, last)| *first..=*last).filter(fits);
        let others = all.filter(|c| !PREFERRED.contains(*c)).take(most - some.len());
        some.extend(others);
        some
    }
}

/// What is left of a range without a hole.
fn cut((first, last): (char, char), (from, to): (char, char)) -> Vec<(char, char)> {
    if to < first || from > last {
        return vec![(first, last)];
    }
    let before = (first..from).next_back().map(|end| (first, end));
    let behind = (to..=last).nth(1).map(|begin| (begin, last));
    before.into_iter().chain(behind).collect()
}

/// Index of a set.
pub(super) type SetId = u32;

/// Sets, each once, and where they meet.
#[derive(Debug, Default)]
pub(super) struct CharSets {
    ids: HashMap<CharSet, SetId>,
    sets: Vec<CharSet>,
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
        self.ids.insert(set.clone(), new);
        new
    }

    /// A character that both sets have; none only if there is none.
    pub(super) fn common(&mut self, a: SetId, b: SetId) -> Option<char> {
        let sets = &self.sets;
        let meet = || sets[a as usize].common(&sets[b as usize]);
        *self.common.entry((a, b)).or_insert_with(meet)
    }
}
