//! A compiled series: checked once, shared, then only read. Its operations are in other files:
//! `compile.rs` makes it, `draft.rs` renders with it, `parse.rs` reads back, `origin.rs` finds
//! counters.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::definition::ID_SUFFIX;
use super::draft::{Drafted, Told};
use super::parse::ValueBounds;
use super::period::FiscalYear;
use super::served::Served;
use super::template::Part;
use super::text::normalise;
use super::value::ValueRule;
use super::values::DeclaredValues;
use super::window::Window;
use super::{
    CorrectionError, CounterKey, Draft, InputError, Inputs, Original, ParseError, ReferenceData,
    Reset, RevisedNumber, RevisionError, SeriesDefinition, Snowflake, TemplateError,
};

/// A compiled series.
#[derive(Clone, Debug)]
pub struct Series {
    pub(super) definition: SeriesDefinition,
    pub(super) serials: Vec<Serial>,
    /// Which counter each serial is taken from, in the order of `serials`.
    pub(super) counters: Vec<CounterRule>,
    /// Dimensions of the uniqueness scope.
    pub(super) scope: Vec<Dimension>,
    pub(super) parts: Vec<Part>,
    pub(super) variables: Vec<Variable>,
    /// Whether a number, a counter or the scope requires a project.
    pub(super) project_needed: bool,
    /// Whether a number or a counter requires a phase.
    pub(super) phase_needed: bool,
    /// Whether a number or a counter requires a time of day.
    pub(super) time_needed: bool,
    pub(super) fiscal: FiscalYear,
    pub(super) zone: TimeZone,
    /// The document dates that it serves.
    pub(super) window: Window,
    /// The first day that is not closed, if earlier ones are.
    pub(super) closed_before: Option<Date>,
    /// The tables that it refers to.
    pub(super) reference: Arc<ReferenceData>,
    /// What `serves` names, as requests and numbers may show it.
    pub(super) served: Served,
}

/// A declared variable.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) rule: ValueRule,
    /// The only values that new requests may bring, if they are declared.
    pub(super) values: Option<DeclaredValues>,
    pub(super) required: bool,
    pub(super) default: Option<String>,
    /// Table of the reference data that its values are codes of.
    pub(super) reference: Option<String>,
    /// Whether the template shows it: then it needs a value.
    pub(super) shown: bool,
}

/// A dimension of a counter key or of a uniqueness scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dimension {
    /// `project`.
    Project,
    /// `type`.
    Type,
    /// A declared variable, by its index.
    Variable(usize),
}

/// How the counter of a serial is named.
#[derive(Clone, Debug)]
pub(super) struct CounterRule {
    pub(super) dimensions: Vec<Dimension>,
    pub(super) reset: Reset,
}

/// One serial of a compiled series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serial {
    /// Its name.
    pub name: String,
    /// First value.
    pub start: u64,
    /// Distance between values.
    pub step: u64,
    /// Largest value that may be issued: the smallest of the declared maximum, what its width holds
    /// if it does not widen, and `NUMBER_MAX`.
    pub max: u64,
}

/// How much of its room a value takes in a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SerialWidth {
    /// Characters of the value without leading zeros, or what replaces them.
    pub used: usize,
    /// Most characters that the template gives it.
    pub max: usize,
}

/// The parts of a number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// Variables shown in the number, by name (`PROJECT`, `PHASE` and the type included, the type
    /// under the name of its token).
    pub variables: BTreeMap<String, String>,
    /// Date parts shown, as far as they go: `2025`, `2025-Q4`, `2025-12`, `2025-W49` or
    /// `2025-12-02`; `None` without a year.
    pub date: Option<String>,
    /// Time of day shown, as far as it goes: `09`, `09:30`, `09:30:15` or `09:30:15.250`.
    pub time: Option<String>,
    /// The calendar year A.D. in which the fiscal year shown ends.
    pub fiscal_year: Option<i16>,
    /// The id shown.
    pub snowflake: Option<Snowflake>,
    /// The serials shown, in the order of `Series::serials`. Start, step and maximum are not
    /// judged: an older version of the series may have had others.
    pub serials: Vec<ParsedSerial>,
}

/// A serial read from a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedSerial {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: u64,
}

impl Series {
    /// Checks a definition and compiles its template.
    ///
    /// # Errors
    /// [`TemplateError`] names the field, the token, its position and the remedy.
    pub fn compile(definition: SeriesDefinition) -> Result<Self, TemplateError> {
        let series = Self::restore(definition)?;
        super::novelty::check_new(&series)?;
        Ok(series)
    }

