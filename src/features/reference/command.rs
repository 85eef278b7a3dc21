//! `numerator reference import | list`: tables of ids and codes, and memberships, from CSV files
//! into the ledger. Writes only with `--apply`; erases nothing.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use numbering::{Membership, ReferenceRow};
use serde::Serialize;

use crate::config::Settings;
use crate::features::import::{Line, STANDARD_INPUT, Separated, column_name, separator};
use crate::ledger::{
    Effect, MembershipChange, ReferenceChange, ReferencePlan, RowChange, plan_reference,
};
use crate::terminal::output::{print, print_json, say};
use crate::terminal::session::{clock, open_ledger, operator, refusal, until_known};
use crate::terminal::words::table;
use crate::web::reason::check_reason;

/// Most bytes read of a CSV file.
const FILE_BYTES_MAX: u64 = 4 * 1_048_576;

/// What to do with reference data.
#[derive(Clone, Debug, Subcommand)]
pub enum ReferenceCommand {
    /// Save the rows of a CSV file, all or none; says what would change, and writes with --apply
    Import(ReferenceImportArgs),
    /// List the tables, or the rows of one
    List(ReferenceListArgs),
}

/// What to import.
#[derive(Clone, Debug, Args)]
pub struct ReferenceImportArgs {
    /// CSV with a header: id, code, name, active; for memberships id, of_id, active. What a file
    /// leaves out stays as it is
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Table of the rows, or of the members
    #[arg(long, value_name = "TABLE")]
    pub table: String,
    /// The file lists memberships of --table in this table, such as projects
    #[arg(long, value_name = "TABLE")]
    pub of: Option<String>,
    /// Write
    #[arg(long)]
    pub apply: bool,
    /// Why, for the history of the table
    #[arg(long, default_value = "reference import")]
    pub reason: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What to list.
#[derive(Clone, Debug, Args)]
pub struct ReferenceListArgs {
    /// The table
    pub table: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs a command on reference data.
///
/// # Errors
/// A file with mistakes, each with its row; a ledger that cannot be reached.
pub async fn run(settings: &Settings, command: ReferenceCommand) -> anyhow::Result<()> {
    match command {
        ReferenceCommand::Import(args) => import(settings, args).await,
        ReferenceCommand::List(args) => list(settings, &args).await,
    }
}

/// One row or membership of an import.
#[derive(Serialize)]
struct ImportedRow {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    of_id: Option<String>,
    active: bool,
    #[serde(flatten)]
    effect: Effect,
}

/// The result of an import, or of its dry run.
#[derive(Serialize)]
struct ImportAnswer {
    table: String,
    applied: bool,
    rows: Vec<ImportedRow>,
}

async fn import(settings: &Settings, args: ReferenceImportArgs) -> anyhow::Result<()> {
    let name = args.file.display().to_string();
    let text = read_file(&args.file)?;
    let (mut rows, mut memberships) = (Vec::new(), Vec::new());
    match &args.of {
        Some(of) => memberships = read_memberships(&text, of).context(name.clone())?,
        None => rows = read_rows(&text).context(name.clone())?,
    }
    let ledger = open_ledger(settings).await?;
    let change = ReferenceChange {
        table: args.table.clone(),
        rows,
        memberships,
        changed_by: operator(),
        reason: check_reason(&args.reason).map_err(refusal)?,
        changed_at_us: clock().now_us(),
    };
    let plan = if args.apply {
        let plan = ledger.reference().apply(&change).await.context(name)?;
        until_known(&ledger).await;
        plan
    } else {
        let planned = plan_reference(&ledger.reference().data().await?, &change);
        planned.map_err(|mistakes| anyhow::anyhow!(mistakes.join("; "))).context(name)?
    };
    let answer = ImportAnswer { table: args.table, applied: args.apply, rows: imported(plan) };
    if args.json {
        print_json(&answer)?;
    } else {
        print(lines(&answer))?;
    }
    if !args.apply {
        say("nothing is written yet: repeat with --apply");
    }
    Ok(())
}

fn imported(plan: ReferencePlan) -> Vec<ImportedRow> {
    let rows = plan.rows.into_iter().map(|(row, effect)| {
        let ReferenceRow { id, code, name, active, .. } = row;
        ImportedRow { id, code: Some(code), name: Some(name), of_id: None, active, effect }
    });
    let memberships = plan.memberships.into_iter().map(|(membership, effect)| {
        let Membership { id, of_id, active, .. } = membership;
        ImportedRow { id, code: None, name: None, of_id: Some(of_id), active, effect }
    });
    rows.chain(memberships).collect()
}

/// A line for each row that changes, and the sums.
fn lines(answer: &ImportAnswer) -> Vec<String> {
    let (mut added, mut changed, mut unchanged) = (0, 0, 0);
    let mut lines = Vec::new();
    for row in &answer.rows {
        let what = match (&row.code, &row.of_id) {
            (Some(code), _) => format!("{} {code}", row.id),
            (None, of) => format!("{} of {}", row.id, of.as_deref().unwrap_or_default()),
        };
        let inactive = if row.active { "" } else { ", inactive" };
        match &row.effect {
            Effect::Added => {
                added += 1;
                lines.push(format!("added {what}{inactive}"));
            }
            Effect::Renamed { from, switched } => {
                changed += 1;
                let state = if *switched && row.active { ", activated" } else { inactive };
                lines.push(format!("renamed {what}, before {from}{state}"));
            }
            Effect::Activated => {
                changed += 1;
                lines.push(format!("activated {what}"));
            }
            Effect::Deactivated => {
                changed += 1;
                lines.push(format!("deactivated {what}"));
            }
            Effect::Changed => {
                changed += 1;
                lines.push(format!("changed {what}{inactive}"));
            }
            Effect::Unchanged => unchanged += 1,
        }
    }
    lines
        .push(format!("{}: {added} added, {changed} changed, {unchanged} unchanged", answer.table));
    lines
}

/// One table in a listing.
#[derive(Serialize)]
struct PrintedTable {
    table: String,
    rows: Vec<PrintedRow>,
}

/// One row in a listing.
#[derive(Serialize)]
struct PrintedRow {
    id: String,
    code: String,
    name: String,
    active: bool,
    former_codes: Vec<String>,
    /// `table:code` of each active row that it belongs to.
    member_of: Vec<String>,
}

async fn list(settings: &Settings, args: &ReferenceListArgs) -> anyhow::Result<()> {
    let data = open_ledger(settings).await?.reference().data().await?;
    if let Some(wanted) = args.table.as_ref().filter(|wanted| !data.has(wanted)) {
        bail!("no table {wanted:?}; `numerator reference list` lists them");
    }
    let is_wanted = |name: &&str| args.table.as_ref().is_none_or(|wanted| wanted == name);
    let row = |row: &ReferenceRow| {
        let groups = data.tables().flat_map(|of| data.groups(row, of));
        PrintedRow {
            member_of: groups.map(|group| format!("{}:{}", group.table, group.code)).collect(),
            id: row.id.clone(),
            code: row.code.clone(),
            name: row.name.clone(),
            active: row.active,
            former_codes: row.former_codes.clone(),
        }
    };
    let tables: Vec<PrintedTable> = data
        .tables()
        .filter(is_wanted)
        .map(|name| PrintedTable { table: name.into(), rows: data.rows(name).map(row).collect() })
        .collect();
    if args.json {
        print_json(&tables)?;
    } else if args.table.is_none() {
        let mut shown = table(["table", "rows", "active"]);
        for PrintedTable { table, rows } in &tables {
            let active = rows.iter().filter(|row| row.active).count();
            shown.add_row([table.clone(), rows.len().to_string(), active.to_string()]);
        }
        print([shown])?;
    } else {
        let mut shown = table(["id", "code", "name", "active", "former codes", "member of"]);
        for row in tables.into_iter().flat_map(|table| table.rows) {
            let active = if row.active { "yes" } else { "no" };
            let (former, groups) = (row.former_codes.join(" "), row.member_of.join(" "));
            shown.add_row([row.id, row.code, row.name, active.into(), former, groups]);
        }
        print([shown])?;
    }
    Ok(())
}

/// Reads a file, never more than its maximum.
fn read_file(file: &Path) -> anyhow::Result<String> {
    let name = file.display();
    let mut text = String::new();
    let source = || -> io::Result<Box<dyn Read>> {
        if file == Path::new(STANDARD_INPUT) {
            return Ok(Box::new(io::stdin()));
        }
        Ok(Box::new(File::open(file)?))
    };
    source()
        .and_then(|opened| opened.take(FILE_BYTES_MAX + 1).read_to_string(&mut text))
        .with_context(|| format!("{name} cannot be read"))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        bail!("{name} has more than {FILE_BYTES_MAX} bytes; split it");
    }
    Ok(text)
}

/// The rows of a table.
fn read_rows(text: &str) -> anyhow::Result<Vec<RowChange>> {
    read_records(text, &["id", "code"], &["name", "active"], |field, line| {
        Ok(RowChange {
            id: field("id").unwrap_or_default(),
            code: field("code").unwrap_or_default(),
            name: field("name"),
            active: is_active(field("active"), line)?,
        })
    })
}

/// Memberships of one table in another.
fn read_memberships(text: &str, of: &str) -> anyhow::Result<Vec<MembershipChange>> {
    read_records(text, &["id", "of_id"], &["active"], |field, line| {
        Ok(MembershipChange {
            id: field("id").unwrap_or_default(),
            of_table: of.into(),
            of_id: field("of_id").unwrap_or_default(),
            active: is_active(field("active"), line)?,
        })
    })
}

/// Reads separated values whose header names their columns, in any order. `make` gets the value of
/// each column that the file has, without outer blanks, and the line.
fn read_records<T>(
    text: &str,
    needed: &[&str],
    others: &[&str],
    make: impl Fn(&dyn Fn(&str) -> Option<String>, u64) -> anyhow::Result<T>,
) -> anyhow::Result<Vec<T>> {
    let head = text.lines().next().unwrap_or_default();
    let sign = separator(head, |name| needed.contains(&name)).unwrap_or(',');
    let mut lines = Separated::new(text.as_bytes(), sign)?;
    let header: Vec<String> = lines.names().iter().map(|name| column_name(name)).collect();
    let columns = || needed.iter().chain(others).copied().collect::<Vec<_>>().join(", ");
    for (index, column) in header.iter().enumerate() {
        if !needed.contains(&&**column) && !others.contains(&&**column) {
            bail!("line 1: unknown column {column:?}; the columns are {}", columns());
        }
        if header.iter().take(index).any(|earlier| earlier == column) {
            bail!("line 1: column {column} appears twice");
        }
    }
    if let Some(missing) = needed.iter().find(|name| !header.iter().any(|column| column == **name))
    {
        bail!("line 1: column {missing} is missing; the columns are {}", columns());
    }
    let mut made = Vec::new();
    while let Some(Line { line, fields }) = lines.next_line()? {
        let fields = fields.map_err(|why| anyhow::anyhow!("line {line}: {why}"))?;
        let field = |name: &str| {
            let place = header.iter().position(|column| column == name);
            place.and_then(|place| fields.get(place)).map(|value| (*value).to_owned())
        };
        made.push(make(&field, line)?);
    }
    Ok(made)
}

/// Whether a row is active; `None` if the file does not say.
fn is_active(word: Option<String>, line: u64) -> anyhow::Result<Option<bool>> {
    let word = word.unwrap_or_default();
    match word.to_ascii_lowercase().as_str() {
        "" => Ok(None),
        "true" | "1" | "yes" => Ok(Some(true)),
        "false" | "0" | "no" => Ok(Some(false)),
        _ => bail!("line {line}: active {word:?}; write true or false"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_their_header_in_any_order() {
        let text = "name,active,code,id\nKing Khong,,คคง.,22\n\"A, B\",no,ผรม.2,42\n";
        let rows = read_rows(text).expect("rows");
        let read: Vec<_> = rows
            .iter()
            .map(|row| (&*row.id, &*row.code, row.name.as_deref(), row.active))
            .collect();
        let expected =
            [("22", "คคง.", Some("King Khong"), None), ("42", "ผรม.2", Some("A, B"), Some(false))];
        assert_eq!(read, expected);
        let memberships = read_memberships("of_id,id\n2,22\n", "projects").expect("memberships");
        let read: Vec<_> = memberships
            .iter()
            .map(|one| (&*one.id, &*one.of_table, &*one.of_id, one.active))
            .collect();
        assert_eq!(read, [("22", "projects", "2", None)]);
    }

    #[test]
    fn what_a_file_has_no_column_for_is_not_told() {
        let rows = read_rows("id,code\n22,A\n").expect("rows");
        assert!(rows.iter().all(|row| row.name.is_none() && row.active.is_none()), "{rows:?}");
    }

    #[test]
    fn a_file_with_a_mistake_is_told_by_its_line_and_column() {
        for (text, says) in [
            ("id,name\n1,A\n", "column code is missing"),
            ("id,code,colour\n", "unknown column \"colour\""),
            ("id,id,code\n", "column id appears twice"),
            ("id,code,active\n1,A,perhaps\n", "line 2: active \"perhaps\""),
            ("id,code\r\n1,A\r\n\r\n2\r\n", "line 4"),
        ] {
            let error = format!("{:#}", read_rows(text).expect_err(text));
            assert!(error.contains(says), "{error}");
        }
    }
}
