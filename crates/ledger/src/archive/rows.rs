//! Rows of the journal that move to files, and the segments that represent them.

use std::collections::BTreeMap;
use std::sync::Arc;

use numbering::{Range, TakenRange};
use serde::{Deserialize, Serialize};

use crate::columns::{
    FurtherSerial, Word as _, from_json, hash64, read_node, read_uuid, unreadable, unsigned,
};
use crate::compressed_mask::read_mask;
use crate::seal::{RowDigest, RowText};
use crate::{At, Entry, IssuePath, JournalRow, LedgerError, Record, SealedRow, project_hash};

/// A row of the journal as an archive keeps it: the columns of the view `journal_row`, with the
/// counter's name and the code of its series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchivedRow {
    /// Its batch.
    pub batch_id: i64,
    /// Its counter.
    pub counter_id: i64,
    /// First value.
    pub first: i64,
    /// Last value.
    pub last: i64,
    /// Distance between two values.
    pub step: i64,
    /// The series.
    pub series_id: i64,
    /// Its version.
    pub version: i64,
    /// When the request was accepted.
    pub issued_at_us: i64,
    /// How often it was tried again.
    pub retry_count: i64,
    /// The partition that took it.
    pub partition_id: i64,
    /// Its epoch.
    pub epoch: i64,
    /// When the row was written.
    pub journaled_at_us: i64,
    /// The allocation.
    pub allocation_id: Vec<u8>,
    /// First half of a SHA-256 of the request.
    pub digest: Option<Vec<u8>>,
    /// The node that wrote the row.
    pub node_id: Vec<u8>,
    /// The number; of a row of a further serial none.
    pub number: Option<String>,
    /// Its scope.
    pub scope: Option<String>,
    /// Its partially rendered text,
    pub mask: Option<String>,
    /// or the outline of that.
    pub compressed_mask: Option<String>,
    /// Its further serials, JSON.
    pub rest: Option<String>,
    /// The variables, JSON.
    pub context: Option<String>,
    /// The document.
    pub document_id: Option<String>,
    /// The caller's key.
    pub idempotency_key: Option<String>,
    /// The requested project.
    pub project: Option<String>,
    /// The caller's address.
    pub ip_address: Option<String>,
    /// The requested document type.
    pub type_code: String,
    /// Civil date of the document.
    pub document_date: String,
    /// The user who requested it.
    pub user_id: String,
    /// The path that took it: `redis`, `database`, `imported`.
    pub path: String,
    /// Code of the series.
    pub series: String,
    /// Name of the counter's serial.
    pub serial: String,
    /// The counter's key.
    pub counter_key: String,
}

