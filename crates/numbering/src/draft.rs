//! What a caller asks for, and what the series makes of it before a value is taken.
//!
//! The last place where a request may be refused for its content: a draft can be rendered with any
//! value that its serials allow (F24).

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::DateTime;
use serde::{Deserialize, Serialize};

use super::error::excerpt;
use super::external;
use super::look_alike::{LookAlike, look_alike};
use super::period::day_text;
use super::plausible::DocumentDate;
use super::series::{Dimension, Variable};
use super::template::Part;
use super::value::ValueRule;
use super::{
    CounterKey, InputError, PartialNumber, Reset, Series, SeriesDefinition, TEXT_CHARS_MAX,
};
use super::{Snowflake, SnowflakePlace};

/// Signs that a spreadsheet takes for the beginning of a formula.
pub(super) const FORMULA_SIGNS: &str = "=+@";

/// What a counter key holds for a dimension that the request leaves out.
pub(super) const ABSENT: &str = "0";

/// The part of a request that the numbering language reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inputs {
    /// Document type; empty if `type_id` names it.
    pub type_code: String,
    /// Id of the document type in the series' table, instead of its code.
    pub type_id: Option<String>,
    /// Project, if the caller names one.
    pub project: Option<String>,
    /// Id of the project in the series' table, instead of its code.
    pub project_id: Option<String>,
    /// Document date as the caller wrote it: `2025-12-02` or a date-time with offset; now without
    /// one.
    pub date: Option<String>,
    /// The phase, if the series has phases.
    #[serde(default)]
    pub phase: Option<String>,
    /// Values of declared variables: `X`, or for one of a table `x_id`, its id.
    pub context: BTreeMap<String, String>,
    /// The recipients of the document: `RECIPIENT` is the first of kind TO.
    pub recipients: Vec<Recipient>,
    /// The projects within the caller's reach; the others, and their rows, are treated as absent.
    /// `None`: all of them. Not part of what was sent.
    #[serde(skip)]
    pub projects_within: Option<Arc<[String]>>,
}

impl Inputs {
    /// Whether a project exists for the caller.
    pub(super) fn reaches(&self, project: &str) -> bool {
        self.projects_within.as_ref().is_none_or(|within| within.iter().any(|one| one == project))
    }
}

/// One recipient of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipient {
    /// Its code.
    pub code: Option<String>,
    /// Its id in the table of the series' `RECIPIENT`, instead of its code.
    pub id: Option<String>,
    /// `TO`, `CC` and the like.
    pub kind: String,
    /// Its place among the recipients; those of one place keep the order in which they were sent.
    pub order: i64,
}

/// A checked request: which counters to take from, and the number without its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// One counter key per serial, in the order of `Series::serials`.
    pub keys: Vec<CounterKey>,
    /// The number without its values.
    pub partial: PartialNumber,
    /// The uniqueness scope as text: empty for the whole ledger, else like a counter key.
    pub scope: String,
    /// The document's civil date in the series' time zone, `yyyy-mm-dd`.
    pub document_date: String,
    /// If the series keeps chronology: the key of the first serial's counter without its period.
    /// Counters of one such family share their last date.
    pub family: Option<String>,
    /// Where the number shows an id; it holds a sample until the drawn one is put in.
    pub snowflake: Option<SnowflakePlace>,
    /// Why there is no new number for that date, if it lies in a closed period. An earlier number
    /// may still be the answer, and be revised.
    pub closed: Option<InputError>,
    /// The request in codes alone, if it was sent in another form: with ids, with recipients, with
    /// codes from before a renaming, or without the project that follows from its originator.
    pub resolved: Option<Inputs>,
}

/// A request's values, checked and in normal form C.
struct Values<'s> {
    series: &'s Series,
    type_code: String,
    project: Option<String>,
    /// Present if the series has phases.
    phase: Option<String>,
    /// One per declared variable.
    variables: Vec<Option<String>>,
    time: DateTime,
}

