//! Rows as columns of a Parquet file, there and back. The columns are part of the record:
//! `docs/record.md` lists them. Which there are, and in which order, derives from the list of the
//! journal's columns; here are their names in a file.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader as _, RowGroupReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::Type;

use crate::ledger::{ArchivedRow, Cell, FileColumn, FileColumnKind};

/// Most rows of a group, which is read as a whole.
pub(super) const GROUP_ROWS_MAX: usize = 20_000;

/// Most bytes of a cell that is read: several times the length of any text of the journal.
const CELL_BYTES_MAX: usize = 1024 * 1024;

/// Most bytes of the cells of a group that is read. A text that is in a file once may belong to
/// each of its rows, and each row has its own copy.
const GROUP_BYTES_MAX: usize = 512 * 1024 * 1024;

/// Most bytes of the cells of a group that is written, unless it is of one row.
const WRITTEN_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How many columns the files of the first version have.
fn first_columns() -> usize {
    FileColumn::all().iter().filter(|column| !column.is_later).count()
}

/// The name of a column in a file, and the annotation of its values in a schema.
fn named(column: &FileColumn) -> (&'static str, &'static str) {
    match column.name {
        "series_id" => ("config_id", ""),
        "version" => ("config_version", ""),
        "type_code" => ("type", " (utf8)"),
        "key" => ("counter_key", " (utf8)"),
        name if column.kind.is_text() => (name, " (utf8)"),
        name => match name.strip_suffix("_us") {
            Some(name) => (name, " (timestamp(micros, true))"),
            None => (name, ""),
        },
    }
}

/// A schema of these columns.
fn schema(columns: &[FileColumn]) -> anyhow::Result<Type> {
    let mut text = String::from("message journal {");
    for column in columns {
        let presence = if column.kind.is_optional() { "optional" } else { "required" };
        let kind = if column.kind == FileColumnKind::Integer { "int64" } else { "binary" };
        let (name, values) = named(column);
        write!(text, " {presence} {kind} {name}{values};")?;
    }
    text.push_str(" }");
    Ok(parse_message_type(&text)?)
}

/// A file that rows are written to, group by group.
pub(super) struct RowWriter<W: Write + Send>(SerializedFileWriter<W>);

impl<W: Write + Send> RowWriter<W> {
    pub(super) fn begin(to: W) -> anyhow::Result<Self> {
        let schema = Arc::new(schema(FileColumn::all())?);
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by("numerator archive 1".into())
            .build();
        Ok(RowWriter(SerializedFileWriter::new(to, schema, Arc::new(properties))?))
    }

    /// Writes at most [`GROUP_ROWS_MAX`] rows: a group, or several if they are long.
    pub(super) fn write(&mut self, rows: &[ArchivedRow]) -> anyhow::Result<()> {
        let mut from = 0;
        while from < rows.len() {
            let mut size = 0;
            let fits = |row: &&ArchivedRow| {
                let cells = FileColumn::all().iter().filter_map(|column| column.get(row).bytes());
                size += cells.map(<[u8]>::len).sum::<usize>();
                size <= WRITTEN_BYTES_MAX
            };
            let until = from + rows[from..].iter().take_while(fits).count().max(1);
            self.write_group(&rows[from..until])?;
            from = until;
        }
        Ok(())
    }

    fn write_group(&mut self, rows: &[ArchivedRow]) -> anyhow::Result<()> {
        let mut group = self.0.next_row_group()?;
        for column in FileColumn::all() {
            let mut to = group.next_column()?.context("the schema has fewer columns")?;
            let cells = rows.iter().map(|row| column.get(row));
            if column.kind == FileColumnKind::Integer {
                let values: Vec<i64> = cells.filter_map(Cell::integer).collect();
                to.typed::<Int64Type>().write_batch(&values, None, None)?;
            } else {
                let cells = cells.map(Cell::bytes);
                let levels: Vec<i16> =
                    cells.clone().map(|cell| i16::from(cell.is_some())).collect();
                let values: Vec<ByteArray> =
                    cells.flatten().map(|bytes| ByteArray::from(bytes.to_vec())).collect();
                let levels = column.kind.is_optional().then_some(levels.as_slice());
                to.typed::<ByteArrayType>().write_batch(&values, levels, None)?;
            }
            to.close()?;
        }
        group.close()?;
        Ok(())
    }

