//! `numerator audit`: the key of checkpoints, the checkpoints, and the comparison of the record
//! with them. Reads only, except for the file of a new key.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::config::Settings;
use crate::engine::sealing::{AuditKey, Line, PublicKey};
use crate::features::archive::{self, Folder, SealedPages};
use crate::features::checkpoints::{Kept, Trust, verify};
use crate::terminal::output::{is_closed, print, print_json, say};
use crate::terminal::session::open_ledger;

/// Checkpoints read in one statement.
const PAGE: u32 = 20;

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum AuditCommand {
    /// Make a key that checkpoints are signed with, in a file of its own
    Keygen(KeygenArgs),
    /// Print the checkpoints, a line of JSON each, to be kept elsewhere
    Checkpoints(CheckpointsArgs),
    /// Compare the record with its checkpoints
    Verify(CompareArgs),
}

const KEYGEN_EXAMPLES: &str = "Examples:
  numerator audit keygen /etc/numerator/audit.pem";

/// Where to.
#[derive(Clone, Debug, Args)]
#[command(after_help = KEYGEN_EXAMPLES)]
pub struct KeygenArgs {
    /// The file of the key; must not be there yet
    pub file: PathBuf,
}

const CHECKPOINTS_EXAMPLES: &str = "Examples:
  numerator audit checkpoints
  numerator audit checkpoints --since 1201";

/// Which.
#[derive(Clone, Debug, Args)]
#[command(after_help = CHECKPOINTS_EXAMPLES)]
pub struct CheckpointsArgs {
    /// The first to print
    #[arg(long, value_name = "NUMBER", default_value_t = 1,
          value_parser = clap::value_parser!(i64).range(1..))]
    pub since: i64,
}

const VERIFY_EXAMPLES: &str = "Examples:
  numerator audit verify
  numerator audit verify --with checkpoints.jsonl
  numerator audit verify --archive /srv/numerator/archive
  numerator audit verify --from 1201 --json";

/// With what, and how to print.
#[derive(Clone, Debug, Args)]
#[command(after_help = VERIFY_EXAMPLES)]
pub struct CompareArgs {
    /// Begin with this checkpoint, and leave alone what those before it bind
    #[arg(long, value_name = "NUMBER", default_value_t = 1,
          value_parser = clap::value_parser!(i64).range(1..))]
    pub from: i64,
    /// Checkpoints that were kept elsewhere, as `audit checkpoints` printed them
    #[arg(long, value_name = "FILE")]
    pub with: Option<PathBuf>,
    /// The folder of an archive, whose rows are compared too
    #[arg(long, value_name = "DIR")]
    pub archive: Option<PathBuf>,
    /// Public keys whose signatures count; without one that of `audit.key`, else those of `--with`
    #[arg(long = "public-key", value_name = "KEY", value_parser = PublicKey::read)]
    pub public_keys: Vec<PublicKey>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command. `settings` are read only if the ledger is needed.
///
/// # Errors
/// A flaw in a file, a ledger that cannot be reached, a record that has changed.
pub async fn run(
    settings: impl FnOnce() -> anyhow::Result<Settings>,
    command: AuditCommand,
) -> anyhow::Result<()> {
    match command {
        AuditCommand::Keygen(args) => keygen(&args),
        AuditCommand::Checkpoints(args) => checkpoints(&settings()?, &args).await,
        AuditCommand::Verify(args) => compare(&settings()?, &args).await,
    }
}

fn keygen(KeygenArgs { file }: &KeygenArgs) -> anyhow::Result<()> {
    let shown = file.display();
    let pem = AuditKey::make()?;
    let public = AuditKey::read(&pem)?.public();
    let new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let mut new = new.with_context(|| format!("{shown}: cannot be made"))?;
    let written = new.write_all(pem.as_bytes()).and_then(|()| new.sync_all());
    written.with_context(|| format!("{shown}: cannot be written"))?;
    say(format_args!(
        "set audit.key to this file wherever the program runs, and keep a copy of the file apart \
         from the database; the public key is"
    ));
    print([public])?;
    Ok(())
}

async fn checkpoints(settings: &Settings, args: &CheckpointsArgs) -> anyhow::Result<()> {
    let ledger = open_ledger(settings).await?;
    let mut after = args.since - 1;
    loop {
        let page = ledger.checkpoints().list(after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.number;
        let lines: Result<Vec<String>, _> =
            page.iter().map(|signed| serde_json::to_string(&Line::of(signed))).collect();
        print(lines?)?;
        if is_closed() {
            return Ok(());
        }
    }
}

async fn compare(settings: &Settings, args: &CompareArgs) -> anyhow::Result<()> {
    let kept = match &args.with {
        None => None,
        Some(path) => Some(open_kept(path)?),
    };
    let mut keys = args.public_keys.clone();
    if keys.is_empty() {
        keys.extend(settings.audit.read_key()?.map(|key| key.public()));
    }
    if keys.is_empty()
        && let Some(kept) = &kept
    {
        keys.clone_from(&kept.keys);
    }
    if keys.is_empty() {
        bail!(
            "no key to trust: whoever may write the database could have signed with one of their \
             own; give --public-key, or --with FILE, or set audit.key"
        );
    }
    let ledger = open_ledger(settings).await?;
    let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("comparing {wide_bar} {percent} %, {eta} left")
    {
        bar.set_style(style);
    }
    let (mut pages, mut unnamed) = (None, Vec::new());
    if let Some(path) = &args.archive {
        let folder = Folder::open(path).context("--archive")?;
        unnamed = archive::unnamed(&ledger, &folder).await.context("--archive")?;
        pages = Some(SealedPages::open(&ledger, &folder, &keys).await.context("--archive")?);
    }
    let mut archive = || pages.as_mut().map_or(Ok(None), SealedPages::next_page);
    let trust = Trust { keys, from: args.from };
    let report = verify(&ledger, &trust, kept, &mut archive, |done, total| {
        bar.set_length(u64::try_from(total).unwrap_or(0));
        bar.set_position(u64::try_from(done).unwrap_or(0));
    })
    .await;
    bar.finish_and_clear();
    let mut report = report?;
    report.add(unnamed.iter().map(|name| archive::unnamed_text(name)));
    if args.json {
        print_json(&report)?;
    } else {
        print([&report])?;
    }
    if report.checkpoints == 0 {
        bail!("there is no checkpoint: nothing is bound; set audit.key and serve");
    }
    if !report.is_clean() {
        bail!("not clean; the report lists what is not as it was");
    }
    Ok(())
}

fn open_kept(path: &PathBuf) -> anyhow::Result<Kept<BufReader<File>>> {
    let shown = path.display();
    let file = File::open(path).with_context(|| format!("--with {shown}: cannot be read"))?;
    Kept::read(BufReader::new(file)).with_context(|| format!("--with {shown}"))
}
