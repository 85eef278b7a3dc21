//! Cells of files that spreadsheets open.

use std::borrow::Cow;

/// The first characters that make a cell a formula.
const FORMULA: [char; 7] = ['=', '+', '-', '@', '\t', '\r', '\n'];

/// A cell that spreadsheets do not read as a formula.
pub(crate) fn inert(cell: &str) -> Cow<'_, str> {
    if cell.starts_with(FORMULA) { format!("'{cell}").into() } else { cell.into() }
}
