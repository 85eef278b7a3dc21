//! Rule expressions: the second notation for what a series' numbers look like.
//!
//! A rule expression is a JSON array of elements, each a constant, a part of the date, a variable
//! or a serial; or an object of these `elements` and what they do not show. It is only another way
//! to a definition and back: nothing here renders a number, names a counter or takes a value.

mod define;
mod describe;
mod error;
mod period;
mod read;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;

pub use error::{ElementFlaw, ExpressionError, Inexpressible};
#[cfg(test)]
pub(super) use read::Beside;

use super::{Series, SeriesDefinition, VariableDefinition};

/// Longest rule expression, in bytes.
pub const EXPRESSION_BYTES_MAX: usize = 64 * 1024;

/// Most elements of a rule expression.
const ELEMENTS_MAX: usize = 64;

/// A rule expression: the elements of a number, from left to right.
///
/// It counts by everything that it shows except the serials: each variable, and the finest period
/// that its time elements name. So a change of any part except the serial begins a new counter. It
/// may also count by dimensions that it does not show, and narrow its variables: then it is written
/// as an object, `{"elements": […], "hidden_dimensions": […], "variables": {…}}`.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    elements: Vec<Element>,
    /// What it counts by without showing it, after all that it shows: variables, `project`, `type`.
    hidden_dimensions: Vec<String>,
    /// What its elements do not say of variables.
    variables: BTreeMap<String, VariableDefinition>,
}

/// An expression that says more than its elements.
#[derive(Serialize)]
struct Whole<'e> {
    elements: &'e [Element],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    hidden_dimensions: &'e [String],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    variables: &'e BTreeMap<String, VariableDefinition>,
}

impl Serialize for Expression {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Expression { elements, hidden_dimensions, variables } = self;
        if hidden_dimensions.is_empty() && variables.is_empty() {
            return elements.serialize(serializer);
        }
        Whole { elements, hidden_dimensions, variables }.serialize(serializer)
    }
}

/// One element, with the fields of its JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Element {
    key: Key,
    label: String,
    value: String,
}

/// What an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Key {
    /// Text that every number shows.
    Const,
    /// A date pattern.
    Time,
    /// The name of a variable.
    Variable,
    /// Start and digits of a serial: `1(6)`.
    Serial,
}

impl Element {
    /// An element with the label of its kind.
    fn new(key: Key, value: impl Into<String>) -> Self {
        Element { key, label: key.label().into(), value: value.into() }
    }
}

impl Key {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "const" => Key::Const,
            "time" => Key::Time,
            "variable" => Key::Variable,
            "serial" => Key::Serial,
            _ => return None,
        })
    }

    /// The default label of elements of this kind.
    fn label(self) -> &'static str {
        match self {
            Key::Const => "常量",
            Key::Time => "时间",
            Key::Variable => "变量",
            Key::Serial => "流水号",
        }
    }
}

impl Expression {
    /// Reads a rule expression.
    ///
    /// # Errors
    /// [`ExpressionError`] names the element, the field and the remedy. What an element's value
    /// means is judged by [`Self::define`].
    pub fn parse(json: &str) -> Result<Self, ExpressionError> {
        read::expression(json)
    }

    /// The definition that the expression represents. `head` supplies everything that an expression
    /// does not say (code, types, time zone); its template, variables and serials are replaced.
    ///
    /// A variable is named in capital letters; its name for people stays as its `label`. Serials
    /// are named `SEQ`, `SEQ2`, `SEQ3` and so on.
    ///
    /// # Errors
    /// [`ExpressionError`] names the element, the field and the remedy.
    pub fn define(&self, mut head: SeriesDefinition) -> Result<SeriesDefinition, ExpressionError> {
        head.variables.clear();
        let said = self.narrow(head)?;
        Series::compile(said.clone()).map_err(ExpressionError::Series)?;
        Ok(said)
    }

    /// The definition that the expression represents, as [`Self::define`] makes it. The variables
    /// that `head` declares narrow those of the expression: these alone would take any value.
    ///
    /// # Errors
    /// [`ExpressionError`] names the element, the field and the remedy. What the variables and the
    /// hidden dimensions say is judged by `Series::compile`.
    pub fn narrow(&self, mut head: SeriesDefinition) -> Result<SeriesDefinition, ExpressionError> {
        let beside = std::mem::take(&mut head.variables);
        let mut said = define::define(&self.elements, head)?;
        for (name, mut declared) in self.variables.clone().into_iter().chain(beside) {
            let of_expression = said.variables.get(&name);
            let label = of_expression.and_then(|variable| variable.label.clone());
            declared.label = declared.label.or(label);
            declared.required |= of_expression.is_some() && declared.default.is_none();
            said.variables.insert(name, declared);
        }
        for serial in &mut said.serials {
            serial.counter.extend_from_slice(&self.hidden_dimensions);
        }
        Ok(said)
    }

    /// The expression of a series: [`Self::define`] makes of it a series with the same numbers and
    /// the same counters.
    ///
    /// # Errors
    /// [`Inexpressible`] names what no expression can hold.
    pub fn of(series: &Series) -> Result<Self, Inexpressible> {
        describe::describe(series)
    }
}
