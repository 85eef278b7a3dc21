//! Pages that are also bounded by their bytes: if a row may be as large as a definition, a thousand
//! rows are too many for a page.

use serde::Serialize;
use serde::{Deserialize, Deserializer, de};

use super::problem::Problem;

/// The end of a page of large rows, in bytes; a page has at least one row.
pub(crate) const PAGE_BYTES_MAX: usize = 1_048_576;

/// A page that is being filled.
#[derive(Debug)]
pub(crate) struct LargePage<T> {
    rows: Vec<T>,
    bytes: usize,
    rows_max: usize,
}

impl<T: Serialize> LargePage<T> {
    /// An empty page that has room for so many rows.
    pub(crate) fn new(rows_max: usize) -> Self {
        LargePage { rows: Vec::new(), bytes: 0, rows_max }
    }

    /// Appends a row; false if the page ends before it.
    ///
    /// # Errors
    /// A row that cannot be written.
    pub(crate) fn push(&mut self, row: T) -> Result<bool, Problem> {
        let written = serde_json::to_vec(&row);
        let bytes = written.map_err(|error| Problem::internal_taking_nothing(&error))?.len() + 1;
        let is_too_much = self.bytes + bytes > PAGE_BYTES_MAX && !self.rows.is_empty();
        if self.rows.len() == self.rows_max || is_too_much {
            return Ok(false);
        }
        self.bytes += bytes;
        self.rows.push(row);
        Ok(true)
    }

    /// The rows so far.
    pub(crate) fn rows(&self) -> &[T] {
        &self.rows
    }

    /// The rows of the page.
    pub(crate) fn into_rows(self) -> Vec<T> {
        self.rows
    }
}

/// The rule for a limit.
const LIMIT_WANTED: &str = "must be a whole number from 1 to 1000";
const _: () = assert!(ROWS_MAX == 1_000);

/// Reads the limit; a refusal says which values are valid.
pub(crate) fn limit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(|_| de::Error::custom(LIMIT_WANTED))
}

/// How many rows a page has.
pub(crate) fn rows_of_page(limit: Option<u32>) -> Result<u32, Problem> {
    let limit = limit.unwrap_or(ROWS_DEFAULT);
    let is_right = (1..=ROWS_MAX).contains(&limit);
    if is_right { Ok(limit) } else { Err(Problem::field("limit", LIMIT_WANTED)) }
}

/// Default of the rows of an answer.
pub(crate) const ROWS_DEFAULT: u32 = 100;

/// Most rows of an answer.
pub(crate) const ROWS_MAX: u32 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(rows_max: usize, bytes: usize) -> usize {
        let mut page = LargePage::new(rows_max);
        while page.push("x".repeat(bytes)).expect("a text") {}
        page.into_rows().len()
    }

    #[test]
    fn a_page_ends_at_its_rows_or_at_its_bytes_and_has_one_row_at_least() {
        assert_eq!(filled(100, 10), 100);
        // With quotes and a comma.
        assert_eq!(filled(100, PAGE_BYTES_MAX / 4 - 3), 4);
        assert_eq!(filled(100, PAGE_BYTES_MAX / 4), 3);
        assert_eq!(filled(100, 2 * PAGE_BYTES_MAX), 1);
    }
}
