//! `loadtest soak`: a steady rate for a long time, and whether anything grows that should not.

use std::cell::RefCell;
use std::io::{self, Write as _};
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use clap::Args;
use tokio::time::{Instant, interval};

use crate::client::Connection;
use crate::load::{Load, Shared};
use crate::pace::Pace;
use crate::program;
use crate::report::{Reach, Row, Section, figure, table};
use crate::stage::{Path, Served, Stage, metric, resident_mb};
use crate::work::{Counters, Single};

/// Looks in all, however long it takes.
const LOOKS: u32 = 20;

/// Most of the memory at the half that may be added by the end.
const GROWTH_MAX: f64 = 1.2;

/// Numbers per second that may be asked for.
const RATES: RangeInclusive<f64> = 0.1..=1e6;

/// Longest time.
const LENGTH_MAX: Duration = Duration::from_secs(1_000 * 3_600);

/// How long, and how hard.
#[derive(Clone, Debug, Args)]
pub(crate) struct SoakArgs {
    /// How long: a number and `s`, `m` or `h`
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = time)]
    length: Duration,
    /// Numbers per second, 0.1 to 1,000,000
    #[arg(long, default_value_t = 2_000.0, value_parser = rate, allow_negative_numbers = true)]
    rate: f64,
    /// Counters that they are taken from
    #[arg(long, default_value_t = 1_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    counters: u32,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| RATES.contains(rate));
    rate.ok_or_else(|| "0.1 to 1000000 numbers per second".to_owned())
}

fn time(text: &str) -> Result<Duration, String> {
    let unit = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (count, unit) = text.split_at(unit);
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        _ => return Err("a number and s, m or h".to_owned()),
    };
    let count: u64 = count.parse().ok().filter(|count| *count > 0).ok_or("a number above 0")?;
    let length = count.checked_mul(seconds).map(Duration::from_secs);
    length.filter(|length| *length <= LENGTH_MAX).ok_or_else(|| "at most 1000h".to_owned())
}

/// What a look shows.
#[derive(Clone, Copy, Debug)]
struct Look {
    seconds: f64,
    lag_s: f64,
    service_mb: f64,
    redis_mb: f64,
}

/// Runs and prints.
pub(crate) fn run(args: &SoakArgs) -> ExitCode {
    let stage = Stage::start(&program(&[]), Duration::ZERO);
    let service = stage.service(Path::Redis, "fast", &[]);
    let counters = Counters::at_random(args.counters as usize);
    let work: Shared = Rc::new(RefCell::new(Single::new(counters, false)));
    let load = Load {
        addresses: vec![service.address],
        connections: 64,
        pace: Pace::open(args.rate, args.length),
        warm_up: Duration::ZERO,
        measured: args.length,
    };
    let (measured, looks) = load.run(&work, watch(&stage, &service, args.length));
    let mut section = Section { name: "soak", ..Section::default() };
    section.judge(&measured);
    section.breaches.extend(service.complaints(&stage, &*work.borrow()));
    section.breaches.extend(service.end_verified().err());
    section.rows.push(Row::new("asked", measured.rate_asked(), "/s"));
    section.rows.push(Row::new("answered", measured.rate(), "/s").note(measured.repeats()));
    for percent in [50.0, 99.0, 99.9] {
        let latency_ms = measured.latencies.percentile_ms(percent);
        section.rows.push(Row::new(format!("p{percent}"), latency_ms, "ms"));
    }
    match looks {
        Ok(looks) => section.rows.extend(rows(&looks)),
        Err(complaint) => section.breaches.push(complaint),
    }
    let mut out = io::stdout();
    let _ = write!(out, "{}", table(&section.rows));
    for breach in &section.breaches {
        let _ = writeln!(out, "BREACH: {breach}");
    }
    if section.breaches.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Looks at memory and lag from time to time, and tells a person.
async fn watch(stage: &Stage, served: &Served, length: Duration) -> Result<Vec<Look>, String> {
    let begun = Instant::now();
    let mut connection = Connection::new(served.address);
    let mut ticks = interval(length / LOOKS);
    let mut looks = Vec::new();
    for _ in 0..LOOKS {
        ticks.tick().await;
        let lag_s = metric(&mut connection, "numerator_journal_lag_seconds").await?;
        let look = Look {
            seconds: begun.elapsed().as_secs_f64(),
            lag_s,
            service_mb: resident_mb(served.id()).unwrap_or_default(),
            redis_mb: resident_mb(stage.redis().id()).unwrap_or_default(),
        };
        let [seconds, lag_s, service, redis] =
            [look.seconds, look.lag_s, look.service_mb, look.redis_mb].map(figure);
        let line = format!("journal behind by {lag_s} s, service {service} MiB, Redis {redis} MiB");
        let _ = writeln!(io::stderr(), "{seconds} s: {line}");
        looks.push(look);
    }
    Ok(looks)
}

fn rows(looks: &[Look]) -> Vec<Row> {
    let (Some(half), Some(last)) = (looks.get(looks.len() / 2), looks.last()) else {
        return Vec::new();
    };
    let most_s = looks.iter().map(|look| look.lag_s).fold(0.0, f64::max);
    let growth = last.service_mb / half.service_mb;
    vec![
        Row::new("journal behind, at most", most_s, "s").reach(Reach::AtMost(1.0)),
        Row::new("memory of the service at the end", last.service_mb, "MiB")
            .per(growth, "at the half")
            .reach(Reach::AtMost(GROWTH_MAX)),
        Row::new("memory of Redis at the end", last.redis_mb, "MiB")
            .note("records stay for idempotency.window"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(time("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(time("1h"), Ok(Duration::from_secs(3_600)));
        for wrong in ["", "5", "h", "0s", "1d", "1.5h", "1001h", "99999999999999999999h"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rates_are_above_0_and_have_an_end() {
        assert_eq!(rate("0.1"), Ok(0.1));
        assert_eq!(rate("2000"), Ok(2_000.0));
        for wrong in ["", "0", "-1", "-0", "1e-300", "1e7", "inf", "NaN", "x"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }
}
