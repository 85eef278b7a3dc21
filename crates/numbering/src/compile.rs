//! Checks a definition field by field and makes a [`Series`] of it. A definition that passes here
//! can be used without further checks; nothing here examines a request.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::definition::{HIDDEN_SERIALS, SERIAL_DEFAULT};
use super::draft::Told;
use super::error::excerpt;
use super::field::{at, check_chars, check_count, check_text, syntax};
use super::partial_number::SERIALS_MAX;
use super::period::FiscalYear;
use super::plausible::{PlausibleDates, YEARS_MAX};
use super::reference::check_references;
use super::revision::REVISION;
use super::series::{CounterRule, Dimension, Variable};
use super::served::Served;
use super::snowflake::SNOWFLAKE_DIGITS;
use super::template::{Part, TEMPLATE_CHARS_MAX, compile_template, is_reserved, retired};
use super::template_error::{FieldFlaw, TemplateError};
use super::text::{Lines, check_printable, normalise};
use super::value::{VALUE_CHARS_MAX, ValueRule};
use super::values::{self, DeclaredValues};
use super::window::{self, Window};
use super::{NUMBER_MAX, Policy, Reset, SerialDefinition, SeriesDefinition, TEXT_CHARS_MAX};
use super::{ReferenceData, Serial, Series, VariableDefinition};
use super::{by_hand, external};

/// Longest code of a series, in characters.
const CODE_CHARS_MAX: usize = 64;

/// Longest name of a variable or serial, in characters.
const NAME_CHARS_MAX: usize = 32;

/// Longest display name, in characters.
const DISPLAY_CHARS_MAX: usize = 200;

/// Longest description, in characters.
const DESCRIPTION_CHARS_MAX: usize = 2000;

/// Shortest reason for accepting an ambiguity, in characters: a sentence, not a tick.
const REASON_CHARS_MIN: usize = 20;

/// Most document types or projects of one series.
const SERVED_MAX: usize = 1000;

/// Most variables of one series.
const VARIABLES_MAX: usize = 64;

/// Checks the fields that depend on no other first, so that an error names the cause and not a
/// consequence; the template comes after its variables and serials.
pub(super) fn compile(definition: SeriesDefinition) -> Result<Series, TemplateError> {
    check_texts(&definition)?;
    check_serves(&definition)?;
    let window = Window::compile(&definition.serves)?;
    check_references(&definition)?;
    let zone = zone(&definition)?;
    let closed_before = closed_before(&definition)?;
    check_chronology(&definition)?;
    check_dates(&definition)?;
    let fiscal = fiscal_year(&definition)?;
    let mut variables = variables(&definition)?;
    check_serial_names(&definition)?;
    check_chars("template", &definition.template, TEMPLATE_CHARS_MAX)?;
    let parts = compile_template(&definition, &mut variables)?;
    values::compile(&definition, &mut variables)?;
    external::check(&definition, &variables)?;
    check_defaults(&mut variables)?;
    check_least_length(&parts, &variables)?;
    let has_identity = parts.contains(&Part::Snowflake) || definition.has_source();
    by_hand::check(&definition, has_identity)?;
    if definition.serials.is_empty() && !has_identity {
        return at("serials", FieldFlaw::Empty { what: "serial" });
    }

    let scope = dimensions("unique_within", &definition.unique_within, &variables)?;
    let (mut serials, mut counters) = (Vec::new(), Vec::new());
    for (index, declared) in definition.taken_serials().iter().enumerate() {
        let path = format!("serials[{index}]");
        serials.push(serial(&path, index, declared, &parts)?);
        let path = format!("{path}.counter");
        let dimensions = dimensions(&path, &declared.counter, &variables)?;
        counters.push(CounterRule { dimensions, reset: declared.reset });
    }
    let mut used = scope.iter().chain(counters.iter().flat_map(|rule| &rule.dimensions));
    let project_needed = parts.contains(&Part::Project) || used.any(|d| *d == Dimension::Project);
    let resets = |wanted: fn(Reset) -> bool| counters.iter().any(|rule| wanted(rule.reset));
    let phase_needed = parts.contains(&Part::Phase) || resets(|reset| reset == Reset::Phase);
    let time_shown = |part: &Part| matches!(part, Part::Date(field) if field.is_time());
    let time_needed = parts.iter().any(time_shown) || resets(Reset::is_time);
    let reference = Arc::<ReferenceData>::default();
    let served = Served::of(&definition, &reference);
    Ok(Series {
        definition,
        serials,
        counters,
        scope,
        parts,
        variables,
        project_needed,
        phase_needed,
        time_needed,
        fiscal,
        zone,
        window,
        closed_before,
        reference,
        served,
    })
}

