//! `numerator doctor`: what would prevent a service with these settings from working, or from
//! keeping its guarantees, before it starts and while it runs: each finding with its remedy. Writes
//! nothing, whatever it finds; an unreachable store is a finding, and the rest is checked.

mod clocks;
mod data_dir;
mod files;
mod findings;
mod kernel_clock;
mod ledger;
mod redis;
mod users;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use tokio::time::timeout;

use crate::config::Settings;
use crate::telemetry::log;
use crate::terminal::output::{print, print_json};
use crate::terminal::ownership;
use crate::terminal::session::clock;
use crate::terminal::settings::SettingsArgs;
use findings::{Findings, Grade};
use users::{User, nearest};

const EXAMPLES: &str = "Exit codes: 0 all is well (hazards are only told), 1 something is to be \
done (a store that refuses this user, too), 2 cannot tell: the ledger or Redis is not reached, or \
does not answer in time

Examples:
  numerator doctor
  numerator doctor --user numerator --processes 3
  numerator doctor --json";

/// Longest check of each store; they are checked concurrently.
const LOOK_MAX: Duration = Duration::from_secs(15);

/// Filter of the log: the messages of the stores' clients about a failure are a finding.
const FILTER: &str = "off";

/// For whom to look, and how to print.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DoctorArgs {
    /// The user as whom the service runs, by name or number; without it who asks, and where root
    /// asks the owner of `data.dir`
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// How many processes are to run on the ledger; without it those that do, one at least
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub processes: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Checks, and prints the findings. The exit code is their overall verdict.
///
/// # Errors
/// Output that cannot be written, a user that does not exist. All other failures are findings.
pub async fn run(from: &SettingsArgs, args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let mut findings = Findings::default();
    match from.load() {
        Ok(settings) => {
            log::start(&settings.log, FILTER);
            look(&settings, from.file(), args, &mut findings).await?;
        }
        Err(error) => {
            let remedy = "correct it: nothing else can be looked at before";
            findings.add(("settings", Grade::SomethingToDo), error.to_string(), remedy);
        }
    }
    findings.sort();
    if args.json {
        print_json(&findings.answer())?;
    } else {
        print(findings.lines())?;
    }
    Ok(findings.exit_code())
}

async fn look(
    settings: &Settings,
    file: Option<PathBuf>,
    args: &DoctorArgs,
    findings: &mut Findings,
) -> anyhow::Result<()> {
    let clock = clock();
    let place = ownership::ledger_file(settings).map_or(settings.data_dir.clone(), |ledger| {
        ledger.parent().map(Path::to_path_buf).unwrap_or_default()
    });
    let user = User::of_service(args.user.as_deref(), &nearest(&place))?;
    files::look(settings, file.as_deref(), &user, clock.now_us(), findings);
    data_dir::look(&settings.data_dir, &user, findings);
    let (mut known, mut of_ledger) = (ledger::Known::default(), Findings::default());
    let (mut shown, mut of_redis) = (redis::Shown::default(), Findings::default());
    let (ledger_done, redis_done) = tokio::join!(
        timeout(
            LOOK_MAX,
            Box::pin(ledger::examine(settings, &clock, args.processes, &mut known, &mut of_ledger))
        ),
        timeout(LOOK_MAX, Box::pin(redis::examine(settings, &mut shown, &mut of_redis))),
    );
    for (check, done, found) in
        [("ledger", ledger_done, &mut of_ledger), ("redis", redis_done, &mut of_redis)]
    {
        if done.is_err() {
            let says = format!("it did not answer everything within {LOOK_MAX:?}");
            let remedy = "see its log, its load, and who holds locks, and ask again";
            found.add((check, Grade::CannotTell), says, remedy);
        }
    }
    redis::compare(settings, &shown, &known, &mut of_redis);
    findings.extend(of_ledger);
    findings.extend(of_redis);
    if let Some(ledger) = ownership::ledger_file(settings) {
        data_dir::look_at_ledger(&ledger, &user, findings);
    }
    let deployment = known.deployment.as_ref().map(|own| own.deployment_id);
    let folder = &settings.data_dir;
    data_dir::look_at_witness(folder, deployment, known.is_used(), &user, findings);
    clocks::compare(settings, &clock, &known, &shown.times, findings);
    clocks::ask_kernel(findings);
    let from = file.map_or("no file".to_owned(), |file| file.display().to_string());
    findings.well_unless_found("settings", format!("read from {from} and the environment"));
    Ok(())
}
