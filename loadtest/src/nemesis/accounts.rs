//! The account of a counter: every value up to the last one that was taken stands in exactly one
//! place.

use std::collections::BTreeMap;

use super::breaches::Breaches;
use super::check::parse;
use super::gaps::{Gap, RETURNED};
use super::journal::Row;
use super::orders::{GAPLESS, TYPES};
use super::world::World;

/// A counter of the gapless series, as the ledger shows it.
struct Counter {
    /// The value before its first one.
    origin: u64,
    /// The last value that was taken.
    taken: u64,
    /// Values that came back and were not issued again.
    pool: u64,
    /// The values that stand somewhere, in runs.
    runs: Vec<(u64, u64)>,
    /// Of those, the ones in gaps that are to be issued again.
    returned: u64,
}

/// Checks the counters of the gapless series against the journal, records that were put aside, and
/// gaps.
pub(super) fn judge(world: &World, journal: &[Row], gaps: &[Gap], breaches: &mut Breaches) {
    let mut counters = read(world);
    for row in journal {
        if let Some(counter) = counters.get_mut(&row.counter_id) {
            counter.runs.push((row.first, row.last));
        }
    }
    for gap in gaps {
        if let Some(counter) = counters.get_mut(&gap.counter_id) {
            counter.runs.push((gap.first, gap.last));
            let values = gap.last - gap.first + 1;
            counter.returned += if gap.reason == RETURNED { values } else { 0 };
        }
    }
    world.ledger.rows(
        "select counter_id, first_value, last_value from {}.journal_rejected \
         order by journal_rejected_id",
        |row| {
            if let Some(counter) = counters.get_mut(&parse(row[0])) {
                counter.runs.push((parse(row[1]), parse(row[2])));
            }
        },
    );
    for (counter_id, mut counter) in counters {
        for finding in findings(&mut counter) {
            breaches.add("values without one place", format!("counter {counter_id}: {finding}"));
        }
    }
}

fn read(world: &World) -> BTreeMap<i64, Counter> {
    let mut counters = BTreeMap::new();
    world.ledger.rows(
        &format!(
            "select c.counter_id, c.origin, c.taken, c.returned - c.reissued \
             from {{}}.counter c join {{}}.series s on s.series_id = c.series_id \
             where s.code = '{}' order by c.counter_id",
            TYPES[GAPLESS]
        ),
        |row| {
            let (origin, taken, pool) = (parse(row[1]), parse(row[2]), parse(row[3]));
            let counter = Counter { origin, taken, pool, runs: Vec::new(), returned: 0 };
            counters.insert(parse(row[0]), counter);
        },
    );
    counters
}

/// What is wrong with a counter.
fn findings(counter: &mut Counter) -> Vec<String> {
    let Counter { origin, taken, pool, returned, .. } = *counter;
    let mut found = Vec::new();
    counter.runs.sort_unstable();
    let mut next = origin + 1;
    for &(first, last) in &counter.runs {
        if first > next {
            found.push(format!("{next} to {} stand nowhere", first - 1));
        }
        if first < next {
            found.push(format!("{first} to {} stand twice", last.min(next - 1)));
        }
        next = next.max(last + 1);
    }
    if next <= taken {
        found.push(format!("{next} to {taken} stand nowhere"));
    }
    if next > taken + 1 {
        found.push(format!("{} stands above {taken}, the last that was taken", next - 1));
    }
    if pool != returned {
        found.push(format!("{pool} values are to be issued again, and {returned} are in gaps"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(runs: &[(u64, u64)]) -> Counter {
        Counter { origin: 0, taken: 10, pool: 0, runs: runs.to_vec(), returned: 0 }
    }

    #[test]
    fn values_that_stand_once_each_in_any_order_are_right() {
        assert_eq!(findings(&mut counter(&[(6, 10), (1, 1), (2, 5)])), Vec::<String>::new());
        let mut behind = Counter { origin: 4, ..counter(&[(5, 10)]) };
        assert_eq!(findings(&mut behind), Vec::<String>::new());
    }

    #[test]
    fn a_value_that_stands_nowhere_or_twice_is_found() {
        for (runs, wanted) in [
            (vec![(1, 3), (5, 10)], "4 to 4 stand nowhere"),
            (vec![(1, 9)], "10 to 10 stand nowhere"),
            (vec![(2, 10)], "1 to 1 stand nowhere"),
            (vec![(1, 5), (4, 10)], "4 to 5 stand twice"),
            (vec![(1, 10), (3, 3)], "3 to 3 stand twice"),
            (vec![(1, 11)], "11 stands above 10, the last that was taken"),
            (vec![], "1 to 10 stand nowhere"),
        ] {
            assert_eq!(findings(&mut counter(&runs)), [wanted]);
        }
    }

    #[test]
    fn returned_values_are_as_many_as_the_counter_says() {
        let mut lost = Counter { pool: 2, returned: 1, ..counter(&[(1, 10)]) };
        let wanted = ["2 values are to be issued again, and 1 are in gaps"];
        assert_eq!(findings(&mut lost), wanted);
    }
}
