//! What can be wrong with a series, a request or a number. Each names the field and the remedy.
//!
//! Text of a caller is never quoted beyond [`EXCERPT_CHARS_MAX`] characters, so that an error stays
//! small whatever was sent.

use std::fmt;

use thiserror::Error;

use super::TEXT_CHARS_MAX;

/// How much of a caller's text an error quotes, in characters.
const EXCERPT_CHARS_MAX: usize = 40;

/// The beginning of a text, for an error message.
pub(super) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A place in a template or mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Bytes before it.
    pub offset: usize,
    /// Its character, counted from 1.
    pub position: usize,
}

impl Place {
    /// The place `offset` bytes into `text`; `offset` lies on a character's border.
    pub(super) fn of(text: &str, offset: usize) -> Self {
        Place { offset, position: text[..offset].chars().count() + 1 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "character {}", self.position)
    }
}

/// A series definition that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// A token or literal of the template.
    #[error("template, {at}, `{token}`: {flaw}")]
    Token {
        /// The token as written, or the literal's character.
        token: String,
        /// Where it begins.
        at: Place,
        /// What is wrong and the remedy.
        flaw: TokenFlaw,
    },
    /// A field of the definition.
    #[error("{field}: {flaw}")]
    Field {
        /// Path of the field, such as `serials[0].step`.
        field: String,
        /// What is wrong and the remedy.
        flaw: FieldFlaw,
    },
    /// The text form of a mask.
    #[error("mask, {at}: {reason}")]
    Mask {
        /// Where reading stopped.
        at: Place,
        /// What was expected there.
        reason: &'static str,
    },
}

impl TemplateError {
    /// Path of the field at fault within the definition; `template` for tokens.
    #[must_use]
    pub fn field(&self) -> &str {
        match self {
            TemplateError::Token { .. } => "template",
            TemplateError::Field { field, .. } => field,
            TemplateError::Mask { .. } => "mask",
        }
    }

    /// A flaw of a field.
    pub(super) fn at_field(field: impl Into<String>, flaw: FieldFlaw) -> Self {
        TemplateError::Field { field: field.into(), flaw }
    }
}

/// What is wrong with a token of a template, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TokenFlaw {
    /// `{` without its `}`.
    #[error("the token is not closed; write `}}` after it, or `{{{{` for a brace")]
    Unclosed,
    /// A brace inside a token.
    #[error("a token holds no `{{`; close it with `}}` first")]
    Nested,
    /// `}` without its `{`.
    #[error("no token is open here; write `}}}}` for a brace")]
    Stray,
    /// Neither built in nor declared.
    #[error("unknown token; this series has {known}; another name needs [series.variables.NAME]")]
    Unknown {
        /// The tokens that the series could use.
        known: String,
    },
    /// A token that S2 has withdrawn (R2.1).
    #[error("deprecated token; {remedy}")]
    Retired {
        /// What to write instead.
        remedy: &'static str,
    },
    /// Arguments that the token does not take.
    #[error("wrong arguments; write {expected}")]
    Arguments {
        /// The accepted forms.
        expected: &'static str,
    },
    /// A date pattern that is not one, or that says something else than it seems to.
    #[error("`{letters}` in the date pattern: {remedy}")]
    DatePattern {
        /// The letters at fault.
        letters: String,
        /// What is wrong and what to write.
        remedy: &'static str,
    },
    /// `{PREFIX}` in a series without one.
    #[error("the series has no prefix; set `prefix`")]
    NoPrefix,
    /// No `[[series.serials]]` of that name.
    #[error("no serial is named {name:?}; declare it under [[series.serials]]")]
    SerialUndeclared {
        /// The name.
        name: String,
    },
    /// A serial that is shown twice.
    #[error("serial {name:?} is shown already; each serial has exactly one `{{SEQ}}`")]
    SerialRepeated {
        /// The name.
        name: String,
    },
    /// A token's width against its declaration.
    #[error(
        "the token asks for {width} characters, the declaration for {declared}; make them agree"
    )]
    Width {
        /// The token's.
        width: usize,
        /// The declaration's, in words.
        declared: String,
    },
    /// Literal text that no number may hold.
    #[error("a number holds printable text in Unicode normal form C only; remove the character")]
    Literal,
}

/// What is wrong with a field of a definition, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FieldFlaw {
    /// Nothing in it.
    #[error("is empty; it needs at least one {what}")]
    Empty {
        /// What it needs.
        what: &'static str,
    },
    /// Too much in it.
    #[error("has {found} {what}, at most {most} are allowed")]
    TooMany {
        /// How many.
        found: usize,
        /// The bound.
        most: usize,
        /// Of what.
        what: &'static str,
    },
    /// Characters outside its syntax.
    #[error("{value:?} is not allowed; write {expected}")]
    Syntax {
        /// The value, shortened.
        value: String,
        /// The syntax.
        expected: &'static str,
    },
    /// A value twice.
    #[error("{value:?} stands here twice; remove one")]
    Repeated {
        /// The value.
        value: String,
    },
    /// A name that the language keeps for itself.
    #[error("the name is built into the language; choose another")]
    Reserved,
    /// A dimension that is neither `project`, `type` nor declared.
    #[error("unknown dimension {dimension:?}; this series has {known}")]
    UnknownDimension {
        /// The dimension, shortened.
        dimension: String,
        /// The known ones.
        known: String,
    },
    /// `REV` as a dimension (R2.10).
    #[error("REV identifies no counter: revisions of one document share their serial; remove it")]
    Revision,
    /// A zone that tzdb does not know.
    #[error("unknown time zone {zone:?}; use an IANA name such as Asia/Bangkok")]
    UnknownZone {
        /// The name, shortened.
        zone: String,
    },
    /// A number outside its bounds.
    #[error("is {value}; allowed are {least} to {most}")]
    Bounds {
        /// The value.
        value: u64,
        /// The least allowed.
        least: u64,
        /// The most allowed.
        most: u64,
    },
    /// Two settings that exclude each other.
    #[error("contradicts `{other}`; keep one of them")]
    Contradiction {
        /// The other field.
        other: &'static str,
    },
    /// A default that its own variable refuses.
    #[error("the variable refuses it: {reason}")]
    Default {
        /// Why.
        reason: InputError,
    },
    /// A serial without its `{SEQ}`.
    #[error("no token of the template shows serial {name:?}; add `{{SEQ:4:{name}}}`")]
    SerialNotShown {
        /// The name.
        name: String,
    },
    /// Numbers of this series could never be short enough.
    #[error("numbers would have at least {chars} characters, at most {TEXT_CHARS_MAX} are allowed")]
    TextTooLong {
        /// The least length.
        chars: usize,
    },
}

