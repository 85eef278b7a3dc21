//! One row of a list becomes the request that would have given its number: series, inputs, values.
//! A reading counts only if it renders exactly the same text again. Never guesses: a column must
//! give what the number does not show. Reads the text around serials likewise.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use numbering::{
    Draft, Inputs, ParseError, Parsed, Range, RuleFormatError, RuleFormats, Serial, Series,
    SeriesDefinition,
};
use unicode_normalization::UnicodeNormalization;

use super::Choice;
use super::dating::{Dated, moment, zone};
use super::report::ProblemKind;
use super::rows::Row;
use crate::engine::allocator::{Catalog, KEY_CHARS_MAX, ServedSeries, check_key};

/// Names of the tokens that show the type.
const TYPE_TOKENS: [&str; 2] = ["CORR_TYPE", "TYPE_CODE"];

/// The kind of the texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Numbers.
    Number,
    /// The text around their serials, such as `BX20240115%s`.
    RuleFormat,
}

/// The meaning of a row.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) served: Arc<ServedSeries>,
    pub(super) inputs: Inputs,
    pub(super) draft: Draft,
    /// One value per serial; none for the text around them.
    pub(super) values: Vec<u64>,
    /// The values of each serial, where the row is of a range.
    pub(super) ranges: Option<Vec<Range>>,
    /// Why the version in force can have no such value while an earlier one can: it may have been
    /// issued here.
    pub(super) outside: Option<String>,
    /// The text in normal form C.
    pub(super) number: String,
    /// When it was issued; the present if the row does not say.
    pub(super) issued_at_us: i64,
}

/// Why a row cannot be imported.
#[derive(Debug)]
pub(super) struct Misfit {
    pub(super) kind: ProblemKind,
    pub(super) detail: String,
    /// How much of the number was understood: of several series the nearest one's reason is shown.
    depth: usize,
}

/// The depth of a number that was read, but did not fit.
const READ: usize = usize::MAX;

/// More variables than this are as many.
const OPEN_MAX: usize = 64;

impl Misfit {
    /// A misfit of a row.
    pub(super) fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        Misfit { kind, detail: detail.into(), depth: READ }
    }

    /// Whether the text may belong to the series nevertheless: nothing contradicts it, but
    /// information is missing.
    fn is_open(&self) -> bool {
        matches!(self.kind, ProblemKind::Missing | ProblemKind::Ambiguous)
    }

    /// The one with more understood; of equals the first.
    fn nearer(before: Option<Misfit>, next: Misfit) -> Option<Misfit> {
        match before {
            Some(before) if before.depth >= next.depth => Some(before),
            _ => Some(next),
        }
    }
}

pub(super) fn misfit<T>(kind: ProblemKind, detail: impl Into<String>) -> Result<T, Misfit> {
    Err(Misfit::new(kind, detail))
}

/// Reads rows by the active series.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) choice: &'a Choice,
    pub(super) now: Timestamp,
    pub(super) form: Form,
}

