//! Cuts a MySQL dump into statements and keeps those on certain tables. Never holds a statement on
//! another table, however long.

use std::io::{BufRead, BufReader};

use crate::features::import::ImportError;
use crate::features::import::metered::Metered;

/// Most bytes of a kept statement: dumps join rows up to 1 MB unless configured otherwise.
const STATEMENT_BYTES_MAX: usize = 16_777_216;
/// Bytes within which a statement has named its table.
const BEGINNING_BYTES: usize = 512;
/// Bytes of a comment that show whether a dump begins or ends there.
const COMMENT_BYTES: usize = 32;
/// Most bytes of the line that names another sign for the end of statements.
const DELIMITER_BYTES_MAX: usize = 32;
/// How a file in UTF-8 may begin.
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// A statement on a wanted table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Statement {
    /// The line of its beginning.
    pub(super) line: u64,
    pub(super) table: &'static str,
    pub(super) is_insert: bool,
    pub(super) text: String,
}

/// The state of the reader within the text.
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
    /// Whether anything was read.
    is_begun: bool,
    /// The beginning of the present comment, or of the last one.
    comment: Vec<u8>,
    /// Whether a dump with an end mark has begun, and has not ended.
    is_open: bool,
}

impl<'a> Statements<'a> {
    /// The statements on these tables.
    pub(super) fn new(file: Metered, name: String, tables: &'a [&'static str]) -> Self {
        let reader = BufReader::with_capacity(65_536, file);
        Statements {
            reader,
            name,
            tables,
            line: 1,
            delimiter: b";".to_vec(),
            is_begun: false,
            comment: Vec::new(),
            is_open: false,
        }
    }

    /// The next statement on a wanted table.
    ///
    /// # Errors
    /// `Form` if the file ends within something, or holds rows in an unsupported form.
    pub(super) fn next(&mut self) -> Result<Option<Statement>, ImportError> {
        self.skip_mark()?;
        loop {
            let mut cut = Cut::default();
            if let Some(within) = self.cut(&mut cut)? {
                self.must_be_whole(within, &cut)?;
                return Ok(None);
            }
            let text = cut.text.trim_ascii();
            if is_copy(text) {
                let why = "rows of COPY are not read: write the dump with `pg_dump --inserts`, or \
                           name the database by its URL";
                return Err(self.refused(cut.line, why));
            }
            if cut.is_kept.unwrap_or(true)
                && let Some((table, is_insert)) = target(text, self.tables)
            {
                let text = String::from_utf8(text.to_vec()).map_err(|_| {
                    self.refused(cut.line, "the dump is not in UTF-8; dump it as utf8mb4")
                })?;
                return Ok(Some(Statement { line: cut.line, table, is_insert, text }));
            }
        }
    }

    /// Skips the mark that some editors put at the start of a file in UTF-8.
    fn skip_mark(&mut self) -> Result<(), ImportError> {
        if self.is_begun {
            return Ok(());
        }
        self.is_begun = true;
        for sign in BYTE_ORDER_MARK {
            if self.peek()? != Some(sign) {
                break;
            }
            self.byte()?;
        }
        Ok(())
    }

    /// Reads up to the end of a statement; if the file ends first, returns what it ends within.
    fn cut(&mut self, cut: &mut Cut) -> Result<Option<Within>, ImportError> {
        let mut within = Within::Code;
        while let Some(byte) = self.byte()? {
            within = match (within, byte) {
                (Within::LineComment, b'\n') => {
                    self.obey_comment()?;
                    Within::Code
                }
                (Within::LineComment, _) => {
                    if self.comment.len() < COMMENT_BYTES {
                        self.comment.push(byte);
                    }
                    Within::LineComment
                }
                (Within::BlockComment, b'*') if self.peek()? == Some(b'/') => {
                    self.byte()?;
                    Within::Code
                }
                (Within::BlockComment, _) => Within::BlockComment,
                (Within::Code, b'/') if self.peek()? == Some(b'*') => {
                    self.byte()?;
                    Within::BlockComment
                }
                (Within::Code, b'#') => self.begin_comment(),
                (Within::Code, b'-') if self.peek()? == Some(b'-') => self.begin_comment(),
                // A command of psql has its line to itself.
                (Within::Code, b'\\') if cut.text.is_empty() => self.begin_comment(),
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
                _ => {
                    self.keep(cut, byte)?;
                    within
                }
            };
            if within == Within::Code && cut.text.eq_ignore_ascii_case(b"delimiter") {
                self.take_delimiter(cut)?;
            }
            if within == Within::Code && cut.ends_with(&self.delimiter) {
                cut.text.truncate(cut.text.len().saturating_sub(self.delimiter.len()));
                return Ok(None);
            }
        }
        if within == Within::LineComment {
            self.obey_comment()?;
        }
        Ok(Some(within))
    }

    /// Obeys the dump's own command for another sign at the end of statements, which is a line: it
    /// may contain the previous sign.
    fn take_delimiter(&mut self, cut: &mut Cut) -> Result<(), ImportError> {
        if !self.peek()?.is_some_and(|byte| byte.is_ascii_whitespace()) {
            return Ok(());
        }
        let (line, mut sign) = (self.line, Vec::new());
        while let Some(byte) = self.byte()?.filter(|byte| *byte != b'\n') {
            sign.push(byte);
            if sign.len() > DELIMITER_BYTES_MAX {
                break;
            }
        }
        self.delimiter = sign.trim_ascii().to_vec();
        if self.delimiter.is_empty() || sign.len() > DELIMITER_BYTES_MAX {
            return Err(self.refused(line, "DELIMITER names no sign for the end of statements"));
        }
        *cut = Cut::default();
        Ok(())
    }

    fn begin_comment(&mut self) -> Within {
        self.comment.clear();
        Within::LineComment
    }

    /// Comments of dumps mark their beginning and end.
    fn obey_comment(&mut self) -> Result<(), ImportError> {
        let begins = |text: &[u8]| self.comment.starts_with(text);
        if begins(b"- MySQL dump") || begins(b"- MariaDB dump") {
            if self.is_open {
                return Err(self.cut_short("another dump begins within it"));
            }
            self.is_open = true;
        } else if begins(b"- Dump completed") {
            self.is_open = false;
        }
        Ok(())
    }

    /// Refuses a file that ends before its dump does: rows would be missing, and counters too low.
    fn must_be_whole(&self, within: Within, cut: &Cut) -> Result<(), ImportError> {
        Err(match within {
            Within::Quoted(_) => self.cut_short("it ends within a text"),
            Within::BlockComment => self.cut_short("it ends within a comment"),
            _ if !cut.text.is_empty() => self.cut_short("its last statement has no end"),
            _ if self.is_open => self.cut_short("its last line, `-- Dump completed`, is missing"),
            _ => return Ok(()),
        })
    }

    fn cut_short(&self, why: &str) -> ImportError {
        self.refused(self.line, &format!("the dump was cut short, {why}; write it again"))
    }

    fn refused(&self, line: u64, why: &str) -> ImportError {
        ImportError::form(format!("{}: line {line}", self.name), why)
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
            // Only its end is searched for.
            let surplus = cut.text.len() - self.delimiter.len().min(cut.text.len());
            cut.text.drain(..surplus);
        } else if cut.text.len() > STATEMENT_BYTES_MAX {
            let why = "a statement has more than 16 MiB; dump with --skip-extended-insert";
            return Err(self.refused(cut.line, why));
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
    /// Whether it is on a wanted table, once enough of it is read.
    is_kept: Option<bool>,
}

impl Cut {
    fn ends_with(&self, delimiter: &[u8]) -> bool {
        self.text.ends_with(delimiter)
    }
}

/// Words that may precede the name of the table.
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

/// Whether a statement is followed by rows that are not statements.
fn is_copy(text: &[u8]) -> bool {
    let begins = text.get(..5).is_some_and(|word| word.eq_ignore_ascii_case(b"copy "));
    let rest = text.len().saturating_sub(11);
    begins && text[rest..].eq_ignore_ascii_case(b" from stdin")
}

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
