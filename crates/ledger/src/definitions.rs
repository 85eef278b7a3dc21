//! The part of the schema that the record depends on, as the migrations make it: what readers read,
//! what keeps rows as they are, and what keeps a number from coming twice. A user who may change
//! the schema can make readers see what no row has; so `audit verify` compares it with this list.
//!
//! The list covers all migrations. A test compares it with a new ledger of each engine, and prints
//! the new lines after a migration that changes it.

mod list;

use std::collections::BTreeMap;

use numbering::hexadecimal;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use self::list::{POSTGRES, SQLITE};
use crate::{Audits, LedgerError};

/// The tables of the record.
pub(crate) const TABLES: [&str; 13] = [
    "journal",
    "journal_batch",
    "journal_kind",
    "journal_name",
    "checkpoint",
    "counter",
    "series",
    "series_version",
    "event",
    "life",
    "gap",
    "revision",
    "archive_file",
];

/// Bytes of a digest that are compared.
const SHOWN_BYTES: usize = 12;

/// Something of the schema that is not as the migrations make it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Deviation {
    /// Its kind and name, such as `view journal_row`.
    pub name: String,
    /// The digest of the definition that was found; `None`: it is missing.
    pub digest: Option<String>,
}

impl Audits<'_> {
    /// Where the schema that the record depends on is not as the migrations make it, by name.
    pub async fn schema_deviations(self) -> Result<Vec<Deviation>, LedgerError> {
        let found = self.read(async |reader| reader.acquire().await?.definitions().await).await?;
        let made = if self.0.engine() == "sqlite" { SQLITE } else { POSTGRES };
        Ok(deviations(found, made))
    }

    /// Whether the list has something of a name.
    #[must_use]
    pub fn names_schema(self, name: &str) -> bool {
        let made = if self.0.engine() == "sqlite" { SQLITE } else { POSTGRES };
        made.iter().any(|(made, _)| *made == name)
    }

    /// The lines of the list, as this ledger's schema would have them.
    pub async fn schema_lines(self) -> Result<Vec<(String, String)>, LedgerError> {
        let found = self.read(async |reader| reader.acquire().await?.definitions().await).await?;
        let mut lines: Vec<(String, String)> =
            found.into_iter().map(|(name, text)| (name, digest_of(&text))).collect();
        lines.sort();
        Ok(lines)
    }
}

/// Objects that others added, such as a trigger that copies rows elsewhere, are no deviation: a row
/// that it changed differs from its seal.
fn deviations(found: Vec<(String, String)>, made: &[(&str, &str)]) -> Vec<Deviation> {
    let mut found: BTreeMap<String, String> =
        found.into_iter().map(|(name, text)| (name, digest_of(&text))).collect();
    let deviations = made.iter().filter_map(|(name, digest)| match found.remove(*name) {
        Some(there) if there == *digest => None,
        there => Some(Deviation { name: (*name).to_owned(), digest: there }),
    });
    deviations.collect()
}

/// Of a text, regardless of its layout.
fn digest_of(text: &str) -> String {
    let said: Vec<&str> = text.split_whitespace().collect();
    hexadecimal(&Sha256::digest(said.join(" "))[..SHOWN_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_and_what_is_other_deviates() {
        const MADE: &[(&str, &str)] = &[("a", "1"), ("b", "2")];
        let found = vec![("b".to_owned(), "x".to_owned()), ("c".to_owned(), "y".to_owned())];
        let found = deviations(found, MADE);
        let seen: Vec<(&str, bool)> =
            found.iter().map(|one| (one.name.as_str(), one.digest.is_some())).collect();
        assert_eq!(seen, [("a", false), ("b", true)]);
        assert_eq!(digest_of("select a\n from b"), digest_of("select  a from b"));
        assert_ne!(digest_of("(a or b) and c"), digest_of("a or b and c"));
    }
}
