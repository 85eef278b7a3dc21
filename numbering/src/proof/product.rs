//! Two runs over one text: reads the same characters by two automata at once, in every way there
//! is, and finds the texts that both can end on with a difference that matters.
//!
//! Leaves out nothing that can happen; that a text found here is a collision is for the witness to
//! show, since dates, repeated values and scopes are not followed across parts.

use std::collections::{HashMap, VecDeque};

use super::automaton::{Automaton, SetId, Sets, StateId, id};

/// Most pairs of states looked at.
pub(super) const PAIRS_MAX: usize = 200_000;

/// Characters beyond the shortest text found up to which longer ones are looked for, where examples
/// are wanted.
pub(super) const FURTHER: usize = 8;

/// The same where every text is wanted.
pub(super) const EVERYTHING: usize = usize::MAX;

/// Steps of one walk: no number is longer.
const STEPS_MAX: usize = super::super::TEXT_CHARS_MAX;

/// What is compared.
pub(super) struct Runs<'a> {
    /// The automaton of the first run.
    pub(super) first: &'a Automaton,
    /// The automaton of the second run.
    pub(super) second: &'a Automaton,
    /// For each part of the first, the part of the second that is the same place.
    pub(super) places: &'a [Option<usize>],
    /// What is marked where the runs are at different places, by the parts of each.
    pub(super) marks: [&'a [u8]; 2],
    /// Marks that stand from the beginning.
    pub(super) marked: u8,
    /// The marks with which an end counts.
    pub(super) wanted: u8,
    /// For each part of the first, the part of the second that shows the same value in both runs.
    pub(super) same: &'a [Option<usize>],
}

/// A pair of states with the marks so far.
type Pair = (StateId, StateId, u8);

/// A way from one pair to the next: the characters that both sets have.
#[derive(Clone, Copy, Debug)]
struct Way {
    sets: (SetId, SetId),
    to: u32,
}

/// All pairs that two runs can reach.
#[derive(Debug)]
pub(super) struct Product {
    pairs: Vec<Pair>,
    ways: Vec<Vec<Way>>,
    /// Fewest characters to an end that counts; none where there is no such way.
    left: Vec<Option<usize>>,
    starts: usize,
}

/// How the search ended.
#[derive(Debug)]
pub(super) enum Search {
    /// No text can be read by both with a difference that matters.
    Never,
    /// Some texts may be.
    Perhaps(Product),
    /// More pairs than are looked at.
    TooLarge,
}

/// A text with the parts in which each run was at each of its characters.
#[derive(Debug, Default)]
pub(super) struct Walk {
    pub(super) text: Vec<char>,
    pub(super) first: Vec<usize>,
    pub(super) second: Vec<usize>,
}

impl Runs<'_> {
    /// Searches breadth first: shortest texts first, and others that are at most `further`
    /// characters longer.
    pub(super) fn search(&self, sets: &mut Sets, further: usize) -> Search {
        let mut found = Found::default();
        for a in &self.first.starts {
            for b in &self.second.starts {
                found.pair(self.arrive(*a, *b, self.marked), 0);
            }
        }
        let starts = found.pairs.len();
        let end = |pair: &Pair| {
            (pair.0, pair.1, pair.2) == (self.first.end(), self.second.end(), self.wanted)
        };
        let mut shortest: Option<usize> = None;
        while let Some(index) = found.waiting.pop_front() {
            let (pair, depth) = (found.pairs[index as usize], found.depths[index as usize]);
            if end(&pair) {
                shortest = shortest.or(Some(depth));
            }
            if shortest.is_some_and(|shortest| depth >= shortest.saturating_add(further)) {
                continue;
            }
            if found.pairs.len() > PAIRS_MAX {
                if shortest.is_none() || further == EVERYTHING {
                    return Search::TooLarge;
                }
                break;
            }
            self.step(index, pair, depth, sets, &mut found);
        }
        if shortest.is_none() {
            return Search::Never;
        }
        let left = found.left(end);
        Search::Perhaps(Product { pairs: found.pairs, ways: found.ways, left, starts })
    }

    /// Every way by one character.
    fn step(
        &self,
        index: u32,
        (a, b, marks): Pair,
        depth: usize,
        sets: &mut Sets,
        found: &mut Found,
    ) {
        let (from_a, from_b) = (&self.first.states[a as usize], &self.second.states[b as usize]);
        let together = from_a.offset == from_b.offset
            && self.same.get(from_a.part).copied().flatten() == Some(from_b.part);
        for &(set_a, to_a) in &from_a.edges {
            for &(set_b, to_b) in &from_b.edges {
                let stays_a = self.first.states[to_a as usize].part == from_a.part;
                let stays_b = self.second.states[to_b as usize].part == from_b.part;
                // One value, entered together: it ends together.
                if (together && stays_a != stays_b) || sets.common(set_a, set_b).is_empty() {
                    continue;
                }
                let to = found.pair(self.arrive(to_a, to_b, marks), depth + 1);
                found.ways[index as usize].push(Way { sets: (set_a, set_b), to });
            }
        }
    }

    /// The pair with the marks of its places.
    fn arrive(&self, a: StateId, b: StateId, marks: u8) -> Pair {
        let (at_a, at_b) = (&self.first.states[a as usize], &self.second.states[b as usize]);
        let mark = |run: usize, part: usize| self.marks[run].get(part).copied().unwrap_or(0);
        let place = self.places.get(at_a.part).copied().flatten();
        if (place, at_a.offset) == (Some(at_b.part), at_b.offset) {
            return (a, b, marks);
        }
        (a, b, marks | mark(0, at_a.part) | mark(1, at_b.part))
    }
}

