//! From JSON to an expression. Judges the shape alone: `define.rs` judges what a value means.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::error::excerpt;
use super::super::text::{is_printable, normalise};
use super::super::{Notation, SERIES_FORMS, TEXT_CHARS_MAX, VariableDefinition, read_written};
use super::{
    ELEMENTS_MAX, EXPRESSION_BYTES_MAX, Element, ElementFlaw, Expression, ExpressionError, Key,
};

/// Longest label, in characters.
const LABEL_CHARS_MAX: usize = 64;

/// A flaw of one element, as the result of any check.
pub(super) fn at<T>(index: usize, field: &str, flaw: ElementFlaw) -> Result<T, ExpressionError> {
    Err(ExpressionError::Element { index, field: excerpt(field), flaw })
}

/// The expression of a text: an array of elements, or an object that has one.
pub(super) fn expression(json: &str) -> Result<Expression, ExpressionError> {
    if json.len() > EXPRESSION_BYTES_MAX {
        return Err(ExpressionError::TooLarge { bytes: json.len() });
    }
    let document: Value = serde_json::from_str(json).map_err(|error| {
        // The place is in fields of its own.
        let reason = error.to_string();
        let reason = reason.split(" at line ").next().unwrap_or_default().to_owned();
        ExpressionError::Json { line: error.line(), column: error.column(), reason }
    })?;
    let Value::Object(mut fields) = document else {
        let (hidden_dimensions, variables) = Default::default();
        return Ok(Expression { elements: elements(document)?, hidden_dimensions, variables });
    };
    let elements = elements(fields.remove("elements").ok_or(ExpressionError::Shape)?)?;
    let Beside { hidden_dimensions, variables } =
        read_written(&Value::Object(fields)).map_err(|misfit| ExpressionError::Beside {
            reason: misfit.say(SERIES_FORMS, Notation::Json),
        })?;
    Ok(Expression { elements, hidden_dimensions, variables })
}

/// The fields next to the elements.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Beside {
    #[serde(default)]
    hidden_dimensions: Vec<String>,
    #[serde(default)]
    variables: BTreeMap<String, VariableDefinition>,
}

/// The elements of an array.
fn elements(array: Value) -> Result<Vec<Element>, ExpressionError> {
    match array {
        Value::Array(items) if (1..=ELEMENTS_MAX).contains(&items.len()) => {
            items.into_iter().enumerate().map(|(index, item)| element(index, item)).collect()
        }
        _ => Err(ExpressionError::Shape),
    }
}

/// One element.
fn element(index: usize, item: Value) -> Result<Element, ExpressionError> {
    let Value::Object(mut fields) = item else { return Err(ExpressionError::Shape) };
    let key = text(index, &mut fields, "key", TEXT_CHARS_MAX)?;
    let Some(key) = Key::named(&key) else {
        return at(index, "key", ElementFlaw::UnknownKey { found: excerpt(&key) });
    };
    let value = text(index, &mut fields, "value", TEXT_CHARS_MAX)?;
    let label = match fields.contains_key("label") {
        true => label(index, &mut fields)?,
        false => String::new(),
    };
    if let Some(unknown) = fields.keys().next() {
        return at(index, unknown, ElementFlaw::UnknownField);
    }
    let label = if label.is_empty() { key.label().into() } else { label };
    Ok(Element { key, label, value })
}

/// A label: any printable text, without blanks at its ends.
fn label(index: usize, fields: &mut Map<String, Value>) -> Result<String, ExpressionError> {
    if fields.get("label").is_some_and(|label| label.as_str() == Some("")) {
        fields.remove("label");
        return Ok(String::new());
    }
    let label = text(index, fields, "label", LABEL_CHARS_MAX)?;
    if let Some((place, character)) = label.chars().enumerate().find(|(_, c)| !is_printable(*c)) {
        return at(index, "label", ElementFlaw::Character { position: place + 1, character });
    }
    Ok(label.trim().into())
}

/// Takes a text from the fields, in normal form C.
fn text(
    index: usize,
    fields: &mut Map<String, Value>,
    field: &str,
    chars_max: usize,
) -> Result<String, ExpressionError> {
    let text = match fields.remove(field) {
        None => return at(index, field, ElementFlaw::Missing),
        Some(Value::String(text)) if text.is_empty() => {
            return at(index, field, ElementFlaw::Missing);
        }
        Some(Value::String(text)) => normalise(&text).into_owned(),
        Some(_) => return at(index, field, ElementFlaw::NotText),
    };
    let chars = text.chars().count();
    if chars > chars_max {
        return at(index, field, ElementFlaw::TooLong { chars, chars_max });
    }
    Ok(text)
}
