//! The register of numbers as bytes. A cell is never a formula: a text that begins like one gets an
//! apostrophe before it in CSV, and is text in a workbook.

use std::borrow::Cow;
use std::io::{BufWriter, Write as _};

use anyhow::{Context as _, bail};
use rust_xlsxwriter::{Workbook, XlsxError};

use super::Format;
use super::target::Target;
use crate::features::numbers::answer::ValuesAnswer;
use crate::features::register::cells::inert;
use crate::features::register::rows::{ExportedRow, FoundRow, NumberRow};

/// What a column shows of a row.
type CellOf = for<'r> fn(&'r ExportedRow<'_>) -> anyhow::Result<Cow<'r, str>>;

/// The columns: those of the audit trail under its names, then the rest.
const COLUMNS: &[(&str, CellOf)] = &[
    ("document_id", |row| Ok(text(row.about.document_id))),
    ("generated_number", |row| Ok(row.generated_number.into())),
    ("counter_key", |row| Ok(serde_json::to_string(&row.about.source.counter_key)?.into())),
    ("template_used", |row| Ok(row.about.template_used.into())),
    ("user_id", |row| Ok(row.about.user_id.into())),
    ("ip_address", |row| Ok(text(row.about.ip_address))),
    ("timestamp", |row| Ok(row.timestamp.as_str().into())),
    ("retry_count", |row| Ok(row.about.retry_count.to_string().into())),
    ("series", |row| Ok(row.about.source.series.into())),
    ("config_version", |row| Ok(row.about.source.config_version.to_string().into())),
    ("type", |row| Ok(row.about.source.type_code.into())),
    ("project", |row| Ok(text(row.about.source.project))),
    ("document_date", |row| Ok(row.about.document_date.into())),
    ("first", |row| Ok(value(row, |values| values.first).into())),
    ("last", |row| Ok(value(row, |values| values.last).into())),
    ("serials", |row| Ok(serde_json::to_string(&row.about.serials)?.into())),
    ("path", |row| Ok(row.about.path.name().into())),
    ("idempotency_key", |row| Ok(text(row.about.idempotency_key))),
    ("allocation_id", |row| Ok(row.about.allocation_id.to_string().into())),
    ("journaled_at", |row| Ok(row.about.journaled_at.as_str().into())),
    ("service", |row| Ok(text(row.about.service))),
];

/// Most rows of a sheet, its head among them.
const SHEET_ROWS_MAX: u32 = 1_048_576;

/// Writes rows, one page after the other.
pub(super) enum Writer {
    Csv { csv: Box<csv::Writer<Target>>, place: String },
    Lines { lines: BufWriter<Target>, place: String },
    Sheet { sheet: Box<Sheet>, target: Target },
}

/// A workbook of one sheet.
pub(super) struct Sheet {
    workbook: Workbook,
    rows: u32,
}

impl Writer {
    /// Begins with the head, if the format has one.
    ///
    /// # Errors
    /// A target that cannot be written.
    pub(super) fn begin(format: Format, target: Target) -> anyhow::Result<Self> {
        let place = target.name();
        match format {
            Format::Csv => {
                let mut csv = Box::new(csv::Writer::from_writer(target));
                csv.write_record(names()).with_context(|| place.clone())?;
                Ok(Writer::Csv { csv, place })
            }
            Format::Jsonl => Ok(Writer::Lines { lines: BufWriter::new(target), place }),
            Format::Xlsx => {
                let sheet = Sheet::begin(&target).with_context(|| place)?;
                Ok(Writer::Sheet { sheet: Box::new(sheet), target })
            }
        }
    }