/// Code, names, description and prefix.
fn check_texts(definition: &SeriesDefinition) -> Result<(), TemplateError> {
    let code = &definition.code;
    check_chars("code", code, CODE_CHARS_MAX)?;
    if !code.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) {
        return syntax("code", code, "letters A-Z a-z, digits, `.`, `_` and `-`");
    }
    check_text("name", &definition.name, DISPLAY_CHARS_MAX)?;
    let chars = definition.description.chars().count();
    check_count("description", chars, DESCRIPTION_CHARS_MAX, "characters")?;
    // A description may have several lines.
    if check_printable(&definition.description, Lines::Many).is_err() {
        let expected = "text without control characters and others that nobody sees";
        return syntax("description", &definition.description, expected);
    }
    check_reason(definition.ambiguity_accepted.as_deref())?;
    match &definition.prefix {
        Some(prefix) => check_text("prefix", prefix, VALUE_CHARS_MAX),
        None => Ok(()),
    }
}

/// Why an ambiguity was accepted: an auditor will read it.
fn check_reason(reason: Option<&str>) -> Result<(), TemplateError> {
    let Some(reason) = reason else { return Ok(()) };
    let field = "ambiguity_accepted";
    check_text(field, reason, DISPLAY_CHARS_MAX)?;
    if reason.chars().count() < REASON_CHARS_MIN {
        return syntax(field, reason, "why two numbers may be equal, in at least 20 characters");
    }
    Ok(())
}

/// Each a value that a request can bring, none twice.
fn check_serves(definition: &SeriesDefinition) -> Result<(), TemplateError> {
    let serves = &definition.serves;
    if serves.types.is_empty() {
        return at("serves.types", FieldFlaw::Empty { what: "document type" });
    }
    for (field, values) in [
        ("serves.types", &serves.types),
        ("serves.projects", &serves.projects),
        ("serves.originators", &serves.originators),
        ("serves.sub_types", &serves.sub_types),
        ("serves.undetermined_types", &serves.undetermined_types),
    ] {
        check_count(field, values.len(), SERVED_MAX, "entries")?;
        let mut seen = BTreeSet::new();
        for (index, value) in values.iter().enumerate() {
            check_text(&format!("{field}[{index}]"), value, VALUE_CHARS_MAX)?;
            if !seen.insert(value) {
                let flaw = FieldFlaw::Repeated { value: value.clone() };
                return at(&format!("{field}[{index}]"), flaw);
            }
        }
    }
    if serves.undetermined_types.iter().any(|undetermined| serves.types.contains(undetermined)) {
        return at("serves.undetermined_types", FieldFlaw::Contradiction { other: "serves.types" });
    }
    Ok(())
}

/// The zone, from the bundled tzdb: the same on every machine, and no file is read.
fn zone(definition: &SeriesDefinition) -> Result<TimeZone, TemplateError> {
    let Some(name) = &definition.timezone else {
        return Ok(TimeZone::UTC);
    };
    let known = TimeZoneDatabase::bundled().get(name);
    known.or_else(|_| at("timezone", FieldFlaw::UnknownZone { zone: excerpt(name) }))
}

/// The first day that is not closed.
fn closed_before(definition: &SeriesDefinition) -> Result<Option<Date>, TemplateError> {
    let Some(text) = &definition.closed_before else { return Ok(None) };
    match window::day(text) {
        Some(day) => Ok(Some(day)),
        None => syntax("closed_before", text, "a day such as 2025-01-01"),
    }
}

/// Dates are compared under a lock of the ledger, in the transaction that takes the number. Redis
/// has no such lock over the counters of several periods.
fn check_chronology(definition: &SeriesDefinition) -> Result<(), TemplateError> {
    if definition.chronology && definition.policy != Policy::Gapless {
        return at("chronology", FieldFlaw::NeedsGapless);
    }
    Ok(())
}

