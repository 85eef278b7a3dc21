//! `loadtest soak`: a steady rate for a long time, and whether anything grows that should not.

mod looks;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use clap::Args;
use numerator::config::DurationText;

use crate::load::{Load, shared};
use crate::pace::Pace;
use crate::report::machine::Circumstances;
use crate::report::{Row, Section, conclude};
use crate::stage::{Placement, Stage};
use crate::work::{Ask, Counters, Numbers};
use looks::Looks;

/// Counters that numbers are taken from.
const COUNTERS: u32 = 1_000;

/// Connections that take gapless numbers.
const GAPLESS_CONNECTIONS: usize = 4;

/// How often it may last that long, and windows that the service accepts.
const TIMES: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(400 * 24);

/// From this length on growth is a failure; a shorter run shows nothing.
const JUDGED_MIN: Duration = Duration::from_secs(60);

/// How long, and how hard.
#[derive(Clone, Debug, Args)]
pub(crate) struct SoakArgs {
    /// How long, up to 400d
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = time)]
    length: DurationText,
    /// Numbers per second
    #[arg(long, default_value_t = 2_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: u32,
    /// Gapless numbers per second beside them; 0 for none
    #[arg(long, default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=10_000))]
    gapless: u32,
    /// How long idempotency records stay: `idempotency.window`
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = time)]
    window: DurationText,
    /// Write the figures into this page; its ending, `.md`, may be left out
    #[arg(long, value_name = "PAGE")]
    write: Option<PathBuf>,
}

fn time(text: &str) -> Result<DurationText, String> {
    let time: DurationText = text.parse()?;
    let (least, most) = (DurationText(*TIMES.start()), DurationText(*TIMES.end()));
    TIMES.contains(&time.0).then_some(time).ok_or_else(|| format!("{least} to {most}"))
}

/// Runs and prints.
pub(crate) fn run(args: &SoakArgs) -> ExitCode {
    let circumstances = Circumstances::begin();
    let mut section = hold(args, &Stage::start(Placement::Free));
    section.is_judged = args.length.0 >= JUDGED_MIN;
    conclude(&circumstances, &[section], args.write.as_deref())
}

/// Holds the rate; what was measured.
fn hold(args: &SoakArgs, stage: &Stage) -> Section {
    let window = format!("idempotency.window={}", args.window);
    let service = stage.mixed_service(&[&window]);
    let counters = Counters::at_random(COUNTERS as usize);
    let work = shared(Numbers::new(Ask::One, counters));
    let gapless_work = shared(Numbers::new(Ask::One, Counters::gapless()));
    let length = args.length.0;
    let load = |connections, rate: u32| Load {
        address: service.address,
        connections,
        pace: Pace::open(rate.into(), length),
        warm_up: Duration::ZERO,
        measured: length,
    };
    let gapless = load(if args.gapless > 0 { GAPLESS_CONNECTIONS } else { 0 }, args.gapless.max(1));
    let beside = async {
        let gapless = gapless.carry_out(Rc::clone(&gapless_work));
        tokio::join!(gapless, Looks::watch(stage, &service, length))
    };
    let (measured, (of_gapless, looks)) = load(64, args.rate).run(&work, beside);
    let mut section = Section { name: "soak", ..Section::default() };
    section.judge(&measured);
    if args.gapless > 0 {
        section.judge(&of_gapless);
    }
    let (work, gapless_work) = (work.borrow(), gapless_work.borrow());
    section.breaches.extend(work.findings().into_iter().chain(gapless_work.findings()));
    let numbers = work.received() + gapless_work.received();
    section.breaches.extend(service.await_journal(stage, numbers).err());
    let (is_clean, report) = service.end().verify();
    section.breaches.extend((!is_clean).then(|| format!("verify is not clean: {report}")));
    section.rows.push(Row::new("asked", measured.rate_asked(), "/s"));
    let held = format!("for {} s; {}", length.as_secs(), measured.repeats());
    section.rows.push(Row::new("answered", measured.rate(), "/s").note(held));
    for percent in [50.0, 99.0, 99.9] {
        let latency_ms = measured.latencies.percentile_ms(percent);
        section.rows.push(Row::new(format!("p{percent}"), latency_ms, "ms"));
    }
    if args.gapless > 0 {
        let (rate, held) = (of_gapless.rate(), of_gapless.repeats());
        section.rows.push(Row::new("gapless beside them, answered", rate, "/s").note(held));
        let latency_ms = of_gapless.latencies.percentile_ms(99.0);
        section.rows.push(Row::new("gapless beside them, p99", latency_ms, "ms"));
    }
    match looks {
        Ok(looks) => section.rows.extend(looks.rows(measured.rate(), COUNTERS, args.window)),
        Err(complaint) => section.breaches.push(complaint),
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_a_second_to_four_hundred_days() {
        assert_eq!(time("90s").map(|time| time.0), Ok(Duration::from_secs(90)));
        assert_eq!(time("400d").map(|time| time.0), Ok(*TIMES.end()));
        for wrong in ["", "5", "h", "0s", "999ms", "1.5h", "401d", "99999999999999999999h"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
