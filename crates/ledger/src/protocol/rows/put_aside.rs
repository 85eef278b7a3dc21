//! Records that the ledger refused and keeps raw: issued like those of the journal.

use serde::Serialize;
use uuid::Uuid;

use crate::Entry;
use crate::columns::hash64;

/// A record that was put aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutAside {
    /// Its place among them, oldest first.
    pub id: i64,
    /// The allocation.
    pub allocation_id: Uuid,
    /// Its content; `None` where this version cannot read it.
    pub entry: Option<Entry>,
    /// Why the ledger refused it.
    pub reason: String,
    /// When.
    pub rejected_at_us: i64,
    /// Who has explained it, if it is explained.
    pub acknowledged_by: Option<String>,
}

/// What became of a record that was to be journaled again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum JournaledAgain {
    /// It is in the journal now.
    Journaled,
    /// It was there already.
    Known,
    /// Another allocation has its number or its values: it is among the collisions now.
    Collided,
    /// It is not put aside any more: another caller was first.
    Gone,
}

/// The hashes by which the texts of records put aside are looked up: no column may take the texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AsideNames {
    pub(crate) number: i64,
    pub(crate) document: Option<i64>,
    pub(crate) key: Option<i64>,
}

impl AsideNames {
    pub(crate) fn of(entry: &Entry) -> Self {
        let record = &*entry.record;
        AsideNames {
            number: crate::number_hash(&entry.number),
            document: record.document_id.as_deref().map(crate::document_hash),
            key: record.idempotency_key.as_deref().map(|key| key_hash(&record.user_id, key)),
        }
    }
}

/// The hash by which a caller's key is looked up.
pub(crate) fn key_hash(user_id: &str, key: &str) -> i64 {
    i64::from_be_bytes(hash64(&format!("key {user_id} {key}")).to_be_bytes())
}