/// How far dates may be from the present.
fn check_dates(definition: &SeriesDefinition) -> Result<(), TemplateError> {
    if definition.document_date.is_some() && definition.dates.is_some() {
        return at("dates", FieldFlaw::Contradiction { other: "document_date" });
    }
    let PlausibleDates { years_back, years_ahead } = definition.dates.unwrap_or_default();
    for (field, years) in [("years_back", years_back), ("years_ahead", years_ahead)] {
        if years > YEARS_MAX {
            let (value, most) = (u64::from(years), u64::from(YEARS_MAX));
            return at(&format!("dates.{field}"), FieldFlaw::Bounds { value, least: 0, most });
        }
    }
    Ok(())
}

/// The fiscal year: its first month is one of twelve.
fn fiscal_year(definition: &SeriesDefinition) -> Result<FiscalYear, TemplateError> {
    let month = definition.fiscal_year_start;
    match month {
        Some(month) if !(1..=12).contains(&month) => {
            let flaw = FieldFlaw::Bounds { value: month.into(), least: 1, most: 12 };
            at("fiscal_year_start", flaw)
        }
        _ => Ok(FiscalYear::starting_in(month)),
    }
}

/// The declared variables; whether the template shows them is recorded later.
fn variables(definition: &SeriesDefinition) -> Result<Vec<Variable>, TemplateError> {
    check_count("variables", definition.variables.len(), VARIABLES_MAX, "entries")?;
    let compile = |(name, declared): (&String, &VariableDefinition)| {
        let path = format!("variables.{}", excerpt(name));
        if let Some(flaw) = flaw_of_variable_name(name) {
            return at(&path, flaw);
        }
        if let Some(label) = &declared.label {
            check_text(&format!("{path}.label"), label, DISPLAY_CHARS_MAX)?;
        }
        let rule = ValueRule::compile(&path, declared)?;
        if declared.required && declared.default.is_some() {
            let flaw = FieldFlaw::Contradiction { other: "default" };
            return at(&format!("{path}.required"), flaw);
        }
        let VariableDefinition { required, default, reference, .. } = declared.clone();
        let (name, values) = (name.clone(), None);
        Ok(Variable { name, rule, values, required, default, reference, shown: false })
    };
    definition.variables.iter().map(compile).collect()
}

/// Capital letters of any script, because sources name variables in Chinese too; lower case is
/// reserved for `project`, `type` and the periods, so that no counter key can be read in two ways.
pub(super) fn flaw_of_variable_name(name: &str) -> Option<FieldFlaw> {
    let letter = |c: char| c.is_alphabetic() && !c.is_lowercase();
    let mark = unicode_normalization::char::is_combining_mark;
    let fits = name.chars().next().is_some_and(|first| letter(first) && !mark(first))
        && name.chars().all(|c| letter(c) || c.is_ascii_digit() || c == '_' || mark(c))
        && name.chars().count() <= NAME_CHARS_MAX
        && normalise(name) == name;
    if !fits {
        let expected = "a name of up to 32 capital letters, digits and `_`";
        return Some(FieldFlaw::Syntax { value: excerpt(name), expected });
    }
    match retired(name) {
        Some(remedy) => Some(FieldFlaw::Retired { remedy }),
        None => is_reserved(name).then_some(FieldFlaw::Reserved),
    }
}

/// Names and count of the serials; their numbers need the template and come last.
fn check_serial_names(definition: &SeriesDefinition) -> Result<(), TemplateError> {
    check_count("serials", definition.serials.len(), SERIALS_MAX, "entries")?;
    let mut seen = BTreeSet::new();
    for (index, SerialDefinition { name, .. }) in definition.serials.iter().enumerate() {
        let path = format!("serials[{index}].name");
        check_chars(&path, name, NAME_CHARS_MAX)?;
        let begins = name.starts_with(|first: char| first.is_ascii_alphabetic());
        if !begins || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return syntax(&path, name, "a letter A-Z a-z, then letters, digits and `_`");
        }
        if name == HIDDEN_SERIALS[0] {
            return at(&path, FieldFlaw::Reserved);
        }
        if !seen.insert(name) {
            return at(&path, FieldFlaw::Repeated { value: name.clone() });
        }
    }
    Ok(())
}

