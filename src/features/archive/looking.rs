//! Reads the files of an archive: searches for numbers, checks them against the ledger, and returns
//! rows one by one for the comparison of seals. Reads only.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context as _, bail};
use serde::Serialize;

use super::columns::RowReader;
use super::counting::{Counted, unnamed};
use super::folder::{Folder, sha256_of};
use super::manifest::Manifest;
use crate::engine::sealing::PublicKey;
use crate::ledger::{
    ArchiveFile, ArchivedRow, JournalFilter, JournalRow, NumberStatus, SealedRow, SharedLedger,
};

/// Files per query to the ledger.
const PAGE_FILES: u32 = 1_000;
/// Numbers per query to the ledger.
const PAGE_NUMBERS: usize = 500;
/// Findings that are listed; more are counted.
const FINDINGS_MAX: usize = 100;

/// An archived number, and its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The row.
    pub row: JournalRow,
    /// The file's name.
    pub file: String,
}

/// The archived numbers that match, in all files of a folder that match their manifests: for
/// callers who created the folder. See [`look_in`].
///
/// # Errors
/// A file that is missing or does not match its manifest.
pub fn look(
    folder: &Folder,
    filter: &JournalFilter,
    series: Option<&str>,
) -> anyhow::Result<(Vec<Found>, bool)> {
    look_in(folder, &Counted::all(folder)?, filter, series)
}

/// The archived numbers that match, in the order of the filter, as many as its `limit`; whether
/// there are more. Reads every file that counts.
///
/// # Errors
/// A file that is missing or does not have its SHA-256.
pub fn look_in(
    folder: &Folder,
    counted: &Counted,
    filter: &JournalFilter,
    series: Option<&str>,
) -> anyhow::Result<(Vec<Found>, bool)> {
    let limit = filter.limit as usize;
    let (mut found, mut is_more) = (Vec::new(), false);
    for (name, sha256) in &counted.files {
        let reader = open_as(&folder.file(name), sha256)?;
        for group in 0..reader.groups() {
            let rows = reader.read(group).with_context(|| name.clone())?;
            for row in rows {
                if series.is_some_and(|series| row.series != series) {
                    continue;
                }
                let Some(row) = row.journal_row().with_context(|| name.clone())? else {
                    continue;
                };
                if matches(filter, &row) {
                    found.push(Found { row, file: name.clone() });
                }
            }
            // Only the first are kept: memory does not grow with the number of matches.
            found.sort_by(|one, other| filter.sort.order(&one.row, &other.row));
            is_more |= found.len() > limit;
            found.truncate(limit);
        }
    }
    Ok((found, is_more))
}

fn matches(filter: &JournalFilter, row: &JournalRow) -> bool {
    let number = &row.entry.number;
    filter.matches(row)
        && filter.number.as_ref().is_none_or(|wanted| number == wanted)
        && filter.number_prefix.as_ref().is_none_or(|prefix| number.starts_with(prefix))
        && filter.number_part.as_ref().is_none_or(|part| number.contains(part))
        // A number that has revisions stays in the journal.
        && filter.status.is_none_or(|status| status == NumberStatus::Issued)
}

/// Opens a file after its manifest and its SHA-256 were checked.
fn open(
    folder: &Folder,
    name: &str,
    trusted: &[PublicKey],
) -> anyhow::Result<(RowReader, Manifest)> {
    let path = folder.manifest(name);
    let shown = path.display();
    let text = fs::read_to_string(&path).with_context(|| format!("{shown} cannot be read"))?;
    let manifest = Manifest::read(&text, name, trusted).with_context(|| format!("{shown}"))?;
    let path = folder.file(name);
    let reader = open_as(&path, &manifest.sha256)?;
    Ok((reader, manifest))
}

/// Opens a file that must have a SHA-256.
pub(super) fn open_as(path: &Path, sha256: &str) -> anyhow::Result<RowReader> {
    let shown = path.display();
    if !path.is_file() {
        bail!("{shown} is not there, and its manifest is: put it back");
    }
    if numbering::hexadecimal(&sha256_of(path)?) != sha256 {
        bail!("{shown} is not what was written: its SHA-256 is another; put back what was there");
    }
    RowReader::open(File::open(path)?).with_context(|| format!("{shown}"))
}

/// The result of a check of archive files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// Files that the ledger names, except deleted ones.
    pub files: u64,
    /// Their rows.
    pub rows: u64,
    /// Files that were deleted.
    pub deleted: u64,
    /// Their flaws.
    pub findings: Vec<String>,
    /// Findings that are not listed.
    pub more: u64,
}

impl Checked {
    fn add(&mut self, finding: String) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        } else {
            self.more += 1;
        }
    }
}

