//! Full rate for a minute: how far the journal falls behind, and what memory a service takes; and
//! the latency at a rate far below it, next to the minimum that remembers every number.

use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

use super::Bench;
use super::contest::{Contestant, LEAST};
use crate::baselines::Baseline;
use crate::client::Connection;
use crate::lags::Lags;
use crate::load::{Load, Shared, shared};
use crate::pace::Pace;
use crate::report::{Goal, Row, Section};
use crate::stage::{Path, Served, Stage, resident_peak_mb};
use crate::work::{Ask, Numbers};

/// How long full rate is held: memory and lag grow slowly.
const HELD: Duration = Duration::from_secs(60);

/// Requests per second for the latency: always the same, because half of the highest rate would
/// move with every gain.
const RATE: f64 = 12_500.0;

/// Time between two samples of the journal: a service updates its metrics once a second.
const POLL_PERIOD: Duration = Duration::from_secs(1);

pub(super) fn run(bench: &Bench, section: &mut Section) {
    let stage = Stage::start(bench.placement);
    let service = stage.service(Path::Redis, "", &[]);
    let work = shared(Numbers::hot(Ask::One));
    hold(bench, &service, &work, section);
    section.breaches.extend(service.complaints(&stage, &*work.borrow()));
    let mut contestants = [
        Contestant::hot(&stage, Path::Redis, ""),
        Contestant::baseline(&stage, Baseline::IncrBehind),
    ];
    bench.contest(&bench.open(RATE), section, &mut contestants);
    let [ours, least] = &contestants;
    let row = Row::new(format!("p99 at {RATE} requests/s"), ours.percentile_ms(99.0), "ms");
    section.rows.push(row.goal(Goal::AtMost(5.0)).note(ours.asked_and_answered()));
    let what = format!("{LEAST}, p99 at that rate");
    section.rows.push(Row::new(what, least.percentile_ms(99.0), "ms"));
}

/// Holds full rate.
fn hold(bench: &Bench, service: &Served, work: &Shared, section: &mut Section) {
    let held = if bench.is_smoke { bench.measured } else { bench.measured.max(HELD) };
    let full = Bench { measured: held, ..bench.clone() };
    let load = full.load(service.address, Pace::Closed);
    let (measured, lags) = load.run(work, watch(service, &load));
    section.judge(&measured);
    let seconds = held.as_secs_f64();
    let row = Row::new(format!("highest rate, held for {seconds:.0} s"), measured.rate(), "/s");
    section.rows.push(row.note(measured.repeats()));
    match lags {
        Ok(lags) => section.rows.extend(lags.rows("at the highest rate", held)),
        Err(complaint) => section.breaches.push(complaint),
    }
    let peak_mb = resident_peak_mb(service.id()).unwrap_or_default();
    let row = Row::new("memory at the highest rate, at most", peak_mb, "MiB");
    section.rows.push(row.goal(Goal::AtMost(500.0)));
}

/// Asks a service how far its journal is behind, while a load runs and counts.
pub(super) async fn watch(service: &Served, load: &Load) -> Result<Lags, String> {
    let mut connection = Connection::new(service.address);
    let counts = Instant::now() + load.warm_up;
    let end = counts + load.measured;
    let mut ticks = interval(POLL_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut lags = Lags::default();
    while ticks.tick().await < end {
        if Instant::now() >= counts {
            lags.look(&mut connection).await?;
        }
    }
    Ok(lags)
}
