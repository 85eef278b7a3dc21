//! Series files: TOML with one `[[series]]` table per series. A mistake is reported with line,
//! column and reason, down to the token of a template.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::excerpt;
use super::{
    Expression, ExpressionError, Misfit, Notation, SERIES_FORMS, Series, SeriesDefinition, Step,
    TemplateError, json_of_toml, read_written,
};

/// Largest series file, in bytes.
const FILE_BYTES_MAX: usize = 1024 * 1024;

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePlace {
    /// Line, counted from 1.
    pub line: usize,
    /// Character of the line, counted from 1.
    pub column: usize,
}

impl std::fmt::Display for FilePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// A series file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SeriesFileError {
    /// Larger than any sensible file.
    #[error("line 1, column 1: the file has {bytes} bytes, at most {FILE_BYTES_MAX} are read")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// Not TOML, or not the fields of a series.
    #[error("{place}: {reason}")]
    Syntax {
        /// Where.
        place: FilePlace,
        /// What is wrong.
        reason: String,
    },
    /// A series that cannot be used.
    #[error("{place}: series {code}: {error}")]
    Series {
        /// Where, as closely as TOML's quoting allows.
        place: FilePlace,
        /// Code of the series.
        code: String,
        /// What is wrong and the remedy.
        error: Box<TemplateError>,
    },
    /// A rule expression that cannot be used.
    #[error("{place}: series {code}: expression: {error}")]
    Expression {
        /// Where it begins.
        place: FilePlace,
        /// Code of the series.
        code: String,
        /// What is wrong and the remedy.
        error: Box<ExpressionError>,
    },
    /// Two series of one code.
    #[error("{place}: series {code} stands in this file twice; rename or remove one")]
    Repeated {
        /// The second one.
        place: FilePlace,
        /// The code.
        code: String,
    },
}

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SeriesFile {
    series: Vec<SeriesDefinition>,
}

/// Reads a series file: one or several `[[series]]`, each checked as `Series::compile` does. If an
/// `expression` replaces template and serials, the definition is what it says.
///
/// # Errors
/// The first mistake, with line, column and reason.
pub fn read_series(text: &str) -> Result<Vec<SeriesDefinition>, SeriesFileError> {
    if text.len() > FILE_BYTES_MAX {
        return Err(SeriesFileError::TooLarge { bytes: text.len() });
    }
    let syntax = |error: &toml::de::Error| {
        let span = error.span().unwrap_or_default();
        let reason = error.message().trim().replace('\n', "; ");
        let reason = format!("{reason}{}", remedy(text, &span));
        SeriesFileError::Syntax { place: place(text, span.start), reason }
    };
    // The tree remembers where each value is.
    let mut tree = DeTable::parse(text).map_err(|error| syntax(&error))?;
    let found = tree.get_ref().clone();
    let expressions = take_expressions(tree.get_mut())
        .map_err(|(at, reason)| SeriesFileError::Syntax { place: place(text, at), reason })?;
    let written = toml::Value::deserialize(toml::Deserializer::from(tree));
    let written = json_of_toml(written.map_err(|error| syntax(&error))?);
    let tree = &found;
    let mut file: SeriesFile = read_written(&written).map_err(|misfit| {
        let said = misfit.say(SERIES_FORMS, Notation::Toml);
        let reason = format!("{}{}", whose(tree, &misfit), within_its_series(&said));
        SeriesFileError::Syntax { place: place(text, span_of(tree, &misfit).start), reason }
    })?;
    if file.series.is_empty() {
        let reason = "there is no series; write one under [[series]]".into();
        return Err(SeriesFileError::Syntax { place: place(text, 0), reason });
    }
    let mut seen = BTreeMap::new();
    for (index, definition) in file.series.iter_mut().enumerate() {
        let code = definition.code.clone();
        if let Some((at, expression)) = expressions.get(&index) {
            let said =
                Expression::parse(expression).and_then(|said| said.narrow(definition.clone()));
            *definition = said.map_err(|error| {
                let (place, code) = (place(text, *at), excerpt(&code));
                SeriesFileError::Expression { place, code, error: Box::new(error) }
            })?;
        }
        if seen.insert(code.clone(), index).is_some() {
            let place = place(text, locate(tree, index, "code").start);
            return Err(SeriesFileError::Repeated { place, code });
        }
        if let Err(error) = Series::compile(definition.clone()) {
            let span = locate(tree, index, error.field());
            let place = place(text, start_of(text, &span, definition, &error));
            let code = excerpt(&code);
            return Err(SeriesFileError::Series { place, code, error: Box::new(error) });
        }
    }
    Ok(file.series)
}

