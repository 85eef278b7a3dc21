//! The columns of an archive file, as ways into a row's fields. What a file calls them and how it
//! encodes them is not known here.

use std::sync::LazyLock;

use super::{ArchivedRow, all_columns};

/// A kind of columns, in the order in which files have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileColumnKind {
    /// Integers.
    Integer,
    /// Texts in UTF-8, or nothing.
    OptionalText,
    /// Texts in UTF-8.
    Text,
    /// Bytes.
    Bytes,
    /// Bytes, or nothing.
    OptionalBytes,
}

impl FileColumnKind {
    /// Whether a row may have nothing there.
    #[must_use]
    pub fn is_optional(self) -> bool {
        matches!(self, FileColumnKind::OptionalText | FileColumnKind::OptionalBytes)
    }

    /// Whether its values are texts.
    #[must_use]
    pub fn is_text(self) -> bool {
        matches!(self, FileColumnKind::OptionalText | FileColumnKind::Text)
    }
}

/// The value of a column in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell<'r> {
    /// Of a column of integers.
    Integer(i64),
    /// Of another column.
    Bytes(Option<&'r [u8]>),
}

impl<'r> Cell<'r> {
    /// The integer, if it is one.
    #[must_use]
    pub fn integer(self) -> Option<i64> {
        match self {
            Cell::Integer(integer) => Some(integer),
            Cell::Bytes(_) => None,
        }
    }

    /// The bytes, if there are any.
    #[must_use]
    pub fn bytes(self) -> Option<&'r [u8]> {
        match self {
            Cell::Integer(_) => None,
            Cell::Bytes(bytes) => bytes,
        }
    }
}

/// A column of an archive file.
#[derive(Clone, Copy, Debug)]
pub struct FileColumn {
    /// The name of its field in [`ArchivedRow`].
    pub name: &'static str,
    /// Its kind.
    pub kind: FileColumnKind,
    /// Whether it was added after the first version: earlier files end before it.
    pub is_later: bool,
    pub(super) get: fn(&ArchivedRow) -> Cell<'_>,
    pub(super) set: fn(&mut ArchivedRow, Cell<'_>) -> Option<()>,
}

/// All of them, in the order of files.
static COLUMNS: LazyLock<Vec<FileColumn>> = LazyLock::new(|| {
    let mut columns = all_columns();
    // Those that were added later follow in the order in which they were.
    columns.sort_by_key(|column| (column.is_later, (!column.is_later).then_some(column.kind)));
    columns
});

impl FileColumn {
    /// All columns in the order in which files have them: by their kinds, and those of one kind as
    /// rows have them; the later ones at the end.
    #[must_use]
    pub fn all() -> &'static [FileColumn] {
        &COLUMNS
    }

    /// Its value in a row.
    #[must_use]
    pub fn get<'r>(&self, row: &'r ArchivedRow) -> Cell<'r> {
        (self.get)(row)
    }

    /// Sets its value in a row; `None` where it is no value of such a column.
    #[must_use]
    pub fn set(&self, row: &mut ArchivedRow, cell: Cell<'_>) -> Option<()> {
        (self.set)(row, cell)
    }
}

/// A type of fields that files have columns for.
pub(super) trait InFile: Sized {
    /// The kind of such columns.
    const KIND: FileColumnKind;

    /// The value as a file has it.
    fn cell(&self) -> Cell<'_>;

    /// The value that a file has; `None` where it has none of this type.
    fn of(cell: Cell<'_>) -> Option<Self>;
}

/// Implements [`InFile`] for types: their kind, and the ways to a cell and back.
macro_rules! in_file {
    ($($type:ty, $kind:ident, $cell:expr, $of:expr;)*) => {
        $(impl InFile for $type {
            const KIND: FileColumnKind = FileColumnKind::$kind;

            fn cell(&self) -> Cell<'_> {
                let cell: fn(&Self) -> Cell<'_> = $cell;
                cell(self)
            }

            fn of<'c>(cell: Cell<'c>) -> Option<Self> {
                let of: fn(Cell<'c>) -> Option<Self> = $of;
                of(cell)
            }
        })*
    };
}
in_file! {
    i64, Integer, |value| Cell::Integer(*value), Cell::integer;
    i32, Integer, |value| Cell::Integer(i64::from(*value)),
        |cell| i32::try_from(cell.integer()?).ok();
    Vec<u8>, Bytes, |bytes| Cell::Bytes(Some(bytes)), |cell| cell.bytes().map(<[u8]>::to_vec);
    Option<Vec<u8>>, OptionalBytes, |bytes| Cell::Bytes(bytes.as_deref()),
        |cell| Some(cell.bytes().map(<[u8]>::to_vec));
    String, Text, |text| Cell::Bytes(Some(text.as_bytes())),
        |cell| String::from_utf8(cell.bytes()?.to_vec()).ok();
    Option<String>, OptionalText, |text| Cell::Bytes(text.as_deref().map(str::as_bytes)),
        |cell| cell.bytes().map(|bytes| String::from_utf8(bytes.to_vec())).transpose().ok();
}
