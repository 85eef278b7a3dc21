//! What it costs that a document is numbered once, for ever: the journal is asked for each one that
//! Redis does not know, one question per flight, beside the same series without it.

use super::Bench;
use super::contest::Contestant;
use crate::report::Section;
use crate::stage::Path;
use crate::work::{Counters, Single};

/// Requests per second of the latencies.
const RATE: f64 = 100.0;

/// What each pair of series says, first without the question and then with it, and its names.
const PAIRS: [([&str; 2], [&str; 2]); 2] = [
    (
        ["policy = \"fast\"", "policy = \"fast\"\nonce_per_document = true"],
        ["policy fast", "policy fast, once_per_document"],
    ),
    (
        ["policy = \"durable\"\nonce_per_document = false", "policy = \"durable\""],
        ["policy durable, not once_per_document", "policy durable"],
    ),
];

pub(super) fn run(bench: &Bench, section: &mut Section) {
    let stage = bench.stage();
    for (series, names) in PAIRS {
        let services = series.map(|series| stage.service(Path::Redis, series, &[]));
        let hot = || Single::new(Counters::in_turn(1), false);
        let contestant = |served| Contestant::service(&stage, served, hot());
        let mut contestants = services.each_ref().map(contestant);
        bench.contest(section, &mut contestants);
        let [without, with] = &contestants;
        section.rows.push(without.row(names[0]));
        section.rows.push(with.row(names[1]).per(with.ratio_to(without), "without"));

        let services = series.map(|series| stage.service(Path::Redis, series, &[]));
        let contestant = |served| Contestant::service(&stage, served, hot());
        let mut contestants = services.each_ref().map(contestant);
        bench.contest_at(&bench.open(RATE), section, &mut contestants);
        for (contestant, name) in contestants.iter().zip(names) {
            section.rows.extend(contestant.latencies(&format!("{name}, 100 requests/s")).take(2));
        }
    }
}
