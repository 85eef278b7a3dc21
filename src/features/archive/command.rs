//! `numerator archive`: moves old rows of the journal to files, lists the files, and records the
//! deletion of one. Never deletes a file itself.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::{Timestamp, ToSpan as _};
use serde::Serialize;

use crate::clock::SharedClock;
use crate::config::Settings;
use crate::engine::node::Clocks;
use crate::engine::sealing::{AuditKey, Made, make};
use crate::features::archive::{Folder, Moving, STEP_ROWS, archive, files, remove};
use crate::ledger::{ArchiveFile, SharedLedger};
use crate::startup::must_have_key;
use crate::terminal::output::{print, print_json, say};
use crate::terminal::session::{clock, open_deployment, open_ledger, operator, refusal};
use crate::terminal::words::{self, table};
use crate::web::query_time::read_time;
use crate::web::reason::check_reason;

/// Default of the rows of a file: some hundreds of MiB.
const FILE_ROWS: u64 = 10_000_000;

const EXAMPLES: &str = "Examples:
  numerator archive --before 2024-01-01 --to /srv/numerator/archive
  numerator archive list
  numerator archive delete FILE.parquet --from /srv/archive --reason 'eight years old'";

/// What to move, or what else to do.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct ArchiveArgs {
    /// What else to do
    #[command(subcommand)]
    pub command: Option<ArchiveCommand>,
    /// Move rows that were issued before this date (UTC) or date-time with offset
    #[arg(long, value_name = "TIME", required = true)]
    pub before: Option<String>,
    /// The folder, made where it is not there
    #[arg(long, value_name = "DIR", required = true)]
    pub to: Option<PathBuf>,
    /// Begin another file after about so many rows
    #[arg(long, value_name = "ROWS", default_value_t = FILE_ROWS,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub file_rows: u64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What else to do.
#[derive(Clone, Debug, Subcommand)]
pub enum ArchiveCommand {
    /// List the files that the ledger knows
    List(ArchiveListArgs),
    /// Note that a file is deleted, once it may be, and delete it; or give up one that was lost
    /// while it was written
    Delete(DeleteArgs),
}

/// How to list.
#[derive(Clone, Debug, Args)]
pub struct ArchiveListArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Which to delete.
#[derive(Clone, Debug, Args)]
pub struct DeleteArgs {
    /// The file's name, as `archive list` shows it
    pub file: String,
    /// Its folder; of one that was lost with its folder, any
    #[arg(long, value_name = "DIR")]
    pub from: PathBuf,
    /// Why, for the record
    #[arg(long)]
    pub reason: String,
}

/// Runs the command.
///
/// # Errors
/// A time that is invalid or too late, a folder or a ledger that fails, another archiver, a file
/// that must still be kept.
pub async fn run(settings: &Settings, args: ArchiveArgs) -> anyhow::Result<()> {
    match (args.command, args.before, args.to) {
        (Some(ArchiveCommand::List(args)), ..) => list(settings, &args).await,
        (Some(ArchiveCommand::Delete(args)), ..) => delete(settings, &args).await,
        (None, Some(before), Some(to)) => {
            move_rows(settings, &before, &to, args.file_rows, args.json).await
        }
        (None, ..) => bail!("--before and --to are missing"),
    }
}

/// The result of a move.
#[derive(Serialize)]
struct MovedAnswer {
    rows: u64,
    files: Vec<String>,
}

async fn move_rows(
    settings: &Settings,
    before: &str,
    to: &Path,
    file_rows_max: u64,
    json: bool,
) -> anyhow::Result<()> {
    let before_us = read_time("before", before).map_err(refusal)?;
    let clock = clock();
    let (ledger, deployment) = open_deployment(settings).await?;
    let clocks = Clocks::compare(&ledger, clock.clone(), &settings.allocator).await?;
    let stays = young(settings, &ledger).await?;
    let stays_us = i64::try_from(stays.as_micros()).unwrap_or(i64::MAX);
    let now_us = clocks.evidence_us();
    if before_us > now_us.saturating_sub(stays_us) {
        bail!(
            "--before {before}: rows of the last {} hours stay in the ledger{}; choose an earlier \
             time",
            stays.as_secs().div_ceil(3_600),
            by_whose_word(now_us, &clock)
        );
    }
    let key = settings.audit.read_key()?;
    if key.is_none() {
        say(format_args!("audit.key is not set: the manifests are not signed"));
    }
    must_have_key(&ledger, &settings.audit, &clock).await?;
    let folder = Folder::open_to_write(to, deployment.deployment_id).context("--to")?;
    let bar = progress();
    let by = operator();
    let moving = Moving {
        before_us,
        by: &by,
        key: key.as_ref(),
        clock,
        file_rows_max,
        step_rows: STEP_ROWS,
        progress: &|rows, of| {
            if let Some(of) = of {
                bar.set_length(of);
            }
            bar.set_message(if of.is_some() { "making room" } else { "writing" });
            bar.set_position(rows);
        },
    };
    let moved = archive(&ledger, &folder, &moving).await;
    bar.finish_and_clear();
    let moved = moved?;
    if let Some(key) = &key {
        bind(&ledger, &moving.clock, key).await;
    }
    if json {
        return Ok(print_json(&MovedAnswer { rows: moved.rows, files: moved.files })?);
    }
    print(&moved.files)?;
    say(format_args!("{} rows moved to {} files", moved.rows, moved.files.len()));
    Ok(())
}

