//! Issued numbers: what is asked, and what the journal answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use numbering::{DocumentsOf, PartialNumber, TakenRange, first_values};
use numerator_runtime::node::NodeId;
use serde::ser::SerializeSeq;
use serde::{Deserialize, Serialize, Serializer as _};
use uuid::Uuid;

use crate::columns::Word as _;
use crate::{AssignedNumber, At, Projects, Reservation, Span};

/// Room for an ordinary record on its way through Redis.
const FLAT_BYTES: usize = 384;

/// Declares a type, and how its fields are written one after the other.
macro_rules! with_list {
    ($(#[$of:meta])* pub struct $name:ident {
        $($(#[$about:meta])* pub $field:ident: $type:ty,)*
    }) => {
        $(#[$of])*
        pub struct $name {
            $($(#[$about])* pub $field: $type,)*
        }

        impl $name {
            fn write_fields<S: SerializeSeq>(&self, list: &mut S) -> Result<(), S::Error> {
                $(list.serialize_element(&self.$field)?;)*
                Ok(())
            }
        }
    };
}

with_list! {
    /// Everything that the journal needs to know of an allocation but its values. Made before the
    /// values are taken; travels as JSON through the outbox and the idempotency records, where a
    /// reader takes a list of the fields as well as an object.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Record {
        /// Chosen before the flight (F10).
        pub allocation_id: Uuid,
        /// The series.
        pub series_id: i64,
        /// Its version.
        pub version: u32,
        /// Document type asked for.
        pub type_code: String,
        /// Project asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub project: Option<String>,
        /// Uniqueness scope as text.
        pub scope: String,
        /// The text of the partially rendered number, as the journal's column `mask` keeps it.
        pub mask: String,
        /// The document, where the caller named one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub document_id: Option<String>,
        /// Civil date of the document.
        pub document_date: String,
        /// The variables of the request.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub context: BTreeMap<String, String>,
        /// Names of the serials; none of the row that keeps the text of a revision.
        pub serials: Vec<String>,
        /// Counter keys, one per serial.
        pub counter_keys: Vec<String>,
        /// Who asked.
        pub user_id: String,
        /// From where.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub ip_address: Option<String>,
        /// The caller's `Idempotency-Key` (with `#i` for the item of a batch).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub idempotency_key: Option<String>,
        /// Hash of the payload, hex.
        pub payload_digest: String,
        /// When the request was accepted.
        pub issued_at_us: i64,
    }
}

impl Record {
    /// The record as it travels through Redis: a JSON list of its fields in their order. It is
    /// stored for each number, so the field names are left out.
    ///
    /// # Panics
    /// Never: a record is plain data.
    #[must_use]
    pub fn to_flat_json(&self) -> String {
        let mut json = serde_json::Serializer::new(Vec::with_capacity(FLAT_BYTES));
        let written = json.serialize_seq(None).and_then(|mut list| {
            self.write_fields(&mut list)?;
            SerializeSeq::end(list)
        });
        written.expect("a record is plain data");
        String::from_utf8(json.into_inner()).expect("JSON is text")
    }
}

/// Which path took a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IssuePath {
    /// A flight to Redis.
    Redis,
    /// A transaction of the ledger.
    Database,
    /// None of ours: another system issued it, and it was imported.
    Imported,
    /// None of ours: it was given by hand, and registered.
    Registered,
    /// None of ours: it was given by hand, no series could render it, and it is kept as written.
    #[serde(rename = "as-written")]
    AsWritten,
}

impl IssuePath {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Redis, Self::Database, Self::Imported, Self::Registered, Self::AsWritten];

    /// Its word, in the journal as in answers and log lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.word()
    }
}

/// One allocation with its values, ready for the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What was asked.
    pub record: Arc<Record>,
    /// What was taken, one per serial.
    pub taken: Vec<TakenRange>,
    /// Text of the first number.
    pub number: String,
    /// Partition and epoch that took it.
    pub at: At,
    /// How often the request was sent or tried again before it was answered.
    pub retry_count: u32,
    /// Which path took it.
    pub path: IssuePath,
}

