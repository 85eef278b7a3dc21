//! The serde model of a series: the same in TOML series files and in JSON on the API.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::documents::Documents;
use super::plausible::{DocumentDate, LookAlikes, PlausibleDates};

/// Suffix of a dimension's name if a key holds ids of a table. No variable has a lower-case letter,
/// so that no name can be read as another one.
pub(super) const ID_SUFFIX: &str = "_id";

/// One numbering configuration, as written by an administrator. `Series::compile` checks it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeriesDefinition {
    /// Stable code of the series, unique in the ledger: `[A-Za-z0-9._-]{1,64}`.
    pub code: String,
    /// Display name.
    pub name: String,
    /// Free text for administrators.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What `{PREFIX}` renders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Which requests this series serves.
    pub serves: Serves,
    /// How it takes its numbers: see [`Policy`].
    #[serde(default, skip_serializing_if = "Policy::is_fast")]
    pub policy: Policy,
    /// Whether a document keeps its number forever, or for `idempotency.window`; without it the
    /// policy decides: see [`SeriesDefinition::is_once_per_document`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub once_per_document: Option<bool>,
    /// Whose documents its ids name; a series that has issued numbers keeps it.
    #[serde(default, skip_serializing_if = "Documents::are_of_the_series")]
    pub documents: Documents,
    /// Whether no number may be dated before the last one of its counters: those that differ in
    /// their period alone. For gapless series.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub chronology: bool,
    /// Whether numbers that were given by hand may be registered. For series with one serial.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_hand: bool,
    /// Documents dated before this day get no numbers any more (`2025-01-01`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_before: Option<String>,
    /// Which document dates it takes, around the present: see [`SeriesDefinition::says_its_dates`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_date: Option<DocumentDate>,
    /// The same in the words of earlier releases. A stored version that says neither takes dates
    /// from 100 years back to 10 ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dates: Option<PlausibleDates>,
    /// Whether it takes values that look like others (`АСМЕ` in Cyrillic letters).
    #[serde(default, skip_serializing_if = "LookAlikes::are_refused")]
    pub look_alikes: LookAlikes,
    /// The text pattern.
    pub template: String,
    /// IANA time zone in which dates and periods are read; UTC without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// Month in which the fiscal year begins, 1 to 12; January, the calendar year, without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fiscal_year_start: Option<u8>,
    /// Dimensions within which a number is unique; empty: the whole ledger.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unique_within: Vec<String>,
    /// Why the series may be saved although two of its counters, or it and another series, can
    /// render one text. Recorded with the version; all of them are `gapless`, so that the ledger
    /// refuses the second of two equal numbers before any request is answered (F43).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ambiguity_accepted: Option<String>,
    /// The tables of the reference data for project and type.
    #[serde(default, skip_serializing_if = "References::is_empty")]
    pub references: References,
    /// Declared variables by name (upper case, the token's name).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, VariableDefinition>,
    /// The serials, one for each `{SEQ…}` of the template. May be left out if it has a
    /// `{SNOWFLAKE}`, or a variable has a source: see [`SeriesDefinition::taken_serials`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub serials: Vec<SerialDefinition>,
}

/// Name of the serial from which a number takes its value if it has only an id, or if a source
/// gives its value.
pub(super) const HIDDEN_SERIALS: [&str; 2] = ["SNOWFLAKE", "EXTERNAL"];

/// Name of a serial without a given name.
pub(super) const SERIAL_DEFAULT: &str = "SEQ";

impl SeriesDefinition {
    /// Whether a document is looked up in the whole journal before it gets a number. If the series
    /// does not say, it is if an answer waits for the ledger anyway: all policies except `fast`.
    #[must_use]
    pub fn is_once_per_document(&self) -> bool {
        self.once_per_document.unwrap_or(self.policy != Policy::Fast)
    }

    /// The definition as it is meant if it is written now: one that does not say which document
    /// dates it takes accepts those of five years back and one ahead, and says so.
    #[must_use]
    pub fn says_its_dates(self) -> Self {
        if self.document_date.is_some() || self.dates.is_some() {
            return self;
        }
        SeriesDefinition { document_date: Some(DocumentDate::default()), ..self }
    }

    /// The serials that each number takes a value of: those declared. If none is declared, one that
    /// is not shown and counts the numbers of a day: an id alone shows which node drew it and when,
    /// and a value from a source shows less: neither proves that the journal has every one.
    #[must_use]
    pub fn taken_serials(&self) -> Cow<'_, [SerialDefinition]> {
        if !self.serials.is_empty() {
            return Cow::Borrowed(&self.serials);
        }
        let [of_ids, of_sources] = HIDDEN_SERIALS;
        let name = if self.has_source() { of_sources } else { of_ids };
        let (name, reset) = (name.into(), Reset::Day);
        Cow::Owned(vec![SerialDefinition { name, reset, ..SerialDefinition::default() }])
    }

    /// Whether the start of a serial skips values. The ambiguity proof relies on that, as far as no
    /// earlier version had another start.
    #[must_use]
    pub fn leaves_values_out(&self) -> bool {
        self.serials.iter().any(|serial| serial.start > 1)
    }
}

/// How a series takes its numbers: speed against the cost of a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// By the fastest path there is; the journal follows after the answer.
    #[default]
    Fast,
    /// By the fastest path there is; the answer waits until the journal has the number.
    Durable,
    /// By the ledger alone, each number in the transaction that journals it: no value is skipped,
    /// whatever fails.
    Gapless,
}

