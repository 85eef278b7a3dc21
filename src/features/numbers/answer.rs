//! The JSON of an allocation. Also the output of the commands with `--json`.
//!
//! Values of serials are strings: a JSON number is not safe past 2^53 in every client. An answer
//! borrows its content and copies none of it: it is written as soon as it is made.

use axum::http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use numbering::{CounterKey, Range};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::engine::allocator::{Issued, NextValue, Preview};
use crate::features::lifecycle::standing::NumberStanding;
use crate::ledger::{Entry, IssuePath, Record};
use crate::web::instant::instant;
use crate::web::problem::Problem;

/// A number handed out.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NumberAnswer<'a> {
    /// The number.
    pub document_number: &'a str,
    /// Everything else about the allocation.
    #[serde(flatten)]
    pub allocation: AllocationAnswer<'a>,
}

/// The number of an earlier call, and what it is now.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct EarlierNumber<'a> {
    /// The number.
    #[serde(flatten)]
    pub(crate) number: NumberAnswer<'a>,
    /// What it is now; left out where the ledger does not say in a quarter of a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<NumberStanding>,
}

/// A contiguous range of one counter, handed out.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RangeAnswer<'a> {
    /// The values of the (first) serial.
    #[serde(flatten)]
    pub values: ValuesAnswer,
    /// How many numbers.
    pub count: u64,
    /// Text of the first number.
    pub first_number: &'a str,
    /// Text of the last number.
    pub last_number: &'a str,
    /// The text of every number, with `expand`: it is sent behind all else, as it is rendered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numbers: Option<Vec<String>>,
    /// Everything else about the allocation.
    #[serde(flatten)]
    pub allocation: AllocationAnswer<'a>,
}

/// What a number and a range have in common.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AllocationAnswer<'a> {
    /// What was asked for, and what it took.
    #[serde(flatten)]
    pub record: RecordAnswer<'a>,
    /// When the request was accepted, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    pub issued_at: String,
    /// `redis` or `database`.
    #[schema(value_type = String)]
    pub path: IssuePath,
    /// Whether an earlier allocation answered.
    pub replayed: bool,
    /// Present and true with the first number of a counter, where `unique_within` has a dimension
    /// that the number does not show: a typing error in that would show here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub new_counter: bool,
}

/// What was asked for and what it took, as the journal knows it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RecordAnswer<'a> {
    /// The document, where one was named.
    pub document_id: Option<&'a str>,
    /// Where it comes from.
    #[serde(flatten)]
    pub source: SourceAnswer<'a>,
    /// The serials in the order of the template.
    pub serials: Vec<SerialAnswer<'a>>,
}

/// Where a number comes from: what was numbered, by which series, with which counters.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SourceAnswer<'a> {
    /// Document type.
    #[serde(rename = "type")]
    pub type_code: &'a str,
    /// Project, where one was named or follows from the originator.
    pub project: Option<&'a str>,
    /// Code of the series; empty where the version that made the number is not in the ledger.
    pub series: &'a str,
    /// The numbering configuration (series).
    pub config_id: i64,
    /// The version of it that makes the number.
    pub config_version: u32,
    /// The counter of the first serial: dimensions and period with their values.
    #[schema(value_type = Object)]
    pub counter_key: CounterKeyAnswer<'a>,
    /// The counters of all serials, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    pub counter_keys: Vec<CounterKeyAnswer<'a>>,
}

/// One serial and its values.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SerialAnswer<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its values.
    #[serde(flatten)]
    pub values: ValuesAnswer,
}

/// The values of one serial.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct ValuesAnswer {
    /// First value.
    #[serde(serialize_with = "text")]
    #[schema(value_type = String)]
    pub first: u64,
    /// Last value; the first one again for a single number.
    #[serde(serialize_with = "text")]
    #[schema(value_type = String)]
    pub last: u64,
    /// Distance between two values.
    #[serde(serialize_with = "text")]
    #[schema(value_type = String)]
    pub step: u64,
}

/// What a number would look like.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PreviewAnswer<'a> {
    /// The number; another request may take it first.
    pub document_number: &'a str,
    /// Where it would come from.
    #[serde(flatten)]
    pub source: SourceAnswer<'a>,
    /// The serials with the value that comes next.
    pub serials: Vec<NextSerial>,
}

/// The next value of one serial, and whether its counter begins with it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NextSerial {
    /// Its name.
    pub name: String,
    /// The value.
    pub value: String,
    /// Whether nobody has counted by these dimensions before: a typing error would show here.
    pub new_counter: bool,
}

/// The value of one serial.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ExpectedSerial {
    /// Its name.
    pub name: String,
    /// The value.
    pub value: String,
}