/// The minimum age of archived rows. Younger ones may be requested by a retry in any process, or
/// reported again by one.
async fn young(settings: &Settings, ledger: &SharedLedger) -> anyhow::Result<Duration> {
    let agreed_ms = ledger.agreed_window_ms().await?.unwrap_or(0);
    let agreed = Duration::from_millis(u64::try_from(agreed_ms).unwrap_or(0));
    Ok(settings.allocator.idempotency_window.max(agreed).max(Duration::from_secs(86_400)))
}

/// The time by which something is too young, if that is not this machine's.
fn by_whose_word(now_us: i64, clock: &SharedClock) -> String {
    const SAME_US: i64 = 60_000_000;
    if clock.now_us().saturating_sub(now_us) < SAME_US {
        return String::new();
    }
    format!(
        ", and by the ledger's word it is {}: a service that runs there tells it the time",
        words::moment(now_us)
    )
}

/// Binds the segments immediately: until then only a holder of the key knows whether they may
/// account for missing rows. Otherwise the next checkpoint of a service does.
async fn bind(ledger: &SharedLedger, clock: &SharedClock, key: &AuditKey) {
    loop {
        match make(ledger, clock, &format!("archive {}", operator()), key).await {
            Ok(Made::Whole) => return,
            Ok(Made::MoreIsLeft) => {}
            Err(error) => {
                return say(format_args!(
                    "no checkpoint could be made; services make one: {error}"
                ));
            }
        }
    }
}

fn progress() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{msg} {human_pos} rows, {elapsed}") {
        bar.set_style(style);
    }
    bar
}

/// An entry of the list of files.
#[derive(Serialize)]
struct FileRow<'a> {
    file: &'a str,
    rows: u64,
    before: String,
    last_issued: String,
    written_at: String,
    written_by: &'a str,
    sha256: String,
    /// `whole`, `under way` or `deleted`.
    state: &'static str,
}

impl<'a> FileRow<'a> {
    fn of(file: &'a ArchiveFile) -> Self {
        let time =
            |at_us| Timestamp::from_microsecond(at_us).map_or(String::new(), |at| at.to_string());
        FileRow {
            file: &file.file.name,
            rows: file.file.rows,
            before: time(file.file.before_us),
            last_issued: time(file.file.last_issued_us),
            written_at: time(file.written_at_us),
            written_by: &file.file.written_by,
            sha256: numbering::hexadecimal(&file.file.sha256),
            state: match (file.is_ended, file.deleted_at_us) {
                (_, Some(_)) => "deleted",
                (true, None) => "whole",
                (false, None) => "under way",
            },
        }
    }
}

async fn list(settings: &Settings, args: &ArchiveListArgs) -> anyhow::Result<()> {
    let ledger = open_ledger(settings).await?;
    let known = files(&ledger).await?;
    let rows: Vec<FileRow<'_>> = known.iter().map(FileRow::of).collect();
    if args.json {
        return Ok(print_json(&rows)?);
    }
    if rows.is_empty() {
        return Ok(print(["no archive files"])?);
    }
    let mut table = table(["file", "rows", "issued before", "last issued", "written at", "state"]);
    for row in &rows {
        table.add_row([
            row.file.to_owned(),
            row.rows.to_string(),
            row.before.clone(),
            row.last_issued.clone(),
            row.written_at.clone(),
            row.state.to_owned(),
        ]);
    }
    Ok(print([table])?)
}

async fn delete(settings: &Settings, args: &DeleteArgs) -> anyhow::Result<()> {
    let reason = check_reason(&args.reason).map_err(refusal)?;
    let folder = Folder::open(&args.from).context("--from")?;
    let ledger = open_ledger(settings).await?;
    let known = files(&ledger).await?;
    let name = &args.file;
    let Some(file) = known.iter().find(|file| file.file.name == *name) else {
        bail!("{name}: the ledger knows no such file; `numerator archive list` lists them");
    };
    // The journal has all rows of a file that can be given up.
    if file.is_ended {
        let own = clock();
        let clocks = Clocks::compare(&ledger, own.clone(), &settings.allocator).await?;
        must_be_old(settings, file, clocks.evidence_us(), &own)?;
        if file.deleted_at_us.is_none() && !folder.has(name) {
            bail!("{name} is not in {}: name the folder that holds it", args.from.display());
        }
    }
    let noted = ledger.archive().delete(file, &operator(), &reason).await?;
    remove(&folder, name)?;
    say(format_args!(
        "{name}: {}",
        match (file.is_ended, noted) {
            (true, true) => "deleted; its values never come again",
            (false, true) => "given up; its rows are in the journal",
            (_, false) => "was deleted before",
        }
    ));
    Ok(())
}

/// Refuses a file with a number that must still be kept.
fn must_be_old(
    settings: &Settings,
    file: &ArchiveFile,
    now_us: i64,
    own: &SharedClock,
) -> anyhow::Result<()> {
    let name = &file.file.name;
    let years = settings.written.archive.retention_years;
    let last = Timestamp::from_microsecond(file.file.last_issued_us)?;
    let last = last.to_zoned(jiff::tz::TimeZone::UTC);
    let until = last.checked_add(i64::from(years).years())?.timestamp();
    if until.as_microsecond() > now_us {
        bail!(
            "{name}: has a number of {}, and numbers are kept for {years} years \
             (archive.retention_years): until {until}{}",
            last.timestamp(),
            by_whose_word(now_us, own)
        );
    }
    Ok(())
}