impl Policy {
    fn is_fast(&self) -> bool {
        *self == Policy::Fast
    }
}

/// Which tables of the reference data a series refers to, in addition to those of its variables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct References {
    /// Table of projects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Table of document types. A `default` series then serves every type of the table that is not
    /// undetermined, so that a new type works immediately.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_code: Option<String>,
    /// Whether the originator must be a member of the project; without `project`, the project then
    /// follows from the originator's memberships.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub membership: bool,
}

impl References {
    fn is_empty(&self) -> bool {
        *self == References::default()
    }
}

/// Which requests a series serves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Serves {
    /// Document types.
    pub types: Vec<String>,
    /// Projects; empty: any project, or none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub projects: Vec<String>,
    /// Originators, values of `ORIGINATOR` or `ORG_CODE`; empty: any, or none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub originators: Vec<String>,
    /// Sub types, values of `SUB_TYPE`; empty: any, or none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sub_types: Vec<String>,
    /// Document types that exist but have no numbering yet: refused with `type-not-configured`
    /// instead of `unknown-type`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undetermined_types: Vec<String>,
    /// The first document date that it serves (`2026-01-01`), in the time zone of the series;
    /// without one, all earlier ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dated_from: Option<String>,
    /// The first document date that it does not serve any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dated_before: Option<String>,
    /// Whether this is a default: it yields to any other series that serves the type.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub default: bool,
}

/// A declared variable: a dimension, a token, or both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VariableDefinition {
    /// Its name for people, if the variable's name does not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Refuse a request without it. A variable with a `default` is never required.
    #[serde(default)]
    pub required: bool,
    /// Value if the request names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Table of the reference data that its values are codes of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The source, by its name in the settings, that gives its value to each number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Characters allowed, as a set with ranges such as `A-Za-z0-9` (a leading or trailing `-` is
    /// itself); without one: any printable character.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alphabet: Option<String>,
    /// Characters not allowed, in the same notation; for alphabets that are more easily described
    /// by what they exclude.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excluded: Option<String>,
    /// The only values that new requests may bring; without it, all that alphabet and width allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<String>>,
    /// Exact width in characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<usize>,
    /// Largest width in characters (default 64).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width_max: Option<usize>,
}

/// One running value of a series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SerialDefinition {
    /// Its name: `{SEQ:n}` is `SEQ`, `{SEQ:n:name}` is `name`.
    #[serde(default = "SerialDefinition::default_name")]
    pub name: String,
    /// First value (default 1).
    #[serde(default = "SerialDefinition::one")]
    pub start: u64,
    /// Distance between values (default 1).
    #[serde(default = "SerialDefinition::one")]
    pub step: u64,
    /// How its values are written.
    #[serde(default, skip_serializing_if = "Style::is_digits")]
    pub style: Style,
    /// What happens to a value that its `{SEQ:n}` is too narrow for.
    #[serde(default, skip_serializing_if = "Overflow::refuses")]
    pub overflow: Overflow,
    /// Largest value; the width of its `{SEQ:n}` bounds it too, unless it widens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// The dimensions of its counter key: `project`, `type`, or a declared variable.
    #[serde(default)]
    pub counter: Vec<String>,
    /// When a new counter begins.
    #[serde(default)]
    pub reset: Reset,
}

impl SeriesDefinition {
    /// Whether a table of the reference data affects its numbers.
    #[must_use]
    pub fn refers_to_tables(&self) -> bool {
        !self.references.is_empty() || self.variables.values().any(|v| v.reference.is_some())
    }
}

impl Default for SerialDefinition {
    /// `{SEQ}`, from 1 in steps of 1, one counter that never resets.
    fn default() -> Self {
        let (start, step) = (SerialDefinition::one(), SerialDefinition::one());
        SerialDefinition {
            name: Self::default_name(),
            start,
            step,
            style: Style::default(),
            overflow: Overflow::default(),
            max: None,
            counter: Vec::new(),
            reset: Reset::None,
        }
    }
}

impl SerialDefinition {
    fn default_name() -> String {
        SERIAL_DEFAULT.into()
    }

    fn one() -> u64 {
        1
    }
}

/// How a serial's values are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Style {
    /// `1`, `2`, …; `{SEQ:n}` is padded with zeros.
    #[default]
    Digits,
    /// `A`, …, `Z`, `AA`, …; `{SEQ:n}` begins at n times `A`.
    Letters,
}

impl Style {
    fn is_digits(&self) -> bool {
        *self == Style::Digits
    }
}

/// What happens to a value that needs more characters than its `{SEQ:n}` has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Overflow {
    /// It is refused: `sequence-exhausted`.
    #[default]
    Refuse,
    /// It is shown with as many as it needs.
    Widen,
}

impl Overflow {
    fn refuses(&self) -> bool {
        *self == Overflow::Refuse
    }
}

/// The period that names a new counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reset {
    /// Never.
    #[default]
    None,
    /// Each second of the series' wall time.
    Second,
    /// Each minute.
    Minute,
    /// Each hour. An hour that the end of summer time repeats counts as one.
    Hour,
    /// Each calendar day of the series' time zone.
    Day,
    /// Each ISO week, Monday to Sunday.
    Week,
    /// Each calendar month.
    Month,
    /// Each quarter of a calendar year.
    Quarter,
    /// Each calendar year.
    Year,
    /// Each fiscal year; see `SeriesDefinition::fiscal_year_start`.
    FiscalYear,
    /// Each phase that a request names.
    Phase,
}