/// The series in which something is wrong, if it has a code: the place alone does not show which it
/// is.
fn whose(tree: &DeTable<'_>, misfit: &Misfit) -> String {
    let mut steps = misfit.steps();
    let (Some(Step::Field(..)), Some(Step::Item(index))) = (steps.next(), steps.next()) else {
        return String::new();
    };
    let series = tree.get("series").map(Spanned::get_ref);
    let Some(DeValue::Array(all)) = series else { return String::new() };
    let code = match all.get(*index).map(Spanned::get_ref) {
        Some(DeValue::Table(table)) => table.get("code").map(Spanned::get_ref),
        _ => None,
    };
    match code {
        Some(DeValue::String(code)) => format!("series {}: ", excerpt(code)),
        _ => String::new(),
    }
}

/// What is said of a place, without the series that it is in.
fn within_its_series(said: &str) -> String {
    match said.strip_prefix("`series[").and_then(|rest| rest.split_once("].")) {
        Some((_, rest)) => format!("`{rest}"),
        None => said.to_owned(),
    }
}

/// The correct form of a frequent mistake that TOML does not accept; else empty.
fn remedy(text: &str, span: &Range<usize>) -> &'static str {
    let rest = text.get(span.start..).unwrap_or_default();
    let curly = ['\u{201c}', '\u{201d}', '\u{201e}', '\u{2018}', '\u{2019}', '\u{ab}'];
    if rest.starts_with(curly) { "; write straight quotation marks: \"…\"" } else { "" }
}

/// Takes the rule expressions out of the tables of series, with where they begin; each leaves an
/// empty template. An error names the place.
fn take_expressions(
    tree: &mut DeTable<'_>,
) -> Result<BTreeMap<usize, (usize, String)>, (usize, String)> {
    let mut expressions = BTreeMap::new();
    let Some(DeValue::Array(all)) = tree.get_mut("series").map(Spanned::get_mut) else {
        return Ok(expressions);
    };
    for (index, series) in all.iter_mut().enumerate() {
        let DeValue::Table(series) = series.get_mut() else { continue };
        let Some(expression) = series.get_mut("expression") else { continue };
        let span = expression.span();
        let DeValue::String(text) = std::mem::replace(expression.get_mut(), DeValue::Boolean(true))
        else {
            return Err((span.start, "`expression` is a string that holds JSON".into()));
        };
        for other in ["template", "serials"] {
            if let Some(value) = series.get(other) {
                let reason = format!("`expression` says the {other}; write one of the two");
                return Err((value.span().start, reason));
            }
        }
        series.remove("expression");
        let (key, none) = (Spanned::new(span.clone(), "template".into()), String::new());
        series.insert(key, Spanned::new(span.clone(), DeValue::String(none.into())));
        expressions.insert(index, (span.start, text.into_owned()));
    }
    Ok(expressions)
}