/// Checks the files of a folder: the ledger must name each. Each named file must exist, be as it
/// was written, be signed by a trusted key if there are any, and have no number that the journal
/// has again under another allocation.
///
/// # Errors
/// A ledger that cannot be read.
pub async fn check(
    ledger: &SharedLedger,
    folder: &Folder,
    trusted: &[PublicKey],
) -> anyhow::Result<Checked> {
    let mut checked = Checked::default();
    for name in unnamed(ledger, folder).await? {
        checked.add(unnamed_text(&name));
    }
    for file in files(ledger).await? {
        if file.deleted_at_us.is_some() {
            checked.deleted += 1;
            continue;
        }
        checked.files += 1;
        checked.rows += file.file.rows;
        match open_known(folder, &file, trusted) {
            Err(error) => checked.add(format!("{error:#}")),
            Ok(reader) => compare_numbers(ledger, &file.file.name, reader, &mut checked).await?,
        }
    }
    Ok(checked)
}

/// The message for a file that the ledger does not name.
#[must_use]
pub fn unnamed_text(name: &str) -> String {
    format!(
        "{name}: the ledger does not name it; it is another ledger's, or somebody laid it there, \
         or the ledger went back to before it"
    )
}

/// All files that the ledger names, in the order in which they were written.
///
/// # Errors
/// A ledger that cannot be read.
pub async fn files(ledger: &SharedLedger) -> anyhow::Result<Vec<ArchiveFile>> {
    let mut all: Vec<ArchiveFile> = Vec::new();
    loop {
        let after = all.last().map_or(i32::MIN, |file| file.archive_file_id);
        let page = ledger.archive().files(after, PAGE_FILES).await?;
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page);
    }
}

/// Opens a file that must match the ledger.
fn open_known(
    folder: &Folder,
    of: &ArchiveFile,
    trusted: &[PublicKey],
) -> anyhow::Result<RowReader> {
    let (reader, manifest) = open(folder, &of.file.name, trusted)?;
    if manifest.sha256 != numbering::hexadecimal(&of.file.sha256) {
        bail!("{}: its manifest has another SHA-256 than the ledger", of.file.name);
    }
    Ok(reader)
}

/// Whether numbers of a file are in the journal again.
async fn compare_numbers(
    ledger: &SharedLedger,
    name: &str,
    reader: RowReader,
    checked: &mut Checked,
) -> anyhow::Result<()> {
    for group in 0..reader.groups() {
        let rows = match reader.read(group) {
            Ok(rows) => rows,
            Err(error) => {
                checked.add(format!("{name}: {error:#}"));
                return Ok(());
            }
        };
        let numbered: Vec<&ArchivedRow> =
            rows.iter().filter(|row| row.number.is_some() && row.scope.is_some()).collect();
        for part in numbered.chunks(PAGE_NUMBERS) {
            let texts: Vec<(String, String)> = part
                .iter()
                .map(|row| {
                    (row.number.clone().unwrap_or_default(), row.scope.clone().unwrap_or_default())
                })
                .collect();
            for (number, scope, holder) in ledger.audits().holders(&texts).await? {
                let is_other = |row: &&&ArchivedRow| {
                    row.number.as_ref() == Some(&number)
                        && row.scope.as_ref() == Some(&scope)
                        && row.allocation_id != holder.as_bytes()
                };
                if let Some(row) = part.iter().find(is_other) {
                    let ArchivedRow { counter_id, first_value, .. } = row;
                    checked.add(format!(
                        "{name}: {number} of counter {counter_id} value {first_value} stands in \
                         the journal again, of allocation {holder}"
                    ));
                }
            }
        }
    }
    Ok(())
}

/// The rows of all files of a folder that the ledger names, on their way to the seals of their
/// batches, group by group.
pub struct SealedPages {
    readers: VecDeque<(ArchiveFile, RowReader)>,
    group: usize,
}

impl SealedPages {
    /// Opens all files that are in the folder.
    ///
    /// # Errors
    /// A file that does not match the ledger. A missing file is left out.
    pub async fn open(
        ledger: &SharedLedger,
        folder: &Folder,
        trusted: &[PublicKey],
    ) -> anyhow::Result<Self> {
        let mut readers = VecDeque::new();
        for file in files(ledger).await? {
            let name = &file.file.name;
            if folder.file(name).exists() {
                let reader = open_known(folder, &file, trusted)?;
                readers.push_back((file, reader));
            }
        }
        Ok(SealedPages { readers, group: 0 })
    }

    /// The next rows, all of one file, and its SHA-256; `None` after the last.
    ///
    /// # Errors
    /// A file that cannot be read to its end.
    pub fn next_page(&mut self) -> anyhow::Result<Option<(String, Vec<SealedRow>)>> {
        loop {
            let Some((of, reader)) = self.readers.front() else { return Ok(None) };
            if self.group < reader.groups() {
                let rows = reader.read(self.group).with_context(|| of.file.name.clone())?;
                self.group += 1;
                let rows = rows.iter().map(ArchivedRow::sealed).collect();
                return Ok(Some((numbering::hexadecimal(&of.file.sha256), rows)));
            }
            self.group = 0;
            self.readers.pop_front();
        }
    }
}