/// What the search has found so far.
#[derive(Default)]
struct Found {
    pairs: Vec<Pair>,
    ways: Vec<Vec<Way>>,
    depths: Vec<usize>,
    known: HashMap<Pair, u32>,
    waiting: VecDeque<u32>,
}

impl Found {
    /// The index of a pair; a new one waits to be looked at.
    fn pair(&mut self, pair: Pair, depth: usize) -> u32 {
        if let Some(known) = self.known.get(&pair) {
            return *known;
        }
        let new = id(self.pairs.len());
        self.known.insert(pair, new);
        self.pairs.push(pair);
        self.ways.push(Vec::new());
        self.depths.push(depth);
        self.waiting.push_back(new);
        new
    }

    /// Fewest characters from each pair to an end that counts.
    fn left(&self, end: impl Fn(&Pair) -> bool) -> Vec<Option<usize>> {
        let mut before: Vec<Vec<u32>> = vec![Vec::new(); self.pairs.len()];
        for (from, ways) in self.ways.iter().enumerate() {
            for way in ways {
                before[way.to as usize].push(id(from));
            }
        }
        let mut left = vec![None; self.pairs.len()];
        let ends = (0..self.pairs.len()).filter(|index| end(&self.pairs[*index]));
        let mut waiting: VecDeque<usize> = ends.collect();
        for end in &waiting {
            left[*end] = Some(0);
        }
        while let Some(index) = waiting.pop_front() {
            for from in &before[index] {
                let from = *from as usize;
                if left[from].is_none() {
                    left[from] = left[index].map(|left| left + 1);
                    waiting.push_back(from);
                }
            }
        }
        left
    }
}

impl Product {
    /// Where ways to an end that counts begin.
    pub(super) fn alive_starts(&self) -> impl Iterator<Item = u32> {
        (0..self.starts).filter(|start| self.left[*start].is_some()).map(id)
    }

    /// The ways to an end that counts.
    pub(super) fn alive_ways(&self, pair: u32) -> impl Iterator<Item = ((SetId, SetId), u32)> {
        let ways = self.ways[pair as usize].iter();
        ways.filter(|way| self.left[way.to as usize].is_some()).map(|way| (way.sets, way.to))
    }

    /// Whether it is an end that counts.
    pub(super) fn is_end(&self, pair: u32) -> bool {
        self.left[pair as usize] == Some(0)
    }

    /// The states of a pair.
    pub(super) fn states(&self, pair: u32) -> (StateId, StateId) {
        let (first, second, _) = self.pairs[pair as usize];
        (first, second)
    }

    /// A text that both runs can read, by chance; nearly the shortest first.
    pub(super) fn walk(
        &self,
        runs: &Runs<'_>,
        sets: &mut Sets,
        chance: &mut Chance,
    ) -> Option<Walk> {
        let alive = |index: &usize| self.left[*index].is_some();
        let starts: Vec<usize> = (0..self.starts).filter(alive).collect();
        let mut at = *chance.pick(&starts)?;
        let mut walk = Walk::default();
        for _ in 0..STEPS_MAX {
            if self.left[at] == Some(0) && self.ways[at].is_empty() {
                return Some(walk);
            }
            let ways = self.ways[at].iter().filter(|way| self.left[way.to as usize].is_some());
            let mut ways: Vec<&Way> = ways.collect();
            let hurry = walk.text.len() > STEPS_MAX / 2 || chance.one_in(2);
            if hurry {
                let least = ways.iter().map(|way| self.left[way.to as usize]).min()?;
                ways.retain(|way| self.left[way.to as usize] == least);
            }
            let way = **chance.pick(&ways)?;
            let common = sets.common(way.sets.0, way.sets.1);
            let many = if chance.one_in(4) { common.len() } else { common.len().min(FEW) };
            let character = *chance.pick(&common[..many])?;
            let (a, b, _) = self.pairs[at];
            walk.text.push(character);
            walk.first.push(runs.first.states[a as usize].part);
            walk.second.push(runs.second.states[b as usize].part);
            at = way.to as usize;
        }
        None
    }
}

/// How many characters are mostly chosen among: with few, values are equal by chance.
const FEW: usize = 2;

/// Choices that are the same in every run of the program: what is proved once is proved always.
#[derive(Debug)]
pub(super) struct Chance(u64);

impl Chance {
    /// The beginning.
    pub(super) fn new() -> Self {
        Chance(0x9e37_79b9_7f4a_7c15)
    }

    /// The next number (splitmix64).
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// True once in `n` times.
    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }

    /// One of these.
    pub(super) fn pick<'t, T>(&mut self, among: &'t [T]) -> Option<&'t T> {
        let index = self.next().checked_rem(among.len() as u64)?;
        among.get(usize::try_from(index).ok()?)
    }
}
