//! Cells of files that spreadsheets open.

use std::borrow::Cow;

/// What makes a formula of a cell that begins with it.
const FORMULA: [char; 7] = ['=', '+', '-', '@', '\t', '\r', '\n'];

/// A cell that no spreadsheet takes for a formula.
pub(crate) fn inert(cell: &str) -> Cow<'_, str> {
    if cell.starts_with(FORMULA) { format!("'{cell}").into() } else { cell.into() }
}
