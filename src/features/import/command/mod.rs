//! `numerator import`: takes over the numbers of another system. Always reports first; writes only
//! with `--apply`, all or nothing, and nothing while the report has problems.

mod handover;
mod lines;
mod progress;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::Args;
use serde::Serialize;

use crate::config::Settings;
use crate::engine::allocator::Catalog;
use crate::features::import::{
    self, Choice, Codes, Formats, Import, ImportError, ListFile, Plan, Problem, Report,
};
use crate::features::series::series_file::write_series;
use crate::ledger::{Event, Expected, LedgerError, SeriesChange, SharedLedger};
use crate::startup::{load_catalog, must_have_key};
use crate::terminal::output::{print, print_json, say};
use crate::terminal::session::{clock, foresee_catalog, open_ledger};
use crate::terminal::user::UserArg;
use handover::Handover;
use numbering::SeriesDefinition;
use progress::Progress;

const EXAMPLES: &str = "Examples:
  numerator import orders.csv
  numerator import orders.csv --series SPO --apply
  numerator import dump.sql --from-table --map codes.csv
  numerator import old.db --from-ledger --json";

/// What to move in.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ImportArgs {
    /// A list of numbers: a CSV file whose first line names a column `number`, or a number a line;
    /// `-` reads it from standard input
    pub source: String,
    /// SOURCE holds the tables of another system instead: a postgres:// URL, a SQLite file, or a
    /// dump of MySQL or MariaDB
    #[arg(long)]
    pub from_table: bool,
    /// SOURCE is another ledger, as its `database.url` names it: its counters go on here. All its
    /// processes are stopped, the series are the same, and codes of tables mean the same ids
    #[arg(long, conflicts_with = "from_table")]
    pub from_ledger: bool,
    /// Of those tables read the configurations, and print or apply them as series
    #[arg(long, requires = "from_table")]
    pub configs: bool,
    /// CSV file with the columns table, id, code: codes of the tables' ids
    #[arg(long, value_name = "FILE", requires = "from_table")]
    pub map: Option<PathBuf>,
    /// The series that the numbers belong to
    #[arg(long, value_name = "CODE", conflicts_with_all = ["from_table", "from_ledger"])]
    pub series: Option<String>,
    /// Document type of numbers whose line names none
    #[arg(
        long = "type",
        value_name = "TYPE",
        conflicts_with_all = ["from_table", "from_ledger"]
    )]
    pub type_code: Option<String>,
    /// Project of numbers whose line names none
    #[arg(long, conflicts_with_all = ["from_table", "from_ledger"])]
    pub project: Option<String>,
    /// Add numbers that are dated in closed periods, too
    #[arg(long, conflicts_with_all = ["from_table", "from_ledger"])]
    pub into_closed: bool,
    /// Who moves in what names no user.
    #[command(flatten)]
    pub user: UserArg,
    /// Write; without it only report
    #[arg(long)]
    pub apply: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl ImportArgs {
    /// Whether SOURCE holds counters alone, and no numbers.
    fn is_of_counters(&self) -> bool {
        self.from_table || self.from_ledger
    }
}

/// The message if the answer to a COMMIT is lost.
const COMMIT_UNKNOWN: &str = "it is not known whether this was imported: all of it, or nothing; \
    once the ledger answers, run the same command without --apply: if it was imported, the report \
    says `issued` of every number, and of tables `here` is no less than `last`";

/// Reports, and writes if requested and possible.
///
/// # Errors
/// A source that cannot be read, a report with problems, a ledger that refuses.
pub async fn run(settings: &Settings, args: ImportArgs) -> anyhow::Result<()> {
    if args.is_of_counters() && args.source == import::STANDARD_INPUT {
        bail!("only a list is read from standard input; name a file of tables, or a ledger");
    }
    let codes = args.map.as_deref().map(Codes::read).transpose()?.unwrap_or_default();
    if args.configs {
        return configs(settings, &args, codes).await;
    }
    let (ledger, catalog) = foresee_catalog(settings).await?;
    let is_foreseen = catalog.is_foreseen();
    let saved;
    let catalog = of_any_time(&catalog, &ledger).await?;
    let ImportArgs { series, type_code, project, into_closed, .. } = args.clone();
    let user_id = args.user.actor()?;
    let choice = Choice { series, type_code, project, user_id, into_closed };
    let list = (!args.is_of_counters()).then(|| ListFile::open(args.source.as_ref()));
    let list = list.transpose()?;
    let progress = Progress::start(list.as_ref());
    let told = |done| progress.tell(done);
    let mut import = Import {
        ledger: &ledger,
        catalog: &catalog,
        choice: &choice,
        now: clock().now(),
        progress: &told,
    };
    let mut plan = planned(&import, &args, list.as_ref(), &codes).await?;
    if list.is_some() && plan.report.rows == 0 {
        progress.finish();
        bail!("{}: the list holds no number; write one on each line", plan.report.source);
    }
    let is_sound = |plan: &Plan| plan.report.problems_total == 0;
    if args.apply && is_sound(&plan) {
        must_have_key(&ledger, &settings.audit, &clock()).await.context("nothing is imported")?;
        if is_foreseen {
            // Only an applied import brings the first series along.
            let loaded = load_catalog(settings, &clock(), &ledger).await?;
            saved = of_any_time(&loaded, &ledger).await?;
            import = Import { catalog: &saved, ..import };
            plan = planned(&import, &args, list.as_ref(), &codes).await?;
        }
    }
    if args.apply && is_sound(&plan) {
        let handover = Handover::take(settings, &ledger, &plan.handed_over).await;
        let handover = handover.context("nothing is imported")?;
        progress.go_on_to_import();
        let applied = match &list {
            Some(list) => import::apply_numbers(&import, list, &plan).await,
            None if args.from_table => import::apply_counters(&import, &plan).await,
            None => import::apply_ledger(&import, &args.source, &plan).await,
        };
        handover.give_back(&ledger).await;
        applied.map_err(|error| {
            let what = if error.maybe_written() { COMMIT_UNKNOWN } else { "nothing is imported" };
            anyhow::Error::from(error).context(what)
        })?;
        plan.report.applied = true;
        record(&ledger, &plan.report).await;
    }
    progress.finish();
    tell(&plan.report, args.json)
}

