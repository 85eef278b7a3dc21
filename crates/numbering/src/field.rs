//! Checks of one field of a definition: lengths, counts and syntax. Knows no definition.

use super::TemplateError;
use super::error::excerpt;
use super::template_error::FieldFlaw;
use super::text::flaw_of_literal;

/// A flaw of a field, as the result of any check.
pub(super) fn at<T>(field: &str, flaw: FieldFlaw) -> Result<T, TemplateError> {
    Err(TemplateError::at_field(field, flaw))
}

/// A value outside the syntax of its field.
pub(super) fn syntax<T>(
    field: &str,
    value: &str,
    expected: &'static str,
) -> Result<T, TemplateError> {
    at(field, FieldFlaw::Syntax { value: excerpt(value), expected })
}

/// An upper bound: nothing in a definition is unbounded.
pub(super) fn check_count(
    field: &str,
    found: usize,
    most: usize,
    what: &'static str,
) -> Result<(), TemplateError> {
    if found > most {
        return at(field, FieldFlaw::TooMany { found, most, what });
    }
    Ok(())
}

/// Length, at least one character.
pub(super) fn check_chars(field: &str, text: &str, most: usize) -> Result<(), TemplateError> {
    if text.is_empty() {
        return at(field, FieldFlaw::Empty { what: "character" });
    }
    check_count(field, text.chars().count(), most, "characters")
}

/// Text that a number may show, or that is compared with what a number shows.
pub(super) fn check_text(field: &str, text: &str, most: usize) -> Result<(), TemplateError> {
    check_chars(field, text, most)?;
    if flaw_of_literal(text).is_some() || text.trim() != text {
        let expected = "printable text in Unicode normal form C, no blanks at the ends";
        return syntax(field, text, expected);
    }
    Ok(())
}
