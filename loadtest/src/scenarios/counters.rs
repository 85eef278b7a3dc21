//! One counter beside 1,000: whether it matters which numbers are asked for.

use super::Bench;
use super::contest::Contestant;
use crate::report::{Reach, Section};
use crate::stage::{Path, Stage};
use crate::work::{Counters, Single};

/// The many.
const MANY: usize = 1_000;

pub(super) fn run(bench: &Bench, section: &mut Section) {
    let stages = [Stage::start(&bench.program), Stage::start(&bench.program)];
    let services = stages.each_ref().map(|stage| stage.service(Path::Redis, "fast", &[]));
    let contestant = |place: usize, counters| {
        let (stage, service) = (&stages[place], &services[place]);
        let work = Single::new(counters, false);
        Contestant::new(vec![service.address], stage.processes(service), work)
    };
    let mut contestants =
        [contestant(0, Counters::in_turn(1)), contestant(1, Counters::at_random(MANY))];
    bench.contest(section, &mut contestants);
    let [hot, many] = contestants;
    section.rows.push(many.row("1,000 counters"));
    let ratio = hot.ratio_to(&many);
    let row = hot.row("one hot counter, in turn with them").per(ratio, "1,000 counters");
    section.rows.push(row.reach(Reach::AtLeast(0.9)));
}
