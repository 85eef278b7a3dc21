//! The second search, for what the first one leaves open: goes through the same pairs of states
//! character by character and remembers what was read, as far as it decides whether there are two
//! such numbers.
//!
//! Leaves out nothing that can happen: a text that it does not find is no collision. A few
//! characters stand for all that no part tells apart; equal texts stay equal by that, and texts
//! that differ are compared only where each character stands for itself.

use std::collections::{HashMap, VecDeque};

use super::super::template::Part;
use super::super::{Series, Style};
use super::automaton::{SetId, Sets, id};
use super::classes::representatives;
use super::grid::Grid;
use super::memory::{Comparing, Counted, Memory};
use super::product::{Chance, Product, Runs, Walk};
use super::reading::{How, Reader};

/// Most states of the second search.
pub(super) const MEMORIES_MAX: usize = 50_000;

/// Characters beyond the shortest text found up to which longer ones are looked for.
const FURTHER: usize = 4;

/// Stands for any character of a text whose length alone is followed.
const ANY: char = '\0';

/// What is looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Detail {
    /// Characters that stand for each class.
    pub(super) characters: usize,
    /// Of values that must be equal, whether more is followed than how long they are, and whether
    /// fields of the date must be of one day.
    pub(super) texts: bool,
    /// Whether values off their grid, check characters and days are judged: then characters that
    /// they are made of are each told apart.
    pub(super) signs: bool,
    /// Whether values of one counter, and fields of the date that both runs read alike, are
    /// followed too.
    pub(super) values: bool,
}

impl Detail {
    /// Signs and texts, of few characters.
    pub(super) const SIGNS: Detail =
        Detail { characters: 1, texts: true, signs: true, values: false };
}

/// Two runs with what is known of their series.
pub(super) struct Refining<'a> {
    pub(super) runs: &'a Runs<'a>,
    pub(super) series: [&'a Series; 2],
    pub(super) grids: [&'a [Grid]; 2],
    pub(super) counted: &'a [Counted],
}

/// How the search ended.
pub(super) enum Refined {
    /// There are no such two numbers.
    Never,
    /// There may be: texts that are left.
    Perhaps(Texts),
    /// More states than are looked at.
    TooLarge,
}

/// Texts that are left, as a graph of characters.
pub(super) struct Texts {
    /// The pairs of parts that the runs are in, by node.
    parts: Vec<[usize; 2]>,
    ways: Vec<Vec<(char, u32)>>,
    /// Fewest characters to an end.
    left: Vec<Option<usize>>,
    starts: usize,
}

impl Refining<'_> {
    /// Whether judging values, check characters and days takes more characters.
    pub(super) fn has_signs(&self) -> bool {
        let tells = |side: usize| {
            Reader::of(self.series[side], self.grids[side], Detail::SIGNS).tells() != (false, false)
        };
        tells(0) || tells(1)
    }

    /// Searches breadth first: shortest texts first.
    pub(super) fn search(&self, product: &Product, sets: &Sets, detail: Detail) -> Refined {
        let readers = [0, 1].map(|side| Reader::of(self.series[side], self.grids[side], detail));
        let counted = if detail.values { self.counted } else { &[] };
        let mut alone = String::new();
        let tells = readers.each_ref().map(Reader::tells);
        if !counted.is_empty() || tells.iter().any(|tells| tells.0) {
            alone.extend('0'..='9');
        }
        if tells.iter().any(|tells| tells.1) || !counted.is_empty() && self.has_letters() {
            alone.extend('A'..='Z');
        }
        let (characters, exact) = representatives(sets.all(), &alone, detail.characters);
        let comparing = Comparing::of(self.runs, self.series, counted, &exact);
        let search = Search { refining: self, product, sets, readers, comparing, detail };
        search.run(&characters)
    }

    /// Whether a serial is written in letters.
    fn has_letters(&self) -> bool {
        let letters = |part: &Part| match part {
            Part::Serial { figure, .. } => figure.style == Style::Letters,
            _ => false,
        };
        self.series.iter().flat_map(|series| &series.parts).any(letters)
    }
}

/// One search.
struct Search<'a> {
    refining: &'a Refining<'a>,
    product: &'a Product,
    sets: &'a Sets,
    readers: [Reader<'a>; 2],
    comparing: Comparing<'a>,
    detail: Detail,
}

/// A pair of the product with what was read on the way to it.
type Node = (u32, Memory);

/// What is found so far.
#[derive(Default)]
struct Found {
    nodes: Vec<Node>,
    known: HashMap<Node, u32>,
    waiting: VecDeque<(u32, usize)>,
    ways: Vec<Vec<(char, u32)>>,
    ends: Vec<u32>,
}

impl Found {
    fn node(&mut self, node: Node, depth: usize) -> u32 {
        if let Some(known) = self.known.get(&node) {
            return *known;
        }
        let new = id(self.nodes.len());
        self.known.insert(node.clone(), new);
        self.nodes.push(node);
        self.ways.push(Vec::new());
        self.waiting.push_back((new, depth));
        new
    }
}

