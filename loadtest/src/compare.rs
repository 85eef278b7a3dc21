//! `loadtest compare`: every scenario and its baselines, in one run, on one machine.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::PossibleValuesParser;
use indicatif::{ProgressBar, ProgressStyle};

use crate::report::machine::Circumstances;
use crate::report::{Section, conclude};
use crate::say;
use crate::scenarios::{Bench, SCENARIOS, Scenario};
use crate::stage::Placement;

/// Connections of a smoke test, which also runs where the service is slow.
const SMOKE_CONNECTIONS: u16 = 8;

/// Rows of the journal of a smoke test; of fewer, those of a minute are best found by a full read.
const SMOKE_ROWS: u64 = 100_000;

/// Time of one run of a smoke test.
const SMOKE_TIME: Duration = Duration::from_millis(300);

/// What is measured, and for how long.
#[derive(Clone, Debug, Args)]
pub(crate) struct CompareArgs {
    /// Only this scenario; may be given several times
    #[arg(long, value_name = "SCENARIO")]
    #[arg(value_parser = PossibleValuesParser::new(SCENARIOS.map(|scenario| scenario.name)))]
    only: Vec<String>,
    /// Time of one run, in seconds; full rate is held for a minute at least
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Runs of each rate, of which the median is shown; latency curves and the like are one run
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    runs: u16,
    /// Connections of a load that goes as fast as the answers come
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    connections: u16,
    /// Each scenario once, for a moment: checks the numbers, and no figure means anything
    #[arg(long, conflicts_with_all = ["seconds", "runs", "connections", "rows", "write"])]
    smoke: bool,
    /// Rows of the journal in which numbers are looked up, and of the one that is archived
    #[arg(long, default_value_t = 1_000_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1_000..))]
    rows: u64,
    /// Give the first core to what answers, the others to the stores and the generator
    #[arg(long)]
    placed: bool,
    /// An earlier build of this program: `hot` measures its service in turn with this one's
    #[arg(long, value_name = "PROGRAM")]
    before: Option<PathBuf>,
    /// Write the tables into this page; its ending, `.md`, may be left out
    #[arg(long, value_name = "PAGE")]
    write: Option<PathBuf>,
}

impl CompareArgs {
    fn bench(&self) -> Bench {
        let usual = Bench {
            connections: self.connections.into(),
            runs: self.runs.into(),
            warm_up: Duration::from_secs(self.seconds) / 4,
            measured: Duration::from_secs(self.seconds),
            is_smoke: self.smoke,
            rows: self.rows,
            placement: if self.placed { Placement::Placed } else { Placement::Free },
            before: self.before.clone(),
        };
        if !self.smoke {
            return usual;
        }
        let (warm_up, measured) = (SMOKE_TIME / 4, SMOKE_TIME);
        let (connections, rows) = (SMOKE_CONNECTIONS.into(), SMOKE_ROWS);
        Bench { connections, runs: 1, warm_up, measured, rows, ..usual }
    }
}

/// Measures and prints.
pub(crate) fn run(args: &CompareArgs) -> ExitCode {
    let is_wanted = |scenario: &Scenario| {
        args.only.is_empty() || args.only.iter().any(|name| name == scenario.name)
    };
    let scenarios: Vec<Scenario> = SCENARIOS.into_iter().filter(is_wanted).collect();
    if args.before.is_some() && !scenarios.iter().any(|scenario| scenario.name == "hot") {
        say("--before: only `hot` measures another build; add --only hot");
        return ExitCode::from(2);
    }
    if cfg!(debug_assertions) && !args.smoke {
        say(
            "this is a debug build: its figures say nothing (cargo run --profile dist -p loadtest)",
        );
    }
    let bench = args.bench();
    let circumstances = Circumstances::begin();
    bench.placement.begin();
    let bar = ProgressBar::new(scenarios.len() as u64);
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} [{elapsed}] {msg}");
    bar.set_style(style.expect("a template that can be read"));
    bar.enable_steady_tick(Duration::from_secs(1));
    let mut sections = Vec::new();
    for scenario in scenarios {
        bar.set_message(scenario.name);
        let mut section = Section { name: scenario.name, ..Section::default() };
        let begun = Instant::now();
        (scenario.run)(&bench, &mut section);
        let seconds = begun.elapsed().as_secs_f64();
        bar.suspend(|| say(&format!("{} took {seconds:.1} s", scenario.name)));
        sections.push(section);
        bar.inc(1);
    }
    bar.finish_and_clear();
    conclude(&circumstances, &sections, args.write.as_deref())
}
