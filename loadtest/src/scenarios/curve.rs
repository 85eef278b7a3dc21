//! From full rate down: how far the journal falls behind, what memory a service takes, and what
//! latency costs which rate.

use std::time::Duration;

use tokio::time::{Instant, interval};

use super::Bench;
use super::contest::{Contestant, LEAST};
use crate::baselines::Baseline;
use crate::client::Connection;
use crate::lags::Lags;
use crate::load::{Load, Measured, Shared, shared};
use crate::pace::Pace;
use crate::report::{Reach, Row, Section, figure};
use crate::stage::{Path, Served, Stage, resident_peak_mb};
use crate::work::{Ask, Numbers};

/// How long full rate is held: memory and lag grow slowly.
const HELD: Duration = Duration::from_secs(60);

/// Time between two looks at the journal.
const LOOK_PERIOD: Duration = Duration::from_millis(200);

/// Parts of the highest rate, in percent, at which latency is measured.
const STEPS: [u32; 6] = [10, 25, 50, 65, 80, 90];

/// The step whose latency is judged, at the median of the runs: one stall of the disk is enough to
/// be one in a hundred of a single run.
const HALF: u32 = 50;

/// More than the highest rate: what is answered then. Latency is that of a queue that grows.
const OVER: u32 = 120;

pub(super) fn run(bench: &Bench, section: &mut Section) {
    let stage = bench.stage();
    let service = stage.service(Path::Redis, "", &[]);
    let work = shared(Numbers::hot(Ask::One));
    let highest = hold(bench, &service, &work, section);
    for percent in STEPS.into_iter().chain([OVER]) {
        let open = bench.open(highest * f64::from(percent) / 100.0);
        if percent == HALF {
            judge(bench, &stage, &open, section);
            continue;
        }
        let load = Load { addresses: vec![service.address], ..bench.load(open) };
        let (measured, ()) = load.run(&work, async {});
        section.judge(&measured);
        let row = if percent == OVER {
            let what = format!("answered at {percent} % of the highest rate");
            Row::new(what, measured.rate(), "/s")
        } else {
            let what = format!("p99 at {percent} % of the highest rate");
            Row::new(what, measured.latencies.percentile_ms(99.0), "ms")
        };
        section.rows.push(row.note(asked_and_answered(&measured)));
    }
    section.breaches.extend(service.complaints(&stage, &*work.borrow()));
}

/// Latency at half of the highest rate, beside the least that remembers every number.
fn judge(bench: &Bench, stage: &Stage, open: &Pace, section: &mut Section) {
    let mut contestants = [
        Contestant::hot(stage, Path::Redis, ""),
        Contestant::baseline(stage, Baseline::IncrBehind),
    ];
    bench.contest_at(open, section, &mut contestants);
    let [ours, least] = &contestants;
    let what = format!("p99 at {HALF} % of the highest rate");
    let row = Row::new(what, ours.percentile_ms(99.0), "ms");
    section.rows.push(row.reach(Reach::AtMost(5.0)).note(ours.asked_and_answered()));
    let what = format!("{LEAST}, p99 at that rate");
    section.rows.push(Row::new(what, least.percentile_ms(99.0), "ms"));
}

/// Holds full rate; numbers per second.
fn hold(bench: &Bench, service: &Served, work: &Shared, section: &mut Section) -> f64 {
    let held = if bench.is_smoke { bench.measured } else { bench.measured.max(HELD) };
    let full = Bench { measured: held, ..bench.clone() };
    let load = Load { addresses: vec![service.address], ..full.load(Pace::Closed) };
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
    section.rows.push(row.reach(Reach::AtMost(500.0)));
    measured.rate()
}

fn asked_and_answered(measured: &Measured) -> String {
    let [asked, answered] = [measured.rate_asked(), measured.rate()].map(figure);
    format!("asked {asked}/s, answered {answered}/s; {}", measured.repeats())
}

/// Asks a service how far its journal is behind, while a load runs and counts.
async fn watch(service: &Served, load: &Load) -> Result<Lags, String> {
    let mut connection = Connection::new(service.address);
    let counts = Instant::now() + load.warm_up;
    let end = counts + load.measured;
    let mut ticks = interval(LOOK_PERIOD);
    let mut lags = Lags::default();
    while ticks.tick().await < end {
        if Instant::now() >= counts {
            lags.look(&mut connection).await?;
        }
    }
    Ok(lags)
}
