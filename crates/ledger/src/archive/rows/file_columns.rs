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

impl InFile for i64 {
    const KIND: FileColumnKind = FileColumnKind::Integer;

    fn cell(&self) -> Cell<'_> {
        Cell::Integer(*self)
    }

    fn of(cell: Cell<'_>) -> Option<Self> {
        cell.integer()
    }
}

impl InFile for i32 {
    const KIND: FileColumnKind = FileColumnKind::Integer;

    fn cell(&self) -> Cell<'_> {
        Cell::Integer(i64::from(*self))
    }

    fn of(cell: Cell<'_>) -> Option<Self> {
        i32::try_from(cell.integer()?).ok()
    }
}

impl InFile for Vec<u8> {
    const KIND: FileColumnKind = FileColumnKind::Bytes;

    fn cell(&self) -> Cell<'_> {
        Cell::Bytes(Some(self))
    }

    fn of(cell: Cell<'_>) -> Option<Self> {
        cell.bytes().map(<[u8]>::to_vec)
    }
}

impl InFile for Option<Vec<u8>> {
    const KIND: FileColumnKind = FileColumnKind::OptionalBytes;

    fn cell(&self) -> Cell<'_> {
        Cell::Bytes(self.as_deref())
    }

    fn of(cell: Cell<'_>) -> Option<Self> {
        Some(cell.bytes().map(<[u8]>::to_vec))
    }
}

impl InFile for String {
    const KIND: FileColumnKind = FileColumnKind::Text;

    fn cell(&self) -> Cell<'_> {
        Cell::Bytes(Some(self.as_bytes()))
    }

    fn of(cell: Cell<'_>) -> Option<Self> {
        String::from_utf8(cell.bytes()?.to_vec()).ok()
    }
}

impl InFile for Option<String> {
    const KIND: FileColumnKind = FileColumnKind::OptionalText;

    fn cell(&self) -> Cell<'_> {
        Cell::Bytes(self.as_deref().map(str::as_bytes))
    }

    fn of(cell: Cell<'_>) -> Option<Self> {
        cell.bytes().map(|bytes| String::from_utf8(bytes.to_vec())).transpose().ok()
    }
}
