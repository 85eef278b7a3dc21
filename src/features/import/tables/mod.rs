//! Rows of named tables in a PostgreSQL or SQLite database or in a MySQL dump, as text. Returns the
//! texts; `counters` and `formats` determine the system and the meaning.

mod database;
mod dump;
mod parts;
mod statements;

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use super::ImportError;

/// How every SQLite file begins.
const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";

/// A row of a table.
#[derive(Clone, Debug)]
pub(super) struct TableRow {
    /// Its table.
    pub(super) table: &'static str,
    /// Which row of it, from 1.
    pub(super) row: u64,
    columns: Arc<[String]>,
    values: Vec<Option<String>>,
}

impl TableRow {
    /// The value of a column; `None` for NULL, the empty text and a missing column.
    pub(super) fn get(&self, column: &str) -> Option<&str> {
        let place = self.columns.iter().position(|name| name == column)?;
        self.values.get(place)?.as_deref().filter(|value| !value.is_empty())
    }

    /// Whether the table has a column.
    pub(super) fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|name| name == column)
    }

    /// Table and row, for people.
    pub(super) fn place(&self) -> String {
        format!("{} row {}", self.table, self.row)
    }
}

/// Where tables are.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Postgres(String),
    Sqlite(String),
    Dump(String),
}

impl Source {
    /// The source that a URL or the name of a file means.
    pub(super) fn of(text: &str) -> Result<Self, ImportError> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Source::Postgres(text.to_owned()));
        }
        if text.starts_with("mysql:") || text.starts_with("mariadb:") {
            let why = "write a dump with mysqldump or mariadb-dump, and import that file";
            return Err(ImportError::form("mysql", why));
        }
        let path = text.strip_prefix("sqlite:").unwrap_or(text);
        let path = path.strip_prefix("//").unwrap_or(path);
        let mut magic = [0; 16];
        let file = std::fs::File::open(path);
        let read = file.and_then(|mut file| file.read(&mut magic));
        read.map_err(|cause| ImportError::file(Path::new(path), cause))?;
        if magic == *SQLITE_MAGIC {
            return Ok(Source::Sqlite(path.to_owned()));
        }
        Ok(Source::Dump(path.to_owned()))
    }

    /// Its name without a password.
    pub(super) fn name(&self) -> String {
        match self {
            Source::Sqlite(path) | Source::Dump(path) => path.clone(),
            Source::Postgres(url) => {
                let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
                let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
                format!("{scheme}://{}", place.split('?').next().unwrap_or(place))
            }
        }
    }

    /// Refuses a source without rows: the user who names it expects that it has rows.
    pub(super) fn must_have_rows(
        &self,
        tables: &[&'static str],
        there: &BTreeSet<&'static str>,
        rows: u64,
    ) -> Result<(), ImportError> {
        if rows > 0 {
            return Ok(());
        }
        let why = if there.is_empty() {
            format!("there is none of the tables {}", tables.join(", "))
        } else {
            let there: Vec<&str> = there.iter().copied().collect();
            format!(
                "there is no row in {}; a dump needs them as INSERT statements: mysqldump without \
                 --no-data and --tab, pg_dump with --inserts",
                there.join(", ")
            )
        };
        Err(ImportError::form(self.name(), why))
    }

    /// Passes every row of the existing ones of the tables to `each`, table after table in a
    /// database, in the order of the file in a dump; returns which tables exist.
    pub(super) async fn read(
        &self,
        tables: &[&'static str],
        each: &mut (dyn FnMut(TableRow) -> Result<(), ImportError> + Send),
    ) -> Result<BTreeSet<&'static str>, ImportError> {
        match self {
            Source::Postgres(url) => database::postgres(url, tables, each).await,
            Source::Sqlite(path) => database::sqlite(path, tables, each).await,
            Source::Dump(path) => dump::read(Path::new(path), tables, each),
        }
    }
}
