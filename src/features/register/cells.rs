//! Cells of files that spreadsheets open.

use std::borrow::Cow;

/// The first characters that make a cell a formula.
const FORMULA: [char; 7] = ['=', '+', '-', '@', '\t', '\r', '\n'];

/// What is put before such a cell.
const MARK: char = '\'';

/// A cell that spreadsheets do not read as a formula. One that is marked already gets one mark
/// more, so that each cell can be read back.
pub(crate) fn inert(cell: &str) -> Cow<'_, str> {
    let is_formula = cell.trim_start_matches(MARK).starts_with(FORMULA);
    if is_formula { format!("{MARK}{cell}").into() } else { cell.into() }
}

/// Whether a cell has a mark that [`inert`] put before it.
pub(crate) fn is_marked(cell: &str) -> bool {
    cell.starts_with(MARK) && cell.trim_start_matches(MARK).starts_with(FORMULA)
}
