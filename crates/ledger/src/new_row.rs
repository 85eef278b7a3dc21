//! An entry as rows of the journal: one per serial. Checks for content that no column would
//! take, so that every engine refuses the same entries, before anything is written (F13).

use super::columns::{FurtherSerial, digest_bytes, signed, small, to_json};
use super::compressed_mask::Form;
use super::row_text::RowText;
use super::{Entry, IssuePath, LedgerError, Record};

/// A run of values of one counter, as columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ValueRange {
    /// The counter.
    pub(super) counter_id: i64,
    /// First value.
    pub(super) first: i64,
    /// Last value.
    pub(super) last: i64,
}

/// A row of the journal to be: the columns of one serial of an entry.
#[derive(Debug)]
pub(super) struct NewRow<'a> {
    /// Index of the entry within its batch.
    pub(super) entry: usize,
    pub(super) value_range: ValueRange,
    /// Whether it is above all that its counter had taken when it was locked. Then nothing in the
    /// ledger can collide with it: every row or gap of a counter raises its taken value to there.
    pub(super) is_above: bool,
    pub(super) step: i64,
    /// How many values.
    pub(super) count: i64,
    pub(super) allocation_id: &'a [u8],
    /// Number, scope, form, and the other fields that only the first serial's row carries.
    pub(super) head: Option<Head<'a>>,
    /// Of a segment, which represents archived rows: where they are, JSON.
    pub(super) segment: Option<&'a str>,
    pub(super) series_id: i64,
    pub(super) version: i32,
    pub(super) type_code: &'a str,
    pub(super) project: Option<&'a str>,
    pub(super) document_date: &'a str,
    pub(super) user_id: &'a str,
    pub(super) ip_address: Option<&'a str>,
    pub(super) digest: Option<Vec<u8>>,
    pub(super) issued_at_us: i64,
    pub(super) retry_count: i32,
    pub(super) path: IssuePath,
    pub(super) partition_id: i32,
    pub(super) epoch: i64,
}

/// The fields of the whole number, which the row of the first serial carries.
#[derive(Debug)]
pub(super) struct Head<'a> {
    pub(super) number: &'a str,
    pub(super) scope: &'a str,
    pub(super) form: Form<'a>,
    /// The further serials, JSON.
    pub(super) rest: Option<String>,
    /// The variables, JSON.
    pub(super) context: Option<String>,
    pub(super) document_id: Option<&'a str>,
    /// For the other columns that only this row carries.
    pub(super) record: &'a Record,
}

impl<'a> NewRow<'a> {
    /// Its last value, where it has more than one.
    pub(super) fn further_last(&self) -> Option<i64> {
        Some(self.value_range.last).filter(|last| *last != self.value_range.first)
    }

    /// Its step, where that is not 1.
    pub(super) fn further_step(&self) -> Option<i64> {
        Some(self.step).filter(|step| *step != 1)
    }

    /// How often it was tried again, if at all.
    pub(super) fn retries(&self) -> Option<i32> {
        Some(self.retry_count).filter(|count| *count != 0)
    }

