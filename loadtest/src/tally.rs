//! Every number that was received, checked while it is received: none twice, and at the end none
//! missing.
//!
//! Keeps one bit per number that arrived before one below it; whatever is contiguous from the first
//! number on costs nothing, so a counter takes as much memory as its numbers are out of order.

use std::collections::VecDeque;

/// Examples that are told of duplicates and holes.
const EXAMPLES_MAX: usize = 5;

/// Bits of a word.
const WORD: u64 = 64;

/// All counters of one load.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    counters: Vec<Counter>,
    numbers: u64,
    duplicates: Vec<String>,
    duplicate_count: u64,
}

/// What one counter has given.
#[derive(Clone, Debug, Default)]
struct Counter {
    /// Every value below this one has arrived, or was not asked for; a multiple of the word.
    base: u64,
    /// Values from there on.
    words: VecDeque<u64>,
}

impl Tally {
    /// Counters by a running number, each of which begins at 1.
    pub(crate) fn new(counters: usize) -> Self {
        Tally { counters: vec![Counter::new(); counters], ..Tally::default() }
    }

    /// Notes a range that was handed out.
    pub(crate) fn take(&mut self, counter: usize, first: u64, last: u64) {
        self.numbers += last - first + 1;
        for value in first..=last {
            if !self.counters[counter].take(value) {
                self.duplicate_count += 1;
                if self.duplicates.len() < EXAMPLES_MAX {
                    self.duplicates.push(format!("value {value} of counter {counter}"));
                }
            }
        }
    }

    /// Numbers received so far.
    pub(crate) fn numbers(&self) -> u64 {
        self.numbers
    }

    /// What is wrong: numbers that came twice, and holes below the last one of a counter.
    pub(crate) fn findings(&self) -> Vec<String> {
        let mut findings = self.duplicates();
        let mut holes = 0;
        let mut examples = Vec::new();
        for (index, counter) in self.counters.iter().enumerate() {
            for value in counter.holes() {
                holes += 1;
                if examples.len() < EXAMPLES_MAX {
                    examples.push(format!("value {value} of counter {index}"));
                }
            }
        }
        if holes > 0 {
            findings.push(format!("{holes} numbers are missing: {}", examples.join(", ")));
        }
        findings
    }

    /// Numbers that came twice: what may never be, holes or not.
    pub(crate) fn duplicates(&self) -> Vec<String> {
        let examples = self.duplicates.join(", ");
        let count = self.duplicate_count;
        (count > 0).then(|| format!("{count} numbers came twice: {examples}")).into_iter().collect()
    }
}

impl Counter {
    fn new() -> Self {
        // Value 0 is no number: its bit stands from the start.
        Counter { base: 0, words: VecDeque::from([1]) }
    }

    /// Notes a value; false when it came before.
    fn take(&mut self, value: u64) -> bool {
        let Some(offset) = value.checked_sub(self.base) else { return false };
        let place = usize::try_from(offset / WORD).expect("a window that fits into memory");
        if place >= self.words.len() {
            self.words.resize(place + 1, 0);
        }
        let bit = 1 << (offset % WORD);
        let is_new = self.words[place] & bit == 0;
        self.words[place] |= bit;
        while self.words.front() == Some(&u64::MAX) {
            self.words.pop_front();
            self.base += WORD;
        }
        is_new
    }

    /// The highest value that has arrived.
    fn last(&self) -> u64 {
        let Some(place) = self.words.iter().rposition(|word| *word != 0) else {
            return self.base.saturating_sub(1);
        };
        let top = WORD - 1 - u64::from(self.words[place].leading_zeros());
        self.base + place as u64 * WORD + top
    }

    fn holes(&self) -> impl Iterator<Item = u64> {
        let has = |value: u64| {
            let offset = value - self.base;
            let place = usize::try_from(offset / WORD).expect("a window that fits into memory");
            self.words[place] & (1 << (offset % WORD)) != 0
        };
        (self.base..self.last()).filter(move |value| !has(*value))
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
        assert!(tally.counters[0].words.len() <= 1, "what is whole is forgotten");
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
