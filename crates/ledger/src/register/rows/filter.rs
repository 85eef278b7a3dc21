//! What people look for in the register of numbers.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use numbering::ORIGINATORS;
use numerator_runtime::actor::{identity_of, person_of};
use serde::Serialize;
use unicode_normalization::UnicodeNormalization as _;

use crate::{IssuePath, JournalRow, Position, RowVisibility};

/// Most rows of a page of an export: with more a database may think it cheaper to read the whole
/// journal for each page.
pub const SEARCH_ROWS_MAX: u32 = 2_000;

/// What to look for in the journal; all given fields must match. Texts are in normal form C, like
/// those of the journal; type, project and variables are kept there as they were sent, and found in
/// that form or decomposed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct JournalFilter {
    /// The number (exact).
    pub number: Option<String>,
    /// How the number begins.
    pub number_prefix: Option<String>,
    /// What the number holds somewhere.
    pub number_part: Option<String>,
    /// The document.
    pub document_id: Option<String>,
    /// The person who asked, or the identity that asked for itself.
    pub user_id: Option<String>,
    /// The identity that asked, for itself or for a person.
    pub service: Option<String>,
    /// The series, active or not.
    pub series_id: Option<i64>,
    /// Document type asked for.
    pub type_code: Option<String>,
    /// Project asked for.
    pub project: Option<String>,
    /// The originating organization: the variable `ORIGINATOR`, or `ORG_CODE`, its older name.
    pub originator: Option<String>,
    /// Further variables by name, each with the value that it must have.
    pub variables: BTreeMap<String, String>,
    /// Issued at or after.
    pub from_us: Option<i64>,
    /// Issued before.
    pub until_us: Option<i64>,
    /// Narrower bounds of some series: a day begins at another instant in each time zone.
    #[serde(skip)]
    pub periods: Vec<SeriesPeriod>,
    /// Of documents of this civil date or a later one, `YYYY-MM-DD`.
    pub dated_from: Option<String>,
    /// Of documents of a date before this one.
    pub dated_until: Option<String>,
    /// What became of it.
    pub status: Option<NumberStatus>,
    /// Which path took it.
    pub path: Option<IssuePath>,
    /// The order of the list.
    pub sort: Sort,
    /// After this one in the list: rows of one time are in the order of their counters and values.
    #[serde(skip)]
    pub after: Option<Position>,
    /// At most so many rows (default 100).
    #[serde(skip)]
    pub limit: u32,
    /// Only those that are visible to the caller.
    #[serde(skip)]
    pub shown: RowVisibility,
}

/// How long a search may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchPace {
    /// As long as a request: seconds.
    Request,
    /// As long as a search through the journal: ten minutes.
    Export,
}

/// The time of issue of the numbers of some series, in microseconds of UTC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeriesPeriod {
    /// The series, by id.
    pub series: Vec<i64>,
    /// Issued at or after.
    pub from_us: Option<i64>,
    /// Issued before.
    pub until_us: Option<i64>,
}

impl SeriesPeriod {
    /// Whether numbers of a series may be issued at a time: those of other series may.
    #[must_use]
    pub fn admits(&self, series_id: i64, issued_at_us: i64) -> bool {
        !self.series.contains(&series_id)
            || self.from_us.is_none_or(|from_us| issued_at_us >= from_us)
                && self.until_us.is_none_or(|until_us| issued_at_us < until_us)
    }
}

/// What became of a number since it was issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NumberStatus {
    /// It is as it was issued.
    Issued,
    /// It has another label by now.
    Revised,
    /// It is void, and no other number stands in its place.
    Voided,
    /// It is void, and another number stands in its place.
    Replaced,
}

/// The order of a list of numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sort {
    /// By the time of issue, newest first.
    #[default]
    Time,
    /// By number, byte for byte.
    Number,
}

