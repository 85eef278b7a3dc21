//! Rule expressions: the second notation for what a series' numbers look like (R2.2).
//!
//! A rule expression is a JSON array of elements, each a constant, a part of the date, a variable
//! or a serial. It is only another way to a definition and back: nothing here renders a number,
//! names a counter or takes a value.

mod define;
mod describe;
mod error;
mod period;
mod read;
#[cfg(test)]
mod tests;

use serde::Serialize;

pub use error::{ElementFlaw, ExpressionError, Inexpressible};

use super::{Series, SeriesDefinition};

/// Longest rule expression, in bytes.
pub const EXPRESSION_BYTES_MAX: usize = 64 * 1024;

/// Most elements of a rule expression.
const ELEMENTS_MAX: usize = 64;

/// A rule expression: the elements of a number, from left to right.
///
/// It counts by everything that it shows but the serials: each variable, and the finest period that
/// its time elements name. So a change of any part but the serial begins a new counter (R3.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Expression {
    elements: Vec<Element>,
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

    /// The label that elements of this kind have where nobody chose another.
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
        Ok(Expression { elements: read::elements(json)? })
    }

    /// The definition that the expression stands for. `head` brings everything that an expression
    /// does not say (code, types, time zone); its template, variables and serials are replaced.
    ///
    /// A variable is named in capital letters; what people call it stays as its `label`. Serials
    /// are named `SEQ`, `SEQ2`, `SEQ3` and so on.
    ///
    /// # Errors
    /// [`ExpressionError`] names the element, the field and the remedy.
    pub fn define(&self, head: SeriesDefinition) -> Result<SeriesDefinition, ExpressionError> {
        define::define(&self.elements, head)
    }

    /// The definition that the expression stands for, as [`Self::define`] makes it. The variables
    /// that `head` declares narrow those of the expression: these alone would take any value.
    ///
    /// # Errors
    /// [`ExpressionError`] names the element, the field and the remedy. What the variables of
    /// `head` say is judged by `Series::compile`.
    pub fn narrow(&self, mut head: SeriesDefinition) -> Result<SeriesDefinition, ExpressionError> {
        let narrowed = std::mem::take(&mut head.variables);
        let mut said = self.define(head)?;
        for (name, mut declared) in narrowed {
            let of_expression = said.variables.get(&name);
            let label = of_expression.and_then(|variable| variable.label.clone());
            declared.label = declared.label.or(label);
            declared.required |= of_expression.is_some() && declared.default.is_none();
            said.variables.insert(name, declared);
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
