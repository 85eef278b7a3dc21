//! From full rate down: how far the journal falls behind, what memory a service takes, and what
//! latency costs which rate.

use std::time::Duration;

use tokio::time::{Instant, interval};

use super::Bench;
use crate::client::Connection;
use crate::load::{Load, Measured, Shared};
use crate::pace::Pace;
use crate::report::{Plot, Reach, Row, Section, figure};
use crate::stage::{Path, Served, metric, resident_mb};
use crate::work::{Counters, Single};

/// How much longer than other figures full rate is held.
const LONGER: u32 = 4;

/// Time between two looks at the journal.
const LOOK_PERIOD: Duration = Duration::from_millis(200);

/// Parts of the highest rate, in percent, at which latency is measured.
const STEPS: [u32; 6] = [10, 25, 50, 65, 80, 90];

/// The step whose latency is judged.
const HALF: u32 = 50;

/// How far behind its answers a service's journal was, in seconds, look by look.
struct Lags(Vec<f64>);

pub(super) fn run(bench: &Bench, section: &mut Section) {
    let stage = bench.stage();
    let service = stage.service(Path::Redis, "fast", &[]);
    let work = Single::new(Counters::in_turn(1), false);
    let work: Shared = std::rc::Rc::new(std::cell::RefCell::new(work));
    let full = Bench { measured: bench.measured * LONGER, ..bench.clone() };
    let load = full.load(Pace::Closed, vec![service.address]);
    let (measured, lags) = load.run(&work, watch(&service, &load));
    section.judge(&measured);
    let full_mb = resident_mb(service.id()).unwrap_or_default();
    let rate = measured.rate();
    let seconds = load.measured.as_secs_f64();
    let rows = of_full_rate(&measured, lags, full_mb, seconds, section);
    section.rows.extend(rows);

    let mut lines = [50.0, 99.0].map(|percent| (percent, Vec::new()));
    for percent in STEPS {
        let open = bench.open(rate * f64::from(percent) / 100.0);
        let load = bench.load(open, vec![service.address]);
        let (measured, ()) = load.run(&work, async {});
        section.judge(&measured);
        for (line, points) in &mut lines {
            points.push((measured.rate_asked(), measured.latencies.percentile_ms(*line)));
        }
        let p99_ms = measured.latencies.percentile_ms(99.0);
        let [asked, answered] = [measured.rate_asked(), measured.rate()].map(figure);
        let note = format!("asked {asked}/s, answered {answered}/s; {}", measured.repeats());
        let row = Row::new(format!("p99 at {percent} % of the highest rate"), p99_ms, "ms");
        let row = row.note(note);
        section.rows.push(if percent == HALF { row.reach(Reach::AtMost(5.0)) } else { row });
    }
    section.plots.push(Plot {
        file: "latency",
        title: "Latency against load, requests started at fixed times",
        x: "numbers per second, asked",
        y: "ms",
        is_x_log: false,
        lines: lines.map(|(percent, points)| (format!("p{percent}"), points)).into(),
    });
    section.breaches.extend(service.complaints(&stage, &*work.borrow()));
}

fn of_full_rate(
    measured: &Measured,
    lags: Result<Lags, String>,
    full_mb: f64,
    seconds: f64,
    section: &mut Section,
) -> Vec<Row> {
    let mut rows = vec![
        Row::new(format!("highest rate, held for {seconds:.0} s"), measured.rate(), "/s")
            .note(measured.repeats()),
    ];
    match lags {
        Ok(lags) => {
            let row = Row::new("journal behind at the highest rate, at most", lags.most(), "s");
            let note = format!("grows by {:+.3} s per second", lags.growth(seconds));
            rows.push(row.reach(Reach::AtMost(1.0)).note(note));
        }
        Err(complaint) => section.breaches.push(complaint),
    }
    let row = Row::new("memory after the highest rate", full_mb, "MiB");
    rows.push(row.reach(Reach::AtMost(500.0)));
    rows
}

/// Asks a service how far its journal is behind, while a load runs and counts.
async fn watch(service: &Served, load: &Load) -> Result<Lags, String> {
    let mut connection = Connection::new(service.address);
    let counts = Instant::now() + load.warm_up;
    let end = counts + load.measured;
    let mut ticks = interval(LOOK_PERIOD);
    let mut lags = Vec::new();
    while ticks.tick().await < end {
        let lag_s = metric(&mut connection, "numerator_journal_lag_seconds").await?;
        if Instant::now() >= counts {
            lags.push(lag_s);
        }
    }
    Ok(Lags(lags))
}

impl Lags {
    fn most(&self) -> f64 {
        self.0.iter().copied().fold(0.0, f64::max)
    }

    /// By how much it rises in a second: the mean of the last third against that of the first.
    fn growth(&self, seconds: f64) -> f64 {
        let third = self.0.len() / 3;
        if third == 0 {
            return 0.0;
        }
        #[expect(clippy::cast_precision_loss, reason = "some hundred looks")]
        let mean = |lags: &[f64]| lags.iter().sum::<f64>() / lags.len() as f64;
        let rise = mean(&self.0[self.0.len() - third..]) - mean(&self.0[..third]);
        rise / (seconds * 2.0 / 3.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lag_that_rises_is_told_from_one_that_stands() {
        let rising = Lags((0..90).map(|i| f64::from(i) * 0.1).collect());
        assert!((rising.growth(9.0) - 1.0).abs() < 1e-9, "{}", rising.growth(9.0));
        let standing = Lags(vec![0.4; 90]);
        assert!(standing.growth(9.0).abs() < 1e-9);
        assert!((standing.most() - 0.4).abs() < 1e-9);
        assert!(Lags(Vec::new()).growth(9.0).abs() < 1e-9);
    }
}
