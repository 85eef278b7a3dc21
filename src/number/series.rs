//! A compiled series: checked once, shared, then only read.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Draft, InputError, Inputs, ParseError, SeriesDefinition, TemplateError};

/// A compiled series.
#[derive(Debug)]
pub struct Series {}

/// One serial of a compiled series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serial {
    /// Its name.
    pub name: String,
    /// First value.
    pub start: u64,
    /// Distance between values.
    pub step: u64,
    /// Largest value that may be issued: the smallest of the declared maximum, what its width
    /// holds, and `NUMBER_MAX`.
    pub max: u64,
}

/// The parts of a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// Variables shown in the number, by name (`PROJECT` and the type included).
    pub variables: BTreeMap<String, String>,
    /// Date parts shown, as far as they go: `2025`, `2025-12` or `2025-12-02`.
    pub date: Option<String>,
    /// The serials, in the order of `Series::serials`.
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
    pub fn compile(_definition: SeriesDefinition) -> Result<Self, TemplateError> {
        todo!()
    }

    /// The definition it was compiled from.
    #[must_use]
    pub fn definition(&self) -> &SeriesDefinition {
        todo!()
    }

    /// The serials in the order of the definition.
    #[must_use]
    pub fn serials(&self) -> &[Serial] {
        todo!()
    }

    /// Checks a request and fills in all but the values. Takes nothing.
    ///
    /// # Errors
    /// [`InputError`] for anything the series refuses.
    pub fn draft(&self, _inputs: &Inputs, _now: Timestamp) -> Result<Draft, InputError> {
        todo!()
    }

    /// Reads a number back into its parts (R2.8).
    ///
    /// # Errors
    /// [`ParseError`] says where the text departs from the template.
    pub fn parse(&self, _number: &str) -> Result<Parsed, ParseError> {
        todo!()
    }
}