/// What is drafted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drafted {
    /// A number to be issued now.
    Asked,
    /// The same, with the value that its source gave.
    Answered,
    /// One that was issued elsewhere, however long ago.
    Issued,
}

/// How much a refusal explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// What is wrong, and what would be right.
    InFull,
    /// What is wrong. No correction is searched for.
    InBrief,
}

/// Checks everything, then names the counters, then renders everything except the values.
pub(super) fn draft(
    series: &Series,
    inputs: &Inputs,
    now: Timestamp,
    (what, told): (Drafted, Told),
) -> Result<Draft, InputError> {
    let resolved = super::resolve::resolve(series, inputs)?;
    let inputs = resolved.as_ref().unwrap_or(inputs);
    let complete = external::with_stand_in(series, inputs, what)?;
    let values = Values::check(series, complete.as_ref().unwrap_or(inputs), now)?;
    values.must_be_plausible(inputs, now, (what, told))?;
    let keys = series.counters.iter().map(|rule| {
        let mut parts = Vec::with_capacity(rule.dimensions.len() + 1);
        parts.extend(values.pairs(&rule.dimensions));
        parts.extend(values.period(rule.reset));
        CounterKey { parts }
    });
    let keys = keys.collect();
    let date = values.time.date();
    let scope = values.named(&series.scope);
    let first = series.counters.first().filter(|_| series.definition.chronology);
    let family = first.map(|rule| values.named(&rule.dimensions));
    let closed = series.closed_before.filter(|open_from| date < *open_from);
    let closed = closed.map(|open_from| {
        let (date, open_from) = (day_text(date), open_from.to_string());
        InputError::PeriodClosed { date, open_from }
    });
    let document_date = day_text(date);
    let (partial, snowflake) = values.partial_number(inputs, now)?;
    Ok(Draft { keys, partial, scope, document_date, family, snowflake, closed, resolved })
}

/// The number without its values, of a request that is in codes: no table is asked, so that a
/// number of the journal comes out as it was, whatever was renamed since.
pub(super) fn partial_number(
    series: &Series,
    inputs: &Inputs,
    now: Timestamp,
) -> Result<(PartialNumber, Option<SnowflakePlace>), InputError> {
    Values::check(series, inputs, now)?.partial_number(inputs, now)
}

impl<'s> Values<'s> {
    /// Checks the fields in the order in which a caller reads them: type, project, context, date,
    /// phase.
    fn check(series: &'s Series, inputs: &Inputs, now: Timestamp) -> Result<Self, InputError> {
        let type_code = plain_value(series, "type", Some(&inputs.type_code), true)?;
        let project =
            plain_value(series, "project", inputs.project.as_deref(), series.project_needed)?;
        for name in inputs.context.keys() {
            if !series.variables.iter().any(|variable| variable.name == *name) {
                return Err(unknown(series, name));
            }
        }
        let value = |variable| variable_value(series, variable, &inputs.context);
        let variables = series.variables.iter().map(value).collect::<Result<_, _>>()?;
        let given = inputs.date.as_deref();
        let time = super::date::document_time(given, &series.zone, now, series.time_needed)?;
        if inputs.phase.is_some() && !series.phase_needed {
            return Err(InputError::PhaseUnknown { series: series.definition.code.clone() });
        }
        let phase = plain_value(series, "phase", inputs.phase.as_deref(), series.phase_needed)?;
        let type_code = type_code.unwrap_or_default();
        Ok(Values { series, type_code, project, phase, variables, time })
    }