    /// Compiles a definition that was saved. Rules for new definitions only do not apply to it: it
    /// may have issued numbers.
    ///
    /// # Errors
    /// As [`Series::compile`]: it was saved by a version with other rules.
    pub fn restore(definition: SeriesDefinition) -> Result<Self, TemplateError> {
        super::compile::compile(definition)
    }

    /// The same series with its reference data: a snapshot, shared by all series of a moment. A
    /// compiled series has none, and one that refers to a table refuses requests until it has.
    #[must_use]
    pub fn with_reference(mut self, reference: Arc<ReferenceData>) -> Self {
        self.served = Served::of(&self.definition, &reference);
        self.reference = reference;
        self
    }

    /// The table whose ids represent a dimension in keys and scopes.
    pub(super) fn table_of(&self, dimension: Dimension) -> Option<&str> {
        match dimension {
            Dimension::Project => self.definition.references.project.as_deref(),
            Dimension::Type => self.definition.references.type_code.as_deref(),
            Dimension::Variable(index) => self.variables[index].reference.as_deref(),
        }
    }

    /// The name of a dimension in keys and scopes.
    pub(super) fn key_name(&self, dimension: Dimension) -> String {
        let name = match dimension {
            Dimension::Project => "project",
            Dimension::Type => "type",
            Dimension::Variable(index) => &self.variables[index].name,
        };
        let suffix = if self.table_of(dimension).is_some() { ID_SUFFIX } else { "" };
        format!("{name}{suffix}")
    }

    /// The text that every number begins with, and the one that it ends with.
    pub(super) fn ends(&self) -> [&str; 2] {
        [self.parts.first(), self.parts.last()].map(|part| match part {
            Some(Part::Literal(text)) => text.as_str(),
            _ => "",
        })
    }

    /// The definition it was compiled from.
    #[must_use]
    pub fn definition(&self) -> &SeriesDefinition {
        &self.definition
    }

    /// The serials in the order of the definition; if it declares none, the one that counts ids.
    #[must_use]
    pub fn serials(&self) -> &[Serial] {
        &self.serials
    }

    /// How wide a value of a serial is, and may be; `None` if the template does not show the
    /// serial.
    #[must_use]
    pub fn width_of(&self, serial: &str, value: u64) -> Option<SerialWidth> {
        let wanted = self.serials.iter().position(|one| one.name == serial)?;
        let format = self.parts.iter().find_map(|part| match part {
            Part::Serial { serial, format } if *serial == wanted => Some(format),
            _ => None,
        })?;
        Some(SerialWidth { used: format.chars_used(value), max: format.width_max() })
    }

    /// Whether the counter of a key takes no document of a time or later: its period is over.
    #[must_use]
    pub fn is_over(&self, serial: &str, key: &str, now: Timestamp) -> bool {
        let place = self.serials.iter().position(|one| one.name == serial);
        let reset = place.and_then(|place| self.counters.get(place)).map(|rule| rule.reset);
        let at = self.zone.to_datetime(now);
        let Some((name, current)) = reset.and_then(|reset| reset.period(at, self.fiscal)) else {
            return false;
        };
        let parts = CounterKey::parts(key).unwrap_or_default();
        parts.iter().any(|(part, value)| part == name && **value < *current)
    }

    /// Whether its template shows the value of a serial.
    #[must_use]
    pub fn shows_serial(&self, wanted: usize) -> bool {
        let is_it = |part: &Part| matches!(part, Part::Serial { serial, .. } if *serial == wanted);
        self.parts.iter().any(is_it)
    }

    /// Whether a number that was requested like this may have a scope: its dimensions in their
    /// order, with what the request says of each. Ids of reference data, and what a request leaves
    /// open, are not judged.
    #[must_use]
    pub fn may_have_scope(
        &self,
        scope: &str,
        (type_code, project): (&str, Option<&str>),
        context: &BTreeMap<String, String>,
    ) -> bool {
        let Some(parts) = CounterKey::parts(scope) else { return false };
        let is_right = |(dimension, (name, value)): (&Dimension, &(Cow<'_, str>, Cow<'_, str>))| {
            let said = match *dimension {
                Dimension::Type => Some(type_code),
                Dimension::Project => project,
                Dimension::Variable(index) => {
                    context.get(&self.variables[index].name).map(String::as_str)
                }
            };
            let is_open = said.is_none() || self.table_of(*dimension).is_some();
            *name == self.key_name(*dimension)
                && (is_open || said.is_some_and(|said| normalise(said) == *value))
        };
        parts.len() == self.scope.len() && self.scope.iter().zip(&parts).all(is_right)
    }