impl Reader<'_> {
    /// The one reading of a row.
    pub(super) fn read(&self, row: &Row) -> Result<Reading, Misfit> {
        for (field, text) in [("document_id", &row.document_id), ("user", &row.user_id)] {
            let checked = text.as_ref().map_or(Ok(()), |text| check_key(text, KEY_CHARS_MAX));
            if let Err(reason) = checked {
                return misfit(ProblemKind::Value, format!("column {field} {reason}"));
            }
        }
        let mut row = row.clone();
        row.number = row.number.nfc().collect();
        row.type_code = row.type_code.or_else(|| self.choice.type_code.clone());
        row.project = row.project.or_else(|| self.choice.project.clone());
        let (mut readings, mut open, mut nearest) = (Vec::new(), Vec::new(), None::<Misfit>);
        for served in self.candidates(&row) {
            match self.fit(served, &row) {
                Ok(reading) => readings.push(reading),
                Err(misfit) => {
                    if misfit.is_open() {
                        open.push(served.version.definition.code.as_str());
                    }
                    nearest = Misfit::nearer(nearest, misfit);
                }
            }
        }
        if readings.len() > 1 {
            self.prefer(&row, &mut readings)?;
        }
        if let (Some(reading), false) = (readings.first(), open.is_empty()) {
            let (code, open) = (reading.code(), open.join(", "));
            let detail = format!("series {code} reads it, and it may be one of {open}");
            return self.ambiguous(&detail);
        }
        let none = || Misfit { kind: ProblemKind::NotRead, detail: self.nobody(&row), depth: 0 };
        readings.pop().ok_or_else(|| nearest.unwrap_or_else(none))
    }

    /// The series that the number may belong to.
    fn candidates<'s>(&'s self, row: &Row) -> impl Iterator<Item = &'s Arc<ServedSeries>> {
        let (code, type_code) = (self.code_of(row).cloned(), row.type_code.clone());
        let (project, by_name) = (row.project.clone(), code.is_some());
        // An inactive series can still take the numbers that it has issued, if it is named.
        let all = self.catalog.all().filter(move |served| by_name || served.version.active);
        all.filter(move |served| {
            let SeriesDefinition { code: own, .. } = &served.version.definition;
            let knows = |list: &[String], value: &Option<String>| {
                list.is_empty() || value.as_ref().is_none_or(|value| list.contains(value))
            };
            code.as_ref().is_none_or(|code| code == own)
                && knows(served.series.types_shown(), &type_code)
                && knows(served.series.projects_shown(), &project)
        })
    }

    /// The code of the series of a row, if that is said.
    fn code_of<'r>(&'r self, row: &'r Row) -> Option<&'r String> {
        self.choice.series.as_ref().or(row.extra.series.as_ref())
    }

    fn nobody(&self, row: &Row) -> String {
        match (self.code_of(row), &row.type_code) {
            (Some(code), _) => format!("series {code} does not serve this type and project"),
            (None, Some(type_code)) => format!("no series serves type {type_code}"),
            (None, None) => "there is no series; apply one first".into(),
        }
    }

    /// Among several readings, keeps the one whose series a request with these inputs would get.
    fn prefer(&self, row: &Row, readings: &mut Vec<Reading>) -> Result<(), Misfit> {
        let codes: Vec<String> = readings.iter().map(|reading| reading.code().to_owned()).collect();
        if row.type_code.is_some() {
            readings.retain(|reading| {
                let chosen = self.catalog.choose(&reading.inputs, self.now);
                chosen.is_ok_and(|served| Arc::ptr_eq(served, &reading.served))
            });
        }
        if readings.len() == 1 {
            return Ok(());
        }
        self.ambiguous(&format!("series {} read it", codes.join(", ")))
    }

    fn ambiguous<T>(&self, detail: &str) -> Result<T, Misfit> {
        let remedy = match self.form {
            Form::Number => "say which by --series or by the columns type and project",
            Form::RuleFormat => "import its numbers instead",
        };
        misfit(ProblemKind::Ambiguous, format!("{detail}; {remedy}"))
    }

    /// The reading of a row by one series.
    fn fit(&self, served: &Arc<ServedSeries>, row: &Row) -> Result<Reading, Misfit> {
        let told = |misfit: Misfit| {
            let detail = format!("series {}: {}", served.version.definition.code, misfit.detail);
            Misfit { detail, ..misfit }
        };
        self.fit_untold(served, row).map_err(told)
    }

    fn fit_untold(&self, served: &Arc<ServedSeries>, row: &Row) -> Result<Reading, Misfit> {
        let series = &served.series;
        let parsed = self.parse(series, &row.number).or_else(|misfit| {
            // No series reads a 0: values begin at 1.
            let zero = (self.form == Form::Number).then(|| zero(series, &row.number)).flatten();
            zero.map_or(Err(misfit), |serial| below_start(serial, 0))
        })?;
        let definition = series.definition();
        if let Some(hidden) = series.serials().get(definition.serials.len()) {
            let detail = format!("its numbers do not show the value of serial {}", hidden.name);
            return misfit(ProblemKind::Value, detail);
        }
        let zone = zone(definition);
        let issued_at = row.issued_at.as_deref().map(|text| moment(text, &zone)).transpose()?;
        let (values, outside) = match self.form {
            Form::Number => match values(series, &parsed) {
                Ok(values) => (values, None),
                Err(misfit) if self.is_of_earlier(served, &row.number) => {
                    let shown = parsed.serials.iter().map(|serial| serial.value).collect();
                    (shown, Some(misfit.detail))
                }
                Err(misfit) => return Err(misfit),
            },
            Form::RuleFormat => (Vec::new(), None),
        };
        let ranges = match self.form {
            Form::Number => row.extra.ranges_from(&values, series.serials())?,
            Form::RuleFormat => None,
        };
        let inputs = inputs(series, &parsed, row)?;
        let shown = (self.form == Form::Number).then_some(&*values);
        let text = &row.number;
        let (now, date_is_said) = (self.now, row.date.is_some());
        let dated = Dated { series, parsed: &parsed, now, text, values: shown, date_is_said };
        let (inputs, draft) = dated.fit(row, inputs, issued_at, &zone)?;
        let issued_at_us = issued_at.unwrap_or(self.now).as_microsecond();
        let (served, number) = (Arc::clone(served), row.number.clone());
        Ok(Reading { served, inputs, draft, values, ranges, outside, number, issued_at_us })
    }

    /// Whether an earlier version of a series can have issued a number.
    fn is_of_earlier(&self, served: &ServedSeries, number: &str) -> bool {
        let earlier = self.catalog.earlier_of(served.version.series_id);
        earlier.iter().any(|version| version.series.read(number).is_ok())
    }

    /// The parts that a series reads in a text.
    fn parse(&self, series: &Series, text: &str) -> Result<Parsed, Misfit> {
        // Of series that get as far, one that leaves less open has understood more.
        let fixed = OPEN_MAX.saturating_sub(series.definition().variables.len());
        let misfit = |kind, position: Option<usize>, error: &dyn std::fmt::Display| {
            let depth = position.map_or(READ - 1, |position| position * OPEN_MAX + fixed);
            Misfit { kind, detail: error.to_string(), depth }
        };
        let (not_read, ambiguous) = (ProblemKind::NotRead, ProblemKind::Ambiguous);
        match self.form {
            Form::Number => series.parse(text).map_err(|error| match &error {
                ParseError::Departs { position, .. } => misfit(not_read, Some(*position), &error),
                ParseError::Ambiguous { .. } => misfit(ambiguous, None, &error),
                _ => misfit(not_read, None, &error),
            }),
            Form::RuleFormat => {
                let formats =
                    RuleFormats::of(series).map_err(|error| misfit(not_read, None, &error))?;
                formats.parse(text).map_err(|error| match &error {
                    RuleFormatError::Departs { position, .. } => {
                        misfit(not_read, Some(*position), &error)
                    }
                    RuleFormatError::Ambiguous => misfit(ambiguous, None, &error),
                    _ => misfit(not_read, None, &error),
                })
            }
        }
    }
}

