//! The requirements of records on the database: tables with their columns, the keys that keep
//! records unique, and the rights of the writer. Owns the list; each engine reports what it has.

use std::collections::BTreeSet;
use std::fmt;

use sqlx_macros::FromRow;

use crate::journal_columns::WRITTEN;

/// A table that the path of a number into the journal reads or writes.
pub(crate) struct Needed {
    pub(crate) table: &'static str,
    /// Rights, parted by blanks.
    rights: &'static str,
    /// Columns that statements write, parted by blanks.
    columns: &'static str,
    /// Unique keys, parted by blanks; the columns of each by commas.
    keys: &'static str,
}

const fn needed(
    table: &'static str,
    rights: &'static str,
    columns: &'static str,
    keys: &'static str,
) -> Needed {
    Needed { table, rights, columns, keys }
}

/// All of them.
pub(crate) const NEEDED: [Needed; 26] = [
    needed("journal", "select insert", WRITTEN, "counter_id,first_value number,scope"),
    needed(
        "journal_batch",
        "select insert",
        "batch_id partition_id epoch node_id journaled_at_us line_count seal proof",
        "batch_id",
    ),
    needed("journal_kind", "select insert", "series_id version type_code project", "kind_id"),
    needed("journal_name", "select insert", "name", "name_id"),
    needed(
        "journal_rejected",
        "select insert update",
        "counter_id first_value last_value step allocation_id raw reason rejected_at_us \
         number_hash document_hash key_hash",
        "counter_id,first_value,allocation_id",
    ),
    needed(
        "collision",
        "select insert",
        "counter_id first_value last_value step allocation_id other_allocation_id number raw \
         noted_at_us",
        "counter_id,first_value,allocation_id",
    ),
    needed(
        "counter",
        "select insert update",
        "series_id serial key partition_id epoch origin start_value taken ceiling step journaled \
         returned reissued left_behind seeded_by seeded_at_us",
        "counter_id series_id,serial,key",
    ),
    needed(
        "gap",
        "select insert update delete",
        "counter_id first_value last_value step reason epoch noted_at_us",
        "counter_id,first_value",
    ),
    needed(
        "reservation",
        "select insert update delete",
        "reservation_id state expires_at_us counter_id first_value last_value step number scope \
         series_id document_id user_id returns turn raw number_hash document_hash key_hash \
         reserved_at_us changed_at_us changed_by reason",
        "reservation_id counter_id,first_value number,scope",
    ),
    needed(
        "block_number",
        "select insert",
        "reservation_id value number scope number_hash",
        "reservation_id,value number_hash,number,scope",
    ),
    needed(
        "life",
        "select insert",
        "act at_us counter_id first_value last_value subject number document_id user_id ip_address \
         reason detail",
        "life_id",
    ),
    needed("assignment", "select", "", "counter_id,value"),
    needed("unsettled", "select insert update delete", "", "unsettled_id"),
    needed("chronology", "select insert update", "", "series_id,serial,family"),
    needed("chronology_search", "select insert update delete", "", "series_id,serial,family"),
    needed("deployment", "select", "", "deployment_id"),
    needed("node", "select insert update", "", "node_id"),
    needed("partition", "select insert update", "", "partition_id"),
    needed("participant", "select insert update", "", "partition_id,epoch,node_id"),
    needed("closed_epoch", "select insert", "", "partition_id,epoch"),
    needed("incarnation", "select insert update", "", "only_row"),
    needed("event", "select insert", "", ""),
    needed("series", "select update", "", "series_id"),
    needed("series_version", "select", "", "series_id,version"),
    needed("archived_number", "select", "", ""),
    needed("archive_file", "select", "", ""),
];

/// An engine's report of a table, as far as it exists.
#[derive(Debug, Default, FromRow)]
pub(crate) struct Present {
    #[sqlx(rename = "name")]
    pub(crate) table: String,
    /// As in [`Needed`].
    pub(crate) rights: String,
    pub(crate) columns: String,
    pub(crate) keys: String,
}

/// A missing requirement, without which records cannot be written, or not once only.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lack {
    /// A table.
    Table {
        /// Its name.
        table: String,
    },
    /// A column of a table.
    Column {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// A unique key of a table that is whole.
    Key {
        /// The table.
        table: String,
        /// Its columns.
        columns: String,
    },
    /// A right of the user of `database.url`.
    Right {
        /// The table or sequence.
        table: String,
        /// The right, in the word of SQL.
        right: String,
    },
}

/// What is missing, and its remedy.
impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MIGRATE: &str = "put the backup back whole, or run `numerator migrate`";
        match self {
            Lack::Table { table } => write!(f, "table {table} is missing: {MIGRATE}"),
            Lack::Column { table, column } => {
                write!(f, "column {column} of table {table} is missing: {MIGRATE}")
            }
            Lack::Key { table, columns } => write!(
                f,
                "table {table} has no valid unique key ({columns}): put the backup back whole, or \
                 `reindex table {table}`"
            ),
            Lack::Right { table, right } => write!(
                f,
                "the user of database.url lacks the right to {right} on {table}: run \
                 deploy/postgres/roles.sql as the owner of the tables (`numerator migrate --roles` \
                 does), or `grant {right} on {table} to` that user"
            ),
        }
    }
}

/// The requirements that are missing.
pub(crate) fn lacks(present: &[Present], with_rights: bool) -> Vec<Lack> {
    let mut lacks = Vec::new();
    for Needed { table, rights, columns, keys } in &NEEDED {
        let table = (*table).to_owned();
        let Some(there) = present.iter().find(|there| there.table == table) else {
            lacks.push(Lack::Table { table });
            continue;
        };
        let of = |text: &str| text.split_whitespace().map(str::to_owned).collect::<BTreeSet<_>>();
        let missing = |wanted: &str, there: &str| -> BTreeSet<String> {
            of(wanted).difference(&of(there)).cloned().collect()
        };
        if with_rights {
            let right = |right| Lack::Right { table: table.clone(), right };
            lacks.extend(missing(rights, &there.rights).into_iter().map(right));
        }
        let column = |column| Lack::Column { table: table.clone(), column };
        lacks.extend(missing(columns, &there.columns).into_iter().map(column));
        let key = |columns: String| Lack::Key { table: table.clone(), columns };
        lacks.extend(missing(keys, &there.keys).into_iter().map(key));
    }
    lacks
}

/// All of them in one text.
#[must_use]
pub fn all_lacks(lacks: &[Lack]) -> String {
    lacks.iter().map(Lack::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_its_remedy() {
        let mut present: Vec<Present> = NEEDED
            .iter()
            .map(|Needed { table, rights, columns, keys }| Present {
                table: (*table).to_owned(),
                rights: (*rights).to_owned(),
                columns: (*columns).to_owned(),
                keys: (*keys).to_owned(),
            })
            .collect();
        assert_eq!(lacks(&present, true), []);
        present[0].keys = "counter_id,first_value".to_owned();
        present[1].rights = "select".to_owned();
        present.pop();
        let said = all_lacks(&lacks(&present, true));
        for part in [
            "table journal has no valid unique key (number,scope)",
            "lacks the right to insert on journal_batch",
            "deploy/postgres/roles.sql",
            "table archive_file is missing",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(lacks(&present, false).len(), 2, "SQLite has no rights");
    }
}
