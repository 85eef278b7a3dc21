//! The rows of a list of numbers: separated values with named columns, or one number a line.
//! Returns their texts; `reading` interprets them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};

use numerator_runtime::actor::through;

use super::exported::{
    ExportColumn, Extra, GENERATED_NUMBER, NEEDED, OfExport, of_export, restored,
};
use super::metered::Metered;
use super::report::{Problem, ProblemKind};
use super::separated::{Line, NOT_UTF8, Separated, column_name, separator};
use super::{ImportError, ListFile};

/// The column that a list needs.
const NUMBER: &str = "number";

/// Other names of the column of numbers, in letters and digits only.
const NUMBER_BY_OTHER_NAMES: [&str; 17] = [
    "no",
    "nr",
    "num",
    "numbers",
    "numero",
    "docno",
    "docnumber",
    "documentno",
    "documentnumber",
    "fullnumber",
    "เลขที่",
    "เลขที่เอกสาร",
    "หมายเลข",
    "编号",
    "編號",
    "单号",
    "單號",
];

/// A row; empty fields are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    /// Its line in the file, from 1.
    pub(super) line: u64,
    pub(super) number: String,
    pub(super) document_id: Option<String>,
    pub(super) date: Option<String>,
    pub(super) user_id: Option<String>,
    pub(super) issued_at: Option<String>,
    pub(super) type_code: Option<String>,
    pub(super) project: Option<String>,
    pub(super) phase: Option<String>,
    /// Values of variables.
    pub(super) context: BTreeMap<String, String>,
    /// What only an export says.
    pub(super) extra: Extra,
}

impl Row {
    /// Adds what an export says in columns of its own.
    fn complete(mut self) -> Self {
        let service = self.extra.service.take();
        self.user_id = match (service, self.user_id) {
            (Some(service), Some(person)) => Some(through(&service, &person)),
            (_, user_id) => user_id,
        };
        for (name, value) in std::mem::take(&mut self.extra.context) {
            self.context.entry(name).or_insert(value);
        }
        self
    }
}

/// The content of a column.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Column {
    Number,
    Document,
    Date,
    User,
    IssuedAt,
    Type,
    Project,
    Phase,
    Variable(String),
    OfExport(ExportColumn),
    Ignored,
}

impl Column {
    /// The column of a name: variables by their exact name first, then all without regard to case.
    fn of(name: &str, variables: &BTreeSet<String>, is_export: bool) -> Option<Self> {
        let own = if is_export { of_export(name) } else { None };
        let name = match own {
            Some(OfExport::Own(column)) => return Some(Column::OfExport(column)),
            Some(OfExport::Ignored) => return Some(Column::Ignored),
            Some(OfExport::Known(name)) => name,
            None => name,
        };
        if own.is_none() && variables.contains(name) {
            return Some(Column::Variable(name.to_owned()));
        }
        let name = column_name(name);
        Some(match &*name {
            NUMBER => Column::Number,
            "document_id" | "document" => Column::Document,
            "date" => Column::Date,
            "user" => Column::User,
            "issued_at" => Column::IssuedAt,
            "type" => Column::Type,
            "project" => Column::Project,
            "phase" => Column::Phase,
            _ => {
                let mut alike = variables.iter().filter(|variable| column_name(variable) == name);
                match (alike.next(), alike.next()) {
                    (Some(variable), None) => Column::Variable(variable.clone()),
                    _ => return None,
                }
            }
        })
    }
}

/// The rows of a file, one after the other.
pub(super) struct Rows {
    name: String,
    lines: Lines,
    /// Rows that had nothing to import.
    pub(super) skipped: u64,
}

impl Rows {
    /// Whether the list is an export.
    pub(super) fn is_export(&self) -> bool {
        matches!(self.lines, Lines::Columns { is_export: true, .. })
    }
}

enum Lines {
    Columns { file: Box<Separated<Metered>>, columns: Vec<Column>, is_export: bool },
    List { reader: BufReader<Metered>, line: u64, text: Vec<u8> },
}

impl Rows {
    /// Opens a list. Its first line decides its form: one with a separator, or with the name
    /// `number`, names columns.
    pub(super) fn open(list: &ListFile, variables: &BTreeSet<String>) -> Result<Self, ImportError> {
        let name = list.name().to_owned();
        let cannot = |cause| ImportError::File { file: name.clone(), cause };
        let (file, head) = list.reopened().and_then(Metered::of).map_err(cannot)?;
        let refused = |reason| ImportError::form(format!("{name}: line 1"), reason);
        let holds_numbers = |name: &str| name == NUMBER || name == GENERATED_NUMBER;
        let lines = match separator(&head, holds_numbers) {
            None if is_called_otherwise(&head) => {
                return Err(refused(no_numbers(&[head.trim().to_owned()])));
            }
            None => Lines::List { reader: BufReader::new(file), line: 0, text: Vec::new() },
            Some(sign) => {
                let file = Separated::new(file, sign).map_err(cannot)?;
                let (columns, is_export) = columns(file.names(), variables).map_err(refused)?;
                Lines::Columns { file: Box::new(file), columns, is_export }
            }
        };
        Ok(Rows { name, lines, skipped: 0 })
    }

