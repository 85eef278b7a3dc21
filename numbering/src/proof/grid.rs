//! Which values a serial's counters can have: not only those of the start and the step that hold
//! now, since counters that exist go on where they are when a later version has others.

use super::super::Series;
use super::EarlierVersion;

/// Values from `least` on, each a multiple of `step` apart from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    /// No value is smaller.
    pub(super) least: u64,
    /// Distance between neighbours.
    pub(super) step: u64,
}

impl Grid {
    /// Whether a value is one of them.
    pub(super) fn has(self, value: u64) -> bool {
        value >= self.least && (value - self.least).is_multiple_of(self.step)
    }

    /// What both have, and all that counters come to that go on from one to the other: from any
    /// value of either, by any number of either's steps.
    fn joined(self, other: Grid) -> Grid {
        let apart = self.least.abs_diff(other.least);
        Grid { least: self.least.min(other.least), step: gcd(gcd(self.step, other.step), apart) }
    }
}

/// The grid of each serial of a series: that of its definition, joined with those of its earlier
/// versions, as far as they may have counters.
pub(super) fn grids(series: &Series, earlier: &[EarlierVersion]) -> Vec<Grid> {
    let code = &series.definition.code;
    let versions = || earlier.iter().filter(|before| before.definition.code == *code);
    let grid = |serial: &super::super::Serial| {
        let before = versions().flat_map(|version| &version.definition.serials);
        let before = before.filter(|before| before.name == serial.name);
        let own = Grid { least: serial.start, step: serial.step };
        before
            .fold(own, |grid, before| grid.joined(Grid { least: before.start, step: before.step }))
    };
    series.serials.iter().map(grid).collect()
}

/// The greatest common divisor; of nothing and a number that number.
fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::testing::{definition, serial};
    use super::*;

    #[test]
    fn a_serial_of_another_name_is_another_serial() {
        let mut before = definition();
        (before.serials[0].start, before.serials[0].step) = (100, 100);
        let series = Series::compile(before.clone()).expect("compiles");
        before.serials.push(serial("LOT"));
        let earlier = [EarlierVersion { version: 1, definition: before }];
        assert_eq!(grids(&series, &earlier), [Grid { least: 100, step: 100 }]);
    }

    proptest! {
        #[test]
        fn a_counter_that_goes_on_stays_on_the_joined_grid(
            versions in prop::collection::vec((1..60_u64, 1..60_u64), 1..5),
            // Which version gives the next value, and whether another counter begins.
            way in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..40),
        ) {
            let grids = versions.iter().map(|(least, step)| Grid { least: *least, step: *step });
            let joined = grids.reduce(Grid::joined).expect("one version or more");
            let mut value = None;
            for (which, anew) in way {
                let (start, step) = *which.get(&versions);
                let next = value.filter(|_| !anew).map_or(start, |value: u64| value + step);
                prop_assert!(joined.has(next), "{} of {:?}", next, joined);
                value = Some(next);
            }
        }
    }
}
