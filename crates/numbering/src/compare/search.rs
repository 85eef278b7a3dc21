//! Two runs over one text: reads the same characters by two automata at once, in every possible
//! way, and finds the shortest text that both can end on while the numbers are two.
//!
//! Moves are left out only if equal values would have unequal texts or lengths; a search that ends
//! early is no proof.

use foldhash::{HashSet, HashSetExt};

use super::automaton::{Automaton, StateId};
use super::chars::CharSets;
use super::effort::Effort;
use super::pairing::{LENGTHS_MAX, Pairing};

/// Most states that are examined: about 40 MiB of memory.
pub(super) const STATES_MAX: usize = 200_000;

/// Differences of lengths so far; a difference that is not counted stays 0.
type Counts = [i16; LENGTHS_MAX];

/// A state of the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ProductState {
    /// The states of both runs.
    at: [StateId; 2],
    /// Whether both entered their parts at the same character, and these are one place.
    together: bool,
    /// The marks of all parts that were read differently.
    marks: u64,
    counts: Counts,
}

/// A character of a text, with the part in which each run was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) character: char,
    pub(super) parts: [usize; 2],
}

/// How a search ended.
#[derive(Debug)]
pub(super) enum Found {
    /// No text can be read by both.
    Nothing,
    /// The shortest text that can.
    Text(Vec<Step>),
    /// More states than are examined, or more steps.
    TooMuch,
}

/// The product of two automata.
pub(super) struct Product<'a> {
    pub(super) runs: [&'a Automaton; 2],
    pub(super) pairing: &'a Pairing<'a>,
}

impl Product<'_> {
    /// Searches breadth first.
    pub(super) fn search(&self, sets: &mut CharSets, effort: &Effort<'_>) -> Found {
        let at = self.runs.map(|run| run.start);
        let together = self.is_place(at.map(|_| 0));
        let start = ProductState { at, together, marks: 0, counts: Counts::default() };
        let mut known = HashSet::new();
        known.insert(start);
        // Each state with the one before it and the character between.
        let mut queue: Vec<(ProductState, usize, char)> = vec![(start, 0, '\0')];
        let mut next = 0;
        while next < queue.len() {
            let (state, ..) = queue[next];
            if self.is_collision(&state) {
                return Found::Text(self.text(&queue, next));
            }
            let [first, second] = [0, 1].map(|run| &self.runs[run].states[state.at[run] as usize]);
            if !effort.spend(1 + first.edges.len() * second.edges.len()) {
                return Found::TooMuch;
            }
            for (set, to) in &first.edges {
                for (other, its) in &second.edges {
                    let Some(character) = sets.common(*set, *other) else { continue };
                    let Some(to) = self.step(&state, [*to, *its]) else { continue };
                    if known.insert(to) {
                        if queue.len() == STATES_MAX {
                            return Found::TooMuch;
                        }
                        queue.push((to, next, character));
                    }
                }
            }
            next += 1;
        }
        Found::Nothing
    }

    /// The state after one more character; none if no two numbers continue like that.
    fn step(&self, from: &ProductState, to: [StateId; 2]) -> Option<ProductState> {
        let part = |run: usize, at: StateId| self.runs[run].states[at as usize].part;
        let (parts, next) =
            ([0, 1].map(|run| part(run, from.at[run])), [0, 1].map(|run| part(run, to[run])));
        let leaves = [0, 1].map(|run| parts[run] != next[run]);
        let Pairing { is_same, marks, lengths, .. } = self.pairing;
        if from.together && is_same[parts[0]] && leaves[0] != leaves[1] {
            return None;
        }
        let mut state = ProductState { at: to, ..*from };
        if !from.together {
            state.marks |= marks[0][parts[0]] | marks[1][parts[1]];
        }
        state.together = match leaves {
            [true, true] => self.is_place(next),
            [false, false] => from.together,
            _ => false,
        };
        for (count, length) in std::iter::zip(&mut state.counts, lengths) {
            *count += length.weights[0][parts[0]] + length.weights[1][parts[1]];
            let is_over = next[0] > length.last[0] && next[1] > length.last[1];
            if count.abs() > length.most || is_over && *count != 0 {
                return None;
            }
        }
        Some(state)
    }

    fn is_place(&self, parts: [usize; 2]) -> bool {
        self.pairing.places.get(parts[0]).copied().flatten() == Some(parts[1])
    }

    /// Whether both runs have ended, and the numbers differ in all that distinguishes two.
    fn is_collision(&self, state: &ProductState) -> bool {
        let all = |marks: &u64| state.marks & marks == *marks;
        [0, 1].into_iter().all(|run| state.at[run] == self.runs[run].end())
            && state.counts == Counts::default()
            && self
                .pairing
                .identities
                .iter()
                .all(|identity| !identity.hidden.is_empty() || identity.marks.iter().any(all))
    }

    /// The text that leads to a state.
    fn text(&self, queue: &[(ProductState, usize, char)], mut at: usize) -> Vec<Step> {
        let mut steps = Vec::new();
        while at != 0 {
            let (_, before, character) = queue[at];
            let (from, ..) = queue[before];
            let parts = [0, 1].map(|run| self.runs[run].states[from.at[run] as usize].part);
            steps.push(Step { character, parts });
            at = before;
        }
        steps.reverse();
        steps
    }
}
