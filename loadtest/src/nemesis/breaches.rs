//! Promises that were broken, counted by kind, with some examples of each.

use std::collections::BTreeMap;

/// Examples of one kind of breach that are told; more are counted.
const EXAMPLES_MAX: usize = 5;

/// Breaches by what is broken.
#[derive(Clone, Debug, Default)]
pub(super) struct Breaches(BTreeMap<&'static str, (u64, Vec<String>)>);

impl Breaches {
    /// Notes one.
    pub(super) fn add(&mut self, what: &'static str, example: impl Into<String>) {
        let (count, examples) = self.0.entry(what).or_default();
        *count += 1;
        if examples.len() < EXAMPLES_MAX {
            examples.push(example.into());
        }
    }

    /// Takes another list over.
    pub(super) fn extend(&mut self, other: Breaches) {
        for (what, (count, examples)) in other.0 {
            let mine = self.0.entry(what).or_default();
            mine.0 += count;
            mine.1.extend(examples);
            mine.1.truncate(EXAMPLES_MAX);
        }
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each kind with its number and some examples.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, u64, &[String])> {
        self.0.iter().map(|(what, (count, examples))| (*what, *count, examples.as_slice()))
    }
}
