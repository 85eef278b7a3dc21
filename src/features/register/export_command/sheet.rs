//! A workbook of one sheet, with a head that stays in sight, a filter, and dates that are dates.

use anyhow::bail;
use rust_xlsxwriter::{ExcelDateTime, Format, Workbook, XlsxError};

use super::columns::Cell;
use super::target::Target;

/// Most rows of a sheet, its head among them.
const SHEET_ROWS_MAX: u32 = 1_048_576;

/// Characters of a time to the second, `2024-01-22T09:00:00`.
const SECOND_CHARS: usize = 19;

/// Most characters of a cell, each of two places at most.
const CELL_CHARS_MAX: usize = 32_767 / 2;

/// Width of a column, in characters.
const WIDTH: f64 = 20.0;

/// A workbook of one sheet.
pub(super) struct Sheet {
    workbook: Workbook,
    rows: u32,
    columns: u16,
    day: Format,
    time: Format,
}

impl Sheet {
    /// A workbook with this head, whose rows are stored in a file of the target's folder until it
    /// is saved.
    pub(super) fn begin(target: &Target, head: &[&str]) -> Result<Self, XlsxError> {
        let mut workbook = Workbook::new();
        if let Some(folder) = target.folder() {
            workbook.set_tempdir(folder)?;
        }
        let sheet = workbook.add_worksheet_with_constant_memory()?;
        sheet.set_name("numbers")?.set_freeze_panes(1, 0)?;
        let (bold, mut columns) = (Format::new().set_bold(), 0);
        for name in head {
            sheet.set_column_width(columns, WIDTH)?;
            sheet.write_string_with_format(0, columns, *name, &bold)?;
            columns += 1;
        }
        let [day, time] = ["yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss"]
            .map(|format| Format::new().set_num_format(format));
        Ok(Sheet { workbook, rows: 1, columns, day, time })
    }

    /// # Errors
    /// A sheet that is full.
    pub(super) fn must_have_room(&self) -> anyhow::Result<()> {
        if self.rows >= SHEET_ROWS_MAX {
            bail!(
                "a sheet holds {} rows at most, and there are more: narrow the period, or write \
                 --format csv",
                SHEET_ROWS_MAX - 1
            );
        }
        Ok(())
    }

    /// Writes a row.
    pub(super) fn write(&mut self, cells: &[Cell<'_>]) -> Result<(), XlsxError> {
        let sheet = self.workbook.worksheet_from_index(0)?;
        for (column, cell) in (0..).zip(cells) {
            let dated = match cell {
                Cell::Day(text) => Some((*text, &self.day)),
                Cell::Time(text) => text.get(..SECOND_CHARS).map(|text| (text, &self.time)),
                Cell::Text(_) | Cell::Whole(_) => None,
            };
            // Spreadsheets have no dates before 1900.
            let dated = dated.and_then(|(text, format)| {
                ExcelDateTime::parse_from_str(text).ok().map(|date| (date, format))
            });
            match (cell, dated) {
                (_, Some((date, format))) => {
                    sheet.write_datetime_with_format(self.rows, column, &date, format)?;
                }
                (Cell::Whole(value), None) => {
                    // Values are at most 2^53, which a cell has exactly.
                    sheet.write_number(self.rows, column, *value as f64)?;
                }
                (cell, None) if !cell.text().is_empty() => {
                    let text = cell.text();
                    let end = text.char_indices().nth(CELL_CHARS_MAX).map_or(text.len(), |it| it.0);
                    sheet.write_string(self.rows, column, &text[..end])?;
                }
                _ => {}
            }
        }
        self.rows += 1;
        Ok(())
    }

    /// The workbook with its filter.
    pub(super) fn finish(mut self) -> Result<Workbook, XlsxError> {
        if let Some(last) = self.columns.checked_sub(1) {
            let sheet = self.workbook.worksheet_from_index(0)?;
            sheet.autofilter(0, 0, self.rows - 1, last)?;
        }
        Ok(self.workbook)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sheet_that_is_full_says_what_to_do() {
        let with = |rows| {
            let (workbook, day) = (Workbook::new(), Format::new());
            Sheet { workbook, rows, columns: 1, time: day.clone(), day }.must_have_room()
        };
        with(SHEET_ROWS_MAX - 1).expect("room for one more");
        let refused = with(SHEET_ROWS_MAX).expect_err("full").to_string();
        assert!(refused.contains("1048575") && refused.contains("--format csv"), "{refused}");
    }
}
