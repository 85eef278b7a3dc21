//! Rows of the journal that move to files, and the segments that represent them.

mod file_columns;

use std::collections::BTreeMap;
use std::sync::Arc;

use numbering::{Range, TakenRange, hexadecimal};
use serde::{Deserialize, Serialize};

use crate::columns::{
    FurtherSerial, Word as _, digest_bytes, from_json, hash64, read_node, read_uuid, unreadable,
};
use crate::compressed_mask::read_mask;
use crate::journal_columns::journal_columns;
use crate::query::Row;
use crate::row_text::{ColumnType as _, RowText};
use crate::seal::RowDigest;
use crate::{At, Entry, IssuePath, JournalRow, LedgerError, Record, SealedRow, project_hash};
use file_columns::InFile;
pub use file_columns::{Cell, FileColumn, FileColumnKind};

/// Reads a column of the view `journal_row`.
macro_rules! read_column {
    (digest $name:ident $row:ident) => {
        digest_bytes($row.try_get(stringify!($name))?)?
    };
    ($kind:ident $name:ident $row:ident) => {
        $row.try_get(stringify!($name))?
    };
}

/// A column of files that has a field's values.
macro_rules! file_column {
    ($kind:ident $name:ident: $type:ty) => {
        FileColumn {
            name: stringify!($name),
            kind: <$type as InFile>::KIND,
            is_later: is_later!($kind),
            get: |row| row.$name.cell(),
            set: |row, cell| {
                row.$name = InFile::of(cell)?;
                Some(())
            },
        }
    };
}

macro_rules! is_later {
    (later) => {
        true
    };
    ($kind:ident) => {
        false
    };
}