    /// The next row, or its flaw; `None` at the end. Empty lines are skipped, and rows of an export
    /// that have nothing to import.
    pub(super) fn next(&mut self) -> Result<Option<Result<Row, Problem>>, ImportError> {
        loop {
            let row = self.next_of_all()?;
            match &row {
                Some(Ok(row)) if row.extra.is_skipped() => self.skipped += 1,
                _ => return Ok(row),
            }
        }
    }

    fn next_of_all(&mut self) -> Result<Option<Result<Row, Problem>>, ImportError> {
        match &mut self.lines {
            Lines::Columns { file, columns, is_export } => {
                file.source().record_read();
                match file.next_line() {
                    Ok(line) => Ok(line.map(|line| row(columns, *is_export, line))),
                    Err(error) => Err(ImportError::form(&self.name, error)),
                }
            }
            Lines::List { reader, line, text } => loop {
                text.clear();
                let count = reader.read_until(b'\n', text);
                let count = count.map_err(|error| ImportError::form(&self.name, error))?;
                reader.get_mut().record_read();
                if count == 0 {
                    return Ok(None);
                }
                *line += 1;
                let Ok(text) = std::str::from_utf8(text) else {
                    return Ok(Some(Err(unreadable(*line, NOT_UTF8))));
                };
                let number = text.trim_start_matches('\u{feff}').trim();
                if !number.is_empty() {
                    let row = Row { line: *line, number: number.to_owned(), ..Row::default() };
                    return Ok(Some(Ok(row)));
                }
            },
        }
    }

    /// How far the file is read, and which file.
    pub(super) fn metered(&self) -> &Metered {
        match &self.lines {
            Lines::Columns { file, .. } => file.source_read(),
            Lines::List { reader, .. } => reader.get_ref(),
        }
    }
}

/// Whether a name is another one for the column of the numbers.
fn is_called_otherwise(name: &str) -> bool {
    let mut name = column_name(name);
    name.retain(|c| !c.is_whitespace() && !c.is_ascii_punctuation());
    NUMBER_BY_OTHER_NAMES.contains(&&*name)
}

/// Why columns are refused if none holds numbers.
fn no_numbers(names: &[String]) -> String {
    let found = names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let remedy = match names.iter().find(|name| is_called_otherwise(name)) {
        Some(near) => format!("rename \"{near}\" to `{NUMBER}`"),
        None => format!("name the column of the numbers `{NUMBER}`"),
    };
    format!(
        "of its columns {found} none is called `{NUMBER}`; {remedy}. A list of numbers alone has \
         one a line, and no `,`, `;` or tab in its first line"
    )
}

/// The content of the columns.
fn columns(names: &[String], variables: &BTreeSet<String>) -> Result<(Vec<Column>, bool), String> {
    let has = |wanted: &str| names.iter().any(|name| column_name(name) == wanted);
    let is_export = !has(NUMBER) && has(GENERATED_NUMBER);
    if !is_export && !has(NUMBER) {
        return Err(no_numbers(names));
    }
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let Some(column) = Column::of(name, variables, is_export) else {
            return Err(format!(
                "column \"{name}\" is not known; it may be number, document_id, date, user, \
                 issued_at, type, project, phase or a variable of a series, such as ORIGINATOR"
            ));
        };
        if column != Column::Ignored && columns.contains(&column) {
            return Err(format!("column \"{name}\" appears twice"));
        }
        columns.push(column);
    }
    let is_missing = |column| !columns.contains(&Column::OfExport(column));
    match NEEDED.into_iter().find(|(_, column)| is_export && is_missing(*column)) {
        Some((name, _)) => Err(format!(
            "an export is read back by its column {name}, which is missing: export all columns"
        )),
        None => Ok((columns, is_export)),
    }
}

