//! From full rate down: how far the journal falls behind, what memory a service takes, and what
//! latency costs which rate.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::{Instant, interval};

use super::Bench;
use super::contest::{Contestant, LEAST};
use crate::baselines::Baseline;
use crate::client::Connection;
use crate::lags::Lags;
use crate::load::{Load, Measured, Shared};
use crate::pace::Pace;
use crate::report::{Plot, Reach, Row, Section, figure};
use crate::stage::{Path, Served, Stage, resident_peak_mb};
use crate::work::{Counters, Single};

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

/// The highest rate and what is asked below it, in numbers per second.
#[derive(Default)]
struct Curve {
    p50: Vec<(f64, f64)>,
    p99: Vec<(f64, f64)>,
    answered: Vec<(f64, f64)>,
    asked: Vec<(f64, f64)>,
}

pub(super) fn run(bench: &Bench, section: &mut Section) {
    let stage = bench.stage();
    let service = stage.service(Path::Redis, "", &[]);
    let work: Shared = Rc::new(RefCell::new(Single::new(Counters::in_turn(1), false)));
    let highest = hold(bench, &service, &work, section);

    let mut curve = Curve::default();
    for percent in STEPS.into_iter().chain([OVER]) {
        let rate = highest * f64::from(percent) / 100.0;
        let open = bench.open(rate);
        if percent == HALF {
            let [p50, p99] = judge(bench, &stage, &open, section);
            curve.p50.push((rate, p50));
            curve.p99.push((rate, p99));
            continue;
        }
        let load = bench.load(open, vec![service.address]);
        let (measured, ()) = load.run(&work, async {});
        section.judge(&measured);
        let (asked, answered) = (measured.rate_asked(), measured.rate());
        curve.asked.push((asked, asked));
        curve.answered.push((asked, answered));
        section.rows.push(if percent == OVER {
            let what = format!("answered at {percent} % of the highest rate");
            Row::new(what, answered, "/s").note(asked_and_answered(&measured))
        } else {
            curve.p50.push((asked, measured.latencies.percentile_ms(50.0)));
            curve.p99.push((asked, measured.latencies.percentile_ms(99.0)));
            latency(percent, &measured)
        });
    }
    section.plots.extend(curve.plots());
    section.breaches.extend(service.complaints(&stage, &*work.borrow()));
}

/// Latency at half of the highest rate, beside the least that remembers every number; p50 and p99.
fn judge(bench: &Bench, stage: &Stage, open: &Pace, section: &mut Section) -> [f64; 2] {
    let service = stage.service(Path::Redis, "", &[]);
    let behind = stage.baseline(Baseline::IncrBehind);
    let work = || Single::new(Counters::in_turn(1), false);
    let mut contestants = [
        Contestant::service(stage, &service, work()),
        Contestant::baseline(stage, &behind, work()),
    ];
    bench.contest_at(open, section, &mut contestants);
    let [ours, least] = contestants;
    let p99_ms = ours.percentile_ms(99.0);
    let row = Row::new(format!("p99 at {HALF} % of the highest rate"), p99_ms, "ms");
    section.rows.push(row.reach(Reach::AtMost(5.0)).note(ours.asked_and_answered()));
    let what = format!("{LEAST}, p99 at that rate");
    section.rows.push(Row::new(what, least.percentile_ms(99.0), "ms"));
    [ours.percentile_ms(50.0), p99_ms]
}

/// Holds full rate; numbers per second.
fn hold(bench: &Bench, service: &Served, work: &Shared, section: &mut Section) -> f64 {
    let held = if bench.is_smoke { bench.measured } else { bench.measured.max(HELD) };
    let full = Bench { measured: held, ..bench.clone() };
    let load = full.load(Pace::Closed, vec![service.address]);
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

fn latency(percent: u32, measured: &Measured) -> Row {
    let p99_ms = measured.latencies.percentile_ms(99.0);
    let row = Row::new(format!("p99 at {percent} % of the highest rate"), p99_ms, "ms");
    row.note(asked_and_answered(measured))
}

fn asked_and_answered(measured: &Measured) -> String {
    let [asked, answered] = [measured.rate_asked(), measured.rate()].map(figure);
    format!("asked {asked}/s, answered {answered}/s; {}", measured.repeats())
}

impl Curve {
    fn plots(self) -> [Plot; 2] {
        let plot = |file, title, y, lines: [(&str, Vec<(f64, f64)>); 2]| Plot {
            file,
            title,
            x: "numbers per second, asked",
            y,
            is_x_log: false,
            lines: lines.map(|(name, points)| (name.to_owned(), points)).into(),
        };
        let latencies = [("p50", self.p50), ("p99", self.p99)];
        let rates = [("answered", self.answered), ("asked", self.asked)];
        let latency = "Latency against load, requests started at fixed times";
        let throughput = "Throughput against load, requests started at fixed times";
        [
            plot("latency", latency, "ms", latencies),
            plot("throughput", throughput, "numbers per second, answered", rates),
        ]
    }
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