/// The series that read the numbers of any time: inactive ones have issued numbers too, and so have
/// earlier versions.
async fn of_any_time(
    catalog: &Catalog,
    ledger: &SharedLedger,
) -> Result<Arc<Catalog>, LedgerError> {
    let catalog = Arc::new(catalog.of_any_time());
    catalog.know_earlier(ledger).await?;
    Ok(catalog)
}

/// The plan of the import.
async fn planned(
    import: &Import<'_>,
    args: &ImportArgs,
    list: Option<&ListFile>,
    codes: &Codes,
) -> Result<Plan, ImportError> {
    match list {
        Some(list) => import::plan_numbers(import, list).await,
        None if args.from_table => import::plan_counters(import, &args.source, codes.clone()).await,
        None => import::plan_ledger(import, &args.source).await,
    }
}

/// Prints the report.
fn tell(report: &Report, json: bool) -> anyhow::Result<()> {
    if json {
        print_json(report)?;
    } else {
        print(lines::report(report))?;
    }
    match report.problems_total {
        0 => Ok(()),
        problems => bail!("{problems} problems; nothing is imported"),
    }
}

/// Series that configurations become.
#[derive(Serialize)]
struct ConfigsAnswer {
    applied: bool,
    /// The series files' text.
    series: Vec<String>,
    problems: Vec<Problem>,
}

/// Prints configurations as series files, or applies them.
async fn configs(settings: &Settings, args: &ImportArgs, codes: Codes) -> anyhow::Result<()> {
    let mut formats = import::read_formats(&args.source, codes).await?;
    let series = formats.definitions.iter().cloned().map(write_series).collect::<Result<_, _>>()?;
    if args.apply {
        let ledger = open_ledger(settings).await?;
        ledger.series().note_own().await?;
        formats.beside(&ledger.series().list().await?);
        if formats.problems.is_empty() {
            save_new(&ledger, &formats.definitions).await?;
        }
    }
    let Formats { problems, .. } = formats;
    let answer = ConfigsAnswer { applied: args.apply && problems.is_empty(), series, problems };
    if args.json {
        print_json(&answer)?;
    } else {
        // Only series on stdout, so that it can be a file; the rest goes to stderr.
        print(&answer.series)?;
        for problem in &answer.problems {
            say(lines::problem(problem));
        }
    }
    match answer.problems.len() {
        0 => Ok(()),
        problems => bail!("{problems} problems; nothing is applied"),
    }
}

/// Saves series of codes that no other has.
async fn save_new(ledger: &SharedLedger, new: &[SeriesDefinition]) -> anyhow::Result<()> {
    let change = |definition: &SeriesDefinition| SeriesChange {
        definition: definition.clone(),
        expected: Expected::Nothing,
        saved_by: crate::terminal::session::operator(),
        reason: "import".into(),
        saved_at_us: clock().now_us(),
    };
    let changes: Vec<SeriesChange> = new.iter().map(change).collect();
    ledger.series().apply(&changes).await?;
    crate::terminal::session::until_known(ledger).await;
    Ok(())
}

/// An event in the ledger; without it the import is valid nevertheless.
async fn record(ledger: &SharedLedger, report: &Report) {
    let Report { source, sha256, numbers, counters_total, .. } = report;
    let event = Event {
        at_us: clock().now_us(),
        kind: "import".into(),
        partition: None,
        epoch: None,
        node_id: None,
        detail: serde_json::json!({
            "source": source, "sha256": sha256, "numbers": numbers, "counters": counters_total,
            "operator": crate::terminal::session::operator(),
        }),
    };
    if let Err(error) = ledger.events().record(&event).await {
        say(format_args!("numerator: the event is not on record: {error}"));
    }
}
