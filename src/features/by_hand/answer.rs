//! The JSON of a registration. Also the output of the command with `--json`.

use serde::Serialize;
use utoipa::ToSchema;

use super::registering::Registration;
use crate::ledger::IssuePath;
use crate::web::instant::instant;

/// A number that was given by hand, and is registered.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RegistrationAnswer<'a> {
    /// The number.
    pub(crate) document_number: &'a str,
    /// The document, where one was named.
    document_id: Option<&'a str>,
    /// Document type.
    #[serde(rename = "type")]
    type_code: &'a str,
    /// Project, where there is one.
    project: Option<&'a str>,
    /// Code of its series.
    series: &'a str,
    /// Its counter.
    counter_id: i64,
    /// The counter's key.
    counter_key: &'a str,
    /// The value that its serial shows; of a number as written its place among such numbers.
    value: String,
    /// Whether it is kept as written: no series could render it.
    as_written: bool,
    /// What became of the values between the counter's and this one; missing where it passes over
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) passed_over: Option<PassedOverAnswer>,
    /// When it was registered.
    #[schema(format = DateTime)]
    registered_at: String,
    /// Who registered it.
    registered_by: &'a str,
    /// Why it was given by hand.
    reason: Option<&'a str>,
    /// Whether an earlier call registered it.
    replayed: bool,
}

/// Values that a number by hand passes over.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PassedOverAnswer {
    /// `returned`: the next numbers have them, the lowest first; `skipped`: no number ever has one.
    pub(crate) became: &'static str,
    /// The first.
    pub(crate) first: String,
    /// The last.
    pub(crate) last: String,
    /// How many they are.
    count: u64,
}

impl<'a> RegistrationAnswer<'a> {
    /// The answer for a registration.
    pub(crate) fn of(Registration { number, series, replayed }: &'a Registration) -> Self {
        let (record, row) = (&*number.entry.record, &number.row);
        let passed_over = row.passed_over.map(|passed| PassedOverAnswer {
            became: if passed.is_returned { "returned" } else { "skipped" },
            first: passed.first.to_string(),
            last: passed.last.to_string(),
            count: passed.count,
        });
        RegistrationAnswer {
            document_number: &number.entry.number,
            document_id: record.document_id.as_deref(),
            type_code: &record.type_code,
            project: record.project.as_deref(),
            series,
            counter_id: row.of.counter_id,
            counter_key: record.counter_keys.first().map_or("", String::as_str),
            value: row.of.value.to_string(),
            as_written: number.entry.path == IssuePath::AsWritten,
            passed_over,
            registered_at: instant(row.at_us),
            registered_by: &row.user_id,
            reason: row.reason.as_deref(),
            replayed: *replayed,
        }
    }
}
