//! What is remembered of two runs over one text, and what of it contradicts itself: values of the
//! scope that differ, repeated ones that are not the same, and one value of one counter twice.
//!
//! Whatever is not remembered is taken to be as it would collide.

use std::collections::BTreeSet;

use super::super::Series;
use super::language::{Shows, serial_value, shows};
use super::product::Runs;
use super::reading::{At, Reader, Reading};
use super::witness::{PHASE, name_of};

/// A serial that both series take from the same counters: two numbers with one value of one counter
/// are one number.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    /// The parts that show its value in the two series, then those that tell its counter: equal
    /// texts are an equal counter.
    pub(super) parts: Vec<[usize; 2]>,
}

/// A value that a request names, by the parts of the two runs that show it.
pub(super) struct Named {
    pub(super) parts: [Vec<usize>; 2],
    /// Whether it is the same in both runs.
    pub(super) shared: bool,
}

/// What is compared between two runs.
pub(super) struct Comparing<'a> {
    runs: &'a Runs<'a>,
    series: [&'a Series; 2],
    counted: &'a [Counted],
    named: Vec<Named>,
    /// Characters that stand for themselves alone.
    exact: &'a BTreeSet<char>,
}

/// What is known of both runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Memory {
    pub(super) readings: [Reading; 2],
    /// Of each serial that is compared.
    counted: Vec<Counter>,
    /// Of each named value in each run, the text.
    named: Vec<[Option<Vec<char>>; 2]>,
}

/// What is known of a serial and its counter, as the two runs read them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Counter {
    /// What was read of each pair of parts; all that was compared is equal.
    Alike(Vec<Compared>),
    /// Value or counter may differ.
    Apart,
}

/// A pair of parts that show the same of two numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Compared {
    /// What the first and the second run have read.
    Read([Option<Vec<char>>; 2]),
    /// The same.
    Equal,
}

