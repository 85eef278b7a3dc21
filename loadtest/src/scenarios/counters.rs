//! One counter beside 1,000: whether it matters which numbers are asked for.

use super::Bench;
use super::contest::Contestant;
use crate::report::{Reach, Section};
use crate::stage::Path;
use crate::work::{Counters, Single};

/// The many.
const MANY: usize = 1_000;

pub(super) fn run(bench: &Bench, section: &mut Section) {
    let stage = bench.stage();
    let services = [(); 2].map(|()| stage.service(Path::Redis, "", &[]));
    let contestant = |place: usize, counters| {
        let work = Single::new(counters, false);
        Contestant::service(&stage, &services[place], work)
    };
    let many = Counters::at_random(bench.sized(MANY));
    let mut contestants = [contestant(0, Counters::in_turn(1)), contestant(1, many)];
    bench.contest(section, &mut contestants);
    let [hot, many] = contestants;
    section.rows.push(many.row("1,000 counters"));
    let row =
        hot.row("one hot counter, in turn with them").per(hot.ratio_to(&many), "1,000 counters");
    section.rows.push(row.reach(Reach::AtLeast(0.9)));
}
