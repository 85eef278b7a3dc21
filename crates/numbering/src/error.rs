//! What can be wrong with a request or a number. Each error names the field and the remedy.
//!
//! Text of a caller is never quoted beyond [`EXCERPT_CHARS_MAX`] characters, so that an error stays
//! small whatever was sent.

use thiserror::Error;

use super::TEXT_CHARS_MAX;

/// How much of a caller's text an error quotes, in characters.
pub(super) const EXCERPT_CHARS_MAX: usize = 40;

/// The beginning of a text, for an error message.
pub(super) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
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
    /// A phase for a series that has none (slug `unknown-variable`).
    #[error("series {series} has no phases; leave `phase` out")]
    PhaseUnknown {
        /// Code of the series.
        series: String,
    },
    /// A value that the series needs (slug `missing-variable`).
    #[error("{field} is missing or empty; series {series} needs it")]
    MissingVariable {
        /// The field.
        field: String,
        /// Code of the series.
        series: String,
    },
    /// A value wider than its field (slug `value-too-long`).
    #[error("{field} has {chars} characters, at most {chars_max} are allowed")]
    ValueTooLong {
        /// The field.
        field: String,
        /// Its width in characters.
        chars: usize,
        /// The bound.
        chars_max: usize,
    },
    /// A value narrower than its field of exact width (slug `value-too-short`).
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
    /// A date that is far from the present (slug `invalid-date`).
    #[error("date {given:?}: {who} takes dates from {first} to {last}; {remedy}")]
    ImplausibleDate {
        /// What sets the bounds.
        who: &'static str,
        /// What the caller wrote, shortened.
        given: String,
        /// The first day that it takes.
        first: String,
        /// The last one.
        last: String,
        /// What to do.
        remedy: String,
    },
    /// A value that looks like another one (slug `wrong-alphabet`).
    #[error("{field}: character {position}, {character:?}: {why}")]
    LookAlike {
        /// The field.
        field: String,
        /// Which character, counted from 1.
        position: usize,
        /// The character.
        character: char,
        /// What it looks like, and the remedy.
        why: String,
    },
    /// A value that is not among those that its variable declares (slug `unknown-value`).
    #[error("{field}: {value:?} is none of the values that the series takes; {hint}")]
    UnknownValue {
        /// The field.
        field: String,
        /// The value, shortened.
        value: String,
        /// The declared value that is most similar to it, or the first few.
        hint: String,
    },
    /// A plain date although the number shows a time of day, or its counter restarts within a day
    /// (slug `time-required`).
    #[error("date {given:?} needs a time of day: {remedy}")]
    TimeRequired {
        /// The date.
        given: String,
        /// What to write.
        remedy: &'static str,
    },
    /// A code or id that the table does not have (slug `unknown-reference`).
    #[error("{field}: {table} has no {value:?}; {remedy}")]
    UnknownReference {
        /// The field.
        field: String,
        /// The table.
        table: String,
        /// The code or id, shortened.
        value: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A row that new numbers may not use (slug `inactive-reference`).
    #[error("{field}: {value:?} of {table} is inactive; use another, or have it activated")]
    InactiveReference {
        /// The field.
        field: String,
        /// The table.
        table: String,
        /// Its code.
        value: String,
    },
    /// An originator outside the project (slug `not-a-member`).
    #[error("{field}: {member:?} {reason}")]
    NotAMember {
        /// The originator's field.
        field: String,
        /// Its code.
        member: String,
        /// Which project it is no member of, and the remedy.
        reason: String,
    },
    /// Several projects that the originator is a member of (slug `project-ambiguous`).
    #[error("project is missing, and {member:?} is a member of several: {projects}; name one")]
    ProjectAmbiguous {
        /// Code of the originator.
        member: String,
        /// The projects.
        projects: String,
    },
    /// A value sent in a form that the series does not take (slug `invalid-field`).
    #[error("{field}: {reason}")]
    Form {
        /// The field.
        field: String,
        /// What is wrong and the remedy.
        reason: String,
    },
    /// A date in a closed period (slug `period-closed`).
    #[error("date {date} lies in a closed period; the series is open from {open_from} on")]
    PeriodClosed {
        /// The document's date.
        date: String,
        /// The first day that is open.
        open_from: String,
    },
    /// A date before the last one, in a series that keeps chronology (slug `date-before-last`).
    #[error(
        "date {date} lies before {last_date}, the date of the last number of these counters; date \
         the document {last_date} or later"
    )]
    DateBeforeLast {
        /// The document's date.
        date: String,
        /// The last number's.
        last_date: String,
    },
    /// The whole number is too long (slug `value-too-long`).
    #[error(
        "the number would have {chars} characters, at most {TEXT_CHARS_MAX} are allowed; send \
         shorter values"
    )]
    TextTooLong {
        /// Its length with the widest serial values.
        chars: usize,
    },
    /// The value does not fit the width of its `{SEQ:n}` (slug `sequence-exhausted`).
    #[error("serial {serial} of value {value} does not fit {width} digits or letters")]
    SerialTooWide {
        /// Index of the serial.
        serial: usize,
        /// The value.
        value: u64,
        /// The width.
        width: usize,
    },
    /// Fewer values than the partially rendered number has serials (slug `missing-variable`).
    #[error("serial {serial} has no value; give one value per serial")]
    SerialMissing {
        /// Index of the serial.
        serial: usize,
    },
}