/// A counter key as a JSON object, its parts in the order of the serial's dimensions. A text of the
/// ledger that is not a counter key is shown whole, as `key`.
#[derive(Clone, Copy, Debug)]
pub struct CounterKeyAnswer<'a>(&'a str);

impl<'a> CounterKeyAnswer<'a> {
    /// The answer for the text of a key.
    pub(crate) fn of(key: &'a str) -> Self {
        CounterKeyAnswer(key)
    }
}

impl Serialize for CounterKeyAnswer<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match CounterKey::parts(self.0) {
            Some(parts) => serializer.collect_map(parts),
            None => serializer.collect_map([("key", self.0)]),
        }
    }
}

impl<'a> NumberAnswer<'a> {
    /// The answer for a single number.
    #[must_use]
    pub fn of(issued: &'a Issued) -> Self {
        let document_number = &issued.entry.number;
        NumberAnswer { document_number, allocation: AllocationAnswer::of(issued) }
    }
}

impl<'a> RangeAnswer<'a> {
    /// The answer for a range, a single number being a range of one.
    #[must_use]
    pub fn of(issued: &'a Issued) -> Self {
        let taken = issued.entry.taken.first().map(|taken| taken.range);
        let range = taken.unwrap_or(Range { first: 0, last: 0, step: 1 });
        let first_number = &issued.entry.number;
        RangeAnswer {
            values: ValuesAnswer::of(range),
            count: range.count(),
            first_number,
            last_number: issued.last_number.as_ref().unwrap_or(first_number),
            numbers: None,
            allocation: AllocationAnswer::of(issued),
        }
    }
}

impl<'a> AllocationAnswer<'a> {
    fn of(issued: &'a Issued) -> Self {
        let entry = &issued.entry;
        AllocationAnswer {
            record: RecordAnswer::of(entry, &entry.record.serials, &issued.series),
            issued_at: instant(entry.record.issued_at_us),
            path: entry.path,
            replayed: issued.replayed,
            new_counter: !issued.new_counters.is_empty(),
        }
    }
}

impl<'a> RecordAnswer<'a> {
    /// The answer for an entry of a series whose ranges belong to serials of these names.
    pub(crate) fn of(entry: &'a Entry, names: &'a [String], series: &'a str) -> Self {
        let serials = names.iter().zip(&entry.taken);
        let serials = serials
            .map(|(name, taken)| SerialAnswer { name, values: ValuesAnswer::of(taken.range) });
        RecordAnswer {
            document_id: entry.record.document_id.as_deref(),
            source: SourceAnswer::of(&entry.record, series),
            serials: serials.collect(),
        }
    }
}

impl<'a> SourceAnswer<'a> {
    /// The source of the number of a series' record.
    pub(crate) fn of(record: &'a Record, series: &'a str) -> Self {
        let keys = record.counter_keys.iter().map(|key| CounterKeyAnswer(key));
        SourceAnswer {
            type_code: &record.type_code,
            project: record.project.as_deref(),
            series,
            config_id: record.series_id,
            config_version: record.version,
            counter_key: keys.clone().next().unwrap_or(CounterKeyAnswer("")),
            counter_keys: if keys.len() > 1 { keys.collect() } else { Vec::new() },
        }
    }
}

impl ValuesAnswer {
    /// The values of a range.
    pub(crate) fn of(Range { first, last, step }: Range) -> Self {
        ValuesAnswer { first, last, step }
    }
}

impl<'a> PreviewAnswer<'a> {
    /// The answer for a preview.
    #[must_use]
    pub fn of(preview: &'a Preview) -> Self {
        let serials = preview.record.serials.iter().zip(&preview.nexts);
        let expected = |(name, next): (&String, &NextValue)| NextSerial {
            name: name.clone(),
            value: next.value.to_string(),
            new_counter: next.is_new_counter,
        };
        PreviewAnswer {
            document_number: &preview.number,
            source: SourceAnswer::of(&preview.record, &preview.series),
            serials: serials.map(expected).collect(),
        }
    }
}

/// Room for the answer of an ordinary number, in bytes.
const ANSWER_BYTES: usize = 512;

/// An answer, written.
pub(crate) fn written(answer: &impl Serialize) -> Result<Written, Problem> {
    let mut text = Vec::with_capacity(ANSWER_BYTES);
    serde_json::to_writer(&mut text, answer).map_err(|error| Problem::internal(&error))?;
    Ok(([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], text))
}

/// The type of an answer, and its text.
type Written = ([(HeaderName, HeaderValue); 1], Vec<u8>);

/// Writes the value of a serial.
fn text<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(itoa::Buffer::new().format(*value))
}

#[cfg(test)]
mod tests;
