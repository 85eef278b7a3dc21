//! What can be wrong with a rule expression, or prevent a series from having one. Each error names
//! the element or field, and the remedy.

use thiserror::Error;

use super::super::template_error::{FieldFlaw, TokenFlaw};
use super::super::{NUMBER_MAX, TemplateError};
use super::{ELEMENTS_MAX, EXPRESSION_BYTES_MAX};

/// A rule expression that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ExpressionError {
    /// Larger than any sensible expression.
    #[error("the expression has {bytes} bytes, at most {EXPRESSION_BYTES_MAX} are read")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// Not JSON.
    #[error("line {line}, column {column}: no JSON: {reason}")]
    Json {
        /// Line, counted from 1.
        line: usize,
        /// Column in bytes, counted from 1.
        column: usize,
        /// What is wrong.
        reason: String,
    },
    /// JSON of another shape.
    #[error(
        "write an array of 1 to {ELEMENTS_MAX} elements such as \
         {{\"key\": \"const\", \"label\": \"常量\", \"value\": \"HT\"}}, or \
         an object that has it as `elements`"
    )]
    Shape,
    /// An object whose other fields are not those of an expression.
    #[error("beside `elements`: {reason}")]
    Beside {
        /// What is wrong.
        reason: String,
    },
    /// No element is a serial.
    #[error("no element is a serial; add {{\"key\": \"serial\", \"value\": \"1(6)\"}}")]
    NoSerial,
    /// A flaw of one element.
    #[error("[{index}].{field}: {flaw}")]
    Element {
        /// Its place in the array, counted from 0.
        index: usize,
        /// Its field: `key`, `label`, `value`, or an unknown one.
        field: String,
        /// What is wrong and the remedy.
        flaw: ElementFlaw,
    },
    /// Sound elements that together, or with the fields sent with them, do not make a series.
    #[error("the series of the expression: {0}")]
    Series(TemplateError),
}

impl ExpressionError {
    /// Path of what is at fault within the definition that holds the expression.
    #[must_use]
    pub fn path(&self) -> String {
        match self {
            ExpressionError::Element { index, field, .. } => format!("expression[{index}].{field}"),
            // The template is what the elements made of it; every other field was sent.
            ExpressionError::Series(error) if error.field() != "template" => error.field().into(),
            _ => "expression".into(),
        }
    }
}

/// What is wrong with an element, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ElementFlaw {
    /// A required field is missing.
    #[error("is missing or empty; an element has key, label and value")]
    Missing,
    /// A field that elements do not have.
    #[error("unknown field; an element has key, label and value")]
    UnknownField,
    /// A field of another type.
    #[error("is no text; write it in quotes")]
    NotText,
    /// An unknown kind of element.
    #[error("{found:?} is no kind of element; write const, time, variable or serial")]
    UnknownKey {
        /// What was written, shortened.
        found: String,
    },
    /// Longer than any number or label.
    #[error("has {chars} characters, at most {chars_max} are allowed")]
    TooLong {
        /// Its length.
        chars: usize,
        /// The bound.
        chars_max: usize,
    },
    /// A character that no number holds.
    #[error(
        "character {position}, {character:?}: a number holds printable text only; remove the \
         character"
    )]
    Character {
        /// Which character, counted from 1.
        position: usize,
        /// The character.
        character: char,
    },
    /// A brace in a date pattern.
    #[error("a date pattern holds no braces; put them into a const element")]
    Braces,
    /// A date pattern that is not one, or that misleads.
    #[error("{0}")]
    Time(TokenFlaw),
    /// Date parts that name no period, or one that counters do not have.
    #[error("counters would not begin anew as the text does: {reason}")]
    Period {
        /// Why, and what to write.
        reason: &'static str,
    },
    /// A name that variables cannot have.
    #[error("{0}")]
    Name(FieldFlaw),
    /// Two names that differ only in their capital letters.
    #[error("{name} is the variable of element [{other}], which spells it differently")]
    NameTaken {
        /// The name in capital letters.
        name: String,
        /// The other element.
        other: usize,
    },
    /// A serial that is not written as start and digits.
    #[error(
        "{found:?} is no serial; write start and digits such as 1(6): 1 to 15 digits, a start \
         that fits them"
    )]
    Serial {
        /// What was written, shortened.
        found: String,
    },
    /// More serials than a number takes at once.
    #[error("a number has at most {most} serials; remove one")]
    TooManySerials {
        /// The bound.
        most: usize,
    },
}

/// A series that no rule expression can represent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field}: a rule expression cannot hold {what}")]
pub struct Inexpressible {
    /// Path of the field of the definition.
    pub field: String,
    /// What it cannot hold.
    pub what: String,
}

// A start of fifteen digits is below the largest value.
const _: () = assert!(999_999_999_999_999 < NUMBER_MAX);