impl InputError {
    /// The stable problem slug (`unknown-variable`, `missing-variable`, …).
    #[must_use]
    pub fn slug(&self) -> &'static str {
        match self {
            InputError::UnknownVariable { .. } | InputError::PhaseUnknown { .. } => {
                "unknown-variable"
            }
            InputError::MissingVariable { .. } | InputError::SerialMissing { .. } => {
                "missing-variable"
            }
            InputError::ValueTooLong { .. } | InputError::TextTooLong { .. } => "value-too-long",
            InputError::ValueTooShort { .. } => "value-too-short",
            InputError::WrongAlphabet { .. } | InputError::LookAlike { .. } => "wrong-alphabet",
            InputError::UnknownValue { .. } => "unknown-value",
            InputError::InvalidDate { .. } | InputError::ImplausibleDate { .. } => "invalid-date",
            InputError::TimeRequired { .. } => "time-required",
            InputError::PeriodClosed { .. } => "period-closed",
            InputError::DateBeforeLast { .. } => "date-before-last",
            InputError::SerialTooWide { .. } => "sequence-exhausted",
            InputError::UnknownReference { .. } => "unknown-reference",
            InputError::InactiveReference { .. } => "inactive-reference",
            InputError::NotAMember { .. } => "not-a-member",
            InputError::ProjectAmbiguous { .. } => "project-ambiguous",
            InputError::Form { .. } => "invalid-field",
        }
    }

    /// The field of the request that is at fault, as a JSON path (`context.REV`, `date`,
    /// `project`).
    #[must_use]
    pub fn field(&self) -> String {
        match self {
            InputError::UnknownVariable { name, .. } => format!("context.{name}"),
            InputError::PhaseUnknown { .. } => "phase".into(),
            InputError::MissingVariable { field, .. }
            | InputError::ValueTooLong { field, .. }
            | InputError::ValueTooShort { field, .. }
            | InputError::WrongAlphabet { field, .. }
            | InputError::LookAlike { field, .. }
            | InputError::UnknownValue { field, .. }
            | InputError::UnknownReference { field, .. }
            | InputError::InactiveReference { field, .. }
            | InputError::NotAMember { field, .. }
            | InputError::Form { field, .. } => field.clone(),
            InputError::ProjectAmbiguous { .. } => "project".into(),
            InputError::InvalidDate { .. }
            | InputError::ImplausibleDate { .. }
            | InputError::TimeRequired { .. }
            | InputError::PeriodClosed { .. }
            | InputError::DateBeforeLast { .. } => "date".into(),
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
    /// Longer than any number.
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
    /// A check character does not belong to the text to its left: the text was mistyped, or is not
    /// a number of the series.
    #[error(
        "character {position}: the check is {found}, but {expected} belongs to the text before"
    )]
    Check {
        /// Where the check is, counted from 1.
        position: usize,
        /// What belongs there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// Each part fits alone, but not together: a variable shown twice with two values, or a date
    /// that does not exist.
    #[error("character {position}: {reason}")]
    Contradicts {
        /// Where the part is that contradicts the others, counted from 1.
        position: usize,
        /// Which part it is, and the remedy.
        reason: String,
    },
    /// More than one reading: the template does not determine its parts.
    #[error(
        "character {position}: where {part} ends can be read in more than one way; exclude the \
         sign behind it from its characters, or give it a fixed width"
    )]
    Ambiguous {
        /// Where the first part begins that two readings end at different places, counted from 1.
        position: usize,
        /// The part in words.
        part: String,
    },
}

impl ParseError {
    /// How far the text was read, in characters; an error of parts that were all read is the
    /// furthest.
    #[must_use]
    pub fn reach(&self) -> usize {
        match self {
            ParseError::TooLong => 0,
            ParseError::Departs { position, .. } | ParseError::Check { position, .. } => *position,
            ParseError::Contradicts { .. } | ParseError::Ambiguous { .. } => usize::MAX,
        }
    }
}