    /// Ends the file.
    pub(super) fn end(self) -> anyhow::Result<W> {
        Ok(self.0.into_inner()?)
    }
}

/// A file whose rows are read, group by group, and its columns.
pub(super) struct RowReader(SerializedFileReader<File>, &'static [FileColumn]);

impl RowReader {
    /// Opens one. A file of an earlier version ends before the columns that were added since.
    ///
    /// # Errors
    /// A file of another form, or with other columns.
    pub(super) fn open(file: File) -> anyhow::Result<Self> {
        let reader = SerializedFileReader::new(file)?;
        let metadata = reader.metadata().file_metadata();
        let count = metadata.schema_descr().num_columns().max(first_columns());
        let columns = FileColumn::all().get(..count).unwrap_or(FileColumn::all());
        if *metadata.schema() != schema(columns)? {
            bail!("it has other columns than an archive of this version");
        }
        Ok(RowReader(reader, columns))
    }

    /// How many groups it has.
    pub(super) fn groups(&self) -> usize {
        self.0.num_row_groups()
    }

    /// The rows of a group, in their order.
    pub(super) fn read(&self, group: usize) -> anyhow::Result<Vec<ArchivedRow>> {
        let group = self.0.get_row_group(group)?;
        let count = usize::try_from(group.metadata().num_rows())?;
        if count > GROUP_ROWS_MAX {
            bail!("a group has {count} rows, more than an archive writes");
        }
        let mut rows = vec![ArchivedRow::default(); count];
        let mut room = GROUP_BYTES_MAX;
        for (index, column) in self.1.iter().enumerate() {
            let is_set = if column.kind == FileColumnKind::Integer {
                let values = read_longs(&*group, index, count)?;
                set_all(column, &mut rows, values.into_iter().map(Cell::Integer))
            } else {
                let cells = read_bytes(&*group, index, count, column.kind.is_optional())?;
                if !cells.iter().flatten().all(|cell| has_room(&mut room, cell.len())) {
                    bail!("column {index} holds more than an archive writes");
                }
                let cells = cells.iter().map(|cell| cell.as_ref().map(ByteArray::data));
                set_all(column, &mut rows, cells.map(Cell::Bytes))
            };
            is_set.context("a text is not UTF-8, or missing")?;
        }
        Ok(rows)
    }
}

/// Sets a column's values in rows; `None` where one is no value of the column.
fn set_all<'c>(
    column: &FileColumn,
    rows: &mut [ArchivedRow],
    cells: impl Iterator<Item = Cell<'c>>,
) -> Option<()> {
    rows.iter_mut().zip(cells).try_for_each(|(row, cell)| column.set(row, cell))
}

/// Whether a cell of a group is one that an archive may have written; takes its room.
fn has_room(room: &mut usize, cell_bytes: usize) -> bool {
    let left = room.checked_sub(cell_bytes).filter(|_| cell_bytes <= CELL_BYTES_MAX);
    *room = left.unwrap_or(0);
    left.is_some()
}

fn read_longs(group: &dyn RowGroupReader, index: usize, count: usize) -> anyhow::Result<Vec<i64>> {
    let ColumnReader::Int64ColumnReader(mut column) = group.get_column_reader(index)? else {
        bail!("column {index} holds no integers");
    };
    let mut values = Vec::with_capacity(count);
    while values.len() < count {
        let (records, ..) = column.read_records(count - values.len(), None, None, &mut values)?;
        if records == 0 {
            bail!("column {index} ends early");
        }
    }
    Ok(values)
}

