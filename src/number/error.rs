//! What can be wrong with a series, a request or a number. Each names the field and the remedy.

use thiserror::Error;

/// A series definition that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// Placeholder.
    #[error("invalid")]
    Invalid,
}

/// A request that a series refuses. Nothing was taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InputError {
    /// The value does not fit the width of its `{SEQ:n}` (slug `sequence-exhausted`).
    #[error("serial {serial} of value {value} does not fit {width} digits")]
    SerialTooWide {
        /// Index of the serial.
        serial: usize,
        /// The value.
        value: u64,
        /// The width.
        width: usize,
    },
}

impl InputError {
    /// The stable problem slug of DESIGN section 5 (`unknown-variable`, `missing-variable`, …).
    #[must_use]
    pub fn slug(&self) -> &'static str {
        todo!()
    }

    /// The field of the request that is at fault, as a JSON path (`context.REV`, `date`, `project`).
    #[must_use]
    pub fn field(&self) -> String {
        todo!()
    }
}

/// A text that is not a number of the series.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseError {
    /// Placeholder.
    #[error("invalid")]
    Invalid,
}
