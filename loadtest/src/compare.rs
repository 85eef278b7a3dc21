//! `loadtest compare`: every scenario beside its baselines, in one run, on one machine.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use harness::service::Program;
use indicatif::{ProgressBar, ProgressStyle};

use crate::program;
use crate::report::machine::Circumstances;
use crate::report::{Section, page, table};
use crate::scenarios::{Bench, SCENARIOS, Scenario};
use crate::stage::Given;

/// Exit code of a command line that cannot be followed.
const WRONG_USAGE: u8 = 2;

/// Connections of a closed load.
const CONNECTIONS: u16 = 64;

/// Connections of a smoke test, which also runs where the service is slow.
const SMOKE_CONNECTIONS: usize = 8;

/// Rows of the journal of a smoke test.
const SMOKE_ROWS: u64 = 10_000;

/// What is measured, and for how long.
#[derive(Clone, Debug, Args)]
pub(crate) struct CompareArgs {
    /// Only the scenario of this name; may be given several times
    #[arg(long, value_name = "SCENARIO")]
    only: Vec<String>,
    /// Time of one run, in seconds; full rate is held for a minute at least
    #[arg(long, default_value_t = 2.0, value_parser = positive)]
    seconds: f64,
    /// Runs of each rate, of which the median is shown; latency curves and the like are one run
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    runs: u16,
    /// Connections of a load that goes as fast as the answers come
    #[arg(long, default_value_t = CONNECTIONS, value_parser = clap::value_parser!(u16).range(1..))]
    connections: u16,
    /// Each scenario once, for a moment: checks the numbers, and no figure means anything
    #[arg(long, conflicts_with_all = ["seconds", "runs", "connections", "rows", "write"])]
    smoke: bool,
    /// Milliseconds that whatever is sent to or from Redis and PostgreSQL arrives later, each way
    #[arg(long, value_name = "MS", default_value_t = 0)]
    latency: u64,
    /// A Redis to measure on, in the place of its own; keys that are written are removed again
    #[arg(long, value_name = "URL", requires = "database_url", conflicts_with = "latency")]
    redis_url: Option<String>,
    /// A PostgreSQL to measure on likewise; schemas that are made are removed again
    #[arg(long, value_name = "URL", requires = "redis_url", conflicts_with = "latency")]
    database_url: Option<String>,
    /// Rows of the journal in which numbers are looked up
    #[arg(long, default_value_t = 1_000_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1_000..))]
    rows: u64,
    /// Write plots into this folder and tables into the page of its name, `DIR.md`
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
    /// Another executable as the service
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

fn positive(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.1);
    value.ok_or_else(|| "a number of seconds, at least 0.1".to_owned())
}

impl CompareArgs {
    fn bench(&self) -> Bench {
        let this = |path: &PathBuf| Program { path: path.clone(), arguments: Vec::new() };
        let program = self.program.as_ref().map_or_else(|| program(&[]), this);
        let measured = Duration::from_secs_f64(if self.smoke { 0.3 } else { self.seconds });
        Bench {
            program,
            connections: if self.smoke { SMOKE_CONNECTIONS } else { self.connections.into() },
            runs: if self.smoke { 1 } else { self.runs.into() },
            warm_up: measured / 4,
            measured,
            is_smoke: self.smoke,
            latency: Duration::from_millis(self.latency),
            given: self.given(),
            rows: if self.smoke { SMOKE_ROWS } else { self.rows },
        }
    }

    fn scenarios(&self) -> Result<Vec<&'static Scenario>, String> {
        let named = |name: &String| {
            let unknown = || {
                let names: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
                format!("--only {name}: there are the scenarios {}", names.join(", "))
            };
            SCENARIOS.iter().find(|scenario| scenario.name == name).ok_or_else(unknown)
        };
        if self.only.is_empty() {
            let can_run = |scenario: &&Scenario| scenario.takes_given || self.redis_url.is_none();
            return Ok(SCENARIOS.iter().filter(can_run).collect());
        }
        let chosen: Vec<&Scenario> = self.only.iter().map(named).collect::<Result<_, _>>()?;
        match chosen.iter().find(|scenario| !scenario.takes_given) {
            Some(scenario) if self.redis_url.is_some() => {
                Err(format!("--only {}: it needs stores of its own", scenario.name))
            }
            _ => Ok(chosen),
        }
    }

    fn given(&self) -> Option<Given> {
        let redis_url = self.redis_url.clone()?;
        Some(Given { redis_url, database_url: self.database_url.clone()? })
    }
}

/// Measures and prints.
pub(crate) fn run(args: &CompareArgs) -> ExitCode {
    let scenarios = match args.scenarios() {
        Ok(scenarios) => scenarios,
        Err(complaint) => {
            say(&complaint);
            return ExitCode::from(WRONG_USAGE);
        }
    };
    if cfg!(debug_assertions) && !args.smoke {
        say("this is a debug build: its figures say nothing (cargo run --release -p loadtest)");
    }
    let bench = args.bench();
    let circumstances = Circumstances::begin(&bench.program);
    let bar = ProgressBar::new(scenarios.len() as u64);
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} [{elapsed}] {msg}");
    bar.set_style(style.expect("a template that can be read"));
    bar.enable_steady_tick(Duration::from_secs(1));
    let mut sections = Vec::new();
    for scenario in scenarios {
        bar.set_message(format!("{}: {}", scenario.name, scenario.about));
        let mut section = Section { name: scenario.name, ..Section::default() };
        let begun = Instant::now();
        (scenario.run)(&bench, &mut section);
        let seconds = begun.elapsed().as_secs_f64();
        bar.suspend(|| say(&format!("{} took {seconds:.1} s", scenario.name)));
        sections.push(section);
        bar.inc(1);
    }
    bar.finish_and_clear();
    conclude(args, &circumstances, &sections)
}

fn conclude(args: &CompareArgs, circumstances: &Circumstances, sections: &[Section]) -> ExitCode {
    let mut out = io::stdout();
    let Circumstances { machine, occasion } = circumstances;
    let figures = table(sections.iter().flat_map(|section| &section.rows));
    let _ = write!(out, "{machine}\n{occasion}\n\n{figures}");
    let mut is_sound = true;
    for section in sections {
        for breach in &section.breaches {
            is_sound = false;
            let _ = writeln!(out, "BREACH: {}: {breach}", section.name);
        }
    }
    if let Some(folder) = args.write.as_ref().filter(|_| is_sound)
        && let Err(complaint) = page::write(folder, circumstances, sections)
    {
        say(&complaint);
        return ExitCode::FAILURE;
    }
    if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Tells a person how it goes; the report alone goes to stdout.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