impl Search<'_> {
    fn run(&self, characters: &[char]) -> Refined {
        let mut found = Found::default();
        for start in self.product.alive_starts() {
            found.node((start, self.comparing.begin(&self.readers)), 0);
        }
        let starts = found.nodes.len();
        let mut meetings: HashMap<(SetId, SetId), Vec<char>> = HashMap::new();
        let mut shortest: Option<usize> = None;
        while let Some((index, depth)) = found.waiting.pop_front() {
            if shortest.is_some_and(|shortest| depth >= shortest + FURTHER) {
                break;
            }
            if found.nodes.len() > MEMORIES_MAX {
                if shortest.is_none() {
                    return Refined::TooLarge;
                }
                break;
            }
            let (pair, memory) = found.nodes[index as usize].clone();
            if self.product.is_end(pair) {
                shortest = shortest.or(Some(depth));
                found.ends.push(index);
                continue;
            }
            for (sets, to) in self.product.alive_ways(pair) {
                let both = meetings.entry(sets).or_insert_with(|| {
                    let has = |c: &&char| self.sets.has(sets.0, **c) && self.sets.has(sets.1, **c);
                    characters.iter().filter(has).copied().collect()
                });
                for character in both.iter() {
                    if let Some(memory) = self.step(pair, &memory, to, *character) {
                        let to = found.node((to, memory), depth + 1);
                        found.ways[index as usize].push((*character, to));
                    }
                }
            }
        }
        match found.ends.is_empty() {
            true => Refined::Never,
            false => Refined::Perhaps(self.texts(found, starts)),
        }
    }

    /// Where both runs are in a pair.
    fn at(&self, pair: u32) -> [(usize, usize); 2] {
        let (a, b) = self.product.states(pair);
        let Runs { first, second, .. } = self.refining.runs;
        let of = |state: &super::automaton::State| (state.part, state.offset);
        [of(&first.states[a as usize]), of(&second.states[b as usize])]
    }

    /// What is known after one character more; none where there are no such two numbers.
    fn step(&self, pair: u32, memory: &Memory, to: u32, character: char) -> Option<Memory> {
        let (at, next) = (self.at(pair), self.at(to));
        let mut memory = memory.clone();
        let together = self.comparing.together(at);
        let ends = [0, 1].map(|side| next[side].0 != at[side].0);
        for side in [0, 1] {
            let keep = self.comparing.keeps(&memory, side, at);
            let Detail { texts, values, .. } = self.detail;
            let keep = keep.then_some(if texts { character } else { ANY });
            let how = How { ends: ends[side], keep, dated: values || !together };
            let reading = &mut memory.readings[side];
            if !self.readers[side].read(reading, at[side], character, how) {
                return None;
            }
        }
        if !self.comparing.take(&mut memory, at, ends) {
            return None;
        }
        self.comparing.forget(&mut memory, next.map(|at| at.0));
        Some(memory)
    }

    fn texts(&self, found: Found, starts: usize) -> Texts {
        let Found { nodes, ways, ends, .. } = found;
        let mut before: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
        for (from, ways) in ways.iter().enumerate() {
            for (_, to) in ways {
                before[*to as usize].push(id(from));
            }
        }
        let mut left = vec![None; nodes.len()];
        let mut waiting: VecDeque<u32> = ends.into();
        for end in &waiting {
            left[*end as usize] = Some(0);
        }
        while let Some(index) = waiting.pop_front() {
            for from in &before[index as usize] {
                if left[*from as usize].is_none() {
                    left[*from as usize] = left[index as usize].map(|left: usize| left + 1);
                    waiting.push_back(*from);
                }
            }
        }
        let parts = nodes.iter().map(|(pair, _)| self.at(*pair).map(|at| at.0)).collect();
        Texts { parts, ways, left, starts }
    }
}

impl Texts {
    /// A text that both runs can read, by chance; nearly the shortest first.
    pub(super) fn walk(&self, chance: &mut Chance) -> Option<Walk> {
        let starts: Vec<usize> = (0..self.starts).filter(|at| self.left[*at].is_some()).collect();
        let mut at = *chance.pick(&starts)?;
        let mut walk = Walk::default();
        while self.left[at] != Some(0) {
            let alive = |way: &&(char, u32)| self.left[way.1 as usize].is_some();
            let mut ways: Vec<&(char, u32)> = self.ways[at].iter().filter(alive).collect();
            if chance.one_in(2) {
                let least = ways.iter().map(|way| self.left[way.1 as usize]).min()?;
                ways.retain(|way| self.left[way.1 as usize] == least);
            }
            let (character, to) = **chance.pick(&ways)?;
            walk.text.push(character);
            walk.first.push(self.parts[at][0]);
            walk.second.push(self.parts[at][1]);
            at = to as usize;
        }
        Some(walk)
    }
}