    /// Refuses what is probably a mistake. Only in what is requested now: a number of the journal
    /// comes out as it was.
    fn must_be_plausible(
        &self,
        inputs: &Inputs,
        now: Timestamp,
        (what, told): (Drafted, Told),
    ) -> Result<(), InputError> {
        let Values { series, project, phase, variables, .. } = self;
        if let Some(given) = &inputs.date {
            let today = series.zone.to_datetime(now).date();
            let (taken, date) = (DocumentDate::of(&series.definition), self.time.date());
            // A year of another era is wrong in foreign numbers, too.
            match what {
                Drafted::Issued => taken.check_issued(given, date, today)?,
                Drafted::Asked | Drafted::Answered => taken.check(given, date, today)?,
            }
        }
        let SeriesDefinition { references, serves, look_alikes, .. } = &series.definition;
        let is_listed = references.project.is_some() || !serves.projects.is_empty();
        let must_look_like_nothing = |place: &str, name: &str, value: &str, rule: &ValueRule| {
            look_alike(value, |other| rule.check("", other).is_ok()).map_or(Ok(()), |found| {
                let LookAlike { position, character, why } = found;
                let field = format!("{place}{name}");
                Err(InputError::LookAlike { field, position, character, why })
            })
        };
        for (variable, value) in series.variables.iter().zip(variables) {
            let given = value.as_deref().filter(|_| inputs.context.contains_key(&variable.name));
            if let (Some(values), Some(value)) = (&variable.values, given) {
                values.check(&format!("context.{}", variable.name), value, told)?;
            }
        }
        if look_alikes.are_refused() {
            let any = ValueRule::printable();
            must_look_like_nothing("", "phase", phase.as_deref().unwrap_or_default(), &any)?;
            let free = project.as_deref().filter(|_| !is_listed).unwrap_or_default();
            must_look_like_nothing("", "project", free, &any)?;
            for (variable, value) in series.variables.iter().zip(variables) {
                // An administrator wrote them.
                let is_listed = variable.reference.is_some() || variable.values.is_some();
                let Some(value) = value.as_deref().filter(|_| !is_listed) else { continue };
                // A default is what an administrator wrote.
                if !value.is_ascii() && inputs.context.contains_key(&variable.name) {
                    must_look_like_nothing("context.", &variable.name, value, &variable.rule)?;
                }
            }
        }
        self.must_be_no_formula()
    }

    /// Refuses a value that begins the number and turns it into a formula when it is opened in a
    /// spreadsheet.
    fn must_be_no_formula(&self) -> Result<(), InputError> {
        let (field, value) = match self.series.parts.first() {
            Some(Part::Variable(index)) => {
                let name = &self.series.variables[*index].name;
                (format!("context.{name}"), self.variables[*index].as_deref())
            }
            Some(Part::Project) => ("project".into(), self.project.as_deref()),
            Some(Part::Phase) => ("phase".into(), self.phase.as_deref()),
            Some(Part::Type(_)) => ("type".into(), Some(self.type_code.as_str())),
            _ => return Ok(()),
        };
        match value.and_then(|value| value.chars().next()) {
            Some(character) if FORMULA_SIGNS.contains(character) => {
                let expected = "a number that begins with it is a formula to a spreadsheet".into();
                Err(InputError::WrongAlphabet { field, position: 1, character, expected })
            }
            _ => Ok(()),
        }
    }

    /// The period of the request, as the last part of a counter key.
    fn period(&self, reset: Reset) -> Option<(String, String)> {
        if reset == Reset::Phase {
            return self.phase.clone().map(|phase| ("phase".into(), phase));
        }
        reset.period(self.time, self.series.fiscal).map(|(name, value)| (name.into(), value))
    }

    /// Dimensions with their values: ids if the series has a table of them.
    fn pairs(&self, dimensions: &[Dimension]) -> impl Iterator<Item = (String, String)> {
        let pair = |dimension: &Dimension| {
            let value = match *dimension {
                Dimension::Project => self.project.as_deref(),
                Dimension::Type => Some(self.type_code.as_str()),
                Dimension::Variable(index) => self.variables[index].as_deref(),
            };
            let value = value.unwrap_or(ABSENT);
            let id = self.series.table_of(*dimension).filter(|_| value != ABSENT).map(|table| {
                let row = self.series.reference.by_code(table, value);
                // `resolve` refused the rest; a code instead of its id would be another counter.
                row.expect("a checked value is in its table").id.clone()
            });
            (self.series.key_name(*dimension), id.unwrap_or_else(|| value.to_owned()))
        };
        dimensions.iter().map(pair)
    }

