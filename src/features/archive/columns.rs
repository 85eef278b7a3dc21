//! Rows as columns of a Parquet file, there and back. The columns are part of the record:
//! `docs/record.md` lists them.

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

use crate::ledger::ArchivedRow;

/// The columns, in the language of Parquet.
const SCHEMA: &str = "message journal {
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

/// Columns of integers, which come first.
const LONGS: usize = 12;

/// For the columns of bytes, in their order: whether they may be null.
const BYTES: [bool; 20] = [
    true, true, true, true, true, true, true, true, true, true, false, false, false, false, false,
    false, false, false, false, true,
];

/// Most rows of a group, which is read as a whole.
pub(super) const GROUP_ROWS_MAX: usize = 20_000;

/// Most bytes of a cell that is read: several times the length of any text of the journal.
const CELL_BYTES_MAX: usize = 1024 * 1024;

/// Most bytes of the cells of a group that is read. A text that is in a file once may belong to
/// each of its rows, and each row has its own copy.
const GROUP_BYTES_MAX: usize = 512 * 1024 * 1024;

/// Most bytes of the cells of a group that is written, unless it is of one row.
const WRITTEN_BYTES_MAX: usize = 16 * 1024 * 1024;

fn longs(row: &ArchivedRow) -> [i64; LONGS] {
    [
        row.batch_id,
        row.counter_id,
        row.first,
        row.last,
        row.step,
        row.series_id,
        row.version,
        row.issued_at_us,
        row.retry_count,
        row.partition_id,
        row.epoch,
        row.journaled_at_us,
    ]
}

fn bytes(row: &ArchivedRow) -> [Option<&[u8]>; BYTES.len()] {
    fn text(text: &Option<String>) -> Option<&[u8]> {
        text.as_deref().map(str::as_bytes)
    }
    [
        text(&row.number),
        text(&row.scope),
        text(&row.mask),
        text(&row.compressed_mask),
        text(&row.rest),
        text(&row.context),
        text(&row.document_id),
        text(&row.idempotency_key),
        text(&row.project),
        text(&row.ip_address),
        Some(row.type_code.as_bytes()),
        Some(row.document_date.as_bytes()),
        Some(row.user_id.as_bytes()),
        Some(row.path.as_bytes()),
        Some(row.series.as_bytes()),
        Some(row.serial.as_bytes()),
        Some(row.counter_key.as_bytes()),
        Some(&row.allocation_id),
        Some(&row.node_id),
        row.digest.as_deref(),
    ]
}

/// A row of the columns' values at one place, in their order; `None` if a text is not valid.
fn row_of(longs: [i64; LONGS], bytes: [Option<ByteArray>; BYTES.len()]) -> Option<ArchivedRow> {
    let mut bytes = bytes.into_iter();
    let mut blob = || bytes.next().flatten().map(|bytes| bytes.data().to_vec());
    let read = |text: Option<Vec<u8>>| text.map(String::from_utf8).transpose().ok();
    let row = ArchivedRow {
        batch_id: longs[0],
        counter_id: longs[1],
        first: longs[2],
        last: longs[3],
        step: longs[4],
        series_id: longs[5],
        version: longs[6],
        issued_at_us: longs[7],
        retry_count: longs[8],
        partition_id: longs[9],
        epoch: longs[10],
        journaled_at_us: longs[11],
        // In the order of the columns, too.
        number: read(blob())?,
        scope: read(blob())?,
        mask: read(blob())?,
        compressed_mask: read(blob())?,
        rest: read(blob())?,
        context: read(blob())?,
        document_id: read(blob())?,
        idempotency_key: read(blob())?,
        project: read(blob())?,
        ip_address: read(blob())?,
        type_code: read(blob())??,
        document_date: read(blob())??,
        user_id: read(blob())??,
        path: read(blob())??,
        series: read(blob())??,
        serial: read(blob())??,
        counter_key: read(blob())??,
        allocation_id: blob()?,
        node_id: blob()?,
        digest: blob(),
    };
    Some(row)
}