impl Sort {
    /// Which of two rows comes first.
    #[must_use]
    pub fn order(self, one: &JournalRow, other: &JournalRow) -> Ordering {
        let place = |row: &JournalRow| {
            let first = row.entry.taken.first().map(|taken| (taken.counter_id, taken.range.first));
            (row.entry.record.issued_at_us, first)
        };
        match self {
            Sort::Time => place(other).cmp(&place(one)),
            Sort::Number => {
                let (one, other) = (&one.entry, &other.entry);
                let by_scope = || one.record.scope.cmp(&other.record.scope);
                one.number.cmp(&other.number).then_with(by_scope)
            }
        }
    }
}

impl JournalFilter {
    /// Whether an index leads to the rows, whatever their time.
    #[must_use]
    pub fn has_index(&self) -> bool {
        self.number.is_some()
            || self.number_prefix.is_some()
            || self.document_id.is_some()
            || self.user_id.is_some()
            || self.service.is_some()
    }

    /// Whether rows that are found must be looked at themselves before it is known that they match.
    #[must_use]
    pub fn looks_at_rows(&self) -> bool {
        let texts = [&self.number_part, &self.type_code, &self.project, &self.originator];
        texts.into_iter().chain([&self.dated_from, &self.dated_until]).any(Option::is_some)
            || !self.variables.is_empty()
            || self.series_id.is_some()
            || self.status.is_some()
            || self.path.is_some()
    }

    /// Whether an actor of the journal is one that is asked for.
    #[must_use]
    pub fn is_of_actor(&self, actor: &str) -> bool {
        let is =
            |wanted: &Option<String>, name: &str| wanted.as_deref().is_none_or(|it| it == name);
        is(&self.user_id, person_of(actor)) && is(&self.service, identity_of(actor))
    }

    /// Whether a row that was found by the text of its range or of a revision matches all but the
    /// texts of numbers, which say how it was found, and its status.
    #[must_use]
    pub fn matches(&self, row: &JournalRow) -> bool {
        let record = &row.entry.record;
        let is = |wanted: &Option<String>, text: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| text == Some(wanted))
        };
        let date = record.document_date.as_str();
        let is_spelling = |wanted: &Option<String>, text: Option<&String>| {
            let is_same = |wanted: &str| text.is_some_and(|text| text.nfc().eq(wanted.nfc()));
            wanted.as_deref().is_none_or(is_same)
        };
        self.shown.has(&record.user_id, &row.series, record.project.as_deref())
            && is(&self.document_id, record.document_id.as_deref())
            && self.is_of_actor(&record.user_id)
            && is_spelling(&self.type_code, Some(&record.type_code))
            && is_spelling(&self.project, record.project.as_ref())
            && self.series_id.is_none_or(|series_id| record.series_id == series_id)
            && ORIGINATORS
                .iter()
                .any(|name| is_spelling(&self.originator, record.context.get(*name)))
            && self.has_variables(&record.context)
            && self.is_within(record.series_id, record.issued_at_us)
            && self.dated_from.as_deref().is_none_or(|from| date >= from)
            && self.dated_until.as_deref().is_none_or(|until| date < until)
            && self.path.is_none_or(|path| row.entry.path == path)
    }

    /// Whether variables have the values that are asked for.
    #[must_use]
    pub fn has_variables(&self, context: &BTreeMap<String, String>) -> bool {
        self.variables.iter().all(|(name, wanted)| {
            context.get(name).is_some_and(|value| value.nfc().eq(wanted.nfc()))
        })
    }

    /// Whether a time is one that is asked for of a series.
    #[must_use]
    pub fn is_within(&self, series_id: i64, at_us: i64) -> bool {
        self.from_us.is_none_or(|from_us| at_us >= from_us)
            && self.until_us.is_none_or(|until_us| at_us < until_us)
            && self.periods.iter().all(|period| period.admits(series_id, at_us))
    }

    /// Whether the text of a number is one that is asked for.
    #[must_use]
    pub fn has_text(&self, number: &str) -> bool {
        self.number.as_deref().is_none_or(|wanted| number == wanted)
            && self.number_prefix.as_deref().is_none_or(|prefix| number.starts_with(prefix))
            && self.number_part.as_deref().is_none_or(|part| number.contains(part))
    }
}
