//! The hot counter under what callers and operators may ask for besides: keys, `durable`, a second
//! process.

use super::Bench;
use super::contest::Contestant;
use crate::report::Section;
use crate::stage::Path;
use crate::work::{Counters, Single};

/// A durable series that asks the journal for no document: what that costs, `once` tells.
const DURABLE: &str = "policy = \"durable\"\nonce_per_document = false";

pub(super) fn run(bench: &Bench, section: &mut Section) {
    let stage = bench.stage();
    let service = |series| stage.service(Path::Redis, series, &[]);
    let (keyed, durable, first) = (service(""), service(DURABLE), service(""));
    let second = first.another();
    let hot = |has_key| Single::new(Counters::in_turn(1), has_key);
    let mut contestants = [
        Contestant::service(&stage, &keyed, hot(true)),
        Contestant::service(&stage, &durable, hot(false)),
        Contestant::service(&stage, &first, hot(false)).and(&second),
    ];
    bench.contest(section, &mut contestants);
    let names = [
        "with Idempotency-Key",
        "policy durable, not once_per_document",
        "two processes of the service",
    ];
    for (contestant, name) in contestants.iter().zip(names) {
        section.rows.push(contestant.row(name));
        section.rows.extend(contestant.latencies(name).nth(1));
    }
}