impl Entry {
    /// Whether a number is the one that it has for a value of its first serial.
    #[must_use]
    pub fn shows(&self, value: u64, number: &str) -> bool {
        self.text_of(value).as_deref() == Some(number)
    }

    /// The number that it has for a value of its first serial, from the first value on, if any.
    #[must_use]
    pub fn text_of(&self, value: u64) -> Option<String> {
        let head = self.taken.first()?;
        let place = value.checked_sub(head.range.first)? / head.range.step;
        let values = self.taken.iter().map(|it| it.range.first + place * it.range.step);
        PartialNumber::parse(&self.record.mask).ok()?.fill(&values.collect::<Vec<_>>()).ok()
    }

    /// The entry of an allocation as a flight wrote it into Redis: its values and its record.
    ///
    /// # Errors
    /// Why the record cannot be read: it was written by another version, or by another program.
    pub fn of_flight(at: At, taken: Vec<TakenRange>, record: &str) -> Result<Self, String> {
        let record: Record = serde_json::from_str(record).map_err(|error| error.to_string())?;
        let partial = PartialNumber::parse(&record.mask).map_err(|error| error.to_string())?;
        let number = partial.fill(&first_values(&taken)).map_err(|error| error.to_string())?;
        let (record, path) = (Arc::new(record), IssuePath::Redis);
        Ok(Entry { record, taken, number, at, retry_count: 0, path })
    }
}

/// What became of a batch of entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Appended {
    /// Rows written now.
    pub written: u64,
    /// Entries that were there already.
    pub known: u64,
    /// Entries that collided with another allocation: duplicates. Must stay empty.
    pub collisions: Vec<Uuid>,
    /// The partitions in which the counters live now that were looked for by their names.
    pub homes: BTreeSet<u32>,
}

/// Keys under which an earlier number may be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Series of the keys.
    pub series_id: i64,
    /// The caller whose key it is.
    pub user_id: String,
    /// The caller's key.
    pub idempotency_key: Option<String>,
    /// The document.
    pub document_id: Option<String>,
    /// Whose document it is.
    pub documents: DocumentsOf,
    /// Hash of the payload.
    pub payload_digest: String,
    /// Whether a document that has a number for another payload gets another one.
    pub again: bool,
    /// Only rows issued since then (the idempotency window).
    pub since_us: i64,
    /// Whether the document is looked for in rows of any age: it is numbered once, for ever.
    pub once_per_document: bool,
}

impl Question {
    /// Whether a document has any number of a series, of whatever age, or holds one.
    pub(crate) fn of_document(
        series_id: i64,
        user_id: &str,
        document_id: &str,
        documents: &DocumentsOf,
    ) -> Self {
        Question {
            series_id,
            user_id: user_id.to_owned(),
            idempotency_key: None,
            document_id: Some(document_id.to_owned()),
            documents: documents.clone(),
            payload_digest: String::new(),
            again: false,
            since_us: i64::MIN,
            once_per_document: true,
        }
    }

    /// Whether an entry under the document is an answer: not one for another payload where the
    /// caller wants another number.
    #[must_use]
    pub fn is_answered_by(&self, entry: &Entry) -> bool {
        !self.again || entry.record.payload_digest == self.payload_digest
    }

    /// Whether an entry is recorded under the caller's key.
    pub(crate) fn is_keyed_like(&self, entry: &Entry) -> bool {
        let record = &*entry.record;
        self.idempotency_key.is_some()
            && record.idempotency_key == self.idempotency_key
            && (record.series_id, &record.user_id) == (self.series_id, &self.user_id)
            && record.issued_at_us >= self.since_us
    }

    /// Whether an entry is recorded under the document, which is of these projects.
    pub(crate) fn is_of_document(&self, entry: &Entry, projects: &Projects) -> bool {
        let record = &*entry.record;
        self.document_id.is_some()
            && record.document_id == self.document_id
            && projects.have(record.project.as_deref())
            && record.series_id == self.series_id
            && (self.once_per_document || record.issued_at_us >= self.since_us)
    }
}