/// A file that rows are written to, group by group.
pub(super) struct RowWriter<W: Write + Send>(SerializedFileWriter<W>);

impl<W: Write + Send> RowWriter<W> {
    pub(super) fn begin(to: W) -> anyhow::Result<Self> {
        let schema = Arc::new(parse_message_type(SCHEMA)?);
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
                size += bytes(row).into_iter().flatten().map(<[u8]>::len).sum::<usize>();
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
        for index in 0..LONGS {
            let values: Vec<i64> = rows.iter().map(|row| longs(row)[index]).collect();
            let mut column = group.next_column()?.context("the schema has fewer columns")?;
            column.typed::<Int64Type>().write_batch(&values, None, None)?;
            column.close()?;
        }
        for (index, is_optional) in BYTES.into_iter().enumerate() {
            let cells = rows.iter().map(|row| bytes(row)[index]);
            let levels: Vec<i16> = cells.clone().map(|cell| i16::from(cell.is_some())).collect();
            let values: Vec<ByteArray> =
                cells.flatten().map(|bytes| ByteArray::from(bytes.to_vec())).collect();
            let mut column = group.next_column()?.context("the schema has fewer columns")?;
            let levels = is_optional.then_some(levels.as_slice());
            column.typed::<ByteArrayType>().write_batch(&values, levels, None)?;
            column.close()?;
        }
        group.close()?;
        Ok(())
    }

    /// Ends the file.
    pub(super) fn end(self) -> anyhow::Result<W> {
        Ok(self.0.into_inner()?)
    }
}

/// A file whose rows are read, group by group.
pub(super) struct RowReader(SerializedFileReader<File>);

impl RowReader {
    /// Opens one.
    ///
    /// # Errors
    /// A file of another form, or with other columns.
    pub(super) fn open(file: File) -> anyhow::Result<Self> {
        let reader = SerializedFileReader::new(file)?;
        let schema = parse_message_type(SCHEMA)?;
        if *reader.metadata().file_metadata().schema() != schema {
            bail!("it has other columns than an archive of this version");
        }
        Ok(RowReader(reader))
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
        let mut integers = vec![[0; LONGS]; count];
        for index in 0..LONGS {
            let column = read_longs(&*group, index, count)?;
            for (row, value) in integers.iter_mut().zip(column) {
                row[index] = value;
            }
        }
        let mut texts: Vec<[Option<ByteArray>; BYTES.len()]> =
            (0..count).map(|_| Default::default()).collect();
        let mut room = GROUP_BYTES_MAX;
        for (index, is_optional) in BYTES.into_iter().enumerate() {
            let column = read_bytes(&*group, LONGS + index, count, is_optional)?;
            if !column.iter().flatten().all(|cell| has_room(&mut room, cell.len())) {
                bail!("column {} holds more than an archive writes", LONGS + index);
            }
            for (row, value) in texts.iter_mut().zip(column) {
                row[index] = value;
            }
        }
        let rows = integers.into_iter().zip(texts).map(|(longs, bytes)| row_of(longs, bytes));
        rows.collect::<Option<_>>().context("a text is not UTF-8, or missing")
    }
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
            first: 1,
            last: 9,
            step: 2,
            version: 1,
            number: Some("คคง.-1".into()),
            context: Some("{}".into()),
            type_code: "LETTER".into(),
            document_date: "2026-01-02".into(),
            allocation_id: vec![1; 16],
            digest: Some(vec![0, 255]),
            node_id: vec![2; 16],
            ..ArchivedRow::default()
        };
        let rows: Vec<ArchivedRow> = (0..100)
            .map(|value| {
                let row = ArchivedRow { first: value, ..full.clone() };
                let is_bare = value % 3 == 0;
                if is_bare { ArchivedRow { number: None, digest: None, ..row } } else { row }
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
