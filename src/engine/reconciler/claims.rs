//! Claims of journal rows other than their values, for `verify`: that their texts have a place for
//! the value, that their scope is the one of their version, that segments represent rows of files
//! that the ledger names. And whether the keys exist that keep values and numbers unique. All of it
//! is the record's own claim: a user who may write the database can make all of it agree.

use std::collections::{BTreeMap, HashMap, HashSet};

use numbering::{PartialNumber, Series, hexadecimal};

use super::verify::FINDINGS_MAX;
use crate::ledger::{ArchiveFile, LedgerError, SharedLedger, StandsFor, Written, WrittenText};

/// The keys without which values and numbers may occur twice.
const KEYS: [&str; 2] = ["key journal_number_once of journal", "key journal_value_once of journal"];

/// Files of a page.
const PAGE_FILES: u32 = 1_000;

/// What is claimed, and what of it does not hold.
pub(super) struct Claims<'a> {
    ledger: &'a SharedLedger,
    /// Versions that made numbers; none where the ledger does not have or cannot read one.
    versions: HashMap<(i64, u32), Option<Series>>,
    /// Files that had ended before rows were read: all their segments are among the rows.
    ended: HashSet<String>,
    /// Rows that segments represent, by file and SHA-256.
    segments: HashMap<(String, String), u64>,
    /// Texts that were read.
    pub(super) texts: u64,
    /// Rows that segments represent.
    pub(super) archived: u64,
    /// What does not hold, at most [`FINDINGS_MAX`].
    pub(super) broken: Vec<String>,
}

impl<'a> Claims<'a> {
    pub(super) fn new(ledger: &'a SharedLedger) -> Self {
        Claims {
            ledger,
            versions: HashMap::new(),
            ended: HashSet::new(),
            segments: HashMap::new(),
            texts: 0,
            archived: 0,
            broken: Vec::new(),
        }
    }

    fn add(&mut self, broken: String) {
        if self.broken.len() < FINDINGS_MAX as usize {
            self.broken.push(broken);
        }
    }

    /// Comes before the rows.
    pub(super) async fn begin(&mut self) -> Result<(), LedgerError> {
        let files = self.files().await?.into_iter();
        self.ended = files.filter(|(_, file)| file.is_ended).map(|(name, _)| name).collect();
        Ok(())
    }

    async fn files(&self) -> Result<HashMap<String, ArchiveFile>, LedgerError> {
        let mut files = HashMap::new();
        let mut after = i32::MIN;
        loop {
            let page = self.ledger.archive().files(after, PAGE_FILES).await?;
            let Some(last) = page.last() else { return Ok(files) };
            after = last.archive_file_id;
            files.extend(page.into_iter().map(|file| (file.file.name.clone(), file)));
        }
    }

    /// Reads a row.
    pub(super) async fn read(&mut self, row: &Written) -> Result<(), LedgerError> {
        if let Some(stands_for) = &row.stands_for {
            self.read_segment(row, stands_for);
        }
        let Some(text) = &row.text else { return Ok(()) };
        self.texts += 1;
        if let Some(made_by) = text.made_by
            && !self.versions.contains_key(&made_by)
        {
            let version = match self.ledger.series().version(made_by.0, made_by.1).await {
                // A row that cannot be read shows nothing of its numbers.
                Err(LedgerError::Refused(_)) => None,
                version => version?,
            };
            let series = version.and_then(|version| Series::restore(version.definition).ok());
            self.versions.insert(made_by, series);
        }
        let series = text.made_by.and_then(|made_by| self.versions.get(&made_by)?.as_ref());
        let place =
            || format!("{} of counter {} value {}", text.number, row.of.counter_id, row.of.value);
        let shows = series.is_none_or(|series| series.shows_serial(0));
        let has_place = PartialNumber::parse(&text.mask).is_ok_and(|mask| mask.shows_serial(0));
        let mut broken = Vec::new();
        if text.is_as_written {
            let reads = |series: &Series| series.clone().widened().could_render(&text.number);
            if has_place || series.is_some_and(reads) {
                broken.push(format!("{}: its series could render it as written", place()));
            }
        } else if shows && !has_place {
            broken.push(format!("{}: its mask has no place for the value", place()));
        }
        if series.is_some_and(|series| !has_scope(series, text)) {
            broken.push(format!("{}: its scope {:?} is not its version's", place(), text.scope));
        }
        broken.into_iter().for_each(|broken| self.add(broken));
        Ok(())
    }

    fn read_segment(&mut self, row: &Written, StandsFor { last, note }: &StandsFor) {
        let place = format!("the segment of counter {} value {}", row.of.counter_id, row.of.value);
        let Some(note) = note else {
            return self.add(format!("{place} does not say which rows it stands for"));
        };
        let values = last.abs_diff(row.of.value) + 1;
        if note.rows == 0 || note.rows > values {
            self.add(format!("{place} stands for {} rows, and has {values} values", note.rows));
        }
        self.archived += note.rows;
        *self.segments.entry((note.file.clone(), note.sha256.clone())).or_default() += note.rows;
    }

    /// Compares the segments with the files, where all of them were read, and looks for the keys.
    pub(super) async fn finish(&mut self, with_files: bool) -> Result<(), LedgerError> {
        let files = self.files().await?;
        let may_stay = self.ledger.audits().sizes().await?.revisions > 0
            || self.ledger.life().is_any_beside_segments().await?;
        let mut segments: BTreeMap<_, _> = std::mem::take(&mut self.segments).into_iter().collect();
        segments.retain(|_, _| with_files);
        for ((name, sha256), rows) in segments {
            match files.get(&name) {
                Some(file) if hexadecimal(&file.file.sha256) != sha256 => {
                    self.add(format!("segments know {name} with another SHA-256 than the ledger"));
                }
                // Rows of numbers with revisions, or that are void, stay in the journal in
                // addition to the file.
                Some(file)
                    if rows > file.file.rows
                        || rows < file.file.rows && self.ended.contains(&name) && !may_stay =>
                {
                    let has = file.file.rows;
                    self.add(format!("segments stand for {rows} rows of {name}, which has {has}"));
                }
                Some(_) => {}
                None => {
                    self.add(format!("segments stand for {rows} rows of {name}, which is no file"));
                }
            }
        }
        for deviation in self.ledger.audits().schema_deviations().await? {
            if KEYS.contains(&deviation.name.as_str()) {
                let what =
                    if deviation.digest.is_none() { "is not there" } else { "is another one" };
                self.add(format!("{} {what}: nothing keeps it from coming twice", deviation.name));
            }
        }
        Ok(())
    }
}

/// Whether the scope of a number is the one of its version.
fn has_scope(series: &Series, text: &WrittenText) -> bool {
    let context = text.context.as_deref().map(serde_json::from_str).transpose();
    let asked = (text.type_code.as_str(), text.project.as_deref());
    match context {
        Ok(context) => series.may_have_scope(&text.scope, asked, &context.unwrap_or_default()),
        Err(_) => false,
    }
}
