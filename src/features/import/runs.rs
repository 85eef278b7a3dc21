//! A set of values as runs: as small as the values are dense.

use std::collections::BTreeMap;

/// Places of values on a counter's step, from 0.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    /// First and last place of each run; no two touch.
    runs: BTreeMap<u64, u64>,
    count: u64,
}

impl Runs {
    /// Adds a place; false if it is there already.
    pub(super) fn insert(&mut self, place: u64) -> bool {
        let before = self.runs.range(..=place).next_back().map(|(first, last)| (*first, *last));
        if before.is_some_and(|(_, last)| last >= place) {
            return false;
        }
        let first = match before {
            Some((first, last)) if last + 1 == place => first,
            _ => place,
        };
        let last = place.checked_add(1).and_then(|next| self.runs.remove(&next)).unwrap_or(place);
        self.runs.insert(first, last);
        self.count += 1;
        true
    }

    /// How many places.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// How many runs.
    pub(super) fn len(&self) -> usize {
        self.runs.len()
    }

    /// The runs, lowest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.runs.iter().map(|(first, last)| (*first, *last))
    }

    /// The lowest place and the highest.
    pub(super) fn ends(&self) -> Option<(u64, u64)> {
        let (first, _) = self.runs.first_key_value()?;
        let (_, last) = self.runs.last_key_value()?;
        Some((*first, *last))
    }

    /// How many places are at or above one.
    pub(super) fn count_from(&self, from: u64) -> u64 {
        let above = self.runs.range(from..).map(|(first, last)| last - first + 1);
        let across = self.runs.range(..from).next_back().filter(|(_, last)| **last >= from);
        above.sum::<u64>() + across.map_or(0, |(_, last)| last - from + 1)
    }

    /// Runs of missing places from one on, below the highest, lowest first.
    pub(super) fn holes(&self, from: u64) -> impl Iterator<Item = (u64, u64)> {
        let mut next = from;
        self.runs.iter().filter_map(move |(first, last)| {
            let hole = (next < *first).then(|| (next, first - 1));
            next = next.max(last.saturating_add(1));
            hole
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_hold_what_a_set_holds(
            places in prop::collection::vec(0_u64..40, 0..60),
            from in 0_u64..45,
        ) {
            let (mut runs, mut set) = (Runs::default(), BTreeSet::new());
            for place in places {
                prop_assert_eq!(runs.insert(place), set.insert(place));
            }
            prop_assert_eq!(runs.count(), set.len() as u64);
            prop_assert_eq!(runs.ends(), set.first().copied().zip(set.last().copied()));
            let held: BTreeSet<u64> = runs.iter().flat_map(|(a, b)| a..=b).collect();
            prop_assert_eq!(&held, &set);
            prop_assert_eq!(runs.count_from(from), set.range(from..).count() as u64);
            let holes: Vec<u64> = runs.holes(from).flat_map(|(a, b)| a..=b).collect();
            let upto = set.last().copied().unwrap_or(0);
            let missing: Vec<u64> = (from..upto).filter(|place| !set.contains(place)).collect();
            prop_assert_eq!(holes, missing);
        }
    }
}
