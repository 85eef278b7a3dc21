//! One number per request from one counter, as fast as the answers come, beside a bare web server
//! that answers the same to the same, and beside the least that remembers every number.

use super::Bench;
use super::contest::{Contestant, LEAST};
use crate::baselines::Baseline;
use crate::report::{Reach, Section};
use crate::stage::Path;
use crate::work::{Counters, Single};

pub(super) fn run(bench: &Bench, section: &mut Section) {
    let stage = bench.stage();
    let echo = stage.baseline(Baseline::Echo);
    let least = stage.baseline(Baseline::IncrBehind);
    let service = stage.service(Path::Redis, "", &[]);
    let bare = Single::unchecked(Counters::in_turn(1));
    let hot = || Single::new(Counters::in_turn(1), false);
    let mut contestants = [
        Contestant::baseline(&stage, &echo, bare),
        Contestant::baseline(&stage, &least, hot()),
        Contestant::service(&stage, &service, hot()),
    ];
    bench.contest(section, &mut contestants);
    let [bare, least, ours] = contestants;
    section.rows.push(bare.row("bare echo"));
    section.rows.push(least.row(LEAST).per(least.ratio_to(&bare), "echo"));
    let row = ours.row("one hot counter").per(ours.ratio_to(&bare), "echo");
    section.rows.push(row.reach(Reach::AtLeast(0.5)));
    section.rows.extend(ours.latencies("one hot counter"));
}