    /// Writes a page.
    ///
    /// # Errors
    /// A target that cannot be written, more rows than a sheet has.
    pub(super) fn write(&mut self, rows: &[FoundRow]) -> anyhow::Result<()> {
        for row in rows.iter().map(|row| ExportedRow::from(NumberRow::of(row))) {
            match self {
                Writer::Csv { csv, place } => {
                    let cells = cells(&row)?;
                    let cells = cells.iter().map(|cell| inert(cell));
                    for cell in cells {
                        csv.write_field(&*cell).with_context(|| place.clone())?;
                    }
                    csv.write_record(None::<&[u8]>).with_context(|| place.clone())?;
                }
                Writer::Lines { lines, place } => {
                    let text = serde_json::to_string(&row)?;
                    writeln!(lines, "{text}").with_context(|| place.clone())?;
                }
                Writer::Sheet { sheet, target } => {
                    sheet.must_have_room()?;
                    sheet.write(&cells(&row)?).with_context(|| target.name())?;
                }
            }
        }
        Ok(())
    }

    /// Ends it.
    ///
    /// # Errors
    /// A target that cannot be written.
    pub(super) fn finish(self) -> anyhow::Result<Target> {
        match self {
            Writer::Csv { csv, place } => {
                csv.into_inner().map_err(|error| anyhow::anyhow!("{place}: {}", error.error()))
            }
            Writer::Lines { lines, place } => {
                lines.into_inner().map_err(|error| anyhow::anyhow!("{place}: {}", error.error()))
            }
            Writer::Sheet { mut sheet, mut target } => {
                let mut out = BufWriter::new(&mut target);
                let saved = sheet.workbook.save_to_writer(&mut out);
                let saved = saved.map_err(anyhow::Error::from).and_then(|()| Ok(out.flush()?));
                drop(out);
                saved.with_context(|| target.name())?;
                Ok(target)
            }
        }
    }
}

impl Sheet {
    /// A workbook whose rows are stored in a file of the target's folder until it is saved.
    fn begin(target: &Target) -> Result<Self, XlsxError> {
        let mut workbook = Workbook::new();
        if let Some(folder) = target.folder() {
            workbook.set_tempdir(folder)?;
        }
        workbook.add_worksheet_with_constant_memory()?.set_name("numbers")?;
        let mut sheet = Sheet { workbook, rows: 0 };
        sheet.write(&names().map(Cow::Borrowed).collect::<Vec<_>>())?;
        Ok(sheet)
    }

    fn must_have_room(&self) -> anyhow::Result<()> {
        if self.rows >= SHEET_ROWS_MAX {
            bail!(
                "a sheet holds {} rows at most, and there are more: narrow the period, or write \
                 --format csv",
                SHEET_ROWS_MAX - 1
            );
        }
        Ok(())
    }

    fn write(&mut self, cells: &[Cow<'_, str>]) -> Result<(), XlsxError> {
        let sheet = self.workbook.worksheet_from_index(0)?;
        for (column, cell) in (0..).zip(cells) {
            if !cell.is_empty() {
                sheet.write_string(self.rows, column, &**cell)?;
            }
        }
        self.rows += 1;
        Ok(())
    }
}

/// The head.
fn names() -> impl Iterator<Item = &'static str> {
    COLUMNS.iter().map(|(name, _)| *name)
}

/// The cells of a row, in the order of the columns.
fn cells<'r>(row: &'r ExportedRow<'_>) -> anyhow::Result<Vec<Cow<'r, str>>> {
    COLUMNS.iter().map(|(_, cell)| cell(row)).collect()
}

fn text(text: Option<&str>) -> Cow<'_, str> {
    Cow::Borrowed(text.unwrap_or_default())
}

/// A value of the first serial.
fn value(row: &ExportedRow<'_>, of: impl Fn(&ValuesAnswer) -> u64) -> String {
    row.about.serials.first().map(|values| of(values).to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sheet_that_is_full_says_what_to_do() {
        let with = |rows| Sheet { workbook: Workbook::new(), rows }.must_have_room();
        with(SHEET_ROWS_MAX - 1).expect("room for one more");
        let refused = with(SHEET_ROWS_MAX).expect_err("full").to_string();
        assert!(refused.contains("1048575") && refused.contains("--format csv"), "{refused}");
    }
}