macro_rules! archived_row {
    ([] $($(#[$about:meta])* $kind:ident $name:ident: $type:ty { $($own:tt)* })*) => {
        /// A row of the view `journal_row`, with the counter's name and the code of its series: as
        /// look-ups read it, and as an archive keeps it.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct ArchivedRow {
            /// Its batch.
            pub batch_id: i64,
            $($(#[$about])* pub $name: $type,)*
            /// The partition that took it.
            pub partition_id: i32,
            /// Its epoch.
            pub epoch: i64,
            /// When the row was written.
            pub journaled_at_us: i64,
            /// The node that wrote the row.
            pub node_id: Vec<u8>,
            /// Code of the series.
            pub series: String,
            /// Name of the counter's serial.
            pub serial: String,
            /// The counter's key.
            pub key: String,
        }

        impl ArchivedRow {
            /// A row with the columns of `entry_columns`.
            ///
            /// # Errors
            /// A row that has no counter, or points to something that is missing.
            pub(crate) fn read(row: &Row, series: String) -> Result<Self, LedgerError> {
                Ok(ArchivedRow {
                    batch_id: row.try_get("batch_id")?,
                    $($name: read_column!($kind $name row),)*
                    partition_id: row.try_get("partition_id")?,
                    epoch: row.try_get("epoch")?,
                    journaled_at_us: row.try_get("journaled_at_us")?,
                    node_id: row.try_get("node_id")?,
                    series,
                    serial: row.try_get("serial")?,
                    key: row.try_get("key")?,
                })
            }

            fn text(&self) -> RowText<'_> {
                RowText { $($name: self.$name.borrowed(),)* }
            }
        }

        /// The columns of files, in the order of the fields.
        fn all_columns() -> Vec<FileColumn> {
            vec![
                file_column!(sealed batch_id: i64),
                $(file_column!($kind $name: $type),)*
                file_column!(sealed partition_id: i32),
                file_column!(sealed epoch: i64),
                file_column!(sealed journaled_at_us: i64),
                file_column!(sealed node_id: Vec<u8>),
                file_column!(sealed series: String),
                file_column!(sealed serial: String),
                file_column!(sealed key: String),
            ]
        }
    };
}
journal_columns!([] archived_row);

impl ArchivedRow {
    /// The row on its way to the seal of its batch.
    #[must_use]
    pub fn sealed(&self) -> SealedRow {
        SealedRow {
            batch_id: self.batch_id,
            counter_id: self.counter_id,
            first: self.first_value,
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
            .integer(Some(i64::from(self.partition_id)))
            .integer(Some(self.epoch))
            .bytes(Some(&self.node_id))
            .integer(Some(self.journaled_at_us))
            .bytes(Some(self.series.as_bytes()))
            .bytes(Some(self.serial.as_bytes()))
            .bytes(Some(self.key.as_bytes()))
            .bytes(Some(&self.text().bytes()))
            .end()
    }

    /// The row as auditors see it; `None` where it has no number: it is of a number's further
    /// serial.
    ///
    /// # Errors
    /// `Fault` for content that no journal holds.
    pub fn journal_row(&self) -> Result<Option<JournalRow>, LedgerError> {
        self.clone().into_journal_row("archive", String::new())
    }

    /// The same for a row of a table, whose name errors give, with the template of its series.
    pub(crate) fn into_journal_row(
        self,
        table: &str,
        template: String,
    ) -> Result<Option<JournalRow>, LedgerError> {
        let Some(number) = self.number else { return Ok(None) };
        let column = |name: &str| format!("{table}.{name}");
        let count = |value: i64, name: &str| {
            u64::try_from(value).map_err(|_| unreadable(&column(name), &value.to_string()))
        };
        let small = |value: i32, name: &str| {
            u32::try_from(value).map_err(|_| unreadable(&column(name), &value.to_string()))
        };
        let rest: Vec<FurtherSerial> = match &self.rest {
            Some(text) => from_json(text, &column("rest"))?,
            None => Vec::new(),
        };
        let context: BTreeMap<String, String> = match &self.context {
            Some(text) => from_json(text, &column("context"))?,
            None => BTreeMap::new(),
        };
        let range = Range {
            first: count(self.first_value, "first_value")?,
            last: count(self.last_value, "last_value")?,
            step: count(self.step, "step")?,
        };
        let mut taken = vec![TakenRange { counter_id: self.counter_id, range }];
        let (mut serials, mut counter_keys) = (vec![self.serial], vec![self.key]);
        for further in rest {
            serials.push(further.serial);
            taken.push(further.taken);
            counter_keys.push(further.key);
        }
        let record = Record {
            allocation_id: read_uuid(&self.allocation_id, &column("allocation_id"))?,
            series_id: self.series_id,
            version: small(self.version, "version")?,
            type_code: self.type_code,
            project: self.project,
            scope: self.scope.ok_or_else(|| unreadable(&column("scope"), "null"))?,
            mask: read_mask(self.mask, self.outline.as_deref(), &number)?,
            document_id: self.document_id,
            document_date: self.document_date,
            context,
            serials,
            counter_keys,
            user_id: self.user_id,
            ip_address: self.ip_address,
            idempotency_key: self.idempotency_key,
            payload_digest: hexadecimal(self.payload_digest.as_deref().unwrap_or_default()),
            issued_at_us: self.issued_at_us,
        };
        let partition = small(self.partition_id, "partition_id")?;
        let at = At { partition, epoch: count(self.epoch, "epoch")? };
        let retry_count = small(self.retry_count, "retry_count")?;
        let (record, path) = (Arc::new(record), IssuePath::read(&self.path)?);
        Ok(Some(JournalRow {
            entry: Entry { record, taken, number, at, retry_count, path },
            series: self.series,
            template,
            timezone: None,
            node_id: read_node(&self.node_id, &column("node_id"))?,
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
            of(one) == of(next) && one.last_value.checked_add(one.step) == Some(next.first_value)
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
            first: first.first_value,
            last: last.last_value,
            rows: rows.len() as u64,
            step: first.step,
            partition_id: first.partition_id,
            epoch: first.epoch,
            digest,
            newest: RunEnd {
                series_id: last.series_id,
                version: last.version,
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
