//! Problems of exchange serials.

use numbering::ExchangeError;

use super::{Problem, Slug};

impl Problem {
    /// A refusal of an exchange serial or of a part of one: with the slugs of other values.
    pub(crate) fn of_exchange(field: &str, wrong: &ExchangeError) -> Self {
        let slug = match wrong {
            ExchangeError::Length { kind, chars } if *chars < kind.chars() => Slug::ValueTooShort,
            ExchangeError::Width { part, chars } if *chars < part.width() => Slug::ValueTooShort,
            ExchangeError::Length { .. } | ExchangeError::Width { .. } => Slug::ValueTooLong,
            ExchangeError::Character { .. } => Slug::WrongAlphabet,
            ExchangeError::Date { .. } | ExchangeError::Zero { .. } => Slug::InvalidField,
        };
        Problem { field: Some(field.to_owned()), ..Problem::new(slug, wrong.to_string()) }
    }
}
