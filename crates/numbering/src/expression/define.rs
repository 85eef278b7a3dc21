//! From elements to a definition: the template, variables and serials that an expression
//! represents. They are compiled once alone, so that a flaw is reported for what has it.

use std::collections::BTreeMap;

use super::super::compile::flaw_of_variable_name;
use super::super::error::excerpt;
use super::super::partial_number::SERIALS_MAX;
use super::super::pattern::{DateField, PatternPiece, check_together, parse_pattern};
use super::super::revision::REVISION;
use super::super::serial_format::WIDTH_MAX;
use super::super::template_error::{FieldFlaw, Place};
use super::super::text::{flaw_of_literal, normalise};
use super::super::{SerialDefinition, Series, SeriesDefinition, Serves, VariableDefinition};
use super::period::reset_of;
use super::read::at;
use super::{Element, ElementFlaw, ExpressionError, Key};

/// The definition that the elements represent; `head` supplies what they do not express.
pub(super) fn define(
    elements: &[Element],
    head: SeriesDefinition,
) -> Result<SeriesDefinition, ExpressionError> {
    let mut rule = Rule::default();
    for (index, element) in elements.iter().enumerate() {
        match element.key {
            Key::Const => rule.constant(index, &element.value)?,
            Key::Time => rule.time(index, &element.value)?,
            Key::Variable => rule.variable(index, element)?,
            Key::Serial => rule.serial(index, &element.value)?,
        }
    }
    let definition = rule.finish(head)?;
    let SeriesDefinition { code, name, serves, template, variables, serials, .. } =
        definition.clone();
    let serves = Serves { types: serves.types, ..Serves::default() };
    // The rest of the head may name variables that are not among the elements.
    let alone =
        SeriesDefinition { code, name, serves, template, variables, serials, ..Default::default() };
    Series::compile(alone).map_err(ExpressionError::Series)?;
    Ok(definition)
}

/// What the elements so far have produced.
#[derive(Default)]
struct Rule {
    template: String,
    /// Names of the variables in the order of their first element, with that element.
    names: Vec<(String, usize)>,
    variables: BTreeMap<String, (String, VariableDefinition)>,
    /// Date fields, with their elements.
    fields: Vec<(DateField, usize)>,
    serials: Vec<SerialDefinition>,
}

impl Rule {
    /// Text that every number shows.
    fn constant(&mut self, index: usize, text: &str) -> Result<(), ExpressionError> {
        check_literal(index, text)?;
        self.template.push_str(&text.replace('{', "{{").replace('}', "}}"));
        Ok(())
    }

    /// A date pattern.
    fn time(&mut self, index: usize, pattern: &str) -> Result<(), ExpressionError> {
        if pattern.contains(['{', '}']) {
            return at(index, "value", ElementFlaw::Braces);
        }
        let pieces = match parse_pattern(pattern) {
            Ok(pieces) => pieces,
            Err(flaw) => return at(index, "value", ElementFlaw::Time(flaw)),
        };
        for piece in pieces {
            match piece {
                PatternPiece::Literal(text) => check_literal(index, &text)?,
                PatternPiece::Field(field) => self.fields.push((field, index)),
            }
        }
        self.template.push_str(&format!("{{DATE:{pattern}}}"));
        Ok(())
    }

    /// A variable: required, because its value names the counter.
    fn variable(&mut self, index: usize, element: &Element) -> Result<(), ExpressionError> {
        let spelled = &element.value;
        let name = normalise(&spelled.to_uppercase()).into_owned();
        let revision = (name == REVISION).then_some(FieldFlaw::Revision);
        if let Some(flaw) = revision.or_else(|| flaw_of_variable_name(&name)) {
            return at(index, "value", ElementFlaw::Name(flaw));
        }
        self.template.push_str(&format!("{{{name}}}"));
        if let Some((before, _)) = self.variables.get(&name) {
            if before == spelled {
                return Ok(());
            }
            let first = self.names.iter().find(|(known, _)| *known == name);
            let other = first.map_or(0, |(_, other)| *other);
            return at(index, "value", ElementFlaw::NameTaken { name, other });
        }
        let chosen = element.label != Key::Variable.label();
        let label = chosen.then(|| element.label.clone());
        let declared = VariableDefinition { required: true, label, ..Default::default() };
        self.variables.insert(name.clone(), (spelled.clone(), declared));
        self.names.push((name, index));
        Ok(())
    }

    /// A serial, `start(digits)`.
    fn serial(&mut self, index: usize, value: &str) -> Result<(), ExpressionError> {
        let Some((start, width)) = start_and_width(value) else {
            return at(index, "value", ElementFlaw::Serial { found: excerpt(value) });
        };
        let number = self.serials.len() + 1;
        if number > SERIALS_MAX {
            let flaw = ElementFlaw::TooManySerials { most: SERIALS_MAX };
            return at(index, "value", flaw);
        }
        let mut serial = SerialDefinition { start, ..SerialDefinition::default() };
        if number == 1 {
            self.template.push_str(&format!("{{SEQ:{width}}}"));
        } else {
            serial.name = format!("SEQ{number}");
            self.template.push_str(&format!("{{SEQ:{width}:{}}}", serial.name));
        }
        self.serials.push(serial);
        Ok(())
    }

    /// Judges the elements together: dates over the whole expression, then what is counted by.
    fn finish(mut self, head: SeriesDefinition) -> Result<SeriesDefinition, ExpressionError> {
        if self.serials.is_empty() {
            return Err(ExpressionError::NoSerial);
        }
        let fields: Vec<DateField> = self.fields.iter().map(|(field, _)| *field).collect();
        let element_of = |culprit: DateField| {
            let shown = self.fields.iter().find(|(field, _)| *field == culprit);
            shown.expect("the culprit is one of the fields").1
        };
        if let Err((culprit, flaw)) = check_together(&fields) {
            return at(element_of(culprit), "value", ElementFlaw::Time(flaw));
        }
        let reset = match reset_of(&fields) {
            Ok(reset) => reset,
            Err((culprit, reason)) => {
                return at(element_of(culprit), "value", ElementFlaw::Period { reason });
            }
        };
        for serial in &mut self.serials {
            serial.counter = self.names.iter().map(|(name, _)| name.clone()).collect();
            serial.reset = reset;
        }
        let variables = self.variables.into_iter().map(|(name, (_, declared))| (name, declared));
        let (template, serials) = (self.template, self.serials);
        Ok(SeriesDefinition { template, variables: variables.collect(), serials, ..head })
    }
}

/// Text that any number may hold.
fn check_literal(index: usize, text: &str) -> Result<(), ExpressionError> {
    match flaw_of_literal(text) {
        None => Ok(()),
        Some((offset, character)) => {
            let position = Place::of(text, offset).position;
            at(index, "value", ElementFlaw::Character { position, character })
        }
    }
}

/// Reads `1(6)`: decimal digits without leading zeros, the start no wider than the digits.
fn start_and_width(value: &str) -> Option<(u64, usize)> {
    let (start, width) = value.strip_suffix(')')?.split_once('(')?;
    let decimal = |text: &str| {
        let digits = text.len() <= WIDTH_MAX && text.bytes().all(|byte| byte.is_ascii_digit());
        digits && !text.is_empty() && !text.starts_with('0')
    };
    if !decimal(start) || !decimal(width) {
        return None;
    }
    let width: usize = width.parse().ok()?;
    let fits = (start.len()..=WIDTH_MAX).contains(&width);
    fits.then_some((start.parse().ok()?, width))
}