impl ArchivedRow {
    fn text(&self) -> RowText<'_> {
        RowText {
            counter_id: self.counter_id,
            first: self.first,
            last: self.last,
            step: self.step,
            allocation_id: &self.allocation_id,
            number: self.number.as_deref(),
            scope: self.scope.as_deref(),
            mask: self.mask.as_deref(),
            compressed_mask: self.compressed_mask.as_deref(),
            rest: self.rest.as_deref(),
            context: self.context.as_deref(),
            document_id: self.document_id.as_deref(),
            idempotency_key: self.idempotency_key.as_deref(),
            series_id: self.series_id,
            version: i32::try_from(self.version).unwrap_or(i32::MAX),
            type_code: &self.type_code,
            project: self.project.as_deref(),
            document_date: &self.document_date,
            user_id: &self.user_id,
            ip_address: self.ip_address.as_deref(),
            digest: self.digest.as_deref(),
            issued_at_us: self.issued_at_us,
            retry_count: i32::try_from(self.retry_count).unwrap_or(i32::MAX),
            path: &self.path,
        }
    }

    /// The row on its way to the seal of its batch.
    #[must_use]
    pub fn sealed(&self) -> SealedRow {
        SealedRow {
            batch_id: self.batch_id,
            counter_id: self.counter_id,
            first: self.first,
            bytes: Some(self.text().bytes()),
            stands_for: None,
            says_more: false,
        }
    }

    /// A SHA-256 over the row and those before it, whose digest is `before`: zeros for the first.
    #[must_use]
    pub fn digest(&self, before: &[u8]) -> [u8; 32] {
        RowDigest::of("archived row")
            .bytes(Some(before))
            .integer(Some(self.batch_id))
            .integer(Some(self.partition_id))
            .integer(Some(self.epoch))
            .bytes(Some(&self.node_id))
            .integer(Some(self.journaled_at_us))
            .bytes(Some(self.series.as_bytes()))
            .bytes(Some(self.serial.as_bytes()))
            .bytes(Some(self.counter_key.as_bytes()))
            .bytes(Some(&self.text().bytes()))
            .end()
    }

    /// The row as auditors see it; `None` where it has no number: it is of a number's further
    /// serial.
    ///
    /// # Errors
    /// `Refused` for content that no journal holds.
    pub fn journal_row(&self) -> Result<Option<JournalRow>, LedgerError> {
        let Some(number) = self.number.clone() else { return Ok(None) };
        let rest: Vec<FurtherSerial> = match &self.rest {
            Some(text) => from_json(text, "archive.rest")?,
            None => Vec::new(),
        };
        let range = Range {
            first: unsigned(self.first, "archive.first_value")?,
            last: unsigned(self.last, "archive.last_value")?,
            step: unsigned(self.step, "archive.step")?,
        };
        let mut taken = vec![TakenRange { counter_id: self.counter_id, range }];
        let mut serials = vec![self.serial.clone()];
        let mut counter_keys = vec![self.counter_key.clone()];
        for further in rest {
            serials.push(further.serial);
            taken.push(further.taken);
            counter_keys.push(further.key);
        }
        let small = |value: i64, column: &str| {
            u32::try_from(value).map_err(|_| unreadable(column, &value.to_string()))
        };
        let context: BTreeMap<String, String> = match &self.context {
            Some(text) => from_json(text, "archive.context")?,
            None => BTreeMap::new(),
        };
        let record = Record {
            allocation_id: read_uuid(&self.allocation_id, "archive.allocation_id")?,
            series_id: self.series_id,
            version: small(self.version, "archive.version")?,
            type_code: self.type_code.clone(),
            project: self.project.clone(),
            scope: self.scope.clone().unwrap_or_default(),
            mask: read_mask(self.mask.clone(), self.compressed_mask.as_deref(), &number)?,
            document_id: self.document_id.clone(),
            document_date: self.document_date.clone(),
            context,
            serials,
            counter_keys,
            user_id: self.user_id.clone(),
            ip_address: self.ip_address.clone(),
            idempotency_key: self.idempotency_key.clone(),
            payload_digest: numbering::hexadecimal(self.digest.as_deref().unwrap_or_default()),
            issued_at_us: self.issued_at_us,
        };
        let partition = small(self.partition_id, "archive.partition_id")?;
        let epoch = unsigned(self.epoch, "archive.epoch")?;
        Ok(Some(JournalRow {
            entry: Entry {
                record: Arc::new(record),
                taken,
                number,
                at: At { partition, epoch },
                retry_count: small(self.retry_count, "archive.retry_count")?,
                path: IssuePath::read(&self.path)?,
            },
            series: self.series.clone(),
            template: String::new(),
            node_id: read_node(&self.node_id, "archive.node_id")?,
            journaled_at_us: self.journaled_at_us,
            is_put_aside: false,
        }))
    }
}

/// A run of values without a hole, of one counter, step, partition and epoch, whose rows move to a
/// file together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedRun {
    /// The counter.
    pub counter_id: i64,
    /// Its first value.
    pub first: i64,
    /// Its last value.
    pub last: i64,
    /// How many rows.
    pub rows: u64,
    pub(crate) step: i64,
    pub(crate) partition_id: i32,
    pub(crate) epoch: i64,
    pub(crate) digest: [u8; 32],
    pub(crate) newest: RunEnd,
    /// Numbers, documents and projects, as they are looked for.
    pub(crate) names: Vec<(i64, Option<i64>, i64)>,
}

/// The part of the last row that its segment keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunEnd {
    pub(crate) series_id: i64,
    pub(crate) version: i32,
    pub(crate) type_code: String,
    pub(crate) project: Option<String>,
    pub(crate) issued_at_us: i64,
    /// The latest of all documents.
    pub(crate) document_date: String,
}