/// The journal's answer to a question. The newest row of each kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Under the caller's key.
    pub by_key: Option<Entry>,
    /// Under the document.
    pub by_document: Option<Entry>,
    /// The archive file that has the document's number, where the journal has none.
    pub archived: Option<String>,
    /// A live reservation under the caller's key that is not confirmed.
    pub reserved_by_key: Option<Box<Reservation>>,
    /// The same under the document.
    pub reserved_by_document: Option<Box<Reservation>>,
    /// The number of a range that is assigned to the document, where that is numbered once and the
    /// request wants no other number. No entry of the journal: it is not handed out with an answer.
    pub assigned: Option<Box<AssignedNumber>>,
}

/// What a document has, so that it gets no other number.
#[derive(Clone, Debug, PartialEq)]
pub enum DocumentHas {
    /// A number of its own.
    Number(Box<Entry>),
    /// A number of a range, which is assigned to it.
    Assigned(Box<AssignedNumber>),
    /// A number that is reserved for it.
    Reserved(Box<Reservation>),
    /// A number whose record moved to this file of the archive.
    Archived(String),
}

impl Found {
    /// What the document has; what is issued comes before what is reserved.
    #[must_use]
    pub fn of_document(self) -> Option<DocumentHas> {
        // Field by field: none that is added is to be missed.
        let Found {
            by_document,
            assigned,
            reserved_by_document,
            archived,
            by_key: _,
            reserved_by_key: _,
        } = self;
        let number = by_document.map(|entry| DocumentHas::Number(Box::new(entry)));
        number
            .or(assigned.map(DocumentHas::Assigned))
            .or(reserved_by_document.map(DocumentHas::Reserved))
            .or(archived.map(DocumentHas::Archived))
    }

    /// All numbers that were found.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.by_key.iter().chain(&self.by_document)
    }

    /// All reservations that were found and are not confirmed.
    pub fn reserved(&self) -> impl Iterator<Item = &Reservation> {
        self.reserved_by_key.iter().chain(&self.reserved_by_document).map(|reserved| &**reserved)
    }
}

/// A journal row as auditors see it.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalRow {
    /// The allocation.
    pub entry: Entry,
    /// Code of its series; empty where the version that made it is not in the ledger.
    pub series: String,
    /// `template_used`; likewise.
    pub template: String,
    /// The time zone of its series by its IANA name; none where that is UTC, or in the archive.
    pub timezone: Option<String>,
    /// The node that journaled it.
    pub node_id: NodeId,
    /// When the row was written.
    pub journaled_at_us: i64,
    /// Whether the ledger refused the record, and keeps it raw outside the journal.
    pub is_put_aside: bool,
}

/// A duplicate that the ledger noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collision {
    /// The allocation that came second.
    pub allocation_id: Uuid,
    /// The one that was there.
    pub other_allocation_id: Option<Uuid>,
    /// The number of the second.
    pub number: String,
    /// Its counter and values.
    pub counter_id: i64,
    /// Its values.
    pub span: Span,
    /// When it was noted.
    pub noted_at_us: i64,
}

/// What became of an adoption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Adopted {
    /// Rows written.
    pub written: u64,
    /// Entries known already.
    pub known: u64,
    /// Entries of an epoch closed exact, never handed out.
    pub discarded: u64,
    /// Entries that collided with another allocation: duplicates. Must stay 0.
    pub collided: u64,
}

impl Adopted {
    /// Adds what became of further entries.
    pub fn add(&mut self, more: Adopted) {
        self.written += more.written;
        self.known += more.known;
        self.discarded += more.discarded;
        self.collided += more.collided;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_back_from_either_form() {
        let record = Record {
            allocation_id: Uuid::from_u128(7),
            series_id: 3,
            version: 2,
            type_code: "LETTER".into(),
            project: Some("P".into()),
            scope: "project=P".into(),
            mask: "P-{0:4}".into(),
            document_id: None,
            document_date: "2026-01-02".into(),
            context: [("ORIGINATOR".to_owned(), "\u{e04}\"".to_owned())].into(),
            serials: vec!["SEQ".into()],
            counter_keys: vec!["year=2026".into()],
            user_id: "u".into(),
            ip_address: Some("127.0.0.1".into()),
            idempotency_key: None,
            payload_digest: "00".into(),
            issued_at_us: 5,
        };
        for text in [record.to_flat_json(), serde_json::to_string(&record).unwrap()] {
            assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record, "{text}");
        }
    }
}