impl Reading {
    /// The values of a serial.
    pub(super) fn range(&self, place: usize, step: u64) -> Range {
        let value = self.values[place];
        let one = Range { first: value, last: value, step };
        self.ranges.as_ref().map_or(one, |ranges| ranges[place])
    }

    /// How many numbers it is.
    pub(super) fn count(&self) -> u64 {
        self.ranges.as_ref().and_then(|ranges| ranges.first()).map_or(1, Range::count)
    }

    /// Code of its series.
    pub(super) fn code(&self) -> &str {
        &self.served.version.definition.code
    }
}

/// The values, each one that its serial can have.
fn values(series: &Series, parsed: &Parsed) -> Result<Vec<u64>, Misfit> {
    let mut values = Vec::with_capacity(parsed.serials.len());
    for (serial, read) in series.serials().iter().zip(&parsed.serials) {
        let (name, value, start, step) = (&serial.name, read.value, serial.start, serial.step);
        let why = if value < start {
            return below_start(serial, value);
        } else if value > serial.max {
            format!("more than its highest, {}", serial.max)
        } else if !(value - start).is_multiple_of(step) {
            format!("not on its step of {step} from {start} on")
        } else {
            values.push(value);
            continue;
        };
        return misfit(ProblemKind::Value, format!("serial {name} is {value}, {why}"));
    }
    Ok(values)
}

