//! Ids of another system become codes: from its own reference tables, or from a file that says
//! otherwise.

use std::collections::HashMap;
use std::path::Path;

use super::ImportError;
use super::metered::Metered;
use super::separated::{Line, Separated, column_name, separator};
use super::tables::TableRow;

/// Reference tables, and the column of each that holds the code.
pub(super) const REFERENCE_TABLES: [(&str, &str); 6] = [
    ("projects", "project_code"),
    ("organizations", "organization_code"),
    ("correspondence_types", "type_code"),
    ("correspondence_sub_types", "sub_type_number"),
    ("rfa_types", "type_code"),
    ("disciplines", "discipline_code"),
];

/// A table that no source is queried for: the types of `com_no_config` may be in a file.
pub(super) const TYPES_OF_RULES: &str = "bill_types";

/// The columns of a file of codes.
const COLUMNS: [&str; 3] = ["table", "id", "code"];

/// Codes by table and id.
#[derive(Clone, Debug, Default)]
pub struct Codes {
    said: HashMap<(String, String), String>,
    found: HashMap<(&'static str, String), String>,
}

impl Codes {
    /// Reads a CSV file with the columns `table`, `id` and `code`.
    ///
    /// # Errors
    /// A file that cannot be read, or another form; the line is named.
    pub fn read(file: &Path) -> Result<Self, ImportError> {
        let name = file.display();
        let (metered, head) = Metered::open(file)?;
        let sign = separator(&head, |name| COLUMNS.contains(&name)).unwrap_or(',');
        let refused = |cause| ImportError::File { file: name.to_string(), cause };
        let mut lines = Separated::new(metered, sign).map_err(refused)?;
        let names: Vec<String> = lines.names().iter().map(|name| column_name(name)).collect();
        let place = |wanted: &str| names.iter().position(|name| name == wanted);
        let [Some(table_at), Some(id_at), Some(code_at)] = COLUMNS.map(place) else {
            let why = format!("the columns are {}, not {}", COLUMNS.join(", "), names.join(", "));
            return Err(ImportError::form(format!("{name}: line 1"), why));
        };
        let mut codes = Codes::default();
        while let Some(Line { line, fields }) = lines.next_line().map_err(refused)? {
            let wrong = |why| ImportError::form(format!("{name}: line {line}"), why);
            let fields = fields.map_err(wrong)?;
            let [table, id, code] = [table_at, id_at, code_at].map(|at| fields[at].to_owned());
            let place = format!("{}: table {table}, id {id}", file.display());
            let known = REFERENCE_TABLES.map(|(name, _)| name);
            if table != TYPES_OF_RULES && !known.contains(&&*table) {
                let known = known.join(", ");
                let why = format!("the tables are {known} and {TYPES_OF_RULES}");
                return Err(ImportError::form(place, why));
            }
            if codes.said.insert((table, id), code).is_some() {
                return Err(ImportError::form(place, "appears twice"));
            }
            lines.source().record_read();
        }
        Ok(codes)
    }

    /// Takes a row of a reference table.
    ///
    /// # Errors
    /// `Form` if the id has another code already, as in a dump of two databases: one of them would
    /// name the counters of both.
    pub(super) fn add(&mut self, table_row: &TableRow) -> Result<(), ImportError> {
        let column = REFERENCE_TABLES.iter().find(|(table, _)| *table == table_row.table);
        let code = column.and_then(|(_, column)| table_row.get(column));
        let (Some(id), Some(code)) = (table_row.get("id"), code) else { return Ok(()) };
        let is_said = self.said.contains_key(&(table_row.table.to_owned(), id.to_owned()));
        let before = self.found.insert((table_row.table, id.to_owned()), code.to_owned());
        match before.filter(|before| before != code && !is_said) {
            None => Ok(()),
            Some(before) => {
                let why = format!(
                    "id {id} has the code {before:?} and then {code:?}: dump one database alone, \
                     or say by --map which it is"
                );
                Err(ImportError::form(table_row.place(), why))
            }
        }
    }

    /// The code of an id.
    ///
    /// # Errors
    /// A sentence about where it can be given.
    pub(super) fn code(&self, table: &'static str, id: &str) -> Result<String, String> {
        let said = self.said.get(&(table.to_owned(), id.to_owned()));
        let found = || self.found.get(&(table, id.to_owned()));
        said.or_else(found).cloned().ok_or_else(|| {
            format!("{table} has no code for id {id}; say it by --map, as `{table},{id},CODE`")
        })
    }

    /// The code of an id that may be its own code.
    pub(super) fn code_or_id(&self, table: &'static str, id: &str) -> String {
        self.code(table, id).unwrap_or_else(|_| id.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_come_from_a_file() {
        let file = tempfile::NamedTempFile::new().expect("file");
        let text = "table,id,code\norganizations,22,คคง.\n organizations , 10 ,สคฉ.3\n";
        std::fs::write(file.path(), text).expect("written");
        let codes = Codes::read(file.path()).expect("codes");
        assert_eq!(codes.code("organizations", "10").as_deref(), Ok("สคฉ.3"));
        let missing = codes.code("organizations", "11").expect_err("missing");
        assert!(missing.contains("organizations,11,CODE"), "{missing}");
        std::fs::write(file.path(), "table,id,code\nprojects,1,X\nprojects,1,Y\n")
            .expect("written");
        assert!(Codes::read(file.path()).expect_err("twice").to_string().contains("twice"));
        std::fs::write(file.path(), "table,id,code\nproject,1,X\n").expect("written");
        let unknown = Codes::read(file.path()).expect_err("no such table").to_string();
        assert!(unknown.contains("table project") && unknown.contains("projects"), "{unknown}");
        std::fs::write(file.path(), "table,code\na,X\n").expect("written");
        assert!(Codes::read(file.path()).expect_err("no id").to_string().contains("id"));
    }
}