fn read_bytes(
    group: &dyn RowGroupReader,
    index: usize,
    count: usize,
    is_optional: bool,
) -> anyhow::Result<Vec<Option<ByteArray>>> {
    let ColumnReader::ByteArrayColumnReader(mut column) = group.get_column_reader(index)? else {
        bail!("column {index} holds no bytes");
    };
    let (mut values, mut levels) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let mut read = 0;
    while read < count {
        let levels = is_optional.then_some(&mut levels);
        let (records, ..) = column.read_records(count - read, levels, None, &mut values)?;
        if records == 0 {
            bail!("column {index} ends early");
        }
        read += records;
    }
    if !is_optional {
        return Ok(values.into_iter().map(Some).collect());
    }
    let mut values = values.into_iter();
    Ok(levels.into_iter().map(|level| if level == 1 { values.next() } else { None }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_were() {
        let full = ArchivedRow {
            batch_id: 7,
            counter_id: 3,
            first_value: 1,
            last_value: 9,
            step: 2,
            version: 1,
            number: Some("คคง.-1".into()),
            context: Some("{}".into()),
            type_code: "LETTER".into(),
            document_date: "2026-01-02".into(),
            allocation_id: vec![1; 16],
            payload_digest: Some(vec![0, 255]),
            node_id: vec![2; 16],
            ..ArchivedRow::default()
        };
        let rows: Vec<ArchivedRow> = (0..100)
            .map(|value| {
                let row = ArchivedRow { first_value: value, ..full.clone() };
                let is_bare = value % 3 == 0;
                if is_bare {
                    ArchivedRow { number: None, payload_digest: None, ..row }
                } else {
                    row
                }
            })
            .collect();
        let mut writer = RowWriter::begin(tempfile::tempfile().unwrap()).unwrap();
        writer.write(&rows[..60]).unwrap();
        writer.write(&rows[60..]).unwrap();
        let reader = RowReader::open(writer.end().unwrap()).unwrap();
        let read: Vec<ArchivedRow> =
            (0..reader.groups()).flat_map(|group| reader.read(group).unwrap()).collect();
        assert_eq!(read, rows);
    }

    #[test]
    fn files_have_the_columns_of_the_record_in_their_order() {
        let expected = "message journal {
            required int64 batch_id;
            required int64 counter_id;
            required int64 first_value;
            required int64 last_value;
            required int64 step;
            required int64 config_id;
            required int64 config_version;
            required int64 issued_at (timestamp(micros, true));
            required int64 retry_count;
            required int64 partition_id;
            required int64 epoch;
            required int64 journaled_at (timestamp(micros, true));
            optional binary number (utf8);
            optional binary scope (utf8);
            optional binary mask (utf8);
            optional binary outline (utf8);
            optional binary rest (utf8);
            optional binary context (utf8);
            optional binary document_id (utf8);
            optional binary idempotency_key (utf8);
            optional binary project (utf8);
            optional binary ip_address (utf8);
            required binary type (utf8);
            required binary document_date (utf8);
            required binary user_id (utf8);
            required binary path (utf8);
            required binary series (utf8);
            required binary serial (utf8);
            required binary counter_key (utf8);
            required binary allocation_id;
            required binary node_id;
            optional binary payload_digest;
        }";
        let first = schema(&FileColumn::all()[..first_columns()]).unwrap();
        assert_eq!(first, parse_message_type(expected).unwrap());
    }

    /// A text that is in a file once may belong to each of its rows.
    #[test]
    fn a_cell_and_the_cells_of_a_group_are_bounded() {
        let of = |text: &str| ArchivedRow { context: Some(text.into()), ..ArchivedRow::default() };
        let longest = "x".repeat(CELL_BYTES_MAX);
        let file_of = |rows: &[ArchivedRow]| {
            let mut writer = RowWriter::begin(tempfile::tempfile().unwrap()).unwrap();
            writer.write(rows).unwrap();
            RowReader::open(writer.end().unwrap()).unwrap()
        };
        let refused = file_of(&vec![of(&format!("{longest}x")); 2]).read(0).unwrap_err();
        assert!(refused.to_string().contains("more than an archive writes"), "{refused}");
        // Everything that is written is read, in as many groups as it takes.
        let rows = vec![of(&longest); WRITTEN_BYTES_MAX / CELL_BYTES_MAX + 1];
        let reader = file_of(&rows);
        let groups = (0..reader.groups()).map(|group| reader.read(group).unwrap().len());
        assert_eq!(groups.collect::<Vec<_>>(), [rows.len() - 1, 1]);
        let mut room = GROUP_BYTES_MAX;
        let cells = GROUP_BYTES_MAX / CELL_BYTES_MAX;
        assert!((0..cells).all(|_| has_room(&mut room, CELL_BYTES_MAX)));
        assert!(!has_room(&mut room, 1) && has_room(&mut room, 0));
    }
}
