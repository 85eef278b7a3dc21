//! The register of numbers as bytes. A cell is never a formula: a text that begins like one gets an
//! apostrophe before it in CSV, and is text in a workbook.

use std::io::{BufWriter, Write as _};

use anyhow::Context as _;
use serde::Serialize;

use super::columns::{Cell, Chosen};
use super::sheet::Sheet;
use super::target::Target;
use super::{Format, Look};
use crate::features::register::cells::inert;
use crate::features::register::gap_rows::ExportedGap;
use crate::features::register::listing::{ListedRow, RegisterRow};
use crate::features::register::rows::ExportedRow;

/// What makes spreadsheets read a file as UTF-8.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A row of the register under the names of the audit trail.
#[derive(Serialize)]
#[serde(untagged)]
enum Exported<'a> {
    Number(Box<ExportedRow<'a>>),
    Gap(ExportedGap<'a>),
}

impl<'a> Exported<'a> {
    fn of(row: &'a ListedRow) -> Self {
        match RegisterRow::of(row) {
            RegisterRow::Number(row) => Exported::Number(Box::new((*row).into())),
            RegisterRow::Gap(row) => Exported::Gap(row.into()),
        }
    }

    /// The cells of these columns.
    fn cells(&self, columns: &[Chosen]) -> anyhow::Result<Vec<Cell<'_>>> {
        let cell = |column: &Chosen| match self {
            Exported::Number(row) => column.of_number(row),
            Exported::Gap(gap) => column.of_gap(gap),
        };
        columns.iter().map(cell).collect()
    }
}

/// Writes rows, one page after the other.
pub(super) struct Writer {
    columns: Vec<Chosen>,
    /// The context of an error.
    place: String,
    form: Form,
}

enum Form {
    Csv(Box<csv::Writer<Target>>),
    Lines(BufWriter<Target>),
    Sheet(Box<Sheet>, Target),
}

impl Writer {
    /// Begins with the head, if the format has one.
    ///
    /// # Errors
    /// A target that cannot be written.
    pub(super) fn begin(
        Look { format, columns, language, with_mark }: Look,
        mut target: Target,
    ) -> anyhow::Result<Self> {
        let place = target.name();
        let head: Vec<&str> = columns.iter().map(|column| column.head(language)).collect();
        let form = match format {
            Format::Csv => {
                if with_mark {
                    target.write_all(BYTE_ORDER_MARK.as_bytes()).with_context(|| place.clone())?;
                }
                let mut csv = Box::new(csv::Writer::from_writer(target));
                csv.write_record(head).with_context(|| place.clone())?;
                Form::Csv(csv)
            }
            Format::Jsonl => Form::Lines(BufWriter::new(target)),
            Format::Xlsx => {
                let sheet = Sheet::begin(&target, &head).with_context(|| place.clone())?;
                Form::Sheet(Box::new(sheet), target)
            }
        };
        Ok(Writer { columns, place, form })
    }

    /// Writes a page.
    ///
    /// # Errors
    /// A target that cannot be written, more rows than a sheet has.
    pub(super) fn write(&mut self, rows: &[ListedRow]) -> anyhow::Result<()> {
        rows.iter().try_for_each(|row| self.write_row(&Exported::of(row)))
    }

    /// Writes the row of a counter.
    ///
    /// # Errors
    /// As [`Writer::write`].
    pub(super) fn write_counter(&mut self, row: ExportedGap<'_>) -> anyhow::Result<()> {
        self.write_row(&Exported::Gap(row))
    }

    fn write_row(&mut self, row: &Exported<'_>) -> anyhow::Result<()> {
        let Writer { columns, place, form } = self;
        match form {
            Form::Csv(csv) => {
                for cell in row.cells(columns)? {
                    let text = cell.text();
                    csv.write_field(&*inert(&text)).with_context(|| place.clone())?;
                }
                csv.write_record(None::<&[u8]>).with_context(|| place.clone())
            }
            Form::Lines(lines) => {
                let text = serde_json::to_string(row)?;
                writeln!(lines, "{text}").with_context(|| place.clone())
            }
            Form::Sheet(sheet, _) => {
                sheet.must_have_room()?;
                sheet.write(&row.cells(columns)?).with_context(|| place.clone())
            }
        }
    }

    /// Ends it.
    ///
    /// # Errors
    /// A target that cannot be written.
    pub(super) fn finish(self) -> anyhow::Result<Target> {
        let Writer { place, form, .. } = self;
        match form {
            Form::Csv(csv) => {
                csv.into_inner().map_err(|error| anyhow::anyhow!("{place}: {}", error.error()))
            }
            Form::Lines(lines) => {
                lines.into_inner().map_err(|error| anyhow::anyhow!("{place}: {}", error.error()))
            }
            Form::Sheet(sheet, mut target) => {
                let mut out = BufWriter::new(&mut target);
                let saved = sheet.finish().and_then(|mut book| book.save_to_writer(&mut out));
                let saved = saved.map_err(anyhow::Error::from).and_then(|()| Ok(out.flush()?));
                drop(out);
                saved.with_context(|| place)?;
                Ok(target)
            }
        }
    }
}