    /// The path's word, where it differs from that of most rows. A segment has a context.
    pub(super) fn other_path(&self) -> Option<&'static str> {
        Some(self.path).filter(|path| *path != IssuePath::Redis).map(IssuePath::name)
    }

    /// The column `mask`.
    pub(super) fn mask(&self) -> Option<&str> {
        self.head.as_ref()?.form.columns().0
    }

    /// The column `outline`.
    pub(super) fn compressed_mask(&self) -> Option<&str> {
        self.head.as_ref()?.form.columns().1
    }

    /// The column `context`: the variables, or of a segment the place of its rows.
    pub(super) fn context(&self) -> Option<&str> {
        self.segment.or_else(|| self.head.as_ref()?.context.as_deref())
    }

    /// The lines of entry `index` of its batch.
    ///
    /// # Errors
    /// `Refused` for content that no column takes; names the field.
    pub(super) fn of(index: usize, entry: &'a Entry) -> Result<Vec<Self>, LedgerError> {
        check(entry)?;
        let record = &*entry.record;
        let mut head = Some(Head::of(entry)?);
        let new_row = |taken: &numbering::TakenRange| {
            let (first, last) = (taken.range.first, taken.range.last);
            let step = signed(taken.range.step, "step")?;
            let (first, last) = (signed(first, "first")?, signed(last, "last")?);
            Ok(NewRow {
                entry: index,
                value_range: ValueRange { counter_id: taken.counter_id, first, last },
                is_above: false,
                step,
                count: (last - first) / step + 1,
                allocation_id: record.allocation_id.as_bytes(),
                head: head.take(),
                segment: None,
                series_id: record.series_id,
                version: small(record.version, "version")?,
                type_code: &record.type_code,
                project: record.project.as_deref(),
                document_date: &record.document_date,
                user_id: &record.user_id,
                ip_address: record.ip_address.as_deref(),
                digest: digest_bytes(&record.payload_digest)?,
                issued_at_us: record.issued_at_us,
                retry_count: small(entry.retry_count, "retry_count")?,
                path: entry.path,
                partition_id: small(entry.at.partition, "partition")?,
                epoch: signed(entry.at.epoch, "epoch")?,
            })
        };
        let new_rows: Result<Vec<Self>, LedgerError> = entry.taken.iter().map(new_row).collect();
        let new_rows = new_rows?;
        // PostgreSQL takes no NUL, SQLite would: one rule for both. The further rows have no text
        // that the first has not.
        match new_rows.first().and_then(|new_row| RowText::of(new_row).with_nul()) {
            Some(column) => Err(refused(column, "contains the character NUL; leave it out")),
            None => Ok(new_rows),
        }
    }
}

impl<'a> Head<'a> {
    fn of(entry: &'a Entry) -> Result<Self, LedgerError> {
        let record = &*entry.record;
        let further = |(place, taken): (usize, &numbering::TakenRange)| FurtherSerial {
            serial: record.serials.get(place).cloned().unwrap_or_default(),
            taken: *taken,
            key: record.counter_keys[place].clone(),
        };
        let rest: Vec<FurtherSerial> =
            entry.taken.iter().enumerate().skip(1).map(further).collect();
        Ok(Head {
            number: &entry.number,
            scope: &record.scope,
            form: Form::of(&record.mask, &entry.number),
            rest: if rest.is_empty() { None } else { Some(to_json(&rest, "serials")?) },
            context: if record.context.is_empty() {
                None
            } else {
                Some(to_json(&record.context, "context")?)
            },
            document_id: record.document_id.as_deref(),
            record,
        })
    }
}

/// Refuses content that the journal could not give back unchanged.
fn check(entry: &Entry) -> Result<(), LedgerError> {
    let record = &*entry.record;
    if entry.taken.is_empty() || entry.taken.len() != record.counter_keys.len() {
        return Err(refused("counter_keys", "one for each serial taken, and at least one"));
    }
    for taken in &entry.taken {
        let range = taken.range;
        let sound = range.step >= 1
            && range.first <= range.last
            && (range.last - range.first).is_multiple_of(range.step);
        if !sound {
            return Err(refused("taken", "a range begins at its first value and ends on its step"));
        }
    }
    // A column for dates would take other texts for one, and give back another text than it got.
    let is_date = |text: &str| {
        let place = |(place, byte): (usize, u8)| match place {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        };
        text.len() == 10 && text.bytes().enumerate().all(place)
    };
    if !is_date(&record.document_date) {
        return Err(refused("document_date", "is no date; use YYYY-MM-DD"));
    }
    Ok(())
}

fn refused(field: &str, why: &str) -> LedgerError {
    LedgerError::Refused(format!("{field}: {why}"))
}
