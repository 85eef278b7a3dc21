//! Files of separated values: the sign that separates the columns, their names, and the line on
//! which each record begins. Does not interpret them, and holds one record at a time.

use std::io::{self, Chain, Read};

/// The message for a line of another encoding: workbooks, and the default format of spreadsheets.
pub(super) const NOT_UTF8: &str =
    "not in UTF-8; save the sheet as CSV UTF-8 (a workbook is not read)";

/// Signs that may separate columns.
const SEPARATORS: [char; 3] = [',', ';', '\t'];

/// The sign that separates the columns, by the first line of a file: the one that gives it a column
/// that `is_needed`, else the one that it holds most often. None: it has one column of another
/// name.
#[must_use]
pub fn separator(head: &str, is_needed: impl Fn(&str) -> bool) -> Option<char> {
    let has_needed = |sign: &char| head.split(*sign).any(|name| is_needed(&column_name(name)));
    let count = |sign: &char| head.matches(*sign).count();
    let most = SEPARATORS.into_iter().max_by_key(count).filter(|sign| count(sign) > 0);
    SEPARATORS.into_iter().find(has_needed).or(most)
}

/// A column's name for comparison: without case, outer blanks, quotation marks and the mark that
/// begins a file.
#[must_use]
pub fn column_name(name: &str) -> String {
    name.trim_start_matches('\u{feff}').trim().trim_matches('"').trim().to_lowercase()
}

/// A file of separated values whose first line names the columns.
pub struct Separated<R> {
    reader: csv::Reader<Chain<R, &'static [u8]>>,
    record: csv::ByteRecord,
    names: Vec<String>,
}

/// One record.
pub struct Line<'a> {
    /// The line on which it begins, from 1.
    pub line: u64,
    /// As many fields as there are columns, without outer blanks; or their flaw.
    pub fields: Result<Vec<&'a str>, String>,
}

impl<R: Read> Separated<R> {
    /// Reads the names of the columns.
    ///
    /// # Errors
    /// A source that cannot be read, or whose first line is not UTF-8.
    pub fn new(source: R, separator: char) -> io::Result<Self> {
        // Line feeds alone end a line, so that the lines of a record can be counted: a carriage
        // return before one is a blank after the last field. The last line gets one too.
        let reader = csv::ReaderBuilder::new()
            .delimiter(u8::try_from(separator).unwrap_or(b','))
            .terminator(csv::Terminator::Any(b'\n'))
            .has_headers(false)
            .flexible(true)
            .from_reader(source.chain(&b"\n"[..]));
        let mut separated = Separated { reader, record: csv::ByteRecord::new(), names: Vec::new() };
        let names = match separated.next_line()? {
            Some(Line { fields, .. }) => fields.map_err(|reason| invalid(&reason))?,
            None => Vec::new(),
        };
        separated.names = names.into_iter().map(str::to_owned).collect();
        Ok(separated)
    }

    /// The names of the columns, without outer blanks.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The source that it reads.
    pub fn source(&mut self) -> &mut R {
        self.reader.get_mut().get_mut().0
    }

    /// How far that is.
    pub fn source_read(&self) -> &R {
        self.reader.get_ref().get_ref().0
    }

    /// The next record that holds anything; `None` at the end.
    ///
    /// # Errors
    /// A source that cannot be read.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            if !self.reader.read_byte_record(&mut self.record)? {
                return Ok(None);
            }
            if !self.record.as_slice().trim_ascii().is_empty() {
                break;
            }
        }
        let breaks = self.record.as_slice().iter().filter(|byte| **byte == b'\n').count() as u64;
        let line = self.reader.position().line().saturating_sub(1 + breaks);
        let fields = self.record.iter().map(|field| std::str::from_utf8(field).map(str::trim));
        let fields: Result<Vec<&str>, _> = fields.collect();
        let columns = self.names.len();
        let fields = match fields {
            Err(_) => Err(NOT_UTF8.into()),
            Ok(fields) if columns > 0 && fields.len() != columns => {
                Err(format!("{} columns, where the first line has {columns}", fields.len()))
            }
            Ok(fields) => Ok(fields),
        };
        Ok(Some(Line { line, fields }))
    }
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("line 1: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_separator_is_the_one_that_gives_the_needed_column_or_the_most_columns() {
        for (head, sign) in [
            ("number", Some(',')),
            ("a,b;number;c", Some(';')),
            ("\"Number\"\tname, first", Some('\t')),
            ("a;b,c;d", Some(';')),
            ("A-1", None),
            ("", None),
        ] {
            assert_eq!(separator(head, |name| name == "number"), sign, "{head}");
        }
    }

    #[test]
    fn each_record_has_the_line_on_which_it_begins() {
        for end in ["\n", "\r\n"] {
            let lines = ["\u{feff}a,b", "", "1,\"x", "y\"", "  ", "2", "\"3\",\"z\"", "", "4,"];
            let text = lines.join(end);
            let mut file = Separated::new(text.as_bytes(), ',').expect("columns");
            assert_eq!(file.names(), ["a", "b"]);
            let mut told = Vec::new();
            while let Some(Line { line, fields }) = file.next_line().expect("a record") {
                told.push((line, fields.map(|fields| fields.join("|")).ok()));
            }
            let row = |line, fields: &str| (line, Some(fields.to_owned()));
            let broken = format!("1|x{end}y");
            assert_eq!(told, [row(3, &broken), (6, None), row(7, "3|z"), row(9, "4|")]);
        }
    }
}
