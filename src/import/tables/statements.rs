//! Cuts a MySQL dump into statements and keeps those on certain tables. Never holds a statement on
//! any other, however long it is.

use std::io::{BufRead, BufReader};

use crate::import::ImportError;
use crate::import::metered::Metered;

/// Most bytes of one statement that is kept: dumps write rows together up to 1 MB unless they are
/// told otherwise.
const STATEMENT_BYTES_MAX: usize = 16_777_216;
/// Bytes by which a statement has named its table.
const BEGINNING_BYTES: usize = 512;

/// A statement on a wanted table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Statement {
    /// The line where it begins.
    pub(super) line: u64,
    pub(super) table: &'static str,
    pub(super) is_insert: bool,
    pub(super) text: String,
}

/// Where in the text the reader stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    Code,
    /// A text or name, up to this sign.
    Quoted(u8),
    LineComment,
    BlockComment,
}

/// Statements of a dump, one after the other.
pub(super) struct Statements<'a> {
    reader: BufReader<Metered>,
    name: String,
    tables: &'a [&'static str],
    line: u64,
    delimiter: Vec<u8>,
}

impl<'a> Statements<'a> {
    /// The statements on these tables.
    pub(super) fn new(file: Metered, name: String, tables: &'a [&'static str]) -> Self {
        let reader = BufReader::with_capacity(65_536, file);
        Statements { reader, name, tables, line: 1, delimiter: b";".to_vec() }
    }

    /// The next statement on a wanted table.
    pub(super) fn next(&mut self) -> Result<Option<Statement>, ImportError> {
        loop {
            let mut cut = Cut::default();
            let is_end = self.cut(&mut cut)?;
            let text = cut.text.trim_ascii();
            if cut.is_kept.unwrap_or(true)
                && let Some((table, is_insert)) = target(text, self.tables)
            {
                let text = String::from_utf8(text.to_vec()).map_err(|_| {
                    let place = format!("{}: line {}", self.name, cut.line);
                    ImportError::form(place, "the dump is not in UTF-8; dump it as utf8mb4")
                })?;
                return Ok(Some(Statement { line: cut.line, table, is_insert, text }));
            }
            if is_end {
                return Ok(None);
            }
        }
    }

    /// Reads up to the end of a statement; whether the file ends there.
    fn cut(&mut self, cut: &mut Cut) -> Result<bool, ImportError> {
        let mut within = Within::Code;
        while let Some(byte) = self.byte()? {
            within = match (within, byte) {
                (Within::LineComment, b'\n') => Within::Code,
                (Within::LineComment, _) => Within::LineComment,
                (Within::BlockComment, b'*') if self.peek()? == Some(b'/') => {
                    self.byte()?;
                    Within::Code
                }
                (Within::BlockComment, _) => Within::BlockComment,
                (Within::Code, b'/') if self.peek()? == Some(b'*') => {
                    self.byte()?;
                    Within::BlockComment
                }
                (Within::Code, b'#') => Within::LineComment,
                (Within::Code, b'-') if self.peek()? == Some(b'-') => Within::LineComment,
                (Within::Quoted(sign), b'\\') if sign != b'`' => {
                    self.keep(cut, byte)?;
                    if let Some(escaped) = self.byte()? {
                        self.keep(cut, escaped)?;
                    }
                    within
                }
                (Within::Quoted(sign), _) if byte == sign => {
                    self.keep(cut, byte)?;
                    Within::Code
                }
                (Within::Code, b'\'' | b'"' | b'`') => {
                    self.keep(cut, byte)?;
                    Within::Quoted(byte)
                }
                (Within::Code, b'\n') if self.takes_delimiter(cut) => Within::Code,
                _ => {
                    self.keep(cut, byte)?;
                    within
                }
            };
            if within == Within::Code && cut.ends_with(&self.delimiter) {
                cut.text.truncate(cut.text.len().saturating_sub(self.delimiter.len()));
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Obeys the dump's own command for another sign at the end of statements.
    fn takes_delimiter(&mut self, cut: &mut Cut) -> bool {
        let line = cut.text.trim_ascii();
        let Some(sign) = line.get(..9).filter(|word| word.eq_ignore_ascii_case(b"delimiter"))
        else {
            return false;
        };
        self.delimiter = line[sign.len()..].trim_ascii().to_vec();
        *cut = Cut::default();
        true
    }

    fn keep(&self, cut: &mut Cut, byte: u8) -> Result<(), ImportError> {
        if cut.text.is_empty() {
            if byte.is_ascii_whitespace() {
                return Ok(());
            }
            cut.line = self.line;
        }
        cut.text.push(byte);
        if cut.is_kept.is_none() && cut.text.len() == BEGINNING_BYTES {
            cut.is_kept = Some(target(&cut.text, self.tables).is_some());
        }
        if cut.is_kept == Some(false) {
            // Only its end is looked for.
            let surplus = cut.text.len() - self.delimiter.len().min(cut.text.len());
            cut.text.drain(..surplus);
        } else if cut.text.len() > STATEMENT_BYTES_MAX {
            let place = format!("{}: line {}", self.name, cut.line);
            let why = "a statement has more than 16 MiB; dump with --skip-extended-insert";
            return Err(ImportError::form(place, why));
        }
        Ok(())
    }

    fn peek(&mut self) -> Result<Option<u8>, ImportError> {
        let name = &self.name;
        let buffer = self.reader.fill_buf().map_err(|error| ImportError::form(name, error))?;
        Ok(buffer.first().copied())
    }

    fn byte(&mut self) -> Result<Option<u8>, ImportError> {
        let Some(byte) = self.peek()? else { return Ok(None) };
        self.reader.consume(1);
        self.reader.get_mut().record_read();
        self.line += u64::from(byte == b'\n');
        Ok(Some(byte))
    }
}

/// A statement in the making.
#[derive(Default)]
struct Cut {
    line: u64,
    text: Vec<u8>,
    /// Whether it is on a wanted table, once it is long enough to tell.
    is_kept: Option<bool>,
}

impl Cut {
    fn ends_with(&self, delimiter: &[u8]) -> bool {
        self.text.ends_with(delimiter)
    }
}

/// Words that may stand before the name of the table.
const FILLERS: [&str; 10] = [
    "into",
    "ignore",
    "table",
    "temporary",
    "if",
    "not",
    "exists",
    "low_priority",
    "delayed",
    "high_priority",
];

/// The wanted table that a statement is on, and whether it inserts into it.
fn target(text: &[u8], tables: &[&'static str]) -> Option<(&'static str, bool)> {
    let beginning = String::from_utf8_lossy(&text[..text.len().min(BEGINNING_BYTES)]);
    let unquoted: String = beginning.chars().filter(|c| !matches!(c, '`' | '"')).collect();
    let mut words = unquoted.split(|c: char| c.is_whitespace() || c == '(');
    let first = words.next()?.to_ascii_lowercase();
    let is_insert = matches!(&*first, "insert" | "replace");
    if !is_insert && first != "create" {
        return None;
    }
    let is_filler = |word: &str| FILLERS.iter().any(|filler| word.eq_ignore_ascii_case(filler));
    let name = words.find(|word| !word.is_empty() && !is_filler(word))?;
    // The name of a database may come first.
    let name = name.rsplit('.').next()?;
    let found = tables.iter().find(|table| table.eq_ignore_ascii_case(name));
    found.map(|table| (*table, is_insert))
}
