//! The register of numbers as bytes. A cell is never a formula: a text that begins like one gets an
//! apostrophe before it in CSV, and is text in a workbook.

use std::borrow::Cow;
use std::io::{BufWriter, Write as _};

use anyhow::{Context as _, bail};
use rust_xlsxwriter::{Workbook, XlsxError};

use super::Format;
use super::target::Target;
use crate::features::register::cells::inert;
use crate::features::register::rows::{ExportedRow, FoundRow, NumberRow};

/// The columns: those of the audit trail under its names, then the rest.
const COLUMNS: [&str; 21] = [
    "document_id",
    "generated_number",
    "counter_key",
    "template_used",
    "user_id",
    "ip_address",
    "timestamp",
    "retry_count",
    "series",
    "config_version",
    "type",
    "project",
    "document_date",
    "first",
    "last",
    "serials",
    "path",
    "idempotency_key",
    "allocation_id",
    "journaled_at",
    "service",
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
                csv.write_record(COLUMNS).with_context(|| place.clone())?;
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
        sheet.write(&COLUMNS.map(Cow::Borrowed))?;
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

/// The cells of a row, in the order of the columns.
fn cells<'r>(row: &'r ExportedRow<'_>) -> anyhow::Result<[Cow<'r, str>; COLUMNS.len()]> {
    fn text(text: Option<&str>) -> Cow<'_, str> {
        Cow::Borrowed(text.unwrap_or_default())
    }
    let (about, source) = (&row.about, &row.about.source);
    let values = about.serials.first();
    let value = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
    Ok([
        text(about.document_id),
        row.generated_number.into(),
        serde_json::to_string(&source.counter_key)?.into(),
        about.template_used.into(),
        about.user_id.into(),
        text(about.ip_address),
        row.timestamp.as_str().into(),
        about.retry_count.to_string().into(),
        source.series.into(),
        source.config_version.to_string().into(),
        source.type_code.into(),
        text(source.project),
        about.document_date.into(),
        value(values.map(|values| values.first)).into(),
        value(values.map(|values| values.last)).into(),
        serde_json::to_string(&about.serials)?.into(),
        about.path.name().into(),
        text(about.idempotency_key),
        about.allocation_id.to_string().into(),
        about.journaled_at.as_str().into(),
        text(about.service),
    ])
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