/// The series that ship with the service: an empty embedded ledger loads them.
///
/// # Panics
/// Never: a test reads the same files.
#[must_use]
pub fn builtin_series() -> Vec<SeriesDefinition> {
    let files = [
        include_str!("../../../examples/series/order-documents.toml"),
        include_str!("../../../examples/series/correspondence.toml"),
        include_str!("../../../examples/series/hivenet-serials.toml"),
        include_str!("../../../examples/series/project-lcbp3.toml"),
        include_str!("../../../examples/series/contract-and-expense.toml"),
    ];
    let read = |text: &&str| read_series(text).expect("the built-in series files are sound");
    files.iter().flat_map(read).collect()
}

/// Line and column of a byte offset.
fn place(text: &str, offset: usize) -> FilePlace {
    let before = text.get(..offset).unwrap_or(text);
    let line_from = before.rfind('\n').map_or(0, |at| at + 1);
    FilePlace {
        line: before.matches('\n').count() + 1,
        column: before[line_from..].chars().count() + 1,
    }
}

/// Where the error is in a text of TOML; its beginning, if that cannot be determined.
#[must_use]
pub fn place_of(text: &str, misfit: &Misfit) -> FilePlace {
    let span = DeTable::parse(text).map(|tree| span_of(tree.get_ref(), misfit));
    place(text, span.unwrap_or_default().start)
}

/// Bytes of what is wrong: of its name if it is unknown, of what lacks it if it is missing, else of
/// its value.
fn span_of(tree: &DeTable<'_>, misfit: &Misfit) -> Range<usize> {
    let (mut span, mut table, mut array) = (0..0, Some(tree), None);
    let name_in = |table: &DeTable<'_>, name: &str| {
        let entry = table.iter().find(|(key, _)| key.get_ref().as_ref() == name);
        entry.map(|(key, _)| key.span())
    };
    for step in misfit.steps() {
        let value = match (step, table, array) {
            (Step::Field(_, name) | Step::Key(name), Some(table), _) => table.get(name.as_str()),
            (Step::Item(index), _, Some(array)) => {
                let array: &toml::de::DeArray<'_> = array;
                array.get(*index)
            }
            _ => None,
        };
        let Some(value) = value else { return span };
        span = value.span();
        (table, array) = match value.get_ref() {
            DeValue::Table(inner) => (Some(inner), None),
            DeValue::Array(inner) => (None, Some(inner)),
            _ => (None, None),
        };
    }
    let name = misfit.unknown_field().zip(table).and_then(|(name, table)| name_in(table, name));
    name.unwrap_or(span)
}

/// Bytes of the value at `path` within a series, or of the deepest table that holds it.
fn locate(tree: &DeTable<'_>, index: usize, path: &str) -> Range<usize> {
    let full = format!("series[{index}].{path}");
    let steps = full.split(['.', '[', ']']).filter(|step| !step.is_empty());
    let mut table = Some(tree);
    let mut array = None;
    let mut span = 0..0;
    for step in steps {
        let value = match (table, array) {
            (Some(table), _) => {
                let entry = table.iter().find(|(key, _)| key.get_ref().as_ref() == step);
                entry.map(|(_, value)| value)
            }
            (None, Some(array)) => {
                let array: &toml::de::DeArray<'_> = array;
                step.parse::<usize>().ok().and_then(|at| array.get(at))
            }
            (None, None) => None,
        };
        let Some(value) = value else { break };
        span = value.span();
        (table, array) = match value.get_ref() {
            DeValue::Table(inner) => (Some(inner), None),
            DeValue::Array(inner) => (None, Some(inner)),
            _ => (None, None),
        };
    }
    span
}

/// Where an error lies within its value: at the token, if the template is in the file as it is (no
/// escapes, one line); else at the value's beginning.
fn start_of(
    text: &str,
    span: &Range<usize>,
    definition: &SeriesDefinition,
    error: &TemplateError,
) -> usize {
    let inner = text.get(span.start + 1..span.end.saturating_sub(1));
    match error {
        TemplateError::Token { at, .. } if inner == Some(&definition.template) => {
            span.start + 1 + at.offset
        }
        _ => span.start,
    }
}
