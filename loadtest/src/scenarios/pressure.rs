//! A ledger that stops while numbers are asked for: the service refuses past its bound, and loses
//! nothing.

use std::time::Duration;

use tokio::time::sleep;

use super::Bench;
use crate::load::{Load, shared};
use crate::pace::Pace;
use crate::report::{Row, Section};
use crate::stage::{Path, Stage};
use crate::work::{Ask, Numbers};

/// Records that may wait: few, so that the bound is met soon, also where the service is slow.
const QUEUE: usize = 2_000;
const QUEUE_SMOKE: usize = 50;

/// How long the ledger is away, at least.
const AWAY_MIN: Duration = Duration::from_secs(2);

pub(super) fn run(bench: &Bench, section: &mut Section) {
    let stage = Stage::start_linked(bench.latency);
    let queue = if bench.is_smoke { QUEUE_SMOKE } else { QUEUE };
    let settings =
        ["queue_max", "batch_rows_max"].map(|setting| format!("journal.{setting}={queue}"));
    let service = stage.service(Path::Redis, "", &settings.each_ref().map(String::as_str));
    let work = shared(Numbers::hot(Ask::One));
    let away = bench.measured.max(AWAY_MIN);
    let longer = Bench { measured: away * 2, ..bench.clone() };
    let load = Load { addresses: vec![service.address], ..longer.load(Pace::Closed) };
    let link = stage.link_to_postgres();
    let stop = async {
        sleep(load.warm_up + away / 2).await;
        link.swallow_all();
        sleep(away).await;
        link.forward();
        // Whoever forwards again does so without delay.
        link.delay(bench.latency);
    };
    let (measured, ()) = load.run(&work, stop);
    section.judge(&measured);
    let refused = measured.refused();
    if refused == 0 {
        section.breaches.push("the ledger stood still and nobody was refused".to_owned());
    }
    section.breaches.extend(service.complaints(&stage, &*work.borrow()));
    section.breaches.extend(service.end_verified().err());
    #[expect(clippy::cast_precision_loss, reason = "a count of one run")]
    let refused = refused as f64;
    let row = Row::new("ledger away for half of the time: refusals", refused, "");
    section.rows.push(row.note(format!(
        "all asked again until answered, {} broken connections; numbers contiguous, all journaled, \
         verify clean",
        measured.broken
    )));
}
