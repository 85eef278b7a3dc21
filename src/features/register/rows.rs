//! A row of the journal as look-ups, lists and exports show it.

use numerator_runtime::actor::{person_of, service_of};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::features::numbers::answer::{SourceAnswer, ValuesAnswer};
use crate::features::register::revisions::RevisionRow;
use crate::ledger::{IssuePath, JournalRow, Revision};
use crate::web::instant::instant;

/// As what a number stands in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FoundAs {
    /// It was issued: alone, or as the first of a range.
    Number,
    /// It was issued within a range, whose row this is.
    Range,
    /// It is a revision of the number whose row this is.
    Revision,
}

/// A journal row to show.
#[derive(Debug)]
pub(crate) struct FoundRow {
    pub(crate) row: JournalRow,
    /// Its revisions, if they were looked up.
    pub(crate) revisions: Option<Vec<Revision>>,
    /// The role in which the requested number occurs there.
    pub(crate) found_as: Option<FoundAs>,
}

impl FoundRow {
    /// A row without further look-ups.
    pub(crate) fn of(row: JournalRow) -> Self {
        FoundRow { row, revisions: None, found_as: None }
    }
}

/// One allocation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NumberRow<'a> {
    /// The number; the first one of a range.
    pub(crate) document_number: &'a str,
    /// When the request was accepted.
    #[schema(format = DateTime)]
    pub(crate) issued_at: String,
    /// Everything else about it.
    #[serde(flatten)]
    pub(crate) about: NumberAbout<'a>,
}

/// One allocation under the names of the audit trail.
#[derive(Debug, Serialize)]
pub(crate) struct ExportedRow<'a> {
    pub(crate) generated_number: &'a str,
    pub(crate) timestamp: String,
    #[serde(flatten)]
    pub(crate) about: NumberAbout<'a>,
}

impl<'a> From<NumberRow<'a>> for ExportedRow<'a> {
    fn from(NumberRow { document_number, issued_at, about }: NumberRow<'a>) -> Self {
        ExportedRow { generated_number: document_number, timestamp: issued_at, about }
    }
}

/// What a row says beside the number and its time.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NumberAbout<'a> {
    /// The allocation.
    #[schema(value_type = String)]
    pub(crate) allocation_id: Uuid,
    /// The document, where one was named.
    pub(crate) document_id: Option<&'a str>,
    /// Where it comes from.
    #[serde(flatten)]
    pub(crate) source: SourceAnswer<'a>,
    /// The values taken, one range per serial.
    pub(crate) serials: Vec<ValuesAnswer>,
    /// The template.
    pub(crate) template_used: &'a str,
    /// Civil date of the document.
    pub(crate) document_date: &'a str,
    /// Who asked: the person, or the identity that asked for itself.
    pub(crate) user_id: &'a str,
    /// The service through which the person asked.
    pub(crate) service: Option<&'a str>,
    /// From where.
    pub(crate) ip_address: Option<&'a str>,
    /// When the row was written.
    #[schema(format = DateTime)]
    pub(crate) journaled_at: String,
    /// How often the request was tried again.
    pub(crate) retry_count: u32,
    /// `redis` or `database`.
    #[schema(value_type = String)]
    pub(crate) path: IssuePath,
    /// The caller's key.
    pub(crate) idempotency_key: Option<&'a str>,
    /// Its revisions, oldest first; left out in look-ups by other fields than the number.
    #[serde(skip_serializing_if = "Option::is_none")]
    revisions: Option<Vec<RevisionRow<'a>>>,
    /// As what the number that was looked for stands here.
    #[serde(skip_serializing_if = "Option::is_none")]
    found_as: Option<FoundAs>,
    /// True where the ledger refused the record and keeps it beside the journal: it was issued all
    /// the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    put_aside: bool,
}

impl<'a> NumberRow<'a> {
    /// The answer for rows.
    pub(crate) fn all_of(rows: &'a [FoundRow]) -> Vec<Self> {
        rows.iter().map(Self::of).collect()
    }

    /// The answer for one.
    pub(crate) fn of(FoundRow { row, revisions, found_as }: &'a FoundRow) -> Self {
        let (entry, record) = (&row.entry, &row.entry.record);
        let revisions = revisions.as_ref();
        let about = NumberAbout {
            allocation_id: record.allocation_id,
            document_id: record.document_id.as_deref(),
            source: SourceAnswer::of(record, &row.series),
            serials: entry.taken.iter().map(|taken| ValuesAnswer::of(taken.range)).collect(),
            template_used: &row.template,
            document_date: &record.document_date,
            user_id: person_of(&record.user_id),
            service: service_of(&record.user_id),
            ip_address: record.ip_address.as_deref(),
            journaled_at: instant(row.journaled_at_us),
            retry_count: entry.retry_count,
            path: entry.path,
            idempotency_key: record.idempotency_key.as_deref(),
            revisions: revisions.map(|revisions| revisions.iter().map(RevisionRow::of).collect()),
            found_as: *found_as,
            put_aside: row.is_put_aside,
        };
        let issued_at = instant(record.issued_at_us);
        NumberRow { document_number: &entry.number, issued_at, about }
    }
}