/// The serial of which a text shows the value 0: with another last digit there it would be a number
/// of the series, and show the value that the digit is.
fn zero<'s>(series: &'s Series, text: &str) -> Option<&'s Serial> {
    let digits = text.bytes().enumerate().filter(|(_, byte)| *byte == b'0');
    let ends = digits.filter(|(at, _)| !text[at + 1..].starts_with(|c: char| c.is_ascii_digit()));
    let with = |at: usize, digit: &str| {
        let changed = format!("{}{digit}{}", &text[..at], &text[at + 1..]);
        series.parse(&changed).ok().map(|parsed| parsed.serials)
    };
    ends.map(|(at, _)| at).find_map(|at| {
        let pairs = std::iter::zip(with(at, "1")?, with(at, "2")?);
        let shown = pairs.zip(series.serials());
        shown
            .into_iter()
            .find_map(|((one, two), serial)| (one.value == 1 && two.value == 2).then_some(serial))
    })
}

fn below_start<T>(serial: &Serial, value: u64) -> Result<T, Misfit> {
    let Serial { name, start, .. } = serial;
    let detail = format!(
        "serial {name} is {value}, which lies below its start, {start}: correct the number, or \
         leave the line out"
    );
    misfit(ProblemKind::Value, detail)
}

/// The request's inputs, as far as number, columns and series give them; the date is still open.
fn inputs(series: &Series, parsed: &Parsed, row: &Row) -> Result<Inputs, Misfit> {
    let definition = series.definition();
    let only = |list: &[String]| match list {
        [only] => Some(only.clone()),
        _ => None,
    };
    let shown = TYPE_TOKENS.iter().find_map(|name| parsed.variables.get(*name));
    let type_code = agreed("type", row.type_code.as_ref(), shown)?;
    let Some(type_code) = type_code.or_else(|| only(series.types_shown())) else {
        let types = series.types_shown().join(", ");
        let detail = format!("the number does not show its type; add a column type ({types})");
        return misfit(ProblemKind::Missing, detail);
    };
    let project = agreed("project", row.project.as_ref(), parsed.variables.get("PROJECT"))?;
    let project = project.or_else(|| only(series.projects_shown()));
    let mut context = BTreeMap::new();
    for (name, value) in &row.context {
        context.insert(name.clone(), value.clone());
    }
    for (name, value) in &parsed.variables {
        if definition.variables.contains_key(name) {
            agreed(name, row.context.get(name), Some(value))?;
            context.insert(name.clone(), value.clone());
        }
    }
    let phase = agreed("phase", row.phase.as_ref(), parsed.variables.get("PHASE"))?;
    Ok(Inputs { type_code, project, phase, context, ..Inputs::default() })
}

/// The value of a column and of a number, if they do not contradict each other.
pub(super) fn agreed(
    column: &str,
    said: Option<&String>,
    shown: Option<&String>,
) -> Result<Option<String>, Misfit> {
    let said: Option<String> = said.map(|said| said.nfc().collect());
    match (said, shown) {
        (Some(said), Some(shown)) if said != *shown => {
            let detail = format!("column {column} says {said:?}, the number shows {shown:?}");
            misfit(ProblemKind::Contradiction, detail)
        }
        (said, shown) => Ok(said.or_else(|| shown.cloned())),
    }
}
