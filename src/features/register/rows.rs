//! A row of the journal as look-ups, lists and exports show it.

use std::collections::BTreeMap;

use numerator_runtime::actor::{person_of, service_of};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::auth::Identity;
use crate::features::lifecycle::standing::{RowLife, StandingAnswer, chain_seen_by, lives_of};
use crate::features::numbers::answer::{SourceAnswer, ValuesAnswer};
use crate::features::register::kinds::RowKind;
use crate::features::register::revisions::RevisionRow;
use crate::ledger::{IssuePath, JournalRow, LedgerError, Revision, RowVisibility, SharedLedger};
use crate::web::instant::{instant, instant_in};

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
    /// What became of its numbers.
    pub(crate) life: RowLife,
    /// The numbers of its chain of replacements, if it was looked up.
    pub(crate) chain: Vec<String>,
}

impl FoundRow {
    /// A row without further look-ups.
    pub(crate) fn of(row: JournalRow) -> Self {
        let life = RowLife::default();
        FoundRow { row, revisions: None, found_as: None, life, chain: Vec::new() }
    }

    /// The row as a caller sees it: without the texts of numbers beyond it which its own replaces,
    /// or which replace it.
    pub(crate) async fn seen_by(
        self,
        ledger: &SharedLedger,
        identity: &Identity,
    ) -> Result<Self, LedgerError> {
        if matches!(identity.row_visibility(), RowVisibility::Everything) {
            return Ok(self);
        }
        let FoundRow { row, revisions, found_as, life, chain } = self;
        let life = life.seen_by(ledger, identity, &row).await?;
        let chain = chain_seen_by(ledger, identity, chain).await?;
        Ok(FoundRow { row, revisions, found_as, life, chain })
    }

    /// The row with every assigned number of its range.
    pub(crate) async fn with_all_assigned(
        self,
        ledger: &SharedLedger,
    ) -> Result<Self, LedgerError> {
        let life = self.life.with_all_assigned(ledger, &self.row).await?;
        Ok(FoundRow { life, ..self })
    }

    /// Rows of the journal with what became of their numbers.
    pub(crate) async fn with_lives(
        ledger: &SharedLedger,
        rows: Vec<JournalRow>,
    ) -> Result<Vec<Self>, LedgerError> {
        let lives = lives_of(ledger, &rows).await?;
        let found = rows.into_iter().zip(lives);
        Ok(found.map(|(row, life)| FoundRow { life, ..FoundRow::of(row) }).collect())
    }
}

/// Rows as a caller sees them.
pub(crate) async fn seen_by(
    ledger: &SharedLedger,
    identity: &Identity,
    rows: Vec<FoundRow>,
) -> Result<Vec<FoundRow>, LedgerError> {
    let mut seen = Vec::with_capacity(rows.len());
    for row in rows {
        seen.push(row.seen_by(ledger, identity).await?);
    }
    Ok(seen)
}

/// One allocation, or a revision of its number.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NumberRow<'a> {
    /// `number` or `revision`.
    #[schema(value_type = String)]
    pub(crate) kind: RowKind,
    /// The number; the first one of a range; of a revision, the number with its label.
    pub(crate) document_number: &'a str,
    /// When the request was accepted; of a revision, when the label was given. RFC 3339, with the
    /// offset of the series' time zone.
    #[schema(format = DateTime)]
    pub(crate) issued_at: String,
    /// Everything else about it.
    #[serde(flatten)]
    pub(crate) about: NumberAbout<'a>,
}

/// One allocation under the names of the audit trail.
#[derive(Debug, Serialize)]
pub(crate) struct ExportedRow<'a> {
    pub(crate) kind: RowKind,
    pub(crate) generated_number: &'a str,
    pub(crate) timestamp: String,
    #[serde(flatten)]
    pub(crate) about: NumberAbout<'a>,
}