impl<'a> Comparing<'a> {
    /// `counted`: the serials to compare; `exact`: characters that stand for themselves alone.
    pub(super) fn of(
        runs: &'a Runs<'a>,
        series: [&'a Series; 2],
        counted: &'a [Counted],
        exact: &'a BTreeSet<char>,
    ) -> Self {
        let mut named = named_values(runs, series);
        named.retain(|named| named.shared || named.parts.iter().any(|parts| parts.len() > 1));
        Comparing { runs, series, counted, named, exact }
    }

    /// Before the first character.
    pub(super) fn begin(&self, readers: &[Reader<'_>; 2]) -> Memory {
        let unread = |counted: &Counted| {
            Counter::Alike(counted.parts.iter().map(|_| Compared::Read([None, None])).collect())
        };
        Memory {
            readings: readers.each_ref().map(Reader::begin),
            counted: self.counted.iter().map(unread).collect(),
            named: self.named.iter().map(|_| [None, None]).collect(),
        }
    }

    /// Whether the runs are at the same place, and so have been since they came into its part.
    pub(super) fn together(&self, at: [At; 2]) -> bool {
        let is = |places: &[Option<usize>]| {
            places.get(at[0].0).copied().flatten() == Some(at[1].0) && at[0].1 == at[1].1
        };
        is(self.runs.places) || is(self.runs.same)
    }

    /// Whether the text of a part is needed.
    pub(super) fn keeps(&self, memory: &Memory, side: usize, at: [At; 2]) -> bool {
        let (part, together) = (at[side].0, self.together(at));
        let counts = |(counted, known): (&Counted, &Counter)| {
            let Counter::Alike(known) = known else { return false };
            std::iter::zip(&counted.parts, known)
                .any(|(parts, known)| parts[side] == part && *known != Compared::Equal)
        };
        let named = |named: &Named| {
            let only = named.shared && named.parts.iter().all(|parts| parts.len() == 1);
            named.parts[side].contains(&part) && !(only && together)
        };
        !together && std::iter::zip(self.counted, &memory.counted).any(counts)
            || self.named.iter().any(named)
    }

    /// Takes in what has been read up to here; false where it contradicts what was read before.
    /// `ends`: which runs have come to the end of their part by this character.
    pub(super) fn take(&self, memory: &mut Memory, at: [At; 2], ends: [bool; 2]) -> bool {
        let together = self.together(at);
        if !self.named.iter().enumerate().all(|(index, _)| self.agrees(memory, index, at, ends)) {
            return false;
        }
        let texts = [0, 1].map(|side| {
            let open = &mut memory.readings[side].open;
            let text = ends[side].then(|| std::mem::take(open));
            // What was not kept from its beginning is not known.
            text.map(|text| if text.len() == at[side].1 + 1 { text } else { Vec::new() })
        });
        let at = at.map(|at| at.0);
        for index in 0..self.counted.len() {
            if !self.counts(memory, index, at, &texts, together) {
                return false;
            }
        }
        for (named, known) in self.named.iter().zip(&mut memory.named) {
            for side in [0, 1] {
                let is_read = named.parts[side].contains(&at[side]);
                if let Some(text) = texts[side].as_ref().filter(|text| is_read && !text.is_empty())
                {
                    known[side] = Some(text.clone());
                }
            }
        }
        true
    }

    /// Notes what ended of a serial and its counter; false where all of both is equal.
    fn counts(
        &self,
        memory: &mut Memory,
        index: usize,
        at: [usize; 2],
        texts: &[Option<Vec<char>>; 2],
        together: bool,
    ) -> bool {
        let Counter::Alike(known) = &mut memory.counted[index] else { return true };
        let pairs = std::iter::zip(&self.counted[index].parts, &mut *known);
        let mut apart = false;
        for (parts, known) in pairs {
            let Compared::Read(read) = known else { continue };
            if together && *parts == at {
                match texts {
                    [None, None] => {}
                    [Some(_), Some(_)] => *known = Compared::Equal,
                    // One goes on: it is the longer.
                    _ => apart = true,
                }
                continue;
            }
            for side in [0, 1] {
                if let Some(text) = texts[side].as_ref().filter(|_| parts[side] == at[side]) {
                    read[side] = Some(text.clone());
                }
            }
            if let [Some(first), Some(second)] = &*read {
                if self.equal(*parts, first, second) {
                    *known = Compared::Equal;
                } else {
                    apart = true;
                }
            }
        }
        if apart {
            memory.counted[index] = Counter::Apart;
            return true;
        }
        known.iter().any(|known| *known != Compared::Equal)
    }

    /// Whether two parts surely show the same.
    fn equal(&self, parts: [usize; 2], first: &[char], second: &[char]) -> bool {
        let value = |side: usize, text: &[char]| {
            let part = &self.series[side].parts[parts[side]];
            serial_value(part, &text.iter().collect::<String>())
        };
        match (value(0, first), value(1, second)) {
            (Some(first), Some(second)) => first == second,
            _ => {
                first == second
                    && !first.is_empty()
                    && first.iter().all(|character| self.exact.contains(character))
            }
        }
    }

    /// Whether all that was read of a named value can be one text.
    fn agrees(&self, memory: &Memory, index: usize, at: [At; 2], ends: [bool; 2]) -> bool {
        let (named, known) = (&self.named[index], &memory.named[index]);
        let of = |side: usize| {
            let open = &memory.readings[side].open;
            let is_open = named.parts[side].contains(&at[side].0) && !open.is_empty();
            let open = is_open.then_some((open, ends[side]));
            known[side].as_ref().map(|text| (text, true)).into_iter().chain(open)
        };
        let agree = |texts: &[(&Vec<char>, bool)]| {
            texts.iter().enumerate().all(|(index, (one, whole))| {
                texts[..index].iter().all(|(other, other_whole)| {
                    std::iter::zip(*one, *other).all(|(a, b)| a == b)
                        && !(*whole && one.len() < other.len())
                        && !(*other_whole && other.len() < one.len())
                })
            })
        };
        if named.shared {
            return agree(&of(0).chain(of(1)).collect::<Vec<_>>());
        }
        [0, 1].into_iter().all(|side| agree(&of(side).collect::<Vec<_>>()))
    }

    /// Forgets what no part to come is compared with.
    pub(super) fn forget(&self, memory: &mut Memory, parts: [usize; 2]) {
        for (named, known) in self.named.iter().zip(&mut memory.named) {
            let to_come =
                [0, 1].map(|side| named.parts[side].iter().any(|part| *part >= parts[side]));
            for side in [0, 1] {
                if !(to_come[side] || named.shared && to_come[1 - side]) {
                    known[side] = None;
                }
            }
        }
    }
}

/// The values that requests name, as far as the two runs show them.
pub(super) fn named_values(runs: &Runs<'_>, series: [&Series; 2]) -> Vec<Named> {
    let mut names: Vec<&str> = Vec::new();
    let parts_of = |side: usize, name: &str| -> Vec<usize> {
        let shown = series[side].parts.iter().enumerate();
        shown
            .filter(|(_, part)| named(series[side], shows(part)) == Some(name))
            .map(|(index, _)| index)
            .collect()
    };
    for side in series {
        names.extend(side.parts.iter().filter_map(|part| named(side, shows(part))));
    }
    names.sort_unstable();
    names.dedup();
    let named = names.into_iter().map(|name| {
        let parts = [0, 1].map(|side| parts_of(side, name));
        let same = |part: &usize| runs.same.get(*part).copied().flatten().is_some();
        let shared = parts[0].iter().any(same);
        Named { parts, shared }
    });
    named.collect()
}

/// The name of a value that a request names.
fn named(series: &Series, shown: Shows) -> Option<&str> {
    match shown {
        Shows::Dimension(dimension) => Some(name_of(series, dimension)),
        Shows::Phase => Some(PHASE),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::series;
    use super::super::super::{Series, VariableDefinition};
    use super::super::automaton::{Automaton, Sets, automaton};
    use super::super::grid::Grid;
    use super::super::language::{Reach, language};
    use super::super::refined::Detail;
    use super::*;

    /// The parts of `{A}-{A}{SEQ}`.
    const FIRST_A: usize = 0;
    const SECOND_A: usize = 2;
    const SEQ: usize = 3;

    fn shows_twice() -> Series {
        series(|definition| {
            definition.template = "{A}-{A}{SEQ}".into();
            let declared = VariableDefinition { required: true, ..VariableDefinition::default() };
            definition.variables.insert("A".into(), declared);
            definition.serials[0].counter = vec!["A".into()];
        })
    }

    fn automaton_of(series: &Series) -> Automaton {
        let parts = series.parts.iter();
        let languages = parts.map(|part| language(series, part, &[], Reach::Everything));
        automaton(&languages.collect::<Vec<_>>(), &mut Sets::default())
    }

    /// What the two runs have read so far: parts by their whole texts.
    struct Two<'a> {
        comparing: &'a Comparing<'a>,
        memory: Memory,
    }

    impl Two<'_> {
        /// Reads a part by each run to its end; whether there may be two such numbers.
        fn read(&mut self, parts: [usize; 2], texts: [&str; 2]) -> bool {
            self.come_to(parts, texts, [true, true])
        }

        /// The same, where a run may be within its part.
        fn come_to(&mut self, parts: [usize; 2], texts: [&str; 2], ends: [bool; 2]) -> bool {
            for (reading, text) in std::iter::zip(&mut self.memory.readings, texts) {
                reading.open = text.chars().collect();
            }
            let at = [0, 1].map(|side| (parts[side], texts[side].chars().count() - 1));
            self.comparing.take(&mut self.memory, at, ends)
        }
    }

    /// Two runs of one series; `same`: parts whose value both must have in common.
    fn with_two(
        same: &[Option<usize>],
        counted: &[Counted],
        check: impl Fn(&dyn Fn() -> Memory, &Comparing<'_>),
    ) {
        let series = shows_twice();
        let automaton = automaton_of(&series);
        let runs = Runs {
            first: &automaton,
            second: &automaton,
            places: &[],
            marks: [&[], &[]],
            marked: 0,
            wanted: 0,
            same,
        };
        let exact = ('a'..='z').chain('0'..='9').collect();
        let comparing = Comparing::of(&runs, [&series, &series], counted, &exact);
        let readers = [0, 1].map(|_| {
            Reader::of(
                &series,
                &[Grid { least: 1, step: 1 }],
                Detail { signs: false, ..Detail::SIGNS },
            )
        });
        check(&|| comparing.begin(&readers), &comparing);
    }

    #[test]
    fn a_value_is_one_within_a_request_and_in_both_only_where_the_scope_has_it() {
        let scoped = [Some(FIRST_A), None, Some(SECOND_A), None];
        for (same, differs) in [(&[][..], true), (&scoped, false)] {
            with_two(same, &[], |begin, comparing| {
                let read = |texts: [[&str; 2]; 2]| {
                    let mut two = Two { comparing, memory: begin() };
                    two.read([FIRST_A, FIRST_A], texts[0])
                        && two.read([SECOND_A, SECOND_A], texts[1])
                };
                assert!(read([["ab", "ab"], ["ab", "ab"]]));
                assert_eq!(read([["ab", "cd"], ["ab", "cd"]]), differs);
                // The whole text counts, not its beginning or its first character.
                assert_eq!(read([["ab", "ac"], ["ab", "ac"]]), differs);
                assert_eq!(read([["ab", "abc"], ["ab", "abc"]]), differs);
                for other in ["a", "abc", "ac", "cb"] {
                    assert!(!read([["ab", "ab"], [other, "ab"]]), "{other}");
                    assert!(!read([["ab", "ab"], ["ab", other]]), "{other}");
                }
            });
        }
    }

    #[test]
    fn a_value_that_has_begun_otherwise_is_another_before_it_ends() {
        with_two(&[], &[], |begin, comparing| {
            for (begun, is_possible) in [("a", true), ("ab", true), ("b", false), ("abc", false)] {
                let mut two = Two { comparing, memory: begin() };
                assert!(two.read([FIRST_A, FIRST_A], ["ab", "x"]));
                let goes_on = two.come_to([SECOND_A, SECOND_A], [begun, "x"], [false, true]);
                assert_eq!(goes_on, is_possible, "{begun}");
            }
        });
        // The same where the other run has ended it already.
        with_two(&[Some(FIRST_A), None, Some(SECOND_A), None], &[], |begin, comparing| {
            for (begun, is_possible) in [("a", true), ("ab", true), ("b", false), ("abc", false)] {
                let mut two = Two { comparing, memory: begin() };
                let goes_on = two.come_to([FIRST_A, FIRST_A], [begun, "ab"], [false, true]);
                assert_eq!(goes_on, is_possible, "{begun}");
            }
        });
    }

    #[test]
    fn what_stands_between_two_places_of_a_value_is_not_it() {
        with_two(&[], &[], |begin, comparing| {
            let mut two = Two { comparing, memory: begin() };
            assert!(two.read([FIRST_A, FIRST_A], ["ab", "ab"]));
            assert!(two.read([SEQ, SEQ], ["7", "8"]));
            assert!(two.read([SECOND_A, SECOND_A], ["ab", "ab"]));
        });
    }

    #[test]
    fn what_was_not_kept_from_its_beginning_is_not_taken_to_be_equal() {
        let counted = [Counted { parts: vec![[SEQ, SEQ], [FIRST_A, FIRST_A]] }];
        with_two(&[], &counted, |begin, comparing| {
            let mut memory = begin();
            for reading in &mut memory.readings {
                reading.open = vec!['b'];
            }
            // Both end a text of two characters, of which one was kept.
            assert!(comparing.take(&mut memory, [(FIRST_A, 1), (FIRST_A, 1)], [true, true]));
            let mut two = Two { comparing, memory };
            assert!(two.read([SEQ, SEQ], ["1", "1"]));
        });
    }

    #[test]
    fn two_numbers_are_one_only_by_their_whole_value_and_their_whole_counter() {
        let counted = [Counted { parts: vec![[SEQ, SEQ], [FIRST_A, FIRST_A]] }];
        with_two(&[], &counted, |begin, comparing| {
            for (of_a, values, is_one) in [
                (["ab", "ab"], ["7", "7"], true),
                (["ab", "ab"], ["7", "8"], false),
                (["ab", "ab"], ["7", "77"], false),
                (["ab", "ac"], ["7", "7"], false),
                (["ab", "cb"], ["7", "7"], false),
                (["ab", "a"], ["7", "7"], false),
                (["ab", "abc"], ["7", "7"], false),
                // A sign that stands for others may be another one in the other run.
                (["a-", "a-"], ["7", "7"], false),
            ] {
                let mut two = Two { comparing, memory: begin() };
                assert!(two.read([FIRST_A, FIRST_A], of_a), "the value is not read yet");
                assert_eq!(two.read([SEQ, SEQ], values), !is_one, "{of_a:?} {values:?}");
            }
        });
    }

    #[test]
    fn a_value_that_goes_on_where_the_other_ends_is_another() {
        let together = [Some(FIRST_A), None, Some(SECOND_A), Some(SEQ)];
        let counted = [Counted { parts: vec![[SEQ, SEQ]] }];
        with_two(&together, &counted, |begin, comparing| {
            for (ends, is_possible) in
                [([true, true], false), ([true, false], true), ([false, true], true)]
            {
                let mut two = Two { comparing, memory: begin() };
                assert_eq!(two.come_to([SEQ, SEQ], ["1", "1"], ends), is_possible, "{ends:?}");
            }
            let mut two = Two { comparing, memory: begin() };
            assert!(two.read([SEQ, SEQ], ["1", "11"]), "begun elsewhere, it is another");
        });
    }
}