impl ArchivedRun {
    /// How many of the first rows, at most `rows_max`, are of one run.
    #[must_use]
    pub fn length(rows: &[ArchivedRow], rows_max: usize) -> usize {
        let follows = |pair: &[ArchivedRow]| {
            let [one, next] = pair else { return false };
            let of = |row: &ArchivedRow| (row.counter_id, row.step, row.partition_id, row.epoch);
            of(one) == of(next) && one.last.checked_add(one.step) == Some(next.first)
        };
        let more =
            rows.windows(2).take(rows_max.saturating_sub(1)).take_while(|pair| follows(pair));
        more.count() + usize::from(!rows.is_empty())
    }

    /// The run of these rows; `None` where they are none.
    #[must_use]
    pub fn of(rows: &[ArchivedRow]) -> Option<Self> {
        let (first, last) = (rows.first()?, rows.last()?);
        let mut digest = [0; 32];
        for row in rows {
            digest = row.digest(&digest);
        }
        let latest = rows.iter().map(|row| row.document_date.as_str()).max()?;
        let name = |row: &ArchivedRow| {
            let document = row.document_id.as_deref().map(document_hash);
            let project = project_hash(row.project.as_deref().unwrap_or_default());
            Some((number_hash(row.number.as_deref()?), document, project))
        };
        Some(ArchivedRun {
            counter_id: first.counter_id,
            first: first.first,
            last: last.last,
            rows: rows.len() as u64,
            step: first.step,
            partition_id: i32::try_from(first.partition_id).ok()?,
            epoch: first.epoch,
            digest,
            newest: RunEnd {
                series_id: last.series_id,
                version: i32::try_from(last.version).ok()?,
                type_code: last.type_code.clone(),
                project: last.project.clone(),
                issued_at_us: rows.iter().map(|row| row.issued_at_us).max()?,
                document_date: latest.to_owned(),
            },
            names: rows.iter().filter_map(name).collect(),
        })
    }
}

/// The hash by which a number is found among the archived ones.
pub(crate) fn number_hash(number: &str) -> i64 {
    i64::from_be_bytes(hash64(&format!("number {number}")).to_be_bytes())
}

/// The hash by which a document is found among those of archived numbers.
pub(crate) fn document_hash(document_id: &str) -> i64 {
    i64::from_be_bytes(hash64(&format!("document {document_id}")).to_be_bytes())
}

/// The hashes by which a number of a value is found among the archived ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArchivedName {
    pub(crate) number_hash: i64,
    pub(crate) document_hash: Option<i64>,
    pub(crate) project_hash: i64,
    pub(crate) counter_id: i64,
    pub(crate) first: i64,
}

impl ArchivedName {
    /// Of a number, its document and that one's project, and its counter and first value.
    pub(crate) fn of(
        number: &str,
        (document_id, project): (Option<&str>, Option<&str>),
        (counter_id, first): (i64, i64),
    ) -> Self {
        ArchivedName {
            number_hash: number_hash(number),
            document_hash: document_id.map(document_hash),
            project_hash: project_hash(project.unwrap_or_default()),
            counter_id,
            first,
        }
    }
}

/// The note of a segment about the rows that it represents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentNote {
    /// The file's name.
    pub file: String,
    /// The file's SHA-256, hexadecimal.
    pub sha256: String,
    /// How many rows.
    pub rows: u64,
    /// SHA-256 over the rows, hexadecimal.
    pub digest: String,
}

/// A file that is to represent rows of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewArchiveFile {
    /// Its name.
    pub name: String,
    /// SHA-256 of its bytes.
    pub sha256: Vec<u8>,
    /// How many rows it holds.
    pub rows: u64,
    /// The manifest of the file: JSON, signed where there is a key.
    pub manifest: String,
    /// Its rows are from before this time.
    pub before_us: i64,
    /// When the last of its numbers was issued.
    pub last_issued_us: i64,
    /// The user who wrote it.
    pub written_by: String,
}

/// A file that represents rows of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveFile {
    /// Its id.
    pub archive_file_id: i32,
    /// The file as it was described when it was written.
    pub file: NewArchiveFile,
    /// When it was written.
    pub written_at_us: i64,
    /// Whether all of its rows have made room.
    pub is_ended: bool,
    /// When it was marked as deleted.
    pub deleted_at_us: Option<i64>,
}
