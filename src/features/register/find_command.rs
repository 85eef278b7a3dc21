//! `numerator find`: looks issued numbers up, for people. Reads only.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use serde::Serialize;

use crate::config::Settings;
use crate::engine::sealing::{AuditKey, PublicKey};
use crate::features::archive::{self, Folder};
use crate::features::register::gap_rows::GapRow;
use crate::features::register::listing::{ListedRow, RegisterRow};
use crate::features::register::pages::Register;
use crate::features::register::query::NumberQuery;
use crate::features::register::rows::NumberRow;
use crate::ledger::JournalRow;
use crate::terminal::output::{print, print_json};
use crate::terminal::words::table;

const EXAMPLES: &str = "Examples:
  numerator find --number SPO-20240122-001
  numerator find --series SPO --from 2026-01-01 --limit 100
  numerator find --number-prefix LCBP3-C2-RFA --sort number --json
  numerator find --archive /srv/numerator/archive --document INV-2019-0042";

/// Which to list, and how.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct FindArgs {
    /// Go on behind the page with this `next` (`--json` shows it), with the same options
    #[arg(long, value_name = "NEXT", conflicts_with = "number")]
    pub after: Option<String>,
    /// Look in the files of an archive instead of the ledger
    #[arg(long, value_name = "DIR", conflicts_with = "after")]
    pub archive: Option<PathBuf>,
    /// List so many numbers
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub limit: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    // Last: its heading applies to all options after it.
    /// What to look for.
    #[command(flatten)]
    pub register: NumberQuery,
}

/// A page of numbers.
#[derive(Serialize)]
struct NumberPage<'a> {
    numbers: Vec<RegisterRow<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Prints the numbers that match.
///
/// # Errors
/// A filter that nothing can match, a number that nothing holds, a ledger that cannot be reached, a
/// closed stdout.
pub async fn run(settings: &Settings, args: FindArgs) -> anyhow::Result<()> {
    let FindArgs { register, after, archive, limit, json } = args;
    if let Some(path) = archive {
        return look_into(settings, &path, register, limit, json).await;
    }
    let mut register = Register::open(settings, register, after).await?;
    let rows = register.page(limit).await?;
    if json {
        print_json(&NumberPage { numbers: RegisterRow::all_of(&rows), next: register.next })?;
    } else if rows.is_empty() {
        print(["no numbers"])?;
    } else {
        print([page(&rows)])?;
        if register.next.is_some() {
            crate::terminal::output::say(format_args!(
                "the first {limit}; there may be more: --limit, --json"
            ));
        }
    }
    Ok(())
}

/// An archived number, and its file.
#[derive(Serialize)]
struct ArchivedNumber<'a> {
    file: &'a str,
    #[serde(flatten)]
    number: RegisterRow<'a>,
}

/// Archived numbers.
#[derive(Serialize)]
struct ArchivePage<'a> {
    numbers: Vec<ArchivedNumber<'a>>,
    more: bool,
}

/// Prints the archived numbers that match.
async fn look_into(
    settings: &Settings,
    path: &Path,
    query: NumberQuery,
    limit: u32,
    json: bool,
) -> anyhow::Result<()> {
    let folder = Folder::open(path).context("--archive")?;
    let series = query.series.clone();
    let trusted: Vec<PublicKey> = settings.audit.read_key()?.iter().map(AuditKey::public).collect();
    let register = Register::open(settings, query, None).await?;
    let counted = register.counted(&folder, &trusted).await?;
    for name in &counted.others {
        crate::terminal::output::say(format_args!(
            "{name} is not looked into: neither does the ledger name it, nor a trusted key sign it"
        ));
    }
    if let Some(name) = counted.replaced.first() {
        bail!(
            "{name} is not what was written; put back what was there, or see `numerator verify \
             --archive`"
        );
    }
    let filter = register.filter(limit);
    // The files do not say it.
    let in_zone = |row: JournalRow| {
        let timezone = register.timezone(row.entry.record.series_id);
        JournalRow { timezone, ..row }
    };
    let looking = move || archive::look_in(&folder, &counted, &filter, series.as_deref());
    let (found, more) = tokio::task::spawn_blocking(looking).await??;
    let (files, rows): (Vec<String>, Vec<JournalRow>) =
        found.into_iter().map(|found| (found.file, in_zone(found.row))).unzip();
    // Nor what became of a number while its row moved.
    let rows = register.with_lives(rows).await?;
    let rows: Vec<ListedRow> = rows.into_iter().map(ListedRow::Number).collect();
    if json {
        let numbers = files.iter().zip(RegisterRow::all_of(&rows));
        let numbers = numbers.map(|(file, number)| ArchivedNumber { file, number }).collect();
        return Ok(print_json(&ArchivePage { numbers, more })?);
    }
    if rows.is_empty() {
        return Ok(print(["no numbers in the files of this archive"])?);
    }
    print([page(&rows)])?;
    let mut names = files;
    names.sort_unstable();
    names.dedup();
    crate::terminal::output::say(format_args!("in {}", names.join(", ")));
    if more {
        crate::terminal::output::say(format_args!(
            "the first {limit}; there are more: --limit, or a narrower search"
        ));
    }
    Ok(())
}

/// The rows for people.
fn page(rows: &[ListedRow]) -> String {
    let mut table = table([
        "number",
        "is",
        "document",
        "date",
        "series",
        "type",
        "project",
        "user",
        "issued at",
    ]);
    for row in RegisterRow::all_of(rows) {
        table.add_row(match row {
            RegisterRow::Number(row) => of_number(*row),
            RegisterRow::Gap(row) => of_gap(&row),
        });
    }
    table.to_string()
}

/// The cells of a number or a revision.
fn of_number(row: NumberRow<'_>) -> [String; 9] {
    let about = row.about;
    let or_dash = |text: Option<&str>| text.unwrap_or("-").to_owned();
    let number = match about.serials.first() {
        Some(values) if values.first < values.last => {
            let count = (values.last - values.first) / values.step.max(1);
            format!("{} and {count} more", row.document_number)
        }
        _ => row.document_number.to_owned(),
    };
    let assigned = about.standing.assigned.as_ref();
    let number = match assigned.and_then(|assigned| assigned.document_number) {
        Some(looked_for) => format!("{looked_for} of {number}"),
        None => number,
    };
    let what = match about.revision_of {
        Some(of) => format!("revision of {of}"),
        None => about.standing.shown(),
    };
    [
        number,
        what,
        or_dash(assigned.and_then(|assigned| assigned.document_id).or(about.document_id)),
        about.document_date.to_owned(),
        about.source.series.to_owned(),
        about.source.type_code.to_owned(),
        or_dash(about.source.project),
        about.user_id.to_owned(),
        row.issued_at,
    ]
}

/// The cells of a gap.
fn of_gap(row: &GapRow<'_>) -> [String; 9] {
    let about = &row.about;
    let [values] = about.serials;
    let text = |number: Option<&str>, value: u64| number.map_or(value.to_string(), str::to_owned);
    let first = text(row.document_number, values.first);
    let number = match values.first < values.last {
        true => format!("{first} to {}", text(about.last_number, values.last)),
        false => first,
    };
    let none = || "-".to_owned();
    [
        number,
        format!("gap: {}", about.reason),
        none(),
        none(),
        about.series.to_owned(),
        none(),
        none(),
        none(),
        row.noted_at.clone(),
    ]
}