impl<'a> From<NumberRow<'a>> for ExportedRow<'a> {
    fn from(row: NumberRow<'a>) -> Self {
        let NumberRow { kind, document_number, issued_at, about } = row;
        ExportedRow { kind, generated_number: document_number, timestamp: issued_at, about }
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
    /// Of a range, its last number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_number: Option<String>,
    /// Of a revision, the number as it was issued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) revision_of: Option<&'a str>,
    /// Of a revision, the label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rev: Option<&'a str>,
    /// Of a revision, why, where the caller has said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'a str>,
    /// Where it comes from.
    #[serde(flatten)]
    pub(crate) source: SourceAnswer<'a>,
    /// The values taken, one range per serial.
    pub(crate) serials: Vec<ValuesAnswer>,
    /// The template.
    pub(crate) template_used: &'a str,
    /// Civil date of the document.
    pub(crate) document_date: &'a str,
    /// The variables of the request by name, those too that the number does not show.
    pub(crate) context: &'a BTreeMap<String, String>,
    /// Who asked, of a revision for the label: the person, or the identity that asked for itself.
    pub(crate) user_id: &'a str,
    /// The service through which the person asked.
    pub(crate) service: Option<&'a str>,
    /// From where.
    pub(crate) ip_address: Option<&'a str>,
    /// When the number's row was written, in UTC.
    #[schema(format = DateTime)]
    pub(crate) journaled_at: String,
    /// How often the request was tried again.
    pub(crate) retry_count: u32,
    /// `redis` or `database`.
    #[schema(value_type = String)]
    pub(crate) path: IssuePath,
    /// The caller's key.
    pub(crate) idempotency_key: Option<&'a str>,
    /// What became of it.
    #[serde(flatten)]
    pub(crate) standing: StandingAnswer<'a>,
    /// Where it replaces a number or is replaced, and one number is looked up: the numbers that
    /// stood for it one after the other, the oldest first.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    chain: &'a [String],
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
    pub(crate) fn of(FoundRow { row, revisions, found_as, life, chain }: &'a FoundRow) -> Self {
        let (entry, record) = (&row.entry, &row.entry.record);
        let revisions = revisions.as_ref();
        let about = NumberAbout {
            allocation_id: record.allocation_id,
            document_id: record.document_id.as_deref(),
            last_number: last_number(row),
            revision_of: None,
            rev: None,
            reason: None,
            source: SourceAnswer::of(record, &row.series),
            serials: entry.taken.iter().map(|taken| ValuesAnswer::of(taken.range)).collect(),
            template_used: &row.template,
            document_date: &record.document_date,
            context: &record.context,
            user_id: person_of(&record.user_id),
            service: service_of(&record.user_id),
            ip_address: record.ip_address.as_deref(),
            journaled_at: instant(row.journaled_at_us),
            retry_count: entry.retry_count,
            path: entry.path,
            idempotency_key: record.idempotency_key.as_deref(),
            standing: StandingAnswer::of(life, row),
            chain,
            revisions: revisions.map(|revisions| revisions.iter().map(RevisionRow::of).collect()),
            found_as: *found_as,
            put_aside: row.is_put_aside,
        };
        let issued_at = instant_in(record.issued_at_us, row.timezone.as_deref());
        NumberRow { kind: RowKind::Number, document_number: &entry.number, issued_at, about }
    }

    /// The row of a revision: that of its number, with what the revision says itself.
    pub(crate) fn of_revision(revision: &'a Revision, number: &'a FoundRow) -> Self {
        let of_number = Self::of(number);
        let about = NumberAbout {
            revision_of: Some(of_number.document_number),
            rev: Some(&revision.rev),
            reason: revision.reason.as_deref(),
            user_id: person_of(&revision.user_id),
            service: service_of(&revision.user_id),
            ip_address: revision.ip_address.as_deref(),
            idempotency_key: None,
            ..of_number.about
        };
        let issued_at = instant_in(revision.revised_at_us, number.row.timezone.as_deref());
        NumberRow { kind: RowKind::Revision, document_number: &revision.number, issued_at, about }
    }
}

/// The last number of a range.
fn last_number(row: &JournalRow) -> Option<String> {
    let range = row.entry.taken.first()?.range;
    if range.first < range.last { row.entry.text_of(range.last) } else { None }
}
