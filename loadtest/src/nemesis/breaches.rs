//! Promises that were broken, counted by kind, with some examples of each.

use std::collections::BTreeMap;

use crate::examples::Examples;

/// Breaches by what is broken.
#[derive(Clone, Debug, Default)]
pub(super) struct Breaches(BTreeMap<&'static str, Examples>);

impl Breaches {
    /// Records one.
    pub(super) fn add(&mut self, what: &'static str, example: impl Into<String>) {
        self.0.entry(what).or_default().note(|| example.into());
    }

    /// Adds another list.
    pub(super) fn extend(&mut self, other: Breaches) {
        for (what, examples) in other.0 {
            self.0.entry(what).or_default().extend(examples);
        }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each kind with some examples.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &Examples)> {
        self.0.iter().map(|(what, examples)| (*what, examples))
    }
}
