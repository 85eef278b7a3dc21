//! The size of a ledger's tables and indexes in PostgreSQL, and their growth.

use std::collections::BTreeMap;

use super::Stage;
use crate::report::figure;

/// Bytes per number below which a table or an index is not shown.
const TOLD_MIN: f64 = 0.5;

/// Bytes of each table, what it keeps out of line included, and of each index, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sizes(BTreeMap<String, u64>);

/// Bytes that each of them grew by for a number, by name.
#[derive(Clone, Debug)]
pub(crate) struct Growth(Vec<(String, f64)>);

impl Sizes {
    /// Reads the sizes of a schema.
    pub(crate) fn now(stage: &Stage, schema: &str) -> Self {
        Self::read(&stage.postgres.sql(&format!(
            "select c.relname, pg_relation_size(c.oid) \
             + coalesce(pg_total_relation_size(nullif(c.reltoastrelid, 0)), 0) \
             from pg_class c join pg_namespace n on n.oid = c.relnamespace \
             where n.nspname = '{schema}' and c.relkind in ('r', 'i')"
        )))
    }

    /// From lines `name|bytes`.
    fn read(lines: &str) -> Self {
        let size = |line: &str| -> (String, u64) {
            let (name, bytes) = line.split_once('|').expect("a name and a size");
            (name.to_owned(), bytes.parse().expect("a size"))
        };
        Sizes(lines.lines().map(size).collect())
    }

    /// The growth since an earlier reading, per number of `numbers`.
    #[expect(clippy::cast_precision_loss, reason = "figures of three digits")]
    pub(crate) fn since(&self, before: &Sizes, numbers: u64) -> Growth {
        let grown = |(name, bytes): (&String, &u64)| {
            let before = before.0.get(name).copied().unwrap_or_default();
            (name.clone(), bytes.saturating_sub(before) as f64 / numbers.max(1) as f64)
        };
        let mut grown: Vec<(String, f64)> = self.0.iter().map(grown).collect();
        grown.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        Growth(grown)
    }
}

impl Growth {
    /// All of it.
    pub(crate) fn total(&self) -> f64 {
        self.0.iter().map(|(_, bytes)| bytes).sum()
    }

    /// That of a table and its indexes, whose names begin with the table's.
    pub(crate) fn of(&self, table: &str) -> f64 {
        let parts = self.0.iter().filter(|(name, _)| name.starts_with(table));
        parts.map(|(_, bytes)| bytes).sum()
    }

    /// The parts that are worth showing, the largest first.
    pub(crate) fn parts(&self) -> String {
        let told = self.0.iter().filter(|(_, bytes)| *bytes >= TOLD_MIN);
        let told: Vec<String> =
            told.map(|(name, bytes)| format!("{name} {}", figure(*bytes))).collect();
        told.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grew_is_told_by_the_number_and_what_shrank_is_none_of_it() {
        let before = Sizes::read("journal|8192\ncounter|16384\njournal_value_once|0");
        let after = Sizes::read("journal|28192\ncounter|8192\njournal_value_once|3000\nnode|30");
        let growth = after.since(&before, 100);
        assert_eq!(growth.parts(), "journal 200, journal_value_once 30");
        assert_eq!(growth.total().to_string(), "230.3");
        assert_eq!(growth.of("journal").to_string(), "230");
        assert_eq!(growth.of("node").to_string(), "0.3");
    }
}
