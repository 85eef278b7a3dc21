//! Many numbers per request: lists of documents, and ranges of one counter.

use super::Bench;
use super::contest::Contestant;
use crate::report::{Reach, Section};
use crate::stage::Path;
use crate::work::{Counters, Documents, Ranges};

/// Documents of a list.
const LIST: usize = 100;

/// Counters that a list is spread over.
const LIST_COUNTERS: usize = 10;

/// Numbers of a range.
const RANGE: u64 = 1_000;

pub(super) fn run(bench: &Bench, section: &mut Section) {
    let stage = bench.stage();
    let services = [(); 2].map(|()| stage.service(Path::Redis, "", &[]));
    let lists = Documents::new(LIST_COUNTERS, LIST);
    let ranges = Ranges::new(Counters::in_turn(1), RANGE);
    let mut contestants = [
        Contestant::service(&stage, &services[0], lists),
        Contestant::service(&stage, &services[1], ranges),
    ];
    bench.contest(section, &mut contestants);
    let [lists, ranges] = contestants;
    section.rows.push(lists.row("lists of 100 documents"));
    let row = ranges.row("ranges of 1,000");
    section.rows.push(row.reach(Reach::AtLeast(5_000_000.0)));
}
