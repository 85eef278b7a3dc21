//! Every number that was received, checked as it arrives: none twice, and at the end none missing.
//!
//! Keeps the ranges that arrived before one below them; what is contiguous from the first number on
//! costs nothing, so a counter takes as much memory as its numbers are out of order.

use std::collections::BTreeMap;

use crate::examples::Examples;

/// All counters of one load.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    counters: Vec<Counter>,
    numbers: u64,
    duplicates: Examples,
}

/// What one counter has given.
#[derive(Clone, Debug, Default)]
struct Counter {
    /// Every value up to this one has arrived.
    whole: u64,
    /// What has arrived beyond, by first value: ranges that neither overlap nor touch.
    ahead: BTreeMap<u64, u64>,
}

impl Tally {
    /// Counters by a running number, each of which begins at 1.
    pub(crate) fn new(counters: usize) -> Self {
        Tally { counters: vec![Counter::default(); counters], ..Tally::default() }
    }

    /// Records a range that was handed out.
    pub(crate) fn take(&mut self, counter: usize, first: u64, last: u64) {
        self.numbers += last - first + 1;
        for (first, last) in self.counters[counter].take(first, last) {
            for value in first..=last {
                self.duplicates.note(|| format!("value {value} of counter {counter}"));
            }
        }
    }

    /// Numbers received so far.
    pub(crate) fn numbers(&self) -> u64 {
        self.numbers
    }

    /// What is wrong: numbers that came twice, and holes below the last one of a counter.
    pub(crate) fn findings(&self) -> Vec<String> {
        let mut holes = Examples::default();
        for (index, counter) in self.counters.iter().enumerate() {
            for value in counter.holes() {
                holes.note(|| format!("value {value} of counter {index}"));
            }
        }
        let twice = self.duplicates.told("numbers came twice");
        twice.into_iter().chain(holes.told("numbers are missing")).collect()
    }
}

impl Counter {
    /// Records a range; returns the parts of it that came before.
    fn take(&mut self, mut first: u64, mut last: u64) -> Vec<(u64, u64)> {
        let mut twice = Vec::new();
        if first <= self.whole {
            twice.push((first, last.min(self.whole)));
        }
        first = first.max(self.whole + 1);
        // From the highest range down that begins before this one ends, or directly after it.
        while let Some((&from, &upto)) = self.ahead.range(..=last + 1).next_back()
            && upto + 1 >= first
        {
            if from.max(first) <= upto.min(last) {
                twice.push((from.max(first), upto.min(last)));
            }
            self.ahead.remove(&from);
            (first, last) = (first.min(from), last.max(upto));
        }
        if first == self.whole + 1 {
            self.whole = self.whole.max(last);
        } else {
            self.ahead.insert(first, last);
        }
        twice
    }

    /// What is missing below the last value that has arrived.
    fn holes(&self) -> impl Iterator<Item = u64> {
        let mut whole = self.whole;
        self.ahead.iter().flat_map(move |(first, last)| {
            let hole = whole + 1..*first;
            whole = *last;
            hole
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(values: impl IntoIterator<Item = u64>) -> Tally {
        let mut tally = Tally::new(1);
        for value in values {
            tally.take(0, value, value);
        }
        tally
    }

    #[test]
    fn numbers_in_any_order_are_sound() {
        let mut values: Vec<u64> = (1..=100_000).collect();
        let mut random = fastrand::Rng::with_seed(7);
        random.shuffle(&mut values);
        let tally = given(values);
        assert_eq!(tally.findings(), Vec::<String>::new());
        assert!(tally.counters[0].ahead.is_empty(), "what is whole is forgotten");
    }

    #[test]
    fn a_planted_duplicate_is_found_wherever_it_is() {
        for twice in [1, 63, 64, 65, 5_000, 10_000] {
            let tally = given((1..=10_000).chain([twice]));
            let findings = tally.findings();
            assert_eq!(findings, [format!("1 numbers came twice: value {twice} of counter 0")]);
        }
    }

    #[test]
    fn a_planted_hole_is_found_wherever_it_is() {
        for hole in [1, 63, 64, 65, 5_000, 9_999] {
            let tally = given((1..=10_000).filter(|value| *value != hole));
            let findings = tally.findings();
            assert_eq!(findings, [format!("1 numbers are missing: value {hole} of counter 0")]);
        }
    }

    #[test]
    fn ranges_overlap_in_one_value() {
        let mut tally = Tally::new(2);
        tally.take(0, 1, 1_000);
        tally.take(1, 1, 1_000);
        tally.take(1, 1_000, 2_000);
        assert_eq!(tally.findings(), ["1 numbers came twice: value 1000 of counter 1"]);
    }
}