    /// Dimensions with their values, as the text of a counter key.
    fn named(&self, dimensions: &[Dimension]) -> String {
        CounterKey { parts: self.pairs(dimensions).collect() }.to_string()
    }

    /// Fills everything except the serials into the template; for an id a sample of now.
    fn partial_number(
        &self,
        inputs: &Inputs,
        now: Timestamp,
    ) -> Result<(PartialNumber, Option<SnowflakePlace>), InputError> {
        let mut partial = PartialNumber::with_room(self.series.serials.len());
        let mut snowflake = None;
        for part in &self.series.parts {
            match part {
                Part::Literal(text) => partial.push_text(text),
                Part::Serial { serial, format } => partial.push_serial(*serial, *format),
                Part::Check(check) => partial.push_check(*check),
                Part::Snowflake => {
                    let sample = Snowflake::sample(now, 0);
                    snowflake = Some(SnowflakePlace::push(&mut partial, sample));
                }
                // A shown variable has a value: `check` refused the rest.
                Part::Variable(index) => {
                    partial.push_text(self.variables[*index].as_deref().unwrap_or(ABSENT));
                }
                Part::Project => partial.push_text(self.project.as_deref().unwrap_or(ABSENT)),
                Part::Phase => partial.push_text(self.phase.as_deref().unwrap_or(ABSENT)),
                Part::Type(_) => partial.push_text(&self.type_code),
                Part::Date(field) => {
                    let value = field.value(self.time).and_then(|value| u64::try_from(value).ok());
                    let value = value.ok_or_else(|| InputError::InvalidDate {
                        given: inputs.date.as_deref().map_or_else(|| "now".into(), excerpt),
                        reason: "the template's calendar or width cannot show that year",
                    })?;
                    partial.push_digits(value, field.width());
                }
            }
        }
        let chars = partial.chars_max(|serial| self.series.serials[serial].max);
        if chars > TEXT_CHARS_MAX {
            return Err(InputError::TextTooLong { chars });
        }
        Ok((partial, snowflake))
    }
}

/// The type, the project or the phase.
fn plain_value(
    series: &Series,
    field: &str,
    given: Option<&str>,
    needed: bool,
) -> Result<Option<String>, InputError> {
    match given {
        Some(given) if !given.is_empty() => ValueRule::printable().check(field, given).map(Some),
        None if !needed => Ok(None),
        _ => Err(missing(series, field.into())),
    }
}

/// The value of a variable, its default, or nothing if only a counter would use it.
fn variable_value(
    series: &Series,
    variable: &Variable,
    context: &BTreeMap<String, String>,
) -> Result<Option<String>, InputError> {
    let missing = || missing(series, format!("context.{}", variable.name));
    match context.get(&variable.name) {
        // An empty value is a mistake, not a way to omit the variable.
        Some(given) if given.is_empty() => Err(missing()),
        Some(given) => {
            variable.rule.check(format_args!("context.{}", variable.name), given).map(Some)
        }
        None if variable.default.is_some() => Ok(variable.default.clone()),
        None if variable.required || variable.shown => Err(missing()),
        None => Ok(None),
    }
}

pub(super) fn missing(series: &Series, field: String) -> InputError {
    InputError::MissingVariable { field, series: series.definition.code.clone() }
}

/// Why a name is no variable of the series, and where its value belongs.
pub(super) fn unknown(series: &Series, name: &str) -> InputError {
    let declared: Vec<&str> = series.variables.iter().map(|v| v.name.as_str()).collect();
    let known = match name {
        "PROJECT" => "give it as `project`, outside the context".into(),
        "CORR_TYPE" | "TYPE_CODE" => "give it as `type`, outside the context".into(),
        _ if declared.is_empty() => "the series takes none".into(),
        _ => format!("the series takes {}", declared.join(", ")),
    };
    InputError::UnknownVariable { name: excerpt(name), known }
}