/// A request that a series refuses. Nothing was taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InputError {
    /// A name that the series does not declare (slug `unknown-variable`).
    #[error("unknown variable {name:?}; {known}")]
    UnknownVariable {
        /// The name, shortened.
        name: String,
        /// What may be given.
        known: String,
    },
    /// A value that the series needs (slug `missing-variable`).
    #[error("{field} is missing or empty; series {series} needs it")]
    MissingVariable {
        /// The field.
        field: String,
        /// Code of the series.
        series: String,
    },
    /// A value wider than its field (slug `value-too-long`, R2.5).
    #[error("{field} has {chars} characters, at most {chars_max} are allowed")]
    ValueTooLong {
        /// The field.
        field: String,
        /// Its width in characters.
        chars: usize,
        /// The bound.
        chars_max: usize,
    },
    /// A value narrower than its field of exact width (slug `value-too-long`: the same rule).
    #[error("{field} has {chars} characters, exactly {width} are needed")]
    ValueTooShort {
        /// The field.
        field: String,
        /// Its width in characters.
        chars: usize,
        /// The exact width.
        width: usize,
    },
    /// A character that the field does not take (slug `wrong-alphabet`).
    #[error("{field}: character {position}, {character:?}, is not allowed here; {expected}")]
    WrongAlphabet {
        /// The field.
        field: String,
        /// Which character, counted from 1.
        position: usize,
        /// The character.
        character: char,
        /// What is allowed.
        expected: String,
    },
    /// A date that is not one (slug `invalid-date`).
    #[error("date {given:?}: {reason}")]
    InvalidDate {
        /// What the caller wrote, shortened.
        given: String,
        /// What is wrong and the remedy.
        reason: &'static str,
    },
    /// A plain date where the number shows a time of day (slug `time-required`, R1.6).
    #[error("date {given:?} needs a time of day: {remedy}")]
    TimeRequired {
        /// The date.
        given: String,
        /// What to write.
        remedy: &'static str,
    },
    /// The whole number is too long (slug `value-too-long`, R2.4).
    #[error("the number would have {chars} characters, at most {TEXT_CHARS_MAX} are allowed")]
    TextTooLong {
        /// Its length with the widest serial values.
        chars: usize,
    },
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
    /// Fewer values than the mask has serials (slug `missing-variable`).
    #[error("serial {serial} has no value; give one value per serial")]
    SerialMissing {
        /// Index of the serial.
        serial: usize,
    },
}

impl InputError {
    /// The stable problem slug of DESIGN section 5 (`unknown-variable`, `missing-variable`, …).
    #[must_use]
    pub fn slug(&self) -> &'static str {
        match self {
            InputError::UnknownVariable { .. } => "unknown-variable",
            InputError::MissingVariable { .. } | InputError::SerialMissing { .. } => {
                "missing-variable"
            }
            InputError::ValueTooLong { .. }
            | InputError::ValueTooShort { .. }
            | InputError::TextTooLong { .. } => "value-too-long",
            InputError::WrongAlphabet { .. } => "wrong-alphabet",
            InputError::InvalidDate { .. } => "invalid-date",
            InputError::TimeRequired { .. } => "time-required",
            InputError::SerialTooWide { .. } => "sequence-exhausted",
        }
    }

    /// The field of the request that is at fault, as a JSON path (`context.REV`, `date`, `project`).
    #[must_use]
    pub fn field(&self) -> String {
        match self {
            InputError::UnknownVariable { name, .. } => format!("context.{name}"),
            InputError::MissingVariable { field, .. }
            | InputError::ValueTooLong { field, .. }
            | InputError::ValueTooShort { field, .. }
            | InputError::WrongAlphabet { field, .. } => field.clone(),
            InputError::InvalidDate { .. } | InputError::TimeRequired { .. } => "date".into(),
            InputError::TextTooLong { .. } => "context".into(),
            InputError::SerialTooWide { serial, .. } | InputError::SerialMissing { serial } => {
                format!("serials[{serial}]")
            }
        }
    }
}

/// A text that is not a number of the series.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseError {
    /// Longer than any number (R2.4).
    #[error("longer than {TEXT_CHARS_MAX} characters: not a number")]
    TooLong,
    /// The text departs from the template.
    #[error("character {position}: expected {expected}, found {found}")]
    Departs {
        /// The first character that fits no reading, counted from 1.
        position: usize,
        /// What the template has there.
        expected: String,
        /// What the text has there.
        found: String,
    },
    /// Each part fits alone, but not together: a variable shown twice with two values, or a date
    /// that does not exist.
    #[error("the parts contradict each other: a repeated value differs or the date does not exist")]
    Contradicts,
    /// More than one reading: the template does not determine its parts (R2.7).
    #[error("the number can be read in more than one way; the template is ambiguous")]
    Ambiguous,
}