fn row(columns: &[Column], is_export: bool, line: Line<'_>) -> Result<Row, Problem> {
    let Line { line, fields } = line;
    let fields = fields.map_err(|why| unreadable(line, why))?;
    let mut row = Row { line, ..Row::default() };
    for (column, value) in columns.iter().zip(fields) {
        if value.is_empty() {
            continue;
        }
        let value = if is_export { restored(value) } else { value }.to_owned();
        match column {
            Column::Number => row.number = value,
            Column::Document => row.document_id = Some(value),
            Column::Date => row.date = Some(value),
            Column::User => row.user_id = Some(value),
            Column::IssuedAt => row.issued_at = Some(value),
            Column::Type => row.type_code = Some(value),
            Column::Project => row.project = Some(value),
            Column::Phase => row.phase = Some(value),
            Column::Variable(name) => {
                row.context.insert(name.clone(), value);
            }
            Column::OfExport(column) => {
                row.extra.set(*column, value).map_err(|why| unreadable(line, why))?;
            }
            Column::Ignored => {}
        }
    }
    let row = row.complete();
    if row.number.is_empty() && !row.extra.is_of_counter() {
        return Err(unreadable(line, "the column `number` is empty"));
    }
    Ok(row)
}

fn unreadable(line: u64, detail: impl Into<String>) -> Problem {
    Problem::of_line(line, None, ProblemKind::UnreadableLine, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Result<Vec<Result<Row, Problem>>, ImportError> {
        let file = tempfile::NamedTempFile::new().expect("file");
        std::fs::write(file.path(), text).expect("written");
        let variables = BTreeSet::from(["單位".to_owned(), "REV".to_owned()]);
        let mut rows = Rows::open(&ListFile::open(file.path())?, &variables)?;
        let mut read = Vec::new();
        while let Some(row) = rows.next()? {
            read.push(row);
        }
        assert_eq!(rows.metered().bytes(), text.len() as u64);
        Ok(read)
    }

    #[test]
    fn a_list_has_one_number_a_line() {
        let rows = read("\u{feff}คคง.-1\r\n\n  A-2  \nA-3".as_bytes()).expect("rows");
        let numbers: Vec<_> =
            rows.iter().map(|row| row.as_ref().map(|row| (row.line, &*row.number))).collect();
        assert_eq!(numbers, [Ok((1, "คคง.-1")), Ok((3, "A-2")), Ok((4, "A-3"))]);
    }

    #[test]
    fn columns_are_found_by_their_names_whatever_separates_them() {
        for (separator, quote) in [(",", "\""), (";", ""), ("\t", "")] {
            let head =
                ["document", "number", "單位", "date", "issued_at", "user", "type", "project"];
            let values = ["D1", "HT-1", "甲", "2024-01-22", "2024-01-22 10:00", "ann", "HT", "P1"];
            let line = |fields: [&str; 8]| {
                fields.map(|field| format!("{quote}{field}{quote}")).join(separator)
            };
            let text = format!("\u{feff}{}\n{}\n", line(head), line(values));
            let rows = read(text.as_bytes()).expect("rows");
            let row = rows[0].as_ref().expect("a row");
            assert_eq!((row.line, &*row.number), (2, "HT-1"));
            assert_eq!(row.context["單位"], "甲");
            for (field, value) in [
                (&row.document_id, "D1"),
                (&row.date, "2024-01-22"),
                (&row.issued_at, "2024-01-22 10:00"),
                (&row.user_id, "ann"),
                (&row.type_code, "HT"),
                (&row.project, "P1"),
            ] {
                assert_eq!(field.as_deref(), Some(value));
            }
        }
    }

    #[test]
    fn a_broken_line_is_told_and_the_next_is_read() {
        let rows = read(b"number,date\nA-1,2024-01-22\nA-2\nA-3,\n\xff,\n,2024-01-22\n");
        let rows = rows.expect("rows");
        assert!(rows[0].is_ok() && rows[2].as_ref().is_ok_and(|row| row.date.is_none()));
        for (index, place, detail) in
            [(1, "line 3", "1 columns"), (3, "line 5", "UTF-8"), (4, "line 6", "number")]
        {
            let problem = rows[index].as_ref().expect_err("broken");
            assert!(problem.place == place && problem.detail.contains(detail), "{problem:?}");
        }
    }

    #[test]
    fn a_head_that_is_not_understood_is_refused_with_its_column() {
        for (head, told) in [("number,colour\n", "colour"), ("number,date,date\n", "twice")] {
            let refused = read(head.as_bytes()).expect_err("refused").to_string();
            assert!(refused.contains("line 1") && refused.contains(told), "{refused}");
        }
    }

    #[test]
    fn a_quotation_mark_left_open_does_not_fill_the_memory() {
        let mut text = b"number,date\n\"A-1,2024-01-22\n".to_vec();
        text.resize(4 << 20, b'x');
        let refused = read(&text).expect_err("refused").to_string();
        assert!(refused.contains("quotation mark"), "{refused}");
    }
}
