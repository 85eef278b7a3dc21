//! What can be wrong with a series. Each error names the field or token, its place and the remedy:
//! an administrator reads it, usually through a series file's line and column.

use std::fmt;

use thiserror::Error;

use super::{InputError, TEXT_CHARS_MAX};

/// A place in a template or in a partially rendered number.
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
    /// The text form of a partially rendered number; messages call it as the journal's column.
    #[error("mask, {at}: {reason}")]
    PartialNumber {
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
            TemplateError::PartialNumber { .. } => "mask",
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
    #[error(
        "unknown token{hint}; this series has {known}; another name needs [series.variables.NAME]"
    )]
    Unknown {
        /// What was probably meant, after a semicolon; empty if nothing is near.
        hint: String,
        /// The tokens that the series could use.
        known: String,
    },
    /// A withdrawn token.
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
    /// A date pattern that is not one, or that means something else than it seems to.
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
    #[error("no serial is named {name:?}; {remedy}")]
    SerialUndeclared {
        /// The name.
        name: String,
        /// What the series has, and how it gets another.
        remedy: String,
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
    /// A second id.
    #[error("a number has one id; remove this token")]
    SnowflakeRepeated,
    /// A check without a serial or an id before it.
    #[error("it checks what stands to its left; place it behind {{SEQ}} or {{SNOWFLAKE}}")]
    CheckBeforeSerial,
    /// A second check.
    #[error("a number has one check already; keep the last one")]
    CheckRepeated,
    /// A check that ignores what is to its left.
    #[error(
        "it reads {reads} only, and {shown} to its left may show {character:?}; give it an \
         alphabet without that, choose another algorithm, or move the token to the left of it"
    )]
    CheckOverlooks {
        /// The characters that the algorithm reads.
        reads: &'static str,
        /// The part to its left.
        shown: String,
        /// A character of it.
        character: char,
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
    /// An alphabet that its exclusions leave empty.
    #[error(
        "leaves no character that a value could begin with; allow one, or take it out of \
         `excluded`"
    )]
    NothingAllowed,
    /// A reserved name of the language.
    #[error("the name is built into the language; choose another")]
    Reserved,
    /// The name of a withdrawn token.
    #[error("the name is withdrawn; {remedy}")]
    Retired {
        /// What to write instead.
        remedy: &'static str,
    },
    /// A dimension that is neither `project`, `type` nor declared.
    #[error(
        "unknown dimension {dimension:?}; this series has {known}; another one needs \
         [series.variables.{dimension}]"
    )]
    UnknownDimension {
        /// The dimension, shortened.
        dimension: String,
        /// The known ones.
        known: String,
    },
    /// Memberships without both of their tables.
    #[error(
        "who is a member of what? Set `references.project`, and `reference` of the variable \
         ORIGINATOR or ORG_CODE"
    )]
    Membership,
    /// `REV` as a dimension.
    #[error("REV identifies no counter: revisions of one document share their serial; remove it")]
    Revision,
    /// A zone that tzdb does not know.
    #[error("unknown time zone {zone:?}; use an IANA name such as Asia/Bangkok")]
    UnknownZone {
        /// The name, shortened.
        zone: String,
    },
    /// Chronology without the policy that can keep it.
    #[error("can be kept by the policy `gapless` only; set `policy = \"gapless\"` or leave it out")]
    NeedsGapless,
    /// Numbers by hand in a series whose numbers nobody can give by hand.
    #[error("needs numbers that one serial alone tells apart; leave it out, or {remedy}")]
    ByHand {
        /// What to change instead.
        remedy: &'static str,
    },
    /// A combination that is impossible with a source of values.
    #[error("{reason}")]
    Source {
        /// What is wrong and the remedy.
        reason: &'static str,
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
    /// A range of days that is empty.
    #[error(
        "{before} is no day after {from}; `dated_from` is the first day, and `dated_before` the \
             first one behind the last"
    )]
    NoDays {
        /// The first one.
        from: String,
        /// The first one after them.
        before: String,
    },
    /// Two settings that exclude each other.
    #[error("contradicts `{other}`; keep one of them")]
    Contradiction {
        /// The other field.
        other: &'static str,
    },
    /// A default or a declared value that its own variable refuses.
    #[error("the variable refuses it: {reason}")]
    Refused {
        /// Why.
        reason: Box<InputError>,
    },
    /// A serial without its `{SEQ}`.
    #[error("no token of the template shows serial {name:?}; add `{token}`")]
    SerialNotShown {
        /// The name.
        name: String,
        /// A token that would.
        token: String,
    },
    /// Numbers of this series could never be short enough.
    #[error(
        "numbers would have at least {chars} characters, at most {TEXT_CHARS_MAX} are allowed; \
         show less, or give the parts less width"
    )]
    TextTooLong {
        /// The least length.
        chars: usize,
    },
}