    /// Checks a request and fills in everything except the values. Takes nothing.
    ///
    /// A draft that passes can be rendered with every value up to the serials' `max`: nothing fails
    /// after the take (F24).
    ///
    /// # Errors
    /// [`InputError`] for anything the series refuses.
    pub fn draft(&self, inputs: &Inputs, now: Timestamp) -> Result<Draft, InputError> {
        self.draft_telling(inputs, now, Told::InFull)
    }

    /// The same, with a refusal of this detail.
    ///
    /// # Errors
    /// [`InputError`] for anything the series refuses.
    pub fn draft_telling(
        &self,
        inputs: &Inputs,
        now: Timestamp,
        told: Told,
    ) -> Result<Draft, InputError> {
        super::draft::draft(self, inputs, now, (Drafted::Asked, told))
    }

    /// The same with the value that the source of the series gave: the request must be the one that
    /// was drafted before, at the same moment.
    ///
    /// # Errors
    /// [`InputError`] for a value that the series refuses.
    pub fn draft_answered(
        &self,
        inputs: &Inputs,
        value: &str,
        now: Timestamp,
    ) -> Result<Draft, InputError> {
        let mut inputs = inputs.clone();
        if let Some(sourced) = self.sourced() {
            inputs.context.insert(sourced.variable.to_owned(), value.to_owned());
        }
        super::draft::draft(self, &inputs, now, (Drafted::Answered, Told::InFull))
    }

    /// The same for a number that was issued elsewhere: its date may be one that new requests can
    /// no longer have, within 100 years back and 10 ahead.
    ///
    /// # Errors
    /// [`InputError`] for anything else the series refuses.
    pub fn draft_issued(&self, inputs: &Inputs, now: Timestamp) -> Result<Draft, InputError> {
        super::draft::draft(self, inputs, now, (Drafted::Issued, Told::InFull))
    }

    /// Reads a number back into its parts, whatever value its serials show.
    ///
    /// # Errors
    /// [`ParseError`] says where the text departs from the template.
    pub fn parse(&self, number: &str) -> Result<Parsed, ParseError> {
        super::parse::parse(self, number, ValueBounds::Any)
    }

    /// The same for a number that this version can have issued: none of its serials shows a value
    /// below its start or above its largest.
    ///
    /// # Errors
    /// [`ParseError`] says where the text departs from the template, or which serial never has the
    /// value.
    pub fn read(&self, number: &str) -> Result<Parsed, ParseError> {
        super::parse::parse(self, number, ValueBounds::Own)
    }

    /// Renders an issued number with another label. Takes nothing.
    ///
    /// # Errors
    /// [`RevisionError`] says what is wrong with the label, or why the number has no revisions.
    pub fn revise(
        &self,
        original: &Original<'_>,
        rev: &str,
    ) -> Result<RevisedNumber, RevisionError> {
        super::revision::revise(self, original, rev)
    }

    /// Checks what variables of an issued number should have been: values in codes and in normal
    /// form, of variables on which nothing of the number depends. Rows of projects beyond
    /// `projects_within` are treated as absent. Takes nothing.
    ///
    /// # Errors
    /// [`CorrectionError`] says which variable the number depends on, or what is wrong with a
    /// value.
    pub fn correct(
        &self,
        values: &BTreeMap<String, String>,
        projects_within: Option<Arc<[String]>>,
    ) -> Result<BTreeMap<String, String>, CorrectionError> {
        super::correction::correct(self, values, projects_within)
    }

    /// Document types that a number may be of: the one that it shows, or all that the series
    /// serves.
    #[must_use]
    pub fn types_of(&self, parsed: &Parsed) -> Vec<String> {
        super::origin::types(self, parsed)
    }

    /// Counters that the first serial of a number may have come from, at most 64. Candidates: a
    /// number need not show everything that its counter counts by. Empty where it shows too little.
    #[must_use]
    pub fn origins(&self, parsed: &Parsed) -> Vec<CounterKey> {
        super::origin::origins(self, parsed)
    }

    /// Whether its first serial's counter is among the [origins](Series::origins) of a number for
    /// certain: the number, or the series, names all that it counts by.
    #[must_use]
    pub fn tells_origin(&self, parsed: &Parsed) -> bool {
        super::origin::is_told(self, parsed)
    }

    /// What a number shows of the key of its first serial's counter: names and values. The rest of
    /// the key may be anything.
    #[must_use]
    pub fn shown_of_origin(&self, parsed: &Parsed) -> Vec<(String, String)> {
        super::origin::shown(self, parsed)
    }
}

impl AsRef<Series> for Series {
    fn as_ref(&self) -> &Series {
        self
    }
}
