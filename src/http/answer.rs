//! How a number is told: the JSON of an allocation. Also what the commands print with `--json`.
//!
//! Values of serials are strings: a JSON number is not safe past 2^53 in every client (R2.4).

use jiff::Timestamp;
use numbering::{CounterKey, Range, TakenRange};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::allocator::{Issued, Preview};
use crate::ledger::{Entry, IssuePath};

/// A number handed out.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NumberAnswer {
    /// The number.
    pub document_number: String,
    /// Everything else about the allocation.
    #[serde(flatten)]
    pub allocation: AllocationAnswer,
}

/// A contiguous range of one counter, handed out.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RangeAnswer {
    /// First value of the (first) serial.
    pub first: String,
    /// Last value of the (first) serial.
    pub last: String,
    /// Distance between two values.
    pub step: String,
    /// How many numbers.
    pub count: u64,
    /// Text of the first number.
    pub first_number: String,
    /// Text of the last number.
    pub last_number: String,
    /// Everything else about the allocation.
    #[serde(flatten)]
    pub allocation: AllocationAnswer,
}

/// What a number and a range have in common.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AllocationAnswer {
    /// What was asked for, and what it took.
    #[serde(flatten)]
    pub record: RecordAnswer,
    /// When the request was accepted, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    pub issued_at: String,
    /// `redis` or `database`.
    #[schema(value_type = String)]
    pub path: IssuePath,
    /// Whether an earlier allocation answered.
    pub replayed: bool,
}

/// What was asked for and what it took, as the journal knows it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RecordAnswer {
    /// The document, where one was named.
    pub document_id: Option<String>,
    /// Document type.
    #[serde(rename = "type")]
    pub type_code: String,
    /// Project, where one was named.
    pub project: Option<String>,
    /// The numbering configuration (series).
    pub config_id: i64,
    /// The version of it that issued the number.
    pub config_version: u32,
    /// The counter of the first serial: dimensions and period with their values.
    #[schema(value_type = Object)]
    pub counter_key: CounterKeyAnswer,
    /// The counters of all serials, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    pub counter_keys: Vec<CounterKeyAnswer>,
    /// The serials in the order of the template.
    pub serials: Vec<SerialAnswer>,
}

/// The values of one serial.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SerialAnswer {
    /// Its name.
    pub name: String,
    /// First value.
    pub first: String,
    /// Last value; the first one again for a single number.
    pub last: String,
    /// Distance between two values.
    pub step: String,
}

/// What a number would look like.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PreviewAnswer {
    /// The number; another request may take it first.
    pub document_number: String,
    /// Document type.
    #[serde(rename = "type")]
    pub type_code: String,
    /// Project, where one was named or follows from the originator.
    pub project: Option<String>,
    /// The numbering configuration (series).
    pub config_id: i64,
    /// Its version.
    pub config_version: u32,
    /// The counter of the first serial.
    #[schema(value_type = Object)]
    pub counter_key: CounterKeyAnswer,
    /// The counters of all serials, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    pub counter_keys: Vec<CounterKeyAnswer>,
    /// The serials with the value that comes next.
    pub serials: Vec<ExpectedSerial>,
}

/// The next value of one serial.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ExpectedSerial {
    /// Its name.
    pub name: String,
    /// The value.
    pub value: String,
}

/// A counter key as a JSON object, its parts in the order of the serial's dimensions.
#[derive(Clone, Debug)]
pub struct CounterKeyAnswer(CounterKey);

impl CounterKeyAnswer {
    /// Reads the text of the ledger. A text that is no counter key is shown whole, as `key`.
    #[must_use]
    pub fn of(text: &str) -> Self {
        CounterKeyAnswer(
            CounterKey::parse(text)
                .unwrap_or_else(|| CounterKey { parts: vec![("key".into(), text.into())] }),
        )
    }

    /// The keys of an allocation: the first one, and all where there are several.
    pub(super) fn all_of(texts: &[String]) -> (Self, Vec<Self>) {
        let keys: Vec<Self> = texts.iter().map(|text| Self::of(text)).collect();
        let first =
            keys.first().cloned().unwrap_or(CounterKeyAnswer(CounterKey { parts: Vec::new() }));
        (first, if keys.len() > 1 { keys } else { Vec::new() })
    }
}

impl Serialize for CounterKeyAnswer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.parts.len()))?;
        for (name, value) in &self.0.parts {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl NumberAnswer {
    /// The answer for a single number.
    #[must_use]
    pub fn of(issued: &Issued) -> Self {
        NumberAnswer {
            document_number: issued.entry.number.clone(),
            allocation: AllocationAnswer::of(issued),
        }
    }
}

impl RangeAnswer {
    /// The answer for a range, a single number being a range of one.
    #[must_use]
    pub fn of(issued: &Issued) -> Self {
        let taken = issued.entry.taken.first().map(|taken| taken.range);
        let range = taken.unwrap_or(Range { first: 0, last: 0, step: 1 });
        let first_number = issued.entry.number.clone();
        RangeAnswer {
            first: range.first.to_string(),
            last: range.last.to_string(),
            step: range.step.to_string(),
            count: range.count(),
            last_number: issued.last_number.clone().unwrap_or_else(|| first_number.clone()),
            first_number,
            allocation: AllocationAnswer::of(issued),
        }
    }
}

impl AllocationAnswer {
    fn of(issued: &Issued) -> Self {
        AllocationAnswer {
            record: RecordAnswer::of(&issued.entry, &issued.serials),
            issued_at: instant(issued.entry.record.issued_at_us),
            path: issued.entry.path,
            replayed: issued.replayed,
        }
    }
}

impl RecordAnswer {
    /// The answer for an entry whose ranges belong to serials of these names.
    pub(super) fn of(entry: &Entry, serials: &[String]) -> Self {
        let record = &entry.record;
        let (counter_key, counter_keys) = CounterKeyAnswer::all_of(&record.counter_keys);
        let named = serials.iter().zip(&entry.taken);
        RecordAnswer {
            document_id: record.document_id.clone(),
            type_code: record.type_code.clone(),
            project: record.project.clone(),
            config_id: record.series_id,
            config_version: record.version,
            counter_key,
            counter_keys,
            serials: named.map(|(name, taken)| SerialAnswer::of(name, taken)).collect(),
        }
    }
}

impl SerialAnswer {
    /// What a serial took.
    pub(super) fn of(name: &str, taken: &TakenRange) -> Self {
        SerialAnswer {
            name: name.to_owned(),
            first: taken.range.first.to_string(),
            last: taken.range.last.to_string(),
            step: taken.range.step.to_string(),
        }
    }
}

impl PreviewAnswer {
    /// The answer for a preview.
    #[must_use]
    pub fn of(preview: Preview) -> Self {
        let (counter_key, counter_keys) = CounterKeyAnswer::all_of(&preview.counter_keys);
        let expected =
            |(name, value): (String, u64)| ExpectedSerial { name, value: value.to_string() };
        PreviewAnswer {
            document_number: preview.number,
            type_code: preview.type_code,
            project: preview.project,
            config_id: preview.series_id,
            config_version: preview.version,
            counter_key,
            counter_keys,
            serials: preview.serials.into_iter().map(expected).collect(),
        }
    }
}

/// Microseconds of the ledger as RFC 3339 in UTC; what no calendar holds (past 9999) is the epoch.
pub(super) fn instant(us: i64) -> String {
    format!("{:.6}", Timestamp::from_microsecond(us).unwrap_or(Timestamp::UNIX_EPOCH))
}

#[cfg(test)]
mod tests;
