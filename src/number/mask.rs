//! A number with everything decided but its serial values.

use super::{InputError, TemplateError};

/// What is left of a template once variables, dates and dimensions are filled in: literal text and
/// places for serial values. It travels with an allocation (outbox, journal), so that whoever holds
/// the record can render the number without the series.
///
/// Text form: literal text with `{index:width}` for the serial `index` (0-based) padded with zeros
/// to `width`; `{{` and `}}` are braces. For example `SPO-20240122-{0:3}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask(());

impl Mask {
    /// Renders the number for one value per serial, in the order of the series' serials.
    ///
    /// # Errors
    /// `InputError::SerialTooWide` when a value does not fit its width: never a silent widening
    /// (R2.5).
    pub fn fill(&self, _values: &[u64]) -> Result<String, InputError> {
        todo!()
    }

    /// The text form.
    #[must_use]
    pub fn to_text(&self) -> String {
        todo!()
    }

    /// Reads the text form back.
    ///
    /// # Errors
    /// Where the text is not a mask.
    pub fn parse(_text: &str) -> Result<Self, TemplateError> {
        todo!()
    }
}