/// Defaults must be values that a caller could give; checked late, because tokens narrow widths.
fn check_defaults(variables: &mut [Variable]) -> Result<(), TemplateError> {
    for variable in variables {
        let Some(default) = &mut variable.default else { continue };
        let field = format!("variables.{}.default", variable.name);
        if default.is_empty() {
            return at(&field, FieldFlaw::Empty { what: "character" });
        }
        let declared = |normal: String| {
            let check = |values: &DeclaredValues| values.check("default", &normal, Told::InFull);
            variable.values.as_ref().map_or(Ok(()), check).map(|()| normal)
        };
        match variable.rule.check("default", default).and_then(declared) {
            Ok(normal) => *default = normal,
            Err(reason) => {
                return at(&field, FieldFlaw::Refused { reason: Box::new(reason) });
            }
        }
    }
    Ok(())
}

/// Refuses a template whose shortest number is already too long; `draft` judges the rest.
fn check_least_length(parts: &[Part], variables: &[Variable]) -> Result<(), TemplateError> {
    let least = |part: &Part| match part {
        Part::Literal(text) => text.chars().count(),
        Part::Serial { format, .. } => format.width,
        Part::Check(check) => check.width(),
        Part::Variable(index) => variables[*index].rule.widths().0,
        Part::Project | Part::Phase | Part::Type(_) => 1,
        Part::Date(field) => field.width(),
        Part::Snowflake => SNOWFLAKE_DIGITS,
    };
    let chars = parts.iter().map(least).sum();
    if chars > TEXT_CHARS_MAX {
        return at("template", FieldFlaw::TextTooLong { chars });
    }
    Ok(())
}

/// Resolves the dimensions of a counter key or scope, in the order in which they are listed.
fn dimensions(
    field: &str,
    names: &[String],
    variables: &[Variable],
) -> Result<Vec<Dimension>, TemplateError> {
    let mut dimensions = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let field = format!("{field}[{index}]");
        let dimension = match name.as_str() {
            "project" => Dimension::Project,
            "type" => Dimension::Type,
            REVISION => return at(&field, FieldFlaw::Revision),
            _ => match variables.iter().position(|variable| variable.name == *name) {
                Some(variable) => Dimension::Variable(variable),
                None => {
                    let names = variables.iter().map(|variable| variable.name.as_str());
                    let names = names.filter(|name| *name != REVISION);
                    let known: Vec<&str> = ["project", "type"].into_iter().chain(names).collect();
                    let (dimension, known) = (excerpt(name), known.join(", "));
                    return at(&field, FieldFlaw::UnknownDimension { dimension, known });
                }
            },
        };
        if dimensions.contains(&dimension) {
            return at(&field, FieldFlaw::Repeated { value: name.clone() });
        }
        dimensions.push(dimension);
    }
    Ok(dimensions)
}

/// Start, step and the largest value, which the width of the serial's token bounds.
fn serial(
    path: &str,
    index: usize,
    declared: &SerialDefinition,
    parts: &[Part],
) -> Result<Serial, TemplateError> {
    let SerialDefinition { name, start, step, .. } = declared;
    let format = parts.iter().find_map(|part| match part {
        Part::Serial { serial, format } if *serial == index => Some(*format),
        _ => None,
    });
    let held = match format {
        Some(format) => format.value_max(),
        None if HIDDEN_SERIALS.contains(&&**name) => NUMBER_MAX,
        None => {
            let is_default = *name == SERIAL_DEFAULT;
            let token = if is_default { "{SEQ:4}".into() } else { format!("{{SEQ:4:{name}}}") };
            return at(path, FieldFlaw::SerialNotShown { name: name.clone(), token });
        }
    };
    let max = declared.max.unwrap_or(held).min(held);
    // Value 0 means "nothing taken yet" elsewhere, so no serial starts there.
    for (field, value, most) in [
        ("max", declared.max.unwrap_or(1), NUMBER_MAX),
        ("start", *start, max),
        ("step", *step, NUMBER_MAX),
    ] {
        if !(1..=most).contains(&value) {
            let flaw = FieldFlaw::Bounds { value, least: 1, most };
            return at(&format!("{path}.{field}"), flaw);
        }
    }
    Ok(Serial { name: name.clone(), start: *start, step: *step, max })
}
