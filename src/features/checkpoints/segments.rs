//! How many rows segments account for, and which segments may: a segment accounts for rows that are
//! missing from bound batches only if a holder of the key wrote it and the ledger names its file.
//! No segment is ever archived: the batch of each is complete.

use std::collections::{BTreeMap, HashMap};

use numbering::hexadecimal;

use super::report::{Findings, Place};
use crate::ledger::{ArchiveFile, SegmentNote, StandsFor};

/// A segment of the journal.
#[derive(Debug)]
pub(super) struct Segment {
    batch_id: i64,
    last: i64,
    note: Option<SegmentNote>,
    /// How many of its rows a file gave.
    pub(super) read: u64,
}

impl Segment {
    pub(super) fn of(batch_id: i64, StandsFor { last, note }: StandsFor) -> Self {
        Segment { batch_id, last, note, read: 0 }
    }

    /// Whether it accounts for a value of a file with this SHA-256.
    pub(super) fn holds(&self, value: i64, sha256: &str) -> bool {
        self.last >= value && self.note.as_ref().is_some_and(|note| note.sha256 == sha256)
    }
}

/// Whether the batch of a segment can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentEvidence {
    /// A holder of the key wrote it, or it existed before the key.
    Good,
    /// No checkpoint binds it yet, so this cannot be determined here.
    NotYet,
    /// Its rows are not those that were sealed, or are incomplete.
    Unsound,
    /// None of these: its flaw is a finding of its own.
    None,
}

/// How many rows segments account for that no file gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stands {
    /// Rows that may be missing.
    pub(super) good: u64,
    /// Rows whose segments no checkpoint binds yet.
    pub(super) not_yet: u64,
}

/// Judges all segments; flaws of their files are findings. `may_stay`: whether rows of a file may
/// also have stayed in the journal, as those of numbers with revisions do.
pub(super) fn judge(
    segments: &BTreeMap<(i64, i64), Segment>,
    (files, may_stay): (&[ArchiveFile], bool),
    voucher: impl Fn(i64) -> SegmentEvidence,
    found: &mut Findings,
) -> Stands {
    let named: HashMap<&str, &ArchiveFile> =
        files.iter().map(|file| (file.file.name.as_str(), file)).collect();
    let (mut stands, mut rows_of) = (Stands::default(), HashMap::<&str, u64>::new());
    for ((counter_id, first), segment) in segments {
        let place = format!("the segment of counter {counter_id} value {first}");
        let Some(note) = &segment.note else {
            found.add(Place::Archive, format!("{place} does not say which rows it stands for"));
            continue;
        };
        let Some(file) = named.get(note.file.as_str()) else {
            let why = format!(
                "{place} stands for rows of {}, which is no file of the ledger's",
                note.file
            );
            found.add(Place::Archive, why);
            continue;
        };
        if hexadecimal(&file.file.sha256) != note.sha256 {
            let why = format!("{place} knows {} with another SHA-256", note.file);
            found.add(Place::Archive, why);
            continue;
        }
        *rows_of.entry(&note.file).or_default() += note.rows;
        if segment.read > 0 && segment.read != note.rows {
            let why = format!(
                "{place} stands for {} rows, and {} has {} of them",
                note.rows, note.file, segment.read
            );
            found.add(Place::Archive, why);
        }
        let unread = note.rows.saturating_sub(segment.read);
        match voucher(segment.batch_id) {
            SegmentEvidence::Good => stands.good += unread,
            SegmentEvidence::NotYet => stands.not_yet += unread,
            SegmentEvidence::Unsound => {
                let why = format!("{place} is of no batch whose rows are what was sealed");
                found.add(Place::Archive, why);
            }
            SegmentEvidence::None => {}
        }
    }
    for (name, rows) in rows_of {
        let Some(file) = named.get(name) else { continue };
        let has = file.file.rows;
        if rows > has || rows < has && file.is_ended && !may_stay {
            let why = format!("segments stand for {rows} rows of {name}, which has {has}");
            found.add(Place::Archive, why);
        }
    }
    stands
}
