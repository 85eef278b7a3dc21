//! `loadtest soak`: a steady rate for a long time, and whether anything grows that should not.

mod looks;

use std::cell::RefCell;
use std::io::{self, Write as _};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use clap::Args;
use numerator::config::DurationText;

use crate::load::{Load, Shared};
use crate::pace::Pace;
use crate::program;
use crate::report::machine::Circumstances;
use crate::report::{Row, Section, page, table};
use crate::stage::{Path, Stage};
use crate::work::{Counters, Single};
use looks::Looks;

/// Numbers per second that may be asked for.
const RATES: RangeInclusive<f64> = 0.1..=1e6;

/// Windows that the service takes.
const WINDOWS: RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(400 * 86_400);

/// Longest time.
const LENGTH_MAX: Duration = Duration::from_secs(1_000 * 3_600);

/// From this length on it fails when something grows; in less nothing can be told.
const JUDGED_MIN: Duration = Duration::from_secs(60);

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
    /// How long idempotency records stay: `idempotency.window`
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = window)]
    window: DurationText,
    /// Write the figures into the page of this folder's name, `DIR.md`
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| RATES.contains(rate));
    rate.ok_or_else(|| "0.1 to 1000000 numbers per second".to_owned())
}

fn window(text: &str) -> Result<DurationText, String> {
    let window: DurationText = text.parse()?;
    let is_allowed = WINDOWS.contains(&window.0);
    if is_allowed { Ok(window) } else { Err("1s to 400d".to_owned()) }
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

/// Runs and prints.
pub(crate) fn run(args: &SoakArgs) -> ExitCode {
    let program = program(&[]);
    let circumstances = Circumstances::begin(&program);
    let mut section = hold(args, &Stage::start(&program, Duration::ZERO));
    // What grows is told on the page; what is wrong leaves nothing to be told.
    let is_sound = section.breaches.is_empty();
    if args.length >= JUDGED_MIN {
        section.insist();
    }
    let Circumstances { machine, occasion } = &circumstances;
    let mut out = io::stdout();
    let _ = write!(out, "{machine}\n{occasion}\n\n{}", table(&section.rows));
    for breach in &section.breaches {
        let _ = writeln!(out, "BREACH: {breach}");
    }
    if let Some(folder) = args.write.as_ref().filter(|_| is_sound)
        && let Err(complaint) = page::write(folder, &circumstances, std::slice::from_ref(&section))
    {
        let _ = writeln!(io::stderr(), "{complaint}");
        return ExitCode::FAILURE;
    }
    if section.breaches.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Holds the rate; what was measured.
fn hold(args: &SoakArgs, stage: &Stage) -> Section {
    let window = format!("idempotency.window={}", args.window);
    let service = stage.service(Path::Redis, "", &[&window]);
    let counters = Counters::at_random(args.counters as usize);
    let work: Shared = Rc::new(RefCell::new(Single::new(counters, false)));
    let load = Load {
        addresses: vec![service.address],
        connections: 64,
        pace: Pace::open(args.rate, args.length),
        warm_up: Duration::ZERO,
        measured: args.length,
    };
    let (measured, looks) = load.run(&work, Looks::watch(stage, &service, args.length));
    let mut section = Section { name: "soak", ..Section::default() };
    section.judge(&measured);
    section.breaches.extend(service.complaints(stage, &*work.borrow()));
    section.breaches.extend(service.end_verified().err());
    section.rows.push(Row::new("asked", measured.rate_asked(), "/s"));
    let held = format!("for {} s; {}", args.length.as_secs(), measured.repeats());
    section.rows.push(Row::new("answered", measured.rate(), "/s").note(held));
    for percent in [50.0, 99.0, 99.9] {
        let latency_ms = measured.latencies.percentile_ms(percent);
        section.rows.push(Row::new(format!("p{percent}"), latency_ms, "ms"));
    }
    match looks {
        Ok(looks) => section.rows.extend(looks.rows(measured.rate(), args.counters, args.window)),
        Err(complaint) => section.breaches.push(complaint),
    }
    section
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
    fn windows_are_those_that_the_service_takes() {
        assert_eq!(window("24h").map(|window| window.0), Ok(Duration::from_secs(86_400)));
        for wrong in ["999ms", "401d", "5", ""] {
            assert!(window(wrong).is_err(), "{wrong}");
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
